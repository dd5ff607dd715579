"""RMSNorm with a gain of 1 + w, in f32, rounded to bf16 once."""

from __future__ import annotations

from netra_harness.references import _torch
from netra_harness.references._norms import rmsnorm
from netra_harness.references._torch import Array, device_name

METRICS = {"out": ("ulp", 1)}  # rsqrt and the order of the sum are each backend's own
device = device_name


def reference(variant: str, x: Array, w: Array, eps: float) -> dict[str, Array]:
    s, gain = _torch.tensor(x).float(), 1 + _torch.tensor(w).float()
    return {"out": _torch.array(rmsnorm(s, gain, eps).bfloat16())}
