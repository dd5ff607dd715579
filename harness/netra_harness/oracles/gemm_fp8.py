"""out = bf16(a_scale * b_scale * a @ b.T) of FP8 matrices with one scale each.

`exact` is the sum in float64, where it has no rounding while k <= 2^17: products of two codes are
multiples of 2^-18 below 2^18.  `deployed` adds them one by one in f32, k ascending, as a chain of
fused multiply-adds does; what the matrix units really do is not published, so `exact` decides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
from netra_catalog.op import Op, TensorArg
from numpy.typing import NDArray

from netra_harness.case import Case
from netra_harness.oracles import _f32

OP = Op(
    name="linear.gemm_fp8",
    args=(
        TensorArg("a", ("f8e4m3fn",), ("m", "k"), "in", doc="activations"),
        TensorArg("b", ("f8e4m3fn",), ("n", "k"), "in", doc="weights, a row per output column"),
        TensorArg("a_scale", ("f32",), (1,), "in"),
        TensorArg("b_scale", ("f32",), (1,), "in"),
        TensorArg("out", ("bf16",), ("m", "n"), "out"),
    ),
    phases=("decode", "verify", "draft_extend", "prefill"),
    nan="a NaN code makes its row or column of out NaN; a NaN scale makes all of it NaN",
    ties="out rounds to nearest, ties to even; sums round as the matrix units do",
    padding="none: rows beyond m are neither read nor written",
    sentinels="none",
    empty="no rows: nothing is launched and nothing written",
    doc="FP8 linear layer with per-tensor scales.  The variant `chain` adds products in f32.",
)

VARIANTS = ("chain",)

Array = NDArray[Any]
U8 = NDArray[np.uint8]

ONE = 0x38  # the code of 1.0
NAN = 0x7F


def cases(case_set: str, variant: str) -> list[Case]:
    tail = _case("random", 33, 128, 256)
    picked = _case("picked", 129, 256, 256)
    infinite = _case("scale_inf", 3, 128, 128)
    if case_set == "mutation":
        return [tail, picked, infinite]
    quick = [
        tail,
        _case("random", 1, 128, 128),
        _case("random", 130, 256, 384),
        _case("integers", 128, 128, 512),
        picked,
        _case("nan", 40, 128, 128),
        _case("zero", 5, 128, 128),
        _case("scale_nan", 3, 128, 128),
        infinite,
    ]
    if case_set == "quick":
        return quick
    # Rows around every boundary of a tile, and sizes whose steps and tiles come in any number.
    more = [_case("random", m, 128, 128) for m in range(1, 129)]
    more += [_case("random", m, 128, 128) for m in (255, 256, 257, 511, 513, 1023, 1025, 4096)]
    more += [_case("random", 17, n, 128) for n in (256, 384, 512, 2048, 5120)]
    more += [_case("random", 17, 128, k) for k in (256, 384, 512, 1024, 4096, 7168)]
    more += [_case("picked", 256, 256, 256), _case("random", 1024, 1024, 1024)]
    done = {case.name for case in quick}
    return quick + [case for case in more if case.name not in done]


def _case(fill: str, m: int, n: int, k: int) -> Case:
    name = f"{fill.replace('_', '-')}-{m}x{n}x{k}"
    graph = "capture" if fill == "integers" else "eager"
    return Case(name, {"m": m, "n": n, "k": k, "fill": fill}, graph=graph)


def inputs(case: Case, rng: np.random.Generator) -> dict[str, Any]:
    m, n, k = (int(case.params[key]) for key in ("m", "n", "k"))
    fill = str(case.params["fill"])
    a, b = _codes((m, k), rng), _codes((n, k), rng)
    # Products have a size near 100^2: with these scales |out| is about 1 whatever k is.
    scales = [np.float32(0.37 / 100), np.float32(1.3 / 100 / np.sqrt(k))]
    if fill in FILLS:
        FILLS[fill](a, b, scales, rng)
    fp8 = ml_dtypes.float8_e4m3fn
    return {
        "a": a.view(fp8),
        "b": b.view(fp8),
        "a_scale": np.array([scales[0]], np.float32),
        "b_scale": np.array([scales[1]], np.float32),
    }


def outputs(case: Case) -> dict[str, tuple[tuple[int, ...], str]]:
    return {"out": ((int(case.params["m"]), int(case.params["n"])), "bf16")}


def exact(
    variant: str, a: Array, b: Array, a_scale: Array, b_scale: Array
) -> dict[str, Array]:
    with np.errstate(invalid="ignore"):
        total = _f32.widen(a) @ _f32.widen(b).T
        return {"out": total * (_f32.widen(a_scale) * _f32.widen(b_scale))}


def deployed(
    variant: str, a: Array, b: Array, a_scale: Array, b_scale: Array
) -> dict[str, Array]:
    x, y = (np.ascontiguousarray(_f32.widen(t).astype(np.float32).T) for t in (a, b))
    total = np.zeros((len(a), len(b)), np.float32)
    product = np.empty_like(total)
    with np.errstate(invalid="ignore"):
        for column, row in zip(x, y, strict=True):  # products of two codes are exact
            np.multiply(column[:, None], row, out=product)
            total += product
    return {"out": _f32.to_bf16(_f32.mul(total, _f32.mul(a_scale, b_scale)))}


def _codes(shape: tuple[int, int], rng: np.random.Generator) -> U8:
    """Any finite code, denormals too."""
    codes = rng.integers(0, 254, shape, np.uint8)
    return np.where(codes >= NAN, codes + 1, codes).astype(np.uint8)


FILLS: dict[str, Callable[[U8, U8, list[np.float32], np.random.Generator], None]] = {}


def _integers(a: U8, b: U8, scales: list[np.float32], rng: np.random.Generator) -> None:
    """Whole numbers from -8 to 8: no adder rounds."""
    fp8 = ml_dtypes.float8_e4m3fn
    for x in (a, b):
        x[:] = rng.integers(-8, 9, x.shape).astype(np.float32).astype(fp8).view(np.uint8)
    scales[:] = [np.float32(0.25), np.float32(0.25)]


def _picked(a: U8, b: U8, scales: list[np.float32], rng: np.random.Generator) -> None:
    """Row i of a picks one column of b: every element is seen where it belongs."""
    a[:] = 0
    m, k = a.shape
    a[np.arange(m), (37 * np.arange(m) + 5) % k] = ONE
    scales[:] = [np.float32(1), np.float32(1)]


def _nan(a: U8, b: U8, scales: list[np.float32], rng: np.random.Generator) -> None:
    a[[3, 34], [0, 127]] = [NAN, 0x80 | NAN]
    b[[0, 77], [64, 3]] = [0x80 | NAN, NAN]


def _zero(a: U8, b: U8, scales: list[np.float32], rng: np.random.Generator) -> None:
    a[1] = 0
    a[2] = 0x80
    b[5] = 0x80
    b[7] = 1 + (np.arange(b.shape[1]) % 7)  # denormals


def _scale_nan(a: U8, b: U8, scales: list[np.float32], rng: np.random.Generator) -> None:
    scales[1] = np.float32(np.nan)


def _scale_inf(a: U8, b: U8, scales: list[np.float32], rng: np.random.Generator) -> None:
    """Infinite, and NaN where the sum is 0."""
    a[1] = 0
    scales[0] = np.float32(np.inf)


FILLS.update(
    integers=_integers, picked=_picked, nan=_nan, zero=_zero, scale_nan=_scale_nan,
    scale_inf=_scale_inf,
)
