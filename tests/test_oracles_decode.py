"""The oracles of decode kernels: hand-computed values, and `deployed` near `exact`."""

from __future__ import annotations

from dataclasses import replace
from types import ModuleType
from typing import Any

import netra_catalog
import numpy as np
import pytest
from netra_catalog import dispatch
from netra_catalog.call import Call, Tensor
from netra_catalog.dtypes import numpy_dtype
from netra_catalog.tactic import Tactic
from netra_harness.case import Case, case_rng
from netra_harness.oracles import (
    _f32,
    add_rmsnorm_out,
    add_rmsnorm_quant,
    expert_weighted_reduce,
    gated_rmsnorm_quant,
    gemv_fp8_blockscale,
    router_gemv,
    shared_gate_append,
    silu_mul,
    silu_mul_group_quant,
    smallm_router,
)

MODULES = (
    add_rmsnorm_out, add_rmsnorm_quant, expert_weighted_reduce, gated_rmsnorm_quant,
    gemv_fp8_blockscale, router_gemv, shared_gate_append, silu_mul, silu_mul_group_quant,
    smallm_router,
)  # fmt: skip
NAMES = {module.__name__.rsplit(".", 1)[1]: module for module in MODULES}
TACTICS = [t for t in netra_catalog.load() if t.oracle_name in NAMES]
VARIANTS = [(module, variant) for module in MODULES for variant in module.VARIANTS]


def draw(module: ModuleType, case: Case) -> dict[str, Any]:
    args: dict[str, Any] = module.inputs(case, case_rng(20260, module.OP.name, case.name))
    return args


def random_case(module: ModuleType, variant: str) -> Case:
    """The first random case, which is small."""
    return next(c for c in module.cases("full", variant) if c.params["fill"] == "random")


@pytest.mark.parametrize(("module", "variant"), VARIANTS, ids=lambda x: getattr(x, "__name__", x))
def test_case_sets(module: ModuleType, variant: str) -> None:
    sets = {s: [c.name for c in module.cases(s, variant)] for s in ("quick", "full", "mutation")}
    for names in sets.values():
        assert names and len(set(names)) == len(names)
    assert set(sets["quick"]) <= set(sets["full"])
    for case in module.cases("mutation", variant):  # can be drawn, and answered
        if module is not gemv_fp8_blockscale or case.name == "random":
            assert module.deployed(variant, **draw(module, case))


# How far deployed may be from exact, in parts of the largest output: f32 sums are off by some
# 2^-22, bf16 by 2^-9, and an FP8 code by half a step of 16 for itself and the roundings before.
PARTS = {"f32": 1e-5, "bf16": 2.0**-8, "f8e4m3fn": 0.63 / 8}


@pytest.mark.parametrize(("module", "variant"), VARIANTS, ids=lambda x: getattr(x, "__name__", x))
def test_deployed_is_near_exact(module: ModuleType, variant: str) -> None:
    case = random_case(module, variant)
    args = draw(module, case)
    exact, deployed = module.exact(variant, **args), module.deployed(variant, **args)
    for name, (shape, dtype) in module.outputs(case).items():
        got, want = deployed[name], np.asarray(exact[name])
        assert got.shape == want.shape == tuple(shape) and got.dtype == numpy_dtype(dtype)
        if dtype == "i32":
            assert (got == want).all()
            continue
        if module is shared_gate_append:  # the rest is copied, odd values too
            got, want = got[:, -1:], want[:, -1:]
        wide = _f32.widen(got)
        assert np.isfinite(wide).all()
        part = 2.0**-7 if name in ("scale", "out_weights") else PARTS[dtype]
        assert np.abs(wide - want).max() <= part * np.abs(want).max(), name


def test_router_prefers_the_lower_expert_and_puts_nan_last() -> None:
    logits = np.full((1, 12), -np.inf)
    logits[0, [3, 7, 9, 11, 2]] = [1, 5, 5, np.nan, -0.0]
    logits[0, 4] = 0
    assert smallm_router.best(logits)[0].tolist() == [7, 9, 3, 2, 4, 0, 1, 5, 6, 8]


