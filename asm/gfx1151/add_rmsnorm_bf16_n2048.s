// add_rmsnorm_bf16_n2048 - residual = bf16(x + residual),
//                          x = bf16(residual * rsqrt(mean(residual^2) + eps) * (1 + w))
//
// Contract   x, residual bf16 [rows][2048], both read and written in place, disjoint; w bf16
//            [2048], disjoint from both; eps f32 >= 0.  Contiguous, 16-byte aligned.  rows
//            1..2^20: byte offsets stay below 2^32.  The sum is rounded, then normalised.
// Launch     grid (rows), block 256 (8 waves), LDS 32 bytes, no scratch.
// Numerics   f32, one rounding an operation, denormals kept (v_rsq takes its own as 0); bf16 to
//            nearest even.  Sum of squares: thread t has elements 8t..8t+7, even ones in one fma
//            chain and odd ones in another, rising, then even + odd; the 256 sums are added in a
//            balanced binary tree over t.  r = rsq(fma(sum, 2^-11, eps));  y = (s * r) * (1 + w).
// Oracle     add_rmsnorm (harness/netra_harness/oracles/add_rmsnorm.py)
// Schedule   All three loads in flight at once.  The residual is stored, and 1 + w made, while
//            the waves meet at the barrier.  Latency bound: one barrier, one trip to LDS.

        #include "gfx1151.inc"

        karg    kX,         0, 8        // bf16*, read and written
        karg    kResidual,  8, 8        // bf16*, read and written
        karg    kW,        16, 8        // const bf16*
        karg    kEps,      24, 4        // float

        sreg    sKarg,      0, 2        // on entry: kernarg pointer
        sreg    sRow,       2           // on entry: row
        sreg    sX,         4, 2
        sreg    sResidual,  6, 2
        sreg    sW,         8, 2
        sreg    sEps,      10, 2        // and the padding behind it
        sreg    sHigh,     12           // mask of the high half
        sreg    sRound,    13           // one less than half of the lowest bit that stays
        sreg    sPick,     14           // v_perm selector: the high halves of both sources

        vreg    vTid,       0           // on entry: 0..255
        vreg    vOff,       1           // 16 * thread; then with the row's offset
        vreg    vX,         2, 4        // bf16 pairs of x; then of the residual; then of the result
        vreg    vR,         6, 4        // bf16 pairs of the residual; then 1 + w, even elements
        vreg    vW,        10, 4        // bf16 pairs of w; then 1 + w, odd elements
        vreg    vS,        14, 8        // the sum, widened
        vreg    vAcc,      22           // sum of squares, then its reciprocal root
        vreg    vTmp,      23

        kernel  add_rmsnorm_bf16_n2048, lds=32

        s_load_b256     s[sX:sEps+1], s[sKarg:sKarg+1], kX
        v_lshlrev_b32   v[vOff], 4, v[vTid]
        s_mov_b32       s[sHigh], 0xffff0000
        s_movk_i32      s[sRound], 0x7fff
        s_mov_b32       s[sPick], 0x07060302
        s_waitcnt       lgkmcnt(0)
        global_load_b128 v[vW:vW+3], v[vOff], s[sW:sW+1]
        v_lshl_add_u32  v[vOff], s[sRow], 12, v[vOff]
        global_load_b128 v[vX:vX+3], v[vOff], s[sX:sX+1]
        global_load_b128 v[vR:vR+3], v[vOff], s[sResidual:sResidual+1]

// s = x + residual, two elements a dword.

        s_waitcnt       vmcnt(0)
        .irp    i, 0, 1, 2, 3
        v_lshlrev_b32   v[vS+2*\i], 16, v[vX+\i]
        v_lshlrev_b32   v[vTmp], 16, v[vR+\i]
        v_and_b32       v[vS+2*\i+1], s[sHigh], v[vX+\i]
        v_and_b32       v[vAcc], s[sHigh], v[vR+\i]
        v_add_f32       v[vS+2*\i], v[vS+2*\i], v[vTmp]
        v_add_f32       v[vS+2*\i+1], v[vS+2*\i+1], v[vAcc]
        .endr

// To bf16, to nearest even: add 0x7fff and the lowest bit that stays, keep the high half.  A NaN
// survives that: it descends from a bf16 or is the default NaN, so its low half is 0, and
// 0 + 0x7fff + 1 does not carry.

        .irp    i, 0, 2, 4, 6
        v_bfe_u32       v[vTmp], v[vS+\i], 16, 1
        v_bfe_u32       v[vAcc], v[vS+\i+1], 16, 1
        v_add3_u32      v[vS+\i], v[vS+\i], v[vTmp], s[sRound]
        v_add3_u32      v[vS+\i+1], v[vS+\i+1], v[vAcc], s[sRound]
        .endr
        .irp    i, 0, 1, 2, 3
        v_perm_b32      v[vX+\i], v[vS+2*\i+1], v[vS+2*\i], s[sPick]
        .endr
        global_store_b128 v[vOff], v[vX:vX+3], s[sResidual:sResidual+1]
        .irp    i, 0, 1, 2, 3, 4, 5, 6, 7
        v_and_b32       v[vS+\i], s[sHigh], v[vS+\i]
        .endr

