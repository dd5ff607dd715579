"""The oracles: hand-computed values, properties, and that their two answers agree."""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import ml_dtypes
import netra_catalog
import numpy as np
import pytest
from netra_catalog import dispatch
from netra_catalog.call import Call, Tensor
from netra_catalog.dtypes import numpy_dtype
from netra_catalog.tactic import Tactic
from netra_harness.case import Case, case_rng
from netra_harness.compare import compare
from netra_harness.oracles import _f32, _rows, add_rmsnorm, argmax, rmsnorm, silu_mul_quant
from numpy.typing import NDArray

F32 = np.float32
BF16 = ml_dtypes.bfloat16
MODULES = (argmax, silu_mul_quant, rmsnorm, add_rmsnorm)
SEED = 20260


def draw(module: ModuleType, case: Case) -> dict[str, Any]:
    args: dict[str, Any] = module.inputs(case, case_rng(SEED, module.OP.name, case.name))
    return args


def small(module: ModuleType, variant: str = "") -> list[Case]:
    """The quick cases, but of argmax only those of one row: the others are large."""
    found = module.cases("quick", variant or module.VARIANTS[0])
    return [c for c in found if module is not argmax or c.params["rows"] == 1]


PAIRS = [(module, case) for module in MODULES for case in small(module)]
IDS = [f"{module.OP.name}-{case.name}" for module, case in PAIRS]


# ---- what every oracle owes -------------------------------------------------------------------


@pytest.mark.parametrize("module", MODULES, ids=lambda m: str(m.OP.name))
def test_case_sets(module: ModuleType) -> None:
    variant = module.VARIANTS[0]
    sets = {s: [c.name for c in module.cases(s, variant)] for s in ("quick", "full", "mutation")}
    for names in sets.values():
        assert names and len(set(names)) == len(names)
    assert set(sets["quick"]) <= set(sets["full"])


@pytest.mark.parametrize("module", MODULES, ids=lambda m: str(m.OP.name))
def test_full_has_every_row_count_that_the_rules_ask_for(module: ModuleType) -> None:
    rows = {int(case.params["rows"]) for case in module.cases("full", module.VARIANTS[0])}
    assert rows >= set(range(1, 129)) | {255, 256, 257, 2047, 2048, 2049}
    if module in (argmax, silu_mul_quant):
        assert rows >= {4095, 4096} and max(rows) == 4096


def test_row_counts_are_the_same_each_time_and_within_bounds() -> None:
    found = _rows.counts(1000, 2**20)
    assert found == _rows.counts(1000, 2**20) == sorted(set(found))
    assert found[0] == 1 and found[-1] <= 1000 and {511, 512, 513} <= set(found)


@pytest.mark.parametrize(("module", "case"), PAIRS, ids=IDS)
def test_inputs_and_answers_have_the_form_of_the_op(module: ModuleType, case: Case) -> None:
    op, variant = module.OP, module.VARIANTS[0]
    args = draw(module, case)
    again = draw(module, case)
    before = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in args.items()}
    answers = {kind: getattr(module, kind)(variant, **args) for kind in ("deployed", "exact")}
    made = module.outputs(case)
    for arg in op.tensors:
        if arg.role != "out":
            value = args[arg.name]
            assert value.dtype in [numpy_dtype(d) for d in arg.dtypes]
            assert value.ndim == len(arg.dims)
            unsigned = f"u{value.dtype.itemsize}"
            for other in (again, before):  # drawn alike, and not written to
                assert (value.view(unsigned) == other[arg.name].view(unsigned)).all()
        if arg.role != "in":
            shape, dtype = made.get(arg.name) or (args[arg.name].shape, arg.dtypes[0])
            assert answers["deployed"][arg.name].dtype == numpy_dtype(dtype)
            assert {a[arg.name].shape for a in answers.values()} == {tuple(shape)}
    assert set(made) == {arg.name for arg in op.tensors if arg.role == "out"}
    for scalar in op.scalars:
        assert type(args[scalar.name]) in (int, float)


TACTICS = netra_catalog.load()


def call_of(tactic: Tactic, module: ModuleType, case: Case, graph: str) -> Call:
    """The call that the harness would make, at invented addresses."""
    args = draw(module, case)
    forms = {k: (v.shape, v.dtype) for k, v in args.items() if isinstance(v, np.ndarray)}
    forms |= {k: (shape, numpy_dtype(name)) for k, (shape, name) in module.outputs(case).items()}
    made: dict[str, Tensor | int | float] = {}
    for i, arg in enumerate(tactic.definition.tensors):
        shape, dtype = forms[arg.name]
        (name,) = (name for name in arg.dtypes if numpy_dtype(name) == dtype)
        made[arg.name] = Tensor.dense((i + 1) << 40, name, tuple(shape), arg.layout)
    made |= {scalar.name: args[scalar.name] for scalar in tactic.definition.scalars}
    return Call(tactic.op, tactic.arch, case.phase, graph, 256, made)


