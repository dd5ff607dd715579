"""Floating point in exact fractions: an arithmetic that shares nothing with the simulator.

Values are bit patterns (plain integers).  A format is "f16", "f32" or "f64"; a Mode says how
results are rounded and what becomes of subnormal numbers, as the MODE register does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt


@dataclass(frozen=True)
class Format:
    precision: int  # bits of the significand, the hidden one included
    bias: int
    width: int

    @property
    def sign(self) -> int:
        return 1 << (self.width - 1)

    @property
    def inf(self) -> int:
        return ((1 << (self.width - self.precision)) - 1) << (self.precision - 1)

    @property
    def quiet(self) -> int:
        return 1 << (self.precision - 2)

    @property
    def invalid(self) -> int:
        return self.sign | self.inf | self.quiet

    @property
    def least(self) -> int:  # exponent of the least normal number
        return 1 - self.bias


FORMATS = {"f16": Format(11, 15, 16), "f32": Format(24, 127, 32), "f64": Format(53, 1023, 64)}
NEAREST, UP, DOWN, ZERO = range(4)


@dataclass(frozen=True)
class Mode:
    """The MODE register; two-bit fields as the hardware has them (f16 shares those of f64)."""

    round32: int = NEAREST
    round64: int = NEAREST
    denorm32: int = 3  # bit 0: inputs are kept, bit 1: results are kept
    denorm64: int = 3
    dx10: bool = True
    ieee: bool = True
    ovfl: bool = False
    gfx11: bool = False
    lane: int = 0
    carry: int = 0  # the lane's bit of the mask operand

    def bits(self) -> int:
        return (self.round32 | self.round64 << 2 | self.denorm32 << 4 | self.denorm64 << 6
                | self.dx10 << 8 | self.ieee << 9 | self.ovfl << 23)

    def rounding(self, fmt: str) -> int:
        return self.round32 if fmt == "f32" else self.round64

    def keeps_inputs(self, fmt: str) -> bool:
        return bool((self.denorm32 if fmt == "f32" else self.denorm64) & 1)

    def keeps_results(self, fmt: str) -> bool:
        return bool((self.denorm32 if fmt == "f32" else self.denorm64) & 2)


def is_nan(x: int, fmt: str) -> bool:
    f = FORMATS[fmt]
    return x & (f.sign - 1) > f.inf


def is_snan(x: int, fmt: str) -> bool:
    return is_nan(x, fmt) and not x & FORMATS[fmt].quiet


def is_inf(x: int, fmt: str) -> bool:
    f = FORMATS[fmt]
    return x & (f.sign - 1) == f.inf


def is_zero(x: int, fmt: str) -> bool:
    return x & (FORMATS[fmt].sign - 1) == 0


def negative(x: int, fmt: str) -> bool:
    return bool(x & FORMATS[fmt].sign)


def quiet(x: int, fmt: str) -> int:
    return x | FORMATS[fmt].quiet


def exponent_field(x: int, fmt: str) -> int:
    f = FORMATS[fmt]
    return (x & f.inf) >> (f.precision - 1)


def value(x: int, fmt: str) -> Fraction:
    """The number that a finite pattern stands for."""
    f = FORMATS[fmt]
    field, mant = exponent_field(x, fmt), x & ((1 << (f.precision - 1)) - 1)
    if field:
        mant |= 1 << (f.precision - 1)
    shift = max(field, 1) - f.bias - f.precision + 1
    size = Fraction(mant << shift) if shift >= 0 else Fraction(mant, 1 << -shift)
    return -size if negative(x, fmt) else size


def flush(x: int, fmt: str) -> int:
    """A subnormal number becomes a zero of its sign."""
    return x & FORMATS[fmt].sign if exponent_field(x, fmt) == 0 else x


def flushed(x: int, fmt: str, mode: Mode) -> int:
    return x if mode.keeps_inputs(fmt) else flush(x, fmt)


def _round_integer(x: Fraction, rounding: int, minus: bool) -> int:
    whole, rest = divmod(x.numerator, x.denominator)
    if rounding == NEAREST:
        twice = 2 * rest
        return whole + (twice > x.denominator or (twice == x.denominator and whole & 1))
    return whole + (rest != 0 and rounding == (DOWN if minus else UP))


def _scaled(x: Fraction, power: int) -> Fraction:
    return x * (1 << power) if power >= 0 else x / (1 << -power)


def encode(
    x: Fraction, fmt: str, rounding: int = NEAREST, *, keep: bool = True, saturate: bool = False,
    zero_sign: bool = False,
) -> int:
    """x rounded once.  `zero_sign` is the sign of an exact zero; `keep` keeps subnormal results."""
    f = FORMATS[fmt]
    if x == 0:
        return f.sign if zero_sign else 0
    minus = x < 0
    sign, x = (f.sign if minus else 0), abs(x)
    top = x.numerator.bit_length() - x.denominator.bit_length()
    if _scaled(x, -top) < 1:
        top -= 1
    if top < f.least and not keep:  # tiny: judged after rounding with an unbounded exponent
        full = _round_integer(_scaled(x, f.precision - 1 - top), rounding, minus)
        if _scaled(Fraction(full), top - f.precision + 1) < Fraction(1, 1 << -f.least):
            return sign
    lowest = max(top, f.least) - f.precision + 1
    kept = _round_integer(_scaled(x, -lowest), rounding, minus)
    if kept == 0:
        return sign
    bits = kept + ((max(top, f.least) - f.least) << (f.precision - 1))
    if bits >= f.inf:
        infinite = rounding == NEAREST or rounding == (DOWN if minus else UP)
        return sign | (f.inf if infinite and not saturate else f.inf - 1)
    return sign | bits


def result(x: Fraction, fmt: str, mode: Mode, zero_sign: bool = False) -> int:
    """x as MODE has it."""
    return encode(x, fmt, mode.rounding(fmt), keep=mode.keeps_results(fmt), zero_sign=zero_sign,
                  saturate=mode.ovfl and fmt == "f16")


def first_nan(fmt: str, mode: Mode, *sources: int) -> int | None:
    for x in sources:
        if is_nan(x, fmt):
            return quiet(x, fmt) if mode.ieee or fmt == "f16" else x
    return None


def add(a: int, b: int, fmt: str, mode: Mode) -> int:
    a, b = flushed(a, fmt, mode), flushed(b, fmt, mode)
    nan = first_nan(fmt, mode, a, b)
    if nan is not None:
        return nan
    f = FORMATS[fmt]
    if is_inf(a, fmt):
        return f.invalid if is_inf(b, fmt) and a != b else a
    if is_inf(b, fmt):
        return b
    return result(value(a, fmt) + value(b, fmt), fmt, mode, _sum_sign(a, b, fmt, mode))


def _sum_sign(a: int, b: int, fmt: str, mode: Mode) -> bool:
    """The sign of a sum that is exactly zero."""
    if is_zero(a, fmt) and is_zero(b, fmt) and negative(a, fmt) == negative(b, fmt):
        return negative(a, fmt)
    return mode.rounding(fmt) == DOWN


def negate(x: int, fmt: str) -> int:
    return x ^ FORMATS[fmt].sign


def mul(a: int, b: int, fmt: str, mode: Mode) -> int:
    a, b = flushed(a, fmt, mode), flushed(b, fmt, mode)
    nan = first_nan(fmt, mode, a, b)
    if nan is not None:
        return nan
    f = FORMATS[fmt]
    sign = (a ^ b) & f.sign
    if is_inf(a, fmt) or is_inf(b, fmt):
        return f.invalid if is_zero(a, fmt) or is_zero(b, fmt) else sign | f.inf
    return result(value(a, fmt) * value(b, fmt), fmt, mode, bool(sign))


def fma(
    a: int, b: int, c: int, fmt: str, mode: Mode, *, scale: int = 0, flush_inputs: bool = True,
    out: str | None = None,
) -> int:
    """(a * b + c) * 2**scale, rounded once, to format `out` if it is another one."""
    if flush_inputs:
        a, b, c = (flushed(x, fmt, mode) for x in (a, b, c))
    f = FORMATS[fmt]
    infinite = is_inf(a, fmt) or is_inf(b, fmt)
    sign = (a ^ b) & f.sign
    if (is_inf(a, fmt) and is_zero(b, fmt)) or (is_zero(a, fmt) and is_inf(b, fmt)):
        return f.invalid
    nan = first_nan(fmt, mode, a, b, c)
    if nan is not None:
        return nan
    if infinite:
        return f.invalid if is_inf(c, fmt) and (c & f.sign) != sign else sign | f.inf
    if is_inf(c, fmt):
        return c
    product = value(a, fmt) * value(b, fmt)
    zero = mode.rounding(fmt) == DOWN
    if product == 0 and is_zero(c, fmt) and bool(sign) == negative(c, fmt):
        zero = bool(sign)
    return result(_scaled(product + value(c, fmt), scale), out or fmt, mode, zero)


def convert(x: int, source: str, target: str, mode: Mode) -> int:
    """Between formats, by the source's input rule and the target's rounding."""
    s, t = FORMATS[source], FORMATS[target]
    x = flushed(x, source, mode)
    sign = t.sign if negative(x, source) else 0
    if is_nan(x, source):
        payload = x & ((1 << (s.precision - 1)) - 1)
        shift = t.precision - s.precision
        payload = payload << shift if shift >= 0 else payload >> -shift
        return sign | t.inf | t.quiet | payload
    if is_inf(x, source):
        return sign | t.inf
    if t.precision > s.precision:  # exact: nothing rounds, nothing is subnormal
        return encode(value(x, source), target, zero_sign=bool(sign))
    return result(value(x, source), target, mode, bool(sign))


def root(x: Fraction, bits: int) -> Fraction:
    """The square root to more bits than any format needs, with what is lost marked below them."""
    even = 2 * bits + (x.denominator.bit_length() // 2 + 1) * 2
    scaled = x * (1 << even)
    whole = scaled.numerator // scaled.denominator
    r = isqrt(whole)
    exact = r * r == whole and scaled.denominator == 1
    return Fraction(2 * r + (0 if exact else 1), 2 << (even // 2))


def lift(
    fmt: str, function: Callable[[Fraction], Fraction]
) -> Callable[[int, Mode], int]:
    """A function of one finite number as a row that quiets a NaN and keeps an infinity."""

    def row(x: int, mode: Mode) -> int:
        x = flushed(x, fmt, mode)
        if is_nan(x, fmt):
            return first_nan(fmt, mode, x) or 0
        if is_inf(x, fmt):
            return x
        return result(function(value(x, fmt)), fmt, mode, negative(x, fmt))

    return row
