"""Division helpers, mixed precision, packed floats, cube maps and compares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import floats
import softfloat as sf
from integers import fields, pack, signed
from softfloat import FORMATS, Mode, flushed, is_inf, is_nan, is_zero, negative, quiet, value

Row = Callable[..., Any]
ROWS: dict[str, Row] = {}

# f32 and f64: distance of exponents, scaling, the exponent below which a quotient underflows.
DIVISION = {"f32": (96, 64, -150), "f64": (768, 128, -1075)}


def _div_scale(fmt: str) -> Row:
    far, scale, _ = DIVISION[fmt]
    f = FORMATS[fmt]

    def row(m: Mode, v: int, d: int, n: int) -> tuple[int, int]:
        v, d, n = (flushed(x, fmt, m) for x in (v, d, n))
        ed, en = sf.exponent_field(d, fmt), sf.exponent_field(n, fmt)
        den, by, post = v == d, 0, False
        if en - ed >= far:
            post, by = True, scale if den else 0
        elif ed == 0:
            by = scale
        elif ed >= 2 * f.bias - 1:
            post = en - ed <= -far
            by = 0 if post and not den else -scale
        elif en - ed <= -far:
            post, by = True, 0 if den else scale
        elif en <= f.precision:
            by = scale
        if is_zero(d, fmt) or is_zero(n, fmt):
            return f.invalid, int(post)
        if is_nan(v, fmt):
            return quiet(v, fmt), int(post)
        if is_inf(v, fmt):
            return v, int(post)
        return sf.result(sf._scaled(value(v, fmt), by), fmt, m, negative(v, fmt)), int(post)

    return row


def _div_fmas(fmt: str) -> Row:
    _, scale, _ = DIVISION[fmt]

    def row(m: Mode, a: int, b: int, c: int) -> int:
        up = sf.exponent_field(c, fmt) > FORMATS[fmt].bias
        by = (scale if up else -scale) if m.carry else 0
        return sf.fma(a, b, c, fmt, m, scale=by, flush_inputs=False)

    return row


def _div_fixup(fmt: str) -> Row:
    f = FORMATS[fmt]

    def row(m: Mode, q: int, d: int, n: int) -> int:
        q, d, n = (flushed(x, fmt, m) for x in (q, d, n))
        sign = (n ^ d) & f.sign
        for x in (n, d):
            if is_nan(x, fmt):
                return quiet(x, fmt)
        if (is_zero(n, fmt) and is_zero(d, fmt)) or (is_inf(n, fmt) and is_inf(d, fmt)):
            return f.invalid
        if is_zero(d, fmt) or is_inf(n, fmt):
            return sign | f.inf
        if is_zero(n, fmt) or is_inf(d, fmt):
            return sign
        if fmt == "f16":  # and a NaN is quieted where it becomes f16 again
            return sign | q & (f.sign - 1) | (f.quiet if is_nan(q, fmt) else 0)
        away = m.rounding(fmt) == (sf.DOWN if sign else sf.UP)
        if sf.exponent_field(n, fmt) - sf.exponent_field(d, fmt) < DIVISION[fmt][2]:
            return sign | int(away and m.keeps_results(fmt))
        if is_nan(q, fmt) or is_inf(q, fmt):
            return sign | (f.inf if away or m.rounding(fmt) == sf.NEAREST else f.inf - 1)
        return sign | q & (f.sign - 1)

    return row


for _t in DIVISION:
    ROWS[f"v_div_scale_{_t}"] = _div_scale(_t)
    ROWS[f"v_div_fmas_{_t}"] = _div_fmas(_t)
for _t in FORMATS:
    ROWS[f"v_div_fixup_{_t}"] = _div_fixup(_t)
ROWS["v_div_fixup_legacy_f16"] = ROWS["v_div_fixup_f16"]


def _two_over_pi(bits: int) -> int:
    """floor(2/pi * 2**bits), by Machin's formula."""
    unity = 1 << (bits + 64)

    def arctan_inverse(x: int) -> int:
        total = term = unity // x
        n, sign = 3, -1
        while term:
            term //= x * x
            total += sign * (term // n)
            n, sign = n + 2, -sign
        return total

    pi = 4 * (4 * arctan_inverse(5) - arctan_inverse(239))
    return (2 * unity << bits) // pi


TWO_OVER_PI = _two_over_pi(1201)


def _trig_preop(m: Mode, a: int, b: int) -> int:
    field = sf.exponent_field(a, "f64")
    skip = 53 * (b & 31) + max(0, field - 1077)
    bits = (TWO_OVER_PI << skip) >> (1201 - 53) & ((1 << 53) - 1)
    power = -53 - skip + (128 if field >= 1968 else 0)
    return sf.encode(sf._scaled(Fraction(bits), power), "f64")


ROWS["v_trig_preop_f64"] = _trig_preop


# Mixed precision: the test's text makes S0 f32, S1 the low and S2 the high half as f16.
def _mix(out: str) -> Row:
    def row(m: Mode, a: int, b: int, c: int) -> int:
        s = (flushed(a, "f32", m), *(_widen(x, m) for x in (b & 0xFFFF, c >> 16)))
        kept = replace(m, denorm32=m.denorm32 | 1, ieee=True)
        nan = sf.fma(*s, "f32", kept)
        if out == "f32":
            return nan
        if is_nan(nan, "f32") or is_inf(nan, "f32") and any(is_inf(x, "f32") for x in s):
            return sf.convert(nan, "f32", "f16", kept)
        if m.gfx11:
            return sf.convert(nan, "f32", "f16", kept)
        exact = value(s[0], "f32") * value(s[1], "f32") + value(s[2], "f32")
        zero = negative(sf.fma(*s, "f32", Mode(m.round64, m.round64)), "f32")
        return sf.result(exact, "f16", m, zero)

    return row


def _widen(x: int, m: Mode) -> int:
    x = flushed(x, "f16", m)
    if is_nan(x, "f16"):  # the sign and the payload stay, signalling or not
        return (x & 0x8000) << 16 | 0x7F800000 | (x & 0x3FF) << 13
    return sf.convert(x, "f16", "f32", Mode())


ROWS["v_fma_mix_f32"] = _mix("f32")
ROWS["v_fma_mixlo_f16"] = ROWS["v_fma_mixhi_f16"] = _mix("f16")


# Packed floats: the row of one half, or of one dword.
def _packed(name: str, row: Row, width: int) -> None:
    ROWS[name] = lambda m, *s: pack(
        [row(m, *part) for part in zip(*(fields(x, width, 2) for x in s), strict=False)], width)


for _name in ("add", "mul", "min", "max", "fma"):
    _packed(f"v_pk_{_name}_f16", floats.ROWS[f"v_{_name}_f16"], 16)
_packed("v_pk_fmac_f16", floats.ROWS["v_fma_f16"], 16)
_packed("v_pk_minimum3_f16", floats._of_three("f16", min), 16)
_packed("v_pk_maximum3_f16", floats._of_three("f16", max), 16)
for _name in ("add", "mul", "fma"):
    _packed(f"v_pk_{_name}_f32", floats.ROWS[f"v_{_name}_f32"], 32)


# Cube maps.
def _cube(which: str) -> Row:
    def row(m: Mode, *sources: int) -> int:
        x, y, z = (flushed(s, "f32", m) for s in sources)
        size = [-1 if is_nan(s, "f32") else s & 0x7FFFFFFF for s in (x, y, z)]
        minus = [negative(s, "f32") and not is_zero(s, "f32") and not is_nan(s, "f32")
                 for s in (x, y, z)]

        def at_least(a: int, b: int) -> bool:
            return size[a] >= 0 and size[b] >= 0 and size[a] >= size[b]

        axis = 2 if at_least(2, 0) and at_least(2, 1) else 1 if at_least(1, 0) else 0
        flip = sf.FORMATS["f32"].sign
        face = 2 * axis + minus[axis]
        if which == "id":
            return sf.encode(Fraction(face), "f32")
        if which == "sc":
            return {0: z ^ flip, 1: z, 2: x, 3: x, 4: x, 5: x ^ flip}[face]
        if which == "tc":
            return {2: z, 3: z ^ flip}.get(face, y ^ flip)
        return sf.mul(0x40000000, (x, y, z)[axis], "f32", Mode())

    return row


for _name in ("id", "sc", "tc", "ma"):
    ROWS[f"v_cube{_name}_f32"] = _cube(_name)

# Compares: what an ordered pair gives, and what an unordered one gives.
CONDITIONS: dict[str, tuple[Callable[[Any, Any], bool], bool]] = {
    "f": (lambda a, b: False, False), "lt": (lambda a, b: a < b, False),
    "eq": (lambda a, b: a == b, False), "le": (lambda a, b: a <= b, False),
    "gt": (lambda a, b: a > b, False), "lg": (lambda a, b: a != b, False),
    "ge": (lambda a, b: a >= b, False), "o": (lambda a, b: True, False),
    "u": (lambda a, b: False, True), "nge": (lambda a, b: a < b, True),
    "nlg": (lambda a, b: a == b, True), "ngt": (lambda a, b: a <= b, True),
    "nle": (lambda a, b: a > b, True), "neq": (lambda a, b: a != b, True),
    "nlt": (lambda a, b: a >= b, True), "tru": (lambda a, b: True, True),
    "t": (lambda a, b: True, True), "ne": (lambda a, b: a != b, True),
}
COMPARES: dict[str, Row] = {}  # condition_type -> 0 or 1


def _float_compare(fmt: str, ordered: Callable[[Any, Any], bool], unordered: bool) -> Row:
    def row(m: Mode, a: int, b: int) -> int:
        a, b = flushed(a, fmt, m), flushed(b, fmt, m)
        if is_nan(a, fmt) or is_nan(b, fmt):
            return int(unordered)
        keys = [0 if is_zero(x, fmt) else floats.order(x, fmt)[0] for x in (a, b)]
        return int(ordered(*keys))

    return row


def _integer_compare(width: int, sign: bool, test: Callable[[Any, Any], bool]) -> Row:
    if sign:
        return lambda m, a, b: int(test(signed(a, width), signed(b, width)))
    return lambda m, a, b: int(test(a, b))


for _c, (_ordered, _unordered) in CONDITIONS.items():
    for _t in FORMATS:
        COMPARES[f"{_c}_{_t}"] = _float_compare(_t, _ordered, _unordered)
    for _w in (16, 32, 64):
        COMPARES[f"{_c}_u{_w}"] = _integer_compare(_w, False, _ordered)
        COMPARES[f"{_c}_i{_w}"] = _integer_compare(_w, True, _ordered)


def class_bit(x: int, fmt: str) -> int:
    minus = negative(x, fmt)
    if is_nan(x, fmt):
        return 0 if sf.is_snan(x, fmt) else 1
    if is_inf(x, fmt):
        return 2 if minus else 9
    if is_zero(x, fmt):
        return 5 if minus else 6
    if sf.exponent_field(x, fmt) == 0:
        return 4 if minus else 7
    return 3 if minus else 8


for _t in FORMATS:
    COMPARES[f"class_{_t}"] = lambda m, a, b, t=_t: b >> class_bit(a, t) & 1
