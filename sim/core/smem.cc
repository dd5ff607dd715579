// SMEM: scalar loads, gfx950's scalar stores and atomics, clocks, cache control. Address = base64 + offset register (unsigned) + immediate (signed), with the
// low two bits dropped; the offset is read before the destination is written.
#include <cstring>

#include "memory_access.h"
#include "rows.h"

namespace netra {
namespace {

constexpr uint64_t kDword = 3;

// V#: base[47:0], stride[61:48], num_records[95:64]. The range is stride * num_records bytes
// (num_records when stride is 0), and a dword outside it reads 0.
void buffer_load(Wave& w, const Insn& i) {
  const uint32_t n = i.row->data;
  uint32_t v[4];
  for (int k = 0; k < 4; ++k) v[k] = read_scalar(w, i.op[1], k);
  const uint64_t base = (static_cast<uint64_t>(v[1] & 0xffff) << 32 | v[0]) & ~kDword;
  const uint32_t stride = v[1] >> 16 & 0x3fff;
  const uint64_t range = static_cast<uint64_t>(stride ? stride : 1) * v[2];
  uint64_t offset = static_cast<uint64_t>(static_cast<int64_t>(i.offset));
  if (i.op[2].kind == Kind::constant) offset += i.op[2].value;
  else if (i.op[2].kind == Kind::sgpr) offset += read_scalar(w, i.op[2]);
  offset &= ~kDword;
  uint32_t out[16] = {};
  for (uint32_t k = 0; k < n; ++k) {
    if (offset + 4 * k + 4 > range) continue;
    const uint8_t* p = global_bytes(w, i, 0, base + offset + 4 * k, 4, false);
    if (!p) return;
    std::memcpy(&out[k], p, 4);
  }
  if (i.op[0].index != kNull) std::memcpy(&w.s[i.op[0].index], out, 4 * n);
}

// The address of a scalar access: base + immediate or offset register, dword aligned.
uint64_t scalar_address(const Wave& w, const Insn& i) {
  uint64_t address = read_scalar64(w, i.op[1]);
  if (i.op[2].kind == Kind::constant)
    address += static_cast<uint64_t>(static_cast<int64_t>(i.op[2].value));
  else if (i.op[2].kind == Kind::sgpr) address += read_scalar(w, i.op[2]);
  return (address + static_cast<uint64_t>(static_cast<int64_t>(i.offset))) & ~kDword;
}

void load(Wave& w, const Insn& i) {
  const uint32_t n = i.row->data;
  const uint8_t* p = global_bytes(w, i, 0, scalar_address(w, i), 4 * n, false);
  if (p && i.op[0].index != kNull) std::memcpy(&w.s[i.op[0].index], p, 4 * n);
}
void store(Wave& w, const Insn& i) {
  const uint32_t n = i.row->data;
  uint8_t* p = global_bytes(w, i, 0, scalar_address(w, i), 4 * n, true);
  if (p) std::memcpy(p, &w.s[i.op[0].index], 4 * n);
}
// gfx950's scalar atomics: one operation per wave, whatever EXEC is; glc returns the old value.
void atomic(Wave& w, const Insn& i) {
  const Access a(i.row->data);
  const auto op = static_cast<AtomicOp>(a.dwords);
  const uint32_t words = a.part == Part::u16 ? 2 : 1;
  uint8_t* p = global_bytes(w, i, 0, scalar_address(w, i), 4 * words, true);
  if (!p) return;
  if (reinterpret_cast<uintptr_t>(p) % (4 * words))
    return fault_address(w, i, 0, reinterpret_cast<uintptr_t>(p), 4 * words, "misaligned atomic");
  uint32_t* d = &w.s[i.op[0].index];
  const auto word = [&](uint32_t k) {
    return words == 2 ? static_cast<uint64_t>(d[k + 1]) << 32 | d[k] : d[k];
  };
  const uint64_t old = atomic_apply(op, 4 * words, p, word(0), op == AtomicOp::cmpswap ? word(words) : 0, false);
  if (!i.sc0) return;
  d[0] = static_cast<uint32_t>(old);
  if (words == 2) d[1] = static_cast<uint32_t>(old >> 32);
}

void memtime(Wave& w, const Insn& i) { write_scalar64(w, i.op[0], 16 * w.executed); }
void cache_control(Wave&, const Insn&) {}

constexpr Row load_row(const char* name, uint8_t archs, uint32_t dwords) {
  Row r{name, Class::smem, archs, &load, kModOffset | kModCache, kLoad, 3, {}, dwords, 0, nullptr};
  r.slot[0] = {Type::wide, kWrite, static_cast<uint8_t>(dwords)};
  r.slot[1] = {Type::wide, kRead, 2};
  r.slot[2] = {Type::i32, kRead, 0};
  return r;
}
constexpr Row buffer_row(const char* name, uint8_t archs, uint32_t dwords) {
  Row r = load_row(name, archs, dwords);
  r.execute = &buffer_load;
  r.slot[1].dwords = 4;
  return r;
}
constexpr Row plain_row(const char* name, uint8_t archs, Execute execute, uint8_t out) {
  Row r{name, Class::smem, archs, execute, 0, 0, 0, {}, 0, 0, nullptr};
  if (out) r.slot[r.slots++] = {Type::wide, kWrite, out};
  return r;
}

constexpr Row store_row(const char* name, uint32_t dwords) {
  Row r = load_row(name, kGfx950, dwords);
  r.execute = &store;
  r.flags = kStore;
  r.slot[0].role = kRead;
  return r;
}
constexpr Row atomic_row(const char* name, AtomicOp op, uint32_t words) {
  Row r = load_row(name, kGfx950, words * (op == AtomicOp::cmpswap ? 2 : 1));
  r.execute = &atomic;
  r.flags = kAtomic;
  r.slot[0].role = kReadWrite;
  r.data = access_data(words == 2 ? Part::u16 : Part::u8, static_cast<uint32_t>(op), 0, 0, 0);
  return r;
}

constexpr Row kRows[] = {
    store_row("s_store_dword", 1), store_row("s_store_dwordx2", 2), store_row("s_store_dwordx4", 4),
#define SCALAR_ATOMIC(name, op) atomic_row("s_atomic_" name, AtomicOp::op, 1), atomic_row("s_atomic_" name "_x2", AtomicOp::op, 2)
    SCALAR_ATOMIC("swap", swap), SCALAR_ATOMIC("cmpswap", cmpswap), SCALAR_ATOMIC("add", add),
    SCALAR_ATOMIC("sub", sub), SCALAR_ATOMIC("smin", smin), SCALAR_ATOMIC("umin", umin),
    SCALAR_ATOMIC("smax", smax), SCALAR_ATOMIC("umax", umax), SCALAR_ATOMIC("and", band),
    SCALAR_ATOMIC("or", bor), SCALAR_ATOMIC("xor", bxor), SCALAR_ATOMIC("inc", inc), SCALAR_ATOMIC("dec", dec),
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
    plain_row("s_memrealtime", kGfx950, &memtime, 2),
    plain_row("s_dcache_inv", kBoth, &cache_control, 0),
    plain_row("s_dcache_wb", kGfx950, &cache_control, 0),
    plain_row("s_dcache_inv_vol", kGfx950, &cache_control, 0),
    plain_row("s_dcache_wb_vol", kGfx950, &cache_control, 0),
    plain_row("s_gl1_inv", kGfx1151, &cache_control, 0),
};

}  // namespace

RowSpan smem_rows() { return {kRows, sizeof kRows / sizeof *kRows}; }

}  // namespace netra
