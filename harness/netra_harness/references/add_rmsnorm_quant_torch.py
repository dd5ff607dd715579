"""Sum, RMSNorm and FP8 codes of its rounded result, with the conventions that the scalars name."""

from __future__ import annotations

import torch

from netra_harness.references import _torch
from netra_harness.references._norms import group_quant, rmsnorm
from netra_harness.references._torch import Array, device_name

GROUP = 128

# A result one step off moves its code by a step, and that of a group's largest moves the scale.
METRICS = {
    "out": ("ulp", 1), "residual_out": ("ulp", 0), "codes": ("ulp", 1),
    "scale": ("bound", {"abs": 0, "rel": 2**-7}),
}  # fmt: skip
device = device_name


def reference(
    variant: str, x: Array, residual: Array, w: Array, eps: float, sum_rounded: int,
    weight_has_one: int, code_max: int,
) -> dict[str, Array]:  # fmt: skip
    total = _torch.tensor(x).float() + _torch.tensor(residual).float()
    s = total.bfloat16().float() if sum_rounded else total
    gain = _torch.tensor(w).float() + (0 if weight_has_one else 1)
    out = rmsnorm(s, gain, eps).bfloat16()
    codes, scale = group_quant(out, GROUP, code_max)
    laid: torch.Tensor = scale if variant == "n2048_unrounded_224" else scale.T
    return {
        "out": _torch.array(out), "residual_out": _torch.array(total.bfloat16()),
        "codes": _torch.array(codes), "scale": _torch.array(laid),
    }  # fmt: skip
