// smallm_router_bf16 - the top 10 of 512 experts by x[m] . gate[n], softmax over all, renormalised,
//                      and behind them expert 512 with scale * sigmoid(x[m] . shared_gate)
//
// Contract   x bf16 [m][4096], rows `stride` elements apart, a multiple of 8; gate bf16
//            [512][4096], shared_gate bf16 [1][4096], contiguous; all three 16-byte aligned;
//            out_ids i32, out_weights f32 [m][11].  m 1..8.  workspace: a u32 ticket, 0 between
//            launches, then from byte 128 on 8 rows of 516 dwords; streams that may run at the
//            same time have one each.
// Launch     grid 513 (a row of the gates each), block 256 (4 waves), LDS 128 bytes, no scratch.
// Numerics   f32.  Thread t has elements 8 t..8 t + 7 of each 2048: one chain of 8 v_dot2 from 0,
//            whose adder is the named model.  Lanes are added 32, 16, 8, 4, 2, 1 apart, waves as
//            (0 + 1) + (2 + 3).  A routed logit is rounded to bf16; -0 counts as 0, a NaN below
//            -inf, and of equals the lowest expert comes first.  e = exp2(log2e * (logit - max)).
//            The sum of e: a lane has experts 8 l..8 l + 7 and adds i, i + 2, i + 4, i + 6 as
//            (0 + 2) + (4 + 6) for i = 0 and 1, then both; neighbouring lanes first.  a = e / sum;
//            the ten are added with neighbours first; weight = a / that.  Divisions are IEEE's.
// Oracle     smallm_router (harness/netra_harness/oracles/smallm_router.py)
// Schedule   All loads of a workgroup are in flight at once, tokens from the last to the first, so
//            that token t waits for 2 t loads whatever m is.  Eight sums are reduced together: each
//            step halves the lanes of a sum and the registers of all.  The workgroup that draws the
//            last ticket ranks the tokens, a wave each.

        #include "gfx950.inc"
        #include "ieee.inc"

        karg    kX,           0, 8      // const bf16*
        karg    kGate,        8, 8      // const bf16*
        karg    kSharedGate, 16, 8      // const bf16*
        karg    kOutIds,     24, 8      // int32*, written
        karg    kOutWeights, 32, 8      // float*, written
        karg    kWorkspace,  40, 8      // read and written
        karg    kM,          48, 4      // uint32
        karg    kStride,     52, 4      // uint32, elements
        karg    kScale,      56, 4      // float

        sreg    sKarg,        0, 2      // on entry: kernarg pointer
        sreg    sN,           2         // on entry: row of the gates
        sreg    sWave,        3         // 0..3; then the token that the wave ranks
        sreg    sX,           4, 2
        sreg    sGate,        6, 2
        sreg    sSharedGate,  8, 2
        sreg    sOutIds,     10, 2
        sreg    sOutWeights, 12, 2
        sreg    sWork,       14, 2
        sreg    sM,          16
        sreg    sStride,     17
        sreg    sScale,      18, 2      // and the padding behind it
        sreg    sTmp,        20

// While ranking:

        .equiv  sLast,   sX             // the key chosen last, 0 before the first
        .equiv  sSum,    sGate          // of all e
        .equiv  sMax,    sGate + 1      // the largest logit
        .equiv  sHigh,   sSharedGate    // mask of the high half
        .equiv  sLog2e,  sSharedGate + 1
        .equiv  sTicket, sTmp

        vreg    vTid,     0             // on entry: 0..255; while ranking, the lane
        vreg    vOff,     1             // where a load or store goes
        vreg    vW,       2, 8          // gate: 2 runs of 4 dwords of two bf16
        vreg    vX,      10, 64         // x: 8 tokens of 2 such runs
        vreg    vAcc,    74, 8          // one sum for each token

        .equiv  vKeyId,  vW             // the low half of keys: 0xffff - expert
        .equiv  vSign,   vW + 1
        .equiv  vParts,  vX             // 4 sums, one of each wave

