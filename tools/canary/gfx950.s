// gfx950.s - operand forms and modifiers that the simulator reads in llvm-objdump's text.
//
// What release 22 prints for it is in gfx950.expected: text, encodings and line numbers.

        .amdgcn_target "amdgcn-amd-amdhsa--gfx950"
        .text
start:
        s_load_dwordx4  s[4:7], s[0:1], 0x8
        s_load_dword    s8, s[0:1], s9 glc
        s_waitcnt       lgkmcnt(0)
        s_waitcnt       vmcnt(3) lgkmcnt(1)
        s_mov_b32       m0, 0x12345678
        s_mov_b64       s[10:11], src_private_base
        s_addc_u32      s1, s1, 0
        s_movk_i32      s3, -3
        s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 3
        s_getreg_b32    s2, hwreg(HW_REG_XCC_ID)
        s_cmp_lg_u64    s[4:5], 0
        s_cbranch_scc0  .Lend
        s_and_saveexec_b64 s[12:13], vcc
        s_cbranch_execz .Lend
        v_mov_b32       v0, 1.0
        v_mov_b32       v1, 0x40490fdb
        v_add_f32       v2, v0, v1
        v_add_f32       v3, -v0, |v1| clamp mul:2
        v_fma_f32       v4, -s21, v3, 0.15915494
        v_add_co_u32    v5, vcc, v0, v1
        v_addc_co_u32   v6, vcc, 0, v1, vcc
        v_cndmask_b32   v7, v0, v1, s[12:13]
        v_cmp_class_f32 vcc, v0, v1
        v_cmp_gt_u32    s[14:15], s4, v0
        v_mov_b32_dpp   v8, v0 quad_perm:[2,3,0,1] row_mask:0xf bank_mask:0xf
        v_max_i32_dpp   v9, v1, v1 row_shr:8 row_mask:0xf bank_mask:0xf bound_ctrl:1
        v_mov_b32_dpp   v9, v0 row_bcast:15 row_mask:0xa bank_mask:0xf
        v_mul_f32_dpp   v9, v0, v1 row_newbcast:0 row_mask:0xf bank_mask:0xf
        v_add_u32_sdwa  v10, v0, v1 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:BYTE_3
        v_pk_fma_f32    v[10:11], v[12:13], v[14:15], v[16:17] op_sel_hi:[1,0,1]
        v_pk_add_f32    v[10:11], v[12:13], v[14:15] neg_lo:[0,1] neg_hi:[0,1]
        v_cvt_pk_fp8_f32 v12, v0, v1 op_sel:[0,0,1]
        v_cvt_scalef32_pk_fp8_bf16 v13, v0, 1.0 op_sel:[0,0,1]
        v_cvt_pk_bf16_f32 v13, v0, v1
        v_bitop3_b32    v14, v0, v1, s6 bitop3:0x6c
        v_readlane_b32  s16, v0, 63
        v_readfirstlane_b32 s17, v0
        v_permlane32_swap_b32 v1, v2
        v_trunc_f64     v[16:17], |v[18:19]|
        v_accvgpr_write_b32 a3, v5
        v_mfma_f32_16x16x32_fp8_fp8 a[0:3], v[2:3], v[4:5], a[0:3] cbsz:1 blgp:2
        v_mfma_f32_16x16x32_bf16 v[20:23], v[24:27], v[28:31], 0
        v_mfma_scale_f32_16x16x128_f8f6f4 a[0:3], v[16:19], v[8:11], a[0:3], v40, v36 op_sel_hi:[0,0,0] cbsz:4 blgp:4
        ds_read_b64     v[20:21], v0 offset:16
        ds_write2st64_b64 v1, v[18:19], v[24:25] offset1:8
        ds_swizzle_b32  v34, v1 offset:swizzle(SWAP,16)
        ds_bpermute_b32 v2, v0, v1
        global_load_dwordx4 v[20:23], v[8:9], off offset:-16
        global_load_dword v24, v0, s[4:5] nt
        global_store_dwordx2 v0, v[20:21], s[4:5] offset:8 sc0 sc1
        global_atomic_add v25, v0, v1, s[4:5] sc0
        global_load_lds_dwordx4 v0, s[4:5]
        flat_load_dword v26, v[8:9]
        scratch_store_dword off, v0, s32 offset:4
        buffer_load_dwordx4 v[20:23], v5, s[24:27], 0 offen offset:64
        buffer_load_dword v19, s[28:31], 0 offen lds
        buffer_wbl2     sc1
        buffer_inv      sc0 sc1
        s_barrier
.Lend:
        s_nop           1
        s_endpgm
