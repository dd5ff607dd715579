"""SGLang's fused mixture-of-experts kernel for 4-bit weights, on our packings and alignment."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from netra_harness import int4_weights
from netra_harness.references import _sglang, _torch
from netra_harness.references._torch import Array

LEAST_BLOCK = 16  # rows that Triton's dot product takes


def grouped(
    rows: torch.Tensor, args: dict[str, Any], block: int, numel: int, topk: int,
    weights: torch.Tensor | None,
) -> torch.Tensor:  # fmt: skip
    """rows [tokens or slots, K] times each slot's expert: [numel, N] in the type of rows.

    `args` are an oracle's: w, scales, zeros, and the three arrays of alignment. `topk` slots share
    a row. With `weights` f32 [numel] a slot's row is multiplied by its own.
    """
    _sglang.require_gpu()
    kernels = _sglang.module("sglang.kernels.ops.moe.fused_moe_triton_kernels")
    import triton.language as tl

    codes = int4_weights.unpack(args["w"])
    experts, columns, depth = codes.shape
    packed = codes[..., 0::2] | codes[..., 1::2] << np.uint8(4)
    zeros = args["zeros"]
    pairs = zeros[:, 0::2] | zeros[:, 1::2] << np.uint8(4) if len(zeros) else None
    slots, owners, post, block = _aligned(args, block, numel)
    out = torch.zeros((numel, columns), dtype=rows.dtype, device=rows.device)
    ones = torch.ones(numel, dtype=torch.float32, device=rows.device)
    kernels.invoke_fused_moe_kernel(
        rows, _torch.tensor(packed), None, out, None, _torch.tensor(args["scales"]),
        None if pairs is None else _torch.tensor(pairs),
        (ones if weights is None else weights).reshape(-1, topk),
        torch.zeros(numel, dtype=torch.int32, device=rows.device),
        _torch.tensor(slots), _torch.tensor(owners), _torch.tensor(post),
        mul_routed_weight=weights is not None, top_k=topk,
        config={"BLOCK_SIZE_M": block, "BLOCK_SIZE_N": 32, "BLOCK_SIZE_K": 32, "GROUP_SIZE_M": 1,
                "num_warps": 4, "num_stages": 2},
        compute_type=tl.float16 if rows.dtype == torch.float16 else tl.bfloat16,
        use_fp8_w8a8=False, use_int8_w8a8=False, use_int8_w8a16=False, use_int4_w4a16=True,
        per_channel_quant=False, block_shape=[0, depth // args["scales"].shape[2]],
    )  # fmt: skip
    return out


def places(args: dict[str, Any], numel: int) -> tuple[Array, Array]:
    """(places, slots): where each slot that has a place lies in sorted_token_ids."""
    (post,) = args["num_tokens_post_padded"]
    listed = args["sorted_token_ids"][: int(post)]
    found = np.flatnonzero((listed >= 0) & (listed < numel))
    return found, listed[found]


def _aligned(args: dict[str, Any], block: int, numel: int) -> tuple[Array, Array, Array, int]:
    """The arrays of alignment, their blocks at least as long as Triton wants them."""
    slots, owners = args["sorted_token_ids"], args["expert_ids"]
    post = args["num_tokens_post_padded"]
    if block >= LEAST_BLOCK:
        return slots, owners, post, block
    count = len(slots) // block
    wide = np.full((count, LEAST_BLOCK), numel, np.int32)
    wide[:, :block] = slots[: count * block].reshape(count, block)
    longer = (post // block * LEAST_BLOCK).astype(np.int32)
    return wide.reshape(-1), owners[:count], longer, LEAST_BLOCK
