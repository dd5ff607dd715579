// shared_gate_append_bf16_unrounded - out_ids[row] = ids[row] and shared_id,
//                                     out_weights[row] = weights[row] and
//                                     scale * sigmoid(hidden[row] . gate)
//
// Contract   hidden bf16 [rows][2048], gate bf16 [2048]; ids i32, weights f32 [rows][8], copied bit
//            by bit whatever they are; out_ids i32, out_weights f32 [rows][9], disjoint from all
//            else.  All contiguous, 4-byte aligned.  rows 1..128; any shared_id and scale.
// Launch     grid (1, rows), block 64 (1 wave), no LDS, no scratch.
// Numerics   f32.  Lane l has elements 2 l and 2 l + 1 of each 128: one chain of 16 v_dot2 from 0,
//            whose adder is the named model.  Lanes are added 1, 2, 4, 8, 16, 32 apart.  The sum
//            is the logit; e = exp2(-log2e * logit); the weight is (1 / (1 + e)) * scale, where
//            the division is IEEE's and everything stays f32.
// Oracle     shared_gate_append (harness/netra_harness/oracles/shared_gate_append.py)
// Schedule   All loads in flight at once, consumed in their order.  Lane 63, where the sum ends,
//            has the ninth place of the row and lanes 55..62 the other eight, so nothing moves.

        #include "gfx950.inc"
        #include "ieee.inc"

        karg    kOutIds,      0, 8      // int32*, written
        karg    kOutWeights,  8, 8      // float*, written
        karg    kHidden,     16, 8      // const bf16*
        karg    kGate,       24, 8      // const bf16*
        karg    kIds,        32, 8      // const int32*
        karg    kWeights,    40, 8      // const float*
        karg    kSharedId,   48, 4      // int32
        karg    kScale,      52, 4      // float

        sreg    sKarg,        0, 2      // on entry: kernarg pointer
        sreg    sX,           2         // on entry: 0
        sreg    sRow,         3         // on entry: row
        sreg    sOutIds,      4, 2
        sreg    sOutWeights,  6, 2
        sreg    sHidden,      8, 2
        sreg    sGate,       10, 2
        sreg    sIds,        12, 2
        sreg    sWeights,    14, 2
        sreg    sSharedId,   16
        sreg    sScale,      17

        .equiv  sTmp,        sX

        vreg    vLane,        0         // on entry: 0..63; then 4 * (lane - 55): bytes into a row
        vreg    vOff,         1         // of hidden; then of the copied rows
        vreg    vX,           2, 16     // hidden
        vreg    vW,          18, 16     // gate
        vreg    vId,         34         // what goes to out_ids
        vreg    vWeight,     35         // the copied weight

        .equiv  vSum,        vX         // in the end what goes to out_weights
        .equiv  vOffW,       vWeight    // 4 * lane; dead when the copied weight is asked for
        .equiv  vD,          vX + 1     // 1 + e, and what divides by it
        .equiv  vDs,         vX + 2     // 1 + e scaled
        .equiv  vNs,         vX + 3     // 1 scaled
        .equiv  vR,          vX + 4     // 1 / vDs
        .equiv  vQ,          vX + 5     // vNs / vDs
        .equiv  vE,          vX + 6     // errors of both

        kernel  shared_gate_append_bf16_unrounded, grid=2

        s_load_dwordx8  s[sOutIds:sGate+1], s[sKarg:sKarg+1], kOutIds
        s_load_dwordx4  s[sIds:sWeights+1], s[sKarg:sKarg+1], kIds
        s_load_dwordx2  s[sSharedId:sScale], s[sKarg:sKarg+1], kSharedId
        v_lshlrev_b32   v[vOffW], 2, v[vLane]
        v_lshl_add_u32  v[vOff], s[sRow], 12, v[vOffW]
        s_waitcnt       lgkmcnt(0)
        .irp    i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        global_load_dword v[vX+\i], v[vOff], s[sHidden:sHidden+1] offset:256*\i
        global_load_dword v[vW+\i], v[vOffW], s[sGate:sGate+1] offset:256*\i
        .endr

