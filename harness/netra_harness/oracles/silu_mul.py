"""out = silu(gate) * up, where the product of gate and up is taken first."""

from __future__ import annotations

from typing import Any

import numpy as np
from netra_catalog.op import Op, TensorArg
from numpy.typing import NDArray

from netra_harness.case import Case
from netra_harness.oracles import _bf16, _f32, _random

OP = Op(
    name="mlp.silu_mul",
    args=(
        TensorArg("gate", ("f32",), ("rows", "width"), "in"),
        TensorArg("up", ("f32",), ("rows", "width"), "in"),
        TensorArg("out", ("bf16",), ("rows", "width"), "out"),
    ),
    phases=("decode", "verify", "draft_extend", "prefill"),
    nan="a NaN in gate or up makes its element NaN; so does an infinite product times zero",
    ties="out rounds to nearest, ties to even",
    padding="none: a padded row is computed like any other and cannot disturb its neighbours",
    sentinels="none",
    empty="no elements: nothing is launched and nothing written",
    doc="Activation of experts whose two projections are f32.  The variant `product_first` "
    "multiplies gate and up before the sigmoid, which is a hardware reciprocal.",
)

VARIANTS = ("product_first",)

Array = NDArray[Any]
F32 = NDArray[np.float32]


def cases(case_set: str, variant: str) -> list[Case]:
    odd = [_case("gates", 129, 512), _case("odd_gate", 16, 128), _case("odd_up", 16, 128)]
    odd += [_case("ties", 3, 24)]
    if case_set == "mutation":
        return [*odd, _case("random", 3, 680)]
    quick = [_case("random", 1, 8), _case("random", 8, 512), _case("random", 3, 680)]
    quick += [_case("random", 9, 512, "capture"), _case("random", 7, 2040), *odd]
    if case_set == "quick":
        return quick
    done = {case.name for case in quick}
    more = [_case("random", n, 512) for n in (*range(1, 129), 255, 256, 257, 1023, 1024, 1025)]
    more += [_case("random", 8, n) for n in (1, 255, 256, 257, 767, 768, 769, 32767, 32768)]
    return quick + [c for c in more if c.name not in done]


def _case(fill: str, rows: int, width: int, graph: str = "eager") -> Case:
    params = {"rows": rows, "width": width, "count": rows * width, "fill": fill}
    return Case(f"{fill}-{rows}x{width}", params, graph=graph)


def inputs(case: Case, rng: np.random.Generator) -> dict[str, Any]:
    """`gates`: every bf16 as a gate.  `odd_...`: every kind of row."""
    shape, fill = (int(case.params["rows"]), int(case.params["width"])), case.params["fill"]
    gate = (_random.normal(shape, rng) * 4).astype(np.float32)
    up = _random.normal(shape, rng).astype(np.float32)
    if fill == "gates":
        pattern = np.resize(np.arange(1 << 16, dtype=np.uint32) << np.uint32(16), shape)
        gate = pattern.view(np.float32)
        up = np.where(np.isnan(gate), np.float32(1), up)
    elif fill in ("odd_gate", "odd_up"):
        kinds = _f32.from_bf16(_bf16.make_rows(_bf16.ROWS, 1024, rng)[:, -shape[1] :])
        gate, up = (kinds, up) if fill == "odd_gate" else (np.abs(gate), kinds)
    elif fill == "ties":  # a gate of 32 is its own silu
        gate[:] = 32
        pattern = rng.integers(0x3F80, 0x4080, shape, dtype=np.uint32) << np.uint32(16)
        up = (pattern + np.uint32(0x7FFF) + rng.integers(0, 3, shape, dtype=np.uint32)).view(
            np.float32
        )
    return {"gate": gate, "up": up}


def outputs(case: Case) -> dict[str, tuple[tuple[int, ...], str]]:
    return {"out": ((int(case.params["rows"]), int(case.params["width"])), "bf16")}


def exact(variant: str, gate: F32, up: F32) -> dict[str, Array]:
    with np.errstate(all="ignore"):
        return {"out": _f32.widen(gate) * _f32.widen(up) / (1 + np.exp(-_f32.widen(gate)))}


def deployed(variant: str, gate: F32, up: F32) -> dict[str, Array]:
    e = _f32.exp2(_f32.mul(np.float32(-1.44269504), gate))
    sigmoid = _f32.rcp(_f32.add(np.float32(1), e))
    return {"out": _f32.to_bf16(_f32.mul(_f32.mul(gate, up), sigmoid))}
