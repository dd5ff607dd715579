"""out = act times w, both FP8 with a scale for each block of 128, for one row of act.

w arrives shuffled for 16-row tiles: [n / 16][k / 16][16 n][16 k].  `unshuffled` undoes that.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from netra_catalog.op import Op, TensorArg
from numpy.typing import NDArray

from netra_harness.case import Case
from netra_harness.oracles import _f32, _random

OP = Op(
    name="linear.gemv_fp8_blockscale",
    args=(
        TensorArg("act", ("f8e4m3fn",), (1, "width"), "in"),
        TensorArg("ascale", ("f32",), (1, "width // 128"), "in"),
        TensorArg("w", ("f8e4m3fn",), ("rows", "width"), "in", layout="n16k16"),
        TensorArg("wscale", ("f32",), ("rows // 128", "width // 128"), "in"),
        TensorArg("out", ("bf16",), (1, "rows"), "out"),
    ),
    phases=("decode",),
    nan="a NaN in act or ascale makes out NaN, one in w its element, one in wscale its 128 rows",
    ties="out rounds to nearest, ties to even",
    padding="none",
    sentinels="none",
    empty="not defined",
    doc="Linear layer of one token.  Blocks of 128 are multiplied by the scale of act, then by"
    " that of w, then added in order, each rounded to f32.  The variants are shapes.",
)

SHAPES = {"n2048_k4096": (2048, 4096), "n12288_k2048": (12288, 2048)}
VARIANTS = tuple(SHAPES)
BLOCK = 128

Array = NDArray[Any]
F32 = NDArray[np.float32]


def cases(case_set: str, variant: str) -> list[Case]:
    def case(fill: str, name: str = "", graph: str = "eager") -> Case:
        params = {"rows": SHAPES[variant][0] // 16, "fill": fill, "variant": variant}
        return Case(name or fill, params, graph=graph)

    odd = [case("odd_act"), case("odd_w"), case("odd_scales"), case("integers")]
    if case_set == "mutation":
        return [case("random"), case("places"), *odd]
    if case_set == "quick":  # the larger shape differs in nothing but its size
        small = variant == "n2048_k4096"
        return [case("random"), case("places"), *(odd if small else [])]
    replayed = case("random", "replayed", graph="capture")
    return [case("random"), case("places"), *odd, replayed] + [
        case("random", f"random-{n}") for n in range(32)
    ]


def inputs(case: Case, rng: np.random.Generator) -> dict[str, Any]:
    """Scales all differ.  `places`: one element of act and rows that tell its place by their
    weights, so that a shuffle gone wrong shows."""
    (rows, width), fill = SHAPES[case.params["variant"]], case.params["fill"]
    act = _f32.to_e4m3fn((_random.normal((1, width), rng) * 32).astype(np.float32))
    code = rng.integers(0x28, 0x60, (rows, width), dtype=np.uint8)  # 1/8 to 15
    w = (code | rng.integers(0, 2, code.shape, dtype=np.uint8) << np.uint8(7)).view(act.dtype)
    ascale = _random.scales((1, width // BLOCK), rng, -8, 0)
    wscale = _random.scales((rows // BLOCK, width // BLOCK), rng, -12, -4)
    if fill == "integers":  # exact in any order
        act[:] = rng.integers(-4, 5, act.shape)
        w[:] = rng.integers(-2, 3, w.shape)
        ascale[:], wscale[:] = 0.5, 2
    elif fill == "places":
        act[:] = 0
        act[0, rng.integers(0, width, 3)] = [1, 16, 256]
        ascale[:], wscale[:] = 1, 1
        w.view(np.uint8)[:] = rng.integers(0, 0x7F, w.shape)
    elif fill == "odd_act":
        act.view(np.uint8)[0, :256] = np.arange(256) & 0xFE  # all codes but NaN and their odd
        act.view(np.uint8)[0, 256:] &= 0x87  # subnormal
    elif fill == "odd_w":
        w.view(np.uint8)[:128] = np.arange(128)[:, None] | 0x80
        w.view(np.uint8)[127, :] = 0x38
        w.view(np.uint8)[300, 77] = 0x7F
    elif fill == "odd_scales":
        ascale[0, :4] = [0, -0.0, 1e-45, 2.0**100]
        wscale[:8, 5] = [0, np.inf, np.nan, 1e-45, 2.0**120, -1, 3e38, -np.inf]
    return {"act": act, "ascale": ascale, "w": w, "wscale": wscale}


def outputs(case: Case) -> dict[str, tuple[tuple[int, ...], str]]:
    return {"out": ((1, SHAPES[case.params["variant"]][0]), "bf16")}


def unshuffled(w: Array) -> Array:
    rows, width = w.shape
    tiles = w.reshape(rows // 16, width // 16, 16, 16)
    return np.asarray(tiles.transpose(0, 2, 1, 3).reshape(rows, width))


def exact(variant: str, act: Array, ascale: F32, w: Array, wscale: F32) -> dict[str, Array]:
    with np.errstate(all="ignore"):
        a = _f32.widen(act) * _f32.widen(ascale).repeat(BLOCK, axis=1)
        scales = _f32.widen(wscale).repeat(BLOCK, axis=0).repeat(BLOCK, axis=1)
        return {"out": a @ (_f32.widen(unshuffled(w)) * scales).T}


def deployed(variant: str, act: Array, ascale: F32, w: Array, wscale: F32) -> dict[str, Array]:
    """The dot product of a block is a chain of fma over rising k, the model `fma_chain`; products
    of two FP8 are exact, so only the additions round."""
    code = np.arange(256, dtype=np.uint8).view(w.dtype).astype(np.float32)
    a = act[0].astype(np.float32).reshape(-1, BLOCK)
    b = unshuffled(w).view(np.uint8).reshape(len(w), -1, BLOCK).transpose(2, 1, 0)
    dot = np.zeros(b.shape[1:], np.float32)  # [block][row]
    for k in range(BLOCK):
        dot = _f32.add(_f32.mul(code[b[k]], a[:, k, None]), dot)
    scales = wscale.T.repeat(BLOCK, axis=1)
    total = np.zeros(len(w), np.float32)
    for scaled in _f32.mul(_f32.mul(dot, ascale.T), scales):
        total = _f32.add(total, scaled)
    return {"out": _f32.to_bf16(total)[None]}
