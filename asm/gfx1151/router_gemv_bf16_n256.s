// router_gemv_bf16_n256 - out[row][n] = sum over k of hidden[row][k] * weight[n][k], K 2048
//
// Contract   weight bf16 [256][2048], hidden bf16 [rows][2048], both 16-byte aligned; out f32
//            [rows][256], 8-byte aligned, disjoint from both.  All contiguous.  rows 1..64.
// Launch     grid (16, rows), block 256 (8 waves, 2 experts each), no LDS, no scratch.
// Numerics   f32, denormals kept; products enter by fma, so only sums round: v_dot2 would truncate
//            what is far below its largest term.  Lane l has elements 8 l..8 l + 7 of each 256: one
//            chain over its even elements and one over its odd ones, rising, the first product
//            rounded; then even + odd.  Lanes are added 1, 2, 4, 8, 16 apart, the upper one first.
// Oracle     router_gemv (harness/netra_harness/oracles/router_gemv.py)
// Schedule   Both rows of weight, which nobody has read before, in flight at once with half of
//            hidden, which other waves keep in the cache; the other half follows into the
//            registers that are done with.  A widened element of hidden serves two experts.  Four
//            chains side by side.

        #include "gfx1151.inc"

        karg    kWeight,  0, 8          // const bf16*
        karg    kHidden,  8, 8          // const bf16*
        karg    kOut,    16, 8          // float*, written

        sreg    sKarg,    0, 2          // on entry: kernarg pointer
        sreg    sBlock,   2             // on entry: 16 experts
        sreg    sRow,     3             // on entry: row
        sreg    sWeight,  4, 2
        sreg    sHidden,  6, 2
        sreg    sOut,     8, 2

        .equiv  sHigh,   sKarg          // mask of the high half; kernarg pointer is dead by then

        vreg    vTid,     0             // on entry: 0..255; then 8 times the pair of experts
        vreg    vOff,     1             // of hidden
        vreg    vX,       2, 16         // hidden: 4 of 8 groups of 4 dwords of two bf16
        vreg    vW,      18, 64         // weight: 8 groups of the first expert, 8 of the second
        vreg    vA,      82, 2          // one dword of hidden, widened: even element, odd element
        vreg    vB,      84, 4          // one dword of weight likewise, of either expert
        vreg    vChain,  88, 4          // even, odd of the first; even, odd of the second

        .equiv  vOffW,   vChain         // dead once the loads are issued
        .equiv  vSum,    vChain         // one of either expert, once the chains end
        .equiv  vOther,  vA             // sums of the other 16 lanes

        kernel  router_gemv_bf16_n256, grid=2

        s_load_b128     s[sWeight:sHidden+1], s[sKarg:sKarg+1], kWeight
        s_load_b64      s[sOut:sOut+1], s[sKarg:sKarg+1], kOut
        v_and_b32       v[vOff], 31, v[vTid]
        v_lshrrev_b32   v[vTid], 5, v[vTid]
        v_lshl_add_u32  v[vTid], s[sBlock], 3, v[vTid]          // pair of experts
        v_lshlrev_b32   v[vOff], 4, v[vOff]
        v_lshl_add_u32  v[vOffW], v[vTid], 13, v[vOff]
        v_lshlrev_b32   v[vTid], 3, v[vTid]
        v_lshl_add_u32  v[vOff], s[sRow], 12, v[vOff]
        v_add_nc_u32    v[vOffW], 0x1000, v[vOffW]              // of the second expert
        s_waitcnt       lgkmcnt(0)
        .irp    g, 0, 1, 2, 3
        global_load_b128 v[vX+4*\g:vX+4*\g+3], v[vOff], s[sHidden:sHidden+1] offset:512*\g
        global_load_b128 v[vW+4*\g:vW+4*\g+3], v[vOffW], s[sWeight:sWeight+1] offset:512*\g-4096
        global_load_b128 v[vW+4*\g+32:vW+4*\g+35], v[vOffW], s[sWeight:sWeight+1] offset:512*\g
        .endr
        .irp    g, 4, 5, 6, 7
        global_load_b128 v[vW+4*\g:vW+4*\g+3], v[vOffW], s[sWeight:sWeight+1] offset:512*\g-4096
        global_load_b128 v[vW+4*\g+32:vW+4*\g+35], v[vOffW], s[sWeight:sWeight+1] offset:512*\g
        .endr
        s_mov_b32       s[sHigh], 0xffff0000

// A bf16 is the high half of its f32.  Behind group g of the first four there are 20 - 3 (g + 1)
// loads of the first round and g of the second; behind group g of the last four, 7 - g.

        .irp    g, 0, 1, 2, 3, 4, 5, 6, 7
        .if     \g < 4
        s_waitcnt       vmcnt(17-2*\g)
        .else
        s_waitcnt       vmcnt(7-\g)
        .endif
        .irp    d, 0, 1, 2, 3
        v_lshlrev_b32   v[vA], 16, v[vX+4*(\g&3)+\d]
        v_lshlrev_b32   v[vB], 16, v[vW+4*\g+\d]
        v_lshlrev_b32   v[vB+2], 16, v[vW+4*\g+\d+32]
        v_and_b32       v[vA+1], s[sHigh], v[vX+4*(\g&3)+\d]
        v_and_b32       v[vB+1], s[sHigh], v[vW+4*\g+\d]
        v_and_b32       v[vB+3], s[sHigh], v[vW+4*\g+\d+32]
        .irp    c, 0, 1, 2, 3
        .if     \g + \d == 0
        v_mul_f32       v[vChain+\c], v[vA+(\c&1)], v[vB+\c]
        .else
        v_fmac_f32      v[vChain+\c], v[vA+(\c&1)], v[vB+\c]
        .endif
        .endr
        .endr
        .if     \g < 4
        global_load_b128 v[vX+4*\g:vX+4*\g+3], v[vOff], s[sHidden:sHidden+1] offset:512*\g+2048
        .endif
        .endr

// The sums of both experts, side by side.

        v_add_f32       v[vSum], v[vChain], v[vChain+1]
        v_add_f32       v[vSum+1], v[vChain+2], v[vChain+3]
        .irp    m, 1, 2, 4, 8
        .irp    c, 0, 1
        v_add_f32_dpp   v[vSum+\c], v[vSum+\c], v[vSum+\c] row_xmask:\m row_mask:0xf bank_mask:0xf
        .endr
        .endr
        .irp    c, 0, 1
        v_permlanex16_b32 v[vOther+\c], v[vSum+\c], 0, 0      // lane 0 of the other 16
        .endr
        .irp    c, 0, 1
        v_add_f32       v[vSum+\c], v[vOther+\c], v[vSum+\c]
        .endr

        v_lshl_add_u32  v[vTid], s[sRow], 10, v[vTid]
        s_mov_b32       exec_lo, 1
        global_store_b64 v[vTid], v[vSum:vSum+1], s[sOut:sOut+1]
        endkernel

        .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx1151
amdhsa.kernels:
  - .name: router_gemv_bf16_n256
    .symbol: router_gemv_bf16_n256.kd
    .kernarg_segment_size: 24
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 32
    .sgpr_count: 12
    .vgpr_count: 92
    .max_flat_workgroup_size: 256
    .args:
      - {.name: weight, .offset: 0,  .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: hidden, .offset: 8,  .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: out,    .offset: 16, .size: 8, .value_kind: global_buffer, .address_space: global}
...
        .end_amdgpu_metadata
