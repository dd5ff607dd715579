// SMEM: scalar loads, gfx950's scalar stores and atomics, clocks, cache control.
//
// Address = base + offset register (unsigned) + immediate (signed), dword aligned; s_scratch_*
// counts its offset register in 64 bytes. One access per wave, whatever EXEC is. Offsets are read
// before the destination is written.
#include <cstring>

#include "memory_access.h"
#include "rows.h"

namespace netra {
namespace {

constexpr uint64_t dword_aligned(uint64_t x) { return x & ~uint64_t{3}; }

// gfx950 drops the two low bits of each component, gfx1151 those of the sum.
uint64_t with_offsets(const Wave& w, const Insn& i, uint64_t base, uint32_t scale) {
  const Operand& o = i.op[2];
  uint64_t fixed = static_cast<uint64_t>(static_cast<int64_t>(i.offset)), moving = 0;
  if (o.kind == Kind::constant) fixed += o.value;
  else if (o.kind == Kind::sgpr) moving = read_scalar(w, o);
  if (w.gfx11 ? (base + moving + fixed) & 3 : (base | moving | fixed) & 3) tell_low_bits(w, base + moving * scale + fixed);
  if (w.gfx11) return dword_aligned(base + moving + fixed);
  return dword_aligned(base) + dword_aligned(moving) * scale + dword_aligned(fixed);
}

// The memory of a scalar access, a dword at a time. A null dword is out of the descriptor's range,
// unless `faulted`.
template <uint32_t kScale>
struct Plain {
  Wave& w;
  const Insn& i;
  uint64_t address;
  bool faulted = false;
  Plain(Wave& wave, const Insn& insn)
      : w(wave), i(insn), address(with_offsets(wave, insn, read_scalar64(wave, insn.op[1]), kScale)) {}
  uint8_t* at(uint32_t dword, uint32_t dwords, bool write) {
    uint8_t* p = global_bytes(w, i, 0, address + 4 * dword, 4 * dwords, write);
    faulted = !p;
    return p;
  }
};
// V#: base[47:0], stride[61:48], num_records[95:64]. The range is stride * num_records bytes
// (num_records when stride is 0); stride does not scale the address.
struct Descriptor {
  Wave& w;
  const Insn& i;
  uint64_t base, offset, range;
  bool faulted = false;
  Descriptor(Wave& wave, const Insn& insn) : w(wave), i(insn), offset(with_offsets(wave, insn, 0, 1)) {
    const uint32_t high = read_scalar(w, i.op[1], 1), stride = high >> 16 & 0x3fff;
    base = dword_aligned(static_cast<uint64_t>(high & 0xffff) << 32 | read_scalar(w, i.op[1], 0));
    range = static_cast<uint64_t>(stride ? stride : 1) * read_scalar(w, i.op[1], 2);
  }
  uint8_t* at(uint32_t dword, uint32_t dwords, bool write) {
    const uint64_t first = offset + 4 * dword, bytes = 4 * dwords;
    if (first > range || bytes > range - first) {
      tell_range(w, 0, base + first, static_cast<uint32_t>(bytes));
      return nullptr;
    }
    uint8_t* p = global_bytes(w, i, 0, base + first, static_cast<uint32_t>(bytes), write);
    faulted = !p;
    return p;
  }
};

// A dword out of range reads 0.
template <class Place>
void load(Wave& w, const Insn& i) {
  Place place(w, i);
  uint32_t out[16] = {};
  for (uint32_t k = 0; k < i.row->data; ++k) {
    const uint8_t* p = place.at(k, 1, false);
    if (place.faulted) return;
    if (p) std::memcpy(&out[k], p, 4);
  }
  if (i.op[0].index != kNull) std::memcpy(&w.s[i.op[0].index], out, 4 * i.row->data);
}
template <class Place>
void store(Wave& w, const Insn& i) {
  Place place(w, i);
  for (uint32_t k = 0; k < i.row->data; ++k) {
    uint8_t* p = place.at(k, 1, true);
    if (place.faulted) return;
    if (p) std::memcpy(p, &w.s[i.op[0].index + k], 4);
  }
}
// All or nothing; glc returns the old value, 0 out of range.
template <class Place>
void atomic(Wave& w, const Insn& i) {
  const Access a(i.row->data);
  const auto op = static_cast<AtomicOp>(a.dwords);
  const uint32_t words = a.part == Part::u16 ? 2 : 1;
  Place place(w, i);
  uint8_t* p = place.at(0, words, true);
  if (place.faulted) return;
  if (reinterpret_cast<uintptr_t>(p) % (4 * words))
    return fault_address(w, i, 0, reinterpret_cast<uintptr_t>(p), 4 * words, "misaligned atomic");
  uint32_t* d = &w.s[i.op[0].index];
  const auto word = [&](uint32_t k) {
    return words == 2 ? static_cast<uint64_t>(d[k + 1]) << 32 | d[k] : d[k];
  };
  const uint64_t compare = op == AtomicOp::cmpswap ? word(words) : 0;
  const uint64_t old = p ? atomic_apply(op, 4 * words, p, word(0), compare, kKeepDenorms) : 0;
  if (!i.sc0) return;
  d[0] = static_cast<uint32_t>(old);
  if (words == 2) d[1] = static_cast<uint32_t>(old >> 32);
}

void memtime(Wave& w, const Insn& i) { write_scalar64(w, i.op[0], cycles(w)); }
// 100 MHz, where a core clock has about 1600.
void memrealtime(Wave& w, const Insn& i) { write_scalar64(w, i.op[0], cycles(w) / 16); }

// One coherent memory: an invalidate, a write-back or a probe changes no value.
void nothing(Wave&, const Insn&) {}

constexpr Row row(const char* name, uint8_t archs, Execute execute, uint32_t flags, Role role,
                  uint32_t registers, uint8_t base, uint32_t data) {
  Row r{name, Class::smem, archs, execute, kModOffset | kModCache, flags, 3, {}, data, 0, nullptr};
  r.slot[0] = {Type::wide, role, static_cast<uint8_t>(registers)};
  r.slot[1] = {Type::wide, kRead, base};
  r.slot[2] = {Type::i32, kRead, 0};
  return r;
}
constexpr Row load_row(const char* name, uint8_t archs, uint32_t dwords) {
  return row(name, archs, &load<Plain<1>>, kLoad, kWrite, dwords, 2, dwords);
}
constexpr Row buffer_row(const char* name, uint8_t archs, uint32_t dwords) {
  return row(name, archs, &load<Descriptor>, kLoad, kWrite, dwords, 4, dwords);
}
template <class Place>
constexpr Row store_row(const char* name, uint32_t dwords, uint8_t base) {
  return row(name, kGfx950, &store<Place>, kStore, kRead, dwords, base, dwords);
}
template <class Place>
constexpr Row atomic_row(const char* name, AtomicOp op, uint32_t words, uint8_t base) {
  return row(name, kGfx950, &atomic<Place>, kAtomic, kReadWrite, words * (op == AtomicOp::cmpswap ? 2 : 1),
             base, access_data(words == 2 ? Part::u16 : Part::u8, static_cast<uint32_t>(op), 0, 0, 0));
}
constexpr Row plain_row(const char* name, uint8_t archs, Execute execute, uint8_t out) {
  Row r{name, Class::smem, archs, execute, 0, 0, 0, {}, 0, 0, nullptr};
  if (out) r.slot[r.slots++] = {Type::wide, kWrite, out};
  return r;
}
// s_atc_probe type, base, offset.
constexpr Row probe_row(const char* name, uint8_t base) {
  Row r = row(name, kBoth, &nothing, 0, kRead, 0, base, 0);
  r.slot[0] = {Type::u32, kRead, 0};
  return r;
}

constexpr Row kRows[] = {
    store_row<Plain<1>>("s_store_dword", 1, 2),
    store_row<Plain<1>>("s_store_dwordx2", 2, 2),
    store_row<Plain<1>>("s_store_dwordx4", 4, 2),
    store_row<Plain<64>>("s_scratch_store_dword", 1, 2),
    store_row<Plain<64>>("s_scratch_store_dwordx2", 2, 2),
    store_row<Plain<64>>("s_scratch_store_dwordx4", 4, 2),
    store_row<Descriptor>("s_buffer_store_dword", 1, 4),
    store_row<Descriptor>("s_buffer_store_dwordx2", 2, 4),
    store_row<Descriptor>("s_buffer_store_dwordx4", 4, 4),
#define SCALAR_ATOMIC(name, op)                                            \
  atomic_row<Plain<1>>("s_atomic_" name, AtomicOp::op, 1, 2),              \
  atomic_row<Plain<1>>("s_atomic_" name "_x2", AtomicOp::op, 2, 2),        \
  atomic_row<Descriptor>("s_buffer_atomic_" name, AtomicOp::op, 1, 4),     \
  atomic_row<Descriptor>("s_buffer_atomic_" name "_x2", AtomicOp::op, 2, 4)
    SCALAR_ATOMIC("swap", swap), SCALAR_ATOMIC("cmpswap", cmpswap), SCALAR_ATOMIC("add", add),
    SCALAR_ATOMIC("sub", sub), SCALAR_ATOMIC("smin", smin), SCALAR_ATOMIC("umin", umin),
    SCALAR_ATOMIC("smax", smax), SCALAR_ATOMIC("umax", umax), SCALAR_ATOMIC("and", band),
    SCALAR_ATOMIC("or", bor), SCALAR_ATOMIC("xor", bxor), SCALAR_ATOMIC("inc", inc),
    SCALAR_ATOMIC("dec", dec),
    row("s_scratch_load_dword", kGfx950, &load<Plain<64>>, kLoad, kWrite, 1, 2, 1),
    row("s_scratch_load_dwordx2", kGfx950, &load<Plain<64>>, kLoad, kWrite, 2, 2, 2),
    row("s_scratch_load_dwordx4", kGfx950, &load<Plain<64>>, kLoad, kWrite, 4, 2, 4),
    load_row("s_load_dword", kGfx950, 1),     load_row("s_load_dwordx2", kGfx950, 2),
    load_row("s_load_dwordx4", kGfx950, 4),   load_row("s_load_dwordx8", kGfx950, 8),
    load_row("s_load_dwordx16", kGfx950, 16), load_row("s_load_b32", kGfx1151, 1),
    load_row("s_load_b64", kGfx1151, 2),      load_row("s_load_b128", kGfx1151, 4),
    load_row("s_load_b256", kGfx1151, 8),     load_row("s_load_b512", kGfx1151, 16),
    buffer_row("s_buffer_load_dword", kGfx950, 1),
    buffer_row("s_buffer_load_dwordx2", kGfx950, 2),
    buffer_row("s_buffer_load_dwordx4", kGfx950, 4),
    buffer_row("s_buffer_load_dwordx8", kGfx950, 8),
    buffer_row("s_buffer_load_dwordx16", kGfx950, 16),
    buffer_row("s_buffer_load_b32", kGfx1151, 1),
    buffer_row("s_buffer_load_b64", kGfx1151, 2),
    buffer_row("s_buffer_load_b128", kGfx1151, 4),
    buffer_row("s_buffer_load_b256", kGfx1151, 8),
    buffer_row("s_buffer_load_b512", kGfx1151, 16),
    plain_row("s_memtime", kGfx950, &memtime, 2),
    plain_row("s_memrealtime", kGfx950, &memrealtime, 2),
    plain_row("s_dcache_inv", kBoth, &nothing, 0),
    plain_row("s_dcache_wb", kGfx950, &nothing, 0),
    plain_row("s_dcache_inv_vol", kGfx950, &nothing, 0),
    plain_row("s_dcache_wb_vol", kGfx950, &nothing, 0),
    plain_row("s_gl1_inv", kGfx1151, &nothing, 0),
    probe_row("s_atc_probe", 2),
    probe_row("s_atc_probe_buffer", 4),
};

}  // namespace

RowSpan smem_rows() { return {kRows, sizeof kRows / sizeof *kRows}; }

}  // namespace netra