@pytest.mark.parametrize("tactic", TACTICS, ids=lambda t: str(t.id))
def test_the_contract_admits_the_cases_and_the_plan_packs_them(tactic: Tactic) -> None:
    module = netra_catalog.oracle(tactic)
    assert tactic.variant in module.VARIANTS
    for case in small(module, tactic.variant):
        call = call_of(tactic, module, case, "capture")
        assert dispatch.evaluate(tactic, call) is None
        for launch in dispatch.plan(tactic, call, workspace=1 << 50):
            count = case.params.get("count", case.params.get("rows"))  # in grid or arguments
            if count is not None:
                word = int(count).to_bytes(4, "little")
                assert count in launch.grid or word in launch.kernarg


def test_silu_is_for_captured_graphs_only() -> None:
    (tactic,) = netra_catalog.load("silu_mul_quant_fp8")
    call = call_of(tactic, silu_mul_quant, small(silu_mul_quant)[0], "eager")
    assert dispatch.evaluate(tactic, call) == "graph-captured"


# ---- argmax -----------------------------------------------------------------------------------


def test_argmax_by_hand() -> None:
    nan, inf = np.nan, np.inf
    rows: list[tuple[tuple[float, ...], int]] = [
        ((1, 3, 2, 3), 1),
        ((1, nan, 3, nan), 1),
        ((inf, 5, nan, inf), 2),
        ((-inf, -inf), 0),
        ((-1, -0.0, 0.0), 1),
        ((-1, 0.0, -0.0), 1),
        ((-1e-45, -1.0, -1e-45), 0),
        ((0.0, 1e-45), 1),
        ((-inf, -3e38), 1),
    ]
    for row, want in rows:
        for kind in (argmax.exact, argmax.deployed):
            assert kind("nan_first", np.array([row], F32))["out"].tolist() == [want]


def test_the_key_rises_with_the_value() -> None:
    edges = [0, 1, 0x007FFFFF, 0x00800000, 0x3F800000, 0x7F7FFFFF, 0x7F800000]
    up = np.array(edges, np.uint32).view(F32)
    line = np.concatenate([-up[:0:-1], up])
    keys = argmax.ordered(line).tolist()
    assert keys == sorted(set(keys))
    assert keys[len(up) - 1] == 0x80000000
    odd = np.array([0x80000000, 0x7F800001, 0xFF800001, 0xFFFFFFFF], np.uint32).view(F32)
    assert argmax.ordered(odd).tolist() == [0x80000000] + [0xFFFFFFFF] * 3


def test_argmax_special_rows() -> None:
    (case,) = (c for c in argmax.cases("quick", "nan_first") if c.name == "special")
    args = draw(argmax, case)
    exact = argmax.exact("nan_first", **args)["out"]
    assert (exact == argmax.deployed("nan_first", **args)["out"]).all()
    got = dict(zip(argmax.SPECIAL, exact.tolist(), strict=True))
    last = argmax.COLUMNS - 1
    want = {
        "nan-first": 0, "nan-last": last, "nan-all": 0, "nan-after-inf": 200_000,
        "nan-at-chunk-ends": 1939, "inf-once": 123_456, "inf-often": 54_321, "minus-inf-all": 0,
        "minus-inf-but-one": 240_001, "tie-adjacent": 77_777, "tie-far": 0, "equal-all": 0,
        "zero-minus-first": 70_000, "zero-plus-first": 70_000, "zero-minus-all": 0,
        "denormal-over-zero": 246_000, "minus-denormals-and-zero": 150_001,
        "minus-denormals": 111_111, "largest-last": last, "largest-first": 0,
    }  # fmt: skip
    assert {name: got[name] for name in want} == want
    signs = np.signbit(args["logits"][list(argmax.SPECIAL).index("nan-payloads")])
    assert signs[got["nan-payloads"]]  # the first NaN is a negative, signalling one


