// gemv_m1_fp8_blockscale_n2048_k4096 - out[n] = bf16(sum over b of wscale[n / 128][b] *
//        (ascale[b] * (act[b] . w[n][b]))), where b is a block of 128 of 4096 k
//
// Contract   act f8e4m3fn [1][4096], ascale f32 [1][32]; w f8e4m3fn [2048][4096], shuffled: 16
//            rows by 16 k at a time, [n / 16][k / 16][16 n][16 k]; wscale f32 [16][32]; out
//            bf16 [1][2048], disjoint from all else.  Contiguous; act and w 16-byte, out 8-byte,
//            scales 4-byte aligned.
// Launch     grid (128), block 64 (1 wave, 16 rows), no LDS, no scratch.
// Numerics   Each block's dot product is one MFMA from 0, whose adder is the named model; then f32
//            with three roundings: times ascale, times wscale, plus the sum so far, blocks rising
//            from 0.  The sum is rounded to bf16, nearest even.
// Oracle     gemv_fp8_blockscale (harness/netra_harness/oracles/gemv_fp8_blockscale.py)
// Schedule   A block's operands are asked for as soon as the MFMA before has taken the registers,
//            so one block is always under way.  The 16 columns of the MFMA all see the row of act.

        #include "gfx950.inc"

        karg    kAct,      0, 8         // const f8e4m3fn*
        karg    kAscale,   8, 8         // const float*
        karg    kW,       16, 8         // const f8e4m3fn*, shuffled
        karg    kWscale,  24, 8         // const float*
        karg    kOut,     32, 8         // bf16*, written

        sreg    sKarg,     0, 2         // on entry: kernarg pointer
        sreg    sTile,     2            // on entry: 16 rows
        sreg    sTmp,      3
        sreg    sAct,      4, 2
        sreg    sAscale,   6, 2
        sreg    sW,        8, 2
        sreg    sWscale,  10, 2
        sreg    sOut,     12, 2
        sreg    sNext,    14, 2         // ascale and wscale of the block under way
        sreg    sScale,   16, 2         // those of the block in the MFMA
        sreg    sB,       18            // 4 * block under way

        vreg    vLane,     0            // on entry: 0..63
        vreg    vOff,      1            // 16 * lane, and further on for each block: of w
        vreg    vA,        2, 8         // w: lane l has row l % 16, k 16 (l / 16) and 64 further
        vreg    vB,       10, 8         // act: the same k
        vreg    vM,       18, 4         // rows 4 (l / 16) and up, column l % 16
        vreg    vAcc,     22, 4
        vreg    vOffA,    26            // 16 * (lane / 16), and further on: of act

        kernel  gemv_m1_fp8_blockscale_n2048_k4096

        s_load_dwordx8  s[sAct:sWscale+1], s[sKarg:sKarg+1], kAct
        s_load_dwordx2  s[sOut:sOut+1], s[sKarg:sKarg+1], kOut
        s_mul_i32       s[sTmp], s[sTile], 65536
        v_lshlrev_b32   v[vOff], 4, v[vLane]
        v_lshrrev_b32   v[vOffA], 4, v[vLane]
        v_add_u32       v[vOff], s[sTmp], v[vOff]
        v_lshlrev_b32   v[vOffA], 4, v[vOffA]
        v_mov_b64       v[vAcc:vAcc+1], 0
        v_mov_b64       v[vAcc+2:vAcc+3], 0
        s_lshr_b32      s[sTmp], s[sTile], 3
        s_mul_i32       s[sTmp], s[sTmp], 128
        s_mov_b32       s[sB], 0
        s_waitcnt       lgkmcnt(0)
        s_add_u32       s[sWscale], s[sWscale], s[sTmp]
        s_addc_u32      s[sWscale+1], s[sWscale+1], 0

.Lask:
        global_load_dwordx4 v[vA:vA+3], v[vOff], s[sW:sW+1]
        global_load_dwordx4 v[vA+4:vA+7], v[vOff], s[sW:sW+1] offset:1024
        global_load_dwordx4 v[vB:vB+3], v[vOffA], s[sAct:sAct+1]
        global_load_dwordx4 v[vB+4:vB+7], v[vOffA], s[sAct:sAct+1] offset:64
        s_load_dword    s[sNext], s[sAscale:sAscale+1], s[sB]
        s_load_dword    s[sNext+1], s[sWscale:sWscale+1], s[sB]
        v_add_u32       v[vOff], 0x800, v[vOff]
        v_add_u32       v[vOffA], 0x80, v[vOffA]
        s_cmp_eq_u32    s[sB], 0
        s_cbranch_scc1  .Lmultiply      // nothing to add up yet

.Ladd:
        s_nop           7               // 12 wait states after the MFMA, with the 4 before this
        v_pk_mul_f32    v[vM:vM+1], v[vM:vM+1], s[sScale:sScale+1] op_sel_hi:[1,0]
        v_pk_mul_f32    v[vM+2:vM+3], v[vM+2:vM+3], s[sScale:sScale+1] op_sel_hi:[1,0]
        v_pk_mul_f32    v[vM:vM+1], v[vM:vM+1], s[sScale:sScale+1] op_sel:[0,1]
        v_pk_mul_f32    v[vM+2:vM+3], v[vM+2:vM+3], s[sScale:sScale+1] op_sel:[0,1]
        v_pk_add_f32    v[vAcc:vAcc+1], v[vAcc:vAcc+1], v[vM:vM+1]
        v_pk_add_f32    v[vAcc+2:vAcc+3], v[vAcc+2:vAcc+3], v[vM+2:vM+3]
        s_cmp_gt_u32    s[sB], 124
        s_cbranch_scc1  .Lstore

.Lmultiply:
        s_waitcnt       vmcnt(0) lgkmcnt(0)
        v_mfma_f32_16x16x128_f8f6f4 v[vM:vM+3], v[vA:vA+7], v[vB:vB+7], 0
        s_mov_b64       s[sScale:sScale+1], s[sNext:sNext+1]
        s_add_u32       s[sB], s[sB], 4
        s_cmp_gt_u32    s[sB], 124
        s_cbranch_scc1  .Ladd
        s_branch        .Lask

// Lane 16 g has rows 4 g..4 g + 3: byte 8 g = lane / 2.

.Lstore:
        v_cvt_pk_bf16_f32 v[vAcc], v[vAcc], v[vAcc+1]
        v_cvt_pk_bf16_f32 v[vAcc+1], v[vAcc+2], v[vAcc+3]
        s_lshl_b32      s[sTmp], s[sTile], 5
        v_lshrrev_b32   v[vOff], 1, v[vLane]
        v_add_u32       v[vOff], s[sTmp], v[vOff]
        s_mov_b32       exec_lo, 0x00010001
        s_mov_b32       exec_hi, 0x00010001
        global_store_dwordx2 v[vOff], v[vAcc:vAcc+1], s[sOut:sOut+1]
        endkernel

        .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx950
amdhsa.kernels:
  - .name: gemv_m1_fp8_blockscale_n2048_k4096
    .symbol: gemv_m1_fp8_blockscale_n2048_k4096.kd
    .kernarg_segment_size: 40
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 25
    .vgpr_count: 27
    .agpr_count: 0
    .max_flat_workgroup_size: 64
    .args:
      - {.name: act, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: ascale, .offset: 8, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: w, .offset: 16, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: wscale, .offset: 24, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: out, .offset: 32, .size: 8, .value_kind: global_buffer, .address_space: global}
...
        .end_amdgpu_metadata
