"""Typed buffer elements in exact arithmetic, without a line from the simulator."""

from __future__ import annotations

import struct
from fractions import Fraction
from functools import cache

from memory import F16, F32

# Components from the lowest bit; the position in the table is gfx950's data format.
LAYOUTS: dict[str, tuple[int, ...]] = {
    "INVALID": (), "8": (8,), "16": (16,), "8_8": (8, 8), "32": (32,), "16_16": (16, 16),
    "10_11_11": (11, 11, 10), "11_11_10": (10, 11, 11), "10_10_10_2": (2, 10, 10, 10),
    "2_10_10_10": (10, 10, 10, 2), "8_8_8_8": (8,) * 4, "32_32": (32, 32), "16_16_16_16": (16,) * 4,
    "32_32_32": (32,) * 3, "32_32_32_32": (32,) * 4,
}  # fmt: skip
KINDS = ("UNORM", "SNORM", "USCALED", "SSCALED", "UINT", "SINT", "", "FLOAT")
PACKED_FLOATS = ("10_11_11", "11_11_10")


def exists(layout: str, kind: str) -> bool:
    """On gfx950, which pairs the two freely."""
    widths = LAYOUTS[layout]
    if not widths or not kind:
        return False
    if kind == "FLOAT":
        return layout in PACKED_FLOATS or widths[0] >= 16
    return widths[0] < 32 or kind in ("UINT", "SINT")


def of_gfx1151() -> list[tuple[str, str]]:
    """By number; gfx1151 has fewer pairs."""
    found = [("INVALID", "UNORM")]
    for layout, widths in LAYOUTS.items():
        for kind in KINDS:
            if not exists(layout, kind):
                continue
            if layout in PACKED_FLOATS and kind != "FLOAT":
                continue
            if layout == "10_10_10_2" and "SCALED" in kind:
                continue
            if widths[0] == 32 and kind not in ("UINT", "SINT", "FLOAT"):
                continue
            found.append((layout, kind))
    return found


def signed(x: int, width: int) -> int:
    return x - (1 << width) if x >> (width - 1) else x


def small(x: int, width: int) -> int:
    """An unsigned float of 10 or 11 bits as f16, which has the same exponent."""
    return x << (15 - width)


def number(x: int, width: int, kind: str) -> Fraction:
    """What a component of a norm or scaled kind stands for."""
    value = signed(x, width) if kind[0] == "S" else x
    if "NORM" not in kind:
        return Fraction(value)
    most = (1 << width - (kind == "SNORM")) - 1
    return max(Fraction(-1), Fraction(value, most))


def f16_as_f32(x: int) -> int:
    if F16.nan(x) or x & 0x7FFF == 0x7C00:
        return (x & 0x8000) << 16 | 0x7F800000 | (x & 0x3FF) << 13
    (value,) = struct.unpack("<e", struct.pack("<H", x))
    return encoded(value, False)


def encoded(value: Fraction | float, d16: bool) -> int:
    """As f32 or f16, to nearest even; by way of f64, which is harmless for quotients of integers of
    16 bits."""
    code, pattern = ("<e", "<H") if d16 else ("<f", "<I")
    found: int = struct.unpack(pattern, struct.pack(code, float(value)))[0]
    return found


@cache
def halves() -> dict[int, int]:
    return {f16_as_f32(h): h for h in range(1 << 16)}


def loaded(x: int, width: int, kind: str, d16: bool) -> int:
    """In a register, or half of one."""
    if kind in ("UINT", "SINT"):
        value = signed(x, width) if kind == "SINT" else x
        return value & (0xFFFF if d16 else 0xFFFFFFFF)
    if kind == "FLOAT":
        if width == 32:
            return x
        half = x if width == 16 else small(x, width)
        return half if d16 else f16_as_f32(half)
    return encoded(number(x, width, kind), d16)


def nearest_even(value: Fraction) -> int:
    low = value.numerator // value.denominator
    rest = value - low
    return low + (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and low & 1))


def stored(x: int, width: int, kind: str, d16: bool) -> int:
    """The component's bits, of a register (or half) that has an answer; see `storable`."""
    mask = (1 << width) - 1
    if kind in ("UINT", "SINT"):
        return x & mask
    if kind == "FLOAT":
        if width == 32:
            return f16_as_f32(x) if d16 else x
        half = x if d16 else halves()[x]
        return half if width == 16 else half >> 15 - width
    f = F16 if d16 else F32
    if f.nan(x):
        return 0
    infinite = x & ~f.sign == f.infinity
    value = Fraction(-10 if x & f.sign else 10) if infinite else f.value(x)
    if "NORM" in kind:
        value = min(max(value, Fraction(-1 if kind == "SNORM" else 0)), Fraction(1))
        value *= (1 << width - (kind == "SNORM")) - 1
    return nearest_even(value) & mask
