// silu_mul_group_quant_fp8_n17408 - codes = fp8(y / scale), scale = max|y| / 448 of 128,
//                                   y = bf16(bf16(silu(gate)) * up)
//
// Contract   x bf16 [rows][34816], gate then up, 16-byte aligned; codes f8e4m3fn [rows][17408],
//            8-byte aligned; scale f32 [136][rows], so by group and then by row.  All contiguous;
//            codes and scale disjoint from x and from each other.  rows 1..4096.  y itself is not
//            stored.
// Launch     grid (rows, 34), block 64 (1 wave), no LDS, no scratch.
// Numerics   f32, one rounding an operation, denormals kept (v_exp flushes its own); bf16 to
//            nearest even.  e = exp2(-log2e * gate);  a = bf16(gate / (1 + e)), the division
//            IEEE's;  y = bf16(a * up);  amax = max(1e-10, max|y|), a NaN passed over;
//            scale = amax * f32(1/448);  code = e4m3fn(y * (1 / scale)), the division IEEE's, to
//            nearest even.  |code| is 448 but for roundings, below the 464 where codes overflow.  A
//            NaN y gets a NaN code; an infinite one makes the scale infinite, its own code NaN and
//            the others of its group 0.
// Oracle     silu_mul_group_quant (harness/netra_harness/oracles/silu_mul_group_quant.py)
// Schedule   16 lanes a group, 8 consecutive elements a lane.  The exponentials and divisions run
//            while `up` is still in flight; eight chains side by side keep dependent operations
//            apart.

        #include "gfx950.inc"
        #include "ieee.inc"

        karg    kX,       0, 8          // const bf16*
        karg    kCodes,   8, 8          // f8e4m3fn*, written
        karg    kScale,  16, 8          // float*, written
        karg    kRows,   24, 4          // uint32

        sreg    sKarg,    0, 2          // on entry: kernarg pointer
        sreg    sRow,     2             // on entry: row
        sreg    sPart,    3             // on entry: 512 columns
        sreg    sX,       4, 2
        sreg    sCodes,   6, 2
        sreg    sScale,   8, 2
        sreg    sRows,   10, 2          // and the padding behind it
        sreg    sLog2e,  12             // -log2(e)
        sreg    sFloor,  13             // 1e-10
        sreg    sPost,   14, 4          // which lanes' quotients are scaled back, for a pair

        .equiv  sTmp,    sKarg          // dead once the arguments are loaded
        .equiv  sHigh,   sKarg + 1      // mask of the high half

        vreg    vLane,    0             // on entry: 0..63
        vreg    vOff,     1             // of x, then of codes, then of scale
        vreg    vS,       2, 8          // gate; then y
        vreg    vD,      10, 8          // 1 + e; then up
        vreg    vR,      18, 6          // bf16 pairs of gate; then reciprocals of vDs
        vreg    vDs,     24, 2          // the denominators of a pair, scaled
        vreg    vNs,     26, 2          // the numerators, scaled
        vreg    vE,      28, 2          // errors
        vreg    vQ,      30, 2          // quotients
        vreg    vU,      32, 4          // bf16 pairs of up

        .equiv  vG,      vR             // bf16 pairs of gate
        .equiv  vCode,   vR             // 2 dwords
        .equiv  vAmax,   vR + 2
        .equiv  vScale,  vAmax          // replaces it
        .equiv  vErr,    vR + 3
        .equiv  vInv,    vR + 4         // even, as the first of a pair: the second is not read

        kernel  silu_mul_group_quant_fp8_n17408, grid=2

        s_load_dwordx8  s[sX:sRows+1], s[sKarg:sKarg+1], kX
        s_mov_b32       s[sLog2e], 0xbfb8aa3b
        s_mov_b32       s[sFloor], 0x2edbe6ff
        s_waitcnt       lgkmcnt(0)
        s_mul_i32       s[sTmp], s[sRow], 34            // 512 columns are 1 KiB of gate
        s_add_u32       s[sTmp], s[sTmp], s[sTmp]
        s_add_u32       s[sTmp], s[sTmp], s[sPart]
        s_lshl_b32      s[sTmp], s[sTmp], 10
        v_lshl_add_u32  v[vOff], v[vLane], 4, s[sTmp]
        global_load_dwordx4 v[vG:vG+3], v[vOff], s[sX:sX+1]
        v_add_u32       v[vOff], 2*17408, v[vOff]
        global_load_dwordx4 v[vU:vU+3], v[vOff], s[sX:sX+1]
        s_mov_b32       s[sHigh], 0xffff0000
        s_mul_i32       s[sTmp], s[sRow], 34
        s_add_u32       s[sTmp], s[sTmp], s[sPart]
        s_lshl_b32      s[sTmp], s[sTmp], 9
        v_lshl_add_u32  v[vOff], v[vLane], 3, s[sTmp]

