// moe_align_block_size - sorts the slots of a routing by expert, each expert padded to whole blocks
//
// Contract   topk_ids i32 [tokens][k]: slot s = k token + j chose expert topk_ids[s].  numel, which
//            is tokens k, 1..81920; experts 1..256; block a power of two to 128.  sorted_token_ids
//            [slots], expert_ids [blocks], num_tokens_post_padded [1].  All i32, contiguous, 4-byte
//            aligned, disjoint.  slots >= what any routing of numel slots may need, which is
//            min(numel + experts (block - 1), numel block).  Slots whose id is not in
//            0..experts - 1, such as -1, are left out.
// Launch     grid (1), block 1024 (32 waves), 33824 bytes of LDS, no scratch.
// Numerics   integers.  Slots rise within an expert; what pads it, and all of sorted_token_ids
//            behind the last block, is numel.  expert_ids is -1 behind the last block.
// Oracle     moe_align_block_size (harness/netra_harness/oracles/moe_align_block_size.py)
// Schedule   Waves own 32 consecutive parts of the slots.  They count, column sums become where
//            each wave's share of each expert starts, and then each wave places its slots in
//            order: lanes with equal experts find each other through one ballot for each bit.

        #include "gfx1151.inc"

        karg    kTopkIds,              0, 8     // const int32*
        karg    kSortedTokenIds,       8, 8     // int32*, written
        karg    kExpertIds,           16, 8     // int32*, written
        karg    kNumTokensPostPadded, 24, 8     // int32*, written
        karg    kNumel,               32, 4     // uint32
        karg    kExperts,             36, 4     // uint32
        karg    kBlock,               40, 4     // uint32
        karg    kSlots,               44, 4     // uint32
        karg    kBlocks,              48, 4     // uint32

        sreg    sKarg,       0, 2       // on entry: kernarg pointer
        sreg    sWg,         2          // on entry: 0
        sreg    sIds,        4, 2
        sreg    sSorted,     6, 2
        sreg    sOwner,      8, 2
        sreg    sPost,      10, 2
        sreg    sNumel,     12
        sreg    sExperts,   13
        sreg    sBlock,     14
        sreg    sSlots,     15
        sreg    sBlocks,    16
        sreg    sRow,       17          // LDS: 256 counters of this wave
        sreg    sFirst,     18          // this wave's slots: first, end
        sreg    sEnd,       19
        sreg    sAt,        20          // first slot of 32
        sreg    sLow,       21          // block - 1
        sreg    sMask,      22          // lanes

        vreg    vTid,        0          // on entry: 0..1023
        vreg    vLane,       1
        vreg    vSlot,       2
        vreg    vOff,        3
        vreg    vId,         4
        vreg    vAddr,       5
        vreg    vSame,       6          // lanes of the same expert
        vreg    vBit,        7
        vreg    vRank,       8
        vreg    vHere,       9
        vreg    vBase,      10
        vreg    vN,         11, 32      // what 32 waves have of one expert

        .equiv  vValue,     vN          // while sorted and owner are written
        .equiv  vExpert,    vN+1
        .equiv  vProbe,     vN+2
        .equiv  vTarget,    vN+3
        .equiv  vTotal,     vN+8        // while bases are added up

        .equiv  LDS_BASE,   32768       // first sorted slot of each expert
        .equiv  LDS_POST,   33792       // their sum

        kernel  moe_align_block_size, lds=33824

        s_load_b256     s[sIds:sPost+1], s[sKarg:sKarg+1], kTopkIds
        s_load_b128     s[sNumel:sSlots], s[sKarg:sKarg+1], kNumel
        s_load_b32      s[sBlocks], s[sKarg:sKarg+1], kBlocks
        v_lshrrev_b32   v[vSlot], 5, v[vTid]
        v_and_b32       v[vLane], 31, v[vTid]
        v_lshlrev_b32   v[vAddr], 4, v[vTid]
        v_readfirstlane_b32 s[sFirst], v[vSlot]
        .irp    i, 0, 1, 2, 3
        v_mov_b32       v[vN+\i], 0
        .endr
        s_lshl_b32      s[sRow], s[sFirst], 10
        ds_store_b128   v[vAddr], v[vN:vN+3]
        ds_store_b128   v[vAddr], v[vN:vN+3] offset:16384
        s_waitcnt       lgkmcnt(0)

// Each wave takes ceil(ceil(numel / 32) / 32) times 32 slots.

        s_add_i32       s[sAt], s[sNumel], 1023
        s_lshr_b32      s[sAt], s[sAt], 10
        s_lshl_b32      s[sAt], s[sAt], 5
        s_mul_i32       s[sFirst], s[sFirst], s[sAt]
        s_add_i32       s[sEnd], s[sFirst], s[sAt]
        s_min_u32       s[sEnd], s[sEnd], s[sNumel]
        s_sub_i32       s[sLow], s[sBlock], 1
        s_barrier                               // all counters are 0

// Everything is padding until a slot takes its place.

        v_mov_b32       v[vSlot], v[vTid]
        v_mov_b32       v[vValue], s[sNumel]
