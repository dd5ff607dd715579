// gemm_fp8_bf16 - out[i][j] = bf16(a_scale * b_scale * sum over l of a[i][l] * b[j][l])
//
// Contract   a f8e4m3fn [m][k], b f8e4m3fn [n][k], out bf16 [m][n]; contiguous, 16-byte aligned
//            (out: 8); byte offsets below 2^32.  m >= 1: rows past it repeat row m - 1 and are not
//            stored.  n and k multiples of 128, k >= 128.  a_scale and b_scale f32, one each.  out
//            is disjoint from all others.
// Launch     grid (n / 128, ceil(m / 128)), block 256 (4 waves), 65536 bytes of LDS, no scratch.
// Numerics   products in the matrix units (32x32x64), f32 sums, k ascending from step to step.  The
//            product of the scales rounds once, sum * scale once, bf16 once, to nearest even.
//            Denormals kept.  A NaN code makes its row or column NaN.
// Oracle     gemm_fp8 (harness/netra_harness/oracles/gemm_fp8.py)
// Schedule   A workgroup owns 128 x 128 of out, a wave 64 x 64 in four accumulators.  The next 128
//            columns of a and b go from memory to the other half of LDS, past the registers, while
//            this step multiplies.  LDS holds rows of 128 bytes as 8 chunks of 16, chunk c of row r
//            at place c ^ (r % 8), so that the lanes of a read meet in no bank.  b's rows are the
//            rows of the accumulator: a lane then holds runs of four consecutive j.

        #include "gfx950.inc"

        .equiv  STEP,        128        // columns of a and b a step
        .equiv  TILE_BYTES,  16384      // 128 rows of STEP bytes
        .equiv  HALF_BYTES,  32768      // a's tile, then b's

        karg    kA,       0, 8          // const f8e4m3fn*
        karg    kB,       8, 8          // const f8e4m3fn*
        karg    kOut,    16, 8          // bf16*, written
        karg    kAScale, 24, 8          // const float*
        karg    kBScale, 32, 8          // const float*
        karg    kM,      40, 4          // uint32
        karg    kN,      44, 4          // uint32
        karg    kK,      48, 4          // uint32

        sreg    sKarg,    0, 2          // on entry: kernarg pointer
        sreg    sTileN,   2             // on entry: tile of columns of out; then its first
        sreg    sTileM,   3             // on entry: tile of rows of out; then its first
        sreg    sA,       4, 2          // moves on by STEP
        sreg    sB,       6, 2          // likewise
        sreg    sOut,     8, 2
        sreg    sAScale, 10, 2
        sreg    sBScale, 12, 2
        sreg    sM,      14
        sreg    sN,      15
        sreg    sK,      16             // then the steps that are left to load
        sreg    sWave,   17
        sreg    sLds,    18             // where this wave's share of a's next tile goes
        sreg    sLive,   20, 2          // lanes whose row is stored

        .equiv  sTmp,    sKarg          // dead once the arguments are loaded

        vreg    vTid,     0             // on entry: 0..255; then the lane
        vreg    vTmp,     1
        vreg    vLoadA,   2, 4          // byte offset in a of the lane's chunk, by load
        vreg    vLoadB,   6, 4
        vreg    vReadA,  10, 4          // LDS address by chunk pair: of a's rows
        vreg    vReadB,  14, 4          // and of b's
        vreg    vFragA,  18, 32         // [half of the step][tile of 32 rows][8 registers]
        vreg    vFragB,  50, 32
        vreg    vAcc,    82, 64         // [tile of b's rows][tile of a's rows][16 registers]
        vreg    vLast,  146             // m - 1; then the scale

        .equiv  vRow,    vLoadA         // the addresses are dead after the last step
        .equiv  vOff,    vLoadA + 1
        .equiv  vScale,  vLast
        .equiv  vPair,   vLoadB         // two registers of two bf16 each

        kernel  gemm_fp8_bf16, lds=65536, grid=2

        s_load_dwordx8  s[sA:sAScale+1], s[sKarg:sKarg+1], kA
        s_load_dwordx4  s[sBScale:sN], s[sKarg:sKarg+1], kBScale
        s_load_dword    s[sK], s[sKarg:sKarg+1], kK
        v_lshrrev_b32   v[vTmp], 6, v[vTid]
        v_and_b32       v[vTid], 63, v[vTid]
        s_lshl_b32      s[sTileN], s[sTileN], 7
        s_lshl_b32      s[sTileM], s[sTileM], 7
        v_readfirstlane_b32 s[sWave], v[vTmp]
        s_waitcnt       lgkmcnt(0)
        s_load_dword    s[sAScale], s[sAScale:sAScale+1], 0
        s_load_dword    s[sBScale], s[sBScale:sBScale+1], 0

