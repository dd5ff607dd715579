// w4a16_moe_gemm1_f16_a128 - out[p] = silu(x[t] . gate[e]) * (x[t] . up[e]), places p
//
// Contract   x f16 [tokens][K]; w int4 [experts][2 columns][K], gate rows before up rows, 8 to a
//            dword in the order 0 2 4 6 1 3 5 7; scales f16 [experts][2 columns][groups]; zeros u8
//            likewise, or none, which means 8.  K is 32 or 64 times groups.  columns is a multiple
//            of 64.  Rows of x and w may be apart; they are 16-byte aligned.  sorted_token_ids, in
//            blocks of 128, each of one expert e, names slot s = k t + j at place p, or padding,
//            which is numel or more.  out f16 [slots][columns]: row p is not written where p is
//            padding or its block has no expert.  out is disjoint from all else.
// Launch     grid (columns / 64, slots / 128), block 128 (4 waves), LDS 20480 bytes, no scratch.
// Numerics   A weight is (code - zero) * scale, rounded to f16.  Products are added in f32, by
//            WMMA, 16 deep, k rising.  SiLU = g * rcp(1 + exp2(-log2(e) g)) and its product with up
//            in f32, then one rounding to f16, to nearest even.  f32 denormals kept.
// Oracle     w4a16_moe_gemm1 (harness/netra_harness/oracles/w4a16_moe_gemm1.py)
// Schedule   Loads of the next 32 k are in flight while these are multiplied; activations wait in
//            the other half of LDS.  A wave has all rows of the block, so that each weight becomes
//            a float once; tiles of 16 rows that are all padding are neither read nor multiplied.

        #include "gfx1151.inc"

        .equiv  STAGE,   1
        .equiv  BLOCK_M, 128
        .equiv  BF16,    0
        #include "w4a16_moe_gemm_map.inc"

        kernel  w4a16_moe_gemm1_f16_a128, lds=2*BUFFER, grid=2
        #include "w4a16_moe_gemm.inc"
        endkernel

        .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx1151
amdhsa.kernels:
  - .name: w4a16_moe_gemm1_f16_a128
    .symbol: w4a16_moe_gemm1_f16_a128.kd
    .kernarg_segment_size: 112
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 20480
    .private_segment_fixed_size: 0
    .wavefront_size: 32
    .sgpr_count: 51
    .vgpr_count: 226
    .max_flat_workgroup_size: 128
    .args:
      - {.name: x, .offset: 0, .size: 8,
         .value_kind: global_buffer, .address_space: global}
      - {.name: w, .offset: 8, .size: 8,
         .value_kind: global_buffer, .address_space: global}
      - {.name: scales, .offset: 16, .size: 8,
         .value_kind: global_buffer, .address_space: global}
      - {.name: zeros, .offset: 24, .size: 8,
         .value_kind: global_buffer, .address_space: global}
      - {.name: sorted_token_ids, .offset: 32, .size: 8,
         .value_kind: global_buffer, .address_space: global}
      - {.name: expert_ids, .offset: 40, .size: 8,
         .value_kind: global_buffer, .address_space: global}
      - {.name: num_tokens_post_padded, .offset: 48, .size: 8,
         .value_kind: global_buffer, .address_space: global}
      - {.name: out, .offset: 56, .size: 8,
         .value_kind: global_buffer, .address_space: global}
      - {.name: numel,           .offset: 64, .size: 4, .value_kind: by_value}
      - {.name: experts,         .offset: 68, .size: 4, .value_kind: by_value}
      - {.name: depth,           .offset: 72, .size: 4, .value_kind: by_value}
      - {.name: columns,         .offset: 76, .size: 4, .value_kind: by_value}
      - {.name: x_stride,        .offset: 80, .size: 4, .value_kind: by_value}
      - {.name: out_stride,      .offset: 84, .size: 4, .value_kind: by_value}
      - {.name: w_expert_stride, .offset: 88, .size: 4, .value_kind: by_value}
      - {.name: w_row_stride,    .offset: 92, .size: 4, .value_kind: by_value}
      - {.name: groups,          .offset: 96, .size: 4, .value_kind: by_value}
      - {.name: has_zeros,       .offset: 100, .size: 4, .value_kind: by_value}
      - {.name: reciprocal,     .offset: 104, .size: 4, .value_kind: by_value}
...
        .end_amdgpu_metadata