.Lfill:
        v_cmpx_gt_u32   s[sSlots], v[vSlot]
        v_lshlrev_b32   v[vOff], 2, v[vSlot]
        global_store_b32 v[vOff], v[vValue], s[sSorted:sSorted+1]
        v_add_nc_u32    v[vSlot], 0x400, v[vSlot]
        s_cbranch_execnz .Lfill
        s_mov_b32       exec_lo, -1

// Count.  A wave whose part is behind the end has no lane left in its only round.

        s_mov_b32       s[sAt], s[sFirst]
        v_mov_b32       v[vHere], 1
.Lcount:
        v_add_nc_u32    v[vSlot], s[sAt], v[vLane]
        v_cmpx_gt_u32   s[sEnd], v[vSlot]
        v_lshlrev_b32   v[vOff], 2, v[vSlot]
        global_load_b32 v[vId], v[vOff], s[sIds:sIds+1]
        s_waitcnt       vmcnt(0)
        v_cmpx_gt_u32   s[sExperts], v[vId]
        v_lshl_add_u32  v[vAddr], v[vId], 2, s[sRow]
        ds_add_u32      v[vAddr], v[vHere]
        s_mov_b32       exec_lo, -1
        s_add_i32       s[sAt], s[sAt], 32
        s_cmp_lt_u32    s[sAt], s[sEnd]
        s_cbranch_scc1  .Lcount
        s_waitcnt       lgkmcnt(0)
        s_waitcnt_vscnt null, 0                 // the fill comes before what is placed
        s_barrier

// Thread e < 256: of its column, what all waves before have of expert e; then its padded size.

        v_cmpx_gt_u32   0x100, v[vTid]
        s_cbranch_execz .Lsized
        v_lshlrev_b32   v[vAddr], 2, v[vTid]
        .set    .w, 0
        .rept   32
        ds_load_b32     v[vN+.w], v[vAddr] offset:1024*.w
        .set    .w, .w + 1
        .endr
        v_mov_b32       v[vHere], 0
        s_waitcnt       lgkmcnt(0)
        ds_store_b32    v[vAddr], v[vHere]
        .set    .w, 1
        .rept   31
        ds_store_b32    v[vAddr], v[vN+.w-1] offset:1024*.w
        v_add_nc_u32    v[vN+.w], v[vN+.w-1], v[vN+.w]
        .set    .w, .w + 1
        .endr
        v_add_nc_u32    v[vN+31], s[sLow], v[vN+31]
        s_not_b32       s[sMask], s[sLow]
        v_and_b32       v[vN+31], s[sMask], v[vN+31]
        ds_store_b32    v[vAddr], v[vN+31] offset:LDS_BASE
        s_waitcnt       lgkmcnt(0)
.Lsized:
        s_mov_b32       exec_lo, -1
        s_barrier

// The first wave adds the sizes up: 8 experts in a lane, then across the lanes.

        s_cmp_lg_u32    s[sRow], 0
        s_cbranch_scc1  .Lbased
        v_lshlrev_b32   v[vAddr], 5, v[vLane]
        ds_load_b128    v[vN:vN+3], v[vAddr] offset:LDS_BASE
        ds_load_b128    v[vN+4:vN+7], v[vAddr] offset:LDS_BASE+16
        s_waitcnt       lgkmcnt(0)
        .irp    i, 1, 2, 3, 4, 5, 6, 7
        v_add_nc_u32    v[vN+\i], v[vN+\i-1], v[vN+\i]
        .endr
        v_mov_b32       v[vTotal], v[vN+7]
        .irp    d, 1, 2, 4, 8
        v_add_nc_u32_dpp v[vTotal], v[vTotal], v[vTotal] row_shr:\d row_mask:0xf bank_mask:0xf
        .endr
        v_readlane_b32  s[sMask], v[vTotal], 15
        s_mov_b32       exec_lo, 0xffff0000
        v_add_nc_u32    v[vTotal], s[sMask], v[vTotal]
        s_mov_b32       exec_lo, -1
        v_readlane_b32  s[sMask], v[vTotal], 31
        v_sub_nc_u32    v[vBase], v[vTotal], v[vN+7]    // of the first of 8
        .irp    i, 7, 6, 5, 4, 3, 2, 1
        v_add_nc_u32    v[vN+\i], v[vBase], v[vN+\i-1]
        .endr
        v_mov_b32       v[vN], v[vBase]
        ds_store_b128   v[vAddr], v[vN:vN+3] offset:LDS_BASE
        ds_store_b128   v[vAddr], v[vN+4:vN+7] offset:LDS_BASE+16
        v_mov_b32       v[vTotal], s[sMask]
        v_mov_b32       v[vAddr], 0
        s_mov_b32       exec_lo, 1
        ds_store_b32    v[vAddr], v[vTotal] offset:LDS_POST
        global_store_b32 v[vAddr], v[vTotal], s[sPost:sPost+1]
        s_mov_b32       exec_lo, -1
        s_waitcnt       lgkmcnt(0)
.Lbased:
        s_barrier

