"""float32 arithmetic as the targets do it: one correct rounding, named NaNs.

NumPy's own float32 add, multiply and divide are IEEE, so they are used as they are.  What NumPy
does not have is made here: fma, exp2, the reciprocal square root, and conversion to bf16 and fp8.

exp2 and rsqrt are first computed in float64, whose error is a few units of 2^-53.  Rounding that
to float32 is right unless the value lies so near the middle between two float32 that the error
might cross it; there (about one value in 10^7) the side is found in exact or 60-digit arithmetic.
A plain float64 result rounded twice would be wrong in some of those cases.

NaN: the first operand that is a NaN, made quiet, else the default NaN 0xffc00000.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
Array = NDArray[Any]

DEFAULT_NAN = np.uint32(0xFFC00000)
QUIET = np.uint32(0x00400000)
TINY = np.float32(2.0**-126)  # the smallest normal number

# How near a midpoint float64 cannot decide, in units of its last place: more than the error of
# 1/sqrt (two roundings) and of any exp2 that NumPy uses (at most 4).
DOUBT = 8

BELOW = np.uint64(0x1FFFFFFF)  # the 29 bits that float64 has and float32 has not
MIDDLE = np.uint64(0x10000000)


def bits(x: Array) -> NDArray[np.uint32]:
    return np.ascontiguousarray(x, np.float32).view(np.uint32)


def add(a: Array, b: Array) -> F32:
    with np.errstate(all="ignore"):
        return _nan(np.add(a, b, dtype=np.float32), a, b)


def mul(a: Array, b: Array) -> F32:
    with np.errstate(all="ignore"):
        return _nan(np.multiply(a, b, dtype=np.float32), a, b)


def fma(a: Array, b: Array, c: Array) -> F32:
    """a * b + c, rounded once.

    The product is exact in float64 (24 + 24 bits).  The sum is rounded to odd, which makes the
    second rounding harmless: 53 bits are more than 24 + 2.
    """
    a, b, c = np.broadcast_arrays(*(np.asarray(x, np.float32) for x in (a, b, c)))
    with np.errstate(all="ignore"):
        product = a.astype(np.float64) * b.astype(np.float64)
        short = product.astype(np.float32)
        if (short == product).all():  # as products of bf16 are: only the addition rounds
            return _nan(short + c, c)
        addend = c.astype(np.float64)
        total = product + addend
        virtual = total - product  # Knuth's exact error of the sum
        error = (product - (total - virtual)) + (addend - virtual)
        even = (total.view(np.uint64) & np.uint64(1)) == 0
        inexact = np.isfinite(total) & (error != 0) & even
        odd = np.nextafter(total, np.where(error > 0, np.inf, -np.inf))
        result = np.where(inexact, odd, total).astype(np.float32)
    invalid = np.isnan(product) & ~np.isnan(a) & ~np.isnan(b)  # 0 * inf comes before c's NaN
    return _nan(result, a, b, np.where(invalid, np.float32(0), c))


def div(a: Array, b: Array) -> F32:
    """a / b as IEEE has it."""
    with np.errstate(all="ignore"):
        return _nan(np.divide(a, b, dtype=np.float32), a, b)


def dot2_fma_chain(a: Array, b: Array, c: Array) -> F32:
    """c + a[..., 0] b[..., 0] + a[..., 1] b[..., 1] of bf16 factors, under the model `fma_chain`:
    two fused steps in this order; subnormal factors, accumulator and result count as zeros."""
    a, b = _flush(a), _flush(b)
    first = fma(a[..., 0], b[..., 0], _flush(c))
    return _flush(fma(a[..., 1], b[..., 1], first))


def rcp(x: Array) -> F32:
    """1 / x.  A subnormal counts as 0 of its sign, before and after."""
    with np.errstate(all="ignore"):
        return _nan(_flush(np.float32(1) / _flush(x)), x)


def rsq(x: Array) -> F32:
    """1 / sqrt(x).  A subnormal counts as 0 of its sign."""
    x = _flush(x)
    with np.errstate(all="ignore"):
        near = 1 / np.sqrt(x.astype(np.float64))
        near = np.where(x == 0, np.copysign(np.inf, x), near)
    return _nan(_round(near, x, _rsq_above), x)


def exp2(x: Array) -> F32:
    """2^x.  A subnormal argument counts as 0, a subnormal result becomes 0."""
    x = _flush(x)
    with np.errstate(all="ignore"):
        near = np.exp2(x.astype(np.float64))
    return _nan(_flush(_round(near, x, _exp2_above)), x)


def widen(x: Array) -> F64:
    """float64, without a warning for signalling NaNs."""
    with np.errstate(invalid="ignore"):
        return np.asarray(x).astype(np.float64)


def to_bf16(x: Array) -> Array:
    """To nearest even; a NaN keeps its sign and the upper part of its payload."""
    u = bits(x)
    rounded = (u + np.uint32(0x7FFF) + ((u >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    quiet = (u | QUIET) >> np.uint32(16)
    out = np.where(np.isnan(np.asarray(x)), quiet, rounded).astype(np.uint16)
    return np.asarray(out.view(ml_dtypes.bfloat16))


def from_bf16(x: Array) -> F32:
    wide = np.ascontiguousarray(x).view(np.uint16).astype(np.uint32) << np.uint32(16)
    return np.asarray(wide.view(np.float32))


def to_e4m3fn(x: Array) -> Array:
    """To nearest even, not saturating: what rounds beyond 448 becomes NaN, as infinities do.

    A code is 8 (e + 6) + q for the value q * 2^(e - 3), where q < 8 only in the lowest binade;
    q = 16 is the next binade's 8, so the formula carries by itself.
    """
    x = np.asarray(x, np.float32)
    size = np.abs(x.astype(np.float64))
    finite = np.where(np.isfinite(size), size, 0.0)
    e = np.where(finite < 2.0**-6, -6, np.frexp(finite)[1] - 1)
    code = 8 * (e + 6) + np.rint(np.ldexp(finite, 3 - e)).astype(np.int64)
    code = np.where(np.isfinite(size) & (code < 0x7F), code, 0x7F)
    signed = (code + 0x80 * np.signbit(x)).astype(np.uint8)
    return np.asarray(signed.view(ml_dtypes.float8_e4m3fn))


def _flush(x: Array) -> F32:
    x = np.asarray(x, np.float32)
    return np.where(np.abs(x) < TINY, np.copysign(np.float32(0), x), x)


def _nan(result: F32, *operands: Array) -> F32:
    """`result` with the bits of its NaNs settled."""
    bad = np.isnan(result)
    if not bad.any():
        return result
    chosen = np.full(result.shape, DEFAULT_NAN)
    for operand in reversed(operands):
        operand = np.broadcast_to(np.asarray(operand, np.float32), result.shape)
        chosen = np.where(np.isnan(operand), bits(operand) | QUIET, chosen)
    return np.where(bad, chosen, bits(result)).view(np.float32)


def _round(near: F64, x: F32, above: Callable[[float, float], bool]) -> F32:
    """float64 to float32 where `near` is f(x) but for DOUBT; `above(x, m)`: is f(x) > m?

    The midpoint between two float32 is a float64 whose last 29 bits are 1 and zeros, so the
    distance to it can be read off those bits.
    """
    near = np.asarray(near)
    with np.errstate(all="ignore"):
        result = near.astype(np.float32)
    pattern = near.view(np.uint64)
    low = pattern & BELOW
    gap = np.where(low > MIDDLE, low - MIDDLE, MIDDLE - low)
    doubtful = np.isfinite(result) & (gap <= np.uint64(DOUBT))
    for index in zip(*np.nonzero(doubtful), strict=True):
        under = (pattern[index] & ~BELOW).view(np.float64)
        midpoint = (pattern[index] & ~BELOW | MIDDLE).view(np.float64)
        result[index] = np.float32(under)
        if above(float(x[index]), float(midpoint)):
            result[index] = np.nextafter(np.float32(under), np.float32(np.inf))
    return result


def _rsq_above(x: float, m: float) -> bool:
    """1 / sqrt(x) > m, for positive x and m, in exact arithmetic."""
    return 1 > Fraction(x) * Fraction(m) ** 2


def _exp2_above(x: float, m: float) -> bool:
    """2^x > m.  Equality is impossible: 2^x is irrational, or a power of two and no midpoint."""
    with decimal.localcontext() as context:
        context.prec = 60
        context.Emax, context.Emin = decimal.MAX_EMAX, decimal.MIN_EMIN
        return (decimal.Decimal(x) * decimal.Decimal(2).ln()).exp() > decimal.Decimal(m)
