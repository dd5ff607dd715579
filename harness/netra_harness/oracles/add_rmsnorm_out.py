"""residual_out = x + residual; out = that, normalised and times a gain.  Nothing is in place.

The squares of a thread's 8 elements are one chain of fma, which starts with the second and the
first; then neighbouring threads, pairs of them and so on are added, up to a wave; then waves.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from netra_catalog.op import Op, ScalarArg, TensorArg
from numpy.typing import NDArray

from netra_harness.case import Case
from netra_harness.oracles import _bf16, _f32

OP = Op(
    name="norm.add_rmsnorm_out",
    args=(
        TensorArg("x", ("bf16",), ("rows", "width"), "in"),
        TensorArg("residual", ("bf16",), ("rows", "width"), "in"),
        TensorArg("w", ("bf16",), ("width",), "in"),
        TensorArg("out", ("bf16",), ("rows", "width"), "out"),
        TensorArg("residual_out", ("bf16",), ("rows", "width"), "out", doc="the sum"),
        ScalarArg("eps", "f64", 1e-6),
        ScalarArg("sum_rounded", "u32", doc="1: the sum is rounded to bf16 before its norm"),
        ScalarArg("weight_has_one", "u32", doc="0: the gain is 1 + w; 1: it is w"),
    ),
    phases=("decode", "verify", "draft_extend", "prefill"),
    nan="a NaN in x or residual makes its row NaN, and its element of residual_out; one in w makes "
    "its column of out NaN",
    ties="out and residual_out round to nearest, ties to even",
    padding="none: a padded row is computed like any other and cannot disturb its neighbours",
    sentinels="none",
    empty="no rows: nothing is launched and nothing written",
    doc="Fused residual add and RMSNorm.  In the variant `unrounded_sum` the f32 sum is normalised "
    "as it is, w has its 1 in it, and eps is added in f64.",
)

VARIANTS = ("unrounded_sum",)

WIDTH, MOST_ROWS, PER_THREAD, LANES = 2048, 128, 8, 64
F32_MAX = float(np.finfo(np.float32).max)

Array = NDArray[Any]
F32 = NDArray[np.float32]


def cases(case_set: str, variant: str) -> list[Case]:
    return cases_of(case_set, WIDTH, MOST_ROWS, {"sum_rounded": 0, "weight_has_one": 1})


def cases_of(case_set: str, width: int, most: int, given: dict[str, Any]) -> list[Case]:
    """`given`: the scalars that say which convention is meant."""

    def case(fill: str, rows: int, eps: float = 1e-6, graph: str = "eager", pad: int = 0) -> Case:
        name = f"{fill}-{rows}" + (f"-pad-{pad}" if pad else "") + (f"-eps-{eps}" * (eps != 1e-6))
        params = {"rows": rows, "fill": fill, "eps": eps, "pad": pad, "width": width, **given}
        return Case(name, params, graph=graph)

    special = case("special", len(_bf16.ROWS))
    odd = [special, case("sums", len(SUMS)), case("weights", 2)]
    if case_set == "mutation":
        return [*odd, case("random", 2)]
    quick = [case("random", 1), case("random", 3), case("random", 16, graph="capture"), *odd]
    quick += [case("random", 2, eps=0.5), case("ties", 2)]
    if case_set == "quick":
        return quick
    done = {c.name for c in quick}
    rows = [*range(1, 129), 255, 256, 257, 1023, 1024, 1025, most - 1, most]
    more = [case("random", n) for n in sorted(set(rows)) if n <= most]
    return quick + [c for c in more if c.name not in done]


def inputs(case: Case, rng: np.random.Generator) -> dict[str, Any]:
    p = case.params
    rows, fill, width = int(p["rows"]), p["fill"], int(p["width"])
    pitch = width + int(p["pad"])
    x, residual = _bf16.normal((rows, pitch), rng), _bf16.normal((rows, pitch), rng, 3)
    w = _bf16.normal((width,), rng, 0.25)
    if p["weight_has_one"]:
        w = _f32.to_bf16(w.astype(np.float32) + 1)
    if fill == "special":
        x = _bf16.make_rows(_bf16.ROWS, pitch, rng)
        residual.view(np.uint16)[:] = 0x8000
    elif fill == "sums":
        for row, (a, b) in enumerate(SUMS.values()):
            x.view(np.uint16)[row, ::5] = a
            residual.view(np.uint16)[row, ::5] = b
    elif fill == "weights":
        w.view(np.uint16)[:8] = [0xBF80, 0, 0x8000, 1, 0x7F80, 0x7FC0, 0xFFFF, 0x7F7F]
    elif fill == "ties":  # a step of x is 2, so adding 1 is a tie; just below, just above
        x.view(np.uint16)[:] = rng.integers(0x4380, 0x4400, x.shape, dtype=np.uint16)
        residual.view(np.uint16)[:] = np.resize([0x3F80, 0x3F7F, 0x3F81], residual.shape)
    scalars = {k: int(p[k]) for k in ("sum_rounded", "weight_has_one")}
    return {
        "x": x[:, :width], "residual": residual[:, :width], "w": w, "eps": float(p["eps"]),
        **scalars,
    }  # fmt: skip


# What x and residual hold in every fifth column.
SUMS = {
    "inf-less-inf": (0x7F80, 0xFF80),
    "inf-finite": (0x3F80, 0x7F80),
    "nan-x": (0xFFC1, 0x3F80),
    "nan-residual": (0x3F80, 0x7F81),
    "overflows": (0x7F7F, 0x7F7F),
    "rounds-to-inf": (0x7F7F, 0x7B00),
    "zeros": (0x8000, 0x0000),
    "minus-zeros": (0x8000, 0x8000),
    "denormals": (0x0001, 0x807F),
    "cancels": (0x4049, 0xC049),
}


def outputs(case: Case) -> dict[str, tuple[tuple[int, ...], str]]:
    shape = (int(case.params["rows"]), int(case.params["width"]))
    return {"out": (shape, "bf16"), "residual_out": (shape, "bf16")}


def exact(
    variant: str, x: Array, residual: Array, w: Array, eps: float, sum_rounded: int,
    weight_has_one: int,
) -> dict[str, Array]:  # fmt: skip
    with np.errstate(all="ignore"):
        total = _f32.widen(x) + _f32.widen(residual)
        s = _f32.widen(_sum(x, residual, bool(sum_rounded)))
        squares = np.sum(s * s, axis=1, keepdims=True)
        squares = np.where(squares > F32_MAX, np.inf, squares)  # a sum of squares is a f32
        gain = _f32.widen(w) + (0 if weight_has_one else 1)
        return {"out": s / np.sqrt(squares / s.shape[1] + eps) * gain, "residual_out": total}


def deployed(
    variant: str, x: Array, residual: Array, w: Array, eps: float, sum_rounded: int,
    weight_has_one: int,
) -> dict[str, Array]:  # fmt: skip
    s = _sum(x, residual, rounded=False)
    mean = _f32.mul(sum_of_squares(s), np.float32(1 / s.shape[1]))
    with np.errstate(all="ignore"):
        below = (mean.astype(np.float64) + eps).astype(np.float32)
    y = _f32.mul(_f32.mul(s, _f32.rsq(below)), _f32.from_bf16(w))
    return {"out": _f32.to_bf16(y), "residual_out": _f32.to_bf16(s)}


def _sum(x: Array, residual: Array, rounded: bool) -> F32:
    s = _f32.add(_f32.from_bf16(x), _f32.from_bf16(residual))
    return _f32.from_bf16(_f32.to_bf16(s)) if rounded else s


def sum_of_squares(s: F32) -> F32:
    """[rows, width] -> [rows, 1]; waves that are missing for a power of two count as zeros."""
    mine = s.reshape(len(s), -1, PER_THREAD)
    chain = _f32.mul(mine[..., 1], mine[..., 1])
    for k in (0, 2, 3, 4, 5, 6, 7):
        chain = _f32.fma(mine[..., k], mine[..., k], chain)
    waves = chain.shape[1] // LANES
    missing = (1 << (waves - 1).bit_length()) - waves
    sums = np.concatenate([chain, np.zeros((len(s), missing * LANES), np.float32)], axis=1)
    while sums.shape[1] > 1:
        sums = _f32.add(sums[:, 0::2], sums[:, 1::2])
    return sums
