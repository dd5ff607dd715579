"""The weighted sum over the slots of each token in f64, rounded to f32 and then to bf16."""

from __future__ import annotations

import torch

from netra_harness.references import _torch
from netra_harness.references._torch import Array, device_name

METRICS = {"out": ("ulp", 1)}
device = device_name


def reference(variant: str, expert: Array, positions: Array, weights: Array) -> dict[str, Array]:
    rows, at = _torch.tensor(expert).double(), _torch.tensor(positions).long()
    there = (at >= 0) & (at < len(rows))
    products = rows[at.clamp(0, len(rows) - 1)] * _torch.tensor(weights).double()[..., None]
    total = torch.where(there[..., None], products, 0.0).sum(dim=1)
    return {"out": _torch.array(total.float().bfloat16())}
