"""The product of the dequantised matrices in f32, scaled and rounded to bf16."""

from __future__ import annotations

from netra_harness.references import _torch
from netra_harness.references._torch import Array, device_name

METRICS = {"out": ("bound", {"abs": 2**-16, "rel": 2**-7})}  # the order of the sum; a bf16 step
device = device_name


def reference(
    variant: str, a: Array, b: Array, a_scale: Array, b_scale: Array
) -> dict[str, Array]:
    total = _torch.tensor(a).float() @ _torch.tensor(b).float().T
    scaled = total * (_torch.tensor(a_scale) * _torch.tensor(b_scale))
    return {"out": _torch.array(scaled.bfloat16())}
