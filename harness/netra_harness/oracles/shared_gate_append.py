"""The routed experts of each row, and behind them the shared expert with its gate.

`exact` is the sigmoid of a float64 dot product.  `deployed` adds as the banner of the kernels says,
and rounds the logit and the gate to bf16 or neither, by variant.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from netra_catalog.op import Op, ScalarArg, TensorArg
from numpy.typing import NDArray

from netra_harness.case import Case
from netra_harness.oracles import _bf16, _f32

OP = Op(
    name="moe.shared_gate_append",
    args=(
        TensorArg("hidden", ("bf16",), ("rows", "width"), "in"),
        TensorArg("gate", ("bf16",), ("width",), "in", doc="the weight of the shared gate"),
        TensorArg("ids", ("i32",), ("rows", "routed"), "in"),
        TensorArg("weights", ("f32",), ("rows", "routed"), "in"),
        TensorArg("out_ids", ("i32",), ("rows", "routed + 1"), "out"),
        TensorArg("out_weights", ("f32",), ("rows", "routed + 1"), "out"),
        ScalarArg("shared_id", "i32", 256, doc="the id that the shared expert goes by"),
        ScalarArg("scale", "f32", 1.0, doc="multiplies the gate"),
        ScalarArg("logit_rounded", "u32", doc="1: logit and gate go through bf16; 0: neither"),
    ),
    phases=("decode", "verify", "draft_extend"),
    nan="a NaN in hidden or gate makes the gate of the row NaN; NaN weights are copied",
    ties="where a rounding to bf16 is asked for, it is to nearest, ties to even",
    padding="none: a padded row is computed like any other and cannot disturb its neighbours",
    sentinels="ids are copied bit by bit, negative ones too",
    empty="no rows: nothing is launched and nothing written",
    doc="Appends the shared expert to routed ones.  The variant `rounded_logit` is a linear layer,"
    " a sigmoid and a concatenation in bf16; `unrounded_logit` is SGLang's fused append.",
)

VARIANTS = ("rounded_logit", "unrounded_logit")

WIDTH, ROUTED, LANES, MOST_ROWS = 2048, 8, 64, 128

# Rows of hidden: dot products of these with a finite gate depend on the order at most a little.
ODD = {k: v for k, v in _bf16.ROWS.items() if k not in ("largest", "inf-and-minus-inf")}

Array = NDArray[Any]
F32 = NDArray[np.float32]


def cases(case_set: str, variant: str) -> list[Case]:
    special = _case("special", variant, len(ODD))
    ladder = _case("ladder", variant, 64)
    if case_set == "mutation":
        return [special, _case("random", variant, 3)]
    quick = [_case("random", variant, 1), _case("random", variant, 16, "capture"), special, ladder]
    quick += [_case("nan_gate", variant, 2), _case("integers", variant, 5)]
    if case_set == "quick":
        return quick
    done = {case.name for case in quick}
    more = [_case("random", variant, rows) for rows in range(1, MOST_ROWS + 1)]
    return quick + [case for case in more if case.name not in done]


def _case(fill: str, variant: str, rows: int, graph: str = "eager") -> Case:
    free = variant == "unrounded_logit"  # the other contract has these two fixed
    params = {
        "rows": rows, "fill": fill, "logit_rounded": 0 if free else 1,
        "shared_id": 512 + rows if free else 256, "scale": 2.5 if free else 1.0,
    }  # fmt: skip
    return Case(f"{fill}-{rows}", params, graph=graph)


def inputs(case: Case, rng: np.random.Generator) -> dict[str, Any]:
    rows, fill = int(case.params["rows"]), case.params["fill"]
    hidden = _bf16.normal((rows, WIDTH), rng)
    gate = _bf16.normal((WIDTH,), rng, 1 / 16)
    if fill == "special":
        hidden = _bf16.make_rows(ODD, WIDTH, rng)
    elif fill == "integers":
        hidden, gate = _bf16.integers((rows, WIDTH), rng), _bf16.integers((WIDTH,), rng)
        gate[:] = (gate.astype(np.float32) / 256).astype(gate.dtype)
    elif fill == "nan_gate":
        gate.view(np.uint16)[77] = 0x7FC0
    elif fill == "ladder":  # one element decides: logits from -130 to 130, where sigmoid saturates
        hidden[:] = 0
        hidden[:, 1234] = _f32.to_bf16(np.linspace(-130, 130, rows, dtype=np.float32))
        gate[1234] = 1
    ids = rng.integers(0, 256, (rows, ROUTED), dtype=np.int32)
    weights = rng.random((rows, ROUTED), dtype=np.float32)
    ids[0, :3] = [-1, np.iinfo(np.int32).min, np.iinfo(np.int32).max]
    weights.view(np.uint32)[-1, -3:] = [0x7F800001, 0xFF800000, 0x00000001]
    scalars = {k: case.params[k] for k in ("logit_rounded", "shared_id", "scale")}
    return {"hidden": hidden, "gate": gate, "ids": ids, "weights": weights, **scalars}


def outputs(case: Case) -> dict[str, tuple[tuple[int, ...], str]]:
    shape = (int(case.params["rows"]), ROUTED + 1)
    return {"out_ids": (shape, "i32"), "out_weights": (shape, "f32")}


def exact(
    variant: str, hidden: Array, gate: Array, ids: Array, weights: F32, shared_id: int,
    scale: float, logit_rounded: int,
) -> dict[str, Array]:  # fmt: skip
    with np.errstate(all="ignore"):
        logit = _f32.widen(hidden) @ _f32.widen(gate)
        opened = scale / (1 + np.exp(-logit))
    return _appended(ids, _f32.widen(weights), shared_id, opened)


def deployed(
    variant: str, hidden: Array, gate: Array, ids: Array, weights: F32, shared_id: int,
    scale: float, logit_rounded: int,
) -> dict[str, Array]:  # fmt: skip
    logit = _dot(_f32.from_bf16(hidden), _f32.from_bf16(gate))
    if variant == "rounded_logit":
        logit = _f32.from_bf16(_f32.to_bf16(logit))
    below = _f32.add(np.float32(1), _f32.exp2(_f32.mul(np.float32(-1.44269504), logit)))
    if variant == "rounded_logit":
        opened = _f32.from_bf16(_f32.to_bf16(_f32.rcp(below)))
    else:
        opened = _f32.mul(np.float32(scale), _f32.div(np.float32(1), below))
    return _appended(ids, weights, shared_id, opened)


def _dot(hidden: F32, gate: F32) -> F32:
    """A lane's pairs lie 128 elements apart; then lanes 1, 2, 4, ... apart are added."""
    x, w = hidden.reshape(len(hidden), -1, LANES, 2), gate.reshape(-1, LANES, 2)
    sums = np.zeros((len(hidden), LANES), np.float32)
    for step in range(w.shape[0]):
        sums = _f32.dot2_fma_chain(x[:, step], w[step], sums)
    while sums.shape[1] > 1:
        sums = _f32.add(sums[:, 0::2], sums[:, 1::2])
    return sums[:, 0]


def _appended(ids: Array, weights: Array, shared_id: int, opened: Array) -> dict[str, Array]:
    with np.errstate(invalid="ignore"):
        wide = np.concatenate([weights, opened[:, None]], axis=1)
    shared = np.full((len(ids), 1), shared_id, np.int32)
    return {"out_ids": np.concatenate([ids, shared], axis=1), "out_weights": wide}
