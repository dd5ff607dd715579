"""oracles/_f32.py: float32 arithmetic against exact arithmetic."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from netra_harness.oracles import _f32
from numpy.typing import NDArray

F32 = np.float32
PATTERN = st.integers(0, 2**32 - 1)


def from_bits(*patterns: int) -> NDArray[np.float32]:
    return np.array(patterns, np.uint32).view(F32)


def patterns(x: NDArray[Any]) -> list[int]:
    return [int(b) for b in np.ascontiguousarray(x, F32).view(np.uint32).reshape(-1)]


def random(count: int, seed: int) -> NDArray[np.float32]:
    """Any bit pattern."""
    return np.random.default_rng(seed).integers(0, 2**32, count, dtype=np.uint32).view(F32)


def nearest(value: Fraction) -> Any:
    """The float32 nearest to a rational, ties to even, by trying the neighbours."""
    limit = Fraction(2) ** 128 - Fraction(2) ** 103  # from here on it is infinity
    if abs(value) >= limit:
        return F32(np.inf if value > 0 else -np.inf)
    with np.errstate(over="ignore"):
        guess = F32(float(value))
    if np.isinf(guess):
        guess = np.copysign(np.finfo(F32).max, guess)
    around = {float(g) for s in (-np.inf, np.inf) for g in (guess, np.nextafter(guess, F32(s)))}
    finite = [F32(a) for a in around if np.isfinite(a)]
    return min(finite, key=lambda f: (abs(Fraction(float(f)) - value), patterns(f)[0] & 1))


@settings(max_examples=500, deadline=None)
@given(PATTERN, PATTERN, PATTERN)
def test_fma_rounds_once(a: int, b: int, c: int) -> None:
    x, y, z = from_bits(a), from_bits(b), from_bits(c)
    if not (np.isfinite(x) & np.isfinite(y) & np.isfinite(z)):
        return
    want = nearest(Fraction(float(x[0])) * Fraction(float(y[0])) + Fraction(float(z[0])))
    assert _f32.fma(x, y, z)[0] == want


@settings(max_examples=500, deadline=None)
@given(st.integers(0, 2**24 - 1), st.integers(0, 2**24 - 1), st.integers(-60, 60), st.booleans())
def test_fma_near_a_midpoint(m: int, n: int, shift: int, minus: bool) -> None:
    """Here float64 alone would round twice: a product plus something far below it."""
    x, y = F32(m), F32(n)
    z = F32(np.ldexp(-1.0 if minus else 1.0, shift))
    want = nearest(Fraction(m) * n + Fraction(float(z)))
    assert _f32.fma(np.array([x]), np.array([y]), np.array([z]))[0] == want


def test_fma_twice_rounded_would_be_wrong() -> None:
    a, b, c = F32(2**12 + 1), F32(2**12 + 1), F32(2.0**-60)
    product = np.float64(a) * np.float64(b)  # 2^24 + 2^13 + 1: half way between two float32
    assert F32(product) == F32(product + np.float64(c)) != _f32.fma(a, b, c)


def test_nan_is_the_first_operand_that_is_one_else_the_default() -> None:
    one, two = from_bits(0x7F800001), from_bits(0xFFABCDEF)
    inf, zero, number = from_bits(0x7F800000), from_bits(0), from_bits(0x40000000)
    assert patterns(_f32.add(one, two)) == [0x7FC00001]
    assert patterns(_f32.add(number, two)) == [0xFFEBCDEF]
    assert patterns(_f32.mul(two, one)) == [0xFFEBCDEF]
    assert patterns(_f32.mul(inf, zero)) == [0xFFC00000]
    assert patterns(_f32.add(inf, -inf)) == [0xFFC00000]
    assert patterns(_f32.fma(inf, zero, one)) == [0xFFC00000]
    assert patterns(_f32.fma(number, two, one)) == [0xFFEBCDEF]
    assert patterns(_f32.fma(number, number, one)) == [0x7FC00001]
    assert patterns(_f32.fma(inf, number, -inf)) == [0xFFC00000]
    for function in (_f32.rcp, _f32.rsq, _f32.exp2):
        assert patterns(function(two)) == [0xFFEBCDEF]


def test_rcp() -> None:
    x = random(4000, 1)
    x = x[np.isfinite(x) & (np.abs(x) >= _f32.TINY) & (np.abs(x) <= F32(2.0**126))]
    got = _f32.rcp(x)
    assert all(g == nearest(1 / Fraction(float(v))) for g, v in zip(got, x, strict=True))


def test_rcp_at_the_edges() -> None:
    x = from_bits(0x00000000, 0x80000000, 0x007FFFFF, 0x80000001, 0x7F800000, 0xFF800000,
                  0x7E800000, 0x7E800001, 0x7F7FFFFF, 0x00800000)  # fmt: skip
    assert patterns(_f32.rcp(x)) == [
        0x7F800000, 0xFF800000, 0x7F800000, 0xFF800000, 0x00000000, 0x80000000,
        0x00800000, 0x00000000, 0x00000000, 0x7E800000,
    ]  # fmt: skip


def test_rsq() -> None:
    x = np.abs(random(4000, 2))
    x = x[np.isfinite(x) & (x >= _f32.TINY)]
    for value, got in zip(x, _f32.rsq(x), strict=True):
        # Between the midpoints to its neighbours: m < 1/sqrt(x)  <=>  m^2 x < 1.
        low, high = (np.nextafter(got, F32(side)) for side in (0, np.inf))
        exact = Fraction(float(value))
        assert ((Fraction(float(low)) + Fraction(float(got))) / 2) ** 2 * exact < 1
        assert ((Fraction(float(high)) + Fraction(float(got))) / 2) ** 2 * exact > 1


def test_rsq_at_the_edges() -> None:
    x = from_bits(0x00000000, 0x80000000, 0x007FFFFF, 0x80000001, 0x7F800000, 0xFF800000,
                  0xBF800000, 0x3F800000, 0x40800000)  # fmt: skip
    assert patterns(_f32.rsq(x)) == [
        0x7F800000, 0xFF800000, 0x7F800000, 0xFF800000, 0x00000000, 0xFFC00000,
        0xFFC00000, 0x3F800000, 0x3F000000,
    ]  # fmt: skip


def test_exp2_at_the_edges() -> None:
    x = np.array([0, -0.0, 1e-45, -1e-38, 1e-9, 1, -1, 10, -126, -126.001, -150, 127, 128, 1e9,
                  np.inf, -np.inf], F32)  # fmt: skip
    want = np.array([1, 1, 1, 1, 1, 2, 0.5, 1024, 2.0**-126, 0, 0, 2.0**127, np.inf, np.inf,
                     np.inf, 0], F32)  # fmt: skip
    assert patterns(_f32.exp2(x)) == patterns(want)
    assert _f32.exp2(np.array([0.5], F32))[0] == F32(2**0.5)


@pytest.mark.parametrize("function", [_f32.exp2, _f32.rsq])
def test_float64_and_the_exact_side_agree(
    function: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every value sent down the path that otherwise one in 10^7 takes."""
    x = np.random.default_rng(3).uniform(-130, 130, 2000).astype(F32)
    usual = function(x)
    monkeypatch.setattr(_f32, "DOUBT", 2**29)
    assert patterns(function(x)) == patterns(usual)


