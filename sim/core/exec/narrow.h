// Narrow floating-point formats in integers: a number taken apart, scaled by a power of two, and
// rounded into a format, to nearest even or stochastically. No host floating-point is involved.
#pragma once

#include "elements.h"

namespace netra::NETRA_HOST_NS {

// One binary format. `over`: the code of what is too large (an infinity, or E4M3FN's NaN); 0 where
// the format has neither and saturates. `nan` is 0 there too.
struct FloatFormat {
  int bits, mant, low;       // low: exponent of the smallest normal number
  uint32_t largest, over, nan;
};
constexpr FloatFormat format_of(Elem e) {
  switch (e) {
    case Elem::fp8: return {8, 3, -6, 0x7e, 0x7f, 0x7f};
    case Elem::bf8: return {8, 2, -14, 0x7b, 0x7c, 0x7f};
    case Elem::fp6: return {6, 3, 0, 0x1f, 0, 0};
    case Elem::bf6: return {6, 2, -2, 0x1f, 0, 0};
    case Elem::fp4: return {4, 1, 0, 7, 0, 0};
    case Elem::f16: return {16, 10, -14, 0x7bff, 0x7c00, 0x7e00};
    case Elem::bf16: return {16, 7, -126, 0x7f7f, 0x7f80, 0x7fc0};
    default: return {32, 23, -126, 0x7f7fffff, 0x7f800000, 0x7fc00000};
  }
}

// magnitude = mantissa * 2^exponent; every source format fits into 24 bits.
struct Number {
  enum Kind : uint8_t { finite, infinite, nan } kind = finite;
  bool sign = false;
  uint32_t mantissa = 0;
  int exponent = 0;
};

inline Number taken_apart(float x) {
  const uint32_t b = f32_bits(x), field = b >> 23 & 0xff, fraction = b & 0x7fffff;
  Number n;
  n.sign = b >> 31;
  if (field == 0xff) {
    n.kind = fraction ? Number::nan : Number::infinite;
    n.mantissa = fraction;   // the payload
    return n;
  }
  n.mantissa = field ? fraction | 0x800000 : fraction;
  n.exponent = (field ? static_cast<int>(field) : 1) - 150;
  return n;
}

enum class RoundingRule : uint8_t { nearest, stochastic };

// The quotient m * 2^-shift as an integer. Stochastic: a fraction of `width` bits, cut off, plus the
// topmost `width` bits of the random number carries or does not.
inline uint32_t rounded(uint32_t m, int shift, RoundingRule how, uint32_t random, int width) {
  if (shift <= 0) return m << -shift;
  if (how == RoundingRule::stochastic) {
    const uint64_t wide = static_cast<uint64_t>(m) << width;
    const uint64_t kept = shift < 64 ? wide >> shift : 0;
    return static_cast<uint32_t>((kept + (random >> (32 - width))) >> width);
  }
  if (shift > 25) return 0;   // less than half of the last place
  const uint32_t kept = m >> shift, lost = m & ((1u << shift) - 1), tie = 1u << (shift - 1);
  return kept + (lost > tie || (lost == tie && (kept & 1)));
}

// The code of a number. `saturate` is FP16_OVFL: what overflows becomes the largest number; in the
// 8-bit formats an infinity does too, in f16 and bf16 it stays one. FP6 and FP4, which have neither
// infinity nor NaN, always saturate, and give their largest code for a NaN.
inline uint32_t encoded(Elem e, const Number& n, bool saturate, RoundingRule how, uint32_t random) {
  const FloatFormat f = format_of(e);
  const uint32_t sign = static_cast<uint32_t>(n.sign) << (f.bits - 1);
  if (n.kind == Number::nan) {
    if (!f.nan) return sign | f.largest;
    // The wide formats keep what fits of the payload, and the quiet bit.
    return sign | f.nan | (f.bits > 8 ? n.mantissa >> (23 - f.mant) : 0);
  }
  const uint32_t over = !f.over || (saturate && f.bits < 32) ? f.largest : f.over;
  if (n.kind == Number::infinite) return sign | (f.bits > 8 ? f.over : over);
  if (n.mantissa == 0) return sign;
  const int high = n.exponent + 31 - std::countl_zero(n.mantissa);   // of the leading bit
  if (high > 200) return sign | over;
  const int top = high > f.low ? high : f.low;
  const uint32_t units = rounded(n.mantissa, top - f.mant - n.exponent, how, random, 23 - f.mant);
  // `units` has the hidden bit of a normal number, which adds 1 to the exponent field.
  const uint32_t code = (static_cast<uint32_t>(top - f.low) << f.mant) + units;
  return sign | (code > f.largest ? over : code);
}

// The next state of the generator behind packed stochastic conversions (v_prng_b32).
constexpr uint32_t next_random(uint32_t x) { return x << 1 ^ (x >> 31 ? 197u : 0u); }

}  // namespace netra::NETRA_HOST_NS
