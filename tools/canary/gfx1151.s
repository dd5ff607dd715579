// gfx1151.s - operand forms and modifiers that the simulator reads in llvm-objdump's text.
//
// What release 22 prints for it is in gfx1151.expected: text, encodings and line numbers.

        .amdgcn_target "amdgcn-amd-amdhsa--gfx1151"
        .text
start:
        s_load_b128     s[4:7], s[0:1], 0x8
        s_waitcnt       lgkmcnt(0)
        s_waitcnt       vmcnt(3) lgkmcnt(1)
        s_waitcnt_vscnt null, 0x0
        s_delay_alu     instid0(VALU_DEP_1) | instskip(NEXT) | instid1(SALU_CYCLE_1)
        s_clause        0x1
        s_mov_b32       m0, 0x12345678
        s_mov_b64       s[10:11], src_private_base
        s_addc_u32      s1, s1, 0
        s_movk_i32      s3, 0xfffd
        s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3
        s_sendmsg_rtn_b32 s2, sendmsg(MSG_RTN_GET_REALTIME)
        s_cmp_lg_u64    s[4:5], 0
        s_cbranch_scc0  .Lend
        s_and_saveexec_b32 s12, vcc_lo
        s_cbranch_execz .Lend
        v_mov_b32       v0, 1.0
        v_add_f32       v2, v0, v1
        v_add_f32       v3, -v0, |v1| clamp mul:2
        v_fma_f32       v4, -s21, v3, 0.15915494
        v_add_co_u32    v5, vcc_lo, v0, v1
        v_add_co_ci_u32 v6, vcc_lo, 0, v1, vcc_lo
        v_cndmask_b32   v7, v0, v1, s12
        v_cmp_class_f32 vcc_lo, v0, v1
        v_cmpx_gt_u32   s4, v0
        v_mov_b32_dpp   v8, v0 quad_perm:[2,3,0,1] row_mask:0xf bank_mask:0xf
        v_max_i32_dpp   v9, v1, v1 row_shr:8 row_mask:0xf bank_mask:0xf bound_ctrl:1
        v_add_f32_dpp   v9, v0, v1 row_xmask:1 row_mask:0xf bank_mask:0xf
        v_mov_b32_dpp   v9, v0 dpp8:[7,6,5,4,3,2,1,0]
        v_permlanex16_b32 v10, v0, s4, s5 op_sel:[1,0]
        v_pk_fma_f16    v10, v12, v14, v16 op_sel_hi:[1,0,1]
        v_pk_add_f16    v10, v12, v14 neg_lo:[0,1] neg_hi:[0,1]
        v_dot2_f32_f16  v10, v12, v14, v16
        v_dot2_f32_bf16 v10, v12, v14, v16
        v_dual_mul_f32  v0, v1, v2 :: v_dual_mov_b32 v3, 0
        v_dual_fmac_f32 v4, s2, v5 :: v_dual_add_nc_u32 v7, 1, v6
        v_wmma_f32_16x16x16_bf16 v[0:7], v[8:15], v[16:23], v[0:7]
        v_wmma_i32_16x16x16_iu8 v[0:7], v[8:11], v[12:15], 0 neg_lo:[1,1,0]
        v_readlane_b32  s16, v0, 31
        v_readfirstlane_b32 s17, v0
        v_trunc_f64     v[16:17], |v[18:19]|
        ds_load_b64     v[20:21], v0 offset:16
        ds_store_2addr_stride64_b64 v1, v[18:19], v[24:25] offset1:8
        ds_swizzle_b32  v34, v1 offset:swizzle(SWAP,16)
        ds_bpermute_b32 v2, v0, v1
        global_load_b128 v[20:23], v[8:9], off offset:-16
        global_load_u16 v24, v0, s[4:5] slc
        global_load_d16_hi_b16 v24, v0, s[4:5] glc dlc
        global_store_b64 v0, v[20:21], s[4:5] offset:8
        global_atomic_add_u32 v25, v0, v1, s[4:5] glc
        flat_load_b32   v26, v[8:9]
        scratch_store_b32 off, v0, s32 offset:4
        buffer_load_b128 v[20:23], v5, s[24:27], 0 offen offset:64
        buffer_gl0_inv
        buffer_gl1_inv
        s_barrier
.Lend:
        s_nop           1
        s_sendmsg       sendmsg(MSG_DEALLOC_VGPRS)
        s_endpgm
