// gated_rmsnorm_quant_fp8_rpb2 - out = bf16(n * silu(gate)) with n = x * rsq(mean(x^2) + eps) * w,
//                                codes = fp8(out / scale), scale = max|out| / 448 of a head of 128
//
// Contract   x bf16 [rows][128], row = token * 48 + head; w bf16 [128]; gate bf16 [tokens][48]
//            [128], tokens and heads some multiples of 8 elements apart; out bf16, codes f8e4m3fn
//            [rows][128]; scale f32 [48][tokens], so by head and then by token.  16-byte aligned,
//            codes 8.  out, codes and scale are disjoint from all else.  tokens 11..21.
// Launch     grid (rows / 2), block 64 (1 wave, 2 heads), no LDS, no scratch.
// Numerics   f32, one rounding an operation, denormals kept (v_exp and v_rsq flush their own);
//            bf16 to nearest even.  Sum of squares: a lane has 4 neighbours, one rising fma chain;
//            lanes 1, 2, 4, 8, 16 apart are added.  n = (x * rsq(fma(sum, 2^-7, eps))) * w;
//            e = exp2(-log2e * gate);  y = bf16(n * (gate * (1 / (1 + e)))), the division IEEE's.
//            amax = max(1e-10, max|y|), a NaN passed over; scale = amax * f32(1/448);
//            code = e4m3fn(y * (1 / scale)), the division IEEE's, to nearest even.  |code| is 448
//            but for roundings, below the 464 where codes overflow.  A NaN y gets a NaN code; an
//            infinite one makes the scale infinite, its own code NaN, the others of its head 0.
// Oracle     gated_rmsnorm_quant (harness/netra_harness/oracles/gated_rmsnorm_quant.py)
// Schedule   Two heads a wave: with 11..21 tokens that fills the compute units and no more.
//            All loads in flight at once; the norm runs while gate and w may still be under way.

        #include "gfx950.inc"
        #include "ieee.inc"

        karg    kX,            0, 8     // const bf16*
        karg    kOut,          8, 8     // bf16*, written
        karg    kW,           16, 8     // const bf16*
        karg    kGate,        24, 8     // const bf16*
        karg    kCodes,       32, 8     // f8e4m3fn*, written
        karg    kScale,       40, 8     // float*, written
        karg    kTokenStride, 48, 4     // uint32, of gate, elements
        karg    kHeadStride,  52, 4     // uint32, of gate, elements
        karg    kTokens,      56, 4     // uint32
        karg    kEps,         60, 4     // float

        sreg    sKarg,         0, 2     // on entry: kernarg pointer
        sreg    sBlock,        2        // on entry: 2 heads; then the first of them
        sreg    sToken,        3
        sreg    sX,            4, 2
        sreg    sOut,          6, 2
        sreg    sW,            8, 2
        sreg    sGate,        10, 2
        sreg    sCodes,       12, 2
        sreg    sScale,       14, 2
        sreg    sTokenStride, 16
        sreg    sHeadStride,  17
        sreg    sTokens,      18
        sreg    sEps,         19

        .equiv  sTmp,   sKarg           // dead once the arguments are loaded
        .equiv  sHigh,  sKarg + 1       // mask of the high half
        .equiv  sLog2e, sX              // -log2(e), once x is loaded
        .equiv  sFloor, sX + 1          // 1e-10

        vreg    vLane,  0               // on entry: 0..63
        vreg    vOff,   1               // 8 * lane, with the block's offset
        vreg    vS,     2, 4            // x, widened; then y
        vreg    vG,     6, 4            // gate, widened; then silu(gate)
        vreg    vD,    10, 4            // 1 + e; then w, widened
        vreg    vXp,   14, 2            // bf16 pairs of x; then of y
        vreg    vGp,   16, 2            // bf16 pairs of gate
        vreg    vWp,   18, 2            // bf16 pairs of w
        vreg    vDs,   20               // scratch of divisions; first of a pair, see vInv
        vreg    vNs,   21
        vreg    vR,    22
        vreg    vE,    23
        vreg    vQ,    24               // quotient
        vreg    vAcc,  25               // sum of squares, then r, then amax
        vreg    vHead, 26               // head of the lane

        .equiv  vInv,   vDs             // even; the second of the pair is not read
        .equiv  vScale, vQ
        .equiv  vCode,  vGp

        kernel  gated_rmsnorm_quant_fp8_rpb2

        s_load_dwordx8  s[sX:sGate+1], s[sKarg:sKarg+1], kX
        s_load_dwordx8  s[sCodes:sEps], s[sKarg:sKarg+1], kCodes
        v_lshlrev_b32   v[vR], 3, v[vLane]
        s_mul_i32       s[sToken], s[sBlock], 512
        v_add_u32       v[vOff], s[sToken], v[vR]
        v_and_b32       v[vE], 255, v[vR]               // in a head
        v_lshrrev_b32   v[vHead], 5, v[vLane]
        s_waitcnt       lgkmcnt(0)
        global_load_dwordx2 v[vXp:vXp+1], v[vOff], s[sX:sX+1]
        global_load_dwordx2 v[vWp:vWp+1], v[vE], s[sW:sW+1]

