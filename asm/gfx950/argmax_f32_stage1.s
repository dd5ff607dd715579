// argmax_f32_stage1 - partial[row][b] = max over the columns c of chunk b of key(logits[row][c], c)
//
// Contract   logits f32 [rows][248320], contiguous, 16-byte aligned; rows 1..4096, so that a byte
//            offset stays below 2^32.  Chunk b = columns 1940 b .. 1940 b + 1939.  partial is
//            u64 [rows][128], written whole, disjoint from logits.
//            key = ordered(value) << 32 | ~column.  ordered() rises with the value, is 0x80000000
//            for -0 and +0, 0xffffffff for every NaN.  The largest key is thus the first NaN,
//            else the first of the largest values.
// Launch     grid (128, rows), block 64 (1 wave), no LDS, no scratch.
// Numerics   exact: comparisons only.  f32 denormals kept.  DX10_CLAMP is 0, because one reading
//            of the guide lets that bit turn the NaN of v_maximum3_f32 into 0.
// Oracle     argmax (harness/netra_harness/oracles/argmax.py)
// Schedule   All eight 16-byte loads are in flight before the first is used; each is folded into
//            the running maximum as it lands.  Value first, column second: when the maximum of
//            the chunk is known, the first column that holds it is found with scalar masks.

        #include "gfx950.inc"

        .equiv  ROW_BYTES,   993280     // 248320 * 4
        .equiv  CHUNK,       1940       // columns; 128 chunks make a row
        .equiv  GROUP,       256        // columns that the wave loads at once, 4 a lane
        .equiv  TAIL_LANES,  37         // 1940 = 7 * 256 + 4 * 37

        karg    kPartial, 0, 8          // u64*, written
        karg    kLogits,  8, 8          // const float*

        sreg    sKarg,    0, 2          // on entry: kernarg pointer
        sreg    sWg,      2             // on entry: chunk; then first column of the group
        sreg    sRow,     3             // on entry: row; then byte offset of the key
        sreg    sPartial, 4, 2
        sreg    sLogits,  6, 2          // 4096 bytes into the chunk
        sreg    sHi,      8             // high half of the key
        sreg    sBelow,   9             // a value is the maximum iff it is not <= this one
        sreg    sMask,   10, 8          // 4 lane masks: element 0..3 of the lane is the maximum

        .equiv  sTmp,    sKarg          // dead once the arguments are loaded
        .equiv  sTmp1,   sKarg + 1
        .equiv  sFirst,  sMask          // each ff1 overwrites the mask that it came from

        vreg    vLane,    0             // on entry: 0..63
        vreg    vMax,     1
        vreg    vOff,     2             // 16 * lane
        vreg    vTail,    3             // the same for group 7
        vreg    vX,       4, 32         // group g of the lane: v[vX+4*g : vX+4*g+3]

        .equiv  vKey,    vX             // dead once the column is known
        .equiv  vDst,    vOff

        kernel  argmax_f32_stage1, grid=2, dx10_clamp=0

        s_load_dwordx4  s[sPartial:sLogits+1], s[sKarg:sKarg+1], kPartial
        v_lshlrev_b32   v[vOff], 4, v[vLane]
        v_mov_b32       v[vMax], 0xff800000             // -inf
        v_cmp_gt_u32    vcc, TAIL_LANES, v[vLane]
        v_add_u32       v[vTail], 3072, v[vOff]

// The immediate offset reaches -4096..4095: from 4096 bytes into the chunk, that is all of it.

        s_waitcnt       lgkmcnt(0)
        s_mul_i32       s[sTmp], s[sRow], ROW_BYTES
        s_mul_i32       s[sTmp1], s[sWg], CHUNK * 4
        s_add_u32       s[sTmp], s[sTmp], s[sTmp1]
        s_addk_i32      s[sTmp], 4096
        s_add_u32       s[sLogits], s[sLogits], s[sTmp]
        s_addc_u32      s[sLogits+1], s[sLogits+1], 0

        .set    g, 0
        .rept   7
        global_load_dwordx4 v[vX+4*g:vX+4*g+3], v[vOff], s[sLogits:sLogits+1] offset:1024*g-4096
        .set    g, g + 1
        .endr

// Group 7 is 37 lanes wide.  The others read group 4 again: a copy is never the first.

        v_cndmask_b32   v[vTail], v[vOff], v[vTail], vcc
        global_load_dwordx4 v[vX+28:vX+31], v[vTail], s[sLogits:sLogits+1]

        s_lshl_b32      s[sRow], s[sRow], 7             // where the key goes
        s_add_u32       s[sRow], s[sRow], s[sWg]
        s_lshl_b32      s[sRow], s[sRow], 3
        s_mul_i32       s[sWg], s[sWg], CHUNK

        .set    g, 0
        .rept   8
        s_waitcnt       vmcnt(7-g)
        v_maximum3_f32  v[vMax], v[vMax], v[vX+4*g], v[vX+4*g+1]
        v_maximum3_f32  v[vMax], v[vMax], v[vX+4*g+2], v[vX+4*g+3]
        .set    g, g + 1
        .endr

