"""The f32 sum, and RMSNorm of it with a gain of w; sum and result rounded to bf16."""

from __future__ import annotations

from typing import Any

from netra_harness.references import _torch
from netra_harness.references._norms import rmsnorm
from netra_harness.references._torch import Array, device_name

METRICS = {"out": ("ulp", 1), "residual_out": ("ulp", 0)}  # 0: any NaN is a NaN
device = device_name


def reference(
    variant: str, x: Array, residual: Array, w: Array, eps: float, **_: Any
) -> dict[str, Array]:
    total = _torch.tensor(x).float() + _torch.tensor(residual).float()
    out = rmsnorm(total, _torch.tensor(w).float(), eps).bfloat16()
    return {"out": _torch.array(out), "residual_out": _torch.array(total.bfloat16())}
