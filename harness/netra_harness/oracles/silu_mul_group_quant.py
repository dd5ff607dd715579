"""y = bf16(silu(gate)) * up in bf16, then FP8 codes with one scale per group of 128.

Beside silu_mul_quant.py: the input is bf16, the product is rounded between its two steps, division
is IEEE's, and the scales lie by group.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from netra_catalog.op import Op, ScalarArg, TensorArg
from numpy.typing import NDArray

from netra_harness.case import Case
from netra_harness.oracles import _bf16, _f32

OP = Op(
    name="mlp.silu_mul_group_quant",
    args=(
        TensorArg("x", ("bf16",), ("rows", "2 * width"), "in", doc="gate, then up"),
        TensorArg("codes", ("f8e4m3fn",), ("rows", "width"), "out", doc="y / scale"),
        TensorArg("scale", ("f32",), ("width // 128", "rows"), "out", doc="to multiply codes by"),
        ScalarArg("code_max", "u32", doc="the code that the largest of a group gets"),
        ScalarArg("gate_rounded", "u32", doc="1: silu(gate) is rounded to bf16 before the product"),
    ),
    phases=("decode", "verify", "draft_extend", "prefill"),
    nan="a NaN y gets a NaN code and does not count for the scale of its group; an infinite y makes"
    " the scale infinite, its own code NaN and the others of the group zeros",
    ties="codes and y round to nearest, ties to even",
    padding="none: a padded row is computed like any other and cannot disturb its neighbours",
    sentinels="none",
    empty="no rows: nothing is launched and nothing written",
    doc="Activation of a dense layer, quantised for the next.  The variant `n17408_448` has 17408 "
    "columns and codes up to 448.",
)

VARIANTS = ("n17408_448",)

WIDTH, GROUP, MOST_ROWS = 17408, 128, 4096
FLOOR = np.float32(1e-10)

Array = NDArray[Any]


def cases(case_set: str, variant: str) -> list[Case]:
    odd = [_case("gates", 4), _case("special", 4), _case("ties", 1)]
    if case_set == "mutation":
        return [*odd, _case("random", 2)]
    quick = [_case("random", 1), _case("random", 3), _case("random", 8, "capture"), *odd]
    if case_set == "quick":
        return quick
    done = {case.name for case in quick}
    rows = [*range(1, 129), 255, 256, 257, 511, 512, 513, MOST_ROWS - 1, MOST_ROWS]
    return quick + [c for c in (_case("random", n) for n in rows) if c.name not in done]


def _case(fill: str, rows: int, graph: str = "eager") -> Case:
    return Case(f"{fill}-{rows}", {"rows": rows, "fill": fill}, graph=graph)


def inputs(case: Case, rng: np.random.Generator) -> dict[str, Any]:
    """Random ups are of another size in each group.  `gates` has every bf16 as a gate."""
    rows, fill = int(case.params["rows"]), case.params["fill"]
    size = np.ldexp(1.0, rng.integers(-12, 13, (rows, WIDTH // GROUP))).repeat(GROUP, axis=1)
    gate = _bf16.normal((rows, WIDTH), rng, 3)
    up = (_bf16.normal((rows, WIDTH), rng).astype(np.float32) * size).astype(gate.dtype)
    if fill == "gates":
        gate.view(np.uint16)[:] = np.resize(np.arange(1 << 16), gate.shape)
        up[:] = np.where(np.arange(WIDTH) % 2, 1, -3).astype(up.dtype)
    elif fill == "special":
        _odd_groups(gate, up, rng)
    elif fill == "ties":  # a gate of 64 is its own silu; codes half way between two
        gate[:] = 64
        steps = np.arange(WIDTH) % 16
        y = np.ldexp(17.0 + 2 * (steps % 8), np.arange(WIDTH) // 16 % 12 - 8)
        up[:] = (np.where(steps < 8, y, -y) / 64).astype(up.dtype)
        up[:, ::GROUP] = 7
    return {"x": np.concatenate([gate, up], axis=1), "code_max": 448, "gate_rounded": 1}


def _odd_groups(gate: Array, up: Array, rng: np.random.Generator) -> None:
    """Every kind of row in up, and again in gate, a group each; then groups around the floor."""
    kinds = _bf16.make_rows(_bf16.ROWS, 1024, rng)[:, -GROUP:].reshape(-1)
    up[0, : kinds.size] = kinds
    gate[1, : kinds.size] = kinds
    gate[2], gate[3] = 64, -100
    for group in range(WIDTH // GROUP):
        start = group * GROUP
        up[2, start : start + GROUP] = 2.0 ** (-34 - group % 12) / 64
        up[2, start + group % GROUP] = 2.0 ** (-33 - group % 4) / 64
        up[3, start : start + GROUP] = 2.0 ** (group % 100)


def outputs(case: Case) -> dict[str, tuple[tuple[int, ...], str]]:
    rows = int(case.params["rows"])
    return {"codes": ((rows, WIDTH), "f8e4m3fn"), "scale": ((WIDTH // GROUP, rows), "f32")}


def exact(variant: str, x: Array, code_max: int, gate_rounded: int) -> dict[str, Array]:
    gate, up = np.split(_f32.widen(x), 2, axis=1)
    with np.errstate(all="ignore"):
        y = (gate / (1 + np.exp(-gate)) * up).reshape(len(x), -1, GROUP)
        scale = np.fmax.reduce(np.abs(y), axis=2, initial=float(FLOOR)) / code_max
        return {"codes": (y / scale[..., None]).reshape(len(x), -1), "scale": scale.T}


def deployed(variant: str, x: Array, code_max: int, gate_rounded: int) -> dict[str, Array]:
    gate, up = np.split(_f32.from_bf16(x), 2, axis=1)
    below = _f32.add(_f32.exp2(_f32.mul(np.float32(-1.44269504), gate)), np.float32(1))
    silu = _f32.from_bf16(_f32.to_bf16(_f32.div(gate, below)))
    y = _f32.from_bf16(_f32.to_bf16(_f32.mul(silu, up))).reshape(len(x), -1, GROUP)
    amax = np.fmax.reduce(np.abs(y), axis=2, initial=FLOOR)
    scale = _f32.mul(amax, np.float32(1 / code_max))
    inverse = _f32.div(np.float32(1), scale)[..., None]
    codes = _f32.to_e4m3fn(_f32.mul(y, inverse)).reshape(len(x), -1)
    return {"codes": codes, "scale": scale.T.copy()}
