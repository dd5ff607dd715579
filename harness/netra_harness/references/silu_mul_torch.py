"""gate * up * sigmoid(gate) in f32, rounded to bf16 once."""

from __future__ import annotations

import torch

from netra_harness.references import _torch
from netra_harness.references._torch import Array, device_name

# The hardware's reciprocal is one unit off at most, and 0 where a sigmoid would be a denormal.
METRICS = {"out": ("bound", {"abs": 2.0**-100, "rel": 2**-7})}
device = device_name


def reference(variant: str, gate: Array, up: Array) -> dict[str, Array]:
    given = _torch.tensor(gate)
    out = given * _torch.tensor(up) * torch.sigmoid(given)
    return {"out": _torch.array(out.bfloat16())}
