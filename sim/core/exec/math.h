// Functions of one lane that rows share. Sources: isa_gfx950 / isa_gfx1151 ISA guides; where the
// guides and silicon are known to differ the comment says which one is followed.
#pragma once

#include "../switches.h"
#include "lane.h"
#include "soft.h"

namespace netra::NETRA_HOST_NS {

// IEEE-754 minNum/maxNum as the VALU has it: with MODE.IEEE a signalling NaN wins and is quieted, a
// quiet NaN loses against a number, -0 < +0. Of two quiet NaNs gfx9 returns the second source and
// gfx11 the first.
template <class F>
inline F min_num(F a, F b, const Wave& w) {
  const bool ieee = w.mode & kModeIeee;
  if (ieee && is_snan(a)) return quiet(a);
  if (ieee && is_snan(b)) return quiet(b);
  if (is_nan(a)) return w.gfx11 && is_nan(b) ? a : b;
  if (is_nan(b)) return a;
  return a < b || (a == b && sign_of(a)) ? a : b;
}
template <class F>
inline F max_num(F a, F b, const Wave& w) {
  const bool ieee = w.mode & kModeIeee;
  if (ieee && is_snan(a)) return quiet(a);
  if (ieee && is_snan(b)) return quiet(b);
  if (is_nan(a)) return w.gfx11 && is_nan(b) ? a : b;
  if (is_nan(b)) return a;
  return a > b || (a == b && !sign_of(a)) ? a : b;
}
// IEEE-754-2019 minimum/maximum of three: any NaN gives a quiet NaN (switch minimum3_dx10: or zero).
template <class F>
[[gnu::cold, gnu::noinline]] F nan_of_three(F a, F b, F c, const Wave& w) {
  if (switches().minimum3_dx10_zero && (w.mode & kModeDx10Clamp)) return F{0};
  return quiet(is_nan(a) ? a : is_nan(b) ? b : c);
}
template <class F>
inline F minimum3(F a, F b, F c, const Wave& w) {
  if (is_nan(a) || is_nan(b) || is_nan(c)) return nan_of_three(a, b, c, w);
  return min_num(min_num(a, b, w), c, w);
}
template <class F>
inline F maximum3(F a, F b, F c, const Wave& w) {
  if (is_nan(a) || is_nan(b) || is_nan(c)) return nan_of_three(a, b, c, w);
  return max_num(max_num(a, b, w), c, w);
}
template <class F>
inline F med3(F a, F b, F c, const Wave& w) {
  if (is_nan(a) || is_nan(b) || is_nan(c)) return min_num(min_num(a, b, w), c, w);
  const F m = max_num(max_num(a, b, w), c, w);
  if (m == a) return max_num(b, c, w);
  if (m == b) return max_num(a, c, w);
  return max_num(a, b, w);
}
template <class I>
inline I least(I a, I b) { return a < b ? a : b; }
template <class I>
inline I most(I a, I b) { return a < b ? b : a; }
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

// What an invalid operation gives.
inline constexpr float kInvalid = -std::numeric_limits<float>::quiet_NaN();
// A compiler without an instruction for these adds and subtracts, and a zero rounded down is then -0:
// the sign is always that of x.
template <class F>
inline F floor_of(F x) { return std::copysign(std::floor(x), x); }
template <class F>
inline F ceil_of(F x) { return std::copysign(std::ceil(x), x); }
template <class F>
inline F trunc_of(F x) { return std::copysign(std::trunc(x), x); }

template <class F>
inline F quieted(F x) { return is_nan(x) ? quiet(x) : x; }

// An f64 that f32 is to round once, where f64 itself was rounded: near a boundary between two f32,
// `exact` evaluates again in long double. With it exp2 and log2 are correctly rounded (walked over
// every f32; two arguments of exp2 need it).
template <class Exact>
inline float round_once(double d, const Exact& exact) {
  const int64_t from_tie = static_cast<int64_t>(f64_bits(d) & 0x1fffffff) - 0x10000000;
  if (from_tie > 4 || from_tie < -4) [[likely]] return static_cast<float>(d);
  return static_cast<float>(exact());
}

// The transcendental unit in f32 ignores MODE: subnormal inputs count as zero and subnormal
// results become zero. Here each function is the correctly rounded one (silicon: within 1 ulp).
inline float flush_f32(float x) {
  return f32_bits(x) & 0x7f800000 ? x : as_f32(f32_bits(x) & 0x80000000);
}
inline float trans_rcp(float x) { return flush_f32(1.0f / flush_f32(x)); }
inline float trans_sqrt(float x) {
  x = flush_f32(x);
  return x < 0 ? kInvalid : std::sqrt(x);
}
inline float trans_rsq(float x) {
  // sqrt and division in f64 leave an error below 2^-52, and no f32 argument has its reciprocal
  // root that close to a rounding boundary (walked over all mantissas).
  x = flush_f32(x);
  return x < 0 ? kInvalid : static_cast<float>(1.0 / std::sqrt(static_cast<double>(x)));
}
inline float trans_exp2(float x) {
  if (is_nan(x)) return quiet(x);
  if (std::fabs(x) < 0x1p-24f) return 1.0f;   // as silicon has it
  if (x < -126.0f) return 0.0f;
  if (x >= 128.0f) return std::numeric_limits<float>::infinity();
  return round_once(std::exp2(static_cast<double>(x)),
                    [x] { return std::exp2(static_cast<long double>(x)); });
}
inline float trans_log2(float x) {
  x = flush_f32(x);
  if (is_nan(x)) return quiet(x);
  if (x < 0) return kInvalid;
  return round_once(std::log2(static_cast<double>(x)),
                    [x] { return std::log2(static_cast<long double>(x)); });
}
// sin and cos of x turns, reduced exactly: r in [-1/2, 1/2], then the nearest quarter turn.
inline double quarter_turns(double x, int* quarter) {
  const double r = x - round_even(x), q = round_even(4 * r);
  *quarter = is_nan(q) ? 0 : static_cast<int>(q) & 3;
  return 6.283185307179586476925 * (r - q * 0.25);
}
inline double sin_turns(double x) {
  int quarter;
  const double a = quarter_turns(x, &quarter), y = quarter & 1 ? std::cos(a) : std::sin(a);
  return y == 0 ? 0.0 : quarter & 2 ? -y : y;
}
inline double cos_turns(double x) {
  int quarter;
  const double a = quarter_turns(x, &quarter), y = quarter & 1 ? std::sin(a) : std::cos(a);
  return y == 0 ? 0.0 : quarter == 1 || quarter == 2 ? -y : y;
}
inline float trans_sin(float x) {
  x = flush_f32(x);
  if (is_nan(x)) return quiet(x);
  if (is_inf(x)) return kInvalid;
  return x == 0 ? x : flush_f32(static_cast<float>(sin_turns(x)));
}
inline float trans_cos(float x) {
  x = flush_f32(x);
  if (is_nan(x)) return quiet(x);
  if (is_inf(x)) return kInvalid;
  return flush_f32(static_cast<float>(cos_turns(x)));
}
// The f64 forms are seeds for a refinement on silicon; here they are correctly rounded.
inline double seed_rcp(double x) { return is_nan(x) ? quiet(x) : 1.0 / x; }
inline double seed_sqrt(double x) { return is_nan(x) ? quiet(x) : x < 0 ? double{kInvalid} : std::sqrt(x); }
inline double seed_rsq(double x) {
  return is_nan(x) ? quiet(x) : x < 0 ? double{kInvalid} : 1.0 / std::sqrt(x);
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
  const float f = x - floor_of(x);
  return f == 0 ? 0.0f : f >= 1.0f ? as_f32(0x3f7fffff) : f;
}
inline double fract(double x) {
  if (is_nan(x)) return quiet(x);
  if (is_inf(x)) return -std::numeric_limits<double>::quiet_NaN();
  const double f = x - floor_of(x);
  return f == 0 ? 0.0 : f >= 1.0 ? as_f64(0x3fefffffffffffffull) : f;
}

// An f64 to f32 rounded to odd, so that narrowing to 11 bits afterwards rounds once.
inline float odd_f32(double x) {
  const float f = static_cast<float>(x);
  if (is_nan(x) || static_cast<double>(f) == x) return f;
  const bool away = std::fabs(static_cast<double>(f)) > std::fabs(x);
  return as_f32((f32_bits(f) - (away ? 1 : 0)) | 1);
}
// f16 fma rounded once. The f64 product is exact; a directed rounding of the sum, and of its
// narrowing, is one directed rounding, but nearest needs the sum rounded to odd.
inline float fma_f16(float a, float b, float c, const Wave& w) {
  const double p = static_cast<double>(a) * b, s = p + c;
  if (round_mode(w.mode, Type::f16)) return static_cast<float>(s);
  const double t = s - p, err = (p - (s - t)) + (c - t);   // two-sum: exact error
  if (is_nan(s) || is_inf(s) || err == 0) return odd_f32(s);
  uint64_t bits = f64_bits(s);
  if (!(bits & 1)) bits += (err > 0) == (s > 0) ? 1 : ~0ull;   // toward the exact sum, odd
  return odd_f32(as_f64(bits));
}
// gfx9's mad: the product is rounded to f16 before the addition.
inline float mad_f16(float a, float b, float c, const Wave& w) {
  const uint32_t m = w.mode;
  const uint32_t p = f16_rounded(a * b, round_mode(m, Type::f16), !(denorm_mode(m, Type::f16) & 2), m & kModeFp16Ovfl);
  return f16_to_f32(p) + c;
}
inline float fract_f16(float x) {
  if (is_nan(x)) return quiet(x);
  if (is_inf(x)) return kInvalid;
  const float f = x - floor_of(x);
  return f == 0 ? 0.0f : f > 0x1.ffcp-1f ? 0x1.ffcp-1f : f;   // the largest f16 below 1
}
inline float ldexp_f16(float x, int e) {
  if (is_nan(x)) return quiet(x);
  const int k = e < -100 ? -100 : e > 80 ? 80 : e;   // every f16 times 2^k is a normal f32
  return x * as_f32(static_cast<uint32_t>(127 + k) << 23);
}
inline uint32_t pack(uint32_t lo, uint32_t hi) { return (lo & 0xffff) | hi << 16; }
// Toward zero whatever MODE says: what overflows becomes the largest number.
inline uint32_t pack_rtz(float a, float b, const Wave& w) {
  const bool flush = !(denorm_mode(w.mode, Type::f16) & 2);
  return pack(f16_rounded(a, 3, flush, false), f16_rounded(b, 3, flush, false));
}

// DX9 multiplication: 0 times anything is +0, and subnormals count as zero whatever MODE says.
inline float dx9_flush(float r, double exact) {
  return std::fabs(exact) < 0x1.ffffffp-127 ? as_f32(f32_bits(r) & 0x80000000) : r;
}
inline float dx9_mul(float a, float b) {
  a = flush_f32(a), b = flush_f32(b);
  return a == 0 || b == 0 ? 0.0f : dx9_flush(a * b, static_cast<double>(a) * b);
}
inline float dx9_fma(float a, float b, float c) {
  a = flush_f32(a), b = flush_f32(b), c = flush_f32(c);
  if (a == 0 || b == 0) return 0.0f + c;
  return dx9_flush(fma1(a, b, c), static_cast<double>(a) * b + c);
}
inline float mullit(float a, float b, float c) {
  constexpr float kLowest = -std::numeric_limits<float>::max();
  if (is_nan(b) || b <= kLowest || is_nan(c) || c <= 0) return kLowest;
  return a == 0 || b == 0 ? 0.0f : a * b;
}

// Cube maps: the face, the coordinates on it, and the major axis.
inline int cube_face(float x, float y, float z) {
  const float ax = std::fabs(x), ay = std::fabs(y), az = std::fabs(z);
  return az >= ax && az >= ay ? (z < 0 ? 5 : 4) : ay >= ax ? (y < 0 ? 3 : 2) : x < 0 ? 1 : 0;
}
inline float cube_sc(float x, float y, float z) {
  switch (cube_face(x, y, z)) {
    case 5: return -x;
    case 1: return z;
    case 0: return -z;
    default: return x;
  }
}
inline float cube_tc(float x, float y, float z) {
  const int face = cube_face(x, y, z);
  return face == 3 ? -z : face == 2 ? z : -y;
}
inline float cube_major(float x, float y, float z) {
  const int face = cube_face(x, y, z);
  return face >= 4 ? z : face >= 2 ? y : x;
}

// Division helpers: what silicon does (the guides' text differs). T, K and P are the distance of
// exponents that calls for scaling, the scaling, and the precision.
template <class F>
struct Division;
template <>
struct Division<float> {
  static constexpr int T = 96, K = 64, kBias = 127, P = 24, kFar = -150;
  static int exponent(float x) { return static_cast<int>(f32_bits(x) >> 23 & 0xff); }
  static float scaled(float x, int k) {
    return static_cast<float>(static_cast<double>(x) * as_f64(static_cast<uint64_t>(1023 + k) << 52));
  }
};
template <>
struct Division<double> {
  static constexpr int T = 768, K = 128, kBias = 1023, P = 53, kFar = -1075;
  static int exponent(double x) { return static_cast<int>(f64_bits(x) >> 52 & 0x7ff); }
  static double scaled(double x, int k) { return x * as_f64(static_cast<uint64_t>(1023 + k) << 52); }
};
// v is n or d. post: the quotient needs scaling afterwards.
template <class F>
inline F div_scale(F v, F d, F n, bool* post) {
  using X = Division<F>;
  const int en = X::exponent(n), ed = X::exponent(d), delta = en - ed;
  const bool is_den = std::memcmp(&v, &d, sizeof v) == 0;
  int adj = 0;
  *post = false;
  if (delta >= X::T) {
    *post = true, adj = is_den ? X::K : 0;
  } else if (ed == 0) {
    adj = X::K;
  } else if (ed >= 2 * X::kBias - 1) {
    *post = delta <= -X::T, adj = *post && !is_den ? 0 : -X::K;
  } else if (delta <= -X::T) {
    *post = true, adj = is_den ? 0 : X::K;
  } else if (en <= X::P) {
    adj = X::K;
  }
  if (d == 0 || n == 0) return -std::numeric_limits<F>::quiet_NaN();
  return is_nan(v) ? quiet(v) : is_inf(v) ? v : X::scaled(v, adj);
}
inline Rounding rounding_of(const Wave& w, Type t) {
  return {round_mode(w.mode, t), !(denorm_mode(w.mode, t) & 2), false};
}
inline float div_fmas(float a, float b, float c, bool post, const Wave& w) {
  if (!post) return fma1(a, b, c);
  const int k = Division<float>::exponent(c) > 127 ? 64 : -64;
  return static_cast<float>(fma_soft(a, b, c, k, kF32, rounding_of(w, Type::f32)));
}
inline double div_fmas(double a, double b, double c, bool post, const Wave& w) {
  if (!post) return fma1(a, b, c);
  const int k = Division<double>::exponent(c) > 1023 ? 128 : -128;
  return fma_soft(a, b, c, k, kF64, rounding_of(w, Type::f64));
}
template <class F>
inline F div_fixup(F q, F d, F n, const Wave& w) {
  using X = Division<F>;
  using L = std::numeric_limits<F>;
  if (is_nan(n)) return quiet(n);
  if (is_nan(d)) return quiet(d);
  if ((n == 0 && d == 0) || (is_inf(n) && is_inf(d))) return -L::quiet_NaN();
  const bool negative = sign_of(n) != sign_of(d);
  const F sign = negative ? F{-1} : F{1};
  if (d == 0 || is_inf(n)) return sign * L::infinity();
  if (n == 0 || is_inf(d)) return std::copysign(F{0}, sign);
  const Rounding r = rounding_of(w, sizeof(F) == 4 ? Type::f32 : Type::f64);
  const bool away = (r.round == 1 && !negative) || (r.round == 2 && negative);
  if (X::exponent(n) - X::exponent(d) < X::kFar)   // underflows by far
    return std::copysign(away && !r.flush ? L::denorm_min() : F{0}, sign);
  if (is_nan(q) || is_inf(q)) return std::copysign(r.round == 0 || away ? L::infinity() : L::max(), sign);
  return std::copysign(q, sign);
}
inline float div_fixup_f16(float q, float d, float n) {
  if (is_nan(n)) return quiet(n);
  if (is_nan(d)) return quiet(d);
  if ((n == 0 && d == 0) || (is_inf(n) && is_inf(d))) return kInvalid;
  const float sign = sign_of(n) != sign_of(d) ? -1.0f : 1.0f;
  if (d == 0 || is_inf(n)) return sign * std::numeric_limits<float>::infinity();
  if (n == 0 || is_inf(d)) return std::copysign(0.0f, sign);
  return std::copysign(q, sign);
}

// 53 bits of 2/pi from bit 53 * part on, further for a large x; for the Payne-Hanek reduction of x.
inline double trig_preop(double x, uint32_t part) {
  static constexpr uint64_t kTwoOverPi[19] = {
      0xa2f9836e4e441529ull, 0xfc2757d1f534ddc0ull, 0xdb6295993c439041ull, 0xfe5163abdebbc561ull,
      0xb7246e3a424dd2e0ull, 0x06492eea09d1921cull, 0xfe1deb1cb129a73eull, 0xe88235f52ebb4484ull,
      0xe99c7026b45f7e41ull, 0x3991d639835339f4ull, 0x9c845f8bbdf9283bull, 0x1ff897ffde05980full,
      0xef2f118b5a0a6d1full, 0x6d367ecf27cb09b7ull, 0x4f463f669e5fea2dull, 0x7527bac7ebe5f17bull,
      0x3d0739f78a5292eaull, 0x6bfb5fb11f8d5d08ull, 0x56033046fc7b6babull};
  const int e = static_cast<int>(f64_bits(x) >> 52 & 0x7ff);
  const int skip = static_cast<int>(53 * part) + (e > 1077 ? e - 1077 : 0);
  uint64_t bits = 0;
  for (int k = 0; k < 53; ++k) {
    const int at = skip + k;   // past the 1201 bits that the unit holds there are zeros
    bits = bits << 1 | (at < 1201 ? kTwoOverPi[at / 64] >> (63 - at % 64) & 1 : 0);
  }
  const int scale = -53 - skip + (e >= 1968 ? 128 : 0);
  return std::scalbn(static_cast<double>(bits), scale);
}

template <class T>
inline typename T::value saturate(int64_t x) {
  using V = typename T::value;
  constexpr int64_t lo = std::numeric_limits<V>::min(), hi = std::numeric_limits<V>::max();
  return static_cast<V>(x < lo ? lo : x > hi ? hi : x);
}
inline uint32_t sat_u8(int32_t x) { return static_cast<uint32_t>(x < 0 ? 0 : x > 255 ? 255 : x); }
inline int32_t sat_i8(int32_t x) { return x < -128 ? -128 : x > 127 ? 127 : x; }
inline int32_t wrap(int64_t x) { return static_cast<int32_t>(static_cast<uint32_t>(x)); }
inline int32_t sx24(int32_t x) { return static_cast<int32_t>(static_cast<uint32_t>(x) << 8) >> 8; }
inline uint32_t find_low(uint32_t x) { return x ? static_cast<uint32_t>(std::countr_zero(x)) : ~0u; }
inline uint32_t find_high(uint32_t x) { return x ? static_cast<uint32_t>(std::countl_zero(x)) : ~0u; }
inline uint32_t reverse_bits(uint32_t x) {
  x = (x >> 1 & 0x55555555) | (x & 0x55555555) << 1;
  x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
  x = (x >> 4 & 0x0f0f0f0f) | (x & 0x0f0f0f0f) << 4;
  return __builtin_bswap32(x);
}
inline int32_t bfe_i32(int32_t x, uint32_t offset, uint32_t width) {
  if (width == 0) return 0;
  return static_cast<int32_t>(static_cast<uint32_t>(x >> offset) << (32 - width)) >> (32 - width);
}
inline uint32_t align(uint32_t hi, uint32_t lo, uint32_t shift) {
  return static_cast<uint32_t>((static_cast<uint64_t>(hi) << 32 | lo) >> shift);
}
inline uint32_t lerp_u8(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t r = 0;
  for (int k = 0; k < 32; k += 8)
    r |= ((a >> k & 0xff) + (b >> k & 0xff) + (c >> k & 1)) >> 1 << k;
  return r;
}
// A table of eight bits, indexed by a bit of each source.
inline uint32_t bitop3(uint32_t a, uint32_t b, uint32_t c, uint32_t table) {
  uint32_t r = 0;
  for (uint32_t k = 0; k < 8; ++k)
    r |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c) & (0u - (table >> k & 1));
  return r;
}
// A float to a byte: toward zero, saturating (the guides leave the rounding open).
inline uint32_t to_u8(float x) { return is_nan(x) || x <= 0 ? 0 : x >= 255 ? 255 : static_cast<uint32_t>(x); }
inline uint32_t with_byte(uint32_t word, uint32_t byte, uint32_t value) {
  return (word & ~(0xffu << (8 * byte))) | value << (8 * byte);
}
// Normalised integers: nearest even of the clamped value, NaN gives 0.
inline int16_t norm_i16(double x) {
  return is_nan(x) ? int16_t{0} : static_cast<int16_t>(round_even((x < -1 ? -1 : x > 1 ? 1 : x) * 32767.0));
}
inline uint16_t norm_u16(double x) {
  return is_nan(x) ? uint16_t{0} : static_cast<uint16_t>(round_even((x < 0 ? 0 : x > 1 ? 1 : x) * 65535.0));
}
// floor(x + 1/2) and floor(x), saturating; NaN gives 0 (as the guides have it).
inline int32_t nearest_i32(double x) { return to_i32(std::floor(x + 0.5)); }
inline int32_t floor_i32(double x) { return to_i32(std::floor(x)); }

