// add_rmsnorm_quant_fp8_n5120 - residual_out = s = bf16(x + residual),
//                               out = bf16(s / sqrt(mean(s^2) + eps) * (1 + w)),
//                               codes = fp8(out / scale), scale = max|out| / 448 of 128
//
// Contract   x, residual bf16 [rows][5120], rows some multiple of 8 elements apart; w bf16 [5120];
//            out, residual_out bf16, codes f8e4m3fn [rows][5120]; scale f32 [40][rows], so by group
//            and then by row.  bf16 16-byte, codes 8-byte aligned.  What is written overlaps
//            nothing else.  rows 1..8192.  The sum is rounded, then normalised; the largest code
//            is 448.
// Launch     grid (rows), block 640 (10 waves), LDS 80 bytes, no scratch.
// Numerics   f32, one rounding an operation, denormals kept; bf16 to nearest even.  Sum of squares:
//            thread t has elements 8 t..8 t + 7, one fma chain over 1, 0, 2, .. 7; lanes 1, 2, 4,
//            .. 32 apart are added, then waves likewise, as if there were 16.  r = 1 / sqrt(sum /
//            5120 + f32(eps)), each step as IEEE has it;  y = bf16((s * r) * (1 + w)).
//            amax = max(1e-10, max|y|) of 128, a NaN passed over; scale = amax * f32(1/448);
//            code = e4m3fn(y * (1 / scale)), the division IEEE's, to nearest even.  |code| is 448
//            but for roundings, below the 464 where codes overflow.  A NaN y gets a NaN code; an
//            infinite one makes the scale infinite, its own code NaN, the others of its group 0.
// Oracle     add_rmsnorm_quant (harness/netra_harness/oracles/add_rmsnorm_quant.py)
// Schedule   All three loads in flight at once, w last: it is needed last, and is widened while the
//            waves meet.  Latency bound: one barrier, one trip to LDS.  10 waves have no tail.

        #include "gfx950.inc"
        #include "ieee.inc"

        karg    kX,               0, 8  // const bf16*
        karg    kResidual,        8, 8  // const bf16*
        karg    kW,              16, 8  // const bf16*
        karg    kOut,            24, 8  // bf16*, written
        karg    kResidualOut,    32, 8  // bf16*, written
        karg    kCodes,          40, 8  // f8e4m3fn*, written
        karg    kScale,          48, 8  // float*, written
        karg    kRows,           56, 4  // uint32
        karg    kXStride,        60, 4  // uint32, elements
        karg    kResidualStride, 64, 4  // uint32, elements
        karg    kEps,            72, 8  // double, used as a float

        sreg    sKarg,            0, 2  // on entry: kernarg pointer
        sreg    sRow,             2     // on entry: row
        sreg    sTmp,             3
        sreg    sX,               4, 2
        sreg    sResidual,        6, 2
        sreg    sW,               8, 2
        sreg    sOut,            10, 2
        sreg    sResidualOut,    12, 2
        sreg    sCodes,          14, 2
        sreg    sScale,          16, 2
        sreg    sRows,           18
        sreg    sXStride,        19
        sreg    sResidualStride, 20
        sreg    sEps,            22, 2

        .equiv  sHigh,  sXStride        // mask of the high half, once the loads are issued
        .equiv  sFloor, sResidualStride // 1e-10
        .equiv  sInvMax, sKarg          // f32(1/448); kernarg pointer is dead by then

        vreg    vTid,   0               // on entry: 0..639
        vreg    vOff,   1               // 16 * thread, with the row's offset
        vreg    vS,     2, 8            // the sum; then the result
        vreg    vX,    10, 4            // bf16 pairs of x; then of what is stored
        vreg    vR,    14, 4            // bf16 pairs of the residual
        vreg    vW,    18, 4            // bf16 pairs of w
        vreg    vAcc,  22               // sum of squares, then r
        vreg    vTmp,  23

        .equiv  vGain,  vX              // 8: 1 + w, once the residual is stored
        .equiv  vD,     vX              // of divisions and root: what is divided by
        .equiv  vE1,    vX + 1          // their scratch
        .equiv  vE2,    vX + 2
        .equiv  vE3,    vX + 3
        .equiv  vE4,    vR
        .equiv  vCode,  vX              // 2 dwords
        .equiv  vAmax,  vX + 2
        .equiv  vScale, vAmax           // replaces it
        .equiv  vErr,   vX + 3
        .equiv  vInv,   vR              // even, as the first of a pair: the second is not read

        kernel  add_rmsnorm_quant_fp8_n5120, lds=80

        s_load_dwordx8  s[sX:sOut+1], s[sKarg:sKarg+1], kX
        s_load_dwordx4  s[sResidualOut:sCodes+1], s[sKarg:sKarg+1], kResidualOut
        s_load_dwordx4  s[sScale:sXStride], s[sKarg:sKarg+1], kScale
        s_load_dword    s[sResidualStride], s[sKarg:sKarg+1], kResidualStride
        s_load_dwordx2  s[sEps:sEps+1], s[sKarg:sKarg+1], kEps
        v_lshlrev_b32   v[vOff], 4, v[vTid]
        s_waitcnt       lgkmcnt(0)
        s_lshl_b32      s[sTmp], s[sRow], 1
        s_mul_i32       s[sXStride], s[sXStride], s[sTmp]
        s_mul_i32       s[sResidualStride], s[sResidualStride], s[sTmp]
        v_add_u32       v[vTmp], s[sXStride], v[vOff]
        v_add_u32       v[vAcc], s[sResidualStride], v[vOff]
        global_load_dwordx4 v[vX:vX+3], v[vTmp], s[sX:sX+1]
        global_load_dwordx4 v[vR:vR+3], v[vAcc], s[sResidual:sResidual+1]
        global_load_dwordx4 v[vW:vW+3], v[vOff], s[sW:sW+1]
        s_mul_i32       s[sTmp], s[sRow], 2*5120
        v_add_u32       v[vOff], s[sTmp], v[vOff]
        s_mov_b32       s[sHigh], 0xffff0000
        s_mov_b32       s[sFloor], 0x2edbe6ff
        s_mov_b32       s[sInvMax], 0x3b124925