// While ranking: keys sort experts; the high half tells the logit, the low half the expert.

        .equiv  vKey,    vX             // of experts 8 l..8 l + 7
        .equiv  vT,      vX + 8         // 8: keys less the one chosen last; then e
        .equiv  vMost,   vX + 16        // the largest of them
        .equiv  vWin,    vX + 17        // chosen keys: rank r in lane r
        .equiv  vShared, vX + 18        // logit of the shared gate; then 1 + exp(-that)
        .equiv  vA,      vX + 19        // a of the chosen, 0 in other lanes
        .equiv  vTen,    vX + 20        // the sum of these
        .equiv  vDs,     vX + 21        // division: denominator scaled
        .equiv  vNs,     vX + 22        //           numerator scaled
        .equiv  vR,      vX + 23        //           reciprocal of the denominator
        .equiv  vE,      vX + 24        //           error

// The logit of a key: undoes the ordering, and drops the expert.

.macro  logit l:req, key:req
        v_ashrrev_i32   v[\l], 31, v[\key]
        v_bfi_b32       v[\l], v[\l], v[vSign], -1      // 0x80000000 or all ones
        v_xor_b32       v[\l], v[\l], v[\key]
        v_and_b32       v[\l], s[sHigh], v[\l]
.endm

        kernel  smallm_router_bf16, lds=128

        s_load_dwordx8  s[sX:sOutIds+1], s[sKarg:sKarg+1], kX
        s_load_dwordx4  s[sOutWeights:sWork+1], s[sKarg:sKarg+1], kOutWeights
        s_load_dwordx4  s[sM:sScale+1], s[sKarg:sKarg+1], kM
        v_lshrrev_b32   v[vW], 6, v[vTid]
        v_lshlrev_b32   v[vOff], 4, v[vTid]
        v_readfirstlane_b32 s[sWave], v[vW]
        v_add_u32       v[vOff], 0x800, v[vOff]         // offsets reach 4095 up, 4096 down
        .irp    t, 0, 2, 4, 6
        v_mov_b64       v[vAcc+\t:vAcc+\t+1], 0
        .endr
        s_waitcnt       lgkmcnt(0)

// The gate of this workgroup; row 512 is the shared one.

        s_lshl_b32      s[sTmp], s[sN], 13
        s_add_u32       s[sGate], s[sGate], s[sTmp]
        s_addc_u32      s[sGate+1], s[sGate+1], 0
        s_cmp_eq_u32    s[sN], 512
        s_cselect_b64   s[sGate:sGate+1], s[sSharedGate:sSharedGate+1], s[sGate:sGate+1]
        global_load_dwordx4 v[vW:vW+3], v[vOff], s[sGate:sGate+1] offset:-2048
        global_load_dwordx4 v[vW+4:vW+7], v[vOff], s[sGate:sGate+1] offset:2048

// Tokens m - 1 to 0.

        s_sub_u32       s[sTmp], s[sM], 1
        s_mul_i32       s[sTmp], s[sTmp], s[sStride]
        s_lshl_b32      s[sStride], s[sStride], 1
        s_lshl_b32      s[sTmp], s[sTmp], 1
        v_add_u32       v[vOff], s[sTmp], v[vOff]
        .irp    t, 7, 6, 5, 4, 3, 2, 1, 0
        s_cmp_le_u32    s[sM], \t
        s_cbranch_scc1  .Lload\t
        global_load_dwordx4 v[vX+8*\t:vX+8*\t+3], v[vOff], s[sX:sX+1] offset:-2048
        global_load_dwordx4 v[vX+8*\t+4:vX+8*\t+7], v[vOff], s[sX:sX+1] offset:2048
        v_subrev_u32    v[vOff], s[sStride], v[vOff]
.Lload\t:
        .endr

        .irp    t, 7, 6, 5, 4, 3, 2, 1, 0
        s_cmp_le_u32    s[sM], \t
        s_cbranch_scc1  .Ldot\t
        s_waitcnt       vmcnt(2*\t)
        v_dot2_f32_bf16 v[vAcc+\t], v[vX+8*\t], v[vW], 0
        .irp    d, 1, 2, 3, 4, 5, 6, 7
        v_dot2_f32_bf16 v[vAcc+\t], v[vX+8*\t+\d], v[vW+\d], v[vAcc+\t]
        .endr
.Ldot\t:
        .endr

