// silu_mul_quant_fp8 - out[row] = fp8(y / scale), scale[row][g] = max|y| / 448 over group g of 128,
//                      y = bf16(silu(gate) * up)
//
// Contract   x f32 [rows][2][512], gate then up, 16-byte aligned; out f8e4m3fn [rows][512], 8-byte
//            aligned; scale f32 [rows][4], row-major.  All contiguous; out and scale disjoint from
//            x and from each other.  rows 1..4096; a workgroup past `rows` leaves at once.
// Launch     grid (rows), block 64 (1 wave), no LDS, no scratch.
// Numerics   f32, one rounding an operation, denormals kept (v_exp and v_rcp flush their own):
//              e = exp2(-log2e * g);  r = rcp(1 + e);  y = bf16((r * g) * u)
//              amax = max(1e-10, max|y|), a NaN passed over
//              scale = amax * f32(1/448);  r = rcp(scale);  inv = fma(fma(-scale, r, 1), r, r)
//              code = e4m3fn(y * inv), to nearest even
//            |y * inv| is 448 but for a few roundings, far below the 464 where codes overflow.
//            A NaN y gets a NaN code; an infinite y makes every code of its group NaN.
// Oracle     silu_mul_quant (harness/netra_harness/oracles/silu_mul_quant.py)
// Schedule   16 lanes a group, 8 consecutive elements a lane.  The exponentials run while `up` is
//            still in flight; eight chains side by side keep dependent operations apart.

        #include "gfx950.inc"

        karg    kX,       0, 8          // const float*
        karg    kOut,     8, 8          // f8e4m3fn*, written
        karg    kScale,  16, 8          // float*, written
        karg    kRows,   24, 4          // uint32

        sreg    sKarg,    0, 2          // on entry: kernarg pointer
        sreg    sRow,     2             // on entry: row
        sreg    sX,       4, 2
        sreg    sOut,     6, 2
        sreg    sScale,   8, 2
        sreg    sRows,   10, 2          // and the padding behind it
        sreg    sLog2e,  12             // -log2(e)
        sreg    sFloor,  13             // 1e-10

        .equiv  sTmp,    sKarg          // dead once the arguments are loaded

        vreg    vLane,    0             // on entry: 0..63
        vreg    vOff,     1             // of x, then of out, then of scale
        vreg    vY,       2, 8          // gate; then y
        vreg    vU,      10, 8          // up
        vreg    vR,      18, 8          // -log2e * g, then e, 1 + e, r

        .equiv  vCode,   vU             // two dwords; `up` is dead once y is known
        .equiv  vPair,   vR             // four dwords of two bf16 each; r is dead likewise
        .equiv  vAmax,   vR + 4
        .equiv  vScale,  vAmax          // replaces it
        .equiv  vTmp,    vR + 5
        .equiv  vInv,    vR + 6         // even, as the first of a pair: the second is not read

        kernel  silu_mul_quant_fp8

        s_load_dwordx8  s[sX:sRows+1], s[sKarg:sKarg+1], kX
        s_mov_b32       s[sLog2e], 0xbfb8aa3b
        s_mov_b32       s[sFloor], 0x2edbe6ff
        s_waitcnt       lgkmcnt(0)
        s_cmp_ge_u32    s[sRow], s[sRows]
        s_cbranch_scc1  .Ldone

        s_lshl_b32      s[sTmp], s[sRow], 12
        v_lshl_add_u32  v[vOff], v[vLane], 5, s[sTmp]
        global_load_dwordx4 v[vY:vY+3], v[vOff], s[sX:sX+1]
        global_load_dwordx4 v[vY+4:vY+7], v[vOff], s[sX:sX+1] offset:16
        global_load_dwordx4 v[vU:vU+3], v[vOff], s[sX:sX+1] offset:2048
        global_load_dwordx4 v[vU+4:vU+7], v[vOff], s[sX:sX+1] offset:2064
        s_lshl_b32      s[sTmp], s[sRow], 9
        v_lshl_add_u32  v[vOff], v[vLane], 3, s[sTmp]

// r = 1 / (1 + exp(-gate)).  A v_exp or v_rcp result may not feed the next instruction: all eight
// of a kind come first.

        s_waitcnt       vmcnt(2)
        .irp    i, 0, 2, 4, 6
        v_pk_mul_f32    v[vR+\i:vR+\i+1], v[vY+\i:vY+\i+1], s[sLog2e:sLog2e+1] op_sel_hi:[1,0]
        .endr
        .irp    i, 0, 1, 2, 3, 4, 5, 6, 7
        v_exp_f32       v[vR+\i], v[vR+\i]
        .endr
        .irp    i, 0, 2, 4, 6
        v_pk_add_f32    v[vR+\i:vR+\i+1], v[vR+\i:vR+\i+1], 1.0 op_sel_hi:[1,0]
        .endr
        .irp    i, 0, 1, 2, 3, 4, 5, 6, 7
        v_rcp_f32       v[vR+\i], v[vR+\i]
        .endr