// The sum, two elements a dword, rounded and widened again.

        s_waitcnt       vmcnt(1)
        .irp    i, 0, 1, 2, 3
        v_lshlrev_b32   v[vS+2*\i], 16, v[vX+\i]
        v_and_b32       v[vS+2*\i+1], s[sHigh], v[vX+\i]
        v_lshlrev_b32   v[vX+\i], 16, v[vR+\i]
        v_and_b32       v[vR+\i], s[sHigh], v[vR+\i]
        v_add_f32       v[vS+2*\i], v[vS+2*\i], v[vX+\i]
        v_add_f32       v[vS+2*\i+1], v[vS+2*\i+1], v[vR+\i]
        v_cvt_pk_bf16_f32 v[vX+\i], v[vS+2*\i], v[vS+2*\i+1]
        .endr
        global_store_dwordx4 v[vOff], v[vX:vX+3], s[sResidualOut:sResidualOut+1]
        .irp    i, 0, 1, 2, 3
        v_lshlrev_b32   v[vS+2*\i], 16, v[vX+\i]
        v_and_b32       v[vS+2*\i+1], s[sHigh], v[vX+\i]
        .endr

// The squares of a thread, of its wave, of all waves.

        v_mul_f32       v[vAcc], v[vS+1], v[vS+1]
        .irp    i, 0, 2, 3, 4, 5, 6, 7
        v_fmac_f32      v[vAcc], v[vS+\i], v[vS+\i]
        .endr
        s_nop           1
        v_add_f32_dpp   v[vAcc], v[vAcc], v[vAcc] quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
        s_nop           1
        v_add_f32_dpp   v[vAcc], v[vAcc], v[vAcc] quad_perm:[2,3,0,1] row_mask:0xf bank_mask:0xf
        s_nop           1
        v_add_f32_dpp   v[vAcc], v[vAcc], v[vAcc] row_half_mirror row_mask:0xf bank_mask:0xf
        s_nop           1
        v_add_f32_dpp   v[vAcc], v[vAcc], v[vAcc] row_mirror row_mask:0xf bank_mask:0xf
        s_nop           1
        v_add_f32_dpp   v[vAcc], v[vAcc], v[vAcc] row_bcast:15 row_mask:0xa bank_mask:0xf
        s_nop           1
        v_add_f32_dpp   v[vAcc], v[vAcc], v[vAcc] row_bcast:31 row_mask:0xc bank_mask:0xf

