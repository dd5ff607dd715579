"""SGLang's SiLU times up on bf16, and its FP8 codes by groups of 128, scales by group."""

from __future__ import annotations

from netra_harness.oracles.silu_mul_group_quant import GROUP
from netra_harness.references import _torch
from netra_harness.references._activation import silu_mul_quant
from netra_harness.references._torch import Array, device_name

METRICS = {"codes": ("ulp", 1), "scale": ("bound", {"abs": 0, "rel": 2**-7})}
LEFT_OUT = {
    "special-*": "what an infinite element's own code is, NaN or the largest, is not Triton's say",
    "gates-*": "what an infinite element's own code is, NaN or the largest, is not Triton's say",
}
device = device_name


def reference(variant: str, x: Array, code_max: int, gate_rounded: int) -> dict[str, Array]:
    codes, scale = silu_mul_quant(_torch.tensor(x), GROUP, by_group=True)
    return {"codes": _torch.array(codes), "scale": _torch.array(scale.T)}
