"""Router of a few tokens: logits, the best 10 of 512 experts, their weights, the shared expert.

`exact` takes float64 logits and rounds them to bf16 once, which is what decides the choice.
`deployed` adds as the kernel's banner says; it sorts, where the kernel searches.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from netra_catalog.op import Op, ScalarArg, TensorArg
from numpy.typing import NDArray

from netra_harness.case import Case
from netra_harness.oracles import _bf16, _f32

OP = Op(
    name="router.smallm",
    args=(
        TensorArg("x", ("bf16",), ("tokens", "width"), "in"),
        TensorArg("gate", ("bf16",), ("experts", "width"), "in"),
        TensorArg("shared_gate", ("bf16",), (1, "width"), "in"),
        TensorArg("out_ids", ("i32",), ("tokens", 11), "out", doc="best first, then the shared"),
        TensorArg("out_weights", ("f32",), ("tokens", 11), "out"),
        ScalarArg("scale", "f32", 1.0, doc="of the shared expert"),
        ScalarArg("top_k", "u32"),
        ScalarArg("renormalize", "u32", doc="1: the weights of the chosen add up to 1"),
        ScalarArg("fused_shared_experts", "u32"),
        ScalarArg("ep_size", "u32", doc="ranks that the experts are spread over"),
        ScalarArg("expert_remap", "u32", doc="1: ids go through a table, as load balancers want"),
        ScalarArg("simulated_routing", "u32", doc="1: a benchmark makes up the choice"),
        ScalarArg("runner", "u32", doc="of the experts: 0 auto, 1 aiter, 2 any other"),
    ),
    phases=("decode", "verify", "draft_extend"),
    nan="a NaN logit is chosen last, after -inf; its token's weights are all NaN, as they are when "
    "the largest logit is infinite",
    ties="of equal logits, and -0 equals +0, the lowest expert comes first",
    padding="none: a padded token is routed like any other and cannot disturb its neighbours",
    sentinels="none: ids are 0..511, and 512 for the shared expert",
    empty="no tokens: nothing is launched and nothing written",
    doc="One launch for what are three: gate projection, softmax and top-k, shared expert.  The "
    "variant `bf16_logits` rounds routed logits to bf16 and keeps the shared one in f32.",
)

VARIANTS = ("bf16_logits",)

WIDTH, EXPERTS, TOP, MOST = 4096, 512, 10, 8
LOG2E = np.float32(1.44269504)
GIVEN = {
    "top_k": TOP, "renormalize": 1, "fused_shared_experts": 1, "ep_size": 1,
    "expert_remap": 0, "simulated_routing": 0, "runner": 0,
}  # fmt: skip

Array = NDArray[Any]
F32 = NDArray[np.float32]


def cases(case_set: str, variant: str) -> list[Case]:
    odd = [_case("odd_a", 8), _case("odd_b", 8)]
    ties = _case("ties", 8)
    if case_set == "mutation":
        return [_case("random", 5, pitch=4104), ties, _case("equal", 3), *odd]
    quick = [_case("random", 1), _case("random", 2), _case("random", 3), _case("random", 4)]
    quick += [_case("random", 5, pitch=4104), _case("random", 6), _case("random", 7, pitch=9216)]
    quick += [_case("random", 8, "capture"), ties, _case("equal", 3), *odd]
    if case_set == "quick":
        return quick
    quick += [_case("ties", m) for m in range(1, MOST)]
    return quick + [_case("spread", m) for m in range(1, MOST + 1)]


def _case(fill: str, tokens: int, graph: str = "eager", pitch: int = WIDTH) -> Case:
    name = f"{fill}-{tokens}" + (f"-pitch-{pitch}" if pitch != WIDTH else "")
    scale = 1.0 if tokens % 2 else 2.5
    phase = "verify" if tokens in (4, 8) else "decode"
    params = {"rows": tokens, "fill": fill, "pitch": pitch, "scale": scale}
    return Case(name, params, graph, phase)


def inputs(case: Case, rng: np.random.Generator) -> dict[str, Any]:
    """Activations of size 1; a logit is about normal, of size 2 (spread: 12)."""
    tokens, fill = int(case.params["rows"]), case.params["fill"]
    pitch = int(case.params["pitch"])
    wide = _bf16.normal((tokens, pitch), rng)
    size = {"spread": 12 / 64}.get(fill, 2 / 64)
    gate = _bf16.normal((EXPERTS, WIDTH), rng, size)
    shared = _bf16.normal((1, WIDTH), rng, size)
    if fill == "ties":  # whole numbers, few of them: any order of the sum gives the same logits
        wide[:] = 0
        wide[:, ::64] = rng.integers(-1, 2, (tokens, pitch // 64)).astype(wide.dtype)
        gate = _bf16.integers((EXPERTS, WIDTH), rng, 1)
    elif fill == "equal":  # all logits alike: zeros, zeros of both signs, ones
        wide[:] = 0
        wide[1] = 2.0**-126  # each product, and so each sum, is flushed to a zero of its sign
        gate[:] = np.where(np.arange(EXPERTS) % 3 == 0, -0.25, 0.25)[:, None].astype(gate.dtype)
        wide[2, 1], gate[:, 1] = 1, 1
        wide[1, 1] = 0
    elif fill in ODD:
        wide = _bf16.make_rows({k: _bf16.ROWS[k] for k in ODD[fill]}, pitch, rng)
        gate[3:6] = 0
        shared[0, 3] = 1
    return {
        "x": wide[:, :WIDTH], "gate": gate, "shared_gate": shared,
        "scale": float(case.params["scale"]), **GIVEN,
    }  # fmt: skip


# With an inf in x, the all-zero rows of the gates give NaNs among infinite logits.
ODD = {
    "odd_a": ("zeros", "minus-zeros", "all-equal", "only-first", "only-last", "outlier",
              "smallest-normal", "denormals"),
    "odd_b": ("inf", "minus-inf", "nan", "nan-signalling", "nan-negative", "nan-each",
              "inf-and-minus-inf", "zeros"),
}  # fmt: skip


def outputs(case: Case) -> dict[str, tuple[tuple[int, ...], str]]:
    shape = (int(case.params["rows"]), TOP + 1)
    return {"out_ids": (shape, "i32"), "out_weights": (shape, "f32")}


def exact(
    variant: str, x: Array, gate: Array, shared_gate: Array, scale: float, **given: int
) -> dict[str, Array]:
    with np.errstate(all="ignore"):
        wide = _f32.widen(x)
        logits = _f32.widen(_f32.to_bf16((wide @ _f32.widen(gate).T).astype(np.float32)))
        chosen = best(logits)
        e = np.exp(np.take_along_axis(logits, chosen, 1) - logits.max(axis=1, keepdims=True))
        weights = e / e.sum(axis=1, keepdims=True)
        last = scale / (1 + np.exp(-(wide @ _f32.widen(shared_gate[0]))))
    return _answer(chosen, weights, last)


def deployed(
    variant: str, x: Array, gate: Array, shared_gate: Array, scale: float, **given: int
) -> dict[str, Array]:
    logits = _logits(_f32.from_bf16(x), _f32.from_bf16(np.concatenate([gate, shared_gate])))
    routed = _f32.from_bf16(_f32.to_bf16(logits[:, :EXPERTS]))
    routed = np.where(np.isnan(routed), np.uint32(0xFFFF0000).view(np.float32), routed)
    chosen = best(routed)
    e = _exp(_f32.add(routed, -np.take_along_axis(routed, chosen[:, :1], 1)))
    a = _f32.div(np.take_along_axis(e, chosen, 1), _sum_of(e)[:, None])
    ten = np.zeros((len(a), 16), np.float32)
    ten[:, :TOP] = a
    weights = _f32.div(a, _halve(ten)[:, None])
    last = _f32.div(np.float32(scale), _f32.add(np.float32(1), _exp(logits[:, EXPERTS], -LOG2E)))
    return _answer(chosen, weights, last)


def best(logits: Array) -> Array:
    """[tokens, experts] -> [tokens, 10]: NaNs last, larger ones first, lower experts first."""
    ids = np.broadcast_to(np.arange(logits.shape[1]), logits.shape)
    return np.lexsort((ids, -logits, np.isnan(logits)), axis=1)[:, :TOP]


def _answer(chosen: Array, weights: Array, last: Array) -> dict[str, Array]:
    shared = np.full((len(chosen), 1), EXPERTS)
    return {
        "out_ids": np.concatenate([chosen, shared], axis=1).astype(np.int32),
        "out_weights": np.concatenate([weights, last[:, None]], axis=1),
    }


def _logits(x: F32, gates: F32) -> F32:
    """256 threads have 8 elements of each half; 64 lanes are folded to one, then four waves."""
    w = gates.reshape(len(gates), 2, 256, 4, 2)
    out = []
    for row in x.reshape(len(x), 2, 256, 4, 2):
        sums = np.zeros((len(gates), 256), np.float32)
        for run in range(2):
            for pair in range(4):
                sums = _f32.dot2_fma_chain(w[:, run, :, pair], row[run, :, pair], sums)
        lanes = sums.reshape(-1, 4, 64)
        while lanes.shape[2] > 1:
            half = lanes.shape[2] // 2
            lanes = _f32.add(lanes[..., :half], lanes[..., half:])
        r = lanes[..., 0]
        out.append(_f32.add(_f32.add(r[:, 0], r[:, 1]), _f32.add(r[:, 2], r[:, 3])))
    return np.stack(out)


def _exp(x: F32, base: Any = LOG2E) -> F32:
    return _f32.exp2(_f32.mul(base, x))


def _sum_of(e: F32) -> F32:
    """Runs of 8: every second element, pairwise; then both; then the runs."""
    run = e.reshape(len(e), -1, 4, 2)
    pairs = _f32.add(_f32.add(run[:, :, 0], run[:, :, 1]), _f32.add(run[:, :, 2], run[:, :, 3]))
    return _halve(_f32.add(pairs[..., 0], pairs[..., 1]))


def _halve(sums: F32) -> F32:
    while sums.shape[1] > 1:
        sums = _f32.add(sums[:, 0::2], sums[:, 1::2])
    return sums[:, 0]
