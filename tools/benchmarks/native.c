// The loops of kernels.py and the GEMM as plain C, compiled for the host: the limit that the
// simulator is compared with.
//
//   native LOOP THREADS ROUNDS     prints "<wall seconds> <processor seconds>"
//
// A round is what a round of the kernel is: the same operations on the same number of lanes. The
// compiler may keep registers in registers and vectorise as it likes; it may not skip work, because
// the results are added to what main() returns.
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// ---- vector ALU: 128 operations a round --------------------------------------------------------

#define VALU(LANES)                                                                             \
  static uint32_t valu##LANES(uint64_t rounds) {                                                \
    float f[10][LANES];                                                                         \
    uint32_t u[17][LANES];                                                                      \
    for (int l = 0; l < LANES; ++l) {                                                           \
      for (int r = 2; r < 10; ++r) f[r][l] = (float)l * 0.5f + 1.0f;                            \
      for (int r = 10; r < 17; ++r) u[r][l] = (uint32_t)(l * l);                                \
    }                                                                                           \
    for (uint64_t n = 0; n < rounds; ++n)                                                       \
      for (int k = 0; k < 8; ++k)                                                               \
        for (int l = 0; l < LANES; ++l) {                                                       \
          f[2][l] = 0.5f * f[3][l];                                                             \
          f[3][l] = 1.0f + f[2][l];                                                             \
          f[4][l] = fmaf(f[5][l], 0.5f, f[6][l]);                                               \
          u[10][l] = u[11][l] + u[12][l];                                                       \
          u[11][l] = u[10][l] ^ u[13][l];                                                       \
          u[12][l] = u[11][l] << 3;                                                             \
          f[5][l] = 0.5f * f[4][l];                                                             \
          f[6][l] = fmaf(f[5][l], 0.5f, 1.0f);                                                  \
          u[13][l] = u[12][l] & u[14][l];                                                       \
          u[14][l] = u[13][l] + u[10][l] + u[15][l];                                            \
          f[7][l] = fmaf(0.5f, f[8][l], f[7][l]);                                               \
          f[7][l] = 0.5f * f[7][l];                                                             \
          f[8][l] = 1.0f + f[7][l];                                                             \
          u[15][l] = u[16][l] | u[11][l];                                                       \
          u[16][l] = (u[15][l] << 2) + u[12][l];                                                \
          f[9][l] = f[8][l] + f[2][l];                                                          \
        }                                                                                       \
    uint32_t sum = 0;                                                                           \
    for (int l = 0; l < LANES; ++l) {                                                           \
      for (int r = 10; r < 17; ++r) sum += u[r][l];                                             \
      for (int r = 2; r < 10; ++r) sum += (uint32_t)f[r][l];                                    \
    }                                                                                           \
    return sum;                                                                                 \
  }
VALU(64)
VALU(32)

// ---- matrices: 32 products a round, 16 x 16 x K, of operands that are f32 already ----------------

#define MATRIX(K)                                                                               \
  static uint32_t matrix##K(uint64_t rounds) {                                                  \
    static _Thread_local _Alignas(64) float x[16][K], y[K][16], c[4][16][16];                   \
    for (int k = 0; k < 16 * K; ++k) x[k / K][k % K] = y[k / 16][k % 16] = k % 3 ? 1.5f : -3.f; \
    for (uint64_t n = 0; n < rounds; ++n)                                                       \
      for (int t = 0; t < 32; ++t) {                                                            \
        float(*d)[16] = c[t % 4];                                                               \
        for (int i = 0; i < 16; i += 4) {                                                       \
          float acc[4][16];                                                                     \
          memcpy(acc, d[i], sizeof acc);                                                        \
          for (int k = 0; k < K; ++k)                                                           \
            for (int r = 0; r < 4; ++r)                                                         \
              for (int j = 0; j < 16; ++j) acc[r][j] = fmaf(x[i + r][k], y[k][j], acc[r][j]);   \
          memcpy(d[i], acc, sizeof acc);                                                        \
        }                                                                                       \
        __asm__ volatile("" ::: "memory");                                                      \
      }                                                                                         \
    uint32_t sum = 0;                                                                           \
    for (int k = 0; k < 1024; ++k) sum += (uint32_t)(int32_t)((float*)c)[k];                    \
    return sum;                                                                                 \
  }