// Dot products of packed integers; each at most 34 bits, so that W is exact.
inline int64_t dot2_i16(uint32_t a, uint32_t b) {
  return static_cast<int64_t>(static_cast<int16_t>(a)) * static_cast<int16_t>(b) +
         static_cast<int64_t>(static_cast<int32_t>(a) >> 16) * (static_cast<int32_t>(b) >> 16);
}
template <int kBits>
inline int64_t dot(uint32_t a, uint32_t b, bool signed_a, bool signed_b) {
  int64_t sum = 0;
  for (int k = 0; k < 32; k += kBits) {
    const uint32_t top_a = a << (32 - kBits - k), top_b = b << (32 - kBits - k);
    const int64_t x = signed_a ? static_cast<int32_t>(top_a) >> (32 - kBits) : static_cast<int64_t>(top_a >> (32 - kBits));
    const int64_t y = signed_b ? static_cast<int32_t>(top_b) >> (32 - kBits) : static_cast<int64_t>(top_b >> (32 - kBits));
    sum += x * y;
  }
  return sum;
}
inline int64_t dot4(uint32_t a, uint32_t b, bool signed_a, bool signed_b) { return dot<8>(a, b, signed_a, signed_b); }
inline int64_t dot8(uint32_t a, uint32_t b, bool signed_a, bool signed_b) { return dot<4>(a, b, signed_a, signed_b); }

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

inline uint32_t distance(uint32_t a, uint32_t b) { return a > b ? a - b : b - a; }
// Four sums over a window of four bytes that moves along S0, each added to a 16-bit part of S2.
inline uint64_t qsad(uint64_t a, uint32_t b, uint64_t c, bool masked, bool clamp) {
  uint64_t r = 0;
  for (int k = 0; k < 4; ++k) {
    const uint32_t sum = sad_u8(static_cast<uint32_t>(a >> (8 * k)), b, masked) + static_cast<uint32_t>(c >> (16 * k) & 0xffff);
    r |= static_cast<uint64_t>(clamp && sum > 0xffff ? 0xffff : sum & 0xffff) << (16 * k);
  }
  return r;
}

}  // namespace netra::NETRA_HOST_NS
