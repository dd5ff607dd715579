// C[m][n] = sum over k of A[m][k] * B[n][k]: a blocked product of bf16 matrices, staged through LDS.
//
// One workgroup makes 64 x 64 of C in 4 waves of 16 rows each, 32 k at a time. M and N are multiples
// of 64, K of 32. Grid (N / 64, M / 64). FP8_B: B holds E4M3FN codes, widened to bf16 on the way in.
typedef unsigned short u16;
typedef unsigned char u8;
typedef float f32x4 __attribute__((ext_vector_type(4)));
typedef float f32x8 __attribute__((ext_vector_type(8)));
typedef short i16x8 __attribute__((ext_vector_type(8)));
typedef short i16x16 __attribute__((ext_vector_type(16)));
typedef __bf16 bf16x8 __attribute__((ext_vector_type(8)));
#define GLOBAL __attribute__((address_space(1)))
#define LOCAL __attribute__((address_space(3)))
enum { TILE = 64, STEP = 32, PITCH = STEP + 8 };

static LOCAL u16 a_tile[TILE * PITCH] __attribute__((loader_uninitialized, aligned(32)));
static LOCAL u16 b_tile[TILE * PITCH] __attribute__((loader_uninitialized, aligned(32)));

#ifdef FP8_B
typedef u8 b_element;
// E4M3FN to bf16, exactly: 120 more of exponent; denormals through the float unit.
static u16 widen(u8 code) {
  const unsigned magnitude = code & 0x7f;
  union { unsigned u; float f; } x = {magnitude << 20};
  x.f *= 0x1p120f;
  return (u16)((code & 0x80) << 8 | (magnitude == 0x7f ? 0x7fc0 : x.u >> 16));
}
#else
typedef u16 b_element;
static u16 widen(u16 code) { return code; }
#endif

static void barrier(void) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

__attribute__((amdgpu_kernel, amdgpu_flat_work_group_size(4 * WAVE, 4 * WAVE)))
void gemm(const GLOBAL u16* a, const GLOBAL b_element* b, GLOBAL float* c, int n_count, int k_count) {
  const int thread = __builtin_amdgcn_workitem_id_x(), lane = thread % WAVE, wave = thread / WAVE;
  const int column = __builtin_amdgcn_workgroup_id_x() * TILE, row = __builtin_amdgcn_workgroup_id_y() * TILE;
#if WAVE == 64
  f32x4 sum[4] = {};
#else
  f32x8 sum[4] = {};
#endif
  for (int k = 0; k < k_count; k += STEP) {
    for (int e = thread; e < TILE * STEP; e += 4 * WAVE) {
      const int r = e / STEP, at = e % STEP;
      a_tile[r * PITCH + at] = a[(row + r) * k_count + k + at];
      b_tile[r * PITCH + at] = widen(b[(column + r) * k_count + k + at]);
    }
    barrier();
    const LOCAL u16* own = a_tile + (wave * 16 + lane % 16) * PITCH;
    for (int t = 0; t < 4; ++t) {
      const LOCAL u16* other = b_tile + (t * 16 + lane % 16) * PITCH;
#if WAVE == 64
      bf16x8 x = *(const LOCAL bf16x8*)(own + lane / 16 * 8), y = *(const LOCAL bf16x8*)(other + lane / 16 * 8);
      sum[t] = __builtin_amdgcn_mfma_f32_16x16x32_bf16(x, y, sum[t], 0, 0, 0);
#else
      for (int half = 0; half < STEP; half += 16) {
        i16x16 x = *(const LOCAL i16x16*)(own + half), y = *(const LOCAL i16x16*)(other + half);
        sum[t] = __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(x, y, sum[t]);
      }
#endif
    }
    barrier();
  }
  for (int t = 0; t < 4; ++t)
    for (int v = 0; v < (WAVE == 64 ? 4 : 8); ++v) {
      const int r = row + wave * 16 + (WAVE == 64 ? lane / 16 * 4 + v : 2 * v + lane / 16);
      c[r * n_count + column + t * 16 + lane % 16] = sum[t][v];
    }
}
