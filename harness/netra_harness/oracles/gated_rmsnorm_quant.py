"""out = RMSNorm of each head, times silu of its gate; then FP8 codes with one scale per head.

The variants differ in how many neighbours a lane adds up before lanes are added.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from netra_catalog.op import Op, ScalarArg, TensorArg
from numpy.typing import NDArray

from netra_harness.case import Case
from netra_harness.oracles import _bf16, _f32

OP = Op(
    name="norm.gated_rmsnorm_quant",
    args=(
        TensorArg("x", ("bf16",), ("tokens * heads", "width"), "in"),
        TensorArg("w", ("bf16",), ("width",), "in"),
        TensorArg("gate", ("bf16",), ("tokens", "heads", "width"), "in"),
        TensorArg("out", ("bf16",), ("tokens * heads", "width"), "out"),
        TensorArg("codes", ("f8e4m3fn",), ("tokens * heads", "width"), "out", doc="out / scale"),
        TensorArg("scale", ("f32",), ("heads", "tokens"), "out", doc="to multiply codes by"),
        ScalarArg("eps", "f32", 1e-6),
        ScalarArg("code_max", "u32", doc="the code that the largest of a head gets"),
    ),
    phases=("decode", "verify", "draft_extend", "prefill"),
    nan="a NaN in x makes its head NaN, one in w or gate its element; a NaN gets a NaN code and"
    " does not count for the scale; an infinity makes the scale infinite, its own code NaN and the "
    "others of its head zeros",
    ties="out and codes round to nearest, ties to even",
    padding="none: a padded token is computed like any other and cannot disturb its neighbours",
    sentinels="none",
    empty="no tokens: nothing is launched and nothing written",
    doc="What follows a gated delta rule: norm before gate.  Rounded to bf16 once, and the codes"
    " are those of the rounded values.",
)

LANES = {"d128_h48_rpb1": 64, "d128_h48_rpb2": 32, "d128_h48_rpb4": 16}
TOKENS = {"d128_h48_rpb1": (1, 10), "d128_h48_rpb2": (11, 21), "d128_h48_rpb4": (22, 8192)}
VARIANTS = tuple(LANES)

HEADS, WIDTH = 48, 128
FLOOR = np.float32(1e-10)

Array = NDArray[Any]
F32 = NDArray[np.float32]


def cases(case_set: str, variant: str) -> list[Case]:
    low, high = TOKENS[variant]
    mutation = [_case("special", low), _case("gates", min(max(low, 10), high))]
    if case_set == "mutation":
        return mutation
    quick = [_case("random", low), _case("random", min(high, low + 9)), *mutation]
    quick += [_case("random", low + 1, "capture"), _case("strided", low + 2)]
    if case_set == "quick":
        return quick
    done = {case.name for case in quick}
    counts = [n for n in (*range(1, 129), 255, 256, 257, 511, 512, 513) if low <= n <= high]
    return quick + [c for c in (_case("random", n) for n in counts) if c.name not in done]


def _case(fill: str, tokens: int, graph: str = "eager") -> Case:
    params = {"rows": tokens * HEADS, "count": tokens, "fill": fill}
    return Case(f"{fill}-{tokens}", params, graph=graph)


def inputs(case: Case, rng: np.random.Generator) -> dict[str, Any]:
    """Each head of x has a size of its own.  `strided`: gate is a part of wider rows, as the
    projection leaves it.  `gates`: every bf16 but the NaNs of one sign, as far as there is room."""
    rows, fill = int(case.params["rows"]), case.params["fill"]
    tokens = int(case.params["count"])
    size = np.ldexp(1.0, rng.integers(-12, 13, (rows, 1)))
    x = (_bf16.normal((rows, WIDTH), rng).astype(np.float32) * size).astype("bfloat16")
    w = _bf16.normal((WIDTH,), rng, 0.5)
    gate = _bf16.normal((tokens, HEADS, WIDTH), rng, 3)
    if fill == "strided":
        gate = _bf16.normal((tokens, 2 * HEADS + 3, WIDTH + 8), rng, 3)[:, 3 : 3 + HEADS, :WIDTH]
    elif fill == "gates":
        gate.view(np.uint16)[:] = np.resize(np.arange(0, 0xFF81), gate.shape)
    elif fill == "special":
        kinds = _bf16.make_rows(_bf16.ROWS, 1024, rng)[:, -WIDTH:]
        x[: len(kinds)] = kinds
        gate.reshape(-1, WIDTH)[len(kinds) : 2 * len(kinds)] = kinds
        gate.reshape(-1, WIDTH)[2 * len(kinds) : 40] = -100  # and the scale is the floor's
    return {"x": x, "w": w, "gate": gate, "eps": 1e-6, "code_max": 448}


def outputs(case: Case) -> dict[str, tuple[tuple[int, ...], str]]:
    rows = int(case.params["rows"])
    return {
        "out": ((rows, WIDTH), "bf16"),
        "codes": ((rows, WIDTH), "f8e4m3fn"),
        "scale": ((HEADS, rows // HEADS), "f32"),
    }


def exact(
    variant: str, x: Array, w: Array, gate: Array, eps: float, code_max: int
) -> dict[str, Array]:
    with np.errstate(all="ignore"):
        s, g = _f32.widen(x), _f32.widen(gate).reshape(-1, WIDTH)
        norm = s / np.sqrt((s * s).mean(axis=1, keepdims=True) + eps) * _f32.widen(w)
        y = norm * g / (1 + np.exp(-g))
        scale = np.fmax.reduce(np.abs(y), axis=1, initial=float(FLOOR)) / code_max
        return {"out": y, "codes": y / scale[:, None], "scale": scale.reshape(-1, HEADS).T}


def deployed(
    variant: str, x: Array, w: Array, gate: Array, eps: float, code_max: int
) -> dict[str, Array]:
    one = np.float32(1)
    s, g = _f32.from_bf16(x), _f32.from_bf16(gate).reshape(-1, WIDTH)
    below = _f32.fma(_squares(s, LANES[variant]), np.float32(1 / WIDTH), np.float32(eps))
    norm = _f32.mul(_f32.mul(s, _f32.rsq(below)), _f32.from_bf16(w))
    e = _f32.exp2(_f32.mul(np.float32(-1.44269504), g))
    silu = _f32.mul(g, _f32.div(one, _f32.add(e, one)))
    out = _f32.to_bf16(_f32.mul(norm, silu))
    y = _f32.from_bf16(out)
    amax = np.fmax.reduce(np.abs(y), axis=1, initial=FLOOR)
    scale = _f32.mul(amax, np.float32(1 / code_max))
    codes = _f32.to_e4m3fn(_f32.mul(y, _f32.div(one, scale)[:, None]))
    return {"out": out, "codes": codes, "scale": scale.reshape(-1, HEADS).T.copy()}


def _squares(s: F32, lanes: int) -> F32:
    """[heads, width] -> [heads, 1]: chains of neighbours, then pairs of pairs of chains."""
    mine = s.reshape(len(s), lanes, -1)
    sums = _f32.mul(mine[..., 0], mine[..., 0])
    for k in range(1, mine.shape[2]):
        sums = _f32.fma(mine[..., k], mine[..., k], sums)
    while sums.shape[1] > 1:
        sums = _f32.add(sums[:, 0::2], sums[:, 1::2])
    return sums
