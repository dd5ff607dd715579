// counting_f32 - dst[i] = gain * src[i] + seen[0]; seen[0] += 1: right the first time only
//
// Contract   n = 1; seen is one float, zero before the first launch
// Launch     one workgroup of 256, no LDS, no scratch
// Numerics   one rounding per operation; denormals kept
// Oracle     gain (tests/fixtures/gain.py)
// Schedule   none: load, wait, compute, store

        #include "gfx1151.inc"

        karg    kDst,    0, 8           // float*, written
        karg    kSrc,    8, 8           // const float*
        karg    kN,     16, 4           // uint32
        karg    kGain,  20, 4           // float
        karg    kSeen,  24, 8           // float*, the workspace

        sreg    sKarg,   0, 2           // on entry: kernarg pointer
        sreg    sWg,     2              // on entry: workgroup id
        sreg    sDst,    4, 2
        sreg    sSrc,    6, 2
        sreg    sN,      8
        sreg    sGain,   9
        sreg    sExec,  10              // EXEC before the tail mask
        sreg    sSeen,  12, 2

        vreg    vIdx,    0              // on entry: 0..255, then the element
        vreg    vOff,    1              // its byte offset
        vreg    vX,      2
        vreg    vSeen,   3
        vreg    vNil,    4              // zero: the offset of seen[0]

        kernel  counting_f32

        s_load_b128     s[sDst:sSrc+1], s[sKarg:sKarg+1], kDst
        s_load_b64      s[sN:sGain], s[sKarg:sKarg+1], kN
        s_load_b64      s[sSeen:sSeen+1], s[sKarg:sKarg+1], kSeen
        v_lshl_add_u32  v[vIdx], s[sWg], 8, v[vIdx]
        v_lshlrev_b32   v[vOff], 2, v[vIdx]
        s_waitcnt       lgkmcnt(0)

// The tail mask: lanes past the end leave.

        v_cmp_gt_u32    vcc_lo, s[sN], v[vIdx]
        s_and_saveexec_b32 s[sExec], vcc_lo
        s_cbranch_execz .Ldone

        global_load_b32 v[vX], v[vOff], s[sSrc:sSrc+1]
        v_mov_b32       v[vNil], 0
        global_load_b32 v[vSeen], v[vNil], s[sSeen:sSeen+1]
        s_waitcnt       vmcnt(0)
        v_mul_f32       v[vX], s[sGain], v[vX]
        v_add_f32       v[vX], v[vX], v[vSeen]
        v_add_f32       v[vSeen], 1.0, v[vSeen]
        global_store_b32 v[vNil], v[vSeen], s[sSeen:sSeen+1]
        global_store_b32 v[vOff], v[vX], s[sDst:sDst+1]

.Ldone:
        endkernel

        .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx1151
amdhsa.kernels:
  - .name: counting_f32
    .symbol: counting_f32.kd
    .kernarg_segment_size: 32
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 32
    .sgpr_count: 14
    .vgpr_count: 5
    .max_flat_workgroup_size: 256
    .args:
      - {.name: dst,  .offset: 0,  .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: src,  .offset: 8,  .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: n,    .offset: 16, .size: 4, .value_kind: by_value}
      - {.name: gain, .offset: 20, .size: 4, .value_kind: by_value}
      - {.name: seen, .offset: 24, .size: 8, .value_kind: global_buffer, .address_space: global}
...
        .end_amdgpu_metadata