// A wave loads rows 32 wave .. 32 wave + 31 of both tiles, eight rows a load: lane l takes row
// l / 8, and for place l % 8 in LDS the chunk that belongs there.

        s_sub_u32       s[sTmp], s[sM], 1
        v_mov_b32       v[vLast], s[sTmp]
        s_lshl_b32      s[sTmp], s[sWave], 5
        v_lshrrev_b32   v[vTmp], 3, v[vTid]
        v_add_u32       v[vTmp], s[sTmp], v[vTmp]               // row in the tile
        .irp    j, 0, 1, 2, 3
        v_add_u32       v[vLoadB+\j], s[sTileN], v[vTmp]
        v_add_u32       v[vLoadA+\j], s[sTileM], v[vTmp]
        v_add_u32       v[vLoadB+\j], 8 * \j, v[vLoadB+\j]
        v_add_u32       v[vLoadA+\j], 8 * \j, v[vLoadA+\j]
        v_min_u32       v[vLoadA+\j], v[vLoadA+\j], v[vLast]
        v_mul_lo_u32    v[vLoadB+\j], v[vLoadB+\j], s[sK]
        v_mul_lo_u32    v[vLoadA+\j], v[vLoadA+\j], s[sK]
        .endr
        v_lshrrev_b32   v[vTmp], 3, v[vTid]
        v_xor_b32       v[vTmp], v[vTmp], v[vTid]
        v_and_b32       v[vTmp], 7, v[vTmp]
        v_lshlrev_b32   v[vTmp], 4, v[vTmp]
        .irp    j, 0, 1, 2, 3
        v_add_u32       v[vLoadA+\j], v[vLoadA+\j], v[vTmp]
        v_add_u32       v[vLoadB+\j], v[vLoadB+\j], v[vTmp]
        .endr
        s_lshl_b32      s[sLds], s[sWave], 12

// Lane l of an operand holds row l % 32, and of each 64 columns the chunks l / 32 and 2 + l / 32.
// Wave w multiplies rows 64 (w % 2) of a's tile with rows 64 (w / 2) of b's.

        v_and_b32       v[vTmp], 31, v[vTid]
        v_lshlrev_b32   v[vTmp], 7, v[vTmp]
        s_and_b32       s[sTmp], s[sWave], 1
        s_lshl_b32      s[sTmp], s[sTmp], 13
        s_lshr_b32      s[sTmp+1], s[sWave], 1
        s_lshl_b32      s[sTmp+1], s[sTmp+1], 13
        s_add_u32       s[sTmp+1], s[sTmp+1], TILE_BYTES
        .irp    c, 0, 1, 2, 3
        v_lshrrev_b32   v[vReadA+\c], 5, v[vTid]
        v_or_b32        v[vReadA+\c], 2 * \c, v[vReadA+\c]      // chunk
        v_xor_b32       v[vReadA+\c], v[vReadA+\c], v[vTid]
        v_and_b32       v[vReadA+\c], 7, v[vReadA+\c]           // place
        v_lshl_add_u32  v[vReadA+\c], v[vReadA+\c], 4, v[vTmp]
        v_add_u32       v[vReadB+\c], s[sTmp+1], v[vReadA+\c]
        v_add_u32       v[vReadA+\c], s[sTmp], v[vReadA+\c]
        .endr
        .set    .acc, vAcc
        .rept   64
        v_mov_b32       v[.acc], 0
        .set    .acc, .acc + 1
        .endr

// The first step's tiles.

        .irp    j, 0, 1, 2, 3
        s_add_u32       m0, s[sLds], 1024 * \j
        s_nop           0
        global_load_lds_dwordx4 v[vLoadA+\j], s[sA:sA+1]
        s_add_u32       m0, s[sLds], TILE_BYTES + 1024 * \j
        s_nop           0
        global_load_lds_dwordx4 v[vLoadB+\j], s[sB:sB+1]
        .endr
        s_sub_u32       s[sK], s[sK], STEP

// A step: when every wave's tiles have arrived, and every wave is done with the other half of LDS,
// the next tiles are sent for.

.Lstep:
        s_waitcnt       vmcnt(0)
        s_barrier
        s_xor_b32       s[sLds], s[sLds], HALF_BYTES
        s_cmp_eq_u32    s[sK], 0
        s_cbranch_scc1  .Lmultiply
        s_add_u32       s[sA], s[sA], STEP
        s_addc_u32      s[sA+1], s[sA+1], 0
        s_add_u32       s[sB], s[sB], STEP
        s_addc_u32      s[sB+1], s[sB+1], 0
        .irp    j, 0, 1, 2, 3
        s_add_u32       m0, s[sLds], 1024 * \j
        s_nop           0
        global_load_lds_dwordx4 v[vLoadA+\j], s[sA:sA+1]
        s_add_u32       m0, s[sLds], TILE_BYTES + 1024 * \j
        s_nop           0
        global_load_lds_dwordx4 v[vLoadB+\j], s[sB:sB+1]
        .endr

