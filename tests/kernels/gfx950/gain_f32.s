// gain_f32 - dst[i] = gain * src[i]: a right kernel, which tests/test_harness_catches.py spoils
//
// Contract   1 <= n < 2^30; dst and src hold n floats and do not overlap
// Launch     grid ceil(n / 256), block 256 (4 waves), no LDS, no scratch
// Numerics   one rounding per element; denormals kept
// Oracle     gain (tests/fixtures/gain.py)
// Schedule   none: load, wait, multiply, store

        #include "gfx950.inc"

        karg    kDst,    0, 8           // float*, written
        karg    kSrc,    8, 8           // const float*
        karg    kN,     16, 4           // uint32
        karg    kGain,  20, 4           // float

        sreg    sKarg,   0, 2           // on entry: kernarg pointer
        sreg    sWg,     2              // on entry: workgroup id
        sreg    sDst,    4, 2
        sreg    sSrc,    6, 2
        sreg    sN,      8
        sreg    sGain,   9
        sreg    sExec,  10, 2           // EXEC before the tail mask

        vreg    vIdx,    0              // on entry: 0..255, then the element
        vreg    vOff,    1              // its byte offset
        vreg    vX,      2

        kernel  gain_f32

        s_load_dwordx4  s[sDst:sSrc+1], s[sKarg:sKarg+1], kDst
        s_load_dwordx2  s[sN:sGain], s[sKarg:sKarg+1], kN
        v_lshl_add_u32  v[vIdx], s[sWg], 8, v[vIdx]
        v_lshlrev_b32   v[vOff], 2, v[vIdx]
        s_waitcnt       lgkmcnt(0)

// The tail mask: lanes past the end leave.

        v_cmp_gt_u32    vcc, s[sN], v[vIdx]
        s_and_saveexec_b64 s[sExec:sExec+1], vcc
        s_cbranch_execz .Ldone

        global_load_dword v[vX], v[vOff], s[sSrc:sSrc+1]
        s_waitcnt       vmcnt(0)
        v_mul_f32       v[vX], s[sGain], v[vX]
        global_store_dword v[vOff], v[vX], s[sDst:sDst+1]

.Ldone:
        endkernel

        .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx950
amdhsa.kernels:
  - .name: gain_f32
    .symbol: gain_f32.kd
    .kernarg_segment_size: 24
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 18
    .vgpr_count: 3
    .agpr_count: 0
    .max_flat_workgroup_size: 256
    .args:
      - {.name: dst,  .offset: 0,  .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: src,  .offset: 8,  .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: n,    .offset: 16, .size: 4, .value_kind: by_value}
      - {.name: gain, .offset: 20, .size: 4, .value_kind: by_value}
...
        .end_amdgpu_metadata
