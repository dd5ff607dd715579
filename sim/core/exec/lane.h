// What one lane holds: typed views of register rows, conversions, and the float environment.
//
// Everything in exec/ is compiled once per host instruction set, in namespace NETRA_HOST_NS: no
// inline function of a wide build may be picked by the linker for the baseline.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "../insn.h"
#include "../wave.h"

namespace netra::NETRA_HOST_NS {

#if defined(__clang__)
#define NETRA_LANES _Pragma("clang loop vectorize(assume_safety) interleave(enable)")
#else
#define NETRA_LANES _Pragma("GCC ivdep")
#endif

inline uint32_t f32_bits(float x) { return std::bit_cast<uint32_t>(x); }
inline float as_f32(uint32_t x) { return std::bit_cast<float>(x); }
inline uint64_t f64_bits(double x) { return std::bit_cast<uint64_t>(x); }
inline double as_f64(uint64_t x) { return std::bit_cast<double>(x); }

inline bool is_nan(float x) { return (f32_bits(x) & 0x7fffffff) > 0x7f800000; }
inline bool is_nan(double x) { return (f64_bits(x) & ~(1ull << 63)) > 0x7ff0000000000000ull; }
inline bool is_snan(float x) { return is_nan(x) && !(f32_bits(x) & 0x00400000); }
inline bool is_snan(double x) { return is_nan(x) && !(f64_bits(x) & 0x0008000000000000ull); }
inline bool is_inf(float x) { return (f32_bits(x) & 0x7fffffff) == 0x7f800000; }
inline bool is_inf(double x) { return (f64_bits(x) & ~(1ull << 63)) == 0x7ff0000000000000ull; }
inline float quiet(float x) { return as_f32(f32_bits(x) | 0x00400000); }
inline double quiet(double x) { return as_f64(f64_bits(x) | 0x0008000000000000ull); }
inline bool sign_of(float x) { return f32_bits(x) >> 31; }
inline bool sign_of(double x) { return f64_bits(x) >> 63; }

// Exact. A NaN keeps sign and payload.
inline float f16_to_f32(uint32_t h) {
  const uint32_t em = (h & 0x7fff) << 13;
  const uint32_t finite = f32_bits(as_f32(em) * 0x1p112f);
  return as_f32((em >= 0x0f800000 ? em | 0x7f800000 : finite) | (h & 0x8000) << 16);
}
// Nearest even; a NaN stays one and is quieted.
inline uint32_t f32_to_f16(float x) {
  const uint32_t b = f32_bits(x), a = b & 0x7fffffff;
  const uint32_t normal = (a + 0xc8000fff + (a >> 13 & 1)) >> 13;
  const uint32_t tiny = f32_bits(as_f32(a) + 0.5f) - 0x3f000000;
  const uint32_t special = a > 0x7f800000 ? 0x7e00 | (a >> 13 & 0x3ff) : 0x7c00;
  return (a >= 0x47800000 ? special : a < 0x38800000 ? tiny : normal) | (b >> 16 & 0x8000);
}
// One f32 to f16 bits in a rounding mode (0 nearest even, 1 up, 2 down, 3 toward zero). `saturate`
// is FP16_OVFL: what overflows becomes the largest number, while an infinity stays one.
inline uint32_t f16_rounded(float x, uint32_t round, bool flush, bool saturate) {
  const uint32_t b = f32_bits(x), a = b & 0x7fffffff, sign = b >> 16 & 0x8000;
  if (a >= 0x7f800000) return f32_to_f16(x);
  const bool away = (round == 1 && !sign) || (round == 2 && sign);
  uint32_t r;
  if (round == 0) {
    r = f32_to_f16(x) & 0x7fff;
  } else {
    // Truncate, then step away from zero where the direction asks for it and bits were lost.
    const int e = static_cast<int>(a >> 23) - 127;
    uint32_t lost;
    if (e >= 16) {
      r = 0x7bff, lost = 1;
    } else if (e >= -14) {
      r = (a - 0x38000000) >> 13, lost = a & 0x1fff;
    } else if (e >= -25) {
      const uint32_t m = (a & 0x7fffff) | 0x800000;
      const int shift = 13 + (-14 - e);
      r = m >> shift, lost = m & ((1u << shift) - 1);
    } else {
      r = 0, lost = a != 0;
    }
    if (lost && away) ++r;
  }
  if (r == 0x7c00 && saturate) r = 0x7bff;
  // Tiny: below the least normal number after rounding to 11 bits with an unbounded exponent, whose
  // last step before 2^-14 is 2^-25.
  const uint32_t least = round == 0 ? 0x38800000 - 0x1000 : away ? 0x38800000 - 0x1fff : 0x38800000;
  if (flush && a < least) r = 0;
  return sign | r;
}
inline float bf16_to_f32(uint32_t h) { return as_f32(h << 16); }
inline uint32_t f32_to_bf16(float x) {
  const uint32_t b = f32_bits(x);
  return is_nan(x) ? (b >> 16 | 0x40) : (b + 0x7fff + (b >> 16 & 1)) >> 16;
}
// Under FP16_OVFL (saturate) a finite number that overflows becomes the largest.
inline uint32_t f32_to_bf16(float x, bool saturate) {
  const uint32_t r = f32_to_bf16(x);
  return r - (saturate && !is_inf(x) && (r & 0x7fff) == 0x7f80);
}

// A value type: how a slot reads and writes one lane of one or two rows. F16 and BF16 compute in
// f32, and `put` leaves f32 bits that `narrow` rounds afterwards: for + - * / sqrt the two
// roundings equal one (24 >= 2 * 11 + 2).
struct Nil {
  using value = int;
  static constexpr Type type = Type::none;
  static value get(const uint32_t*, const uint32_t*, int) { return 0; }
  static void put(uint32_t*, uint32_t*, int, value) {}
};
template <Type T, class V>
struct Dword {
  using value = V;
  static constexpr Type type = T;
  static value get(const uint32_t* lo, const uint32_t*, int l) { return std::bit_cast<V>(lo[l]); }
  static void put(uint32_t* lo, uint32_t*, int l, value v) { lo[l] = std::bit_cast<uint32_t>(v); }
};
template <Type T, class V>
struct Qword {
  using value = V;
  static constexpr Type type = T;
  static value get(const uint32_t* lo, const uint32_t* hi, int l) {
    return std::bit_cast<V>(static_cast<uint64_t>(hi[l]) << 32 | lo[l]);
  }
  static void put(uint32_t* lo, uint32_t* hi, int l, value v) {
    const uint64_t b = std::bit_cast<uint64_t>(v);
    lo[l] = static_cast<uint32_t>(b);
    hi[l] = static_cast<uint32_t>(b >> 32);
  }
};
template <Type T, class V>
struct Word {
  using value = V;
  static constexpr Type type = T;
  static value get(const uint32_t* lo, const uint32_t*, int l) { return static_cast<V>(lo[l]); }
  static void put(uint32_t* lo, uint32_t*, int l, value v) { lo[l] = static_cast<uint16_t>(v); }
};
using B32 = Dword<Type::b32, uint32_t>;
using U32 = Dword<Type::u32, uint32_t>;
using I32 = Dword<Type::i32, int32_t>;
using F32 = Dword<Type::f32, float>;
using B64 = Qword<Type::b64, uint64_t>;
using U64 = Qword<Type::u64, uint64_t>;
using I64 = Qword<Type::i64, int64_t>;
using F64 = Qword<Type::f64, double>;
using B16 = Word<Type::b16, uint16_t>;
using U16 = Word<Type::u16, uint16_t>;
using I16 = Word<Type::i16, int16_t>;
struct F16 {
  using value = float;
  static constexpr Type type = Type::f16;
  static value get(const uint32_t* lo, const uint32_t*, int l) { return f16_to_f32(lo[l]); }
  static void put(uint32_t* lo, uint32_t*, int l, value v) { lo[l] = f32_bits(v); }
};
struct BF16 {
  using value = float;
  static constexpr Type type = Type::bf16;
  static value get(const uint32_t* lo, const uint32_t*, int l) { return bf16_to_f32(lo[l]); }
  static void put(uint32_t* lo, uint32_t*, int l, value v) { lo[l] = f32_bits(v); }
};

// MODE.round and MODE.denorm fields for results of a type: f32 has its own, f16 and f64 share.
inline uint32_t round_mode(uint32_t mode, Type t) { return t == Type::f32 ? mode & 3 : mode >> 2 & 3; }
inline uint32_t denorm_mode(uint32_t mode, Type t) {
  return t == Type::f32 ? mode >> 4 & 3 : mode >> 6 & 3;
}

// The host's float environment set to MODE for results of one type, for the life of the object.
// Inputs are flushed explicitly (valu_slow.cc); outputs by the host's flush-to-zero, which judges
// tininess after rounding as the GPU does.
class FpScope {
 public:
  FpScope(uint32_t mode, Type t) {
#if defined(__x86_64__)
    saved_ = _mm_getcsr();
    static constexpr uint32_t kRound[4] = {0x0000, 0x4000, 0x2000, 0x6000};
    const bool flush = t != Type::f16 && !(denorm_mode(mode, t) & 2);
    _mm_setcsr((static_cast<unsigned>(saved_) & ~0xe040u) | kRound[round_mode(mode, t)] | (flush ? 0x8000 : 0));
#elif defined(__aarch64__)
    // FPCR.RMode has MODE's codes. FZ judges tininess before rounding: the one difference.
    asm volatile("mrs %0, fpcr" : "=r"(saved_));
    const bool flush = t != Type::f16 && !(denorm_mode(mode, t) & 2);
    const uint64_t now = (saved_ & ~(7ull << 22)) | static_cast<uint64_t>(round_mode(mode, t)) << 22 |
                         static_cast<uint64_t>(flush) << 24;
    asm volatile("msr fpcr, %0" : : "r"(now) : "memory");
#endif
  }
  ~FpScope() {
#if defined(__x86_64__)
    _mm_setcsr(static_cast<unsigned>(saved_));
#elif defined(__aarch64__)
    asm volatile("msr fpcr, %0" : : "r"(saved_) : "memory");
#endif
  }
  FpScope(const FpScope&) = delete;
  FpScope& operator=(const FpScope&) = delete;

 private:
  uint64_t saved_ = 0;
};

// 64 lanes of 0 / nonzero to a bit each, and back.
inline uint64_t pack_bits(const uint32_t* rows, uint32_t lanes) {
  uint64_t bits = 0;
  for (uint32_t l = 0; l < lanes; l += 4) {
#if defined(__SSE2__)
    const __m128i x = _mm_load_si128(reinterpret_cast<const __m128i*>(rows + l));
    const int zero = _mm_movemask_ps(_mm_castsi128_ps(_mm_cmpeq_epi32(x, _mm_setzero_si128())));
    bits |= static_cast<uint64_t>(~zero & 15) << l;
#else
    for (uint32_t k = 0; k < 4; ++k) bits |= static_cast<uint64_t>(rows[l + k] != 0) << (l + k);
#endif
  }
  return bits;
}
inline void expand_bits(uint64_t bits, uint32_t* rows) {
  for (int half = 0; half < 2; ++half) {
    const uint32_t b = static_cast<uint32_t>(bits >> (32 * half));
    for (int l = 0; l < 32; ++l) rows[32 * half + l] = -(b >> l & 1);
  }
}

}  // namespace netra::NETRA_HOST_NS
