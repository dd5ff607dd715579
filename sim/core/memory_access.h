// One lane's transfer between memory bytes and registers, shared by every memory class, and the
// arithmetic of atomics.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>

#include "wave.h"

namespace netra {

// What a load or store moves. Whole dwords, or a part of one register.
enum class Part : uint8_t { dwords, u8, i8, u16, i16, u8_hi, i8_hi, u16_hi, u8_d16, i8_d16, u16_d16 };

// Row::data of a memory row: part, dwords, and where the operands stand.
constexpr uint32_t access_data(Part part, uint32_t dwords, uint32_t vaddr, uint32_t base, uint32_t data) {
  return static_cast<uint32_t>(part) | dwords << 8 | data << 20 | vaddr << 24 | base << 28;
}
struct Access {
  Part part;
  uint32_t dwords, data, vaddr, base;
  explicit Access(uint32_t d)
      : part(static_cast<Part>(d & 0xff)), dwords(d >> 8 & 0xff), data(d >> 20 & 7),
        vaddr(d >> 24 & 7), base(d >> 28 & 7) {}
  uint32_t bytes() const {
    switch (part) {
      case Part::dwords: return dwords * 4;
      case Part::u8: case Part::i8: case Part::u8_hi: case Part::i8_hi: case Part::u8_d16:
      case Part::i8_d16: return 1;
      default: return 2;
    }
  }
};

// The register after a sub-dword load: zero or sign extended, or one half replaced.
inline uint32_t loaded(Part part, const uint8_t* p, uint32_t old) {
  uint16_t h = 0;
  switch (part) {
    case Part::u8: return *p;
    case Part::i8: return static_cast<uint32_t>(static_cast<int8_t>(*p));
    case Part::u16: std::memcpy(&h, p, 2); return h;
    case Part::i16: std::memcpy(&h, p, 2); return static_cast<uint32_t>(static_cast<int16_t>(h));
    case Part::u8_d16: return (old & 0xffff0000) | *p;
    case Part::i8_d16: return (old & 0xffff0000) | static_cast<uint16_t>(static_cast<int8_t>(*p));
    case Part::u16_d16: std::memcpy(&h, p, 2); return (old & 0xffff0000) | h;
    case Part::u8_hi: return (old & 0xffff) | static_cast<uint32_t>(*p) << 16;
    case Part::i8_hi:
      return (old & 0xffff) | static_cast<uint32_t>(static_cast<uint16_t>(static_cast<int8_t>(*p))) << 16;
    case Part::u16_hi: std::memcpy(&h, p, 2); return (old & 0xffff) | static_cast<uint32_t>(h) << 16;
    case Part::dwords: break;
  }
  return old;
}
inline void stored(Part part, uint8_t* p, uint32_t x) {
  const uint32_t shifted = part == Part::u8_hi || part == Part::u16_hi ? x >> 16 : x;
  if (part == Part::u8 || part == Part::u8_hi) {
    *p = static_cast<uint8_t>(shifted);
  } else {
    const uint16_t h = static_cast<uint16_t>(shifted);
    std::memcpy(p, &h, 2);
  }
}

// The workgroup's LDS at a byte address. Outside it hardware is silent (a load gives 0, a store is
// dropped); here it is a fault that names the lane, and null.
inline uint8_t* lds_bytes(Wave& w, const Insn& i, unsigned lane, uint32_t address, uint32_t bytes) {
  if (address > w.lds_limit || bytes > w.lds_limit - address) return lds_bytes_slow(w, i, lane, address, bytes);
  return w.lds + address;
}

// The register pair or register of lane `l` in the rows that start at `d`.
inline uint64_t lane_word(const Wave& w, const uint32_t* d, unsigned l, uint32_t words) {
  return words == 2 ? static_cast<uint64_t>(d[w.lanes + l]) << 32 | d[l] : d[l];
}

// Bytes between the lanes of an LDS DMA: a dword each, or four for x3 (the fourth is skipped) and x4.
inline uint32_t lds_dma_stride(const Access& a) { return a.part == Part::dwords && a.dwords >= 3 ? 16 : 4; }

// Loads and stores of both targets: X(gfx950 suffix, gfx1151 suffix, part, dwords).
#define NETRA_LOADS(X)                                                                     \
  X("ubyte", "u8", Part::u8, 1) X("sbyte", "i8", Part::i8, 1)                               \
  X("ushort", "u16", Part::u16, 1) X("sshort", "i16", Part::i16, 1)                         \
  X("dword", "b32", Part::dwords, 1) X("dwordx2", "b64", Part::dwords, 2)                   \
  X("dwordx3", "b96", Part::dwords, 3) X("dwordx4", "b128", Part::dwords, 4)                \
  X("ubyte_d16", "d16_u8", Part::u8_d16, 1) X("ubyte_d16_hi", "d16_hi_u8", Part::u8_hi, 1)  \
  X("sbyte_d16", "d16_i8", Part::i8_d16, 1) X("sbyte_d16_hi", "d16_hi_i8", Part::i8_hi, 1)  \
  X("short_d16", "d16_b16", Part::u16_d16, 1) X("short_d16_hi", "d16_hi_b16", Part::u16_hi, 1)
#define NETRA_STORES(X)                                                                    \
  X("byte", "b8", Part::u8, 1) X("byte_d16_hi", "d16_hi_b8", Part::u8_hi, 1)                \
  X("short", "b16", Part::u16, 1) X("short_d16_hi", "d16_hi_b16", Part::u16_hi, 1)          \
  X("dword", "b32", Part::dwords, 1) X("dwordx2", "b64", Part::dwords, 2)                   \
  X("dwordx3", "b96", Part::dwords, 3) X("dwordx4", "b128", Part::dwords, 4)

enum class AtomicOp : uint8_t {
  swap, cmpswap, add, sub, rsub, smin, umin, smax, umax, band, bor, bxor, inc, dec, csub, mskor, wrap,
  add_f32, add_f64, min_f32, max_f32, min_f64, max_f64, pk_add_f16, pk_add_bf16,
  fcmpswap, fcmpswap_f64,
};

constexpr bool atomic_compares(AtomicOp op) {
  return op == AtomicOp::cmpswap || op == AtomicOp::fcmpswap || op == AtomicOp::fcmpswap_f64;
}

// What a float atomic does to denormals, in the bits of a MODE.denorm field: 1 keeps those of the
// operands, 2 keeps that of the result.
inline constexpr uint32_t kKeepDenorms = 3;

// The value to store, for 4- or 8-byte memory. `data` and `compare` are zero-extended.
uint64_t atomic_result(AtomicOp op, uint32_t bytes, uint64_t old, uint64_t data, uint64_t compare,
                       uint32_t denorms);
// LDS float operations follow MODE.denorm; at L2 only add_f32 may flush, by the switch l2_add_f32
// (gfx950).
uint32_t atomic_denorms(const Wave& w, AtomicOp op, bool lds);

// Host-atomic: workgroups of an unchecked launch run on several threads.
inline uint64_t atomic_apply(AtomicOp op, uint32_t bytes, uint8_t* p, uint64_t data, uint64_t compare,
                             uint32_t denorms) {
  if (bytes == 4) {
    auto* q = reinterpret_cast<uint32_t*>(p);
    uint32_t old = __atomic_load_n(q, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(
        q, &old, static_cast<uint32_t>(atomic_result(op, 4, old, data, compare, denorms)), false,
        __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
    }
    return old;
  }
  auto* q = reinterpret_cast<uint64_t*>(p);
  uint64_t old = __atomic_load_n(q, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(q, &old, atomic_result(op, 8, old, data, compare, denorms), false,
                                      __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
  }
  return old;
}

}  // namespace netra
