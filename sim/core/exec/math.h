// Functions of one lane that rows share. Sources: isa_gfx950 / isa_gfx1151 ISA guides; where the
// guides and silicon are known to differ the comment says which one is followed.
#pragma once

#include "lane.h"

namespace netra::NETRA_HOST_NS {

// IEEE-754 minNum/maxNum as the VALU has it: a signalling NaN wins and is quieted (MODE.IEEE), a
// quiet NaN loses against a number, -0 < +0.
template <class F>
inline F min_num(F a, F b, bool ieee) {
  if (ieee && is_snan(a)) return quiet(a);
  if (ieee && is_snan(b)) return quiet(b);
  if (is_nan(a)) return b;
  if (is_nan(b)) return a;
  return a < b || (a == b && sign_of(a)) ? a : b;
}
template <class F>
inline F max_num(F a, F b, bool ieee) {
  if (ieee && is_snan(a)) return quiet(a);
  if (ieee && is_snan(b)) return quiet(b);
  if (is_nan(a)) return b;
  if (is_nan(b)) return a;
  return a > b || (a == b && !sign_of(a)) ? a : b;
}
// IEEE-754-2019 minimum/maximum: any NaN gives a quiet NaN.
template <class F>
inline F minimum(F a, F b) {
  if (is_nan(a)) return quiet(a);
  if (is_nan(b)) return quiet(b);
  return a < b || (a == b && sign_of(a)) ? a : b;
}
template <class F>
inline F maximum(F a, F b) {
  if (is_nan(a)) return quiet(a);
  if (is_nan(b)) return quiet(b);
  return a > b || (a == b && !sign_of(a)) ? a : b;
}
template <class F>
inline F med3(F a, F b, F c, bool ieee) {
  if (is_nan(a) || is_nan(b) || is_nan(c)) return min_num(min_num(a, b, ieee), c, ieee);
  const F m = max_num(max_num(a, b, ieee), c, ieee);
  if (m == a) return max_num(b, c, ieee);
  if (m == b) return max_num(a, c, ieee);
  return max_num(a, b, ieee);
}
template <class I>
inline I med3i(I a, I b, I c) {
  const I lo = a < b ? a : b, hi = a < b ? b : a;
  return c < lo ? lo : c > hi ? hi : c;
}

// To an integral value, ties to even, whatever MODE says.
inline float round_even(float x) {
  if (is_nan(x)) return quiet(x);
  if (std::fabs(x) >= 0x1p23f) return x;
  const float r = (std::fabs(x) + 0x1p23f) - 0x1p23f;   // nearest even while the host rounds so
  return std::copysign(r, x);
}
inline double round_even(double x) {
  if (is_nan(x)) return quiet(x);
  if (std::fabs(x) >= 0x1p52) return x;
  const double r = (std::fabs(x) + 0x1p52) - 0x1p52;
  return std::copysign(r, x);
}

// Float to integer: toward zero, saturating, NaN gives 0.
inline int32_t to_i32(double x) {
  if (is_nan(x)) return 0;
  return x <= -2147483648.0 ? INT32_MIN : x >= 2147483647.0 ? INT32_MAX : static_cast<int32_t>(x);
}
inline uint32_t to_u32(double x) {
  if (is_nan(x) || x <= 0) return 0;
  return x >= 4294967295.0 ? UINT32_MAX : static_cast<uint32_t>(x);
}
inline int16_t to_i16(float x) {
  if (is_nan(x)) return 0;
  return x <= -32768.0f ? INT16_MIN : x >= 32767.0f ? INT16_MAX : static_cast<int16_t>(x);
}
inline uint16_t to_u16(float x) {
  if (is_nan(x) || x <= 0) return 0;
  return x >= 65535.0f ? UINT16_MAX : static_cast<uint16_t>(x);
}

// The transcendental unit in f32 ignores MODE: subnormal inputs count as zero and subnormal
// results become zero. Here each function is the correctly rounded one (silicon: within 1 ulp).
inline float flush_f32(float x) {
  return f32_bits(x) & 0x7f800000 ? x : as_f32(f32_bits(x) & 0x80000000);
}
inline float trans_rcp(float x) { return flush_f32(1.0f / flush_f32(x)); }
inline float trans_sqrt(float x) { return std::sqrt(flush_f32(x)); }
inline float trans_rsq(float x) {
  // sqrt and division in f64 leave an error below 2^-52, and no f32 argument has its reciprocal
  // root that close to a rounding boundary (tests/test_sim_trans.py walks all of them).
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(flush_f32(x))));
}
inline float trans_exp2(float x) {
  if (is_nan(x)) return quiet(x);
  if (x < -126.0f) return 0.0f;
  if (x >= 128.0f) return std::numeric_limits<float>::infinity();
  return static_cast<float>(std::exp2(static_cast<double>(x)));
}
inline float trans_log2(float x) {
  x = flush_f32(x);
  if (is_nan(x)) return quiet(x);
  if (x < 0) return -std::numeric_limits<float>::quiet_NaN();
  return static_cast<float>(std::log2(static_cast<double>(x)));
}