// Lane 63 of wave w leaves the wave's sum at LDS byte 4 w, and a zero
// 10 places behind: places 10 to 15 are waves that there are not.

        v_lshrrev_b32   v[vTmp], 6, v[vTid]
        v_lshlrev_b32   v[vTmp], 2, v[vTmp]
        v_mov_b32       v[vE1], 0
        s_mov_b32       exec_lo, 0
        s_brev_b32      exec_hi, 1
        ds_write2_b32   v[vTmp], v[vAcc], v[vE1] offset1:10
        s_mov_b64       exec, -1
        v_and_b32       v[vTmp], 15, v[vTid]
        v_lshlrev_b32   v[vTmp], 2, v[vTmp]
        s_waitcnt       lgkmcnt(0)
        s_barrier
        ds_read_b32     v[vAcc], v[vTmp]
        s_waitcnt       lgkmcnt(0)
        s_nop           0
        v_add_f32_dpp   v[vAcc], v[vAcc], v[vAcc] quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
        s_nop           1
        v_add_f32_dpp   v[vAcc], v[vAcc], v[vAcc] quad_perm:[2,3,0,1] row_mask:0xf bank_mask:0xf
        s_nop           1
        v_add_f32_dpp   v[vAcc], v[vAcc], v[vAcc] row_half_mirror row_mask:0xf bank_mask:0xf
        s_nop           1
        v_add_f32_dpp   v[vAcc], v[vAcc], v[vAcc] row_mirror row_mask:0xf bank_mask:0xf

        v_mov_b32       v[vD], 0x45a00000               // 5120
        ieee_divide v[vTmp], v[vAcc], v[vD], v[vE1], v[vE2], v[vE3], v[vE4]
        v_cvt_f32_f64   v[vE1], s[sEps:sEps+1]
        v_add_f32       v[vTmp], v[vTmp], v[vE1]
        ieee_sqrt v[vD], v[vTmp], v[vE1], v[vE2], v[vE3]
        ieee_divide v[vAcc], 1.0, v[vD], v[vE1], v[vE2], v[vE3], v[vE4]

        s_waitcnt       vmcnt(1)        // w; the store may still be under way
        .irp    i, 0, 1, 2, 3
        v_lshlrev_b32   v[vGain+2*\i], 16, v[vW+\i]
        v_and_b32       v[vGain+2*\i+1], s[sHigh], v[vW+\i]
        .endr
        .irp    i, 0, 2, 4, 6
        v_pk_add_f32    v[vGain+\i:vGain+\i+1], v[vGain+\i:vGain+\i+1], 1.0 op_sel_hi:[1,0]
        .endr
        .irp    i, 0, 2, 4, 6
        v_pk_mul_f32    v[vS+\i:vS+\i+1], v[vS+\i:vS+\i+1], v[vAcc:vAcc+1] op_sel_hi:[1,0]
        .endr
        .irp    i, 0, 2, 4, 6
        v_pk_mul_f32    v[vS+\i:vS+\i+1], v[vS+\i:vS+\i+1], v[vGain+\i:vGain+\i+1]
        .endr
        .irp    i, 0, 1, 2, 3
        v_cvt_pk_bf16_f32 v[vW+\i], v[vS+2*\i], v[vS+2*\i+1]
        .endr
        global_store_dwordx4 v[vOff], v[vW:vW+3], s[sOut:sOut+1]
        .irp    i, 0, 1, 2, 3
        v_lshlrev_b32   v[vS+2*\i], 16, v[vW+\i]
        v_and_b32       v[vS+2*\i+1], s[sHigh], v[vW+\i]
        .endr

