// w4a16_moe_gemm2_bf16_a64 - out[s] = topk_weights[s] * (x[p] . w[e]), slots s
//
// Contract   x bf16 [slots][K]; w int4 [experts][columns][K], 8 to a dword in the order
//            0 2 4 6 1 3 5 7; scales bf16 [experts][columns][groups]; zeros u8 likewise, or none,
//            which means 8.  K is 32 or 64 times groups.  columns is a multiple of 128.  Rows of x
//            and w may be apart; they are 16-byte aligned.  sorted_token_ids, in blocks of 64,
//            each of one expert e, names slot s at place p, or padding, which is numel or more and
//            whose row of x is not read.  out bf16 [numel][columns]: row s is not written where no
//            block of an expert has s.  out is disjoint from all else.
// Launch     grid (columns / 128, slots / 64), block 128 (4 waves), LDS 10240 bytes, no scratch.
// Numerics   A weight is (code - zero) * scale, rounded to bf16.  Products are added in f32, by
//            WMMA, 16 deep, k rising; the sum times the routed weight in f32; one rounding to bf16,
//            to nearest even.  f32 denormals kept.
// Oracle     w4a16_moe_gemm2 (harness/netra_harness/oracles/w4a16_moe_gemm2.py)
// Schedule   Loads of the next 32 k are in flight while these are multiplied; activations wait in
//            the other half of LDS.  A wave has all rows of the block, so that each weight becomes
//            a float once; tiles of 16 rows that are all padding are neither read nor multiplied.

        #include "gfx1151.inc"

        .equiv  STAGE,   2
        .equiv  BLOCK_M, 64
        .equiv  BF16,    1
        #include "w4a16_moe_gemm_map.inc"

        kernel  w4a16_moe_gemm2_bf16_a64, lds=2*BUFFER, grid=2
        #include "w4a16_moe_gemm.inc"
        endkernel

        .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx1151
amdhsa.kernels:
  - .name: w4a16_moe_gemm2_bf16_a64
    .symbol: w4a16_moe_gemm2_bf16_a64.kd
    .kernarg_segment_size: 112
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 10240
    .private_segment_fixed_size: 0
    .wavefront_size: 32
    .sgpr_count: 59
    .vgpr_count: 156
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
      - {.name: topk_weights,   .offset: 104, .size: 8,
         .value_kind: global_buffer, .address_space: global}
...
        .end_amdgpu_metadata
