"""SGLang's fused append with the gate inside: its logit is a f32 that nothing rounds."""

from __future__ import annotations

from netra_harness.references import _sglang, _torch
from netra_harness.references._torch import Array, device_name

VARIANTS = ("unrounded_logit",)
METRICS = {"out_weights": ("bound", {"abs": 2.0**-24, "rel": 2.0**-16})}  # the order of the sum
device = device_name


def reference(
    variant: str, hidden: Array, gate: Array, ids: Array, weights: Array, shared_id: int,
    scale: float, logit_rounded: int,
) -> dict[str, Array]:  # fmt: skip
    _sglang.require_gpu()
    kernels = _sglang.module("sglang.kernels.ops.moe.fused_moe_triton_kernels")
    out_ids, out_weights = kernels.fused_append_shared_experts_with_weights(
        _torch.tensor(ids), _torch.tensor(weights), None, 1, N=shared_id, fuse_gate=True,
        hidden_states=_torch.tensor(hidden), gate_weight=_torch.tensor(gate), scale=scale,
    )  # fmt: skip
    return {"out_ids": _torch.array(out_ids), "out_weights": _torch.array(out_weights)}
