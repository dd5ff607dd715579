"""y = silu(gate) * up, then FP8 codes with one scale per group of 128.

`deployed` follows the rounding points of the fused path step by step.  `exact` is the same in
float64: the true y, its true largest magnitude, and codes and scales before any rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from netra_catalog.op import Op, TensorArg
from numpy.typing import NDArray

from netra_harness.case import Case
from netra_harness.oracles import _f32, _rows

OP = Op(
    name="moe.silu_mul_quant",
    args=(
        TensorArg("x", ("f32",), ("rows", 2, "width"), "in", doc="gate, then up"),
        TensorArg("out", ("f8e4m3fn",), ("rows", "width"), "out", doc="y / scale"),
        TensorArg("scale", ("f32",), ("rows", "width // 128"), "out", doc="to multiply codes by"),
    ),
    phases=("decode", "verify"),
    nan="a NaN y gets a NaN code and does not count for the scale of its group; an infinite y "
    "makes the scale infinite and every code of the group NaN",
    ties="codes and y round to nearest, ties to even",
    padding="none: a padded row is computed like any other and cannot disturb its neighbours",
    sentinels="none",
    empty="no rows: nothing is launched and nothing written",
    doc="Activation of routed experts.  The variant `reciprocal` rounds y to bf16 and multiplies "
    "by a reciprocal that one Newton step refined; 448 is the largest code.",
)

VARIANTS = ("reciprocal",)

WIDTH, GROUP = 512, 128
FLOOR = np.float32(1e-10)
LARGEST = 448.0

F32 = NDArray[np.float32]
Maker = Callable[[F32, np.random.Generator], None]


def cases(case_set: str, variant: str) -> list[Case]:
    special = Case("special", {"rows": len(SPECIAL), "fill": "special"}, graph="capture")
    if case_set == "mutation":
        return [special]
    quick = [_random(rows) for rows in (9, 1, 2, 33)] + [special]
    if case_set == "quick":
        return quick
    done = {case.name for case in quick}
    more = [_random(rows) for rows in _rows.counts(4096, 4096)]
    return quick + [case for case in more if case.name not in done]


def _random(rows: int) -> Case:
    return Case(f"random-{rows}", {"rows": rows, "fill": "random"}, graph="capture")


def inputs(case: Case, rng: np.random.Generator) -> dict[str, Any]:
    x = _background(int(case.params["rows"]), rng)
    if case.params["fill"] == "special":
        for row, make in zip(x, SPECIAL.values(), strict=True):
            make(row, rng)
    return {"x": x}


def outputs(case: Case) -> dict[str, tuple[tuple[int, ...], str]]:
    rows = int(case.params["rows"])
    return {"out": ((rows, WIDTH), "f8e4m3fn"), "scale": ((rows, WIDTH // GROUP), "f32")}


def exact(variant: str, x: F32) -> dict[str, NDArray[Any]]:
    gate, up = np.moveaxis(_f32.widen(x), 1, 0)
    with np.errstate(all="ignore"):
        y = (gate / (1 + np.exp(-gate)) * up).reshape(len(x), -1, GROUP)
        amax = np.fmax.reduce(np.abs(y), axis=-1, initial=float(FLOOR), keepdims=True)
        codes = y / amax * LARGEST
    return {"out": codes.reshape(len(x), -1), "scale": amax[..., 0] / LARGEST}


def deployed(variant: str, x: F32) -> dict[str, NDArray[Any]]:
    gate, up = x[:, 0], x[:, 1]
    e = _f32.exp2(_f32.mul(np.float32(-1.44269504), gate))
    sigmoid = _f32.rcp(_f32.add(np.float32(1), e))
    y = _f32.from_bf16(_f32.to_bf16(_f32.mul(_f32.mul(sigmoid, gate), up)))
    y = y.reshape(len(x), -1, GROUP)
    amax = np.fmax.reduce(np.abs(y), axis=-1, initial=FLOOR, keepdims=True)
    scale = _f32.mul(amax, np.float32(1 / LARGEST))
    guess = _f32.rcp(scale)
    inverse = _f32.fma(_f32.fma(-scale, guess, np.float32(1)), guess, guess)
    codes = _f32.to_e4m3fn(_f32.mul(y, inverse))
    return {"out": codes.reshape(len(x), -1), "scale": scale[..., 0]}


def _background(rows: int, rng: np.random.Generator) -> F32:
    """Gates in -8..8; ups of another size in each group, so that a row's scales all differ."""
    x: F32 = rng.random((rows, 2, WIDTH), dtype=np.float32) * np.float32(16) - np.float32(8)
    groups = WIDTH // GROUP
    exponent = rng.integers(-22, -11, (rows, groups)) + 11 * np.arange(groups)
    size = np.ldexp(np.float32(1), exponent.astype(np.int32))
    x[:, 1] *= np.repeat(size, GROUP, axis=1)
    return x


# Rows by name.  A gate of 32 or more is its own silu: exp(-32) is lost in 1 + exp(-32).

SPECIAL: dict[str, Maker] = {}


def _special(make: Maker) -> Maker:
    SPECIAL[make.__name__.strip("_").replace("_", "-")] = make
    return make


@_special
def _zeros(row: F32, rng: np.random.Generator) -> None:
    row[:] = 0
    row[0, ::3] = -0.0
    row[1, ::2] = -0.0


