"""The contract language: what it accepts, what it refuses and how, what it computes."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from netra_catalog.call import Call, Tensor
from netra_catalog.contract import (
    ContractError,
    Env,
    Overflow,
    Place,
    Undefined,
    parse,
    predicate,
    scope,
)
from netra_catalog.op import Op, ScalarArg, TensorArg

OP = Op(
    name="toy.op",
    args=(
        TensorArg("x", ("f32", "bf16"), ("rows", "n"), "in"),
        TensorArg("out", ("f32",), ("rows",), "out"),
        ScalarArg("eps", "f32"),
        ScalarArg("wide", "f64", default=0.25),
        ScalarArg("a", "i64"),
        ScalarArg("b", "i64"),
        ScalarArg("k", "u32"),
    ),
    phases=("decode", "prefill"),
    nan="", ties="", padding="", sentinels="", empty="", doc="",
)  # fmt: skip
NAMES = scope(OP)
PLACE = Place("catalog/gfx950/toy.yaml", 7, 11, "contract.rows")


def call(**changed: object) -> Call:
    args = {
        "x": Tensor.dense(0x1000, "f32", (16, 256)),
        "out": Tensor.dense(0x10000, "f32", (16,)),
        "eps": 1e-6, "a": 7, "b": -3, "k": 4,
    }  # fmt: skip
    fields = {"arch": "gfx950", "phase": "decode", "graph": "capture", "cu_count": 256}
    for name, value in changed.items():
        (fields if name in fields else args)[name] = value  # type: ignore[index]
    return Call("toy.op", args=args, **fields)  # type: ignore[arg-type]


def value(text: str, want: str = "bool", **changed: object) -> object:
    defaults: dict[str, int | float] = {"wide": 0.25}
    return parse(text, NAMES, PLACE, want).value(Env(call(**changed), defaults))


TRUE = [
    "x.shape[0] == 16", "x.shape[-1] == 256", "1 <= x.shape[0] <= 16 < 17", "x.ndim == 2",
    "x.rank == x.ndim", 'x.dtype == "f32"', 'x.dtype in ("f32", "bf16")', 'x.dtype not in ["bf16"]',
    "x.stride(0) == 256 and x.stride(1) == 1", "contiguous(x)", "aligned(x, 4096)",
    "not aligned(x, 8192)", "disjoint(x, out)", "not disjoint(x, x)", "x == x", "x != out",
    "x.max_byte_offset == 16 * 256 * 4 - 1", "x.extent == 16384", "x.max_byte_offset < 2**31",
    'arch == "gfx950"', 'graph == "capture"', 'phase != "prefill"', "cu_count in (256, 304)",
    "is_pow2(x.shape[0])", "not is_pow2(a)", "ceildiv(a, 2) == 4", "ceildiv(b, 2) == -1",
    "min(a, b, k) == b", "max(a, 9) == 9", "a // 2 == 3", "b // 2 == -2", "b % 2 == 1", "-b == 3",
    "a ** 2 == 49", "2**10 == 1024 and a > 0", "a == 7 or a % (k - 4) == 1", "eps > 0",
    "eps == 1e-6", "0 < eps < 1e-5", "wide == 0.25", "wide != eps", "x.shape[0] == 0x10",
    "not (a == 1 or b == 1)", "a in (2**3 - 1, 9)", "aligned(x.shape[1], 64)", "k in (4,)",
]  # fmt: skip


@pytest.mark.parametrize("text", TRUE)
def test_true(text: str) -> None:
    assert value(text) is True


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("rows <= 4", "unknown name 'rows' (write x.shape[0])", 0),
        ("y.shape[0] == 1", "unknown name 'y'", 0),
        ("epz > 0", "unknown name 'epz' (did you mean 'eps'?)", 0),
        ("x.shap[0] == 1", "a tensor has no '.shap' (did you mean 'shape'?)", 1),
        ("x.__class__ == 1", "a tensor has no '.__class__'", 1),
        ("x.data == 1", "a tensor has no '.data'", 1),
        ("eps.shape[0] == 1", "'eps' is no tensor and has no .shape", 0),
        ("x.shape == 1", "write .shape[i] with a constant i", 1),
        ("x.stride == 1", "write .stride(i) with a constant i", 1),
        ("x.shape[a] == 1", "the index must be a constant integer", 8),
        ("x.shape[2] == 1", "x has 2 dimensions, 2 is not one of them", 8),
        ("x.stride(5) == 1", "x has 2 dimensions, 5 is not one of them", 9),
        ("x.stride() == 1", "write .stride(i) with one constant i", 0),
        ("x.dtype() == 1", ".dtype is not called", 0),
        ("x[0] == 1", "only .shape takes [i]", 0),
        ("x.shape[0:1] == 1", "Slice is not part of the language", 8),
        ('x.dtype == "fp32"', "x.dtype is never 'fp32' (did you mean 'f32'?)", 11),
        ('x.dtype == "f16"', "the op allows x.dtype f32, bf16, not f16", 11),
        ('graph == "captured"', "graph is never 'captured' (did you mean 'capture'?)", 9),
        ('phase in ("decode", "verify")', "phase is never 'verify'", 20),
        ('arch == "gfx95"', "arch is never 'gfx95' (did you mean 'gfx950'?)", 8),
        ('arch < "gfx950"', "a name has no order", 0),
        ("x < out", "a tensor has no order", 0),
        ("x == 4096", "compares a tensor with an integer", 5),
        ('a == "f32"', "compares an integer with a name", 5),
        ("a == eps", "an integer is compared with a float", 0),
        ("a / 2 == 1", "Div is not part of the language (write // for division)", 0),
        ("a << 2 == 1", "LShift is not part of the language", 0),
        ("~a == 1", "only - and not may stand before a value", 0),
        ("+a == 1", "only - and not may stand before a value", 0),
        ("a ** b == 1", "the exponent must be a constant, 0 or more", 5),
        ("a ** -1 == 1", "the exponent must be a constant, 0 or more", 5),
        ("a // (1 - 1) == 1", "division by zero", 6),
        ("a % 0 == 1", "division by zero", 4),
        ("ceildiv(a, 0) == 1", "ceildiv by 0", 11),
        ("2**127 == a", "the number has more than 128 bits", 0),
        ("a == 340282366920938463463374607431768211456", "more than 128 bits", 5),
        ("eps * 2 > 1", "* does not take a float", 0),
        ("a", "this is an integer, want true or false", 0),
        ("a and b", "and does not take an integer", 0),
        ("not a", "not does not take an integer", 4),
        ("(a == 1) == (b == 1)", "== does not take true or false", 1),
        ("a is 1", "write == or !=, not `is`", 0),
        ("a in b", "`in` wants constants in parentheses", 5),
        ("a in (b,)", "want a constant that is an integer", 6),
        ("a in ()", "`in` wants constants", 5),
        ("1 < a in (1, 2)", "`in` cannot be part of a chain", 9),
        ("alligned(x, 16)", "unknown function 'alligned' (did you mean 'aligned'?)", 0),
        ("eval('1')", "unknown function 'eval'", 0),
        ("x.shape.count(1) == 1", ".count needs the name of a tensor before it", 0),
        ("aligned(x)", "aligned takes 2 arguments, not 1", 0),
        ("aligned(x, n=16)", "aligned takes plain arguments only", 0),
        ("contiguous(a)", "contiguous does not take an integer", 11),
        ("min(a) == 1", "min takes 2 arguments, not 1", 0),
        ("aligned == 1", "aligned is a function", 0),
        ("workspace == 0", "the workspace has no address here", 0),
        ("x + 1 == 2", "+ does not take a tensor", 0),
        ("True", "True is not part of the language", 0),
        ("a if b else k", "IfExp is not part of the language", 0),
        ("(lambda: 1)() == 1", "only a function of the language can be called", 0),
        ("[a for a in (1,)]", "ListComp is not part of the language", 0),
        ("(a := 1) == 1", "NamedExpr is not part of the language", 1),
        ('f"{a}" == "7"', "JoinedStr is not part of the language", 0),
        ("a ==", "not an expression", 4),
        ("a == 1)", "not an expression", 6),
        ("a\n== 1", "character '\\n' is not allowed", 1),
        ("a == ²", "character '²' is not allowed", 5),
        ("", "empty", 0),
        ("1e999 > eps", "too large for a float", 0),
        ("a == 1j", "1j is not part of the language", 5),
        (" + ".join(["a"] * 100) + " == 1", "nested deeper", None),
        ("a == " + "1" * 600, "longer than 500 characters", 0),
        ("(" * 240 + "a" + ")" * 240, "not an expression", None),
    ],
)  # fmt: skip
def test_refused(text: str, message: str, column: int | None) -> None:
    with pytest.raises(ContractError) as caught:
        parse(text, NAMES, PLACE)
    got = caught.value.message
    assert message in got
    assert got.startswith("catalog/gfx950/toy.yaml:7:")
    assert "contract.rows: " in got
    if column is not None:
        assert got.startswith(f"catalog/gfx950/toy.yaml:7:{11 + column}: ")
        # The caret stands under the same column of the text.
        assert got.splitlines()[-1].index("^") == 2 + column


def test_a_predicate_must_look_at_the_call() -> None:
    with pytest.raises(ContractError, match="rows: says nothing about the call"):
        predicate("rows", "1 < 2", NAMES, PLACE)


def test_integers_are_exact_in_128_bits() -> None:
    big = 2**63 - 1
    assert value("a * b == 0x3fffffffffffffff0000000000000001", a=big, b=big)
    assert value("a * b // b == a", a=-(2**63), b=2**63 - 1)
    with pytest.raises(Overflow):
        value("a * b * 4 > 0", a=big, b=big)
    with pytest.raises(Overflow):
        value("a ** 3 > 0", a=big)
    with pytest.raises(Overflow):
        value("a ** 100000000000 > 0", a=2)
    assert value("a ** 100000000000 == 1", a=1)
    # The extremes themselves.
    assert value("a * 2**64 == -2**126 * 2", a=-(2**63))
    with pytest.raises(Overflow):
        value("-(a * 2**64) > 0", a=-(2**63))
    with pytest.raises(Overflow):
        value("a * 2**64 // b > 0", a=-(2**63), b=-1)
    # Not evaluated, not an overflow.
    assert value("a == 1 or a ** 3 > 0", a=1)


def test_inputs_are_64_bit_integers() -> None:
    assert value("a > 0", a=2**64 - 1)
    for beyond in (2**64, -(2**63) - 1):
        with pytest.raises(Overflow):
            value("a > 0", a=beyond)


def test_numpy_integers_do_not_wrap() -> None:
    numpy = pytest.importorskip("numpy")
    assert value("a * a == 2**64", a=numpy.int64(2**32))


def test_an_unknown_layout_matches_nothing() -> None:
    tagged = Tensor.dense(0x1000, "f32", (16, 256), "shuffled")
    assert value('x.layout == "shuffled"', x=tagged)
    assert value('x.layout != "row_major"', x=tagged)
    for text in ('x.layout == "shuffled"', 'x.layout != "row_major"', 'not x.layout == "shuffled"'):
        for layout in (None, "unknown"):
            with pytest.raises(Undefined):
                value(text, x=Tensor.dense(0x1000, "f32", (16, 256), layout))


def test_division_by_zero_is_undefined() -> None:
    for text in ("a // k == 0", "a % k == 0", "ceildiv(a, k) == 0", "aligned(x, k)"):
        with pytest.raises(Undefined):
            value(text, k=0)


def test_f32_scalars_compare_as_float32() -> None:
    assert value("eps == 0.1", eps=0.1)
    assert value("wide != eps", eps=0.1, wide=0.1)
    assert value("wide == 0.1", wide=0.1)
    assert value("eps == 1e300", eps=float("inf"))
    assert not value("eps == 0.1", eps=float("nan"))


@pytest.mark.parametrize(
    ("shape", "strides", "contiguous", "last", "first"),
    [
        ((4, 8), (8, 1), True, 127, 0),
        ((4, 8), (16, 1), False, 4 * (3 * 16 + 8) - 1, 0),
        ((1, 8), (99, 1), True, 4 * 8 - 1, 0),
        ((4, 1), (1, 77), True, 15, 0),
        ((8, 4), (1, 8), False, 127, 0),
        ((0, 8), (5, 5), True, -1, 0),
        ((4,), (-1,), False, 3, -12),
        ((), (), True, 3, 0),
    ],
)
def test_tensor_geometry(
    shape: tuple[int, ...], strides: tuple[int, ...], contiguous: bool, last: int, first: int
) -> None:
    tensor = Tensor(0x1000, "f32", shape, strides, 4096)
    assert tensor.contiguous is contiguous
    assert tensor.max_byte_offset == last
    assert tensor.min_byte_offset == first


def test_disjoint_to_the_byte() -> None:
    first = Tensor.dense(0x1000, "f32", (4,))
    assert first.disjoint(Tensor.dense(0x1010, "f32", (4,)))
    assert not first.disjoint(Tensor.dense(0x100F, "u8", (4,)))
    assert Tensor.dense(0x1010, "f32", (4,)).disjoint(first)
    assert first.disjoint(Tensor.dense(0x1004, "f32", (0,)))


# The same expressions, evaluated by Python itself.


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


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60) | st.text("ab x.shape[]()0129+-*/%<>=!andorti'\"{},:", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse(text, NAMES, PLACE)
    except ContractError as error:
        assert error.message.startswith("catalog/gfx950/toy.yaml:7:")