// token = block / 24, and the first head is 2 times the remainder.

        s_mul_hi_u32    s[sToken], s[sBlock], 0xaaaaaaab
        s_lshr_b32      s[sToken], s[sToken], 4
        s_mul_i32       s[sTmp], s[sToken], 24
        s_sub_u32       s[sBlock], s[sBlock], s[sTmp]
        s_lshl_b32      s[sBlock], s[sBlock], 1
        v_add_u32       v[vHead], s[sBlock], v[vHead]
        s_mul_i32       s[sTmp], s[sToken], s[sTokenStride]
        v_mul_lo_u32    v[vR], v[vHead], s[sHeadStride]
        v_add_lshl_u32  v[vR], v[vR], s[sTmp], 1
        v_add_u32       v[vR], v[vR], v[vE]
        global_load_dwordx2 v[vGp:vGp+1], v[vR], s[sGate:sGate+1]
        s_mov_b32       s[sHigh], 0xffff0000
        s_mov_b32       s[sLog2e], 0xbfb8aa3b
        s_mov_b32       s[sFloor], 0x2edbe6ff

        s_waitcnt       vmcnt(2)
        .irp    i, 0, 1
        v_lshlrev_b32   v[vS+2*\i], 16, v[vXp+\i]
        v_and_b32       v[vS+2*\i+1], s[sHigh], v[vXp+\i]
        .endr
        v_mul_f32       v[vAcc], v[vS], v[vS]
        .irp    i, 1, 2, 3
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
        v_mov_b32       v[vR], v[vAcc]
        s_nop           1
        v_permlane16_swap_b32 v[vAcc], v[vR]
        v_add_f32       v[vAcc], v[vAcc], v[vR]
        v_mov_b32       v[vR], s[sEps]
        v_fmac_f32      v[vR], 0x3c000000, v[vAcc]      // 2^-7 = 1/128
        v_rsq_f32       v[vAcc], v[vR]

// silu(gate) = gate * (1 / (1 + exp(-gate))).

        s_waitcnt       vmcnt(0)
        .irp    i, 0, 1
        v_lshlrev_b32   v[vG+2*\i], 16, v[vGp+\i]
        v_and_b32       v[vG+2*\i+1], s[sHigh], v[vGp+\i]
        .endr
        .irp    i, 0, 1, 2, 3
        v_mul_f32       v[vD+\i], s[sLog2e], v[vG+\i]
        .endr
        .irp    i, 0, 1, 2, 3
        v_exp_f32       v[vD+\i], v[vD+\i]
        .endr
        .irp    i, 0, 2
        v_pk_add_f32    v[vD+\i:vD+\i+1], v[vD+\i:vD+\i+1], 1.0 op_sel_hi:[1,0]
        .endr
        .irp    i, 0, 1, 2, 3
        ieee_divide v[vQ], 1.0, v[vD+\i], v[vDs], v[vNs], v[vR], v[vE]
        v_mul_f32       v[vG+\i], v[vG+\i], v[vQ]
        .endr