MATRIX(16)
MATRIX(32)
MATRIX(128)

// ---- GEMM: c[1024][1024] = a[1024][1024] * b[1024][1024]^T in FP8, one chain over k --------------

static float fp8_value[256];
static float from_fp8(int x) {
  const int e = x >> 3 & 15, m = x & 7;
  const float v = e ? ldexpf((float)(8 + m), e - 10) : ldexpf((float)m, -9);
  return x & 128 ? -v : v;
}

enum { kN = 1024, kRows = 4, kCols = 32 };
static float gemm_a[kN][kN], gemm_b[kN][kN], gemm_c[kN][kN];
static uint8_t code_a[kN][kN], code_b[kN][kN];

// Rows [first, last) of the result; each thread decodes its rows of a, and its share of b.
static uint32_t gemm_rows(int first, int last) {
  for (int i = first; i < last; i += kRows)
    for (int j = 0; j < kN; j += kCols) {
      float acc[kRows][kCols] = {{0}};
      for (int k = 0; k < kN; ++k)
        for (int r = 0; r < kRows; ++r)
          for (int n = 0; n < kCols; ++n)
            acc[r][n] = fmaf(gemm_a[i + r][k], gemm_b[k][j + n], acc[r][n]);
      for (int r = 0; r < kRows; ++r) memcpy(&gemm_c[i + r][j], acc[r], sizeof acc[r]);
    }
  return (uint32_t)(int32_t)gemm_c[first][last - 1];
}
static pthread_barrier_t decoded;
static uint32_t gemm(uint64_t part, uint64_t parts) {
  const int first = (int)(kN * part / parts), last = (int)(kN * (part + 1) / parts);
  for (int i = first; i < last; ++i)
    for (int k = 0; k < kN; ++k) {
      gemm_a[i][k] = fp8_value[code_a[i][k]];
      gemm_b[k][i] = fp8_value[code_b[i][k]];
    }
  pthread_barrier_wait(&decoded);
  return gemm_rows(first, last);
}

// ---- ------------------------------------------------------------------------------------------

static const struct {
  const char* name;
  uint32_t (*run)(uint64_t rounds);
} kLoops[] = {
    {"valu64", valu64}, {"valu32", valu32}, {"matrix16", matrix16}, {"matrix32", matrix32},
    {"matrix128", matrix128}, {"gemm", NULL},
};
static uint32_t (*g_run)(uint64_t);
static uint64_t g_rounds, g_threads;
static volatile uint32_t g_sink;

static void* work(void* part) {
  g_sink += g_run ? g_run(g_rounds) : gemm((uint64_t)(uintptr_t)part, g_threads);
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 4) return fprintf(stderr, "usage: native LOOP THREADS ROUNDS\n"), 2;
  size_t at = 0;
  while (at < sizeof kLoops / sizeof *kLoops && strcmp(kLoops[at].name, argv[1])) ++at;
  if (at == sizeof kLoops / sizeof *kLoops) return fprintf(stderr, "%s: no such loop\n", argv[1]), 2;
  g_run = kLoops[at].run;
  g_threads = strtoull(argv[2], NULL, 10);
  g_rounds = strtoull(argv[3], NULL, 10);
  for (int x = 0; x < 256; ++x) fp8_value[x] = from_fp8(x);
  for (int k = 0; k < kN * kN; ++k) {
    ((uint8_t*)code_a)[k] = (uint8_t)((k * 37 & 0x87) | 0x30);
    ((uint8_t*)code_b)[k] = (uint8_t)((k * 73 & 0x87) | 0x30);
  }
  pthread_barrier_init(&decoded, NULL, (unsigned)g_threads);
  pthread_t pool[64];
  if (g_threads < 1 || g_threads > 64) return 2;
  const double wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
  for (uint64_t t = 1; t < g_threads; ++t) pthread_create(&pool[t], NULL, work, (void*)(uintptr_t)t);
  work(NULL);
  for (uint64_t t = 1; t < g_threads; ++t) pthread_join(pool[t], NULL);
  printf("%.9f %.9f\n", now(CLOCK_MONOTONIC) - wall, now(CLOCK_PROCESS_CPUTIME_ID) - cpu);
  return 0;
}
