"""Narrow floating-point formats by their tables of values: an arithmetic unlike the simulator's.

A format is the sorted list of its non-negative numbers as float64, which holds them, and every
quotient by a power of two of an f32, exactly. Rounding to nearest looks a value up in that list.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]
U32 = NDArray[np.uint32]


@dataclass(frozen=True)
class Format:
    """`inf` and `nan` are codes without sign, or None where there is none; `top` is the code of the
    largest number."""

    bits: int
    mantissa: int
    bias: int
    top: int
    inf: int | None
    nan: int | None


FORMATS = {
    "fp8": Format(8, 3, 7, 0x7E, None, 0x7F),
    "bf8": Format(8, 2, 15, 0x7B, 0x7C, 0x7F),
    "fp6": Format(6, 3, 1, 0x1F, None, None),
    "bf6": Format(6, 2, 3, 0x1F, None, None),
    "fp4": Format(4, 1, 1, 0x7, None, None),
    "f16": Format(16, 10, 15, 0x7BFF, 0x7C00, 0x7E00),
    "bf16": Format(16, 7, 127, 0x7F7F, 0x7F80, 0x7FC0),
    "f32": Format(32, 23, 127, 0x7F7FFFFF, 0x7F800000, 0x7FC00000),
}
NARROW = ("fp8", "bf8", "fp6", "bf6", "fp4")


def magnitudes(name: str, codes: NDArray[Any]) -> F64:
    """What codes without sign stand for, infinities and NaNs not being looked at."""
    f = FORMATS[name]
    field = np.asarray(codes, np.int64) >> f.mantissa
    fraction = np.asarray(codes, np.int64) & ((1 << f.mantissa) - 1)
    hidden = np.where(field > 0, 1 << f.mantissa, 0)
    exponent = np.maximum(field, 1) - f.bias - f.mantissa
    return np.ldexp((hidden + fraction).astype(np.float64), exponent.astype(np.int32))


@cache
def numbers(name: str) -> F64:
    """Every finite non-negative number of a format of at most 16 bits, by code."""
    return magnitudes(name, np.arange(FORMATS[name].top + 1))


def decode(name: str, codes: U32) -> F64:
    """Codes to float64: signed zeros, infinities and NaN as such."""
    f = FORMATS[name]
    codes = np.asarray(codes, np.uint32)
    low = codes & np.uint32((1 << (f.bits - 1)) - 1)
    value = magnitudes(name, low)
    if f.inf is not None:
        value = np.where(low == f.inf, np.inf, value)
        value = np.where(low > f.inf, np.nan, value)
    elif f.nan is not None:
        value = np.where(low == f.nan, np.nan, value)
    return np.where(codes >> np.uint32(f.bits - 1) & 1, -value, value)


def encode(
    name: str, value: F64, negative: NDArray[np.bool_], ovfl: bool, random: U32 | None = None
) -> U32:
    """float64 to codes; `negative` is the sign, which a NaN has too.

    `ovfl` is MODE.FP16_OVFL. With `random`, rounding is stochastic: the part below the last place
    is cut to 23 - mantissa bits, and the same number of topmost bits of `random` is added.
    """
    f = FORMATS[name]
    size = np.abs(value)
    finite = np.isfinite(size)
    safe = np.where(finite, size, 0.0)
    if random is None:
        code = _nearest(name, safe)
    else:
        code = _stochastic(f, safe, random)
    over = f.top if (ovfl or f.inf is None) else f.inf
    if name == "fp8":
        over = f.top if ovfl else f.nan
    if name == "f32":
        over = f.inf
    code = np.where(code > f.top, over, code)
    if f.bits > 8:
        code = np.where(np.isinf(size), f.inf, code)
    else:
        code = np.where(np.isinf(size), over, code)
    code = np.where(np.isnan(size), f.top if f.nan is None else f.nan, code)
    sign = negative.astype(np.uint64) << np.uint64(f.bits - 1)
    return (code.astype(np.uint64) | sign).astype(np.uint32)


def _nearest(name: str, size: F64) -> NDArray[np.int64]:
    if name == "f32":
        with np.errstate(over="ignore"):
            return size.astype(np.float32).view(np.uint32).astype(np.int64)
    table = numbers(name)
    step = table[-1] - table[-2]
    extended = np.append(table, table[-1] + step)  # what the next code would be
    above = np.clip(np.searchsorted(extended, size), 1, len(extended) - 1)
    below = above - 1
    to_above, to_below = extended[above] - size, size - extended[below]
    up = (to_above < to_below) | ((to_above == to_below) & (above % 2 == 0))
    code = np.where(up, above, below)
    return np.where(size > extended[-1], len(table), code)


def _stochastic(f: Format, size: F64, random: U32) -> NDArray[np.int64]:
    width = 23 - f.mantissa
    _, exponent = np.frexp(size)
    exponent = np.maximum(exponent - 1, 1 - f.bias)  # of the leading bit, or of denormals
    scaled = np.floor(np.ldexp(size, width + f.mantissa - exponent))
    units = (scaled.astype(np.int64) + (random.astype(np.int64) >> (32 - width))) >> width
    code = ((exponent + f.bias - 1).astype(np.int64) << f.mantissa) + units
    return np.where(size == 0, 0, np.where(exponent > 200, f.top + 1, code))


def prng(state: U32) -> U32:
    """The next state of the generator."""
    carried = np.where(state >> np.uint32(31), 197, 0)
    out: U32 = ((state << np.uint32(1)) ^ carried).astype(np.uint32)
    return out


def scale_exponent(scale: U32) -> NDArray[np.int64]:
    """The exponent of a scale, of which nothing else counts."""
    return (scale.astype(np.int64) >> 23 & 0xFF) - 127


def convert(
    source: str, target: str, codes: U32, scale: U32 | None, random: U32 | None, *,
    ovfl: bool, keep_in: bool, keep_out: bool,
) -> U32:
    """One element of each lane. A scale of exponent 255 makes a NaN. `keep_in` and `keep_out` are
    MODE's permission of f32 denormals."""
    value = decode(source, codes)
    negative = (codes >> np.uint32(FORMATS[source].bits - 1) & 1).astype(bool)
    if source == "f32" and not keep_in:
        value = np.where(np.abs(value) < 2.0**-126, np.copysign(0.0, value), value)
    if scale is not None:
        by = scale_exponent(scale)
        by = by if source in NARROW else -by
        value = np.where(scale_exponent(scale) == 128, np.nan, np.ldexp(value, by.astype(np.int32)))
    out = encode(target, value, negative, ovfl, random)
    if source == "f32" and scale is None and FORMATS[target].bits > 8:  # a NaN keeps its payload
        kept = (codes & 0x7FFFFF) >> np.uint32(23 - FORMATS[target].mantissa)
        out = np.where(np.isnan(value), out | kept, out)
    if target == "f32" and not keep_out:
        out = np.where(out & 0x7F800000, out, out & 0x80000000).astype(np.uint32)
    return out
