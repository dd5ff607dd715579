// argmax_f32_stage2 - out[row] = column of the largest key in partial[row]
//
// Contract   partial u64 [rows][128], 16-byte aligned, as argmax_f32_stage1 leaves it: value key
//            in the high half, ~column in the low.  out i64 [rows], 8-byte aligned, disjoint from
//            partial.  rows 1..4096.  The keys may stand in any order.
// Launch     grid (1, rows), block 64 (1 wave), no LDS, no scratch.
// Numerics   exact: unsigned integers.
// Oracle     argmax (harness/netra_harness/oracles/argmax.py)
// Schedule   One load, two keys a lane.  The 64-bit maximum is two 32-bit ones: the largest high
//            half, then the largest low half among the keys that have it.  Latency bound.

        #include "gfx950.inc"

        karg    kOut,     0, 8          // int64*, written
        karg    kPartial, 8, 8          // const u64*

        sreg    sKarg,    0, 2          // on entry: kernarg pointer
        sreg    sWg,      2             // on entry: 0; then the largest high half
        sreg    sRow,     3             // on entry: row; then byte offset of the result
        sreg    sOut,     4, 2
        sreg    sPartial, 6, 2

        .equiv  sMax,     sWg
        .equiv  sMask,    sKarg         // dead once the arguments are loaded

        vreg    vLane,    0             // on entry: 0..63; then the running maximum
        vreg    vOff,     1             // of the keys, then of the result
        vreg    vKey,     2, 4          // lo, hi, lo, hi; then the result

        .equiv  vMax,     vLane

        kernel  argmax_f32_stage2, grid=2

        s_load_dwordx4  s[sOut:sPartial+1], s[sKarg:sKarg+1], kOut
        v_lshlrev_b32   v[vOff], 4, v[vLane]
        v_lshl_add_u32  v[vOff], s[sRow], 10, v[vOff]
        s_waitcnt       lgkmcnt(0)
        global_load_dwordx4 v[vKey:vKey+3], v[vOff], s[sPartial:sPartial+1]
        s_lshl_b32      s[sRow], s[sRow], 3             // where the column goes
        s_waitcnt       vmcnt(0)

// The largest high half: 16 lanes of a row, the row before, the half before; lane 63 has it all.

        v_max_u32       v[vMax], v[vKey+1], v[vKey+3]
        s_nop           1
        v_max_u32_dpp   v[vMax], v[vMax], v[vMax] quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
        s_nop           1
        v_max_u32_dpp   v[vMax], v[vMax], v[vMax] quad_perm:[2,3,0,1] row_mask:0xf bank_mask:0xf
        s_nop           1
        v_max_u32_dpp   v[vMax], v[vMax], v[vMax] row_half_mirror row_mask:0xf bank_mask:0xf
        s_nop           1
        v_max_u32_dpp   v[vMax], v[vMax], v[vMax] row_mirror row_mask:0xf bank_mask:0xf
        s_nop           1
        v_max_u32_dpp   v[vMax], v[vMax], v[vMax] row_bcast:15 row_mask:0xa bank_mask:0xf
        s_nop           1
        v_max_u32_dpp   v[vMax], v[vMax], v[vMax] row_bcast:31 row_mask:0xc bank_mask:0xf
        s_nop           0
        v_readlane_b32  s[sMax], v[vMax], 63

// The largest low half beside it; 0 for the other keys, which no ~column is.

        s_nop           1
        v_cmp_eq_u32    vcc, s[sMax], v[vKey+1]
        v_cmp_eq_u32    s[sMask:sMask+1], s[sMax], v[vKey+3]
        s_nop           0
        v_cndmask_b32   v[vKey], 0, v[vKey], vcc
        v_cndmask_b32   v[vKey+2], 0, v[vKey+2], s[sMask:sMask+1]
        v_max_u32       v[vMax], v[vKey], v[vKey+2]
        s_nop           1
        v_max_u32_dpp   v[vMax], v[vMax], v[vMax] quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
        s_nop           1
        v_max_u32_dpp   v[vMax], v[vMax], v[vMax] quad_perm:[2,3,0,1] row_mask:0xf bank_mask:0xf
        s_nop           1
        v_max_u32_dpp   v[vMax], v[vMax], v[vMax] row_half_mirror row_mask:0xf bank_mask:0xf
        s_nop           1
        v_max_u32_dpp   v[vMax], v[vMax], v[vMax] row_mirror row_mask:0xf bank_mask:0xf
        s_nop           1
        v_max_u32_dpp   v[vMax], v[vMax], v[vMax] row_bcast:15 row_mask:0xa bank_mask:0xf
        s_nop           1
        v_max_u32_dpp   v[vMax], v[vMax], v[vMax] row_bcast:31 row_mask:0xc bank_mask:0xf

// Lane 63 writes the column, widened.

        v_not_b32       v[vKey], v[vMax]
        v_mov_b32       v[vKey+1], 0
        v_mov_b32       v[vOff], s[sRow]
        s_brev_b64      exec, 1                         // lane 63 alone
        global_store_dwordx2 v[vOff], v[vKey:vKey+1], s[sOut:sOut+1]
        endkernel

        .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx950
amdhsa.kernels:
  - .name: argmax_f32_stage2
    .symbol: argmax_f32_stage2.kd
    .kernarg_segment_size: 16
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 14
    .vgpr_count: 6
    .agpr_count: 0
    .max_flat_workgroup_size: 64
    .args:
      - {.name: out,     .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: partial, .offset: 8, .size: 8, .value_kind: global_buffer, .address_space: global}
...
        .end_amdgpu_metadata