// Sums over 64 lanes.  Tokens t and t + 4: the lower half of the lanes takes one, the upper half
// the other.  Then quarters, then eighths, by which time lanes 8 t and up hold token t.

        s_nop           2               // what is not a v_dot2 may not read its result sooner
        .irp    t, 0, 1, 2, 3
        v_permlane32_swap_b32 v[vAcc+\t], v[vAcc+\t+4]
        .endr
        .irp    t, 0, 2, 1, 3
        v_add_f32       v[vAcc+\t], v[vAcc+\t], v[vAcc+\t+4]
        .endr
        v_permlane16_swap_b32 v[vAcc], v[vAcc+2]
        s_nop           0
        v_permlane16_swap_b32 v[vAcc+1], v[vAcc+3]
        v_add_f32       v[vAcc], v[vAcc], v[vAcc+2]
        v_add_f32       v[vAcc+1], v[vAcc+1], v[vAcc+3]
        s_nop           0
        v_add_f32_dpp   v[vAcc], v[vAcc], v[vAcc] row_ror:8 row_mask:0xf bank_mask:0x3
        s_nop           1
        v_add_f32_dpp   v[vAcc], v[vAcc+1], v[vAcc+1] row_ror:8 row_mask:0xf bank_mask:0xc
        .irp    distance, 4, 2, 1
        s_nop           1
        v_add_f32_dpp   v[vAcc], v[vAcc], v[vAcc] row_shl:\distance row_mask:0xf bank_mask:0xf
        .endr

// Lane 8 t of wave w leaves its sum at LDS byte 16 t + 4 w.

        v_and_b32       v[vTid], 63, v[vTid]
        s_lshl_b32      s[sTmp], s[sWave], 2
        v_lshl_add_u32  v[vOff], v[vTid], 1, s[sTmp]
        s_mov_b32       exec_lo, 0x01010101
        s_mov_b32       exec_hi, 0x01010101
        ds_write_b32    v[vOff], v[vAcc]
        s_mov_b64       exec, -1
        s_waitcnt       lgkmcnt(0)
        s_barrier
        s_cmp_lg_u32    s[sWave], 0
        s_cbranch_scc1  .Lvote

// Wave 0, lane t: the logit of token t, and its key unless it is the shared one.  The key is the
// bf16 made to rise as an unsigned number does, above 0xffff - expert; a NaN becomes 0, which no
// number does.

        s_bfm_b64       exec, s[sM], 0
        v_lshlrev_b32   v[vOff], 4, v[vTid]
        ds_read_b128    v[vParts:vParts+3], v[vOff]
        s_sub_u32       s[sTmp], 0xffff, s[sN]
        v_mov_b32       v[vKeyId], s[sTmp]
        s_waitcnt       lgkmcnt(0)
        v_add_f32       v[vParts], v[vParts], v[vParts+1]
        v_add_f32       v[vParts+2], v[vParts+2], v[vParts+3]
        v_add_f32       v[vAcc], v[vParts], v[vParts+2]
        s_cmp_eq_u32    s[sN], 512
        s_cbranch_scc1  .Lpublish
        v_cmp_u_f32     vcc, v[vAcc], v[vAcc]
        v_cvt_pk_bf16_f32 v[vAcc], 0, v[vAcc]           // the high half: widened as it is rounded
        v_add_f32       v[vAcc], 0, v[vAcc]             // -0 becomes 0
        v_ashrrev_i32   v[vSign], 31, v[vAcc]
        v_or_b32        v[vSign], 0x80000000, v[vSign]
        v_xor_b32       v[vAcc], v[vAcc], v[vSign]
        s_mov_b32       s[sTmp], 0xffff0000
        v_bfi_b32       v[vAcc], s[sTmp], v[vAcc], v[vKeyId]
        v_cndmask_b32   v[vAcc], v[vAcc], v[vKeyId], vcc

// Release: the keys are in memory before the ticket is drawn.  The counter wraps from 512 to 0, so
// whoever draws 512 is the last and finds it ready for the next launch.

.Lpublish:
        s_lshl_b32      s[sTmp], s[sN], 2
        v_mul_u32_u24   v[vOff], 4*516, v[vTid]
        v_add_u32       v[vOff], s[sTmp], v[vOff]
        global_store_dword v[vOff], v[vAcc], s[sWork:sWork+1] offset:128
        s_mov_b64       exec, 1
        v_mov_b32       v[vOff], 0
        v_mov_b32       v[vAcc], 512
        buffer_wbl2     sc1
        s_waitcnt       vmcnt(0)
        global_atomic_inc v[vAcc], v[vOff], v[vAcc], s[sWork:sWork+1] sc0
        s_waitcnt       vmcnt(0)
        ds_write_b32    v[vOff], v[vAcc]
        s_mov_b64       exec, -1
        s_waitcnt       lgkmcnt(0)