@_special
def _around_the_floor(row: F32, rng: np.random.Generator) -> None:
    """Largest magnitudes just below, at and above 1e-10, and far below."""
    row[0] = 32
    row[1] = 1e-15
    for group, amax in enumerate((9.9e-11, 1e-10, 1.01e-10, 1e-30)):
        row[1, group * GROUP + 5 * group] = -amax / 32


@_special
def _nan_gate(row: F32, rng: np.random.Generator) -> None:
    row[0, [0, 200, 511]] = np.nan


@_special
def _nan_up(row: F32, rng: np.random.Generator) -> None:
    row[1].view(np.uint32)[[127, 128, 300]] = [0x7FC00000, 0xFFFFFFFF, 0x7F800001]


@_special
def _nan_negative(row: F32, rng: np.random.Generator) -> None:
    row[0].view(np.uint32)[::64] = 0xFF812345


@_special
def _nan_group(row: F32, rng: np.random.Generator) -> None:
    """Nothing is left for the scale but the floor."""
    row[0, :GROUP] = np.nan


@_special
def _inf_gate(row: F32, rng: np.random.Generator) -> None:
    row[0, 100] = np.inf


@_special
def _minus_inf_gate(row: F32, rng: np.random.Generator) -> None:
    """0 * -inf: a NaN that no operand had."""
    row[0, [3, 130, 500]] = -np.inf


@_special
def _inf_up(row: F32, rng: np.random.Generator) -> None:
    row[1, 400] = -np.inf
    row[1, 30] = np.inf
    row[0, 30] = 0


@_special
def _overflow(row: F32, rng: np.random.Generator) -> None:
    """f32 overflow in one group; a product that only bf16 rounds to infinity in another."""
    row[0] = 32
    row[1, :GROUP] = 3e38
    row[1, GROUP : 2 * GROUP] = 1
    row[1].view(np.uint32)[GROUP + 7] = np.float32(2.0**123).view(np.uint32) - np.uint32(1)
    row[0, GROUP + 7] = 32


@_special
def _largest_bf16(row: F32, rng: np.random.Generator) -> None:
    row[0] = 32
    row[1] *= np.float32(2.0**100)
    row[1].view(np.uint32)[::GROUP] = 0x7CFF0000  # the largest bf16, divided by 32


@_special
def _outlier(row: F32, rng: np.random.Generator) -> None:
    """Codes that are subnormal or zero because of one large element."""
    row[1] = rng.random(WIDTH, dtype=np.float32)
    row[1, [17, 255, 256, 511]] = [300, -4000, 1e6, 1e30]


@_special
def _denormals(row: F32, rng: np.random.Generator) -> None:
    """Denormal products, and denormal gates whose product is normal."""
    pattern = rng.integers(0, 0x00800000, WIDTH, dtype=np.uint32)
    row[0] = 32
    row.view(np.uint32)[1] = pattern
    row.view(np.uint32)[0, 2 * GROUP :] = pattern[2 * GROUP :]
    row[1, 2 * GROUP :] = 2.0**120


@_special
def _gates_far_below(row: F32, rng: np.random.Generator) -> None:
    """1 + e near and beyond what rcp can return, to e = inf."""
    row[0] = np.linspace(-130, -80, WIDTH, dtype=np.float32)
    row[1] = 2.0**60


@_special
def _gates_far_above(row: F32, rng: np.random.Generator) -> None:
    """e from 1 down to 0, past the smallest that exp2 returns."""
    row[0] = np.linspace(0, 140, WIDTH, dtype=np.float32)


@_special
def _gates_tiny(row: F32, rng: np.random.Generator) -> None:
    """exp2 of nearly nothing is 1."""
    row[0] = np.ldexp(np.float32(1), np.linspace(-149, -10, WIDTH).astype(np.int32))
    row[0, ::2] *= -1
    row[1] = 2.0**110


@_special
def _bf16_ties(row: F32, rng: np.random.Generator) -> None:
    """y half way between two bf16, and one f32 step to either side."""
    row[0] = 32
    pattern = rng.integers(0x3F80, 0x4080, WIDTH, dtype=np.uint32) << np.uint32(16)
    nudge = rng.integers(0, 3, WIDTH, dtype=np.uint32)
    row[1].view(np.uint32)[:] = pattern + np.uint32(0x7FFF) + nudge


@_special
def _code_ties(row: F32, rng: np.random.Generator) -> None:
    """448 in each group makes the scale about 1; the rest is half way between two codes."""
    row[0] = 32
    steps = np.arange(WIDTH) % 16
    y = np.ldexp(17.0 + 2 * (steps % 8), np.arange(WIDTH) // 16 % 12 - 8)
    row[1] = np.where(steps < 8, y, -y) / 32
    row[1, ::GROUP] = np.array([448, -448, 448, -448]) / 32


@_special
def _largest_in_each_lane(row: F32, rng: np.random.Generator) -> None:
    """The largest of a group at its first, last and some middle place."""
    row[0] = 32
    row[1] = rng.random(WIDTH, dtype=np.float32)
    row[1, [0, 2 * GROUP - 1, 2 * GROUP + 73, 3 * GROUP + 36]] = [-3, 5, 7, -11]