def test_argmax_reaches_each_group_element_and_chunk_end() -> None:
    places = [(p % argmax.CHUNK // argmax.GROUP, p % 4) for p in argmax.PLACES]
    assert set(places) == {(group, element) for group in range(8) for element in range(4)}
    assert max(p % argmax.CHUNK for p in argmax.PLACES) == argmax.CHUNK - 1
    cases = {c.name: c for c in argmax.cases("full", "nan_first")}
    for name, want in (
        ("places", argmax.PLACES),
        ("chunk-ends", range(4 * 1940 - 1, 248_320, 4 * 1940)),
        ("chunk-ends-all", range(1939, 248_320, 1940)),
    ):
        assert argmax.exact("nan_first", **draw(argmax, cases[name]))["out"].tolist() == list(want)


def test_argmax_rows_beyond_64_have_winners_of_their_own() -> None:
    logits = argmax.inputs(Case("x", {"rows": 70, "fill": "random"}), np.random.default_rng(0))
    found = argmax.exact("nan_first", **logits)["out"]
    assert len(set(found.tolist())) == 70


# ---- silu_mul_quant ---------------------------------------------------------------------------


def silu(gate: Any, up: Any) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """(scales, codes) of one row with these first elements, the others 0."""
    x = np.zeros((1, 2, 512), F32)
    x[0, 0, : len(gate)], x[0, 1, : len(up)] = gate, up
    answer = silu_mul_quant.deployed("reciprocal", x)
    return answer["scale"][0], answer["out"][0].view(np.uint8)


def test_silu_by_hand() -> None:
    """A gate of 32 is its own silu: y = 448, 224, -448, 1, 0.5."""
    scale, codes = silu([32] * 5, [14, 7, -14, 1 / 32, 1 / 64])
    assert scale[0] == F32(448) * F32(1 / 448) and abs(scale[0] - 1) < 1e-6
    assert codes[:6].tolist() == [0x7E, 0x76, 0xFE, 0x38, 0x30, 0]
    assert (scale[1:] == F32(1e-10) * F32(1 / 448)).all() and not codes[6:].any()


def test_silu_of_one_is_the_sigmoid() -> None:
    scale, codes = silu([1], [1])
    y = float(_f32.from_bf16(_f32.to_bf16(np.array([1 / (1 + math.exp(-1))], F32)))[0])
    assert scale[0] == F32(y) * F32(1 / 448) and codes[0] == 0x7E


def test_silu_nan_and_inf() -> None:
    nan, inf = np.nan, np.inf
    scale, codes = silu([nan, 32, -inf], [1, 14, 1])
    assert codes[:3].tolist() == [0x7F, 0x7E, 0xFF] and scale[0] < 1.1
    scale, codes = silu([inf, 32], [1, 14])
    assert scale[0] == inf and set(codes[:128].tolist()) == {0xFF} and not codes[128:].any()
    scale, codes = silu([nan] * 128, [1] * 128)
    assert scale[0] == F32(1e-10) * F32(1 / 448) and set(codes[:128].tolist()) == {0x7F}


def test_silu_tie_rules() -> None:
    """1 + 2^-8 and 1 + 3 * 2^-8 lie half way between bf16; 17, 19 and 21 half way between codes."""
    tie = F32(1) + F32(2.0**-8)
    y = _f32.to_bf16(np.array([tie, tie + F32(2.0**-7)], F32)).astype(F32)
    assert y.tolist() == [1, 1 + 2.0**-6]
    _, codes = silu([32] * 4, np.array([448, 17, 19, 21]) / 32)
    assert codes.view(ml_dtypes.float8_e4m3fn)[:4].astype(F32).tolist() == [448, 16, 20, 20]


@pytest.mark.parametrize("rows", [1, 9, 200])
def test_silu_deployed_is_close_to_exact(rows: int) -> None:
    """Rounding to bf16 moves a y, and so a scale, by at most 2^-8 of it.  A code, 8 to 16 steps
    high, is off by half a step for its own rounding and 1/16 for each of the two."""
    x = silu_mul_quant.inputs(Case("x", {"rows": rows, "fill": "random"}), np.random.default_rng(1))
    exact = silu_mul_quant.exact("reciprocal", **x)
    deployed = silu_mul_quant.deployed("reciprocal", **x)
    assert compare("out", deployed["out"], exact["out"], "ulp", 0.63).passed
    assert np.abs(deployed["scale"] / exact["scale"] - 1).max() <= 2.0**-8
    assert all(len(set(row)) == 4 for row in deployed["scale"].tolist())


def test_silu_finite_inputs_of_normal_size_never_give_nan() -> None:
    x = silu_mul_quant.inputs(Case("x", {"rows": 50, "fill": "random"}), np.random.default_rng(2))
    codes = silu_mul_quant.deployed("reciprocal", **x)["out"].view(np.uint8) & 0x7F
    assert codes.max() == 0x7E
    assert (codes.reshape(50, 4, 128).max(axis=2) == 0x7E).all()  # the largest is always 448


# ---- rmsnorm and add_rmsnorm ------------------------------------------------------------------


def bf16(*values: float, fill: float = 0, rows: int = 1) -> NDArray[Any]:
    row = np.full((rows, 2048), fill, F32)
    row[:, : len(values)] = values
    return row.astype(BF16)


ZERO_W = np.zeros(2048, BF16)


def norm(x: NDArray[Any], w: NDArray[Any] = ZERO_W, eps: float = 0.0) -> NDArray[np.float32]:
    return rmsnorm.deployed("gemma_pairwise", x, w, eps)["out"].astype(F32)


def test_rmsnorm_by_hand() -> None:
    assert (norm(bf16(fill=3)) == 1).all()
    assert (norm(bf16(fill=-0.25)) == -1).all()
    one = norm(bf16(64))  # sqrt(2048) = 45.25...
    assert one[0, 0] == F32(45.25) and not one[0, 1:].any()
    assert (norm(bf16(fill=2), eps=12.0) == 0.5).all()  # 2 / sqrt(4 + 12)


def test_rmsnorm_weight_is_one_plus_w() -> None:
    w = np.array([0, 1, -1, -0.5] * 512, F32).astype(BF16)
    assert norm(bf16(fill=5), w)[0, :4].tolist() == [1, 2, 0, 0.5]


def test_rmsnorm_special_values() -> None:
    assert np.isnan(norm(bf16(fill=0))).all()  # 0 * rsq(0)
    assert (norm(bf16(fill=0), eps=1e-6) == 0).all()
    inf = norm(bf16(np.inf, 1))
    assert np.isnan(inf[0, 0]) and not inf[0, 1:].any()
    assert np.isnan(norm(bf16(np.nan, 1))).all()
    assert not norm(bf16(1e30, 1)).any()  # the sum of squares is infinite
    nan_w = np.zeros(2048, F32)
    nan_w[7] = np.nan
    assert np.isnan(norm(bf16(fill=1), nan_w.astype(BF16))).nonzero()[1].tolist() == [7]


def test_the_order_of_the_sum() -> None:
    """Against the sentence of the contract, element by element in plain Python."""
    s = np.random.default_rng(5).normal(size=(2, 2048)).astype(F32)
    got = rmsnorm.sum_of_squares(s)

    def chain(values: Any) -> Any:
        total = F32(values[0] * values[0])
        for value in values[1:]:
            total = _f32.fma(value, value, total)[()]
        return total

    def tree(sums: list[Any]) -> Any:
        half = len(sums) // 2
        return sums[0] if half == 0 else F32(tree(sums[:half]) + tree(sums[half:]))

    for row, total in zip(s, got[:, 0], strict=True):
        threads = [row[8 * t : 8 * t + 8] for t in range(256)]
        assert total == tree([F32(chain(t[0::2]) + chain(t[1::2])) for t in threads])
    naive = [sum((v * v for v in row), F32(0)) for row in s]
    assert naive != got[:, 0].tolist()  # so the order is seen at all


@pytest.mark.parametrize(
    ("module", "case"), [p for p in PAIRS if p[0] in (rmsnorm, add_rmsnorm)],
    ids=[i for i in IDS if "rmsnorm" in i],
)  # fmt: skip
def test_norms_are_within_one_step_of_exact(module: ModuleType, case: Case) -> None:
    args, variant = draw(module, case), module.VARIANTS[0]
    exact, deployed = module.exact(variant, **args), module.deployed(variant, **args)
    for name, want in exact.items():
        verdict = compare(name, deployed[name], want, "ulp", 1)
        assert verdict.passed, verdict.text()


def add(x: NDArray[Any], residual: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    answer = add_rmsnorm.deployed("rounded_gemma_pairwise", x, residual, ZERO_W, 0.0)
    return answer["residual"].astype(F32), answer["x"].astype(F32)


def test_add_rounds_to_even_before_it_normalises() -> None:
    total, x = add(bf16(256, 258, fill=256), bf16(1, 1, fill=0))
    assert total[0, :3].tolist() == [256, 260, 256]  # 257 and 259 are ties
    assert (x == norm(total.astype(BF16))).all()


def test_add_special_values() -> None:
    inf, largest = np.inf, 255 * 2.0**120
    total, _ = add(bf16(inf, inf, -0.0, -0.0, largest), bf16(-inf, 1, 0.0, -0.0, largest))
    assert np.isnan(total[0, 0]) and total[0, 1] == inf and total[0, 4] == inf
    assert np.signbit(total[0, 2:4]).tolist() == [False, True]


def test_the_sum_is_the_plain_norm_when_the_residual_is_minus_zero() -> None:
    x = rmsnorm.rows_of(Case("x", {"rows": 4, "fill": "random"}), np.random.default_rng(3))
    total, normed = add(x, np.full(x.shape, -0.0, BF16))
    assert (total == x.astype(F32)).all() and (normed == norm(x)).all()
