// Fused multiply-add in integers: for hosts without the instruction, for results that are scaled or
// narrowed before the one rounding, and for rounding directions and formats that the host lacks.
#pragma once

#include "lane.h"

namespace netra::NETRA_HOST_NS {

struct Format {
  int precision;              // bits of the significand, the hidden one included
  int least, most;            // exponents of normal numbers
};
inline constexpr Format kF16 = {11, -14, 15}, kF32 = {24, -126, 127}, kF64 = {53, -1022, 1023};

// How a result is rounded. `round` is MODE's code: 0 nearest even, 1 up, 2 down, 3 toward zero.
struct Rounding {
  uint32_t round = 0;
  bool flush = false;         // a tiny result becomes a zero
  bool saturate = false;      // overflow gives the largest number
};

using Wide = unsigned __int128;
inline int top_bit(Wide x) {
  const uint64_t hi = static_cast<uint64_t>(x >> 64), lo = static_cast<uint64_t>(x);
  return hi ? 127 - std::countl_zero(hi) : 63 - std::countl_zero(lo);
}
// x >> n, with every bit that falls off kept as the lowest one.
inline Wide shift_jam(Wide x, int n) {
  if (n <= 0) return x << -n;
  if (n > 126) return x != 0;
  return x >> n | ((x & ((Wide{1} << n) - 1)) != 0);
}

// mant * 2^exp rounded to the format, as a double (exact: no format is wider). mant is not 0; its
// lowest bit may be a sticky one below all that the format keeps.
inline double round_to(bool negative, Wide mant, int exp, Format f, Rounding r) {
  const int top = top_bit(mant) + exp;                  // exponent of the leading bit
  const auto keep = [&](int lowest, bool* inexact) {    // units of 2^lowest
    const int n = lowest - exp;
    if (n <= 0) return mant << -n;
    if (n > 126) {
      *inexact = true;
      return Wide{(r.round == 1 && !negative) || (r.round == 2 && negative)};
    }
    const Wide kept = mant >> n, lost = mant & ((Wide{1} << n) - 1), tie = Wide{1} << (n - 1);
    *inexact = lost != 0;
    const bool up = r.round == 0 ? lost > tie || (lost == tie && (kept & 1))
                                 : lost != 0 && ((r.round == 1 && !negative) || (r.round == 2 && negative));
    return kept + up;
  };
  bool inexact = false;
  const double sign = negative ? -1.0 : 1.0;
  if (top < f.least && r.flush) {
    // Tiny unless rounding with an unbounded exponent reaches the least normal number.
    const Wide full = keep(top - f.precision + 1, &inexact);
    if (top_bit(full) + top - f.precision + 1 < f.least) return std::copysign(0.0, sign);
  }
  const int lowest = (top < f.least ? f.least : top) - f.precision + 1;
  const Wide kept = keep(lowest, &inexact);
  if (kept == 0) return std::copysign(0.0, sign);
  if (top_bit(kept) + lowest > f.most) {
    const bool infinite = r.round == 0 || (r.round == 1 && !negative) || (r.round == 2 && negative);
    if (infinite && !r.saturate) return sign * std::numeric_limits<double>::infinity();
    const double unit = as_f64(static_cast<uint64_t>(f.most - f.precision + 1 + 1023) << 52);
    return sign * (static_cast<double>((1ull << f.precision) - 1) * unit);
  }
  // kept has at most 53 bits and lowest >= -1074: build the double without a rounding step.
  const uint64_t k = static_cast<uint64_t>(kept);
  const int bit = 63 - std::countl_zero(k);
  uint64_t bits;
  if (bit + lowest >= -1022) {
    // Rounding up may have carried into a 54th bit: then k is a power of two.
    const uint64_t aligned = bit <= 52 ? k << (52 - bit) : k >> (bit - 52);
    bits = (aligned & 0xfffffffffffffull) | static_cast<uint64_t>(bit + lowest + 1023) << 52;
  } else {
    bits = k << (lowest + 1074);
  }
  return as_f64(bits | static_cast<uint64_t>(negative) << 63);
}

struct Parts {
  bool negative;
  uint64_t mant;
  int exp;                    // value = mant * 2^exp
};
inline Parts parts_of(double x) {
  const uint64_t b = f64_bits(x), m = b & 0xfffffffffffffull;
  const int e = static_cast<int>(b >> 52 & 0x7ff);
  return {sign_of(x), e ? m | 1ull << 52 : m, e ? e - 1075 : -1074};
}

// (a * b + c) * 2^scale, rounded once. NaN and infinity go the host's way.
inline double fma_soft(double a, double b, double c, int scale, Format f, Rounding r) {
  if (is_nan(a) || is_nan(b) || is_nan(c) || is_inf(a) || is_inf(b) || is_inf(c)) return a * b + c;
  const Parts x = parts_of(a), y = parts_of(b), z = parts_of(c);
  const bool pn = x.negative != y.negative;
  Wide p = static_cast<Wide>(x.mant) * y.mant, q = z.mant;
  int pe = x.exp + y.exp, qe = z.exp;
  if (p == 0 && q == 0)
    return std::copysign(0.0, pn == z.negative ? (pn ? -1.0 : 1.0) : r.round == 2 ? -1.0 : 1.0);
  // Leading bits to bit 125, then the smaller one down to the larger one's exponent.
  if (p) pe -= 125 - top_bit(p), p <<= 125 - top_bit(p);
  if (q) qe -= 125 - top_bit(q), q <<= 125 - top_bit(q);
  if (p == 0) pe = qe;
  if (q == 0) qe = pe;
  const int e = pe > qe ? pe : qe;
  p = shift_jam(p, e - pe);
  q = shift_jam(q, e - qe);
  if (pn == z.negative) return round_to(pn, p + q, e + scale, f, r);
  if (p == q) return std::copysign(0.0, r.round == 2 ? -1.0 : 1.0);
  const bool first = p > q;
  return round_to(first ? pn : z.negative, first ? p - q : q - p, e + scale, f, r);
}

// What the host's environment says, for the two functions that stand in for its instruction.
inline Rounding host_rounding() {
#if defined(__x86_64__)
  static constexpr uint32_t kCode[4] = {0, 2, 1, 3};   // MXCSR: nearest, down, up, toward zero
  const uint32_t csr = _mm_getcsr();
  return {kCode[csr >> 13 & 3], (csr & 0x8000) != 0, false};
#else
  return {};
#endif
}
// One rounding, with no call into the C library.
inline float fma1(float a, float b, float c) {
#if defined(__FMA__) || defined(__aarch64__)
  return std::fma(a, b, c);
#else
  return static_cast<float>(fma_soft(a, b, c, 0, kF32, host_rounding()));
#endif
}
inline double fma1(double a, double b, double c) {
#if defined(__FMA__) || defined(__aarch64__)
  return std::fma(a, b, c);
#else
  return fma_soft(a, b, c, 0, kF64, host_rounding());
#endif
}

}  // namespace netra::NETRA_HOST_NS
