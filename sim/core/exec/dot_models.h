// The adders of matrix_model.h for one output element: c + sum of a[k] * b[k].
//
// fma_chain lives in the matrix drivers, where it runs over many elements at once.
#pragma once

#include <algorithm>
#include <cstring>

#include "../matrix_model.h"
#include "elements.h"

namespace netra::NETRA_HOST_NS {

inline constexpr float kDefaultNan = -std::numeric_limits<float>::quiet_NaN();

// A float as sign, integer significand and exponent of its last bit: (-1)^s * m * 2^e.
struct Term {
  bool negative;
  uint32_t m;
  int e;        // of the unit in the last place
  int field;    // exponent of the leading-bit position of its format field: max(field, 1) - bias
};
inline Term term_of(float x) {
  const uint32_t b = f32_bits(x), field = b >> 23 & 0xff;
  const int e = static_cast<int>(field ? field : 1) - 127;
  return {static_cast<bool>(b >> 31), (b & 0x7fffff) | (field ? 0x800000 : 0), e - 23, e};
}
inline int lead_of(uint64_t m, int e) { return m ? e + 63 - std::countl_zero(m) : INT32_MIN / 2; }

// A signed integer of arbitrary precision on a fixed grid: 2^-320 to 2^320 is enough for any sum of
// products of f32-representable factors that matrix instructions take (f32 itself included).
class WideSum {
 public:
  // value += (-1)^negative * m * 2^e
  void add(bool negative, uint64_t m, int e) {
    const int at = e + kBias;
    if (at < 0 || m == 0) return;   // below 2^-kBias: no product of finite factors is
    const int limb = at / 32, shift = at % 32;
    const unsigned __int128 x = static_cast<unsigned __int128>(m) << shift;
    for (int k = 0; k < 4 && limb + k < kLimbs; ++k) {
      const int64_t part = static_cast<int64_t>(static_cast<uint32_t>(x >> (32 * k)));
      limb_[limb + k] += negative ? -part : part;
    }
  }
  // Round to nearest even f32. `any_negative_zero` is not tracked: an exact zero is +0.
  float round() {
    for (int k = 0; k + 1 < kLimbs; ++k) {
      const int64_t carry = limb_[k] >> 32;
      limb_[k + 1] += carry;
      limb_[k] -= carry * (1ll << 32);
    }
    const bool negative = limb_[kLimbs - 1] < 0;
    if (negative) {
      int64_t carry = 1;
      for (int k = 0; k < kLimbs; ++k) {
        const int64_t x = (k + 1 < kLimbs ? ~limb_[k] & 0xffffffff : ~limb_[k]) + carry;
        carry = k + 1 < kLimbs ? x >> 32 : 0;
        limb_[k] = k + 1 < kLimbs ? x & 0xffffffff : x;
      }
    }
    int top = kLimbs - 1;
    while (top >= 0 && limb_[top] == 0) --top;
    if (top < 0) return 0.0f;
    const int lead = 32 * top + 63 - std::countl_zero(static_cast<uint64_t>(limb_[top]));
    // 24 bits, or fewer at the bottom of f32's range.
    const int last = std::max(lead - 23, kBias - 149);
    uint64_t kept = 0;
    for (int b = lead; b >= last; --b) kept = kept << 1 | bit(b);
    const bool half = last > 0 && bit(last - 1);
    bool sticky = false;
    for (int b = 0; b < last - 1 && !sticky; ++b) sticky = bit(b);
    if (half && (sticky || (kept & 1))) ++kept;
    const double magnitude = static_cast<double>(kept) * std::ldexp(1.0, last - kBias);
    const float f = magnitude >= 0x1p128 ? std::numeric_limits<float>::infinity() : static_cast<float>(magnitude);
    return negative ? -f : f;
  }

