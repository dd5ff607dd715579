// The matrix model fma_chain over a whole block: C[i][j] = fma(A[i][k], B[k][j], C[i][j]) for k
// ascending. Every element is its own chain, so the order among elements is free: tiles of the
// result stay in registers while k runs.
//
// A NaN comes from A, else from B, else from the sum so far, quieted; an invalid product or sum gives
// 0xffc00000. Hosts disagree on that order, so an element that ends as a NaN is computed again.
//
// A and B are given as [k][row] and [k][column], C as [row][column], each dense with M columns.
#pragma once

#include <cmath>
#include <cstring>

#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#endif

#include "lane.h"

namespace netra::NETRA_HOST_NS {

template <class F>
inline F chain_step(F a, F b, F sum) {
  if (is_nan(a)) return quiet(a);
  if (is_nan(b)) return quiet(b);
  if (is_nan(sum)) return quiet(sum);
  const F r = std::fma(a, b, sum);
  return is_nan(r) ? -std::numeric_limits<F>::quiet_NaN() : r;
}

// The elements that ended as a NaN in `done`, rows [i, i + rows) and columns [j, j + columns), once
// more from their addend in c.
template <int M>
[[gnu::cold, gnu::noinline]] void chain_nans(const float* at, const float* bt, int k_count, const float* c,
                                             float* done, int i, int rows, int j, int columns) {
  for (int r = 0; r < rows; ++r)
    for (int n = 0; n < columns; ++n) {
      float& d = done[r * columns + n];
      if (!is_nan(d)) continue;
      d = c[(i + r) * M + j + n];
      for (int k = 0; k < k_count; ++k) d = chain_step(at[k * M + i + r], bt[k * M + j + n], d);
    }
}

#if defined(__AVX2__) && defined(__FMA__)

// Written with intrinsics: left to themselves compilers put the wrong loop into vectors. Eight
// sums in flight hide the latency of the fused multiply-add.
template <int M>
void chain(const float* at, const float* bt, int k_count, float* c) {
  constexpr int kRows = 4, kWide = M < 16 ? 4 : 16;
  alignas(64) float done[kRows * kWide];
  for (int i = 0; i < M; i += kRows)
    for (int j = 0; j < M; j += kWide) {
      const float* a = at + i;
      const float* b = bt + j;
      float* tile = c + i * M + j;
      int nan = 0;
      if constexpr (kWide == 16) {
        __m256 sum[kRows][2];
        for (int r = 0; r < kRows; ++r)
          for (int h = 0; h < 2; ++h) sum[r][h] = _mm256_loadu_ps(tile + r * M + 8 * h);
        for (int k = 0; k < k_count; ++k, a += M, b += M) {
          const __m256 b0 = _mm256_loadu_ps(b), b1 = _mm256_loadu_ps(b + 8);
          for (int r = 0; r < kRows; ++r) {
            const __m256 x = _mm256_broadcast_ss(a + r);
            sum[r][0] = _mm256_fmadd_ps(x, b0, sum[r][0]);
            sum[r][1] = _mm256_fmadd_ps(x, b1, sum[r][1]);
          }
        }
        for (int r = 0; r < kRows; ++r)
          for (int h = 0; h < 2; ++h) {
            nan |= _mm256_movemask_ps(_mm256_cmp_ps(sum[r][h], sum[r][h], _CMP_UNORD_Q));
            _mm256_store_ps(done + r * kWide + 8 * h, sum[r][h]);
          }
      } else {
        __m128 sum[kRows];
        for (int r = 0; r < kRows; ++r) sum[r] = _mm_loadu_ps(tile + r * M);
        for (int k = 0; k < k_count; ++k, a += M, b += M) {
          const __m128 x = _mm_loadu_ps(b);
          for (int r = 0; r < kRows; ++r) sum[r] = _mm_fmadd_ps(_mm_broadcast_ss(a + r), x, sum[r]);
        }
        for (int r = 0; r < kRows; ++r) {
          nan |= _mm_movemask_ps(_mm_cmpunord_ps(sum[r], sum[r]));
          _mm_store_ps(done + r * kWide, sum[r]);
        }
      }
      if (nan) [[unlikely]] chain_nans<M>(at, bt, k_count, c, done, i, kRows, j, kWide);
      for (int r = 0; r < kRows; ++r) std::memcpy(tile + r * M, done + r * kWide, 4 * kWide);
    }
}

#else

template <int M>
void chain(const float* at, const float* bt, int k_count, float* c) {
  for (int i = 0; i < M; ++i) {
    float done[M];
    std::memcpy(done, c + i * M, sizeof done);
    for (int k = 0; k < k_count; ++k) {
      const float a = at[k * M + i];
      for (int j = 0; j < M; ++j) done[j] = std::fma(a, bt[k * M + j], done[j]);
    }
    bool nan = false;
    for (int j = 0; j < M; ++j) nan |= is_nan(done[j]);
    if (nan) [[unlikely]] chain_nans<M>(at, bt, k_count, c, done, i, 1, 0, M);
    std::memcpy(c + i * M, done, sizeof done);
  }
}

#endif

}  // namespace netra::NETRA_HOST_NS
