"""The contract language: what it accepts, what it refuses and how, what it computes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from netra_catalog.call import Tensor
from netra_catalog.contract import ContractError, Overflow, Undefined, parse, predicate
from toy_contract import NAMES, PLACE, TRUE, value


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


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60) | st.text("ab x.shape[]()0129+-*/%<>=!andorti'\"{},:", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse(text, NAMES, PLACE)
    except ContractError as error:
        assert error.message.startswith("catalog/gfx950/toy.yaml:7:")