// frexp, ldexp on bits: exact, no library call, no errno.
inline int32_t frexp_exp(float x) {
  const uint32_t a = f32_bits(x) & 0x7fffffff;
  if (a == 0 || a >= 0x7f800000) return 0;
  if (a < 0x00800000) return -117 - std::countl_zero(a);
  return static_cast<int32_t>(a >> 23) - 126;
}
inline int32_t frexp_exp(double x) {
  const uint64_t a = f64_bits(x) & ~(1ull << 63);
  if (a == 0 || a >= 0x7ff0000000000000ull) return 0;
  if (a < 0x0010000000000000ull) return -1010 - std::countl_zero(a);
  return static_cast<int32_t>(a >> 52) - 1022;
}
inline float frexp_mant(float x) {
  if (x == 0 || is_inf(x)) return x;
  if (is_nan(x)) return quiet(x);
  if ((f32_bits(x) & 0x7fffffff) < 0x00800000) x *= 0x1p24f;
  return as_f32((f32_bits(x) & 0x807fffff) | 0x3f000000);
}
inline double frexp_mant(double x) {
  if (x == 0 || is_inf(x)) return x;
  if (is_nan(x)) return quiet(x);
  if ((f64_bits(x) & ~(1ull << 63)) < 0x0010000000000000ull) x *= 0x1p54;
  return as_f64((f64_bits(x) & 0x800fffffffffffffull) | 0x3fe0000000000000ull);
}
// x * 2^e rounded once: the factors are powers of two and only the last one can round.
inline float ldexp_f32(float x, int32_t e) {
  if (is_nan(x)) return quiet(x);
  const double big = static_cast<double>(x);   // any f32 times 2^+-700 stays normal in f64
  const int32_t k = e < -700 ? -700 : e > 700 ? 700 : e;
  return static_cast<float>(big * as_f64(static_cast<uint64_t>(1023 + k) << 52));
}
inline double ldexp_f64(double x, int32_t e) { return is_nan(x) ? quiet(x) : std::scalbn(x, e); }
inline float fract(float x) {
  if (is_nan(x)) return quiet(x);
  if (is_inf(x)) return -std::numeric_limits<float>::quiet_NaN();
  const float f = x - std::floor(x);
  return f >= 1.0f ? as_f32(0x3f7fffff) : f;
}
inline double fract(double x) {
  if (is_nan(x)) return quiet(x);
  if (is_inf(x)) return -std::numeric_limits<double>::quiet_NaN();
  const double f = x - std::floor(x);
  return f >= 1.0 ? as_f64(0x3fefffffffffffffull) : f;
}

// f16 fma rounded once: the f64 product is exact; round the sum to odd, then to f16.
inline float fma_f16(float a, float b, float c) {
  const double p = static_cast<double>(a) * b, s = p + c;
  const double t = s - p, err = (p - (s - t)) + (c - t);   // two-sum: exact error
  if (is_nan(s) || is_inf(s) || err == 0) return static_cast<float>(s);
  uint64_t bits = f64_bits(s);
  if (!(bits & 1)) bits += (err > 0) == (s > 0) ? 1 : -1;   // toward the exact sum, odd
  // f32 keeps 24 bits: again to odd, so that narrowing to 11 bits rounds once.
  const double o = as_f64(bits);
  float f = static_cast<float>(o);
  if (static_cast<double>(f) != o) {
    const bool away = std::fabs(static_cast<double>(f)) > std::fabs(o);
    uint32_t fb = f32_bits(f) - (away ? 1 : 0);
    f = as_f32(fb | 1);
  }
  return f;
}

