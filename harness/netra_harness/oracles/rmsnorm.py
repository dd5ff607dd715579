"""out = x / sqrt(mean(x^2) + eps) * (1 + w), row by row.

`deployed` adds the squares in the order that its contract states; `exact` is float64 with an
order that does not matter, and nothing rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from netra_catalog.op import Op, ScalarArg, TensorArg
from numpy.typing import NDArray

from netra_harness.case import Case
from netra_harness.oracles import _f32, _rows

OP = Op(
    name="norm.rmsnorm",
    args=(
        TensorArg("x", ("bf16",), ("rows", "width"), "in"),
        TensorArg("w", ("bf16",), ("width",), "in", doc="the weight, less 1"),
        TensorArg("out", ("bf16",), ("rows", "width"), "out"),
        ScalarArg("eps", "f32", 1e-6),
    ),
    phases=("decode", "verify", "draft_extend", "prefill"),
    nan="a NaN in x makes its row NaN; one in w makes its column NaN",
    ties="out rounds to nearest, ties to even",
    padding="none: a padded row is computed like any other and cannot disturb its neighbours",
    sentinels="none",
    empty="no rows: nothing is launched and nothing written",
    doc="RMSNorm as Gemma and Qwen3-Next have it.  The variant `gemma_pairwise` multiplies by "
    "1 + w and adds the squares pairwise over threads of 8 elements.  The sum is a f32: beyond "
    "its range it is infinite and finite elements become 0.",
)

VARIANTS = ("gemma_pairwise",)

WIDTH = 2048
PER_THREAD = 8
F32_MAX = float(np.finfo(np.float32).max)

Array = NDArray[Any]
F32 = NDArray[np.float32]
U16 = NDArray[np.uint16]
Maker = Callable[[U16, np.random.Generator], None]


def cases(case_set: str, variant: str) -> list[Case]:
    special = Case("special", {"rows": len(SPECIAL), "fill": "special", "eps": 1e-6})
    weights = Case("weights", {"rows": 3, "fill": "weights", "eps": 1e-6})
    ties = Case("ties", {"rows": 2, "fill": "ties", "eps": 0.0})
    if case_set == "mutation":
        return [special, weights, ties]
    quick = [
        _random(1),
        _random(3),
        Case("random-16", {"rows": 16, "fill": "random", "eps": 1e-6}, graph="capture"),
        Case("eps-1e-5", {"rows": 2, "fill": "random", "eps": 1e-5}),
        Case("eps-0", {"rows": 2, "fill": "zero_row", "eps": 0.0}),
        Case("eps-large", {"rows": 2, "fill": "zero_row", "eps": 2.5}),
        special,
        weights,
        ties,
    ]
    if case_set == "quick":
        return quick
    done = {case.name for case in quick}
    more = [_random(rows) for rows in _rows.counts(16385, 2**20)]
    return quick + [case for case in more if case.name not in done]


def _random(rows: int) -> Case:
    return Case(f"random-{rows}", {"rows": rows, "fill": "random", "eps": 1e-6})


def inputs(case: Case, rng: np.random.Generator) -> dict[str, Any]:
    return {
        "x": rows_of(case, rng),
        "w": weight(case, rng),
        "eps": float(case.params["eps"]),
    }


def outputs(case: Case) -> dict[str, tuple[tuple[int, ...], str]]:
    return {"out": ((int(case.params["rows"]), WIDTH), "bf16")}


def exact(variant: str, x: Array, w: Array, eps: float) -> dict[str, Array]:
    return {"out": exact_norm(_f32.widen(x), w, eps)}


def deployed(variant: str, x: Array, w: Array, eps: float) -> dict[str, Array]:
    return {"out": deployed_norm(_f32.from_bf16(x), w, eps)}


def exact_norm(s: NDArray[np.float64], w: Array, eps: float) -> Array:
    with np.errstate(all="ignore"):
        total = np.sum(s * s, axis=-1, keepdims=True)
        total = np.where(total > F32_MAX, np.inf, total)
        r = 1 / np.sqrt(total / s.shape[-1] + np.float64(np.float32(eps)))
        return np.asarray(s * r * (1 + _f32.widen(w)))


def deployed_norm(s: F32, w: Array, eps: float) -> Array:
    per_row = np.float32(1 / s.shape[-1])
    r = _f32.rsq(_f32.fma(sum_of_squares(s), per_row, np.float32(eps)))
    gain = _f32.add(np.float32(1), _f32.from_bf16(w))
    return _f32.to_bf16(_f32.mul(_f32.mul(s, r), gain))


def sum_of_squares(s: F32) -> F32:
    """[rows, width] -> [rows, 1].  A thread has 8 elements: a chain of fma over the even ones,
    one over the odd ones, and their sum.  Then neighbours are added until one is left."""
    mine = s.reshape(len(s), -1, PER_THREAD // 2, 2)
    chains = _f32.mul(mine[:, :, 0], mine[:, :, 0])
    for k in range(1, PER_THREAD // 2):
        chains = _f32.fma(mine[:, :, k], mine[:, :, k], chains)
    sums = _f32.add(chains[..., 0], chains[..., 1])
    while sums.shape[1] > 1:
        sums = _f32.add(sums[:, 0::2], sums[:, 1::2])
    return sums


def rows_of(case: Case, rng: np.random.Generator) -> Array:
    """The rows of a case."""
    rows, fill = int(case.params["rows"]), case.params["fill"]
    pattern = background((rows, WIDTH), rng)
    if fill == "special":
        for row, make in zip(pattern, SPECIAL.values(), strict=True):
            make(row, rng)
    elif fill == "zero_row":
        pattern[0] = 0
    elif fill == "ties":  # of size 1, so the mean is 1 as well, and what is rounded is 1 + w
        pattern = pattern & np.uint16(0x8000) | np.uint16(0x3F80)
    return np.asarray(pattern.view(ml_dtypes.bfloat16))


def weight(case: Case, rng: np.random.Generator) -> Array:
    if case.params["fill"] == "ties":  # odd multiples of 2^-8: 1 + w is half way between two bf16
        odd = 2 * rng.integers(0, 128, WIDTH) + 1
        return np.asarray((odd / 256).astype(ml_dtypes.bfloat16))
    pattern = background((WIDTH,), rng)
    if case.params["fill"] == "weights":
        pattern[:10] = [
            0xBF80, 0x0000, 0x8000, 0x0001, 0x7F80, 0xFF80, 0x7FC0, 0xFFFF, 0x7F81, 0x7F7F,
        ]  # fmt: skip
        pattern[-1] = 0xBF7F  # 1 + w loses almost everything
    return np.asarray(pattern.view(ml_dtypes.bfloat16))


def background(shape: tuple[int, ...], rng: np.random.Generator) -> U16:
    """bf16 patterns of both signs and sizes from 2^-8 to 4."""
    pattern = rng.integers(0x3B80, 0x4080, shape, dtype=np.uint16)
    return np.asarray(pattern | rng.integers(0, 2, shape, dtype=np.uint16) << np.uint16(15))


# Rows of bf16 patterns by name.  A row has one kind of NaN, so that it does not matter which
# operand's payload an implementation hands on.

SPECIAL: dict[str, Maker] = {}


def _special(name: str, *places: tuple[Any, int], fill: int | None = None) -> None:
    def make(row: U16, rng: np.random.Generator) -> None:
        if fill is not None:
            row[:] = fill
        for where, value in places:
            row[where] = value

    SPECIAL[name] = make


_special("zeros", fill=0)
_special("minus-zeros", (slice(None, None, 2), 0x8000), fill=0)
_special("one-element", (1234, 0xC0A0), fill=0)
_special("outlier", (2047, 0x5D00))  # 2^59: the square still fits
_special("outlier-first", (0, 0xC700))
_special("all-equal", fill=0x3F81)
_special("sum-overflows", fill=0x5D80)
_special("square-overflows", (77, 0x7F7F))
_special("largest", fill=0xFF7F)
_special("inf", (3, 0x7F80))
_special("infs", (slice(5, None, 100), 0xFF80), (8, 0x7F80))
_special("nan", (1000, 0x7FC0))
_special("nan-signalling", (2040, 0x7F81))
_special("nan-all-ones", (64, 0xFFFF))
_special("nan-each", fill=0x7FFF)
_special("denormals", fill=0x0001)
_special("smallest-normal", fill=0x8080)
_special("squares-underflow", fill=0x1A00)
_special("one-per-thread", (slice(0, None, 8), 0x4000), fill=0x3B80)