// 1 + exp(-gate).

        s_waitcnt       vmcnt(1)
        .irp    i, 0, 1, 2, 3
        v_lshlrev_b32   v[vS+2*\i], 16, v[vG+\i]
        v_and_b32       v[vS+2*\i+1], s[sHigh], v[vG+\i]
        .endr
        .irp    i, 0, 2, 4, 6
        v_pk_mul_f32    v[vD+\i:vD+\i+1], v[vS+\i:vS+\i+1], s[sLog2e:sLog2e+1] op_sel_hi:[1,0]
        .endr
        .irp    i, 0, 1, 2, 3, 4, 5, 6, 7
        v_exp_f32       v[vD+\i], v[vD+\i]
        .endr
        .irp    i, 0, 2, 4, 6
        v_pk_add_f32    v[vD+\i:vD+\i+1], v[vD+\i:vD+\i+1], 1.0 op_sel_hi:[1,0]
        .endr

// gate / (1 + exp(-gate)), two at a time: scaled, a refined reciprocal, a quotient refined twice,
// the second time by div_fmas, which scales back where sPost says.

        .irp    i, 0, 2, 4, 6
        v_div_scale_f32 v[vDs], vcc, v[vD+\i], v[vD+\i], v[vS+\i]
        v_div_scale_f32 v[vDs+1], vcc, v[vD+\i+1], v[vD+\i+1], v[vS+\i+1]
        v_rcp_f32       v[vR], v[vDs]
        v_rcp_f32       v[vR+1], v[vDs+1]
        v_div_scale_f32 v[vNs], s[sPost:sPost+1], v[vS+\i], v[vD+\i], v[vS+\i]
        v_div_scale_f32 v[vNs+1], s[sPost+2:sPost+3], v[vS+\i+1], v[vD+\i+1], v[vS+\i+1]
        v_fma_f32       v[vE], -v[vDs], v[vR], 1.0
        v_fma_f32       v[vE+1], -v[vDs+1], v[vR+1], 1.0
        v_pk_fma_f32    v[vR:vR+1], v[vE:vE+1], v[vR:vR+1], v[vR:vR+1]
        v_pk_mul_f32    v[vQ:vQ+1], v[vNs:vNs+1], v[vR:vR+1]
        v_fma_f32       v[vE], -v[vDs], v[vQ], v[vNs]
        v_fma_f32       v[vE+1], -v[vDs+1], v[vQ+1], v[vNs+1]
        v_pk_fma_f32    v[vQ:vQ+1], v[vE:vE+1], v[vR:vR+1], v[vQ:vQ+1]
        v_fma_f32       v[vE], -v[vDs], v[vQ], v[vNs]
        v_fma_f32       v[vE+1], -v[vDs+1], v[vQ+1], v[vNs+1]
        s_mov_b64       vcc, s[sPost:sPost+1]
        v_div_fmas_f32  v[vQ], v[vE], v[vR], v[vQ]
        s_mov_b64       vcc, s[sPost+2:sPost+3]
        v_div_fmas_f32  v[vQ+1], v[vE+1], v[vR+1], v[vQ+1]
        v_div_fixup_f32 v[vQ], v[vQ], v[vD+\i], v[vS+\i]
        v_div_fixup_f32 v[vQ+1], v[vQ+1], v[vD+\i+1], v[vS+\i+1]
        v_cvt_pk_bf16_f32 v[vQ], v[vQ], v[vQ+1]
        v_lshlrev_b32   v[vS+\i], 16, v[vQ]
        v_and_b32       v[vS+\i+1], s[sHigh], v[vQ]
        .endr

