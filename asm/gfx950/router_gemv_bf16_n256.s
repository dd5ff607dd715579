// router_gemv_bf16_n256 - out[row][n] = bf16(sum over k of hidden[row][k] * weight[n][k]), K 2048
//
// Contract   hidden bf16 [rows][2048], weight bf16 [256][2048], both 16-byte aligned; out bf16
//            [rows][256], disjoint from both.  All contiguous.  rows 1..64.
// Launch     grid (256, rows), block 64 (1 wave), no LDS, no scratch.
// Numerics   f32, denormals kept; products enter by fma, so only sums round.  Lane l has elements
//            8 l..8 l + 7 of each 512.  A group of 8: one chain over its even elements and one over
//            its odd ones, rising, the first product rounded; then even + odd.  The groups are
//            added in order.  Lanes are added 8, 4, 2, 1 apart, then rows of 16, then halves; in
//            each addition the lower lane comes first.  The sum is rounded to bf16, nearest even.
// Oracle     router_gemv (harness/netra_harness/oracles/router_gemv.py)
// Schedule   All 8 loads in flight at once, each group of 512 consumed as it arrives: one trip to
//            memory.  The two chains of a group are the halves of one packed fma.

        #include "gfx950.inc"

        karg    kOut,     0, 8          // bf16*, written
        karg    kHidden,  8, 8          // const bf16*
        karg    kWeight, 16, 8          // const bf16*

        sreg    sKarg,    0, 2          // on entry: kernarg pointer
        sreg    sN,       2             // on entry: expert
        sreg    sRow,     3             // on entry: row
        sreg    sOut,     4, 2
        sreg    sHidden,  6, 2
        sreg    sWeight,  8, 2

        .equiv  sHigh,   sKarg          // mask of the high half; kernarg pointer is dead by then
        .equiv  sTmp,    sKarg + 1

        vreg    vLane,    0             // on entry: 0..63
        vreg    vOff,     1             // of hidden; at the end of out
        vreg    vX,       2, 16         // hidden: 4 groups of 4 dwords of two bf16
        vreg    vW,      18, 16         // weight likewise
        vreg    vA,      34, 2          // one dword of hidden, widened: even element, odd element
        vreg    vB,      36, 2          // one dword of weight likewise
        vreg    vChain,  38, 2          // the two chains of a group

        .equiv  vOffW,   vChain         // dead once the loads are issued
        .equiv  vSum,    vLane          // likewise

        kernel  router_gemv_bf16_n256, grid=2

        s_load_dwordx4  s[sOut:sHidden+1], s[sKarg:sKarg+1], kOut
        s_load_dwordx2  s[sWeight:sWeight+1], s[sKarg:sKarg+1], kWeight
        v_lshlrev_b32   v[vOff], 4, v[vLane]
        v_lshl_add_u32  v[vOffW], s[sN], 12, v[vOff]
        v_lshl_add_u32  v[vOff], s[sRow], 12, v[vOff]
        s_waitcnt       lgkmcnt(0)
        .irp    g, 0, 1, 2, 3
        global_load_dwordx4 v[vW+4*\g:vW+4*\g+3], v[vOffW], s[sWeight:sWeight+1] offset:1024*\g
        global_load_dwordx4 v[vX+4*\g:vX+4*\g+3], v[vOff], s[sHidden:sHidden+1] offset:1024*\g
        .endr

// Where the result goes, while the loads are under way.

        s_mov_b32       s[sHigh], 0xffff0000
        s_lshl_b32      s[sTmp], s[sRow], 8
        s_add_i32       s[sTmp], s[sTmp], s[sN]
        s_lshl_b32      s[sTmp], s[sTmp], 1

// A bf16 is the high half of its f32.

        .irp    g, 0, 1, 2, 3
        s_waitcnt       vmcnt(6-2*\g)
        .irp    d, 0, 1, 2, 3
        v_lshlrev_b32   v[vA], 16, v[vX+4*\g+\d]
        v_and_b32       v[vA+1], s[sHigh], v[vX+4*\g+\d]
        v_lshlrev_b32   v[vB], 16, v[vW+4*\g+\d]
        v_and_b32       v[vB+1], s[sHigh], v[vW+4*\g+\d]
        .if     \d == 0
        v_pk_mul_f32    v[vChain:vChain+1], v[vA:vA+1], v[vB:vB+1]
        .else
        v_pk_fma_f32    v[vChain:vChain+1], v[vA:vA+1], v[vB:vB+1], v[vChain:vChain+1]
        .endif
        .endr
        .if     \g == 0
        v_add_f32       v[vSum], v[vChain], v[vChain+1]
        .else
        v_add_f32       v[vChain], v[vChain], v[vChain+1]
        v_add_f32       v[vSum], v[vSum], v[vChain]
        .endif
        .endr

// The last lane of each 16 ends with the sum of its 16, lane 63 with the sum of all.

        .irp    distance, 8, 4, 2, 1
        s_nop           1
        v_add_f32_dpp   v[vSum], v[vSum], v[vSum] row_shr:\distance row_mask:0xf bank_mask:0xf
        .endr
        s_nop           1
        v_add_f32_dpp   v[vSum], v[vSum], v[vSum] row_bcast:15 row_mask:0xa bank_mask:0xf
        v_mov_b32       v[vOff], s[sTmp]
        s_nop           0
        v_add_f32_dpp   v[vSum], v[vSum], v[vSum] row_bcast:31 row_mask:0xc bank_mask:0xf

        s_mov_b32       exec_lo, 0
        s_brev_b32      exec_hi, 1
        v_cvt_pk_bf16_f32 v[vSum], v[vSum], v[vSum]
        global_store_short v[vOff], v[vSum], s[sOut:sOut+1]
        endkernel

        .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx950
amdhsa.kernels:
  - .name: router_gemv_bf16_n256
    .symbol: router_gemv_bf16_n256.kd
    .kernarg_segment_size: 24
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 16
    .vgpr_count: 40
    .agpr_count: 0
    .max_flat_workgroup_size: 64
    .args:
      - {.name: out,    .offset: 0,  .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: hidden, .offset: 8,  .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: weight, .offset: 16, .size: 8, .value_kind: global_buffer, .address_space: global}
...
        .end_amdgpu_metadata