.Lmultiply:
        .irp    h, 0, 1
        .irp    t, 0, 1
        .set    .a, vFragA + 16 * \h + 8 * \t
        .set    .b, vFragB + 16 * \h + 8 * \t
        ds_read_b128    v[.a:.a+3], v[vReadA+2*\h] offset:4096*\t
        ds_read_b128    v[.a+4:.a+7], v[vReadA+2*\h+1] offset:4096*\t
        ds_read_b128    v[.b:.b+3], v[vReadB+2*\h] offset:4096*\t
        ds_read_b128    v[.b+4:.b+7], v[vReadB+2*\h+1] offset:4096*\t
        .endr
        .endr
        .irp    c, 0, 1, 2, 3
        v_xor_b32       v[vReadA+\c], HALF_BYTES, v[vReadA+\c]
        v_xor_b32       v[vReadB+\c], HALF_BYTES, v[vReadB+\c]
        .endr
        s_waitcnt       lgkmcnt(8)
        .irp    b, 0, 1
        .irp    a, 0, 1
        .set    .a, vFragA + 8 * \a
        .set    .b, vFragB + 8 * \b
        .set    .acc, vAcc + 32 * \b + 16 * \a
        v_mfma_f32_32x32x64_f8f6f4 v[.acc:.acc+15], v[.b:.b+7], v[.a:.a+7], v[.acc:.acc+15]
        .endr
        .endr
        s_waitcnt       lgkmcnt(0)
        .irp    b, 0, 1
        .irp    a, 0, 1
        .set    .a, vFragA + 16 + 8 * \a
        .set    .b, vFragB + 16 + 8 * \b
        .set    .acc, vAcc + 32 * \b + 16 * \a
        v_mfma_f32_32x32x64_f8f6f4 v[.acc:.acc+15], v[.b:.b+7], v[.a:.a+7], v[.acc:.acc+15]
        .endr
        .endr
        s_cmp_eq_u32    s[sK], 0
        s_cbranch_scc1  .Lstore
        s_sub_u32       s[sK], s[sK], STEP
        s_branch        .Lstep

// Register 4 q + r of an accumulator, lane l: row 8 q + 4 (l / 32) + r of b, row l % 32 of a.  So a
// lane stores four runs of four bf16 a tile, each 16 bytes behind the one before.  Between the last
// multiplication of an accumulator and its first use are 21 instructions: wait states enough (20).

.Lstore:
        v_mov_b32       v[vScale], s[sAScale]
        v_mul_f32       v[vScale], s[sBScale], v[vScale]
        s_and_b32       s[sTmp], s[sWave], 1
        s_lshl_b32      s[sTmp], s[sTmp], 6
        s_add_u32       s[sTileM], s[sTileM], s[sTmp]
        s_lshr_b32      s[sTmp], s[sWave], 1
        s_lshl_b32      s[sTmp], s[sTmp], 6
        s_add_u32       s[sTileN], s[sTileN], s[sTmp]
        v_and_b32       v[vTmp], 31, v[vTid]
        v_add_u32       v[vRow], s[sTileM], v[vTmp]
        v_lshrrev_b32   v[vTmp], 5, v[vTid]
        v_lshl_add_u32  v[vTmp], v[vTmp], 2, s[sTileN]          // first column of the lane
        .irp    a, 0, 1
        v_mul_lo_u32    v[vOff], v[vRow], s[sN]
        v_add_lshl_u32  v[vOff], v[vOff], v[vTmp], 1
        v_cmp_gt_u32    vcc, s[sM], v[vRow]
        s_and_saveexec_b64 s[sLive:sLive+1], vcc
        .irp    b, 0, 1
        .irp    q, 0, 1, 2, 3
        .set    .acc, vAcc + 32 * \b + 16 * \a + 4 * \q
        v_mul_f32       v[.acc], v[.acc], v[vScale]
        v_mul_f32       v[.acc+1], v[.acc+1], v[vScale]
        v_mul_f32       v[.acc+2], v[.acc+2], v[vScale]
        v_mul_f32       v[.acc+3], v[.acc+3], v[vScale]
        v_cvt_pk_bf16_f32 v[vPair], v[.acc], v[.acc+1]
        v_cvt_pk_bf16_f32 v[vPair+1], v[.acc+2], v[.acc+3]
        global_store_dwordx2 v[vOff], v[vPair:vPair+1], s[sOut:sOut+1] offset:64*\b+16*\q
        .endr
        .endr
        s_mov_b64       exec, s[sLive:sLive+1]
        v_add_u32       v[vRow], 32, v[vRow]
        .endr
        endkernel

        .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx950
amdhsa.kernels:
  - .name: gemm_fp8_bf16
    .symbol: gemm_fp8_bf16.kd
    .kernarg_segment_size: 56
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 65536
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 28
    .vgpr_count: 147
    .agpr_count: 0
    .max_flat_workgroup_size: 256
    .args:
      - {.name: a,       .offset: 0,  .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: b,       .offset: 8,  .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: out,     .offset: 16, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: a_scale, .offset: 24, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: b_scale, .offset: 32, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: m,       .offset: 40, .size: 4, .value_kind: by_value}
      - {.name: n,       .offset: 44, .size: 4, .value_kind: by_value}
      - {.name: k,       .offset: 48, .size: 4, .value_kind: by_value}
...
        .end_amdgpu_metadata
