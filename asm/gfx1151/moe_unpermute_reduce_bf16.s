// moe_unpermute_reduce_bf16 - out[t] = sum over j of weights[t][j] * y[positions[t][j]], bf16
//
// Contract   y bf16 [rows][width]; positions i32, weights f32 [tokens][k], k 1..10; out bf16
//            [tokens][width], disjoint from all else.  Rows of y and of out may be apart; they are
//            16-byte aligned, and width is a multiple of 8.  A position outside 0..rows - 1 adds
//            nothing, whatever its weight.
// Launch     grid (ceil(width / 2048), tokens), block 256 (8 waves), no LDS, no scratch.
// Numerics   f32: one fma for each j, rising, from +0; then one rounding to bf16, to nearest even.
// Oracle     moe_unpermute_reduce (harness/netra_harness/oracles/moe_unpermute_reduce.py)
// Schedule   Positions and weights are scalar: one that is left out is a branch for the whole
//            workgroup.  All rows are in flight before the first is used.  8 columns a lane.

        #include "gfx1151.inc"

        karg    kY,          0, 8       // const bf16*
        karg    kPositions,  8, 8       // const int32*
        karg    kWeights,   16, 8       // const float*
        karg    kOut,       24, 8       // bf16*, written
        karg    kRows,      32, 4       // uint32
        karg    kWidth,     36, 4       // uint32
        karg    kK,         40, 4       // uint32
        karg    kYStride,   44, 4       // uint32: bytes
        karg    kOutStride, 48, 4       // uint32: bytes

        sreg    sKarg,       0, 2       // on entry: kernarg pointer
        sreg    sPart,       2          // on entry: 2048 columns
        sreg    sToken,      3          // on entry: token
        sreg    sY,          4, 2
        sreg    sPositions,  6, 2
        sreg    sWeights,    8, 2
        sreg    sOut,       10, 2
        sreg    sRows,      12
        sreg    sWidth,     13
        sreg    sK,         14
        sreg    sYStride,   15
        sreg    sOutStride, 16
        sreg    sTmp,       18, 2
        sreg    sP,         20, 10      // positions of the token
        sreg    sW,         30, 10      // weights of the token

        vreg    vTid,        0          // on entry: 0..255
        vreg    vOff,        1          // bytes of a row before this lane's columns
        vreg    vY,          2, 40      // 8 columns of 10 rows
        vreg    vSum,       42, 8
        vreg    vA,         50, 2          // an element, widened; what rounding adds

        kernel  moe_unpermute_reduce_bf16, grid=2

        s_load_b256     s[sY:sOut+1], s[sKarg:sKarg+1], kY
        s_load_b128     s[sRows:sYStride], s[sKarg:sKarg+1], kRows
        s_load_b32      s[sOutStride], s[sKarg:sKarg+1], kOutStride
        s_lshl_b32      s[sPart], s[sPart], 11
        v_lshl_add_u32  v[vOff], v[vTid], 3, s[sPart]           // first column
        s_waitcnt       lgkmcnt(0)
        v_cmpx_gt_u32   s[sWidth], v[vOff]
        s_cbranch_execz .Lend
        v_lshlrev_b32   v[vOff], 1, v[vOff]
        s_mul_i32       s[sTmp], s[sToken], s[sK]
        s_lshl_b32      s[sTmp], s[sTmp], 2
        .irp    j, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
        .if     \j > 0
        s_cmp_le_u32    s[sK], \j
        s_cbranch_scc1  .Lnamed
        s_add_i32       s[sTmp], s[sTmp], 4
        .endif
        s_load_b32      s[sP+\j], s[sPositions:sPositions+1], s[sTmp]
        s_load_b32      s[sW+\j], s[sWeights:sWeights+1], s[sTmp]
        .endr
.Lnamed:
        s_waitcnt       lgkmcnt(0)

