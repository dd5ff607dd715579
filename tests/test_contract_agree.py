"""Trees, programs and Python itself agree on what an expression is worth."""

from __future__ import annotations

import math
import re
import struct

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from netra_catalog.call import Call, Tensor
from netra_catalog.contract import ContractError, Env, Expr, Overflow, Undefined, parse
from netra_catalog.machine import Machine
from netra_catalog.op import SCALAR_KINDS, TensorArg
from netra_catalog.program import Pools, compile_node
from toy_contract import NAMES, OP, PLACE, TRUE, call


def compiled(expr: Expr, asked: Call) -> object:
    """The value of the program, or the class of its error."""
    words: list[str] = []

    def word(text: str) -> int:
        if text not in words:
            words.append(text)
        return words.index(text)

    pools = Pools()
    slots = {arg.name: slot for slot, arg in enumerate(OP.args)}
    code = compile_node(expr.node, slots, pools, word)
    kinds = [
        (arg.name, 0 if isinstance(arg, TensorArg) else 1 + SCALAR_KINDS.index(arg.kind))
        for arg in OP.args
    ]
    packed = b"".join(struct.pack("<BBHI", *instruction) for instruction in code)
    machine = Machine(packed, b"".join(pools.constants), words.__getitem__, kinds)
    try:
        return bool(machine.run(0, Env(asked, {"wide": 0.25})))
    except (Overflow, Undefined) as error:
        return type(error)


# Python's own arithmetic, with a bound.


class Int:
    """An integer that says when it leaves 128 bits."""

    def __init__(self, number: int) -> None:
        if not -(2**127) <= number < 2**127:
            raise OverflowError
        self.number = number

    def __add__(self, other: Int) -> Int:
        return Int(self.number + other.number)

    def __sub__(self, other: Int) -> Int:
        return Int(self.number - other.number)

    def __mul__(self, other: Int) -> Int:
        return Int(self.number * other.number)

    def __floordiv__(self, other: Int) -> Int:
        return Int(self.number // other.number)

    def __mod__(self, other: Int) -> Int:
        return Int(self.number % other.number)

    def __pow__(self, other: Int) -> Int:
        return Int(self.number**other.number)

    def __neg__(self) -> Int:
        return Int(-self.number)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Int) and self.number == other.number

    def __lt__(self, other: Int) -> bool:
        return self.number < other.number

    def __le__(self, other: Int) -> bool:
        return self.number <= other.number

    __hash__ = None  # type: ignore[assignment]


def _ceildiv(a: Int, b: Int) -> Int:
    quotient, rest = divmod(a.number, b.number)
    return Int(quotient + (rest != 0))


FUNCTIONS = {
    "Int": Int,
    "ceildiv": _ceildiv,
    "min": min,
    "max": max,
    "is_pow2": lambda a: a.number > 0 and bin(a.number).count("1") == 1,
    "aligned": lambda a, b: a.number % b.number == 0,
}

EDGES = [0, 1, 2, 3, 4, 7, 31, 64, 127, 2**31, 2**32, 2**62, 2**63 - 1]
literals = st.one_of(st.sampled_from(EDGES), st.integers(0, 2**64)).map(str)
inputs = st.one_of(
    st.sampled_from([*EDGES, *(-edge for edge in EDGES), -(2**63), 2**64 - 1]),
    st.integers(-20, 20),
)


def _arithmetic(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "//", "%"]), inner).map(
            lambda t: f"({t[0]} {t[1]} {t[2]})"
        ),
        inner.map(lambda t: f"(-{t})"),
        st.tuples(inner, st.integers(0, 9)).map(lambda t: f"({t[0]} ** {t[1]})"),
        st.tuples(st.sampled_from(["ceildiv", "min", "max"]), inner, inner).map(
            lambda t: f"{t[0]}({t[1]}, {t[2]})"
        ),
    )


numbers = st.recursive(
    st.one_of(literals, st.sampled_from(["a", "b", "k"])), _arithmetic, max_leaves=8
)
relation = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
tests = st.one_of(
    st.tuples(numbers, relation, numbers).map(" ".join),
    st.tuples(numbers, relation, numbers, relation, numbers).map(" ".join),
    st.tuples(numbers, st.sampled_from(["in", "not in"]), literals, literals).map(
        lambda t: f"{t[0]} {t[1]} ({t[2]}, {t[3]})"
    ),
    numbers.map(lambda t: f"is_pow2({t})"),
    st.tuples(numbers, numbers).map(lambda t: f"aligned({t[0]}, {t[1]})"),
)
predicates = st.recursive(
    tests,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(
            lambda t: f"({t[0]}) {t[1]} ({t[2]})"
        ),
        inner.map(lambda t: f"not ({t})"),
    ),
    max_leaves=4,
)