// y, rounded and widened again.

        .irp    i, 0, 1
        v_lshlrev_b32   v[vD+2*\i], 16, v[vWp+\i]
        v_and_b32       v[vD+2*\i+1], s[sHigh], v[vWp+\i]
        .endr
        .irp    i, 0, 1, 2, 3
        v_mul_f32       v[vS+\i], v[vS+\i], v[vAcc]
        .endr
        .irp    i, 0, 2
        v_pk_mul_f32    v[vS+\i:vS+\i+1], v[vS+\i:vS+\i+1], v[vD+\i:vD+\i+1]
        .endr
        .irp    i, 0, 2
        v_pk_mul_f32    v[vS+\i:vS+\i+1], v[vS+\i:vS+\i+1], v[vG+\i:vG+\i+1]
        .endr
        .irp    i, 0, 1
        v_cvt_pk_bf16_f32 v[vXp+\i], v[vS+2*\i], v[vS+2*\i+1]
        .endr
        global_store_dwordx2 v[vOff], v[vXp:vXp+1], s[sOut:sOut+1]
        .irp    i, 0, 1
        v_lshlrev_b32   v[vS+2*\i], 16, v[vXp+\i]
        v_and_b32       v[vS+2*\i+1], s[sHigh], v[vXp+\i]
        .endr

// amax of the lane, then of the 32 lanes of its head.

        v_max3_f32      v[vAcc], |v[vS]|, |v[vS+1]|, s[sFloor]
        v_max3_f32      v[vAcc], |v[vS+2]|, |v[vS+3]|, v[vAcc]
        s_nop           1
        v_max_f32_dpp   v[vAcc], v[vAcc], v[vAcc] quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
        s_nop           1
        v_max_f32_dpp   v[vAcc], v[vAcc], v[vAcc] quad_perm:[2,3,0,1] row_mask:0xf bank_mask:0xf
        s_nop           1
        v_max_f32_dpp   v[vAcc], v[vAcc], v[vAcc] row_half_mirror row_mask:0xf bank_mask:0xf
        s_nop           1
        v_max_f32_dpp   v[vAcc], v[vAcc], v[vAcc] row_mirror row_mask:0xf bank_mask:0xf
        v_mov_b32       v[vR], v[vAcc]
        s_nop           1
        v_permlane16_swap_b32 v[vAcc], v[vR]
        v_max_f32       v[vAcc], v[vAcc], v[vR]

// scale, and 1 / scale.

        v_mul_f32       v[vScale], 0x3b124925, v[vAcc]
        ieee_divide v[vInv], 1.0, v[vScale], v[vNs], v[vR], v[vE], v[vAcc]
        v_lshrrev_b32   v[vOff], 1, v[vOff]
        .irp    i, 0, 2
        v_pk_mul_f32    v[vS+\i:vS+\i+1], v[vS+\i:vS+\i+1], v[vInv:vInv+1] op_sel_hi:[1,0]
        .endr
        v_cvt_pk_fp8_f32 v[vCode], v[vS], v[vS+1]
        s_nop           0               // the other half of the same register
        v_cvt_pk_fp8_f32 v[vCode], v[vS+2], v[vS+3] op_sel:[0,0,1]
        global_store_dword v[vOff], v[vCode], s[sCodes:sCodes+1]

// The first lane of each head writes the scale, at 4 (head * tokens + token).

        v_mul_lo_u32    v[vHead], v[vHead], s[sTokens]
        v_add_lshl_u32  v[vHead], v[vHead], s[sToken], 2
        s_mov_b32       exec_lo, 1
        s_mov_b32       exec_hi, 1
        global_store_dword v[vHead], v[vScale], s[sScale:sScale+1]
        endkernel

        .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx950
amdhsa.kernels:
  - .name: gated_rmsnorm_quant_fp8_rpb2
    .symbol: gated_rmsnorm_quant_fp8_rpb2.kd
    .kernarg_segment_size: 64
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 26
    .vgpr_count: 27
    .agpr_count: 0
    .max_flat_workgroup_size: 64
    .args:
      - {.name: x, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: out, .offset: 8, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: w, .offset: 16, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: gate, .offset: 24, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: codes, .offset: 32, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: scale, .offset: 40, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: token_stride, .offset: 48, .size: 4, .value_kind: by_value}
      - {.name: head_stride, .offset: 52, .size: 4, .value_kind: by_value}
      - {.name: tokens, .offset: 56, .size: 4, .value_kind: by_value}
      - {.name: eps, .offset: 60, .size: 4, .value_kind: by_value}
...
        .end_amdgpu_metadata
