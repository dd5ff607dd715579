// DS: LDS loads, stores, atomics, and the cross-lane operations that borrow its encoding.
//
// Address = VGPR + unsigned 16-bit offset.
#include <algorithm>
#include <initializer_list>
#include <utility>

#include "memory_access.h"
#include "rows.h"
#include "switches.h"

namespace netra {
namespace {

void write_row(Wave& w, uint32_t index, const uint32_t* out, uint64_t exec) {
  uint32_t* d = w.row(index);
  for (uint64_t m = exec; m; m &= m - 1) {
    const int l = std::countr_zero(m);
    d[l] = out[l];
  }
}

void load(Wave& w, const Insn& i) {
  const Access a(i.row->data);
  const uint32_t* addr = w.row(i.op[a.vaddr].index);
  const uint32_t* old = w.row(i.op[0].index);
  alignas(64) uint32_t out[4][64];
  const uint64_t exec = w.exec();
  for (uint64_t m = exec; m; m &= m - 1) {
    const unsigned l = static_cast<unsigned>(std::countr_zero(m));
    const uint8_t* p = lds_bytes(w, i, l, addr[l] + static_cast<uint32_t>(i.offset), a.bytes());
    if (!p) return;
    if (a.part == Part::dwords)
      for (uint32_t k = 0; k < a.dwords; ++k) std::memcpy(&out[k][l], p + 4 * k, 4);
    else
      out[0][l] = loaded(a.part, p, old[l]);
  }
  const uint32_t n = a.part == Part::dwords ? a.dwords : 1;
  for (uint32_t k = 0; k < n; ++k) write_row(w, i.op[0].index + k, out[k], exec);
}

void store(Wave& w, const Insn& i) {
  const Access a(i.row->data);
  const uint32_t* addr = w.row(i.op[a.vaddr].index);
  const uint32_t* d = w.row(i.op[a.data].index);
  for (uint64_t m = w.exec(); m; m &= m - 1) {
    const unsigned l = static_cast<unsigned>(std::countr_zero(m));
    uint8_t* p = lds_bytes(w, i, l, addr[l] + static_cast<uint32_t>(i.offset), a.bytes());
    if (!p) return;
    if (a.part == Part::dwords)
      for (uint32_t k = 0; k < a.dwords; ++k) std::memcpy(p + 4 * k, d + k * w.lanes + l, 4);
    else
      stored(a.part, p, d[l]);
  }
}

// Two addresses: offset0 and offset1 count elements, or 64 elements in the st64 forms.
template <bool Stride64>
void load2(Wave& w, const Insn& i) {
  const uint32_t words = i.row->data, scale = words * 4 * (Stride64 ? 64 : 1);
  const uint32_t* addr = w.row(i.op[1].index);
  alignas(64) uint32_t out[4][64];
  const uint64_t exec = w.exec();
  for (uint64_t m = exec; m; m &= m - 1) {
    const unsigned l = static_cast<unsigned>(std::countr_zero(m));
    const uint32_t offsets[2] = {i.offset0 * scale, i.offset1 * scale};
    for (uint32_t e = 0; e < 2; ++e) {
      const uint8_t* p = lds_bytes(w, i, l, addr[l] + offsets[e], words * 4);
      if (!p) return;
      for (uint32_t k = 0; k < words; ++k) std::memcpy(&out[e * words + k][l], p + 4 * k, 4);
    }
  }
  for (uint32_t k = 0; k < 2 * words; ++k) write_row(w, i.op[0].index + k, out[k], exec);
}
template <bool Stride64>
void store2(Wave& w, const Insn& i) {
  const uint32_t words = i.row->data, scale = words * 4 * (Stride64 ? 64 : 1);
  const uint32_t* addr = w.row(i.op[0].index);
  for (uint64_t m = w.exec(); m; m &= m - 1) {
    const unsigned l = static_cast<unsigned>(std::countr_zero(m));
    const uint32_t offsets[2] = {i.offset0 * scale, i.offset1 * scale};
    for (uint32_t e = 0; e < 2; ++e) {
      if (e == 1 && offsets[0] == offsets[1]) break;   // one access, DATA0
      uint8_t* p = lds_bytes(w, i, l, addr[l] + offsets[e], words * 4);
      if (!p) return;
      const uint32_t* d = w.row(i.op[1 + e].index);
      for (uint32_t k = 0; k < words; ++k) std::memcpy(p + 4 * k, d + k * w.lanes + l, 4);
    }
  }
}

// The lane that ds_swizzle reads (ISA guides, DS_SWIZZLE_B32).
unsigned swizzle_source(uint32_t pattern, unsigned l) {
  const uint32_t mask = pattern & 31;
  if (pattern >= 0xe000) {
    unsigned reversed = 0;
    for (int k = 0; k < 5; ++k) reversed |= (l >> k & 1) << (4 - k);
    return (reversed >> std::popcount(mask)) | (l & mask) | (l & 32);
  }
  if (pattern >= 0xc000) {
    const unsigned n = pattern >> 5 & 31, to = pattern & 0x400 ? l - n : l + n;
    return (((l & mask) | (to & ~mask)) & 31) | (l & 32);
  }
  if (pattern & 0x8000) return (l & ~3u) | (pattern >> (2 * (l & 3)) & 3);
  return (((l & 31 & mask) | (pattern >> 5 & 31)) ^ (pattern >> 10 & 31)) | (l & 32);
}
void swizzle(Wave& w, const Insn& i) {
  // From the encoding: the disassembler's words for a rotation leave out its mask.
  uint16_t pattern;
  std::memcpy(&pattern, reinterpret_cast<const void*>(i.pc), 2);
  const uint32_t* s = w.row(i.op[1].index);
  const uint64_t exec = w.exec();
  uint32_t out[64];
  for (unsigned l = 0; l < w.lanes; ++l) {
    const unsigned from = swizzle_source(pattern, l);
    out[l] = exec >> from & 1 ? s[from] : 0;
  }
  write_row(w, i.op[0].index, out, exec);
}

// gfx9 permutes over the wave; gfx11 within halves of 32 lanes.
void bpermute(Wave& w, const Insn& i) {
  const uint32_t* addr = w.row(i.op[1].index);
  const uint32_t* d = w.row(i.op[2].index);
  const uint64_t exec = w.exec();
  const unsigned group = w.gfx11 ? 32 : w.lanes;
  uint32_t out[64];
  for (unsigned l = 0; l < w.lanes; ++l) {
    const unsigned from = (((addr[l] + static_cast<uint32_t>(i.offset)) >> 2) & (group - 1)) | (l & ~(group - 1));
    out[l] = exec >> from & 1 ? d[from] : 0;
  }
  write_row(w, i.op[0].index, out, exec);
}
void permute(Wave& w, const Insn& i) {
  const uint32_t* addr = w.row(i.op[1].index);
  const uint32_t* d = w.row(i.op[2].index);
  const uint64_t exec = w.exec();
  const unsigned group = w.gfx11 ? 32 : w.lanes;
  uint32_t out[64] = {};
  for (unsigned l = 0; l < w.lanes; ++l) {
    if (!(exec >> l & 1)) continue;
    out[(((addr[l] + static_cast<uint32_t>(i.offset)) >> 2) & (group - 1)) | (l & ~(group - 1))] = d[l];
  }
  write_row(w, i.op[0].index, out, exec);
}

// Transpose reads (gfx950): a group of 16 lanes holds a matrix of 16 columns whose rows are the
// lanes' data in order, kBits an element; lane i receives column i.
template <int kBits>
void load_transposed(Wave& w, const Insn& i) {
  constexpr uint32_t kBytes = kBits == 6 ? 12 : 8, kElements = kBytes * 8 / kBits;
  if (w.exec() != w.lane_mask)
    return fault(w, i, 719, "a transpose load needs every lane active; EXEC has inactive lanes");
  const uint32_t* addr = w.row(i.op[1].index);
  uint32_t out[3][64] = {};
  for (unsigned g = 0; g < w.lanes; g += 16) {
    uint8_t bits[16 * kBytes];
    for (unsigned s = 0; s < 16; ++s) {
      const uint32_t a = addr[g + s] + static_cast<uint32_t>(i.offset);
      if (a % (kBits == 6 ? 4 : 8)) return fault_address(w, i, g + s, a, kBytes, "misaligned LDS");
      const uint8_t* p = lds_bytes(w, i, g + s, a, kBytes);
      if (!p) return;
      std::memcpy(bits + s * kBytes, p, kBytes);
    }
    const auto element = [&](uint32_t at) {   // field `at` of the group's bit string
      uint32_t x = 0;
      for (uint32_t k = 0, b = at * kBits; k < kBits; ++k, ++b) x |= (bits[b / 8] >> (b % 8) & 1u) << k;
      return x;
    };
    for (unsigned lane = 0; lane < 16; ++lane)
      for (uint32_t n = 0; n < kElements; ++n) {
        const uint64_t x = static_cast<uint64_t>(element(n * 16 + lane)) << (n * kBits % 32);
        out[n * kBits / 32][g + lane] |= static_cast<uint32_t>(x);
        if (n * kBits % 32 + kBits > 32) out[n * kBits / 32 + 1][g + lane] |= static_cast<uint32_t>(x >> 32);
      }
  }
  for (uint32_t k = 0; k < kBytes / 4; ++k) write_row(w, i.op[0].index + k, out[k], w.lane_mask);
}

// One dword counter at the instruction's offset (plus M0, by the switch ds_append), moved by the
// number of active lanes; every active lane receives the old value.
template <bool Add>
void append(Wave& w, const Insn& i) {
  const uint64_t exec = w.exec();
  if (!exec) return;
  const uint32_t base = switches().ds_append_m0 ? w.s[kM0] & 0xffff : 0;
  const unsigned first = static_cast<unsigned>(std::countr_zero(exec));
  uint8_t* p = lds_bytes(w, i, first, base + static_cast<uint32_t>(i.offset), 4);
  if (!p) return;
  uint32_t old;
  std::memcpy(&old, p, 4);
  const uint32_t n = static_cast<uint32_t>(std::popcount(exec)), fresh = Add ? old + n : old - n;
  std::memcpy(p, &fresh, 4);
  uint32_t out[64];
  std::fill_n(out, 64, old);
  write_row(w, i.op[0].index, out, exec);
}

// LDS[offset + M0[15:0] + 4 * lane].
template <bool Store>
void addtid(Wave& w, const Insn& i) {
  uint32_t* d = w.row(i.op[0].index);
  for (uint64_t m = w.exec(); m; m &= m - 1) {
    const unsigned l = static_cast<unsigned>(std::countr_zero(m));
    uint8_t* p = lds_bytes(w, i, l, static_cast<uint32_t>(i.offset) + (w.s[kM0] & 0xffff) + 4 * l, 4);
    if (!p) return;
    if (Store) std::memcpy(p, d + l, 4);
    else std::memcpy(d + l, p, 4);
  }
}

// Exchange at two addresses, returning both old values.
template <bool Stride64>
void exchange2(Wave& w, const Insn& i) {
  const uint32_t words = i.row->data, scale = words * 4 * (Stride64 ? 64 : 1);
  const uint32_t* addr = w.row(i.op[1].index);
  alignas(64) uint32_t out[4][64];
  const uint64_t exec = w.exec();
  for (uint64_t m = exec; m; m &= m - 1) {
    const unsigned l = static_cast<unsigned>(std::countr_zero(m));
    for (uint32_t e = 0; e < 2; ++e) {
      uint8_t* p = lds_bytes(w, i, l, addr[l] + (e ? i.offset1 : i.offset0) * scale, words * 4);
      if (!p) return;
      const uint32_t* d = w.row(i.op[2 + e].index);
      for (uint32_t k = 0; k < words; ++k) {
        std::memcpy(&out[e * words + k][l], p + 4 * k, 4);
        std::memcpy(p + 4 * k, d + k * w.lanes + l, 4);
      }
    }
  }
  for (uint32_t k = 0; k < 2 * words; ++k) write_row(w, i.op[0].index + k, out[k], exec);
}

// Each dword whose data has bit 31 set is exchanged for the other 31 bits.
void conditional_exchange(Wave& w, const Insn& i) {
  const uint32_t* addr = w.row(i.op[1].index);
  const uint32_t* d = w.row(i.op[2].index);
  alignas(64) uint32_t out[2][64];
  const uint64_t exec = w.exec();
  for (uint64_t m = exec; m; m &= m - 1) {
    const unsigned l = static_cast<unsigned>(std::countr_zero(m));
    uint8_t* p = lds_bytes(w, i, l, (addr[l] + static_cast<uint32_t>(i.offset)) & 0xfff8, 8);
    if (!p) return;
    for (int k = 0; k < 2; ++k) {
      std::memcpy(&out[k][l], p + 4 * k, 4);
      const uint32_t x = d[static_cast<uint32_t>(k) * w.lanes + l];
      const uint32_t put = x & 0x7fffffff;
      if (x >> 31) std::memcpy(p + 4 * k, &put, 4);
    }
  }
  for (uint32_t k = 0; k < 2; ++k) write_row(w, i.op[0].index + k, out[k], exec);
}

void nothing(Wave&, const Insn&) {}

constexpr bool two_operands(AtomicOp op) {
  return atomic_compares(op) || op == AtomicOp::mskor || op == AtomicOp::wrap;
}
template <bool Returns>
void atomic(Wave& w, const Insn& i) {
  const Access a(i.row->data);
  const auto op = static_cast<AtomicOp>(a.dwords);
  const uint32_t words = a.part == Part::u16 ? 2 : 1, bytes = words * 4;
  const uint32_t* addr = w.row(i.op[a.vaddr].index);
  const bool two = two_operands(op);
  alignas(64) uint32_t out[2][64];
  const auto word = [&](uint32_t slot, unsigned l) { return lane_word(w, w.row(i.op[slot].index), l, words); };
  for (uint64_t m = w.exec(); m; m &= m - 1) {
    const unsigned l = static_cast<unsigned>(std::countr_zero(m));
    const uint32_t address = addr[l] + static_cast<uint32_t>(i.offset);
    if (address % bytes) return fault_address(w, i, l, address, bytes, "misaligned LDS atomic");
    uint8_t* p = lds_bytes(w, i, l, address, bytes);
    if (!p) return;
    uint64_t data = word(a.data, l), compare = two ? word(a.data + 1, l) : 0;
    // gfx9's ds_cmpst has the comparand first; gfx11's ds_cmpstore has it second.
    if (!w.gfx11 && atomic_compares(op)) std::swap(data, compare);
    uint64_t old = 0;
    std::memcpy(&old, p, bytes);
    const uint64_t fresh = atomic_result(op, bytes, old, data, compare, atomic_denorms(w, op, true));
    std::memcpy(p, &fresh, bytes);
    out[0][l] = static_cast<uint32_t>(old);
    out[1][l] = static_cast<uint32_t>(old >> 32);
  }
  if constexpr (Returns)
    for (uint32_t k = 0; k < words; ++k) write_row(w, i.op[0].index + k, out[k], w.exec());
}

constexpr Slot reg(Role role, uint32_t n) { return {Type::wide, role, static_cast<uint8_t>(n)}; }
constexpr Row base(const char* name, uint8_t archs, Execute execute, uint32_t mods, uint32_t flags) {
  Row r;
  r.name = name, r.cls = Class::ds, r.archs = archs, r.execute = execute, r.mods = mods, r.flags = flags;
  return r;
}
constexpr Row load_row(const char* name, uint8_t archs, Part part, uint32_t n) {
  Row r = base(name, archs, &load, kModOffset, kLoad);
  r.slot[r.slots++] = reg(part >= Part::u8_hi ? kReadWrite : kWrite, n);
  r.slot[r.slots++] = reg(kRead, 1);
  r.data = access_data(part, n, 1, 0, 0);
  return r;
}
constexpr Row store_row(const char* name, uint8_t archs, Part part, uint32_t n) {
  Row r = base(name, archs, &store, kModOffset, kStore);
  r.slot[r.slots++] = reg(kRead, 1);
  r.slot[r.slots++] = reg(kRead, n);
  r.data = access_data(part, n, 0, 0, 1);
  return r;
}
constexpr Row load2_row(const char* name, uint8_t archs, Execute execute, uint32_t words) {
  Row r = base(name, archs, execute, kModOffset01, kLoad);
  r.slot[r.slots++] = reg(kWrite, 2 * words);
  r.slot[r.slots++] = reg(kRead, 1);
  r.data = words;
  return r;
}
constexpr Row store2_row(const char* name, uint8_t archs, Execute execute, uint32_t words) {
  Row r = base(name, archs, execute, kModOffset01, kStore);
  r.slot[r.slots++] = reg(kRead, 1);
  r.slot[r.slots++] = reg(kRead, words);
  r.slot[r.slots++] = reg(kRead, words);
  r.data = words;
  return r;
}
constexpr Row cross_row(const char* name, Execute execute, uint32_t sources, uint32_t mods) {
  Row r = base(name, kBoth, execute, mods, 0);
  r.slot[r.slots++] = reg(kWrite, 1);
  for (uint32_t k = 0; k < sources; ++k) r.slot[r.slots++] = reg(kRead, 1);
  return r;
}
constexpr Row atomic_row(const char* name, uint8_t archs, AtomicOp op, uint32_t words, bool returns) {
  Row r = base(name, archs, returns ? &atomic<true> : &atomic<false>, kModOffset, kAtomic);
  if (returns) r.slot[r.slots++] = reg(kWrite, words);
  r.slot[r.slots++] = reg(kRead, 1);
  r.slot[r.slots++] = reg(kRead, words);
  if (two_operands(op)) r.slot[r.slots++] = reg(kRead, words);
  r.data = access_data(words == 2 ? Part::u16 : Part::u8, static_cast<uint32_t>(op), returns, 0, returns + 1u);
  return r;
}

constexpr Row slots_row(const char* name, uint8_t archs, Execute execute, uint32_t mods, uint32_t flags,
                        std::initializer_list<Slot> slots, uint32_t data = 0) {
  Row r = base(name, archs, execute, mods, flags);
  for (const Slot& s : slots) r.slot[r.slots++] = s;
  r.data = data;
  return r;
}

#define PAIR(make, a, b, ...) make(a, kGfx950, __VA_ARGS__), make(b, kGfx1151, __VA_ARGS__)

constexpr Row kRows[] = {
    PAIR(load_row, "ds_read_u8", "ds_load_u8", Part::u8, 1),
    PAIR(load_row, "ds_read_i8", "ds_load_i8", Part::i8, 1),
    PAIR(load_row, "ds_read_u16", "ds_load_u16", Part::u16, 1),
    PAIR(load_row, "ds_read_i16", "ds_load_i16", Part::i16, 1),
    PAIR(load_row, "ds_read_b32", "ds_load_b32", Part::dwords, 1),
    PAIR(load_row, "ds_read_b64", "ds_load_b64", Part::dwords, 2),
    PAIR(load_row, "ds_read_b96", "ds_load_b96", Part::dwords, 3),
    PAIR(load_row, "ds_read_b128", "ds_load_b128", Part::dwords, 4),
    PAIR(load_row, "ds_read_u8_d16", "ds_load_u8_d16", Part::u8_d16, 1),
    PAIR(load_row, "ds_read_u8_d16_hi", "ds_load_u8_d16_hi", Part::u8_hi, 1),
    PAIR(load_row, "ds_read_i8_d16", "ds_load_i8_d16", Part::i8_d16, 1),
    PAIR(load_row, "ds_read_i8_d16_hi", "ds_load_i8_d16_hi", Part::i8_hi, 1),
    PAIR(load_row, "ds_read_u16_d16", "ds_load_u16_d16", Part::u16_d16, 1),
    PAIR(load_row, "ds_read_u16_d16_hi", "ds_load_u16_d16_hi", Part::u16_hi, 1),
    PAIR(store_row, "ds_write_b8", "ds_store_b8", Part::u8, 1),
    PAIR(store_row, "ds_write_b8_d16_hi", "ds_store_b8_d16_hi", Part::u8_hi, 1),
    PAIR(store_row, "ds_write_b16", "ds_store_b16", Part::u16, 1),
    PAIR(store_row, "ds_write_b16_d16_hi", "ds_store_b16_d16_hi", Part::u16_hi, 1),
    PAIR(store_row, "ds_write_b32", "ds_store_b32", Part::dwords, 1),
    PAIR(store_row, "ds_write_b64", "ds_store_b64", Part::dwords, 2),
    PAIR(store_row, "ds_write_b96", "ds_store_b96", Part::dwords, 3),
    PAIR(store_row, "ds_write_b128", "ds_store_b128", Part::dwords, 4),
    PAIR(load2_row, "ds_read2_b32", "ds_load_2addr_b32", &load2<false>, 1),
    PAIR(load2_row, "ds_read2_b64", "ds_load_2addr_b64", &load2<false>, 2),
    PAIR(load2_row, "ds_read2st64_b32", "ds_load_2addr_stride64_b32", &load2<true>, 1),
    PAIR(load2_row, "ds_read2st64_b64", "ds_load_2addr_stride64_b64", &load2<true>, 2),
    PAIR(store2_row, "ds_write2_b32", "ds_store_2addr_b32", &store2<false>, 1),
    PAIR(store2_row, "ds_write2_b64", "ds_store_2addr_b64", &store2<false>, 2),
    PAIR(store2_row, "ds_write2st64_b32", "ds_store_2addr_stride64_b32", &store2<true>, 1),
    PAIR(store2_row, "ds_write2st64_b64", "ds_store_2addr_stride64_b64", &store2<true>, 2),
    cross_row("ds_swizzle_b32", &swizzle, 1, kModSwizzle | kModOffset),
    cross_row("ds_bpermute_b32", &bpermute, 2, kModOffset),
    cross_row("ds_permute_b32", &permute, 2, kModOffset),
    slots_row("ds_read_b64_tr_b16", kGfx950, &load_transposed<16>, kModOffset, kLoad, {reg(kWrite, 2), reg(kRead, 1)}),
    slots_row("ds_read_b64_tr_b8", kGfx950, &load_transposed<8>, kModOffset, kLoad, {reg(kWrite, 2), reg(kRead, 1)}),
    slots_row("ds_read_b64_tr_b4", kGfx950, &load_transposed<4>, kModOffset, kLoad, {reg(kWrite, 2), reg(kRead, 1)}),
    slots_row("ds_read_b96_tr_b6", kGfx950, &load_transposed<6>, kModOffset, kLoad, {reg(kWrite, 3), reg(kRead, 1)}),
    slots_row("ds_append", kBoth, &append<true>, kModOffset, kAtomic, {reg(kWrite, 1)}),
    slots_row("ds_consume", kBoth, &append<false>, kModOffset, kAtomic, {reg(kWrite, 1)}),
    slots_row("ds_read_addtid_b32", kGfx950, &addtid<false>, kModOffset, kLoad | kReadsM0, {reg(kWrite, 1)}),
    slots_row("ds_load_addtid_b32", kGfx1151, &addtid<false>, kModOffset, kLoad | kReadsM0, {reg(kWrite, 1)}),
    slots_row("ds_write_addtid_b32", kGfx950, &addtid<true>, kModOffset, kStore | kReadsM0, {reg(kRead, 1)}),
    slots_row("ds_store_addtid_b32", kGfx1151, &addtid<true>, kModOffset, kStore | kReadsM0, {reg(kRead, 1)}),
#define EXCHANGE2(name, arch, stride64, n) \
    slots_row(name, arch, &exchange2<stride64>, kModOffset01, kAtomic, {reg(kWrite, 2 * n), reg(kRead, 1), reg(kRead, n), reg(kRead, n)}, n)
    EXCHANGE2("ds_wrxchg2_rtn_b32", kGfx950, false, 1), EXCHANGE2("ds_wrxchg2st64_rtn_b32", kGfx950, true, 1),
    EXCHANGE2("ds_wrxchg2_rtn_b64", kGfx950, false, 2), EXCHANGE2("ds_wrxchg2st64_rtn_b64", kGfx950, true, 2),
    EXCHANGE2("ds_storexchg_2addr_rtn_b32", kGfx1151, false, 1), EXCHANGE2("ds_storexchg_2addr_stride64_rtn_b32", kGfx1151, true, 1),
    EXCHANGE2("ds_storexchg_2addr_rtn_b64", kGfx1151, false, 2), EXCHANGE2("ds_storexchg_2addr_stride64_rtn_b64", kGfx1151, true, 2),
    slots_row("ds_condxchg32_rtn_b64", kBoth, &conditional_exchange, kModOffset, kAtomic, {reg(kWrite, 2), reg(kRead, 1), reg(kRead, 2)}),
    slots_row("ds_nop", kBoth, &nothing, 0, 0, {}),
    atomic_row("ds_wrxchg_rtn_b32", kGfx950, AtomicOp::swap, 1, true), atomic_row("ds_wrxchg_rtn_b64", kGfx950, AtomicOp::swap, 2, true),
    atomic_row("ds_storexchg_rtn_b32", kGfx1151, AtomicOp::swap, 1, true), atomic_row("ds_storexchg_rtn_b64", kGfx1151, AtomicOp::swap, 2, true),
    atomic_row("ds_wrap_rtn_b32", kBoth, AtomicOp::wrap, 1, true),
#define NETRA_DS_ATOMIC(arch, name, rtn, op, words)                 \
  atomic_row(name, arch, AtomicOp::op, words, false),               \
  atomic_row(rtn, arch, AtomicOp::op, words, true),
#include "sem/ds_atomic.inc"
};

}  // namespace

RowSpan ds_rows() { return {kRows, sizeof kRows / sizeof *kRows}; }

}  // namespace netra
