"""add_rmsnorm_out.py's sum and norm, and FP8 codes of the result with a scale for each 128.

The codes are those of the result as it was rounded to bf16.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from netra_catalog.op import Op, ScalarArg, TensorArg
from numpy.typing import NDArray

from netra_harness.case import Case
from netra_harness.oracles import _f32, add_rmsnorm_out

OP = Op(
    name="norm.add_rmsnorm_quant",
    args=(
        TensorArg("x", ("bf16",), ("rows", "width"), "in"),
        TensorArg("residual", ("bf16",), ("rows", "width"), "in"),
        TensorArg("w", ("bf16",), ("width",), "in"),
        TensorArg("out", ("bf16",), ("rows", "width"), "out"),
        TensorArg("residual_out", ("bf16",), ("rows", "width"), "out", doc="the sum"),
        TensorArg("codes", ("f8e4m3fn",), ("rows", "width"), "out", doc="out / scale"),
        TensorArg("scale", ("f32",), ("first", "second"), "out", doc="to multiply codes by"),
        ScalarArg("eps", "f64", 1e-6),
        ScalarArg("sum_rounded", "u32", doc="1: the sum is rounded to bf16 before its norm"),
        ScalarArg("weight_has_one", "u32", doc="0: the gain is 1 + w; 1: it is w"),
        ScalarArg("code_max", "u32", doc="the code that the largest of a group gets: 448 or 224"),
    ),
    phases=("decode", "verify", "draft_extend", "prefill"),
    nan="a NaN in x or residual makes its row NaN, one in w its column; a NaN gets a NaN code and "
    "does not count for the scale; an infinity makes the scale infinite, its own code NaN and the "
    "others of its group zeros",
    ties="out, residual_out and codes round to nearest, ties to even",
    padding="none: a padded row is computed like any other and cannot disturb its neighbours",
    sentinels="none",
    empty="no rows: nothing is launched and nothing written",
    doc="Fused residual add, RMSNorm and quantisation.  `n2048_unrounded_224` normalises the f32 "
    "sum and has scales [row][group]; `n5120_rounded_448` normalises the rounded sum and has scales"
    " [group][row].",
)

VARIANTS = ("n2048_unrounded_224", "n5120_rounded_448")

GROUP = 128
FLOOR = np.float32(1e-10)

Array = NDArray[Any]


def cases(case_set: str, variant: str) -> list[Case]:
    if variant == "n2048_unrounded_224":
        given = {"sum_rounded": 0, "weight_has_one": 1, "code_max": 224}
        return add_rmsnorm_out.cases_of(case_set, 2048, 128, given)
    given = {"sum_rounded": 1, "weight_has_one": 0, "code_max": 448}
    found = add_rmsnorm_out.cases_of(case_set, 5120, 8192, given)
    wide = {**found[0].params, "fill": "random", "rows": 3, "pad": 264}
    return [Case("random-3-pad-264", wide), *found]


def inputs(case: Case, rng: np.random.Generator) -> dict[str, Any]:
    found = add_rmsnorm_out.inputs(case, rng)
    if case.params["fill"] == "random":  # so that the groups of a row have scales of their own
        groups = len(found["w"]) // GROUP
        size = np.ldexp(1.0, rng.integers(-6, 7, groups)).repeat(GROUP)
        found["w"] = (found["w"].astype(np.float32) * size).astype(found["w"].dtype)
    return {**found, "code_max": int(case.params["code_max"])}


def outputs(case: Case) -> dict[str, tuple[tuple[int, ...], str]]:
    rows, width = int(case.params["rows"]), int(case.params["width"])
    by_row = case.params["code_max"] == 224
    scales = (rows, width // GROUP) if by_row else (width // GROUP, rows)
    return {
        **add_rmsnorm_out.outputs(case),
        "codes": ((rows, width), "f8e4m3fn"),
        "scale": (scales, "f32"),
    }


def exact(
    variant: str, x: Array, residual: Array, w: Array, eps: float, sum_rounded: int,
    weight_has_one: int, code_max: int,
) -> dict[str, Array]:  # fmt: skip
    norm = add_rmsnorm_out.exact("", x, residual, w, eps, sum_rounded, weight_has_one)
    y = norm["out"].reshape(len(x), -1, GROUP)
    with np.errstate(all="ignore"):
        scale = np.fmax.reduce(np.abs(y), axis=2, initial=float(FLOOR)) / code_max
        codes = (y / scale[..., None]).reshape(len(x), -1)
    return {**norm, "codes": codes, "scale": scale if code_max == 224 else scale.T}


def deployed(
    variant: str, x: Array, residual: Array, w: Array, eps: float, sum_rounded: int,
    weight_has_one: int, code_max: int,
) -> dict[str, Array]:  # fmt: skip
    if variant == "n2048_unrounded_224":
        norm = add_rmsnorm_out.deployed("", x, residual, w, eps, sum_rounded, weight_has_one)
    else:
        norm = _rounded_norm(x, residual, w, eps)
    y = _f32.from_bf16(norm["out"]).reshape(len(x), -1, GROUP)
    amax = np.fmax.reduce(np.abs(y), axis=2, initial=FLOOR)
    if variant == "n2048_unrounded_224":
        scale = _f32.div(amax, np.float32(224))
    else:
        scale = _f32.mul(amax, np.float32(1 / 448))
    inverse = _f32.div(np.float32(1), scale)[..., None]
    codes = _f32.to_e4m3fn(_f32.mul(y, inverse)).reshape(len(x), -1)
    return {**norm, "codes": codes, "scale": scale if code_max == 224 else scale.T.copy()}


def _rounded_norm(x: Array, residual: Array, w: Array, eps: float) -> dict[str, Array]:
    """Division and square root are IEEE's, eps is a f32, and the gain is 1 + w."""
    total = _f32.to_bf16(_f32.add(_f32.from_bf16(x), _f32.from_bf16(residual)))
    s = _f32.from_bf16(total)
    mean = _f32.div(add_rmsnorm_out.sum_of_squares(s), np.float32(s.shape[1]))
    with np.errstate(invalid="ignore"):
        root = np.sqrt(_f32.add(mean, np.float32(eps)))
    gain = _f32.add(np.float32(1), _f32.from_bf16(w))
    y = _f32.mul(_f32.mul(s, _f32.div(np.float32(1), root)), gain)
    return {"out": _f32.to_bf16(y), "residual_out": total}
