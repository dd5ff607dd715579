// expert_weighted_reduce_top8_f64 - out[t] = bf16(sum over slot of weights[t][slot] *
//                                   expert[positions[t][slot]]), in f64
//
// Contract   expert f32 [rows][2048], 8-byte aligned; positions i32, weights f32 [tokens][8]; out
//            bf16 [tokens][2048], disjoint from all else; these 4-byte aligned.  Contiguous.  A
//            position outside 0..rows - 1 adds nothing, whatever its weight.  tokens 1..65535.
// Launch     grid (4, tokens), block 256 (8 waves), no LDS, no scratch.
// Numerics   f64: one fma for each slot, rising, from 0; then to f32, then to bf16, both to nearest
//            even.  f32 denormals kept.
// Oracle     expert_weighted_reduce (harness/netra_harness/oracles/expert_weighted_reduce.py)
// Schedule   Positions and weights are scalar: a slot that is left out is one branch for the whole
//            workgroup.  All rows are in flight before the first is used.  2 columns a lane.

        #include "gfx1151.inc"

        karg    kExpert,     0, 8       // const float*
        karg    kPositions,  8, 8       // const int32*
        karg    kWeights,   16, 8       // const float*
        karg    kOut,       24, 8       // bf16*, written
        karg    kRows,      32, 4       // uint32

        sreg    sKarg,       0, 2       // on entry: kernarg pointer
        sreg    sPart,       2          // on entry: 512 columns
        sreg    sToken,      3          // on entry: token
        sreg    sExpert,     4, 2
        sreg    sPositions,  6, 2
        sreg    sWeights,    8, 2
        sreg    sOut,       10, 2
        sreg    sRows,      12
        sreg    sTmp,       14, 2       // address of a row
        sreg    sP,         16, 8       // positions of the token
        sreg    sW,         24, 8       // weights of the token
        sreg    sHigh,      32          // bytes of a row before this part
        sreg    sRowBytes,  33

        vreg    vTid,        0          // on entry: 0..255
        vreg    vOff,        1          // 8 * thread
        vreg    vE,          2, 16      // two columns of 8 rows
        vreg    vSum,       18, 4       // two doubles
        vreg    vA,         22, 4       // two doubles: elements of a row
        vreg    vB,         26, 2       // a double: the weight

        .equiv  vRound,     vA          // what rounding to bf16 adds

        kernel  expert_weighted_reduce_top8_f64, grid=2

        s_load_b256     s[sExpert:sOut+1], s[sKarg:sKarg+1], kExpert
        s_load_b32      s[sRows], s[sKarg:sKarg+1], kRows
        s_lshl_b32      s[sTmp], s[sToken], 5
        v_lshlrev_b32   v[vOff], 3, v[vTid]
        s_lshl_b32      s[sHigh], s[sPart], 11
        s_movk_i32      s[sRowBytes], 2048 * 4
        s_waitcnt       lgkmcnt(0)
        s_load_b256     s[sP:sP+7], s[sPositions:sPositions+1], s[sTmp]
        s_load_b256     s[sW:sW+7], s[sWeights:sWeights+1], s[sTmp]
        v_add_nc_u32    v[vOff], s[sHigh], v[vOff]
        s_waitcnt       lgkmcnt(0)

// A position that is not below rows, as an unsigned number, is left out.

        .irp    i, 0, 1, 2, 3, 4, 5, 6, 7
        s_cmp_ge_u32    s[sP+\i], s[sRows]
        s_cbranch_scc1  .Lload\i
        s_mul_i32       s[sTmp], s[sP+\i], s[sRowBytes]
        s_mul_hi_u32    s[sTmp+1], s[sP+\i], s[sRowBytes]
        s_add_u32       s[sTmp], s[sTmp], s[sExpert]
        s_addc_u32      s[sTmp+1], s[sTmp+1], s[sExpert+1]
        global_load_b64 v[vE+2*\i:vE+2*\i+1], v[vOff], s[sTmp:sTmp+1]
.Lload\i:
        .endr

        v_cvt_f64_i32   v[vSum:vSum+1], 0
        v_cvt_f64_i32   v[vSum+2:vSum+3], 0
        s_waitcnt       vmcnt(0)
        .irp    i, 0, 1, 2, 3, 4, 5, 6, 7
        s_cmp_ge_u32    s[sP+\i], s[sRows]
        s_cbranch_scc1  .Ladd\i
        v_cvt_f64_f32   v[vB:vB+1], s[sW+\i]
        v_cvt_f64_f32   v[vA:vA+1], v[vE+2*\i]
        v_cvt_f64_f32   v[vA+2:vA+3], v[vE+2*\i+1]
        v_fma_f64       v[vSum:vSum+1], v[vB:vB+1], v[vA:vA+1], v[vSum:vSum+1]
        v_fma_f64       v[vSum+2:vSum+3], v[vB:vB+1], v[vA+2:vA+3], v[vSum+2:vSum+3]
.Ladd\i:
        .endr

// To bf16, to nearest even: add 0x7fff and the lowest bit that stays, keep the high half.  A NaN is
// made quiet instead, so that its payload does not carry.

        v_cvt_f32_f64   v[vSum], v[vSum:vSum+1]
        v_cvt_f32_f64   v[vSum+1], v[vSum+2:vSum+3]
        .irp    i, 0, 1
        v_bfe_u32       v[vRound+\i], v[vSum+\i], 16, 1
        v_add3_u32      v[vRound+\i], v[vSum+\i], v[vRound+\i], 0x7fff
        v_or_b32        v[vRound+2], 0x00400000, v[vSum+\i]
        v_cmp_u_f32     vcc_lo, v[vSum+\i], v[vSum+\i]
        v_cndmask_b32   v[vSum+\i], v[vRound+\i], v[vRound+2], vcc_lo
        .endr
        v_perm_b32      v[vSum], v[vSum+1], v[vSum], 0x07060302
        v_lshrrev_b32   v[vOff], 1, v[vOff]
        s_lshl_b32      s[sTmp], s[sToken], 12
        v_add_nc_u32    v[vOff], s[sTmp], v[vOff]
        global_store_b32 v[vOff], v[vSum], s[sOut:sOut+1]
        endkernel

        .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx1151
amdhsa.kernels:
  - .name: expert_weighted_reduce_top8_f64
    .symbol: expert_weighted_reduce_top8_f64.kd
    .kernarg_segment_size: 40
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 32
    .sgpr_count: 36
    .vgpr_count: 28
    .max_flat_workgroup_size: 256
    .args:
      - {.name: expert, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: positions, .offset: 8, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: weights, .offset: 16, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: out, .offset: 24, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: rows, .offset: 32, .size: 4, .value_kind: by_value}
...
        .end_amdgpu_metadata