def test_the_exact_side_corrects_a_wrong_float64() -> None:
    """Half a float32 step lies between what float64 says and the truth: the truth wins."""
    x = np.array([3.0], F32)
    true = _f32.rsq(x)
    middle = np.float64(true[0]) + (np.float64(np.nextafter(true[0], F32(1))) - true[0]) / 2
    wrong = np.nextafter(middle, 1)
    assert F32(wrong) != true[0]
    assert _f32._round(np.array([wrong]), x, _f32._rsq_above)[0] == true[0]


def test_bf16_against_ml_dtypes() -> None:
    x = random(100_000, 4)
    x = x[~np.isnan(x)]
    assert (_f32.to_bf16(x).view(np.uint16) == x.astype(ml_dtypes.bfloat16).view(np.uint16)).all()
    every = np.arange(65536, dtype=np.uint16).view(ml_dtypes.bfloat16)
    again = _f32.to_bf16(_f32.from_bf16(every)).view(np.uint16)
    quiet = every.view(np.uint16) | np.where(np.isnan(_f32.from_bf16(every)), 0x40, 0)
    assert (again == quiet).all()


def test_a_bf16_nan_stays_one_whatever_its_payload() -> None:
    x = from_bits(0x7F800001, 0x7FFFFFFF, 0xFFFFFFFF, 0xFF80FFFF)
    got = [int(b) for b in _f32.to_bf16(x).view(np.uint16)]
    assert got == [0x7FC0, 0x7FFF, 0xFFFF, 0xFFC0]


def test_e4m3fn_against_ml_dtypes() -> None:
    usual = np.random.default_rng(6).uniform(-500, 500, 100_000).astype(F32)
    x = np.concatenate([random(100_000, 5), usual, [F32(0)]])
    x = x[~np.isnan(x)]
    want = x.astype(ml_dtypes.float8_e4m3fn)
    assert (_f32.to_e4m3fn(x).view(np.uint8) == want.view(np.uint8)).all()


def test_e4m3fn_ties_and_edges() -> None:
    codes = np.arange(0x7F, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(F32)
    middles = (codes[:-1] + codes[1:]) / 2
    even = np.arange(0x7E) + np.arange(0x7E) % 2
    for sign, bit in ((1, 0), (-1, 0x80)):
        assert (_f32.to_e4m3fn(sign * codes).view(np.uint8) == np.arange(0x7F) + bit).all()
        assert (_f32.to_e4m3fn(sign * middles).view(np.uint8) == even + bit).all()
    edge = np.array([448, 464, np.nextafter(F32(464), F32(500)), np.inf, -1e30, np.nan], F32)
    assert _f32.to_e4m3fn(edge).view(np.uint8).tolist() == [0x7E, 0x7E, 0x7F, 0x7F, 0xFF, 0x7F]