@settings(max_examples=600, deadline=None)
@given(predicates, inputs, inputs, inputs)
@example("a * b * 4 > 0", 2**63 - 1, 2**63 - 1, 0)
@example("not (a // k == 1)", 1, 1, 0)
@example("b % k == -2 or b // k < 0", 1, -3, 2)
def test_equals_a_brute_force_evaluation(text: str, a: int, b: int, k: int) -> None:
    assume(len(text) <= 500)
    try:
        expr = parse(text, NAMES, PLACE)
    except ContractError as error:
        # Constants that can never be right are refused before any call.
        assert re.search(r"128 bits|by zero|(ceildiv|aligned) by", error.message), error.message
        return
    brute = re.sub(r"\b\d+\b", lambda found: f"Int({found.group()})", text)
    names = {"a": Int(a), "b": Int(b), "k": Int(k)}
    want: object
    try:
        want = eval(brute, {"__builtins__": {}, **FUNCTIONS}, names)
    except OverflowError:
        want = Overflow
    except ZeroDivisionError:
        want = Undefined
    try:
        got: object = expr.value(Env(call(a=a, b=b, k=k), {}))
    except (Overflow, Undefined) as error:
        got = type(error)
    assert got is want
    assert compiled(expr, call(a=a, b=b, k=k)) is want


# Forms over tensors and floats: the tree and the program.

FORMS = [
    "contiguous(x)", "aligned(x, 16)", "aligned(x, k)", "disjoint(x, out)", "x == out", "x != out",
    "x.shape[0] <= k", "x.stride(0) == x.shape[1]", "x.ndim == 2", 'x.dtype == "f32"',
    'x.dtype in ("f32", "bf16")', 'x.dtype not in ("f32",)', 'x.layout == "shuffled"',
    "x.max_byte_offset < 2**31", "x.extent >= k", 'graph in ("eager", "piecewise")',
    'phase != "decode"', 'arch == "gfx950"', "cu_count == 256", "eps >= 0", "eps == 0.1",
    "wide < 0.1", "eps > wide", "out.shape[0] == x.shape[0]", "max(a, b, k) == a",
    "x.shape[0] * x.shape[1] * a < 2**100", "out.shape[0] == ceildiv(x.shape[1], k)",
]
tensors = st.builds(
    lambda ptr, dtype, dims, extent, layout: Tensor(
        ptr, dtype, tuple(d for d, _ in dims), tuple(s for _, s in dims), extent, layout
    ),
    st.sampled_from([0x1000, 0x1010, 0x1008, 0x2000, 1]),
    st.sampled_from(["f32", "bf16", "f8e4m3fn"]),
    st.lists(
        st.tuples(st.sampled_from([0, 1, 2, 4, 256, 2**62]),
                  st.sampled_from([0, 1, 2, 4, 256, -1, 2**62])),
        max_size=3,
    ),
    st.sampled_from([0, 4, 4096, 2**40]),
    st.sampled_from([None, "unknown", "row_major", "shuffled"]),
)  # fmt: skip
floats = st.sampled_from([0.0, -0.0, 0.1, 1e300, -1.5, math.inf, math.nan])


@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.sampled_from(FORMS), min_size=1, max_size=3), st.sampled_from(["and", "or"]),
    st.booleans(), tensors, tensors, inputs, inputs, floats, floats,
    st.sampled_from(["eager", "capture", "piecewise"]),
)  # fmt: skip
def test_programs_equal_trees(
    forms: list[str], join: str, negated: bool, x: Tensor, out: Tensor, a: int, k: int,
    eps: float, wide: float, graph: str,
) -> None:
    text = f" {join} ".join(f"({form})" for form in forms)
    expr = parse(f"not ({text})" if negated else text, NAMES, PLACE)
    asked = call(x=x, out=out, a=a, k=k, eps=eps, wide=wide, graph=graph)
    want: object
    try:
        want = expr.value(Env(asked, {}))
    except (Overflow, Undefined) as error:
        want = type(error)
    assert compiled(expr, asked) is want


@pytest.mark.parametrize("text", TRUE)
def test_each_form_compiles(text: str) -> None:
    assert compiled(parse(text, NAMES, PLACE), call()) is True
