// The arithmetic of atomics (ISA guides, "Memory atomics"): what memory holds afterwards.
#include <cmath>

#include "memory_access.h"
#include "switches.h"

namespace netra {
namespace {

float f32(uint64_t x) { return std::bit_cast<float>(static_cast<uint32_t>(x)); }
double f64(uint64_t x) { return std::bit_cast<double>(x); }
uint64_t bits(float x) { return std::bit_cast<uint32_t>(x); }
uint64_t bits(double x) { return std::bit_cast<uint64_t>(x); }

// A NaN loses against a number; -0 < +0.
template <class F>
F pick(F a, F b, bool less) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  if (a == b) return std::signbit(a) == less ? a : b;
  return (a < b) == less ? a : b;
}


// f16 and bf16 sums: exact in f32 (f16) or f64 (bf16), then one rounding to nearest even.
uint32_t round_to_half(double x, bool bf16) {
  const int mant = bf16 ? 7 : 10, bias = bf16 ? 127 : 15, top = bf16 ? 255 : 31;
  const uint32_t sign = std::signbit(x) ? 0x8000 : 0;
  if (std::isnan(x)) return bf16 ? 0x7fc0 : 0x7e00;
  x = std::fabs(x);
  if (x == 0) return sign;
  int e = 0;
  std::frexp(x, &e);
  const int exponent = std::max(e - 1, 1 - bias);
  const double scaled = std::nearbyint(std::ldexp(x, mant - exponent));
  uint32_t r = static_cast<uint32_t>(scaled);
  if (std::isinf(x) || exponent > bias) return sign | static_cast<uint32_t>(top << mant);
  // The hidden bit carries into the exponent field by addition, rounding up included.
  r += static_cast<uint32_t>(exponent + bias - 1) << mant;
  if (r >= static_cast<uint32_t>(top) << mant) r = static_cast<uint32_t>(top) << mant;
  return sign | r;
}
double half_value(uint32_t h, bool bf16) {
  if (bf16) return std::bit_cast<float>(h << 16);
  const int e = h >> 10 & 31, m = h & 0x3ff;
  const double magnitude = e == 31 ? (m ? NAN : INFINITY)
                           : e == 0 ? std::ldexp(m, -24) : std::ldexp(m + 1024, e - 25);
  return h & 0x8000 ? -magnitude : magnitude;
}
uint32_t add_half(uint32_t a, uint32_t b, bool bf16, bool flush) {
  const uint32_t field = bf16 ? 0x7f80 : 0x7c00;
  const auto flushed = [&](uint32_t h) { return flush && !(h & field) ? h & 0x8000 : h & 0xffff; };
  return flushed(round_to_half(half_value(flushed(a), bf16) + half_value(flushed(b), bf16), bf16));
}

float flushed(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }
float add(float a, float b, bool flush) { return flush ? flushed(flushed(a) + flushed(b)) : a + b; }

template <class U, class S>
U integer(AtomicOp op, U old, U data, U compare) {
  switch (op) {
    case AtomicOp::swap: return data;
    case AtomicOp::cmpswap: return old == compare ? data : old;
    case AtomicOp::add: return old + data;
    case AtomicOp::sub: return old - data;
    case AtomicOp::rsub: return data - old;
    case AtomicOp::csub: return old < data ? 0 : old - data;
    case AtomicOp::smin: return static_cast<S>(old) < static_cast<S>(data) ? old : data;
    case AtomicOp::smax: return static_cast<S>(old) > static_cast<S>(data) ? old : data;
    case AtomicOp::umin: return old < data ? old : data;
    case AtomicOp::umax: return old > data ? old : data;
    case AtomicOp::band: return old & data;
    case AtomicOp::bor: return old | data;
    case AtomicOp::bxor: return old ^ data;
    case AtomicOp::inc: return old >= data ? 0 : old + 1;
    case AtomicOp::dec: return old == 0 || old > data ? data : old - 1;
    case AtomicOp::mskor: return (old & ~data) | compare;
    case AtomicOp::wrap: return old >= data ? old - data : old + compare;
    default: return old;
  }
}

}  // namespace

bool atomic_flushes(const Wave& w, AtomicOp op, bool lds) {
  if (lds) {
    if (op == AtomicOp::add_f32) return !(w.mode >> 5 & 1);
    return (op == AtomicOp::pk_add_f16 || op == AtomicOp::pk_add_bf16) && !(w.mode >> 7 & 1);
  }
  return op == AtomicOp::add_f32 && !w.gfx11 && switches().l2_add_f32_flush;
}

uint64_t atomic_result(AtomicOp op, uint32_t bytes, uint64_t old, uint64_t data, uint64_t compare,
                       bool flush) {
  switch (op) {
    case AtomicOp::add_f32: return bits(add(f32(old), f32(data), flush));
    case AtomicOp::add_f64: return bits(f64(old) + f64(data));
    case AtomicOp::min_f32: return bits(pick(f32(old), f32(data), true));
    case AtomicOp::max_f32: return bits(pick(f32(old), f32(data), false));
    case AtomicOp::min_f64: return bits(pick(f64(old), f64(data), true));
    case AtomicOp::max_f64: return bits(pick(f64(old), f64(data), false));
    case AtomicOp::fcmpswap:
      return (bytes == 4 ? f32(old) == f32(compare) : f64(old) == f64(compare)) ? data : old;
    case AtomicOp::pk_add_f16:
    case AtomicOp::pk_add_bf16: {
      const bool bf16 = op == AtomicOp::pk_add_bf16;
      const auto o = static_cast<uint32_t>(old), d = static_cast<uint32_t>(data);
      return add_half(o, d, bf16, flush) | add_half(o >> 16, d >> 16, bf16, flush) << 16;
    }
    default:
      return bytes == 4 ? integer<uint32_t, int32_t>(op, static_cast<uint32_t>(old),
                                                     static_cast<uint32_t>(data),
                                                     static_cast<uint32_t>(compare))
                        : integer<uint64_t, int64_t>(op, old, data, compare);
  }
}

}  // namespace netra
