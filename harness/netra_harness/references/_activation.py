"""SGLang's activation and its quantisation by groups, one after the other."""

from __future__ import annotations

import torch

from netra_harness.references import _sglang


def silu_mul_quant(
    x: torch.Tensor, group: int, by_group: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """[rows, 2 * width] -> E4M3FN codes [rows, width] and f32 scales.

    silu(gate) is rounded to x's type, the product to bf16; `by_group` lays the scales down
    [group][row] in memory, which the returned [row][group] view does not show.
    """
    _sglang.require_gpu()
    activation = _sglang.module("sglang.kernels.ops.moe.fused_moe_triton_kernels")
    quant = _sglang.module("sglang.kernels.ops.quantization.fp8_kernel")
    y = torch.empty((len(x), x.shape[1] // 2), dtype=torch.bfloat16, device=x.device)
    activation.act_and_mul_triton(x, y, config={})
    codes, scale = quant._per_token_group_quant_8bit_raw(
        y, group, column_major_scales=by_group
    )
    return codes, scale
