"""out[t] = the weighted sum of those rows of y that positions[t] names, in f32 and in their order.

Where the rows were already weighted, as by moe.w4a16_gemm2, weights of 1 make it a plain sum.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from netra_catalog.dtypes import numpy_dtype
from netra_catalog.op import Op, TensorArg
from numpy.typing import NDArray

from netra_harness.case import Case
from netra_harness.oracles import _f32, _random

OP = Op(
    name="moe.unpermute_reduce",
    args=(
        TensorArg("y", ("f16", "bf16"), ("rows", "width"), "in", doc="what the experts gave"),
        TensorArg("positions", ("i32",), ("tokens", "k"), "in", doc="rows of y"),
        TensorArg("weights", ("f32",), ("tokens", "k"), "in"),
        TensorArg("out", ("f16", "bf16"), ("tokens", "width"), "out"),
    ),
    phases=("decode", "verify", "draft_extend", "prefill"),
    nan="a NaN weight makes its token NaN, a NaN element its column of the tokens that use it",
    ties="the sum rounds to nearest, ties to even",
    padding="rows that no position names are not read and may hold anything",
    sentinels="a position outside the rows, such as -1, adds nothing whatever its weight",
    empty="no tokens: nothing is launched and nothing written",
    doc="Brings the slots of a token together again.  One fma for each slot, rising, from +0.",
)

VARIANTS = ("f16", "bf16")

Array = NDArray[Any]


def cases(case_set: str, variant: str) -> list[Case]:
    odd = [_case(variant, "absent", 9, 10, 40), _case(variant, "integers", 3, 4, 2056)]
    if case_set == "mutation":
        return [*odd, _case(variant, "random", 2, 10, 2064)]
    quick = [
        _case(variant, "random", 1, 8, 2048),
        _case(variant, "random", 3, 6, 2072, graph="capture"),
        _case(variant, "random", 2, 1, 8),
        *odd,
    ]
    if case_set == "quick":
        return quick
    done = {case.name for case in quick}
    counts = [*range(1, 129), 255, 256, 257, 1023, 1024, 1025]
    more = [_case(variant, "random", n, 1 + n % 10, 8 * (1 + n % 33)) for n in counts]
    return quick + [case for case in more if case.name not in done]


def _case(
    variant: str, fill: str, tokens: int, k: int, width: int, graph: str = "eager"
) -> Case:  # fmt: skip
    params = {"tokens": tokens, "k": k, "width": width, "fill": fill, "variant": variant}
    return Case(f"{fill}-{tokens}-k{k}-n{width}", params, graph=graph)


def inputs(case: Case, rng: np.random.Generator) -> dict[str, Any]:
    """Twice as many rows as are named, further apart than they are wide; the others hold NaN."""
    p = case.params
    tokens, k, width = int(p["tokens"]), int(p["k"]), int(p["width"])
    rows = 2 * tokens * k
    dtype = numpy_dtype(p["variant"])
    order = rng.permutation(rows).astype(np.int32)
    positions = order[: tokens * k].reshape(tokens, k).copy()
    weights = rng.random((tokens, k), dtype=np.float32)
    y = _random.normal((rows, width + 16), rng).astype(np.float32)
    if p["fill"] == "integers":  # exact in any order
        y = rng.integers(-8, 9, y.shape).astype(np.float32)
        weights = rng.integers(0, 3, weights.shape).astype(np.float32)
    elif p["fill"] == "absent":  # any slot of a token, at last all
        gone = rng.random(positions.shape) < 0.4
        gone[-1] = True
        weights[gone] = np.nan
        far = np.iinfo(np.int32)
        positions[gone] = np.resize([-1, rows, far.min, far.max], int(gone.sum()))
    y[order[tokens * k :]] = np.nan
    return {"y": y.astype(dtype)[:, :width], "positions": positions, "weights": weights}


def outputs(case: Case) -> dict[str, tuple[tuple[int, ...], str]]:
    p = case.params
    return {"out": ((int(p["tokens"]), int(p["width"])), p["variant"])}


def exact(variant: str, y: Array, positions: Array, weights: Array) -> dict[str, Array]:
    """float64: products of f16 or bf16 and f32 are exact there."""
    out = np.zeros((len(positions), y.shape[1]))
    for token, j in np.argwhere((positions >= 0) & (positions < len(y))):
        out[token] += _f32.widen(y[positions[token, j]]) * float(weights[token, j])
    return {"out": out}


def deployed(variant: str, y: Array, positions: Array, weights: Array) -> dict[str, Array]:
    total = np.zeros((len(positions), y.shape[1]), np.float32)
    for j in range(positions.shape[1]):
        there = (positions[:, j] >= 0) & (positions[:, j] < len(y))
        rows = y[positions[there, j]].astype(np.float32)
        total[there] = _f32.fma(rows, weights[there, j][:, None], total[there])
    if variant == "bf16":
        return {"out": _f32.to_bf16(total)}
    return {"out": total.astype(np.float16)}