.Lvote:
        s_barrier
        v_mov_b32       v[vOff], 0
        ds_read_b32     v[vOff], v[vOff]
        s_waitcnt       lgkmcnt(0)
        v_readfirstlane_b32 s[sTicket], v[vOff]
        s_cmp_lg_u32    s[sTicket], 512
        s_cbranch_scc1  .Ldone
        s_cmp_ge_u32    s[sWave], s[sM]
        s_cbranch_scc1  .Ldone

// Acquire: what other compute units have written is read from memory.

        buffer_inv      sc1
        s_mov_b32       s[sHigh], 0xffff0000
        s_mov_b32       s[sLog2e], 0x3fb8aa3b
        v_bfrev_b32     v[vSign], 1

.Ltoken:
        s_mul_i32       s[sTmp], s[sWave], 4*516
        v_lshl_add_u32  v[vOff], v[vTid], 5, s[sTmp]
        global_load_dwordx4 v[vKey:vKey+3], v[vOff], s[sWork:sWork+1] offset:128
        global_load_dwordx4 v[vKey+4:vKey+7], v[vOff], s[sWork:sWork+1] offset:144
        v_mov_b32       v[vOff], s[sTmp]
        global_load_dword v[vShared], v[vOff], s[sWork:sWork+1] offset:128+4*512
        s_mov_b32       s[sLast], 0
        s_mov_b32       m0, 0                           // rank
        v_mov_b32       v[vWin], 0xffff-512             // what is no rank: the shared expert
        s_waitcnt       vmcnt(1)

// Ten times the largest key below the last one.  Less the last one, modulo 2^32, keys below it are
// larger than all that are not.

.Lround:
        .irp    i, 0, 1, 2, 3, 4, 5, 6, 7
        v_subrev_u32    v[vT+\i], s[sLast], v[vKey+\i]
        .endr
        v_max3_u32      v[vMost], v[vT], v[vT+1], v[vT+2]
        v_max3_u32      v[vMost], v[vT+3], v[vT+4], v[vMost]
        v_max3_u32      v[vMost], v[vT+5], v[vT+6], v[vMost]
        v_max_u32       v[vMost], v[vT+7], v[vMost]
        .irp    distance, 8, 4, 2, 1
        s_nop           1
        v_max_u32_dpp   v[vMost], v[vMost], v[vMost] row_shr:\distance row_mask:0xf bank_mask:0xf
        .endr
        s_nop           1
        v_max_u32_dpp   v[vMost], v[vMost], v[vMost] row_bcast:15 row_mask:0xa bank_mask:0xf
        s_nop           1
        v_max_u32_dpp   v[vMost], v[vMost], v[vMost] row_bcast:31 row_mask:0xc bank_mask:0xf
        s_nop           0
        v_readlane_b32  s[sTmp], v[vMost], 63
        s_add_u32       s[sLast], s[sLast], s[sTmp]
        v_writelane_b32 v[vWin], s[sLast], m0
        s_add_u32       m0, m0, 1
        s_cmp_lt_u32    m0, 10
        s_cbranch_scc1  .Lround

// e of all experts, and their sum.

        logit   vMost, vWin
        s_nop           0
        v_readfirstlane_b32 s[sMax], v[vMost]
        .irp    i, 0, 1, 2, 3, 4, 5, 6, 7
        logit   vT+\i, vKey+\i
        .endr
        .irp    i, 0, 1, 2, 3, 4, 5, 6, 7
        v_subrev_f32    v[vT+\i], s[sMax], v[vT+\i]
        .endr
        .irp    i, 0, 1, 2, 3, 4, 5, 6, 7
        v_mul_f32       v[vT+\i], s[sLog2e], v[vT+\i]
        .endr
        .irp    i, 0, 1, 2, 3, 4, 5, 6, 7
        v_exp_f32       v[vT+\i], v[vT+\i]
        .endr
        v_pk_add_f32    v[vT:vT+1], v[vT:vT+1], v[vT+2:vT+3]
        v_pk_add_f32    v[vT+4:vT+5], v[vT+4:vT+5], v[vT+6:vT+7]
        v_pk_add_f32    v[vT:vT+1], v[vT:vT+1], v[vT+4:vT+5]
        v_add_f32       v[vT], v[vT], v[vT+1]
        s_nop           1
        v_add_f32_dpp   v[vT], v[vT], v[vT] quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
        s_nop           1
        v_add_f32_dpp   v[vT], v[vT], v[vT] quad_perm:[2,3,0,1] row_mask:0xf bank_mask:0xf
        s_nop           1
        v_add_f32_dpp   v[vT], v[vT], v[vT] row_half_mirror row_mask:0xf bank_mask:0xf
        s_nop           1
        v_add_f32_dpp   v[vT], v[vT], v[vT] row_mirror row_mask:0xf bank_mask:0xf
        s_nop           1
        v_add_f32_dpp   v[vT], v[vT], v[vT] row_bcast:15 row_mask:0xa bank_mask:0xf
        s_nop           1
        v_add_f32_dpp   v[vT], v[vT], v[vT] row_bcast:31 row_mask:0xc bank_mask:0xf
        s_nop           0
        v_readlane_b32  s[sSum], v[vT], 63

