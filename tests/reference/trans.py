"""What the transcendental unit computes: functions evaluated to 60 digits, then rounded once."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal, getcontext
from fractions import Fraction
from math import floor
from typing import Any

import softfloat as sf
from softfloat import FORMATS, Mode, flushed, is_inf, is_nan, is_zero, negative, quiet, value

getcontext().prec = 60
Row = Callable[..., Any]
ROWS: dict[str, Row] = {}
HALF = Fraction(1, 2)
LOG2 = Decimal(2).ln()
PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")


# f32 ignores MODE and flushes; f16 and f64 round to nearest and flush by MODE.
def _turns(x: Fraction, cosine: bool) -> Fraction:
    x = x + Fraction(1, 4) if cosine else x
    x -= floor(x + HALF)
    if x > Fraction(1, 4):
        x = HALF - x
    elif x < -Fraction(1, 4):
        x = -HALF - x
    a = 2 * PI * Decimal(x.numerator) / Decimal(x.denominator)
    term = total = a
    for k in range(1, 40):
        term *= -a * a / (2 * k * (2 * k + 1))
        total += term
    return Fraction(total)


def _exp2(x: Fraction) -> Fraction:
    if abs(x) < Fraction(1, 1 << 24):
        return Fraction(1)
    if not -3000 < x < 3000:
        return sf._scaled(Fraction(1), 3000 if x > 0 else -3000)
    whole = floor(x)
    return sf._scaled(Fraction((Decimal((x - whole).numerator) / Decimal((x - whole).denominator)
                                * LOG2).exp()), whole)


def _log2(x: Fraction) -> Fraction:
    return Fraction((Decimal(x.numerator) / Decimal(x.denominator)).ln() / LOG2)


def transcendental(
    fmt: str, function: Callable[[Fraction], Fraction], zero: Callable[[int], int],
    infinity: tuple[int, int], *, signed_domain: bool = True, mode: bool = False,
) -> Row:
    """`infinity` is what +inf and -inf give; `zero` maps the pattern of a zero."""
    f = FORMATS[fmt]

    def row(m: Mode, a: int) -> int:
        a = flushed(a, fmt, m) if mode else sf.flush(a, fmt)
        if is_nan(a, fmt):
            return quiet(a, fmt)
        if is_zero(a, fmt):
            return zero(a)
        if is_inf(a, fmt):
            return infinity[negative(a, fmt)]
        if negative(a, fmt) and not signed_domain:
            return f.invalid
        keep = m.keeps_results(fmt) if mode else False
        saturate = m.ovfl and fmt == "f16"
        return sf.encode(function(value(a, fmt)), fmt, keep=keep, saturate=saturate)

    return row


def _trans(fmt: str, mode: bool) -> dict[str, Row]:
    f = FORMATS[fmt]
    one, bits = f.bias << (f.precision - 1), 2 * f.precision + 20

    def make(*args: Any, **more: Any) -> Row:
        return transcendental(fmt, *args, mode=mode, **more)

    def turn(cosine: bool) -> Callable[[Fraction], Fraction]:
        return lambda x: Fraction(0) if 4 * x % 4 in ((1, 3) if cosine else (0, 2)) \
            else _turns(x, cosine)

    return {
        "rcp": make(lambda x: 1 / x, lambda a: a | f.inf, (0, f.sign)),
        "sqrt": make(lambda x: sf.root(x, bits), lambda a: a, (f.inf, f.invalid),
                     signed_domain=False),
        "rsq": make(lambda x: 1 / sf.root(x, bits), lambda a: a | f.inf, (0, f.invalid),
                    signed_domain=False),
        "exp": make(_exp2, lambda a: one, (f.inf, 0)),
        "log": make(_log2, lambda a: f.sign | f.inf, (f.inf, f.invalid), signed_domain=False),
        "sin": make(turn(False), lambda a: a, (f.invalid, f.invalid)),
        "cos": make(turn(True), lambda a: one, (f.invalid, f.invalid)),
    }


for _name, _row in _trans("f32", False).items():
    ROWS[f"v_{_name}_f32"] = _row
for _name, _row in _trans("f16", True).items():
    ROWS[f"v_{_name}_f16"] = _row
ROWS["v_rcp_iflag_f32"] = ROWS["v_rcp_f32"]
ROWS["v_exp_legacy_f32"], ROWS["v_log_legacy_f32"] = ROWS["v_exp_f32"], ROWS["v_log_f32"]
for _name in ("rcp", "sqrt", "rsq"):
    ROWS[f"v_{_name}_f64"] = _trans("f64", True)[_name]