// y = bf16(that * up), widened again.

        s_waitcnt       vmcnt(0)
        .irp    i, 0, 1, 2, 3
        v_lshlrev_b32   v[vD+2*\i], 16, v[vU+\i]
        v_and_b32       v[vD+2*\i+1], s[sHigh], v[vU+\i]
        .endr
        .irp    i, 0, 2, 4, 6
        v_pk_mul_f32    v[vS+\i:vS+\i+1], v[vS+\i:vS+\i+1], v[vD+\i:vD+\i+1]
        .endr
        .irp    i, 0, 1, 2, 3
        v_cvt_pk_bf16_f32 v[vU+\i], v[vS+2*\i], v[vS+2*\i+1]
        .endr
        .irp    i, 0, 1, 2, 3
        v_lshlrev_b32   v[vS+2*\i], 16, v[vU+\i]
        v_and_b32       v[vS+2*\i+1], s[sHigh], v[vU+\i]
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

        v_mul_f32       v[vScale], 0x3b124925, v[vAmax]
        ieee_divide v[vInv], 1.0, v[vScale], v[vDs], v[vNs], v[vErr], v[vE]
        v_lshrrev_b32   v[vLane], 4, v[vLane]           // group of the 4

// Codes: the low halves of both dwords first, so that no dword is written twice in a row.

        .irp    i, 0, 2, 4, 6
        v_pk_mul_f32    v[vS+\i:vS+\i+1], v[vS+\i:vS+\i+1], v[vInv:vInv+1] op_sel_hi:[1,0]
        .endr
        v_cvt_pk_fp8_f32 v[vCode], v[vS], v[vS+1]
        v_cvt_pk_fp8_f32 v[vCode+1], v[vS+4], v[vS+5]
        v_cvt_pk_fp8_f32 v[vCode], v[vS+2], v[vS+3] op_sel:[0,0,1]
        v_cvt_pk_fp8_f32 v[vCode+1], v[vS+6], v[vS+7] op_sel:[0,0,1]
        global_store_dwordx2 v[vOff], v[vCode:vCode+1], s[sCodes:sCodes+1]

// The first lane of each 16 writes the scale: group g of the row at 4 (g * rows + row).

        v_lshl_add_u32  v[vOff], s[sPart], 2, v[vLane]
        v_mul_lo_u32    v[vOff], v[vOff], s[sRows]
        v_add_lshl_u32  v[vOff], v[vOff], s[sRow], 2
        s_mov_b32       exec_lo, 0x00010001
        s_mov_b32       exec_hi, 0x00010001
        global_store_dword v[vOff], v[vScale], s[sScale:sScale+1]
        endkernel

        .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx950
amdhsa.kernels:
  - .name: silu_mul_group_quant_fp8_n17408
    .symbol: silu_mul_group_quant_fp8_n17408.kd
    .kernarg_segment_size: 32
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 24
    .vgpr_count: 36
    .agpr_count: 0
    .max_flat_workgroup_size: 64
    .args:
      - {.name: x, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: codes, .offset: 8, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: scale, .offset: 16, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: rows, .offset: 24, .size: 4, .value_kind: by_value}
...
        .end_amdgpu_metadata
