"""Matrix instructions in Python: layouts as formulas, and the named adders in exact integers.

Those of SMFMAC are what one-hot probes of an MI350 gave, here in the form in which they were
measured (slot of A against slot and lane group of B). Adders follow the published descriptions of
CDNA3 and RDNA3. Nothing here is derived from the simulator.
"""

from __future__ import annotations

import math
import struct
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
        return np.float32(c + 0.0)  # a sum of zeros is +0
    top = max(e for e, _ in sums)
    if trees == 1:
        total = sums[0][1]
    else:
        total = sum((_cut(s, top - 24, False) for _, s in sums), Fraction(0))
    e = max(top, _exponent(c)) if c else top
    return round_f32(_cut(total, e - 31, False) + _cut(Fraction(c), e - 24, False))


# ---- RDNA3's step, as measured on gfx1100 and gfx1151 ------------------------------------------

# By format: the NaN of a NaN factor, the NaN of an invalid sum, infinity, the quiet bit, the sign.
_GFX11 = {
    "f32": (0xFFC00A3D, 0xFFC00000, 0x7F800000, 0x400000, 1 << 31),
    "f16": (0xFE3D, 0xFE00, 0x7C00, 0x200, 1 << 15),
    "bf16": (0xFFFD, 0xFFC0, 0x7F80, 0x40, 1 << 15),
}


def number(bits: int, kind: str) -> float:
    """What a pattern of f16, bf16 or f32 stands for."""
    if kind == "f16":
        half: float = struct.unpack("<e", struct.pack("<H", bits & 0xFFFF))[0]
        return half
    wide = (bits & 0xFFFF) << 16 if kind == "bf16" else bits & 0xFFFFFFFF
    single: float = struct.unpack("<f", struct.pack("<I", wide))[0]
    return single


def flushed(x: float, least: int) -> float:
    """Zero of the same sign for what lies below 2^least."""
    return math.copysign(0.0, x) if abs(x) < 2.0**least else x


def _lead(x: float) -> int:
    return math.frexp(x)[1] - 1


def gfx11_dot2(
    a: list[float], b: list[float], acc: int, out: str, bf16: bool, saturate: bool = False
) -> int:
    """The accumulator's bits (format `out`) after a step for each pair of factors, k ascending."""
    for k in range(0, len(a), 2):
        acc = _gfx11_step(a[k : k + 2], b[k : k + 2], acc, out, bf16, saturate)
    return acc


def _gfx11_step(
    a: list[float], b: list[float], acc: int, out: str, bf16: bool, saturate: bool
) -> int:
    nan, invalid, infinity, quiet, sign = _GFX11[out]
    c = number(acc, out)
    if bf16:
        a, b = ([flushed(x, -126) for x in v] for v in (a, b))
    if any(map(math.isnan, [*a, *b])):
        return nan
    products = [x * y for x, y in zip(a, b, strict=True)]  # exact in f64
    if any(map(math.isnan, products)) or {math.inf, -math.inf} <= set(products):
        return invalid
    if math.isnan(c):
        return acc | quiet
    infinite = {x for x in [*products, c] if math.isinf(x)}
    if infinite:
        return invalid if len(infinite) == 2 else infinity | (sign if min(infinite) < 0 else 0)
    frame = math.copysign(1, c) < 0
    c = flushed(c, -126)
    if not any([*products, c]):
        return 0
    least = -126 if bf16 else -14
    aligned = [max(_lead(x), least) + max(_lead(y), least) - 24
               for x, y in zip(a, b, strict=True) if x and y]
    leads = [_lead(p) for p in products if p]
    if c:
        leads.append(max(_lead(c), -14) if out == "f16" else _lead(c))
    grid = max([*aligned, max(leads) - 26])
    total = int(math.ldexp(abs(c), -grid))
    for p in products:
        on_grid = int(math.ldexp(abs(p), -grid))
        total += on_grid if (math.copysign(1, p) < 0) == frame else ~on_grid
    if total == 0:
        return 0
    minus = sign if frame != (total < 0) else 0
    total = abs(total)
    lead = total.bit_length() - 1 + grid
    last = max(lead - 10, -24) if out == "f16" else lead - 23
    kept = total << (grid - last) if last <= grid else _nearest_even(total, last - grid)
    if not kept:
        return 0  # the sign of a result that rounds to zero is not recorded
    lead = kept.bit_length() - 1 + last
    if out == "f16":
        if lead > 15:
            return minus | (0x7BFF if saturate else infinity)
        half: int = struct.unpack("<H", struct.pack("<e", math.ldexp(kept, last)))[0]
        return minus | half
    if lead < -126:
        return 0
    if lead > 127:
        return minus | infinity
    bits: int = struct.unpack("<I", struct.pack("<f", math.ldexp(kept, last)))[0]
    return minus | (bits >> 16 if out == "bf16" else bits)


def _nearest_even(x: int, shift: int) -> int:
    whole, rest = x >> shift, x & ((1 << shift) - 1)
    half = 1 << (shift - 1)
    return whole + (rest > half or (rest == half and whole & 1))


# ---- what every adder keeps --------------------------------------------------------------------


def adder_bound(a: list[float], b: list[float], c: float, group: int) -> float:
    """How far a sum in groups of `group` products may be off: in each, every term loses less than
    2^(E - 24) and the result half a unit, 2^E being the largest exponent that can occur."""
    most = abs(c) + sum(abs(x * y) for x, y in zip(a, b, strict=True))
    tops = [_exponent(x) + _exponent(y) + 1 for x, y in zip(a, b, strict=True) if x and y]
    top = max([*tops, _lead(most) if most else -126, -126])
    return -(-len(a) // group) * (group + 3) * 2.0 ** (top - 24)