// Sum of squares of the thread, then of its wave: lanes 1, 2, 4, 8, 16 apart.

        v_mul_f32       v[vAcc], v[vS], v[vS]
        v_mul_f32       v[vTmp], v[vS+1], v[vS+1]
        .irp    i, 2, 4, 6
        v_fmac_f32      v[vAcc], v[vS+\i], v[vS+\i]
        v_fmac_f32      v[vTmp], v[vS+\i+1], v[vS+\i+1]
        .endr
        v_add_f32       v[vAcc], v[vAcc], v[vTmp]

        v_add_f32_dpp   v[vAcc], v[vAcc], v[vAcc] row_xmask:1 row_mask:0xf bank_mask:0xf
        v_add_f32_dpp   v[vAcc], v[vAcc], v[vAcc] row_xmask:2 row_mask:0xf bank_mask:0xf
        v_add_f32_dpp   v[vAcc], v[vAcc], v[vAcc] row_xmask:4 row_mask:0xf bank_mask:0xf
        v_add_f32_dpp   v[vAcc], v[vAcc], v[vAcc] row_xmask:8 row_mask:0xf bank_mask:0xf
        v_permlanex16_b32 v[vTmp], v[vAcc], 0, 0        // lane 0 of the other 16; all are alike
        v_add_f32       v[vAcc], v[vAcc], v[vTmp]

// Lane 0 of wave n leaves the wave's sum at LDS byte 4 n = thread / 8.  Meanwhile, 1 + w.

        v_lshrrev_b32   v[vTmp], 3, v[vTid]
        s_mov_b32       exec_lo, 1
        ds_store_b32    v[vTmp], v[vAcc]
        s_mov_b32       exec_lo, -1
        .irp    i, 0, 1, 2, 3
        v_lshlrev_b32   v[vR+\i], 16, v[vW+\i]
        v_and_b32       v[vW+\i], s[sHigh], v[vW+\i]
        v_add_f32       v[vR+\i], 1.0, v[vR+\i]
        v_add_f32       v[vW+\i], 1.0, v[vW+\i]
        .endr
        s_waitcnt       lgkmcnt(0)
        s_barrier

// Every lane takes one of the 8 sums and ends with their total.

        v_and_b32       v[vTmp], 7, v[vTid]
        v_lshlrev_b32   v[vTmp], 2, v[vTmp]
        ds_load_b32     v[vAcc], v[vTmp]
        s_waitcnt       lgkmcnt(0)
        v_add_f32_dpp   v[vAcc], v[vAcc], v[vAcc] row_xmask:1 row_mask:0xf bank_mask:0xf
        v_add_f32_dpp   v[vAcc], v[vAcc], v[vAcc] row_xmask:2 row_mask:0xf bank_mask:0xf
        v_add_f32_dpp   v[vAcc], v[vAcc], v[vAcc] row_xmask:4 row_mask:0xf bank_mask:0xf
        v_fma_f32       v[vAcc], v[vAcc], 0x3a000000, s[sEps]   // 2^-11 = 1/2048
        v_rsq_f32       v[vAcc], v[vAcc]

// The result, rounded as the residual was.

        .irp    i, 0, 1, 2, 3, 4, 5, 6, 7
        v_mul_f32       v[vS+\i], v[vS+\i], v[vAcc]
        .endr
        .irp    i, 0, 1, 2, 3
        v_mul_f32       v[vS+2*\i], v[vS+2*\i], v[vR+\i]
        v_mul_f32       v[vS+2*\i+1], v[vS+2*\i+1], v[vW+\i]
        .endr
        .irp    i, 0, 2, 4, 6
        v_bfe_u32       v[vTmp], v[vS+\i], 16, 1
        v_bfe_u32       v[vAcc], v[vS+\i+1], 16, 1
        v_add3_u32      v[vS+\i], v[vS+\i], v[vTmp], s[sRound]
        v_add3_u32      v[vS+\i+1], v[vS+\i+1], v[vAcc], s[sRound]
        .endr
        .irp    i, 0, 1, 2, 3
        v_perm_b32      v[vX+\i], v[vS+2*\i+1], v[vS+2*\i], s[sPick]
        .endr
        global_store_b128 v[vOff], v[vX:vX+3], s[sX:sX+1]
        endkernel

        .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx1151
amdhsa.kernels:
  - .name: add_rmsnorm_bf16_n2048
    .symbol: add_rmsnorm_bf16_n2048.kd
    .kernarg_segment_size: 32
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 32
    .private_segment_fixed_size: 0
    .wavefront_size: 32
    .sgpr_count: 17
    .vgpr_count: 24
    .max_flat_workgroup_size: 256
    .args:
      - {.name: x,        .offset: 0,  .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: residual, .offset: 8,  .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: w,        .offset: 16, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: eps,      .offset: 24, .size: 4, .value_kind: by_value}
...
        .end_amdgpu_metadata