// a of the ten, and their sum in each of 16 lanes.

        v_mov_b32       v[vA], 0
        s_movk_i32      exec_lo, 0x3ff
        s_mov_b32       exec_hi, 0
        v_subrev_f32    v[vMost], s[sMax], v[vMost]
        v_mul_f32       v[vMost], s[sLog2e], v[vMost]
        v_exp_f32       v[vMost], v[vMost]
        v_mov_b32       v[vT], s[sSum]
        ieee_divide v[vA], v[vMost], v[vT], v[vDs], v[vNs], v[vR], v[vE]
        s_mov_b32       exec_lo, 0xffff
        v_mov_b32       v[vTen], v[vA]
        s_nop           1
        v_add_f32_dpp   v[vTen], v[vTen], v[vTen] quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf
        s_nop           1
        v_add_f32_dpp   v[vTen], v[vTen], v[vTen] quad_perm:[2,3,0,1] row_mask:0xf bank_mask:0xf
        s_nop           1
        v_add_f32_dpp   v[vTen], v[vTen], v[vTen] row_half_mirror row_mask:0xf bank_mask:0xf
        s_nop           1
        v_add_f32_dpp   v[vTen], v[vTen], v[vTen] row_mirror row_mask:0xf bank_mask:0xf

// Lanes 0..9: a / sum.  It is positive or NaN: the largest e is 1.  Lane 10: scale / (1 + exp(-s)).

        s_movk_i32      exec_lo, 0x400
        s_waitcnt       vmcnt(0)
        v_mul_f32       v[vShared], 0xbfb8aa3b, v[vShared]      // -log2(e)
        v_exp_f32       v[vShared], v[vShared]
        v_mov_b32       v[vA], s[sScale]
        v_add_f32       v[vTen], 1.0, v[vShared]
        s_movk_i32      exec_lo, 0x7ff
        ieee_divide v[vT], v[vA], v[vTen], v[vDs], v[vNs], v[vR], v[vE]

        v_not_b32       v[vWin], v[vWin]
        v_and_b32       v[vWin], 0xffff, v[vWin]
        s_mul_i32       s[sTmp], s[sWave], 44
        v_lshl_add_u32  v[vOff], v[vTid], 2, s[sTmp]
        global_store_dword v[vOff], v[vWin], s[sOutIds:sOutIds+1]
        global_store_dword v[vOff], v[vT], s[sOutWeights:sOutWeights+1]
        s_mov_b64       exec, -1
        s_add_u32       s[sWave], s[sWave], 4
        s_cmp_lt_u32    s[sWave], s[sM]
        s_cbranch_scc1  .Ltoken

.Ldone:
        endkernel

        .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx950
amdhsa.kernels:
  - .name: smallm_router_bf16
    .symbol: smallm_router_bf16.kd
    .kernarg_segment_size: 64
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 128
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 27
    .vgpr_count: 82
    .agpr_count: 0
    .max_flat_workgroup_size: 256
    .args:
      - {.name: x, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: gate, .offset: 8, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: shared_gate, .offset: 16, .size: 8, .value_kind: global_buffer,
         .address_space: global}
      - {.name: out_ids, .offset: 24, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: out_weights, .offset: 32, .size: 8, .value_kind: global_buffer,
         .address_space: global}
      - {.name: workspace, .offset: 40, .size: 8, .value_kind: global_buffer,
         .address_space: global}
      - {.name: m, .offset: 48, .size: 4, .value_kind: by_value}
      - {.name: stride, .offset: 52, .size: 4, .value_kind: by_value}
      - {.name: scale, .offset: 56, .size: 4, .value_kind: by_value}
...
        .end_amdgpu_metadata
