"""Down of a mixture of experts with 4-bit weights, times the routed weights.

Row s of out belongs to slot s: topk_weights[s] * (x[p] . w) where p is the slot's place in
sorted_token_ids and w is that of the block's expert.
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
    name="moe.w4a16_gemm2",
    args=(
        TensorArg("x", ("f16", "bf16"), ("slots", "depth"), "in", doc="out of moe.w4a16_gemm1"),
        TensorArg(
            "w", ("i32",), ("experts", "columns", "words"), "in", "i4_k8_02461357",
            doc="8 weights in a word",
        ),
        TensorArg("scales", ("f16", "bf16"), ("experts", "columns", "groups"), "in"),
        TensorArg(
            "zeros", ("u8",), ("zero_experts", "columns", "groups"), "in",
            doc="zero points; of no experts where all are 8",
        ),
        TensorArg("topk_weights", ("f32",), ("tokens", "k"), "in"),
        TensorArg("sorted_token_ids", ("i32",), ("slots",), "in"),
        TensorArg("expert_ids", ("i32",), ("blocks",), "in"),
        TensorArg("num_tokens_post_padded", ("i32",), (1,), "in"),
        TensorArg("out", ("f16", "bf16"), ("numel", "columns"), "inout"),
        ScalarArg("block", "u32", 64, doc="slots of a block, as they were aligned"),
    ),
    phases=("decode", "verify", "draft_extend", "prefill"),
    nan="a NaN of x stays in its row of out, a NaN scale in its column of its expert's rows",
    ties="a weight and an element of out round to nearest, ties to even",
    padding="rows of x whose place holds no slot are not read; rows of out whose slot has no place "
    "keep what they held",
    sentinels="an id below 0 or from tokens * k on is padding; a block whose expert is none is "
    "left out; nothing behind num_tokens_post_padded means anything",
    empty="no tokens: nothing is launched and nothing written",
    doc="weight = (code - zero) * scale, rounded to the type of x.  The variants are a type and "
    "the slots of a block.",
)  # fmt: skip

VARIANTS = _w4a16.FORMS

Array = NDArray[Any]


def cases(case_set: str, variant: str) -> list[Case]:
    return _w4a16.cases(case_set, variant, 2)


def inputs(case: Case, rng: np.random.Generator) -> dict[str, Any]:
    """Rows of x that belong to no slot are NaN."""
    p = case.params
    dtype = _w4a16.dtype_of(p["variant"])
    tokens, k, columns = int(p["tokens"]), int(p["k"]), int(p["columns"])
    made = _w4a16.routing(case, rng)
    slots = made["sorted_token_ids"]
    x = _w4a16.activations((len(slots), int(p["depth"])), dtype, rng)
    x[slots >= tokens * k] = np.nan
    return {
        "x": x,
        **_w4a16.weights(case, columns, dtype, rng),
        "topk_weights": rng.random((tokens, k), dtype=np.float32),
        **made,
        "out": _w4a16.normal((tokens * k, columns), dtype, rng),
        "block": int(p["block"]),
    }


def outputs(case: Case) -> dict[str, tuple[tuple[int, ...], str]]:
    return {}


def exact(variant: str, *, out: Array, **args: Any) -> dict[str, Array]:
    """float64, from the weights as they are after rounding."""
    result = out.astype(np.float64)
    for slots, x, w, routed in _parts(args):
        with np.errstate(all="ignore"):
            result[slots] = _w4a16.product_f64(x, w) * routed.astype(np.float64)
    return {"out": result}


def deployed(variant: str, *, out: Array, **args: Any) -> dict[str, Array]:
    """Sums in f32, times the routed weight in f32."""
    result = out.copy()
    for slots, x, w, routed in _parts(args):
        with np.errstate(all="ignore"):
            result[slots] = _w4a16.round_to(_w4a16.product_f32(x, w) * routed, out.dtype)
    return {"out": result}


def _parts(args: dict[str, Any]) -> Any:
    """(slots, rows of x, weights [columns, K], routed weights [rows, 1]) of each block."""
    x, w, scales, zeros = args["x"], args["w"], args["scales"], args["zeros"]
    routed = args["topk_weights"].reshape(-1, 1)
    (post,) = args["num_tokens_post_padded"]
    for expert, places, slots in _w4a16.blocks(
        args["sorted_token_ids"], args["expert_ids"], int(post), int(args["block"]),
        len(routed), len(w),
    ):  # fmt: skip
        zero = zeros[expert] if len(zeros) else None
        dense = int4_weights.dequantise(w[expert], scales[expert], zero)
        yield slots, x[places], dense, routed[slots]