// Place: base of the expert, then what waves before have of it and what this wave had, then the
// lanes before with the same expert.  The first of them counts them all.

        s_mov_b32       s[sAt], s[sFirst]
.Lplace:
        v_add_nc_u32    v[vSlot], s[sAt], v[vLane]
        v_cmpx_gt_u32   s[sEnd], v[vSlot]
        v_lshlrev_b32   v[vOff], 2, v[vSlot]
        global_load_b32 v[vId], v[vOff], s[sIds:sIds+1]
        s_waitcnt       vmcnt(0)
        v_cmpx_gt_u32   s[sExperts], v[vId]
        v_lshlrev_b32   v[vBase], 2, v[vId]
        v_add_nc_u32    v[vAddr], s[sRow], v[vBase]
        ds_load_b32     v[vHere], v[vAddr]
        ds_load_b32     v[vBase], v[vBase] offset:LDS_BASE
        v_mov_b32       v[vSame], exec_lo
        .irp    b, 0, 1, 2, 3, 4, 5, 6, 7
        v_bfe_i32       v[vBit], v[vId], \b, 1          // 0 or -1
        v_cmp_ne_u32    s[sMask], 0, v[vBit]
        v_xnor_b32      v[vBit], s[sMask], v[vBit]
        v_and_b32       v[vSame], v[vSame], v[vBit]
        .endr
        v_mbcnt_lo_u32_b32 v[vRank], v[vSame], 0
        s_waitcnt       lgkmcnt(0)
        v_add3_u32      v[vBase], v[vBase], v[vHere], v[vRank]
        v_lshlrev_b32   v[vBase], 2, v[vBase]
        global_store_b32 v[vBase], v[vSlot], s[sSorted:sSorted+1]
        v_bcnt_u32_b32  v[vHere], v[vSame], v[vHere]
        v_cmpx_eq_u32   0, v[vRank]
        ds_store_b32    v[vAddr], v[vHere]
        s_mov_b32       exec_lo, -1
        s_add_i32       s[sAt], s[sAt], 32
        s_cmp_lt_u32    s[sAt], s[sEnd]
        s_cbranch_scc1  .Lplace

// The owner of a block is the last expert whose base is not behind its start.

        v_mov_b32       v[vAddr], 0
        ds_load_b32     v[vBase], v[vAddr] offset:LDS_POST
        v_mov_b32       v[vSlot], v[vTid]
        s_waitcnt       lgkmcnt(0)
        v_cmpx_gt_u32   s[sBlocks], v[vSlot]
        s_cbranch_execz .Lowned
.Lown:
        v_mul_lo_u32    v[vTarget], s[sBlock], v[vSlot]
        v_mov_b32       v[vExpert], 0
        .irp    d, 128, 64, 32, 16, 8, 4, 2, 1
        v_or_b32        v[vValue], \d, v[vExpert]
        v_lshlrev_b32   v[vAddr], 2, v[vValue]
        ds_load_b32     v[vProbe], v[vAddr] offset:LDS_BASE
        s_waitcnt       lgkmcnt(0)
        v_cmp_le_u32    vcc_lo, v[vProbe], v[vTarget]
        v_cndmask_b32   v[vExpert], v[vExpert], v[vValue], vcc_lo
        .endr
        v_cmp_gt_u32    vcc_lo, v[vBase], v[vTarget]
        v_cndmask_b32   v[vExpert], -1, v[vExpert], vcc_lo
        v_lshlrev_b32   v[vOff], 2, v[vSlot]
        global_store_b32 v[vOff], v[vExpert], s[sOwner:sOwner+1]
        v_add_nc_u32    v[vSlot], 0x400, v[vSlot]
        v_cmpx_gt_u32   s[sBlocks], v[vSlot]
        s_cbranch_execnz .Lown
.Lowned:
        endkernel

        .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx1151
amdhsa.kernels:
  - .name: moe_align_block_size
    .symbol: moe_align_block_size.kd
    .kernarg_segment_size: 56
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 33824
    .private_segment_fixed_size: 0
    .wavefront_size: 32
    .sgpr_count: 25
    .vgpr_count: 43
    .max_flat_workgroup_size: 1024
    .args:
      - {.name: topk_ids, .offset: 0, .size: 8,
         .value_kind: global_buffer, .address_space: global}
      - {.name: sorted_token_ids, .offset: 8, .size: 8,
         .value_kind: global_buffer, .address_space: global}
      - {.name: expert_ids, .offset: 16, .size: 8,
         .value_kind: global_buffer, .address_space: global}
      - {.name: num_tokens_post_padded, .offset: 24, .size: 8,
         .value_kind: global_buffer, .address_space: global}
      - {.name: numel,   .offset: 32, .size: 4, .value_kind: by_value}
      - {.name: experts, .offset: 36, .size: 4, .value_kind: by_value}
      - {.name: block,   .offset: 40, .size: 4, .value_kind: by_value}
      - {.name: slots,   .offset: 44, .size: 4, .value_kind: by_value}
      - {.name: blocks,  .offset: 48, .size: 4, .value_kind: by_value}
...
        .end_amdgpu_metadata
