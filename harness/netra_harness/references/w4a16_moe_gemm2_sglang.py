"""SGLang's GPTQ/AWQ fused MoE kernel for down, times the routed weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from netra_harness.oracles import _w4a16
from netra_harness.references import _fused_moe, _torch
from netra_harness.references._torch import Array, device_name

# The order of the f32 sum, then one rounding.
NEAR = {"f16": {"abs": 2.0**-14, "rel": 2.0**-10}, "bf16": {"abs": 2.0**-11, "rel": 2.0**-7}}
METRICS = {f"{form}.out": ("bound", NEAR[form.partition("_")[0]]) for form in _w4a16.FORMS}
device = device_name


def reference(variant: str, *, out: Array, **args: Any) -> dict[str, Array]:
    numel = args["topk_weights"].size
    at, slots = _fused_moe.places(args, numel)
    rows = np.zeros((numel, args["x"].shape[1]), args["x"].dtype)
    rows[slots] = args["x"][at]
    weights = _torch.tensor(args["topk_weights"].reshape(-1))
    made = _fused_moe.grouped(_torch.tensor(rows), args, int(args["block"]), numel, 1, weights)
    result = out.copy()
    result[slots] = _torch.array(made)[slots]
    return {"out": result}
