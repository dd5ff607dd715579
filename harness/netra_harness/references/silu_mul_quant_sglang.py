"""SGLang's SiLU times up on f32, and its FP8 codes by groups of 128."""

from __future__ import annotations

from netra_harness.oracles.silu_mul_quant import GROUP
from netra_harness.references import _torch
from netra_harness.references._activation import silu_mul_quant
from netra_harness.references._torch import Array, device_name

# A product one bf16 step off moves its code by a step, and that of a group's largest the scale.
METRICS = {"out": ("ulp", 1), "scale": ("bound", {"abs": 0, "rel": 2**-7})}
LEFT_OUT = {
    "special": "an infinite scale turns a whole group into NaNs here and into zeros in Triton"
}
device = device_name


def reference(variant: str, x: Array) -> dict[str, Array]:
    given = _torch.tensor(x.reshape(len(x), -1))
    codes, scale = silu_mul_quant(given, GROUP, by_group=False)
    return {"out": _torch.array(codes), "scale": _torch.array(scale)}
