"""Interval and set reasoning against plain enumeration."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import pytest
import toy_catalogs
from hypothesis import given, settings
from hypothesis import strategies as st
from netra_catalog import Call, Tensor, evaluate, intsets, load
from netra_catalog.checks import check
from netra_catalog.contract import Env, Overflow, Undefined, parse
from netra_catalog.intsets import Ints, float_of, key_of, piece
from netra_catalog.region import Names, true_when
from toy_contract import NAMES, PLACE, call

SPAN = range(-70, 71)
pieces = st.builds(
    lambda low, size, period, residues: piece(
        low, low + size, period, {r % period for r in residues}
    ),
    st.integers(-30, 30), st.integers(0, 30), st.integers(1, 6),
    st.sets(st.integers(0, 5), min_size=1),
)  # fmt: skip
sets = st.lists(pieces, max_size=3).map(lambda ps: Ints(tuple(q for p in ps for q in p)))


def members(s: Ints) -> set[int]:
    return {n for n in SPAN if n in s}


@settings(max_examples=200, deadline=None)
@given(sets, sets)
def test_set_operations(a: Ints, b: Ints) -> None:
    assert members(a & b) == members(a) & members(b)
    assert members(a | b) == members(a) | members(b)
    assert members(a - b) == members(a) - members(b)
    assert bool(a & b) == bool(members(a) & members(b))
    assert a.includes(b) == (set(b) <= set(a))
    assert set(a) == {n for n in range(-80, 81) if n in a}
    if a:
        assert (a.low, a.high) == (min(set(a)), max(set(a)))


@settings(max_examples=200, deadline=None)
@given(sets, st.integers(-7, 7))
def test_inverse_images(s: Ints, by: int) -> None:
    def same(found: Ints, f: object) -> None:
        assert members(found) == {n for n in SPAN if f(n) in s}  # type: ignore[operator]

    same(intsets.shifted(s, by), lambda n: n + by)
    same(intsets.negated(s), lambda n: -n)
    if by:
        same(intsets.divided(s, by), lambda n: n * by)
        same(intsets.multiplied(s, by), lambda n: n // by)
        same(intsets.remainders(s, by), lambda n: n % by)
        same(intsets.rounded_up(s, by), lambda n: -(-n // by))


def test_floats_keep_their_order() -> None:
    values = [-math.inf, -1.5, -5e-324, 0.0, 5e-324, 1e-6, 1.0, math.inf]
    keys = [key_of(v) for v in values]
    assert keys == sorted(set(keys)) and key_of(-0.0) == key_of(0.0)
    assert [float_of(k) for k in keys] == values


# Predicates of one integer, over small values and the ends of the range.

terms = st.recursive(
    st.just("a"),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*"), st.integers(-3, 9)).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(inner, st.sampled_from(["//", "%"]), st.sampled_from([-3, 2, 5, 16])).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(st.integers(-3, 9), st.sampled_from("+-"), inner).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"),
        st.tuples(st.sampled_from(["min", "max"]), inner, st.integers(-9, 9)).map(
            lambda t: f"{t[0]}({t[1]}, {t[2]})"),
        inner.map(lambda t: f"ceildiv({t}, 4)"),
        inner.map(lambda t: f"(-{t})"),
    ),
    max_leaves=3,
)  # fmt: skip
atoms = st.one_of(
    st.tuples(terms, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), st.integers(-20, 20)).map(
        lambda t: f"{t[0]} {t[1]} {t[2]}"),
    st.tuples(terms, st.lists(st.integers(-9, 20), min_size=1, max_size=3)).map(
        lambda t: f"{t[0]} in ({', '.join(map(str, t[1]))},)"),
    terms.map(lambda t: f"is_pow2({t})"),
    terms.map(lambda t: f"aligned({t}, 3)"),
    st.just("a * 2**64 * 2 < 4"),
)  # fmt: skip
formulas = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(
            lambda t: f"({t[0]}) {t[1]} ({t[2]})"),
        inner.map(lambda t: f"not ({t})"),
    ),
    max_leaves=3,
)  # fmt: skip
VALUES = [*range(-25, 45), 64, 2**31, 2**62, 2**63 - 1, -(2**63), 2**64 - 1]


@settings(max_examples=250, deadline=None)
@given(formulas)
def test_regions_hold_exactly_what_is_admitted(text: str) -> None:
    expr = parse(text, NAMES, PLACE)
    boxes = true_when(expr.node)
    assert not any(box.literals for box in boxes)
    for a in VALUES:
        try:
            want = bool(expr.value(Env(call(a=a), {})))
        except (Overflow, Undefined):
            want = False
        got = any(all(a in domain for domain in box.sets.values()) for box in boxes)
        assert got is want, (text, a)


def test_names() -> None:
    few, others = Names(frozenset("ab")), Names(frozenset("a"), True)
    assert "b" in few & others and "a" not in few & others
    assert not few & Names(frozenset("ab"), True)


# Overlap of two tactics, against trying every small call.

ROWS = [
    "x.shape[0] == {a}", "{a} <= x.shape[0] <= {b}", "x.shape[0] in ({a}, {b})",
    "x.shape[0] % 3 == {m} and 1 <= x.shape[0] <= 9", "x.shape[0] >= 1 and x.shape[0] * 2 < {b}",
    "1 <= x.shape[0] <= 9 and x.shape[0] != {a}", "x.shape[0] == {a} or x.shape[0] == {b}",
    "is_pow2(x.shape[0]) and x.shape[0] < {b} + 3", "1 <= x.shape[0] <= 9 and not x.shape[0] < {a}",
    "ceildiv(x.shape[0], 4) == 2", "1 <= x.shape[0] and x.max_byte_offset < {b} * 4096",
]  # fmt: skip


def small_call(rows: int, width: int, dtype: str) -> Call:
    x = Tensor.dense(1 << 40, dtype, (rows, width))
    out = Tensor.dense(1 << 41, dtype, (rows, width))
    return Call("made.copy", "gfx950", "decode", "eager", 256, {"x": x, "out": out})


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_overlaps_are_those_that_trying_finds(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    written = {}
    for stem in ("made_a", "made_b"):
        a = data.draw(st.integers(1, 9))
        b = data.draw(st.integers(a, 9))
        rows = data.draw(st.sampled_from(ROWS)).format(a=a, b=b, m=data.draw(st.integers(0, 2)))
        written[stem] = toy_catalogs.text(
            rows, data.draw(st.sampled_from([1024, 2048])),
            data.draw(st.sampled_from(["f32", "bf16"])), data.draw(st.integers(0, 1)),
        )  # fmt: skip
    root = toy_catalogs.write(tmp_path_factory.mktemp("pair"), written)
    first, second = load(root=root)
    calls = [small_call(*t) for t in itertools.product(range(12), (1024, 2048), ("f32", "bf16"))]
    shared = [c for c in calls if evaluate(first, c) is None and evaluate(second, c) is None]
    want = bool(shared) and first.rank == second.rank
    errors = [e for e in check(root).errors if "same rank" in e or "cannot tell" in e]
    assert bool(errors) == want, (written, errors)
    if want:
        assert "cannot tell" not in errors[0]
        assert "made_b.yaml:4" in errors[0] and "made_a.yaml:4" in errors[0]
        assert "made.copy arch=gfx950" in errors[0]


def test_where_reasoning_ends_it_is_said(tmp_path: Path) -> None:
    odd = "1 <= x.shape[0] <= 9 and x.shape[0] ** 2 == 7"
    root = toy_catalogs.write(tmp_path, {
        "made_a": toy_catalogs.text("1 <= x.shape[0] <= 9"), "made_b": toy_catalogs.text(odd),
    })  # fmt: skip
    assert any("cannot tell whether gfx950/made_b and gfx950/made_a" in e
               for e in check(root).errors)  # fmt: skip
