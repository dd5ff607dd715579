// Typed buffer accesses: MTBUF, whose format the instruction names, and MUBUF's *_format_*, whose
// format the descriptor has. An element is in range as a whole or not at all.
#include <string>

#include "buffer.h"
#include "format.h"
#include "rows.h"
#include "switches.h"

namespace netra {
namespace {

// Row::data beyond what Access reads; its dwords are the components.
constexpr uint32_t kD16 = 1u << 16, kHigh = 1u << 17, kTyped = 1u << 18;

struct Element {
  Format format;
  uint32_t select[4] = {4, 5, 6, 7};   // DST_SEL: 0, 1, or 4 and up for X, Y, Z, W

  // Null, or why the access is refused.
  const char* read(const Wave& w, const Insn& i, const Access& a, bool store) {
    const uint32_t word3 = read_scalar(w, i.op[a.base], 3);
    if (i.row->data & kTyped) {
      const uint32_t code = i.mods & kModFormat ? i.imm : 1;
      format = {static_cast<uint8_t>(code & 15), static_cast<NumberKind>(code >> 4 & 7)};
    } else {
      format = format_of_descriptor(word3, w.gfx11);
    }
    if (!format.valid()) return "the buffer format is not one that exists";
    if (i.row->data & kTyped) return nullptr;
    for (uint32_t k = 0; k < 4; ++k) {
      select[k] = word3 >> (3 * k) & 7;
      if (select[k] == 2 || select[k] == 3) return "DST_SEL of the buffer descriptor has a reserved value";
      if (store && k < format.components() && select[k] != 4 + k)
        return "no source says what a store does with a DST_SEL other than X, Y, Z, W";
    }
    return nullptr;
  }
};

// The bits of one component, which may straddle bytes (10_11_11) but no dword.
uint32_t field(const uint8_t* element, const Format& f, uint32_t k) {
  const uint32_t shift = f.shift(k), width = f.bits(k);
  uint64_t bits = 0;
  std::memcpy(&bits, element + shift / 8, (shift % 8 + width + 7) / 8);
  return static_cast<uint32_t>(bits >> shift % 8 & ((uint64_t{1} << width) - 1));
}

// An element's bytes lie apart where the buffer is swizzled: a dword at a time.
template <bool kWrite>
bool copy(const Fetch& f, unsigned lane, uint8_t* element, uint32_t bytes) {
  for (uint32_t at = 0; at < bytes; at += 4) {
    const uint32_t n = std::min(4u, bytes - at);
    uint8_t* p = f.bytes_at(lane, at, n, kWrite);
    if (!p) return false;
    std::memcpy(kWrite ? p : element + at, kWrite ? element + at : p, n);
  }
  return true;
}

bool in_range(const Fetch& f, unsigned lane, uint32_t bytes) {
  const uint32_t index = f.index_of(lane), offset = f.offset_of(lane);
  const bool inside = f.buffer.in_range(f.i.idxen, index, lane, offset, bytes, f.soffset);
  if (!inside) tell_range(f.w, lane, f.buffer.address(f.i.idxen, index, lane, offset, f.soffset), bytes);
  return inside;
}

// Outside the range the element counts as zeros: what DST_SEL makes 1 is 1 there too.
void load(Wave& w, const Insn& i) {
  const Access a(i.row->data);
  const Fetch f(w, i, a, true);
  const bool d16 = i.row->data & kD16, high = i.row->data & kHigh;
  const bool keep = w.gfx11 || switches().d16_vmem_preserve;
  Element e;
  const char* why = e.read(w, i, a, false);
  if (why) return fault(w, i, 719, why);
  const uint32_t bytes = e.format.bytes(), count = e.format.components();
  const uint32_t one = e.format.integer() ? 1 : d16 ? 0x3c00 : 0x3f800000;
  alignas(64) uint32_t out[4][64];
  const uint32_t registers = d16 ? (a.dwords + 1) / 2 : a.dwords;
  for (uint64_t m = w.exec(); m; m &= m - 1) {
    const unsigned l = static_cast<unsigned>(std::countr_zero(m));
    uint8_t element[16] = {};
    if (in_range(f, l, bytes) && !copy<false>(f, l, element, bytes)) return;
    uint32_t value[4] = {};
    for (uint32_t k = 0; k < a.dwords; ++k) {
      const uint32_t select = e.select[k], from = select - 4;
      if (select < 4) value[k] = select == 1 ? one : 0;
      else if (from >= count) value[k] = from == 3 ? one : 0;
      else value[k] = component_loaded(e.format, field(element, e.format, from), e.format.bits(from), d16, &why);
      if (why) return fault(w, i, 719, why);
    }
    for (uint32_t k = 0; k < registers; ++k) {
      const uint32_t old = keep ? w.row(i.op[0].index + k)[l] : 0;
      if (!d16) out[k][l] = value[k];
      else if (high) out[k][l] = (old & 0xffff) | value[k] << 16;
      else if (2 * k + 1 < a.dwords) out[k][l] = (value[2 * k] & 0xffff) | value[2 * k + 1] << 16;
      else out[k][l] = (old & 0xffff0000) | (value[2 * k] & 0xffff);
    }
  }
  for (uint32_t k = 0; k < registers; ++k) {
    uint32_t* d = w.row(i.op[0].index + k);
    for (uint64_t m = w.exec(); m; m &= m - 1) {
      const int l = std::countr_zero(m);
      d[l] = out[k][l];
    }
  }
}

void store(Wave& w, const Insn& i) {
  const Access a(i.row->data);
  const Fetch f(w, i, a, true);
  const bool d16 = i.row->data & kD16, high = i.row->data & kHigh;
  Element e;
  const char* why = e.read(w, i, a, true);
  if (!why && a.dwords < e.format.components())
    why = "no source says what a store makes of the components that it does not have";
  if (why) return fault(w, i, 719, why);
  const uint32_t bytes = e.format.bytes();
  for (uint64_t m = w.exec(); m; m &= m - 1) {
    const unsigned l = static_cast<unsigned>(std::countr_zero(m));
    if (!in_range(f, l, bytes)) continue;
    uint8_t element[16] = {};
    for (uint32_t k = 0; k < e.format.components(); ++k) {
      uint32_t x = w.row(i.op[0].index + (d16 ? k / 2 : k))[l];
      if (d16) x = (high || k % 2) ? x >> 16 : x & 0xffff;
      const uint32_t width = e.format.bits(k), shift = e.format.shift(k);
      const uint64_t bits = static_cast<uint64_t>(component_stored(e.format, x, width, d16, &why)) << shift % 8;
      if (why) return fault(w, i, 719, why);
      for (uint32_t b = 0; b < (shift % 8 + width + 7) / 8; ++b)
        element[shift / 8 + b] = static_cast<uint8_t>(element[shift / 8 + b] | bits >> (8 * b));
    }
    if (!copy<true>(f, l, element, bytes)) return;
  }
}

constexpr Row row(const char* name, uint8_t archs, bool is_load, uint32_t components, uint32_t shape) {
  Row r;
  r.name = name, r.archs = archs;
  r.cls = shape & kTyped ? Class::mtbuf : Class::mubuf;
  r.execute = is_load ? &load : &store;
  r.mods = kModOffset | kModCache | kModOffen | kModIdxen | (shape & kTyped ? kModFormat : 0u);
  r.flags = is_load ? kLoad : kStore;
  const uint32_t registers = shape & kD16 ? (components + 1) / 2 : components;
  const bool part = shape & kD16 && components % 2;
  const Role role = !is_load ? kRead : part ? kReadWrite : kWrite;
  r.slots = 4;
  r.slot[0] = {Type::wide, role, static_cast<uint8_t>(registers)};
  r.slot[1] = {Type::wide, kRead, 0};
  r.slot[2] = {Type::wide, kRead, 4};
  r.slot[3] = {Type::u32, kRead, 0};
  r.data = access_data(Part::dwords, components, 1, 2, 0) | shape;
  return r;
}

// gfx950 and gfx1151 spell D16 differently; d16_hi has one component, and no MTBUF form.
#define NETRA_TYPED(verb, load)                                                       \
  NETRA_WIDTHS("buffer_" verb, load, 0)                                               \
  NETRA_WIDTHS("tbuffer_" verb, load, kTyped)                                         \
  row("buffer_" verb "_format_d16_hi_x", kGfx950, load, 1, kD16 | kHigh),             \
  row("buffer_" verb "_d16_hi_format_x", kGfx1151, load, 1, kD16 | kHigh),
#define NETRA_WIDTHS(start, load, shape)                                              \
  NETRA_ROWS(start, "x", load, 1, shape)                                              \
  NETRA_ROWS(start, "xy", load, 2, shape)                                             \
  NETRA_ROWS(start, "xyz", load, 3, shape)                                            \
  NETRA_ROWS(start, "xyzw", load, 4, shape)
#define NETRA_ROWS(start, letters, load, n, shape)                                    \
  row(start "_format_" letters, kBoth, load, n, shape),                               \
  row(start "_format_d16_" letters, kGfx950, load, n, (shape) | kD16),                \
  row(start "_d16_format_" letters, kGfx1151, load, n, (shape) | kD16),

constexpr Row kRows[] = {NETRA_TYPED("load", true) NETRA_TYPED("store", false)};

}  // namespace

RowSpan mtbuf_rows() { return {kRows, sizeof kRows / sizeof *kRows}; }

}  // namespace netra
