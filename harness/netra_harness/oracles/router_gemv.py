"""out[row][n] = the dot product of hidden[row] and weight[n].

`exact` is float64.  `deployed` adds in the order of its variant, which the kernel's banner words.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from netra_catalog.op import Op, TensorArg
from numpy.typing import NDArray

from netra_harness.case import Case
from netra_harness.oracles import _bf16, _f32

OP = Op(
    name="router.gemv",
    args=(
        TensorArg("hidden", ("bf16",), ("rows", "width"), "in"),
        TensorArg("weight", ("bf16",), ("experts", "width"), "in"),
        TensorArg("out", ("bf16", "f32"), ("rows", "experts"), "out", doc="the logits"),
    ),
    phases=("decode", "verify", "draft_extend"),
    nan="a NaN in a row of hidden makes its row NaN, one in a row of weight its column; so does "
    "infinity times zero, and infinities of both signs",
    ties="out rounds to nearest, ties to even",
    padding="none: a padded row is computed like any other and cannot disturb its neighbours",
    sentinels="none",
    empty="no rows: nothing is launched and nothing written",
    doc="Router projection of a mixture of experts.  The variants differ in shape, order of the "
    "sum, and whether the logits are bf16 or f32.",
)


@dataclass(frozen=True)
class Form:
    """`lanes` share a dot product; a lane has runs of 8 elements, lanes * 8 apart.

    `grouped`: each run is summed by itself, else a lane has one pair of chains from end to end.
    `distances`: how far apart the lanes are that are added, step by step; `lower_first`: which of
    the two is the first operand (seen only where both are NaNs)."""

    experts: int
    width: int
    out: str
    lanes: int
    grouped: bool
    distances: tuple[int, ...]
    lower_first: bool


_WAVE64 = (64, True, (8, 4, 2, 1, 16, 32), True)
FORMS = {
    "n256_chains": Form(256, 2048, "bf16", *_WAVE64),
    "n512_k4096_chains": Form(512, 4096, "bf16", *_WAVE64),
    "n256_f32_wave32": Form(256, 2048, "f32", 32, False, (1, 2, 4, 8, 16), False),
}
RUN = 8
VARIANTS = tuple(FORMS)
MOST_ROWS = 64

Array = NDArray[Any]
F32 = NDArray[np.float32]


def cases(case_set: str, variant: str) -> list[Case]:
    special = _case("special", variant, len(_bf16.ROWS))
    integers = _case("integers", variant, 2)
    if case_set == "mutation":
        return [special, integers]
    quick = [
        _case("random", variant, 1),
        _case("random", variant, 3),
        _case("random", variant, 2, graph="capture"),
        _case("integers", variant, 5),
        special,
    ]
    if case_set == "quick":
        return quick
    done = {case.name for case in quick}
    more = [_case("random", variant, rows) for rows in range(1, MOST_ROWS + 1)]
    return quick + [case for case in more if case.name not in done]


def _case(fill: str, variant: str, rows: int, graph: str = "eager") -> Case:
    name = fill if fill == "special" else f"{fill}-{rows}"
    return Case(name, {"rows": rows, "fill": fill, "variant": variant}, graph=graph)


def inputs(case: Case, rng: np.random.Generator) -> dict[str, Any]:
    """Activations of size 1 and weights of size 1/32.  The special case has every kind of row in
    hidden, and again as the first rows of weight."""
    form = FORMS[case.params["variant"]]
    rows, fill = int(case.params["rows"]), case.params["fill"]
    if fill == "integers":
        hidden = _bf16.integers((rows, form.width), rng)
        return {"hidden": hidden, "weight": _bf16.integers((form.experts, form.width), rng)}
    weight = _bf16.normal((form.experts, form.width), rng, 1 / 32)
    if fill == "special":
        hidden = _bf16.make_rows(_bf16.ROWS, form.width, rng)
        weight[:rows] = _bf16.make_rows(_bf16.ROWS, form.width, rng, 1 / 32)
    else:
        hidden = _bf16.normal((rows, form.width), rng)
    return {"hidden": hidden, "weight": weight}


def outputs(case: Case) -> dict[str, tuple[tuple[int, ...], str]]:
    form = FORMS[case.params["variant"]]
    return {"out": ((int(case.params["rows"]), form.experts), form.out)}


def exact(variant: str, hidden: Array, weight: Array) -> dict[str, Array]:
    with np.errstate(all="ignore"):
        return {"out": _f32.widen(hidden) @ _f32.widen(weight).T}


def deployed(variant: str, hidden: Array, weight: Array) -> dict[str, Array]:
    form = FORMS[variant]
    w = _f32.from_bf16(weight)
    out = np.stack([_lanes(_mine(_f32.from_bf16(x), w, form), form) for x in hidden])
    return {"out": _f32.to_bf16(out) if form.out == "bf16" else out}


def _mine(x: F32, w: F32, form: Form) -> F32:
    """[width], [experts, width] -> [experts, lanes]: what each lane adds up by itself."""
    x = x.reshape(-1, form.lanes, RUN)
    w = w.reshape(len(w), -1, form.lanes, RUN)
    groups: list[list[F32]] = []
    for g in range(len(x)):
        for k in range(RUN):
            a, b = x[g, :, k], w[:, g, :, k]
            if k < 2 and (g == 0 or form.grouped):
                groups += [[]] if k == 0 else []
                groups[-1].append(_f32.mul(a, b))
            else:
                groups[-1][k % 2] = _f32.fma(a, b, groups[-1][k % 2])
    sums = [_f32.add(even, odd) for even, odd in groups]
    total = sums[0]
    for more in sums[1:]:
        total = _f32.add(total, more)
    return total


def _lanes(sums: F32, form: Form) -> F32:
    """[experts, lanes] -> [experts]: lanes whose numbers differ in one bit are added."""
    bits = form.lanes.bit_length() - 1
    left = sums.reshape(-1, *[2] * bits)  # the axis of bit b is bits - b
    for distance in form.distances:
        axis = bits - (distance.bit_length() - 1)
        pair = left.take([0], axis=axis), left.take([1], axis=axis)
        left = _f32.add(*(pair if form.lower_first else pair[::-1]))
    return left.reshape(-1)