// amax of the lane, then of its 16 lanes, which are a group.

        v_max3_f32      v[vAmax], |v[vS]|, |v[vS+1]|, s[sFloor]
        v_max3_f32      v[vAmax], |v[vS+2]|, |v[vS+3]|, v[vAmax]
        v_max3_f32      v[vAmax], |v[vS+4]|, |v[vS+5]|, v[vAmax]
        v_max3_f32      v[vAmax], |v[vS+6]|, |v[vS+7]|, v[vAmax]
        s_nop           1
        v_max_f32_dpp   v[vAmax], v[vAmax], v[vAmax] quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
        s_nop           1
        v_max_f32_dpp   v[vAmax], v[vAmax], v[vAmax] quad_perm:[2,3,0,1] row_mask:0xf bank_mask:0xf
        s_nop           1
        v_max_f32_dpp   v[vAmax], v[vAmax], v[vAmax] row_half_mirror row_mask:0xf bank_mask:0xf
        s_nop           1
        v_max_f32_dpp   v[vAmax], v[vAmax], v[vAmax] row_mirror row_mask:0xf bank_mask:0xf

// scale, and 1 / scale.

        v_mul_f32       v[vScale], s[sInvMax], v[vAmax]
        ieee_divide v[vInv], 1.0, v[vScale], v[vErr], v[vR+1], v[vR+2], v[vR+3]
        v_lshrrev_b32   v[vTmp], 4, v[vTid]             // group

// Codes: the low halves of both dwords first, so that no dword is written twice in a row.

        .irp    i, 0, 2, 4, 6
        v_pk_mul_f32    v[vS+\i:vS+\i+1], v[vS+\i:vS+\i+1], v[vInv:vInv+1] op_sel_hi:[1,0]
        .endr
        v_cvt_pk_fp8_f32 v[vCode], v[vS], v[vS+1]
        v_cvt_pk_fp8_f32 v[vCode+1], v[vS+4], v[vS+5]
        v_cvt_pk_fp8_f32 v[vCode], v[vS+2], v[vS+3] op_sel:[0,0,1]
        v_cvt_pk_fp8_f32 v[vCode+1], v[vS+6], v[vS+7] op_sel:[0,0,1]
        v_lshrrev_b32   v[vOff], 1, v[vOff]
        global_store_dwordx2 v[vOff], v[vCode:vCode+1], s[sCodes:sCodes+1]

// The first lane of each 16 writes the scale: group g of the row at 4 (g * rows + row).

        v_mul_lo_u32    v[vTmp], v[vTmp], s[sRows]
        v_add_lshl_u32  v[vTmp], v[vTmp], s[sRow], 2
        s_mov_b32       exec_lo, 0x00010001
        s_mov_b32       exec_hi, 0x00010001
        global_store_dword v[vTmp], v[vScale], s[sScale:sScale+1]
        endkernel

        .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx950
amdhsa.kernels:
  - .name: add_rmsnorm_quant_fp8_n5120
    .symbol: add_rmsnorm_quant_fp8_n5120.kd
    .kernarg_segment_size: 80
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 80
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 30
    .vgpr_count: 24
    .agpr_count: 0
    .max_flat_workgroup_size: 640
    .args:
      - {.name: x, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: residual, .offset: 8, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: w, .offset: 16, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: out, .offset: 24, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: residual_out, .offset: 32, .size: 8, .value_kind: global_buffer,
         .address_space: global}
      - {.name: codes, .offset: 40, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: scale, .offset: 48, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: rows, .offset: 56, .size: 4, .value_kind: by_value}
      - {.name: x_stride, .offset: 60, .size: 4, .value_kind: by_value}
      - {.name: residual_stride, .offset: 64, .size: 4, .value_kind: by_value}
      - {.name: eps, .offset: 72, .size: 8, .value_kind: by_value}
...
        .end_amdgpu_metadata
