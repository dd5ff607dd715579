// silu_mul_bf16 - out[i] = bf16((gate[i] * up[i]) * rcp(1 + exp(-gate[i])))
//
// Contract   gate, up f32, out bf16, n elements each, contiguous, 16-byte aligned; out disjoint
//            from both.  n a multiple of 8, 8..2^30; lanes past the end leave.
// Launch     grid ceil(n / 2048), block 256 (8 waves, 8 elements a lane), no LDS, no scratch.
// Numerics   f32, one rounding an operation, denormals kept (v_exp and v_rcp flush their own):
//            e = exp2(-log2e * gate);  (gate * up) * rcp(1 + e);  to bf16, nearest even.  The
//            product comes first: where it overflows, so does the result.
// Oracle     silu_mul (harness/netra_harness/oracles/silu_mul.py)
// Schedule   All four loads in flight; the exponentials run while `up` is still under way.

        #include "gfx1151.inc"

        karg    kGate,    0, 8          // const float*
        karg    kUp,      8, 8          // const float*
        karg    kOut,    16, 8          // bf16*, written
        karg    kN,      24, 4          // uint32

        sreg    sKarg,    0, 2          // on entry: kernarg pointer
        sreg    sBlock,   2             // on entry: 2048 elements
        sreg    sGate,    4, 2
        sreg    sUp,      6, 2
        sreg    sOut,     8, 2
        sreg    sN,      10, 2          // and the padding behind it

        vreg    vTid,     0             // on entry: 0..255
        vreg    vOff,     1             // first element, then byte offsets
        vreg    vG,       2, 8          // gate; then the result
        vreg    vU,      10, 8          // up; then what rounding to bf16 adds
        vreg    vR,      18, 8          // e, 1 + e, its reciprocal

        kernel  silu_mul_bf16

        s_load_b256     s[sGate:sN+1], s[sKarg:sKarg+1], kGate
        v_lshlrev_b32   v[vOff], 3, v[vTid]
        v_lshl_add_u32  v[vOff], s[sBlock], 11, v[vOff]
        s_waitcnt       lgkmcnt(0)
        v_cmpx_gt_u32   s[sN], v[vOff]
        s_cbranch_execz .Ldone
        v_lshlrev_b32   v[vOff], 2, v[vOff]
        global_load_b128 v[vG:vG+3], v[vOff], s[sGate:sGate+1]
        global_load_b128 v[vG+4:vG+7], v[vOff], s[sGate:sGate+1] offset:16
        global_load_b128 v[vU:vU+3], v[vOff], s[sUp:sUp+1]
        global_load_b128 v[vU+4:vU+7], v[vOff], s[sUp:sUp+1] offset:16

        s_waitcnt       vmcnt(2)
        .irp    i, 0, 1, 2, 3, 4, 5, 6, 7
        v_mul_f32       v[vR+\i], 0xbfb8aa3b, v[vG+\i]  // -log2(e)
        .endr
        .irp    i, 0, 1, 2, 3, 4, 5, 6, 7
        v_exp_f32       v[vR+\i], v[vR+\i]
        .endr
        .irp    i, 0, 1, 2, 3, 4, 5, 6, 7
        v_add_f32       v[vR+\i], 1.0, v[vR+\i]
        .endr
        .irp    i, 0, 1, 2, 3, 4, 5, 6, 7
        v_rcp_f32       v[vR+\i], v[vR+\i]
        .endr
        s_waitcnt       vmcnt(0)
        .irp    i, 0, 1, 2, 3, 4, 5, 6, 7
        v_mul_f32       v[vG+\i], v[vG+\i], v[vU+\i]
        .endr
        .irp    i, 0, 1, 2, 3, 4, 5, 6, 7
        v_mul_f32       v[vG+\i], v[vG+\i], v[vR+\i]
        .endr

// To bf16, to nearest even: add 0x7fff and the lowest bit that stays, keep the high half.  A NaN is
// made quiet instead, so that its payload does not carry.

        .irp    i, 0, 1, 2, 3, 4, 5, 6, 7
        v_bfe_u32       v[vU+\i], v[vG+\i], 16, 1
        v_add3_u32      v[vU+\i], v[vG+\i], v[vU+\i], 0x7fff
        v_or_b32        v[vR+\i], 0x00400000, v[vG+\i]
        v_cmp_u_f32     vcc_lo, v[vG+\i], v[vG+\i]
        v_cndmask_b32   v[vG+\i], v[vU+\i], v[vR+\i], vcc_lo
        .endr
        .irp    i, 0, 1, 2, 3
        v_perm_b32      v[vG+\i], v[vG+2*\i+1], v[vG+2*\i], 0x07060302
        .endr
        v_lshrrev_b32   v[vOff], 1, v[vOff]
        global_store_b128 v[vOff], v[vG:vG+3], s[sOut:sOut+1]

.Ldone:
        endkernel

        .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx1151
amdhsa.kernels:
  - .name: silu_mul_bf16
    .symbol: silu_mul_bf16.kd
    .kernarg_segment_size: 32
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 32
    .sgpr_count: 14
    .vgpr_count: 26
    .max_flat_workgroup_size: 256
    .args:
      - {.name: gate, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: up, .offset: 8, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: out, .offset: 16, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: n, .offset: 24, .size: 4, .value_kind: by_value}
...
        .end_amdgpu_metadata
