"""The sum rounded to bf16, then RMSNorm of it with a gain of 1 + w."""

from __future__ import annotations

from netra_harness.references import _torch
from netra_harness.references._norms import rmsnorm
from netra_harness.references._torch import Array, device_name

METRICS = {"x": ("ulp", 1), "residual": ("ulp", 0)}  # 0: which NaN it is does not count
device = device_name


def reference(variant: str, x: Array, residual: Array, w: Array, eps: float) -> dict[str, Array]:
    total = _torch.tensor(x) + _torch.tensor(residual)
    out = rmsnorm(total.float(), 1 + _torch.tensor(w).float(), eps).bfloat16()
    return {"x": _torch.array(out), "residual": _torch.array(total)}