// A lane that saw a NaN holds one.  Then the chunk's maximum is NaN: what is not <= +inf.

        v_cmp_u_f32     vcc, v[vMax], v[vMax]
        s_mov_b32       s[sHi], -1
        s_mov_b32       s[sBelow], 0x7f800000
        s_cbranch_vccnz .Lfind

// Else the maximum over the lanes: 16 lanes of a row, the row before, the half before; lane 63
// has it all.

        v_max_f32_dpp   v[vMax], v[vMax], v[vMax] quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
        s_nop           1
        v_max_f32_dpp   v[vMax], v[vMax], v[vMax] quad_perm:[2,3,0,1] row_mask:0xf bank_mask:0xf
        s_nop           1
        v_max_f32_dpp   v[vMax], v[vMax], v[vMax] row_half_mirror row_mask:0xf bank_mask:0xf
        s_nop           1
        v_max_f32_dpp   v[vMax], v[vMax], v[vMax] row_mirror row_mask:0xf bank_mask:0xf
        s_nop           1
        v_max_f32_dpp   v[vMax], v[vMax], v[vMax] row_bcast:15 row_mask:0xa bank_mask:0xf
        s_nop           1
        v_max_f32_dpp   v[vMax], v[vMax], v[vMax] row_bcast:31 row_mask:0xc bank_mask:0xf
        s_nop           0
        v_readlane_b32  s[sTmp], v[vMax], 63

// sHi = ordered(max), zero taken as +0.
// sBelow = the next value below max, zero taken as -0 (below it: the smallest negative).  Below
// -inf there is a NaN, and nothing is <= NaN: every column counts, as it should.

        s_and_b32       s[sTmp1], s[sTmp], 0x7fffffff   // SCC = not a zero
        s_cselect_b32   s[sHi], s[sTmp], 0
        s_cselect_b32   s[sBelow], s[sTmp], 0x80000000
        s_ashr_i32      s[sTmp], s[sHi], 31
        s_or_b32        s[sTmp], s[sTmp], 0x80000000
        s_xor_b32       s[sHi], s[sHi], s[sTmp]
        s_ashr_i32      s[sTmp], s[sBelow], 31
        s_or_b32        s[sTmp], s[sTmp], 1             // +1, or -1 below zero
        s_sub_u32       s[sBelow], s[sBelow], s[sTmp]

// The first group with a hit.  Column 256 g + 4 lane + element rises with g, lane, element.

.Lfind:
        .set    g, 0
        .rept   8
        v_cmp_nle_f32   s[sMask:sMask+1], v[vX+4*g], s[sBelow]
        v_cmp_nle_f32   s[sMask+2:sMask+3], v[vX+4*g+1], s[sBelow]
        v_cmp_nle_f32   s[sMask+4:sMask+5], v[vX+4*g+2], s[sBelow]
        v_cmp_nle_f32   s[sMask+6:sMask+7], v[vX+4*g+3], s[sBelow]
        .if     g < 7
        s_or_b64        vcc, s[sMask:sMask+1], s[sMask+2:sMask+3]
        s_or_b64        vcc, vcc, s[sMask+4:sMask+5]
        s_or_b64        vcc, vcc, s[sMask+6:sMask+7]
        s_cbranch_vccnz .Lfound
        s_addk_i32      s[sWg], GROUP
        .endif
        .set    g, g + 1
        .endr

// The least of 4 ff1(mask) + element.  An empty mask gives ff1 = -1, which as unsigned loses.

.Lfound:
        .set    e, 0
        .rept   4
        s_ff1_i32_b64   s[sFirst+2*e], s[sMask+2*e:sMask+2*e+1]
        s_lshl2_add_u32 s[sFirst+2*e], s[sFirst+2*e], e
        .set    e, e + 1
        .endr
        s_min_u32       s[sFirst], s[sFirst], s[sFirst+2]
        s_min_u32       s[sFirst+4], s[sFirst+4], s[sFirst+6]
        s_min_u32       s[sFirst], s[sFirst], s[sFirst+4]
        s_add_u32       s[sWg], s[sWg], s[sFirst]
        s_not_b32       s[sWg], s[sWg]

        s_mov_b64       exec, 1
        v_mov_b32       v[vDst], s[sRow]
        v_mov_b32       v[vKey], s[sWg]
        v_mov_b32       v[vKey+1], s[sHi]
        global_store_dwordx2 v[vDst], v[vKey:vKey+1], s[sPartial:sPartial+1]
        endkernel

        .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx950
amdhsa.kernels:
  - .name: argmax_f32_stage1
    .symbol: argmax_f32_stage1.kd
    .kernarg_segment_size: 16
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 24
    .vgpr_count: 36
    .agpr_count: 0
    .max_flat_workgroup_size: 64
    .args:
      - {.name: partial, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: logits,  .offset: 8, .size: 8, .value_kind: global_buffer, .address_space: global}
...
        .end_amdgpu_metadata
