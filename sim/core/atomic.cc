// The arithmetic of atomics (ISA guides, "Memory atomics"): what memory holds afterwards.
#include <algorithm>
#include <cmath>

#include "memory_access.h"
#include "switches.h"

namespace netra {
namespace {

// A binary format as an integer of its own width.
struct Format {
  int bits, mantissa;
  uint64_t sign() const { return 1ull << (bits - 1); }
  uint64_t fraction() const { return (1ull << mantissa) - 1; }
  uint64_t infinity() const { return (sign() - 1) & ~fraction(); }
  bool nan(uint64_t x) const { return (x & ~sign()) > infinity(); }
  bool denormal(uint64_t x) const { return !(x & infinity()) && (x & fraction()); }
  uint64_t quiet(uint64_t x) const { return x | 1ull << (mantissa - 1); }
  bool signalling(uint64_t x) const { return nan(x) && x != quiet(x); }
  uint64_t flushed(uint64_t x, bool keep) const { return !keep && denormal(x) ? x & sign() : x; }
  // The order of the number line, -0 below +0, as unsigned integers.
  uint64_t key(uint64_t x) const { return x & sign() ? ~x & (sign() | (sign() - 1)) : x | sign(); }
};
constexpr Format kF16{16, 10}, kBf16{16, 7}, kF32{32, 23}, kF64{64, 52};

// A number beats a quiet NaN, and a signalling NaN comes out quieted. Denormals are flushed for the
// comparison only: what comes out is an operand.
uint64_t pick(const Format& f, uint64_t old, uint64_t data, bool less, bool keep) {
  for (const uint64_t x : {old, data})
    if (f.signalling(x)) return f.quiet(x);
  if (f.nan(old)) return f.nan(data) ? old : data;
  if (f.nan(data)) return old;
  const uint64_t a = f.key(f.flushed(old, keep)), b = f.key(f.flushed(data, keep));
  return (less ? b < a : b > a) ? data : old;
}
bool equal(const Format& f, uint64_t a, uint64_t b) {
  return !f.nan(a) && !f.nan(b) && (a == b || !((a | b) & ~f.sign()));
}

double f16_value(uint64_t h) {
  const int e = h >> 10 & 31, m = h & 0x3ff;
  const double magnitude = e == 31 ? INFINITY : e ? std::ldexp(m + 1024, e - 25) : std::ldexp(m, -24);
  return h & 0x8000 ? -magnitude : magnitude;
}
// To nearest even. The sum of two f16 is exact in double. That of two bf16 is, or lies so close to
// one of them that it rounds to it.
uint64_t round_half(const Format& f, double x) {
  const uint64_t sign = std::signbit(x) ? f.sign() : 0;
  const int bias = (1 << (f.bits - f.mantissa - 2)) - 1;
  x = std::fabs(x);
  if (x == 0) return sign;
  if (std::isinf(x)) return sign | f.infinity();
  const int exponent = std::max(std::ilogb(x), 1 - bias);
  if (exponent > bias) return sign | f.infinity();
  // The hidden bit carries into the exponent field by addition, rounding up included.
  const auto r = static_cast<uint64_t>(std::nearbyint(std::ldexp(x, f.mantissa - exponent))) +
                 (static_cast<uint64_t>(exponent + bias - 1) << f.mantissa);
  return sign | std::min(r, f.infinity());
}

// A NaN operand comes out quieted, memory's first; infinities that cancel give the positive NaN.
uint64_t add(const Format& f, uint64_t old, uint64_t data, uint32_t denorms) {
  const uint64_t a = f.flushed(old, denorms & 1), b = f.flushed(data, denorms & 1);
  if (f.nan(a)) return f.quiet(a);
  if (f.nan(b)) return f.quiet(b);
  if ((a & ~f.sign()) == f.infinity() && (a ^ b) == f.sign()) return f.quiet(f.infinity());
  uint64_t sum;
  if (f.bits == 64) {
    sum = std::bit_cast<uint64_t>(std::bit_cast<double>(a) + std::bit_cast<double>(b));
  } else if (f.bits == 32) {
    sum = std::bit_cast<uint32_t>(std::bit_cast<float>(static_cast<uint32_t>(a)) +
                                  std::bit_cast<float>(static_cast<uint32_t>(b)));
  } else if (f.mantissa == 10) {
    sum = round_half(f, f16_value(a) + f16_value(b));
  } else {
    const auto wide = [](uint64_t h) -> double { return std::bit_cast<float>(static_cast<uint32_t>(h << 16)); };
    sum = round_half(f, wide(a) + wide(b));
  }
  return f.flushed(sum, denorms & 2);
}
uint64_t add_halves(const Format& f, uint64_t old, uint64_t data, uint32_t denorms) {
  return add(f, old & 0xffff, data & 0xffff, denorms) |
         add(f, old >> 16 & 0xffff, data >> 16 & 0xffff, denorms) << 16;
}

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

uint32_t atomic_denorms(const Wave& w, AtomicOp op, bool lds) {
  if (!lds) return op == AtomicOp::add_f32 && !w.gfx11 && switches().l2_add_f32_flush ? 0 : kKeepDenorms;
  // add_f64 keeps them always; f16 and f64 share one field of MODE.
  switch (op) {
    case AtomicOp::add_f64: return kKeepDenorms;
    case AtomicOp::pk_add_f16: case AtomicOp::pk_add_bf16: case AtomicOp::min_f64:
    case AtomicOp::max_f64: case AtomicOp::fcmpswap_f64: return w.mode >> 6 & 3;
    default: return w.mode >> 4 & 3;
  }
}

uint64_t atomic_result(AtomicOp op, uint32_t bytes, uint64_t old, uint64_t data, uint64_t compare,
                       uint32_t denorms) {
  const bool keep = denorms & 1;
  switch (op) {
    case AtomicOp::add_f32: return add(kF32, old, data, denorms);
    case AtomicOp::add_f64: return add(kF64, old, data, denorms);
    case AtomicOp::min_f32: return pick(kF32, old, data, true, keep);
    case AtomicOp::max_f32: return pick(kF32, old, data, false, keep);
    case AtomicOp::min_f64: return pick(kF64, old, data, true, keep);
    case AtomicOp::max_f64: return pick(kF64, old, data, false, keep);
    case AtomicOp::pk_add_f16: return add_halves(kF16, old, data, denorms);
    case AtomicOp::pk_add_bf16: return add_halves(kBf16, old, data, denorms);
    case AtomicOp::fcmpswap: case AtomicOp::fcmpswap_f64: {
      const Format& f = op == AtomicOp::fcmpswap ? kF32 : kF64;
      return equal(f, f.flushed(old, keep), f.flushed(compare, keep)) ? f.flushed(data, denorms & 2) : old;
    }
    default:
      return bytes == 4 ? integer<uint32_t, int32_t>(op, static_cast<uint32_t>(old),
                                                     static_cast<uint32_t>(data),
                                                     static_cast<uint32_t>(compare))
                        : integer<uint64_t, int64_t>(op, old, data, compare);
  }
}

}  // namespace netra