 private:
  static constexpr int kBias = 320, kLimbs = 22;
  bool bit(int b) const { return limb_[b / 32] >> (b % 32) & 1; }
  int64_t limb_[kLimbs] = {};
};

// NaN and infinity first: true when the result is decided without the adder.
inline bool special_sum(const float* a, const float* b, int n, float c, float* result) {
  bool plus = false, minus = false, nan = is_nan(c);
  if (is_inf(c)) (sign_of(c) ? minus : plus) = true;
  for (int k = 0; k < n; ++k) {
    if (is_nan(a[k]) || is_nan(b[k]) || (is_inf(a[k]) && b[k] == 0) || (a[k] == 0 && is_inf(b[k]))) nan = true;
    else if (is_inf(a[k]) || is_inf(b[k])) (sign_of(a[k]) != sign_of(b[k]) ? minus : plus) = true;
  }
  if (!nan && !plus && !minus) return false;
  *result = nan || (plus && minus) ? kDefaultNan
            : std::copysign(std::numeric_limits<float>::infinity(), minus ? -1.0f : 1.0f);
  return true;
}

inline float dot_exact(const float* a, const float* b, int n, float c) {
  float special;
  if (special_sum(a, b, n, c, &special)) return special;
  WideSum sum;
  const Term pc = term_of(c);
  sum.add(pc.negative, pc.m, pc.e);
  for (int k = 0; k < n; ++k) {
    const Term x = term_of(a[k]), y = term_of(b[k]);
    sum.add(x.negative != y.negative, static_cast<uint64_t>(x.m) * y.m, x.e + y.e);
  }
  return sum.round();
}

// x * 2^-shift toward zero or toward minus infinity, for a signed integer.
inline __int128 shift_down(__int128 x, int shift, bool floor) {
  if (shift <= 0) return shift < -100 ? 0 : x << -shift;
  if (shift > 120) return floor && x < 0 ? -1 : 0;
  if (floor || x >= 0) return x >> shift;
  return -(-x >> shift);
}

// One group of TR-FDPA: products truncated to 24 fraction bits of the largest product exponent;
// the sum (31 bits) and c (24 bits) floored at the larger of both exponents; one rounding.
inline float tr_fdpa_group(const float* a, const float* b, int n, float c) {
  float special;
  if (special_sum(a, b, n, c, &special)) return special;
  int emax = INT32_MIN / 2;
  for (int k = 0; k < n; ++k)
    if (a[k] != 0 && b[k] != 0) emax = std::max(emax, term_of(a[k]).field + term_of(b[k]).field);
  const Term pc = term_of(c);
  if (emax == INT32_MIN / 2) return c == 0 ? 0.0f + c : c;
  __int128 sum = 0;   // units of 2^(emax - 24)
  for (int k = 0; k < n; ++k) {
    const Term x = term_of(a[k]), y = term_of(b[k]);
    const __int128 m = static_cast<__int128>(static_cast<uint64_t>(x.m) * y.m);
    const __int128 t = shift_down(m, emax - 24 - (x.e + y.e), false);
    sum += x.negative != y.negative ? -t : t;
  }
  const int e = c == 0 ? emax : std::max(emax, pc.field);
  // Common unit 2^(e - 31).
  const __int128 s31 = shift_down(sum, (e - 31) - (emax - 24), true);
  __int128 c24 = shift_down(pc.negative ? -static_cast<__int128>(pc.m) : static_cast<__int128>(pc.m), (e - 24) - pc.e, true);
  const __int128 total = s31 + (c24 << 7);
  if (total == 0) return 0.0f;
  WideSum round;
  const bool negative = total < 0;
  round.add(negative, static_cast<uint64_t>(negative ? -total : total), e - 31);
  return round.round();
}

// GTR-FDPA, the 8-bit form: products of even and of odd index in two trees, each truncated to 24
// fraction bits of its own largest exponent, then both floored to 24 bits of the larger one.
inline float gtr_fdpa_group(const float* a, const float* b, int n, float c) {
  float special;
  if (special_sum(a, b, n, c, &special)) return special;
  int emax[2] = {INT32_MIN / 2, INT32_MIN / 2};
  for (int k = 0; k < n; ++k)
    if (a[k] != 0 && b[k] != 0) emax[k & 1] = std::max(emax[k & 1], term_of(a[k]).field + term_of(b[k]).field);
  const int top = std::max(emax[0], emax[1]);
  if (top == INT32_MIN / 2) return c == 0 ? 0.0f + c : c;
  __int128 sum = 0;   // units of 2^(top - 24)
  for (int tree = 0; tree < 2; ++tree) {
    if (emax[tree] == INT32_MIN / 2) continue;
    __int128 part = 0;
    for (int k = tree; k < n; k += 2) {
      const Term x = term_of(a[k]), y = term_of(b[k]);
      const __int128 m = static_cast<__int128>(static_cast<uint64_t>(x.m) * y.m);
      const __int128 t = shift_down(m, emax[tree] - 24 - (x.e + y.e), false);
      part += x.negative != y.negative ? -t : t;
    }
    sum += shift_down(part, top - emax[tree], true);
  }
  const Term pc = term_of(c);
  const int e = c == 0 ? top : std::max(top, pc.field);
  const __int128 s31 = shift_down(sum, (e - 31) - (top - 24), true);
  const __int128 c24 = shift_down(pc.negative ? -static_cast<__int128>(pc.m) : static_cast<__int128>(pc.m), (e - 24) - pc.e, true);
  const __int128 total = s31 + (c24 << 7);
  if (total == 0) return 0.0f;
  WideSum round;
  const bool negative = total < 0;
  round.add(negative, static_cast<uint64_t>(negative ? -total : total), e - 31);
  return round.round();
}

// One output element under a model that is not fma_chain: c + sum over k of a[k] b[k].
inline float dot_model(MatrixModel model, Elem type, const float* a, const float* b, int n, float c) {
  if (model == MatrixModel::exact) return dot_exact(a, b, n, c);
  const bool narrow = bits_of(type) <= 8;
  const int group = narrow ? 16 : 8;
  for (int k = 0; k < n; k += group) {
    const int count = std::min(group, n - k);
    c = narrow ? gtr_fdpa_group(a + k, b + k, count, c) : tr_fdpa_group(a + k, b + k, count, c);
  }
  return c;
}

// RDNA3's step of two products and an accumulator (measured on gfx1100 and gfx1151): terms are
// truncated to a common grid, a term of the other sign than the accumulator enters as its one's
// complement. Out is the format of accumulator and result; the bits of the result are returned. An
// f16 result past the range is the largest number when `saturate` (MODE.FP16_OVFL).
template <Type kOut, bool kBf16Factors>
inline uint32_t gfx11_step(float a0, float b0, float a1, float b1, uint32_t acc, bool saturate) {
  constexpr bool kF16 = kOut == Type::f16;
  constexpr uint32_t kNan = kF16 ? 0xfe3d : kOut == Type::bf16 ? 0xfffd : 0xffc00a3d;
  constexpr uint32_t kInvalid = kF16 ? 0xfe00 : kOut == Type::bf16 ? 0xffc0 : 0xffc00000;
  constexpr uint32_t kInf = kF16 ? 0x7c00 : kOut == Type::bf16 ? 0x7f80 : 0x7f800000;
  constexpr uint32_t kSign = kOut == Type::f32 ? 0x80000000 : 0x8000;
  constexpr uint32_t kQuiet = kF16 ? 0x200 : kOut == Type::bf16 ? 0x40 : 0x400000;
  const float c = kF16 ? f16_to_f32(acc) : kOut == Type::bf16 ? bf16_to_f32(acc) : as_f32(acc);
  const auto factor = [](float x) {
    return kBf16Factors && std::fabs(x) < 0x1p-126f ? std::copysign(0.0f, x) : x;
  };
  a0 = factor(a0), b0 = factor(b0), a1 = factor(a1), b1 = factor(b1);
  if (is_nan(a0) || is_nan(b0) || is_nan(a1) || is_nan(b1)) return kNan;
  const auto invalid = [](float x, float y) { return (is_inf(x) && y == 0) || (x == 0 && is_inf(y)); };
  if (invalid(a0, b0) || invalid(a1, b1)) return kInvalid;
  const bool inf0 = is_inf(a0) || is_inf(b0), inf1 = is_inf(a1) || is_inf(b1);
  const bool neg0 = sign_of(a0) != sign_of(b0), neg1 = sign_of(a1) != sign_of(b1);
  if (inf0 && inf1 && neg0 != neg1) return kInvalid;
  if (is_nan(c)) return acc | kQuiet;
  if (inf0 || inf1) {
    const bool neg = inf0 ? neg0 : neg1;
    if (is_inf(c) && sign_of(c) != neg) return kInvalid;
    return kInf | (neg ? kSign : 0);
  }
  if (is_inf(c)) return acc;
  const Term x0 = term_of(a0), y0 = term_of(b0), x1 = term_of(a1), y1 = term_of(b1);
  Term z = term_of(c);
  if (z.m < 0x800000) z.m = 0;   // an f32 subnormal accumulator counts as zero; its sign is kept
  const uint64_t p0 = static_cast<uint64_t>(x0.m) * y0.m, p1 = static_cast<uint64_t>(x1.m) * y1.m;
  if (!p0 && !p1 && !z.m) return 0;
  const int e0 = x0.e + y0.e, e1 = x1.e + y1.e;
  // f16 subnormal factors keep the exponent of their format, -14.
  const auto exponent = [](const Term& p) { return kBf16Factors ? p.field : std::max(p.field, -14); };
  int grid = INT32_MIN / 2;
  if (p0) grid = std::max(grid, exponent(x0) + exponent(y0) - 24);
  if (p1) grid = std::max(grid, exponent(x1) + exponent(y1) - 24);
  int lead_c = lead_of(z.m, z.e);
  if (kF16 && z.m) lead_c = std::max(lead_c, -14);
  grid = std::max(grid, std::max({lead_c, lead_of(p0, e0), lead_of(p1, e1)}) - 26);
  const auto on_grid = [grid](uint64_t m, int e) {
    return static_cast<int64_t>(shift_down(static_cast<__int128>(m), grid - e, false));
  };
  const bool frame = z.negative;
  const int64_t q0 = on_grid(p0, e0), q1 = on_grid(p1, e1);
  int64_t sum = on_grid(z.m, z.e);
  sum += neg0 == frame ? q0 : -q0 - 1;
  sum += neg1 == frame ? q1 : -q1 - 1;
  if (sum == 0) return 0;
  const uint32_t sign = frame != (sum < 0) ? kSign : 0;
  const uint64_t magnitude = static_cast<uint64_t>(sum < 0 ? -sum : sum);
  // To 24 bits (f16: 11, fewer below its normal range), nearest even.
  const int lead = 63 - std::countl_zero(magnitude);
  int shift = lead - (kF16 ? 10 : 23);
  if (kF16) shift = std::max(shift, -24 - grid);
  uint64_t kept = magnitude;
  int e = grid;
  if (shift > 0) {
    const uint64_t lost = shift > 63 ? magnitude : magnitude & ((1ull << shift) - 1);
    const uint64_t half = shift > 63 ? ~0ull : 1ull << (shift - 1);
    kept = shift > 63 ? 0 : magnitude >> shift;
    e += shift;
    if (lost > half || (lost == half && (kept & 1))) ++kept;
  }
  if (!kept) return 0;
  const int final_lead = lead_of(kept, e);
  if (kF16) return final_lead > 15 ? sign | (saturate ? 0x7bff : kInf) : sign | f32_to_f16(static_cast<float>(std::ldexp(static_cast<double>(kept), e)));
  if (final_lead < -126) return 0;
  const uint32_t f = final_lead > 127 ? 0x7f800000 : f32_bits(static_cast<float>(std::ldexp(static_cast<double>(kept), e)));
  return kOut == Type::bf16 ? (sign | f >> 16) : (sign | f);
}

}  // namespace netra::NETRA_HOST_NS