// y = bf16((r * gate) * up), widened again.

        .irp    i, 0, 2, 4, 6
        v_pk_mul_f32    v[vY+\i:vY+\i+1], v[vR+\i:vR+\i+1], v[vY+\i:vY+\i+1]
        .endr
        s_waitcnt       vmcnt(0)
        .irp    i, 0, 2, 4, 6
        v_pk_mul_f32    v[vY+\i:vY+\i+1], v[vY+\i:vY+\i+1], v[vU+\i:vU+\i+1]
        .endr
        .irp    i, 0, 1, 2, 3
        v_cvt_pk_bf16_f32 v[vPair+\i], v[vY+2*\i], v[vY+2*\i+1]
        .endr
        .irp    i, 0, 1, 2, 3
        v_lshlrev_b32   v[vY+2*\i], 16, v[vPair+\i]
        v_and_b32       v[vY+2*\i+1], 0xffff0000, v[vPair+\i]
        .endr

// amax of the lane, then of its 16 lanes.

        v_max3_f32      v[vAmax], |v[vY]|, |v[vY+1]|, s[sFloor]
        v_max3_f32      v[vAmax], |v[vY+2]|, |v[vY+3]|, v[vAmax]
        v_max3_f32      v[vAmax], |v[vY+4]|, |v[vY+5]|, v[vAmax]
        v_max3_f32      v[vAmax], |v[vY+6]|, |v[vY+7]|, v[vAmax]
        s_nop           1
        v_max_f32_dpp   v[vAmax], v[vAmax], v[vAmax] quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
        s_nop           1
        v_max_f32_dpp   v[vAmax], v[vAmax], v[vAmax] quad_perm:[2,3,0,1] row_mask:0xf bank_mask:0xf
        s_nop           1
        v_max_f32_dpp   v[vAmax], v[vAmax], v[vAmax] row_half_mirror row_mask:0xf bank_mask:0xf
        s_nop           1
        v_max_f32_dpp   v[vAmax], v[vAmax], v[vAmax] row_mirror row_mask:0xf bank_mask:0xf

// scale, and its reciprocal with one Newton step.

        v_mul_f32       v[vScale], 0x3b124925, v[vAmax]
        v_rcp_f32       v[vInv], v[vScale]
        s_nop           0
        v_fma_f32       v[vTmp], -v[vScale], v[vInv], 1.0
        v_fma_f32       v[vInv], v[vTmp], v[vInv], v[vInv]

// Codes: the low halves of both dwords first, so that no dword is written twice in a row.

        .irp    i, 0, 2, 4, 6
        v_pk_mul_f32    v[vY+\i:vY+\i+1], v[vY+\i:vY+\i+1], v[vInv:vInv+1] op_sel_hi:[1,0]
        .endr
        v_cvt_pk_fp8_f32 v[vCode], v[vY], v[vY+1]
        v_cvt_pk_fp8_f32 v[vCode+1], v[vY+4], v[vY+5]
        v_cvt_pk_fp8_f32 v[vCode], v[vY+2], v[vY+3] op_sel:[0,0,1]
        v_cvt_pk_fp8_f32 v[vCode+1], v[vY+6], v[vY+7] op_sel:[0,0,1]
        global_store_dwordx2 v[vOff], v[vCode:vCode+1], s[sOut:sOut+1]

// The first lane of each 16 writes the scale: lane 16 g to byte 4 g of the row.

        v_lshrrev_b32   v[vTmp], 2, v[vLane]
        v_lshl_add_u32  v[vTmp], s[sRow], 4, v[vTmp]
        s_mov_b32       exec_lo, 0x00010001
        s_mov_b32       exec_hi, 0x00010001
        global_store_dword v[vTmp], v[vScale], s[sScale:sScale+1]

.Ldone:
        endkernel

        .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx950
amdhsa.kernels:
  - .name: silu_mul_quant_fp8
    .symbol: silu_mul_quant_fp8.kd
    .kernarg_segment_size: 32
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 20
    .vgpr_count: 26
    .agpr_count: 0
    .max_flat_workgroup_size: 64
    .args:
      - {.name: x,     .offset: 0,  .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: out,   .offset: 8,  .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: scale, .offset: 16, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: rows,  .offset: 24, .size: 4, .value_kind: by_value}
...
        .end_amdgpu_metadata
