"""A linear layer: bf16 inputs, f32 sums, logits in the type of the variant."""

from __future__ import annotations

import torch

from netra_harness.oracles.router_gemv import FORMS
from netra_harness.references import _torch
from netra_harness.references._torch import Array, device_name

# The order of the sum, and a step of bf16.
METRICS = {
    "out": ("bound", {"abs": 2**-16, "rel": 2**-7}),
    "n256_f32_wave32.out": ("bound", {"abs": 2**-18, "rel": 2**-18}),
}
LEFT_OUT = {
    "special": "its rows of the largest bf16 overflow in one order of the f32 sum, not in another"
}
device = device_name


def reference(variant: str, hidden: Array, weight: Array) -> dict[str, Array]:
    out = _torch.tensor(hidden).float() @ _torch.tensor(weight).float().T
    return {"out": _torch.array(out.bfloat16() if FORMS[variant].out == "bf16" else out)}


assert not torch.backends.cuda.matmul.allow_tf32, "f32 sums are the reference, not TF32"