def test_router_weights_add_up_to_one_and_the_shared_expert_is_apart() -> None:
    args = draw(smallm_router, random_case(smallm_router, "bf16_logits"))
    got = smallm_router.deployed("bf16_logits", **args)
    assert np.abs(got["out_weights"][:, :10].sum(axis=1) - 1).max() < 1e-6
    assert (got["out_ids"][:, 10] == 512).all()


def test_unshuffled_finds_each_element() -> None:
    rows, width = 32, 64
    n, k = np.indices((rows, width))
    at = n // 16 * 16 * width + k // 16 * 256 + n % 16 * 16 + k % 16
    stored = np.empty(rows * width, np.int64)
    stored[at.reshape(-1)] = np.arange(rows * width)
    plain = gemv_fp8_blockscale.unshuffled(stored.reshape(rows, width))
    assert (plain == np.arange(rows * width).reshape(rows, width)).all()


def test_absent_experts_add_nothing() -> None:
    expert = np.ones((4, 2048), np.float32)
    positions = np.array([[-1, 4, 2**31 - 1, -(2**31), 0, 1, 2, 3]], np.int32)
    weights = np.array([[np.nan, np.inf, 1, 1, 1, 2, 3, 4]], np.float32)
    for kind in (expert_weighted_reduce.exact, expert_weighted_reduce.deployed):
        assert (kind("top8_f64", expert, positions, weights)["out"].astype(np.float32) == 10).all()


def _steps(x: np.ndarray[Any, Any], by: int) -> np.ndarray[Any, Any]:
    return np.asarray((x.view(np.int32) + by).view(np.float32))


@pytest.mark.parametrize("off", [-1, 0, 1])
def test_three_corrections_give_the_reciprocal(off: int) -> None:
    """As ieee.inc divides 1, from a guess that is a step off: 2^18 mantissas and both ends.  One
    correction would not do.  The largest mantissa needs a guess that is right, see there."""
    some = np.random.default_rng(1).integers(0, 1 << 23, 1 << 18)
    edge = np.arange(1 << 12)
    bits = np.concatenate([some, edge, (1 << 23) - 2 - edge]).astype(np.int32) | 0x3F800000
    scale, one = bits.view(np.float32), np.float32(1)
    guess = _steps(one / scale, off)
    r = _f32.fma(_f32.fma(-scale, guess, one), guess, guess)
    q = _f32.fma(_f32.fma(-scale, r, one), r, r)
    assert (_f32.fma(_f32.fma(-scale, q, one), r, q) == one / scale).all()


def test_division_by_224_comes_out_rounded_once() -> None:
    bits = np.arange(0, 1 << 23, 7, dtype=np.int32) | 0x3F800000
    amax, part = bits.view(np.float32), np.float32(1 / 224)
    guess = amax * part
    left = _f32.fma(-guess, np.float32(224), amax)
    assert (_f32.fma(left, part, guess) == amax / np.float32(224)).all()


# ---- contracts --------------------------------------------------------------------------------


def call_of(tactic: Tactic) -> Call:
    """The first quick case as a call, at invented addresses."""
    module = NAMES[tactic.oracle_name]
    case = module.cases("quick", tactic.variant)[0]
    args = draw(module, case)
    forms = {k: (v.shape, v.dtype) for k, v in args.items() if isinstance(v, np.ndarray)}
    forms |= {k: (s, numpy_dtype(name)) for k, (s, name) in module.outputs(case).items()}
    made: dict[str, Any] = {s.name: args[s.name] for s in tactic.definition.scalars}
    for i, arg in enumerate(tactic.definition.tensors):
        shape, dtype = forms[arg.name]
        (name,) = (name for name in arg.dtypes if numpy_dtype(name) == dtype)
        made[arg.name] = Tensor.dense((i + 1) << 40, name, tuple(shape), arg.layout)
    return Call(tactic.op, tactic.arch, case.phase, "capture", 256, made)