// Lanes 55..62 fetch what is copied; lane 63 keeps the id of the shared expert.

        v_subrev_u32    v[vLane], 4*55, v[vOffW]
        s_lshl_b32      s[sTmp], s[sRow], 5
        v_add_u32       v[vOff], s[sTmp], v[vLane]
        v_mov_b32       v[vId], s[sSharedId]
        s_mov_b32       exec_lo, 0
        s_mov_b32       exec_hi, 0x7f800000
        global_load_dword v[vId], v[vOff], s[sIds:sIds+1]
        global_load_dword v[vWeight], v[vOff], s[sWeights:sWeights+1]
        s_mov_b64       exec, -1

        s_waitcnt       vmcnt(32)
        v_dot2_f32_bf16 v[vSum], v[vX], v[vW], 0
        .irp    i, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
        s_waitcnt       vmcnt(32-2*\i)
        v_dot2_f32_bf16 v[vSum], v[vX+\i], v[vW+\i], v[vSum]
        .endr
        s_nop           2               // what is not a v_dot2 may not read its result sooner
        v_add_f32_dpp   v[vSum], v[vSum], v[vSum] quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
        s_nop           1
        v_add_f32_dpp   v[vSum], v[vSum], v[vSum] quad_perm:[2,3,0,1] row_mask:0xf bank_mask:0xf
        s_nop           1
        v_add_f32_dpp   v[vSum], v[vSum], v[vSum] row_half_mirror row_mask:0xf bank_mask:0xf
        s_nop           1
        v_add_f32_dpp   v[vSum], v[vSum], v[vSum] row_mirror row_mask:0xf bank_mask:0xf
        s_nop           1
        v_add_f32_dpp   v[vSum], v[vSum], v[vSum] row_bcast:15 row_mask:0xa bank_mask:0xf
        s_nop           1
        v_add_f32_dpp   v[vSum], v[vSum], v[vSum] row_bcast:31 row_mask:0xc bank_mask:0xf

// The weight of lane 63.

        v_mul_f32       v[vD], 0xbfb8aa3b, v[vSum]      // -log2(e)
        v_exp_f32       v[vD], v[vD]
        s_mul_i32       s[sTmp], s[sRow], 36
        v_add_f32       v[vD], 1.0, v[vD]
        ieee_divide v[vQ], 1.0, v[vD], v[vDs], v[vNs], v[vR], v[vE]
        v_mul_f32       v[vSum], s[sScale], v[vQ]
        v_add_u32       v[vLane], s[sTmp], v[vLane]

        s_mov_b32       exec_lo, 0
        s_mov_b32       exec_hi, 0x7f800000
        s_waitcnt       vmcnt(0)
        v_mov_b32       v[vSum], v[vWeight]
        s_mov_b32       exec_hi, 0xff800000
        global_store_dword v[vLane], v[vId], s[sOutIds:sOutIds+1]
        global_store_dword v[vLane], v[vSum], s[sOutWeights:sOutWeights+1]
        endkernel

        .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx950
amdhsa.kernels:
  - .name: shared_gate_append_bf16_unrounded
    .symbol: shared_gate_append_bf16_unrounded.kd
    .kernarg_segment_size: 56
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 24
    .vgpr_count: 36
    .agpr_count: 0
    .max_flat_workgroup_size: 64
    .args:
      - {.name: out_ids, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: out_weights, .offset: 8, .size: 8, .value_kind: global_buffer,
         .address_space: global}
      - {.name: hidden, .offset: 16, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: gate, .offset: 24, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: ids, .offset: 32, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: weights, .offset: 40, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: shared_id, .offset: 48, .size: 4, .value_kind: by_value}
      - {.name: scale, .offset: 52, .size: 4, .value_kind: by_value}
...
        .end_amdgpu_metadata
