"""out[t] = the weighted sum of those rows of expert that positions[t] names.

`deployed` adds in f64, slot by slot: the products of two f32 are exact there.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from netra_catalog.op import Op, TensorArg
from numpy.typing import NDArray

from netra_harness.case import Case
from netra_harness.oracles import _f32, _random

OP = Op(
    name="moe.expert_weighted_reduce",
    args=(
        TensorArg("expert", ("f32",), ("rows", "width"), "in", doc="what the experts gave"),
        TensorArg("positions", ("i32",), ("tokens", "slots"), "in", doc="rows of expert"),
        TensorArg("weights", ("f32",), ("tokens", "slots"), "in"),
        TensorArg("out", ("bf16",), ("tokens", "width"), "out"),
    ),
    phases=("decode", "verify", "draft_extend", "prefill"),
    nan="a NaN weight makes its token NaN, a NaN element its column of the tokens that use it",
    ties="rounded to f32 and then to bf16, to nearest, ties to even",
    padding="rows that no position names are not read and may hold anything",
    sentinels="a position outside the rows, such as -1, adds nothing whatever its weight",
    empty="no tokens: nothing is launched and nothing written",
    doc="Combines the experts of each token.  The variant `top8_f64` has 8 slots of 2048 columns.",
)

VARIANTS = ("top8_f64",)

WIDTH, SLOTS = 2048, 8

Array = NDArray[Any]
F64 = NDArray[np.float64]


def cases(case_set: str, variant: str) -> list[Case]:
    odd = [_case("special", 12), _case("cancels", 3), _case("integers", 4), _case("absent", 9)]
    odd.append(_case("ties", 2))
    if case_set == "mutation":
        return [*odd, _case("random", 2)]
    quick = [_case("random", 1), _case("random", 3), _case("random", 16, "capture"), *odd]
    if case_set == "quick":
        return quick
    done = {case.name for case in quick}
    counts = [*range(1, 129), 255, 256, 257, 511, 512, 513, 1023, 1024, 1025]
    return quick + [c for c in (_case("random", n) for n in counts) if c.name not in done]


def _case(fill: str, tokens: int, graph: str = "eager") -> Case:
    return Case(f"{fill}-{tokens}", {"rows": tokens, "fill": fill}, graph=graph)


def inputs(case: Case, rng: np.random.Generator) -> dict[str, Any]:
    """Twice as many rows as are named; half of them hold NaN, and no position names those."""
    tokens, fill = int(case.params["rows"]), case.params["fill"]
    rows = 2 * tokens * SLOTS
    expert = _random.normal((rows, WIDTH), rng).astype(np.float32)
    order = rng.permutation(rows).astype(np.int32)
    positions = order[: tokens * SLOTS].reshape(tokens, SLOTS).copy()
    expert[order[tokens * SLOTS :]] = np.nan
    weights = rng.random((tokens, SLOTS), dtype=np.float32) / 4
    if fill == "integers":  # exact in any order; all tokens want the same rows
        expert[:] = rng.integers(-8, 9, expert.shape)
        positions[:] = positions[0]
        weights[:] = rng.integers(0, 3, weights.shape)
    elif fill == "cancels":  # what an f32 sum would lose
        expert[positions[:, 1]] = -expert[positions[:, 0]]
        weights[:, :2] = 2.0**20
    elif fill == "ties":  # one element a sum, half way between two bf16 or next to that
        weights[:, 1:], weights[:, 0] = 0, 1
        middle = rng.integers(0x3F80, 0x4380, expert.shape, dtype=np.uint32) << np.uint32(16)
        middle += np.uint32(0x7FFF) + rng.integers(0, 3, expert.shape, dtype=np.uint32)
        expert[:] = middle.view(np.float32)
    elif fill == "absent":
        weights[:, 0] = np.nan
        far = np.iinfo(np.int32)
        positions[:, 0] = np.resize([-1, rows, far.min, far.max], tokens)
        for token in range(tokens):
            positions[token, 1 : token] = -1 - token
    elif fill == "special":
        pattern = expert.view(np.uint32)
        for token, bits in enumerate(SPECIAL):
            pattern[positions[token, token % SLOTS], token::7] = bits
        weights[-1] = [0, -0.0, 1e-45, 3e38, 1, -1, 1e-20, 2]
    return {"expert": expert, "positions": positions, "weights": weights}


SPECIAL = (
    0x7F800000, 0xFF800000, 0x7FC00000, 0x7F812345, 0xFFFFFFFF, 0x00000001, 0x807FFFFF, 0x00000000,
    0x80000000, 0x7F7FFFFF, 0xFF7FFFFF, 0x3F808000,
)  # fmt: skip


def outputs(case: Case) -> dict[str, tuple[tuple[int, ...], str]]:
    return {"out": ((int(case.params["rows"]), WIDTH), "bf16")}


def exact(variant: str, expert: Array, positions: Array, weights: Array) -> dict[str, Array]:
    """Correctly rounded sums of the exact products."""
    used = (positions >= 0) & (positions < len(expert))
    out = np.zeros((len(positions), expert.shape[1]))
    for token, slots in enumerate(used):
        rows = _f32.widen(expert[positions[token, slots]])
        products = rows * _f32.widen(weights[token, slots])[:, None]
        with np.errstate(invalid="ignore"):
            plain = products.sum(axis=0)
        finite = np.isfinite(products).all(axis=0)
        sums = [math.fsum(column) for column in products[:, finite].T.tolist()]
        out[token, finite] = sums
        out[token, ~finite] = plain[~finite]
    return {"out": out}


def deployed(variant: str, expert: Array, positions: Array, weights: Array) -> dict[str, Array]:
    total: F64 = np.zeros((len(positions), expert.shape[1]))
    with np.errstate(all="ignore"):
        for slot in range(SLOTS):
            there = (positions[:, slot] >= 0) & (positions[:, slot] < len(expert))
            rows = _f32.widen(expert[positions[there, slot]])
            total[there] += _f32.widen(weights[there, slot])[:, None] * rows
        return {"out": _f32.to_bf16(total.astype(np.float32))}
