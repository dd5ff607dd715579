"""residual = x + residual; x = residual / sqrt(mean(residual^2) + eps) * (1 + w), in place.

What follows the addition is rmsnorm.py's.  In the variant the sum is rounded to bf16 before it is
normalised; that rounding belongs to the op, so `exact` has it too (though its own residual is the
unrounded sum).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from netra_catalog.op import Op, ScalarArg, TensorArg
from numpy.typing import NDArray

from netra_harness.case import Case
from netra_harness.oracles import _f32, rmsnorm

OP = Op(
    name="norm.add_rmsnorm",
    args=(
        TensorArg("x", ("bf16",), ("rows", "width"), "inout", doc="becomes the result"),
        TensorArg("residual", ("bf16",), ("rows", "width"), "inout", doc="becomes the sum"),
        TensorArg("w", ("bf16",), ("width",), "in", doc="the weight, less 1"),
        ScalarArg("eps", "f32", 1e-6),
    ),
    phases=("decode", "verify", "draft_extend", "prefill"),
    nan="a NaN in x or residual makes its row NaN, and its element of residual; one in w makes "
    "its column of x NaN",
    ties="residual and x round to nearest, ties to even",
    padding="none: a padded row is computed like any other and cannot disturb its neighbours",
    sentinels="none",
    empty="no rows: nothing is launched and nothing written",
    doc="Fused residual add and RMSNorm.  The variant `rounded_gemma_pairwise` normalises the "
    "rounded sum, multiplies by 1 + w and adds the squares pairwise over threads of 8 elements.  "
    "The sum of squares is a f32: beyond its range it is infinite and finite elements become 0.",
)

VARIANTS = ("rounded_gemma_pairwise",)

Array = NDArray[Any]
U16 = NDArray[np.uint16]
Maker = Callable[[U16, U16, np.random.Generator], None]


def cases(case_set: str, variant: str) -> list[Case]:
    sums = Case("sums", {"rows": len(SUMS), "fill": "sums", "eps": 1e-6})
    return [sums, *rmsnorm.cases(case_set, variant)]


def inputs(case: Case, rng: np.random.Generator) -> dict[str, Any]:
    x = rmsnorm.rows_of(case, rng)
    residual = _second(case, rng)
    if case.params["fill"] == "sums":
        for a, b, make in zip(x, residual, SUMS.values(), strict=True):
            make(a.view(np.uint16), b.view(np.uint16), rng)
    return {
        "x": x,
        "residual": residual,
        "w": rmsnorm.weight(case, rng),
        "eps": float(case.params["eps"]),
    }


def outputs(case: Case) -> dict[str, tuple[tuple[int, ...], str]]:
    return {}


def exact(variant: str, x: Array, residual: Array, w: Array, eps: float) -> dict[str, Array]:
    with np.errstate(invalid="ignore"):
        total = _f32.widen(x) + _f32.widen(residual)
    rounded = _f32.widen(_sum(x, residual))
    return {"x": rmsnorm.exact_norm(rounded, w, eps), "residual": total}


def deployed(variant: str, x: Array, residual: Array, w: Array, eps: float) -> dict[str, Array]:
    total = _sum(x, residual)
    return {"x": rmsnorm.deployed_norm(_f32.from_bf16(total), w, eps), "residual": total}


def _sum(x: Array, residual: Array) -> Array:
    return _f32.to_bf16(_f32.add(_f32.from_bf16(x), _f32.from_bf16(residual)))


def _second(case: Case, rng: np.random.Generator) -> Array:
    """The residual: -0 where x alone should be seen, else rows like those of x."""
    pattern = rmsnorm.background((int(case.params["rows"]), rmsnorm.WIDTH), rng)
    if case.params["fill"] in ("special", "ties"):
        pattern[:] = 0x8000
    elif case.params["fill"] == "zero_row":
        pattern[0] = 0
    return np.asarray(pattern.view(ml_dtypes.bfloat16))


# Pairs of rows by name, of bf16 patterns; one kind of NaN a row, as in rmsnorm.py.

SUMS: dict[str, Maker] = {}


def _sums(name: str, x: int | None, residual: int | None, where: Any = slice(None)) -> None:
    def make(a: U16, b: U16, rng: np.random.Generator) -> None:
        if x is not None:
            a[where] = x
        if residual is not None:
            b[where] = residual

    SUMS[name] = make


_sums("inf-less-inf", 0x7F80, 0xFF80, 700)
_sums("inf-more-inf", 0xFF80, 0xFF80, [0, 2047])
_sums("inf-finite", None, 0x7F80, 9)
_sums("nan-x", 0xFFC1, None, 33)
_sums("nan-residual", None, 0x7F81, 2046)
_sums("nan-both", 0x7FFF, 0x7FFF, slice(0, None, 31))
_sums("overflow", 0x7F7F, 0x7F7F, 1500)
_sums("rounds-to-inf", 0xFF7F, 0xFB00, 1501)  # the largest plus half a step, a tie
_sums("stays-finite", 0xFF7F, 0xFAFF, 1501)
_sums("zeros", 0x8000, 0x0000, slice(0, None, 2))
_sums("minus-zeros", 0x8000, 0x8000)
_sums("denormals", 0x0001, 0x807F, slice(0, None, 3))
_sums("denormal-to-normal", 0x007F, 0x0001)


def _cancel(a: U16, b: U16, rng: np.random.Generator) -> None:
    """All that is left is 0, or one step of x."""
    b[:] = a ^ 0x8000
    b[::5] ^= 1


def _ties(a: U16, b: U16, rng: np.random.Generator) -> None:
    """A step of x is 2, so adding 1 is a tie; then just below and just above one."""
    a[:] = rng.integers(0x4380, 0x4400, a.shape, dtype=np.uint16)
    b[:] = np.resize(np.array([0x3F80, 0x3F7F, 0x3F81], np.uint16), b.shape)
    minus = rng.integers(0, 2, a.shape, dtype=np.uint16) << np.uint16(15)
    a |= minus
    b |= minus


SUMS["cancel"] = _cancel
SUMS["ties"] = _ties
