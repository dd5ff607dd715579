"""SGLang's fused router on bf16 logits, and its fused append of the shared expert.

The gate projection is a linear layer, here in f64 and rounded to bf16, which is what decides the
choice (router.smallm's `exact`).
"""

from __future__ import annotations

from typing import Any

from netra_harness.references import _sglang, _torch
from netra_harness.references._torch import Array, device_name

METRICS = {"out_weights": ("bound", {"abs": 2.0**-24, "rel": 2.0**-18})}
LEFT_OUT = {
    "equal-*": "its products of 2^-126 are zeros of either sign in f32 and differ in f64",
    "odd_a-*": "its rows of the smallest numbers have products that only f64 keeps",
}
device = device_name


def reference(
    variant: str, x: Array, gate: Array, shared_gate: Array, scale: float, top_k: int,
    renormalize: int, fused_shared_experts: int, **_: Any,
) -> dict[str, Array]:  # fmt: skip
    _sglang.require_gpu()
    router = _sglang.module("sglang.kernels.ops.moe.moe_fused_gate")
    append = _sglang.module("sglang.kernels.ops.moe.fused_moe_triton_kernels")
    hidden, w = _torch.tensor(x), _torch.tensor(gate)
    logits = (hidden.double() @ w.double().T).float().bfloat16()
    weights, ids = router.moe_fused_gate(
        logits, None, top_k, scoring_func="softmax", renormalize=bool(renormalize)
    )
    out_ids, out_weights = append.fused_append_shared_experts_with_weights(
        ids, weights, None, fused_shared_experts, N=len(gate), fuse_gate=True,
        hidden_states=hidden, gate_weight=_torch.tensor(shared_gate), scale=scale,
    )  # fmt: skip
    return {"out_ids": _torch.array(out_ids), "out_weights": _torch.array(out_weights)}
