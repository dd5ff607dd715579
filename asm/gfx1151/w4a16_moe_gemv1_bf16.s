// w4a16_moe_gemv1_bf16 - out[p] = silu(x[t] . gate[e]) * (x[t] . up[e]), one slot a place
//
// Contract   x bf16 [tokens][K]; w int4 [experts][2 columns][K], gate rows before up rows, 8 to a
//            dword in the order 0 2 4 6 1 3 5 7; scales bf16 [experts][2 columns][groups]; zeros u8
//            likewise, or none, which means 8.  K is 32 or 64 times groups.  columns is a multiple
//            of 16.  Rows of x and w may be apart; they are 16-byte aligned.  Place p belongs to
//            slot s = sorted_token_ids[p] = k t + j and to expert e = expert_ids[p].  out bf16
//            [slots][columns]: row p, not written where p has no slot or no expert.
// Launch     grid (columns / 16, slots), block 128 (4 waves), no LDS, no scratch.
// Numerics   A weight is (code - zero) * scale, rounded to bf16.  Lane l has 32 k from 32 l on
//            of each 1024: v_dot2_f32_bf16, k rising; then lanes 1, 2, 4, 8, 16 apart.  SiLU = g *
//            rcp(1 + exp2(-log2(e) g)) and its product with up in f32, then one rounding to bf16.
// Oracle     w4a16_moe_gemm1 (harness/netra_harness/oracles/w4a16_moe_gemm1.py)
// Schedule   8 rows of w, their scales and zero points are in flight at once; each is used as soon
//            as it is there.  The slot's activations are loaded once for the 8.

        #include "gfx1151.inc"

        .equiv  STAGE,   1
        .equiv  BF16,    1
        #include "w4a16_moe_gemv.inc"

        kernel  w4a16_moe_gemv1_bf16, grid=2
        #include "w4a16_moe_gemv_code.inc"
        endkernel

        .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx1151
amdhsa.kernels:
  - .name: w4a16_moe_gemv1_bf16
    .symbol: w4a16_moe_gemv1_bf16.kd
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
      - {.name: reciprocal,     .offset: 104, .size: 4, .value_kind: by_value}
...
        .end_amdgpu_metadata
