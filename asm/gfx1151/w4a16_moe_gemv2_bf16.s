// w4a16_moe_gemv2_bf16 - out[s] = topk_weights[s] * (x[p] . w[e]), one slot a place
//
// Contract   x bf16 [slots][K]; w int4 [experts][columns][K], 8 to a dword in the order
//            0 2 4 6 1 3 5 7; scales bf16 [experts][columns][groups]; zeros u8 likewise, or none,
//            which means 8.  K is 32 or 64 times groups.  columns is a multiple of 32.  Rows of x
//            and w may be apart; they are 16-byte aligned.  Place p belongs to slot s =
//            sorted_token_ids[p] and to expert e = expert_ids[p].  out bf16 [numel][columns]:
//            row s, not written where no place with an expert has s.
// Launch     grid (columns / 32, slots), block 128 (4 waves), no LDS, no scratch.
// Numerics   A weight is (code - zero) * scale, rounded to bf16.  Lane l has 32 k from 32 l on
//            of each 1024: v_dot2_f32_bf16, k rising; then lanes 1, 2, 4, 8, 16 apart; the sum
//            times the routed weight in f32; one rounding to bf16, to nearest even.
// Oracle     w4a16_moe_gemm2 (harness/netra_harness/oracles/w4a16_moe_gemm2.py)
// Schedule   8 rows of w, their scales and zero points are in flight at once; each is used as soon
//            as it is there.  The slot's activations are loaded once for the 8.

        #include "gfx1151.inc"

        .equiv  STAGE,   2
        .equiv  BF16,    1
        #include "w4a16_moe_gemv.inc"

        kernel  w4a16_moe_gemv2_bf16, grid=2
        #include "w4a16_moe_gemv_code.inc"
        endkernel

        .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx1151
amdhsa.kernels:
  - .name: w4a16_moe_gemv2_bf16
    .symbol: w4a16_moe_gemv2_bf16.kd
    .kernarg_segment_size: 112
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 32
    .sgpr_count: 101
    .vgpr_count: 88
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
