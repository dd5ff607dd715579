"""Trees, programs and Python itself agree on what an expression is worth."""

from __future__ import annotations

import re
import struct

import pytest
from expressions import FORMS, floats, inputs, predicates
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