// A position that is not below rows, as an unsigned number, is left out.

        .irp    j, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
        .if     \j > 0
        s_cmp_le_u32    s[sK], \j
        s_cbranch_scc1  .Lloaded
        .endif
        s_cmp_ge_u32    s[sP+\j], s[sRows]
        s_cbranch_scc1  .Lload\j
        s_mul_i32       s[sTmp], s[sP+\j], s[sYStride]
        s_mul_hi_u32    s[sTmp+1], s[sP+\j], s[sYStride]
        s_add_u32       s[sTmp], s[sTmp], s[sY]
        s_addc_u32      s[sTmp+1], s[sTmp+1], s[sY+1]
        global_load_b128 v[vY+4*\j:vY+4*\j+3], v[vOff], s[sTmp:sTmp+1]
.Lload\j:
        .endr
.Lloaded:
        .irp    c, 0, 1, 2, 3, 4, 5, 6, 7
        v_mov_b32       v[vSum+\c], 0
        .endr
        s_waitcnt       vmcnt(0)
        .irp    j, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9
        .if     \j > 0
        s_cmp_le_u32    s[sK], \j
        s_cbranch_scc1  .Lsummed
        .endif
        s_cmp_ge_u32    s[sP+\j], s[sRows]
        s_cbranch_scc1  .Ladd\j
        .irp    d, 0, 1, 2, 3
        v_lshlrev_b32   v[vA], 16, v[vY+4*\j+\d]
        v_and_b32       v[vA+1], 0xffff0000, v[vY+4*\j+\d]
        v_fmac_f32      v[vSum+2*\d], s[sW+\j], v[vA]
        v_fmac_f32      v[vSum+2*\d+1], s[sW+\j], v[vA+1]
        .endr
.Ladd\j:
        .endr
.Lsummed:

// To bf16, to nearest even: add 0x7fff and the lowest bit that stays, keep the high half.  A NaN is
// made quiet instead, so that its payload does not carry.

        .irp    c, 0, 1, 2, 3, 4, 5, 6, 7
        v_bfe_u32       v[vA], v[vSum+\c], 16, 1
        v_add3_u32      v[vA], v[vSum+\c], v[vA], 0x7fff
        v_or_b32        v[vA+1], 0x00400000, v[vSum+\c]
        v_cmp_u_f32     vcc_lo, v[vSum+\c], v[vSum+\c]
        v_cndmask_b32   v[vSum+\c], v[vA], v[vA+1], vcc_lo
        .endr
        .irp    d, 0, 1, 2, 3
        v_perm_b32      v[vSum+\d], v[vSum+2*\d+1], v[vSum+2*\d], 0x07060302
        .endr
        s_mul_i32       s[sTmp], s[sToken], s[sOutStride]
        s_mul_hi_u32    s[sTmp+1], s[sToken], s[sOutStride]
        s_add_u32       s[sOut], s[sOut], s[sTmp]
        s_addc_u32      s[sOut+1], s[sOut+1], s[sTmp+1]
        global_store_b128 v[vOff], v[vSum:vSum+3], s[sOut:sOut+1]
.Lend:
        endkernel

        .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx1151
amdhsa.kernels:
  - .name: moe_unpermute_reduce_bf16
    .symbol: moe_unpermute_reduce_bf16.kd
    .kernarg_segment_size: 56
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 32
    .sgpr_count: 42
    .vgpr_count: 52
    .max_flat_workgroup_size: 256
    .args:
      - {.name: y, .offset: 0, .size: 8,
         .value_kind: global_buffer, .address_space: global}
      - {.name: positions, .offset: 8, .size: 8,
         .value_kind: global_buffer, .address_space: global}
      - {.name: weights, .offset: 16, .size: 8,
         .value_kind: global_buffer, .address_space: global}
      - {.name: out, .offset: 24, .size: 8,
         .value_kind: global_buffer, .address_space: global}
      - {.name: rows,       .offset: 32, .size: 4, .value_kind: by_value}
      - {.name: width,      .offset: 36, .size: 4, .value_kind: by_value}
      - {.name: k,          .offset: 40, .size: 4, .value_kind: by_value}
      - {.name: y_stride,   .offset: 44, .size: 4, .value_kind: by_value}
      - {.name: out_stride, .offset: 48, .size: 4, .value_kind: by_value}
...
        .end_amdgpu_metadata