def spoilt(call: Call, name: str) -> dict[str, Call]:
    """What no contract may admit, by what is wrong with the tensor."""
    given = call.args[name]
    assert isinstance(given, Tensor)
    columns = replace(given, strides=(*given.strides[:-1], 2), extent=4 * given.extent)
    found = {
        "dtype": replace(given, dtype="f16"),
        "layout": replace(given, layout="blocked"),
        "no layout": replace(given, layout=None),
        "columns apart": columns,
        "address": replace(given, ptr=given.ptr + 1),
        "one column more": replace(
            given, shape=(*given.shape[:-1], given.shape[-1] + 1), extent=2 * given.extent
        ),
    }
    if given.shape[-1] == 1:
        del found["columns apart"]
    if given.dtype.startswith("f8"):  # no byte is misaligned by itself
        found["address"] = replace(given, ptr=given.ptr + 2)
    return {k: replace(call, args={**call.args, name: v}) for k, v in found.items()}


@pytest.mark.parametrize("tactic", TACTICS, ids=lambda t: str(t.id))
def test_what_a_contract_declines(tactic: Tactic) -> None:
    call = call_of(tactic)
    assert dispatch.evaluate(tactic, call) is None
    assert dispatch.evaluate(tactic, replace(call, graph="piecewise")) is not None
    for arg in tactic.definition.tensors:
        for what, bad in spoilt(call, arg.name).items():
            assert dispatch.evaluate(tactic, bad) is not None, f"{arg.name}: {what}"
    written = [a.name for a in tactic.definition.tensors if a.role == "out"]
    for name in written:
        for other in tactic.definition.tensors:
            if other.name != name:
                out, target = call.args[name], call.args[other.name]
                assert isinstance(out, Tensor) and isinstance(target, Tensor)
                moved = {**call.args, name: replace(out, ptr=target.ptr + 16)}
                if target.extent > 16:
                    assert dispatch.evaluate(tactic, replace(call, args=moved)) is not None


def test_no_call_is_taken_by_two() -> None:
    """Roundings and largest codes are in the call: the other tactic of the op declines."""
    usable = [tactic for tactic in TACTICS if tactic.maturity not in ("rejected", "quarantined")]
    calls = {tactic.id: call_of(tactic) for tactic in usable}
    for id, call in calls.items():
        assert [t.id for t in usable if dispatch.evaluate(t, call) is None] == [id]


SMALL_M: dict[str, Any] = {
    "top_k": 8, "renormalize": 0, "fused_shared_experts": 2, "ep_size": 2, "expert_remap": 1,
    "simulated_routing": 1, "runner": 2,
}  # fmt: skip


def test_the_small_m_router_declines_what_its_source_guards_against() -> None:
    (tactic,) = netra_catalog.load("smallm_router_bf16")
    call = call_of(tactic)
    for name, value in SMALL_M.items():
        assert dispatch.evaluate(tactic, replace(call, args={**call.args, name: value}))
    x = call.args["x"]
    assert isinstance(x, Tensor)

    def of(tokens: int) -> Call:
        changed = {
            "x": Tensor.dense(x.ptr, "bf16", (tokens, 4096), "row_major"),
            "out_ids": Tensor.dense(1 << 49, "i32", (tokens, 11), "row_major"),
            "out_weights": Tensor.dense(1 << 50, "f32", (tokens, 11), "row_major"),
        }
        return replace(call, args={**call.args, **changed})

    assert [dispatch.evaluate(tactic, of(m)) for m in (1, 8, 9)] == [None, None, "tokens"]
    eight = of(8)
    wide = eight.args["x"]
    assert isinstance(wide, Tensor)
    for pitch, fits in ((4104, True), (4100, False)):
        apart = replace(wide, strides=(pitch, 1), extent=8 * pitch * 2)
        found = dispatch.evaluate(tactic, replace(eight, args={**eight.args, "x": apart}))
        assert (found is None) == fits
