"""RMSNorm of each head, times silu of its gate, and FP8 codes of the rounded result."""

from __future__ import annotations

import torch

from netra_harness.references import _torch
from netra_harness.references._norms import group_quant, rmsnorm
from netra_harness.references._torch import Array, device_name

METRICS = {"out": ("ulp", 1), "codes": ("ulp", 1), "scale": ("bound", {"abs": 0, "rel": 2**-7})}
device = device_name


def reference(
    variant: str, x: Array, w: Array, gate: Array, eps: float, code_max: int
) -> dict[str, Array]:
    heads, width = gate.shape[1:]
    norm = rmsnorm(_torch.tensor(x).float(), _torch.tensor(w).float(), eps)
    opened = torch.nn.functional.silu(_torch.tensor(gate).float().reshape(-1, width))
    out = (norm * opened).bfloat16()
    codes, scale = group_quant(out, width, code_max)
    return {
        "out": _torch.array(out), "codes": _torch.array(codes),
        "scale": _torch.array(scale.reshape(-1, heads).T),
    }  # fmt: skip
