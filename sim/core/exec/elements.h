// Elements of matrix operands: decoding packed registers into f32, exactly.
#pragma once

#include "math.h"

namespace netra::NETRA_HOST_NS {

enum class Elem : uint8_t { f64, f32, f16, bf16, i8, u8, fp8, bf8, fp6, bf6, fp4, i4, u4, f8f6f4 };

constexpr int bits_of(Elem e) {
  switch (e) {
    case Elem::f64: return 64;
    case Elem::f32: return 32;
    case Elem::f16: case Elem::bf16: return 16;
    case Elem::fp6: case Elem::bf6: return 6;
    case Elem::fp4: case Elem::i4: case Elem::u4: return 4;
    default: return 8;
  }
}

// OCP E4M3FN: 448 is the largest value, S.1111.111 is NaN.
inline float fp8_to_f32(uint32_t x) {
  const uint32_t magnitude = x & 0x7f;
  const uint32_t number = f32_bits(as_f32(magnitude << 20) * 0x1p120f);
  const uint32_t nan = 0u - ((magnitude + 1) >> 7);   // a mask: compilers give up on a choice here
  return as_f32((number & ~nan) | (0x7fc00000 & nan) | (x & 0x80) << 24);
}
// OCP E5M2 is the upper byte of an f16.
inline float bf8_to_f32(uint32_t x) { return f16_to_f32(x << 8); }
// E2M3, E3M2, E2M1: no infinity, no NaN.
inline float fp6_to_f32(uint32_t x) {
  return as_f32(f32_bits(as_f32((x & 0x1f) << 20) * 0x1p126f) | (x & 0x20) << 26);
}
inline float bf6_to_f32(uint32_t x) {
  return as_f32(f32_bits(as_f32((x & 0x1f) << 21) * 0x1p124f) | (x & 0x20) << 26);
}
inline float fp4_to_f32(uint32_t x) {
  return as_f32(f32_bits(as_f32((x & 7) << 22) * 0x1p126f) | (x & 8) << 28);
}

inline float element_f32(Elem e, uint32_t x) {
  switch (e) {
    case Elem::f32: return as_f32(x);
    case Elem::f16: return f16_to_f32(x & 0xffff);
    case Elem::bf16: return bf16_to_f32(x & 0xffff);
    case Elem::fp8: return fp8_to_f32(x & 0xff);
    case Elem::bf8: return bf8_to_f32(x & 0xff);
    case Elem::fp6: return fp6_to_f32(x & 0x3f);
    case Elem::bf6: return bf6_to_f32(x & 0x3f);
    case Elem::fp4: return fp4_to_f32(x & 0xf);
    default: return 0;
  }
}
inline int32_t element_i32(Elem e, uint32_t x) {
  switch (e) {
    case Elem::i8: return static_cast<int8_t>(x);
    case Elem::u8: return static_cast<uint8_t>(x);
    case Elem::i4: return static_cast<int32_t>(x << 28) >> 28;
    case Elem::u4: return static_cast<int32_t>(x & 15);
    default: return 0;
  }
}

}  // namespace netra::NETRA_HOST_NS
