"""Matrix instructions in Python: layouts as formulas, and the named adders in exact integers.

Those of SMFMAC are what one-hot probes of an MI350 gave, here in the form in which they were
measured (slot of A against slot and lane group of B). Adders follow the published description of
CDNA3. Nothing here is derived from the simulator.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np


def smfmac_slot_of_b(
    double: bool, per_lane: int, slot: int, group: int, pick: int
) -> tuple[int, int]:
    """(slot, lane group) of the element of B that A's `slot` of lane group `group` meets.

    `per_lane` is the number of A's elements in a lane, `pick` its index, 0 to 3. `double`: B takes
    eight registers. Lane groups are of M lanes: four for 16x16, two for 32x32.
    """
    if not double:
        return 4 * (slot // 2) + pick, group
    groups = 4  # measured on 16x16; 32x32 has two groups, see smfmac_slot_of_b_32
    half = per_lane // 2
    b_slot = per_lane * (group // (groups // 2)) + 4 * ((slot % half) // 2) + pick
    return b_slot, 2 * (group % 2) + slot // half


def smfmac_slot_of_b_32(per_lane: int, slot: int, group: int, pick: int) -> tuple[int, int]:
    """The same for the 32x32 shapes whose B takes eight registers (measured for f16 and bf16).

    k = run * (K / 2) + per_lane * lane group + place, where a run of B is `per_lane` elements.
    """
    k = 4 * ((per_lane * group + slot) // 2) + pick
    return per_lane * (k // (2 * per_lane)) + k % per_lane, k // per_lane % 2


# ---- adders ------------------------------------------------------------------------------------


def round_f32(x: Fraction) -> np.float32:
    """The nearest f32, ties to even; the zero is +0."""
    if x == 0:
        return np.float32(0)
    sign, x = (-1 if x < 0 else 1), abs(x)
    exponent = x.numerator.bit_length() - x.denominator.bit_length()
    if Fraction(2) ** exponent > x:
        exponent -= 1
    unit = Fraction(2) ** (max(exponent, -126) - 23)
    whole, rest = divmod(x, unit)
    if 2 * rest > unit or (2 * rest == unit and whole % 2):
        whole += 1
    value = whole * unit
    return np.float32(sign * (math.inf if value >= Fraction(2) ** 128 else float(value)))


def _special(a: list[float], b: list[float], c: float) -> float | None:
    """The result when a NaN or an infinity decides it."""
    with np.errstate(invalid="ignore", over="ignore"):
        products = [np.float64(x) * np.float64(y) for x, y in zip(a, b, strict=True)]
        total = np.float64(c) + sum(p for p in products if not np.isfinite(p))
    return None if np.isfinite(total) else float(total)


def exact(a: list[float], b: list[float], c: float) -> np.float32:
    """c + sum of a[k] b[k], rounded once."""
    special = _special(a, b, c)
    if special is not None:
        return np.float32(special)
    products = (Fraction(x) * Fraction(y) for x, y in zip(a, b, strict=True))
    return round_f32(sum(products, Fraction(c)))


def fma_chain(a: list[float], b: list[float], c: float) -> np.float32:
    """fma(a[k], b[k], acc) for k ascending."""
    acc = np.float32(c)
    for x, y in zip(a, b, strict=True):
        before = acc
        acc = exact([x], [y], float(acc))
        if acc == 0 and before == 0 and (x == 0 or y == 0):
            # A sum of zeros is -0 only when both are.
            both = np.signbit(before) and (np.signbit(x) != np.signbit(y))
            acc = np.float32(-0.0 if both else 0.0)
        elif acc == 0 and math.copysign(1, x) * math.copysign(1, y) < 0 and before == 0:
            acc = np.float32(-0.0)  # a product that vanishes keeps its sign
    return acc


def _exponent(x: float) -> int:
    """max(exponent field, 1) - bias of an f32."""
    return max(int(np.float32(x).view(np.uint32)) >> 23 & 255, 1) - 127


def _cut(x: Fraction, bit: int, toward_zero: bool) -> Fraction:
    """x on the grid 2^bit, toward zero or toward minus infinity."""
    unit = Fraction(2) ** bit
    down = math.floor(abs(x) / unit if toward_zero else x / unit)
    return (-1 if toward_zero and x < 0 else 1) * down * unit


def tr_fdpa(a: list[float], b: list[float], c: float, eight_bits: bool) -> np.float32:
    """CDNA3: groups of 8 products, or of 16 in two trees for 8-bit types (by MMA-Sim)."""
    length = 16 if eight_bits else 8
    acc = np.float32(c)
    for k in range(0, len(a), length):
        acc = _tr_group(a[k : k + length], b[k : k + length], float(acc), 2 if eight_bits else 1)
    return acc


def _tr_group(a: list[float], b: list[float], c: float, trees: int) -> np.float32:
    special = _special(a, b, c)
    if special is not None:
        return np.float32(special)
    sums: list[tuple[int, Fraction]] = []
    for tree in range(trees):
        pairs = [(x, y) for x, y in zip(a[tree::trees], b[tree::trees], strict=True) if x and y]
        if not pairs:
            continue
        top = max(_exponent(x) + _exponent(y) for x, y in pairs)
        cut = (_cut(Fraction(x) * Fraction(y), top - 24, True) for x, y in pairs)
        sums.append((top, sum(cut, Fraction(0))))
    if not sums:
        return np.float32(c)
    top = max(e for e, _ in sums)
    if trees == 1:
        total = sums[0][1]
    else:
        total = sum((_cut(s, top - 24, False) for _, s in sums), Fraction(0))
    e = max(top, _exponent(c)) if c else top
    return round_f32(_cut(total, e - 31, False) + _cut(Fraction(c), e - 24, False))
