"""What the float rows of the vector ALU compute, in exact fractions.

An entry takes the mode and the sources as patterns, and returns the pattern of the destination.
CLAMPED holds the rows that clamp selects (a float clamp is a modifier, and no row).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import floor
from typing import Any

import softfloat as sf
from integers import pack, saturated, signed
from softfloat import FORMATS, Mode, flushed, is_inf, is_nan, is_zero, negative, quiet, value

Row = Callable[..., Any]
ROWS: dict[str, Row] = {}
CLAMPED: dict[str, Row] = {}
TYPES = ("f16", "f32", "f64")
HALF = Fraction(1, 2)


def each(pattern: str, make: Callable[[str], Row], types: tuple[str, ...] = TYPES) -> None:
    for fmt in types:
        ROWS[pattern.replace("*", fmt)] = make(fmt)


# Arithmetic.
each("v_add_*", lambda t: lambda m, a, b: sf.add(a, b, t, m))
each("v_sub_*", lambda t: lambda m, a, b: _sub(a, b, t, m), ("f16", "f32"))
each("v_subrev_*", lambda t: lambda m, a, b: _subrev(a, b, t, m), ("f16", "f32"))
each("v_mul_*", lambda t: lambda m, a, b: sf.mul(a, b, t, m))
for _name in ("v_fma_*", "v_fmac_*", "v_fmamk_*", "v_fmaak_*"):
    each(_name, lambda t: lambda m, a, b, c: sf.fma(a, b, c, t, m))
ROWS["v_fma_legacy_f16"] = ROWS["v_fma_f16"]


def _sub(a: int, b: int, fmt: str, mode: Mode) -> int:
    """A NaN comes out as it came in: subtraction does not turn its sign."""
    nan = sf.first_nan(fmt, mode, a, b)
    return sf.add(a, sf.negate(b, fmt), fmt, mode) if nan is None else nan


def _subrev(a: int, b: int, fmt: str, mode: Mode) -> int:
    nan = sf.first_nan(fmt, mode, a, b)
    return sf.add(b, sf.negate(a, fmt), fmt, mode) if nan is None else nan


def _mad_f16(m: Mode, a: int, b: int, c: int) -> int:
    nan = sf.first_nan("f16", m, a, b, c)
    if nan is not None:
        return nan
    kept = replace(m, denorm64=m.denorm64 | 1)  # the product is no input
    return sf.add(sf.mul(a, b, "f16", m), flushed(c, "f16", m), "f16", kept)


for _name in ("v_mac_f16", "v_madmk_f16", "v_madak_f16", "v_mad_f16", "v_mad_legacy_f16"):
    ROWS[_name] = _mad_f16


def _mul_legacy(m: Mode, a: int, b: int) -> int:
    a, b = flushed(a, "f32", m), flushed(b, "f32", m)
    return 0 if is_zero(a, "f32") or is_zero(b, "f32") else sf.mul(a, b, "f32", m)


ROWS["v_mul_legacy_f32"] = _mul_legacy


def _always_flush(m: Mode) -> Mode:
    return Mode(m.round32, m.round64, 0, m.denorm64, m.dx10, m.ieee, m.ovfl, m.gfx11)


ROWS["v_mul_dx9_zero_f32"] = lambda m, a, b: _mul_legacy(_always_flush(m), a, b)


def _fma_dx9(m: Mode, a: int, b: int, c: int) -> int:
    m = _always_flush(m)
    if is_zero(sf.flush(a, "f32"), "f32") or is_zero(sf.flush(b, "f32"), "f32"):
        return sf.add(0, c, "f32", m)
    return sf.fma(a, b, c, "f32", m)


ROWS["v_fmac_dx9_zero_f32"] = ROWS["v_fma_dx9_zero_f32"] = _fma_dx9


def _mullit(m: Mode, a: int, b: int, c: int) -> int:
    a, b, c = (flushed(x, "f32", m) for x in (a, b, c))
    lowest = 0xFF7FFFFF
    positive = not is_nan(c, "f32") and not is_zero(c, "f32") and not negative(c, "f32")
    if is_nan(b, "f32") or b in (lowest, 0xFF800000) or not positive:
        return lowest
    return _mul_legacy(m, a, b)


ROWS["v_mullit_f32"] = _mullit


# Ordering: -0 below +0.
def order(x: int, fmt: str) -> tuple[int, int]:
    f = FORMATS[fmt]
    size = x & (f.sign - 1)
    return (-size, -1) if x & f.sign else (size, 1)


def _extreme(fmt: str, m: Mode, a: int, b: int, pick: Callable[..., int]) -> int:
    for x in (a, b):
        if m.ieee and sf.is_snan(x, fmt):
            return quiet(x, fmt)
    if is_nan(a, fmt):
        return a if m.gfx11 and is_nan(b, fmt) else b
    if is_nan(b, fmt):
        return a
    return pick(a, b, key=lambda x: order(x, fmt))


def extreme(fmt: str, *picks: Callable[..., int]) -> Row:
    def row(m: Mode, *sources: int) -> int:
        s = [flushed(x, fmt, m) for x in sources]
        out = s[0]
        for pick, x in zip(picks, s[1:], strict=False):
            out = _extreme(fmt, m, out, x, pick)
        # A 16-bit NaN that comes out has been through a conversion, which quiets it.
        return quiet(out, fmt) if fmt == "f16" and is_nan(out, fmt) else out

    return row


each("v_min_*", lambda t: extreme(t, min))
each("v_max_*", lambda t: extreme(t, max))
for _name, _picks in {"min3": (min, min), "max3": (max, max), "maxmin": (max, min),
                      "minmax": (min, max)}.items():
    each(f"v_{_name}_*", lambda t, p=_picks: extreme(t, *p), ("f16", "f32"))


def _med3(fmt: str) -> Row:
    def row(m: Mode, *sources: int) -> int:
        s = [flushed(x, fmt, m) for x in sources]
        if any(is_nan(x, fmt) for x in s):
            return ROWS[f"v_min3_{fmt}"](m, *s)
        # The first source that equals the greatest goes, and +0 equals -0.
        top = order(max(s, key=lambda x: order(x, fmt)), fmt)[0]
        s.pop(next((k for k in (0, 1) if order(s[k], fmt)[0] == top), 2))
        return max(s, key=lambda x: order(x, fmt))

    return row


each("v_med3_*", _med3, ("f16", "f32"))


def _of_three(fmt: str, pick: Callable[..., int]) -> Row:
    def row(m: Mode, *sources: int) -> int:
        s = [flushed(x, fmt, m) for x in sources]
        nans = [x for x in s if is_nan(x, fmt)]
        return quiet(nans[0], fmt) if nans else pick(s, key=lambda x: order(x, fmt))

    return row


ROWS["v_minimum3_f32"] = _of_three("f32", min)
ROWS["v_maximum3_f32"] = _of_three("f32", max)


# Rounding to integral values, and the pieces of a number.
def _half_even(x: Fraction) -> Fraction:
    whole = floor(x)
    rest = x - whole
    return Fraction(whole + (rest > HALF or (rest == HALF and whole % 2)))


def _kept_mode(row: Callable[[int, Mode], int]) -> Row:
    return lambda m, a: row(a, m)


each("v_trunc_*", lambda t: _kept_mode(sf.lift(t, lambda x: Fraction(int(x)))))
each("v_ceil_*", lambda t: _kept_mode(sf.lift(t, lambda x: Fraction(-floor(-x)))))
each("v_floor_*", lambda t: _kept_mode(sf.lift(t, lambda x: Fraction(floor(x)))))
each("v_rndne_*", lambda t: lambda m, a: sf.lift(t, _half_even)(a, replace(m, ieee=True)))


def _fract(fmt: str) -> Row:
    f = FORMATS[fmt]

    def row(m: Mode, a: int) -> int:
        a = flushed(a, fmt, m)
        if is_nan(a, fmt):
            return sf.first_nan(fmt, m, a) or 0
        if is_inf(a, fmt):
            return f.invalid
        x = value(a, fmt)
        below_one = (f.bias << (f.precision - 1)) - 1
        return min(sf.result(x - floor(x), fmt, m), below_one)

    return row


each("v_fract_*", _fract)


def _frexp_exp(fmt: str, width: int) -> Row:
    def row(m: Mode, a: int) -> int:
        a = flushed(a, fmt, m)
        if is_nan(a, fmt) or is_inf(a, fmt) or is_zero(a, fmt):
            return 0
        x = abs(value(a, fmt))
        k = x.numerator.bit_length() - x.denominator.bit_length() + 1
        while sf._scaled(x, -k) >= 1:
            k += 1
        while sf._scaled(x, -k) < HALF:
            k -= 1
        return k & ((1 << width) - 1)

    return row


ROWS["v_frexp_exp_i32_f32"] = _frexp_exp("f32", 32)
ROWS["v_frexp_exp_i32_f64"] = _frexp_exp("f64", 32)
ROWS["v_frexp_exp_i16_f16"] = _frexp_exp("f16", 16)


def _frexp_mant(fmt: str) -> Row:
    def row(m: Mode, a: int) -> int:
        a = flushed(a, fmt, m)
        if is_nan(a, fmt):
            return quiet(a, fmt)
        if is_inf(a, fmt) or is_zero(a, fmt):
            return a
        k = signed(_frexp_exp(fmt, 32)(m, a))
        return sf.encode(sf._scaled(value(a, fmt), -k), fmt)

    return row


each("v_frexp_mant_*", _frexp_mant)


def _ldexp(fmt: str) -> Row:
    def row(m: Mode, a: int, b: int) -> int:
        a = flushed(a, fmt, m)
        if is_nan(a, fmt):
            return sf.first_nan(fmt, m, a) or 0
        if is_inf(a, fmt) or is_zero(a, fmt):
            return a
        power = max(-5000, min(5000, signed(b, 16 if fmt == "f16" else 32)))
        return sf.result(sf._scaled(value(a, fmt), power), fmt, m)

    return row


each("v_ldexp_*", _ldexp)

# Conversions.
for _s, _t in (("f32", "f16"), ("f16", "f32"), ("f64", "f32"), ("f32", "f64")):
    ROWS[f"v_cvt_{_t}_{_s}"] = lambda m, a, s=_s, t=_t: sf.convert(a, s, t, m)


def _to_int(fmt: str, width: int, sign: bool,
            function: Callable[[Fraction], int] = int) -> Row:
    def row(m: Mode, a: int) -> int:
        a = flushed(a, fmt, m)
        if is_nan(a, fmt):
            return 0
        if is_inf(a, fmt):
            return saturated(-(1 << 200) if negative(a, fmt) else 1 << 200, width, sign)
        return saturated(function(value(a, fmt)), width, sign)

    return row


def both_clamps(name: str, row: Row) -> None:
    """clamp changes nothing where the operation saturates."""
    ROWS[name] = CLAMPED[name] = row


for _t in ("f32", "f64"):
    both_clamps(f"v_cvt_i32_{_t}", _to_int(_t, 32, True))
    both_clamps(f"v_cvt_u32_{_t}", _to_int(_t, 32, False))
both_clamps("v_cvt_i16_f16", _to_int("f16", 16, True))
both_clamps("v_cvt_u16_f16", _to_int("f16", 16, False))
for _name in ("v_cvt_rpi_i32_f32", "v_cvt_nearest_i32_f32"):
    both_clamps(_name, _to_int("f32", 32, True, lambda x: floor(x + HALF)))
for _name in ("v_cvt_flr_i32_f32", "v_cvt_floor_i32_f32"):
    both_clamps(_name, _to_int("f32", 32, True, floor))


def _from_int(fmt: str, width: int, sign: bool) -> Row:
    def row(m: Mode, a: int) -> int:
        return sf.result(Fraction(signed(a, width) if sign else a), fmt, m)

    return row


ROWS["v_cvt_f32_i32"] = _from_int("f32", 32, True)
ROWS["v_cvt_f32_u32"] = _from_int("f32", 32, False)
ROWS["v_cvt_f64_i32"] = _from_int("f64", 32, True)
ROWS["v_cvt_f64_u32"] = _from_int("f64", 32, False)
ROWS["v_cvt_f16_i16"] = _from_int("f16", 16, True)
ROWS["v_cvt_f16_u16"] = _from_int("f16", 16, False)
for _k in range(4):
    ROWS[f"v_cvt_f32_ubyte{_k}"] = lambda m, a, k=_k: sf.encode(Fraction(a >> 8 * k & 255), "f32")
ROWS["v_cvt_off_f32_i4"] = lambda m, a: sf.encode(Fraction(signed(a, 4), 16), "f32")
ROWS["v_cvt_f32_bf16"] = lambda m, a: quiet(a << 16, "f32") if is_nan(a << 16, "f32") else a << 16


def _norm(fmt: str, sign: bool) -> Row:
    scale, low = (32767, -1) if sign else (65535, 0)

    def clipped(x: Fraction) -> int:
        return int(_half_even(max(Fraction(low), min(Fraction(1), x)) * scale))

    return _to_int(fmt, 16, sign, clipped)


def _norm_inf(fmt: str, sign: bool) -> Row:
    """An infinity is clamped to one."""
    row = _norm(fmt, sign)
    one = sf.encode(Fraction(1), fmt)

    def finite(m: Mode, a: int) -> int:
        return row(m, one | a & FORMATS[fmt].sign if is_inf(a, fmt) else a)

    return finite


def _pair_of(row: Row) -> Row:
    return lambda m, a, b: pack([row(m, a), row(m, b)], 16)


for _t, _sign in (("i16", True), ("u16", False)):
    ROWS[f"v_cvt_norm_{_t}_f16"] = _norm_inf("f16", _sign)
    for _f in ("f16", "f32"):
        for _name in (f"v_cvt_pknorm_{_t}_{_f}", f"v_cvt_pk_norm_{_t}_{_f}"):
            ROWS[_name] = _pair_of(_norm_inf(_f, _sign))
    ROWS[f"v_cvt_pk_{_t}_f32"] = _pair_of(_to_int("f32", 16, _sign))


def _narrow(m: Mode, a: int, rounding: int, target: str, keep: bool) -> int:
    flat = Mode(rounding, rounding, m.denorm32, 3 if keep else 1, ovfl=m.ovfl)
    return sf.convert(a, "f32", target, flat)


def _pack_rtz(m: Mode, a: int, b: int) -> int:
    keep = m.keeps_results("f16")
    return pack([_narrow(m, x, sf.ZERO, "f16", keep) for x in (a, b)], 16)


ROWS["v_cvt_pkrtz_f16_f32"] = ROWS["v_cvt_pk_rtz_f16_f32"] = _pack_rtz
ROWS["v_cvt_pk_f16_f32"] = lambda m, a, b: pack(
    [_narrow(m, x, sf.NEAREST, "f16", True) for x in (a, b)], 16)


def bf16(a: int, m: Mode) -> int:
    a = flushed(a, "f32", m)
    if is_nan(a, "f32"):
        return a >> 16 | 0x40
    low = a & 0xFFFF
    rounded = (a >> 16) + (low > 0x8000 or (low == 0x8000 and a >> 16 & 1))
    overflows = rounded & 0x7FFF == 0x7F80 and a & 0x7FFFFFFF != 0x7F800000
    return rounded - (m.ovfl and overflows)


ROWS["v_cvt_pk_bf16_f32"] = lambda m, a, b: pack([bf16(a, m), bf16(b, m)], 16)


def _byte(m: Mode, a: int, b: int, c: int) -> int:
    new = _to_int("f32", 8, False)(m, a)
    return c & ~(0xFF << 8 * (b & 3)) & 0xFFFFFFFF | new << 8 * (b & 3)


ROWS["v_cvt_pk_u8_f32"] = CLAMPED["v_cvt_pk_u8_f32"] = _byte
ROWS["v_cvt_pkaccum_u8_f32"] = _byte