// f32 to OCP FP8: nearest even in integers. Past the largest value E4M3FN has only NaN, E5M2 has
// infinity; FP16_OVFL (saturate) gives the largest value instead. A NaN stays one.
template <int kMant, int kBias, uint32_t kMax, uint32_t kOver>
inline uint32_t f32_to_8bit(float x, bool saturate) {
  const uint32_t b = f32_bits(x), a = b & 0x7fffffff, sign = b >> 24 & 0x80;
  if (a > 0x7f800000) return sign | 0x7f;
  const int e = static_cast<int>(a >> 23) - 127;
  const int shift = 23 - kMant + (e < 1 - kBias ? 1 - kBias - e : 0);
  uint32_t r = 0;
  if (shift <= 24 && a) {
    const uint32_t m = (a & 0x7fffff) | (a >> 23 ? 0x800000 : 0);
    const uint32_t kept = m >> shift, lost = m & ((1u << shift) - 1), tie = 1u << (shift - 1);
    r = kept + (lost > tie || (lost == tie && (kept & 1)));
    if (e >= 1 - kBias) r += static_cast<uint32_t>(e + kBias - 1) << kMant;
  }
  if (a == 0x7f800000 || e > 20 || r > kMax) return sign | (saturate ? kMax : kOver);
  return sign | r;
}
inline uint32_t f32_to_fp8(float x, bool saturate) {
  return f32_to_8bit<3, 7, 0x7e, 0x7f>(x, saturate);
}
inline uint32_t f32_to_bf8(float x, bool saturate) {
  return f32_to_8bit<2, 15, 0x7b, 0x7c>(x, saturate);
}

inline uint32_t perm_byte(uint64_t data, uint32_t s) {
  if (s >= 13) return 0xff;
  if (s == 12) return 0;
  if (s >= 8) return (data >> (16 * (s - 8) + 15) & 1) ? 0xff : 0;
  return static_cast<uint32_t>(data >> (8 * s)) & 0xff;
}
inline uint32_t class_of(float x) {
  const uint32_t b = f32_bits(x), a = b & 0x7fffffff;
  const bool n = b >> 31;
  if (a > 0x7f800000) return a & 0x00400000 ? 2 : 1;
  if (a == 0x7f800000) return n ? 4 : 0x200;
  if (a == 0) return n ? 0x20 : 0x40;
  if (a < 0x00800000) return n ? 0x10 : 0x80;
  return n ? 8 : 0x100;
}
inline uint32_t class_of(double x) {
  const uint64_t b = f64_bits(x), a = b & ~(1ull << 63);
  const bool n = b >> 63;
  if (a > 0x7ff0000000000000ull) return a & 0x0008000000000000ull ? 2 : 1;
  if (a == 0x7ff0000000000000ull) return n ? 4 : 0x200;
  if (a == 0) return n ? 0x20 : 0x40;
  if (a < 0x0010000000000000ull) return n ? 0x10 : 0x80;
  return n ? 8 : 0x100;
}
inline uint32_t class_of_f16(uint32_t h) {
  const uint32_t a = h & 0x7fff;
  const bool n = h >> 15 & 1;
  if (a > 0x7c00) return a & 0x200 ? 2 : 1;
  if (a == 0x7c00) return n ? 4 : 0x200;
  if (a == 0) return n ? 0x20 : 0x40;
  if (a < 0x400) return n ? 0x10 : 0x80;
  return n ? 8 : 0x100;
}

inline uint32_t sad_u8(uint32_t a, uint32_t b, bool masked) {
  uint32_t sum = 0;
  for (int k = 0; k < 32; k += 8) {
    const int x = a >> k & 0xff, y = b >> k & 0xff;
    if (masked && y == 0) continue;
    sum += static_cast<uint32_t>(x > y ? x - y : y - x);
  }
  return sum;
}

}  // namespace netra::NETRA_HOST_NS
