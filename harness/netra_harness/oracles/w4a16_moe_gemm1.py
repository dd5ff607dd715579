"""Gate and up of a mixture of experts with 4-bit weights, joined by SiLU.

Row p of out belongs to place p of sorted_token_ids: silu(x . gate) * (x . up) of the slot's token
and the block's expert.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from netra_catalog.op import Op, ScalarArg, TensorArg
from numpy.typing import NDArray

from netra_harness import int4_weights
from netra_harness.case import Case
from netra_harness.oracles import _w4a16

OP = Op(
    name="moe.w4a16_gemm1",
    args=(
        TensorArg("x", ("f16", "bf16"), ("tokens", "depth"), "in"),
        TensorArg(
            "w", ("i32",), ("experts", "w_rows", "words"), "in", "i4_k8_02461357",
            doc="gate rows, then as many up rows; 8 weights in a word",
        ),
        TensorArg("scales", ("f16", "bf16"), ("experts", "w_rows", "groups"), "in"),
        TensorArg(
            "zeros", ("u8",), ("zero_experts", "w_rows", "groups"), "in",
            doc="zero points; of no experts where all are 8",
        ),
        TensorArg("sorted_token_ids", ("i32",), ("slots",), "in"),
        TensorArg("expert_ids", ("i32",), ("blocks",), "in"),
        TensorArg("num_tokens_post_padded", ("i32",), (1,), "in"),
        TensorArg("out", ("f16", "bf16"), ("slots", "columns"), "inout"),
        ScalarArg("topk", "u32", 8, doc="slots of a token"),
        ScalarArg("block", "u32", 64, doc="slots of a block, as they were aligned"),
    ),
    phases=("decode", "verify", "draft_extend", "prefill"),
    nan="a NaN of x stays in its rows of out, a NaN scale in its column of its expert's rows",
    ties="a weight and an element of out round to nearest, ties to even",
    padding="rows of out whose place holds no slot keep what they held",
    sentinels="an id below 0 or from tokens * topk on is padding; a block whose expert is none is "
    "left out; nothing behind num_tokens_post_padded means anything",
    empty="no tokens: nothing is launched and nothing written",
    doc="weight = (code - zero) * scale, rounded to the type of x.  The variants are a type and "
    "the slots of a block.",
)  # fmt: skip

VARIANTS = _w4a16.FORMS

Array = NDArray[Any]


def cases(case_set: str, variant: str) -> list[Case]:
    return _w4a16.cases(case_set, variant, 1)


def inputs(case: Case, rng: np.random.Generator) -> dict[str, Any]:
    p = case.params
    dtype = _w4a16.dtype_of(p["variant"])
    made = _w4a16.routing(case, rng)
    slots = len(made["sorted_token_ids"])
    before = _w4a16.normal((slots, int(p["columns"])), dtype, rng)
    return {
        "x": _w4a16.activations((int(p["tokens"]), int(p["depth"])), dtype, rng),
        **_w4a16.weights(case, 2 * int(p["columns"]), dtype, rng),
        **made, "out": before, "topk": int(p["k"]), "block": int(p["block"]),
    }  # fmt: skip


def outputs(case: Case) -> dict[str, tuple[tuple[int, ...], str]]:
    return {}


def exact(variant: str, *, out: Array, **args: Any) -> dict[str, Array]:
    """float64, from the weights as they are after rounding."""
    result = out.astype(np.float64)
    for places, x, w in _parts(args):
        gate, up = np.split(_w4a16.product_f64(x, w), 2, axis=1)
        with np.errstate(all="ignore"):
            result[places] = gate / (1 + np.exp(-gate)) * up
    return {"out": result}


def deployed(variant: str, *, out: Array, **args: Any) -> dict[str, Array]:
    """Sums in f32; gate and up are stored, SiLU is rounded, and so is its product with up."""
    dtype = out.dtype
    result = out.copy()
    for places, x, w in _parts(args):
        both = _w4a16.round_to(_w4a16.product_f32(x, w), dtype).astype(np.float32)
        gate, up = np.split(both, 2, axis=1)
        with np.errstate(all="ignore"):
            silu = _w4a16.round_to(gate / (1 + np.exp(-gate)), dtype).astype(np.float32)
            result[places] = _w4a16.round_to(silu * up, dtype)
    return {"out": result}


def _parts(args: dict[str, Any]) -> Any:
    """(places, rows of x, weights [2 columns, K]) of each block."""
    x, w, scales, zeros = args["x"], args["w"], args["scales"], args["zeros"]
    topk = int(args["topk"])
    (post,) = args["num_tokens_post_padded"]
    for expert, places, slots in _w4a16.blocks(
        args["sorted_token_ids"], args["expert_ids"], int(post), int(args["block"]),
        len(x) * topk, len(w),
    ):  # fmt: skip
        zero = zeros[expert] if len(zeros) else None
        yield places, x[slots // topk], int4_weights.dequantise(w[expert], scales[expert], zero)
