"""SGLang's GPTQ/AWQ fused MoE kernel for gate and up, and its SiLU times up."""

from __future__ import annotations

from typing import Any

import torch

from netra_harness.oracles import _w4a16
from netra_harness.references import _fused_moe, _sglang, _torch
from netra_harness.references._torch import Array, device_name

# Gate, up and silu(gate) are each rounded, so a step of one of them can be two of the product.
NEAR = {"f16": {"abs": 2.0**-13, "rel": 2.0**-9}, "bf16": {"abs": 2.0**-10, "rel": 2.0**-6}}
METRICS = {f"{form}.out": ("bound", NEAR[form.partition("_")[0]]) for form in _w4a16.FORMS}
device = device_name


def reference(variant: str, *, out: Array, **args: Any) -> dict[str, Array]:
    rows, topk = _torch.tensor(args["x"]), int(args["topk"])
    numel = len(args["x"]) * topk
    both = _fused_moe.grouped(rows, args, int(args["block"]), numel, topk, None)
    joined = torch.empty((numel, both.shape[1] // 2), dtype=both.dtype, device=both.device)
    kernels = _sglang.module("sglang.kernels.ops.moe.fused_moe_triton_kernels")
    kernels.act_and_mul_triton(both, joined, config={})
    at, slots = _fused_moe.places(args, numel)
    result = out.copy()
    result[at] = _torch.array(joined)[slots]
    return {"out": result}
