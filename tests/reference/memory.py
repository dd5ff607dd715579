"""What the memory instructions compute, in Python integers: written from the manuals' words and not
from the simulator.  A lane's state is that of fixtures/lanes.py."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

M32, M64 = (1 << 32) - 1, (1 << 64) - 1

# part -> (bytes in memory, signed, half of the register that is written: None all, 0 low, 1 high)
PARTS: dict[str, tuple[int, bool, int | None]] = {
    "u8": (1, False, None),
    "i8": (1, True, None),
    "u16": (2, False, None),
    "i16": (2, True, None),
    "d16_u8": (1, False, 0),
    "d16_i8": (1, True, 0),
    "d16_b16": (2, False, 0),
    "d16_hi_u8": (1, False, 1),
    "d16_hi_i8": (1, True, 1),
    "d16_hi_b16": (2, False, 1),
    "b32": (4, False, None),
    "b64": (8, False, None),
    "b96": (12, False, None),
    "b128": (16, False, None),
}
# Instruction suffixes of the parts: (gfx950, gfx1151)
LOADS = {
    "u8": ("ubyte", "u8"),
    "i8": ("sbyte", "i8"),
    "u16": ("ushort", "u16"),
    "i16": ("sshort", "i16"),
    "d16_u8": ("ubyte_d16", "d16_u8"),
    "d16_i8": ("sbyte_d16", "d16_i8"),
    "d16_b16": ("short_d16", "d16_b16"),
    "d16_hi_u8": ("ubyte_d16_hi", "d16_hi_u8"),
    "d16_hi_i8": ("sbyte_d16_hi", "d16_hi_i8"),
    "d16_hi_b16": ("short_d16_hi", "d16_hi_b16"),
    "b32": ("dword", "b32"),
    "b64": ("dwordx2", "b64"),
    "b96": ("dwordx3", "b96"),
    "b128": ("dwordx4", "b128"),
}
STORES = {
    "u8": ("byte", "b8"),
    "d16_hi_u8": ("byte_d16_hi", "d16_hi_b8"),
    "u16": ("short", "b16"),
    "d16_hi_b16": ("short_d16_hi", "d16_hi_b16"),
    "b32": ("dword", "b32"),
    "b64": ("dwordx2", "b64"),
    "b96": ("dwordx3", "b96"),
    "b128": ("dwordx4", "b128"),
}


def size(part: str) -> int:
    return PARTS[part][0]


def dwords(part: str) -> int:
    return max(1, size(part) // 4)


def as_signed(x: int, bits: int) -> int:
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x


class Memory:
    """Bytes at an address; outside them every access is an error of the test."""

    def __init__(self, base: int, data: Any) -> None:
        self.base, self.data = base, data

    def read(self, address: int, count: int) -> int:
        at = address - self.base
        assert 0 <= at <= len(self.data) - count, f"{address:#x} is outside the test's memory"
        return int.from_bytes(bytes(self.data[at : at + count]), "little")

    def write(self, address: int, count: int, value: int) -> None:
        at = address - self.base
        assert 0 <= at <= len(self.data) - count, f"{address:#x} is outside the test's memory"
        raw = (value & (1 << 8 * count) - 1).to_bytes(count, "little")
        self.data[at : at + count] = (
            np.frombuffer(raw, np.uint8) if isinstance(self.data, np.ndarray) else raw
        )


def extended(part: str, raw: int, old: int, keep: bool) -> int:
    """A register after a load of less than a dword."""
    count, sign, half = PARTS[part]
    value = as_signed(raw, 8 * count) if sign else raw
    if half is None:
        return value & M32
    other = old if keep else 0
    if half:
        return (value & 0xFFFF) << 16 | other & 0xFFFF
    return other & 0xFFFF0000 | value & 0xFFFF


def load_lane(
    state: Any, memory: Memory, part: str, dst: int, lane: int, address: int, keep: bool
) -> None:
    if size(part) >= 4:
        for k in range(dwords(part)):
            state.v[dst + k][lane] = memory.read(address + 4 * k, 4)
    else:
        old = int(state.v[dst][lane])
        state.v[dst][lane] = extended(part, memory.read(address, size(part)), old, keep)


def store_lane(state: Any, memory: Memory, part: str, src: int, lane: int, address: int) -> None:
    if size(part) >= 4:
        for k in range(dwords(part)):
            memory.write(address + 4 * k, 4, int(state.v[src + k][lane]))
    else:
        value = int(state.v[src][lane]) >> (16 if PARTS[part][2] else 0)
        memory.write(address, size(part), value)


# ---- atomics -----------------------------------------------------------------------------------


def _integers(bits: int) -> dict[str, Callable[[int, int, int], int]]:
    mask = (1 << bits) - 1

    def signed(x: int) -> int:
        return as_signed(x, bits)

    return {
        "swap": lambda m, d, c: d,
        "cmpswap": lambda m, d, c: d if m == c else m,
        "add": lambda m, d, c: m + d & mask,
        "sub": lambda m, d, c: m - d & mask,
        "rsub": lambda m, d, c: d - m & mask,
        "csub": lambda m, d, c: max(m - d, 0),
        "smin": lambda m, d, c: min(signed(m), signed(d)) & mask,
        "umin": lambda m, d, c: min(m, d),
        "smax": lambda m, d, c: max(signed(m), signed(d)) & mask,
        "umax": lambda m, d, c: max(m, d),
        "and": lambda m, d, c: m & d,
        "or": lambda m, d, c: m | d,
        "xor": lambda m, d, c: m ^ d,
        "inc": lambda m, d, c: 0 if m >= d else m + 1,
        "dec": lambda m, d, c: d if m == 0 or m > d else m - 1,
        "mskor": lambda m, d, c: m & ~d & mask | c,
        "wrap": lambda m, d, c: m - d if m >= d else m + c & mask,
    }


INTEGER = {bits: _integers(bits) for bits in (32, 64)}


class Float:
    """A binary format, by its exact values."""

    def __init__(self, bits: int, mantissa: int) -> None:
        self.bits, self.mantissa = bits, mantissa
        self.sign, self.fraction = 1 << (bits - 1), (1 << mantissa) - 1
        self.infinity = self.sign - 1 & ~self.fraction
        self.bias = (1 << (bits - mantissa - 2)) - 1
        self.quiet = 1 << (mantissa - 1)

    def nan(self, x: int) -> bool:
        return x & ~self.sign > self.infinity

    def flush(self, x: int) -> int:
        return x & self.sign if not x & self.infinity else x

    def value(self, x: int) -> Fraction:
        e, m = (x & self.infinity) >> self.mantissa, x & self.fraction
        power = max(e, 1) - self.bias - self.mantissa
        magnitude = Fraction(m + (self.fraction + 1 if e else 0)) * Fraction(2) ** power
        return -magnitude if x & self.sign else magnitude

    def rank(self, x: int) -> tuple[int, Fraction, int]:
        """Orders everything but NaN, -0 below +0."""
        negative = bool(x & self.sign)
        if x & ~self.sign == self.infinity:
            return (-1 if negative else 1, Fraction(0), 0)
        return (0, self.value(x), 0 if negative else 1)

    def rounded(self, value: Fraction) -> int:
        """To nearest even."""
        sign, value = (self.sign, -value) if value < 0 else (0, value)
        if not value:
            return sign
        e = 1
        while value >= Fraction(2) ** (e + 1 - self.bias) and e < 2 * self.bias + 1:
            e += 1
        scaled = value / Fraction(2) ** (e - self.bias - self.mantissa)
        whole = scaled.numerator // scaled.denominator
        rest = scaled - whole
        whole += rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole & 1)
        pattern = ((e - 1) << self.mantissa) + whole
        return sign | min(pattern, self.infinity)

    def add(self, m: int, d: int, flush: bool) -> int:
        """First NaN operand quieted; opposite infinities give the positive default NaN."""
        if flush:
            m, d = self.flush(m), self.flush(d)
        for x in (m, d):
            if self.nan(x):
                return x | self.quiet
        infinite = [x for x in (m, d) if x & ~self.sign == self.infinity]
        if infinite:
            return self.infinity | self.quiet if len(set(infinite)) == 2 else infinite[0]
        total = self.value(m) + self.value(d)
        if not total:
            return m & d & self.sign
        out = self.rounded(total)
        return self.flush(out) if flush else out

    def pick(self, m: int, d: int, least: bool, flush: bool) -> int:
        """A quiet NaN loses, a signalling one comes out quieted; else an operand as it is."""
        for x in (m, d):
            if self.nan(x) and not x & self.quiet:
                return x | self.quiet
        if self.nan(m) or self.nan(d):
            return d if self.nan(m) and not self.nan(d) else m
        a, b = (self.rank(self.flush(x) if flush else x) for x in (m, d))
        return d if (b < a if least else b > a) else m

    def equal(self, a: int, b: int, flush: bool) -> bool:
        if flush:
            a, b = self.flush(a), self.flush(b)
        return not self.nan(a) and not self.nan(b) and (a == b or not (a | b) & ~self.sign)


F16, BF16, F32, F64 = Float(16, 10), Float(16, 7), Float(32, 23), Float(64, 52)


def atomic(op: str, bits: int, m: int, d: int, c: int = 0, flush: bool = False) -> int:
    """What memory holds afterwards: m memory, d data, c comparand or second operand."""
    if op in INTEGER[bits]:
        return INTEGER[bits][op](m, d, c)
    if op.startswith("pk_add"):
        f = F16 if op == "pk_add_f16" else BF16
        halves = [f.add(m >> s & 0xFFFF, d >> s & 0xFFFF, flush) for s in (0, 16)]
        return halves[0] | halves[1] << 16
    f = F32 if bits == 32 else F64
    if op == "fcmpswap":
        return (f.flush(d) if flush else d) if f.equal(m, c, flush) else m
    if op.startswith("add_f"):
        return f.add(m, d, flush)
    return f.pick(m, d, op.startswith("min"), flush)


def interesting(bits: int, floats: bool, rng: np.random.Generator, count: int) -> list[int]:
    """Edge values of both kinds of number, and random ones."""
    mask = (1 << bits) - 1
    edges = [0, 1, 2, mask, mask - 1, mask >> 1, (mask >> 1) + 1]
    if floats:
        for f in (F32,) if bits == 32 else (F64,):
            one = f.bias << f.mantissa
            edges += [
                f.infinity,
                f.infinity | f.sign,
                f.infinity | f.quiet,
                f.infinity | 1,
                f.infinity | f.quiet | f.sign | 5,
                one,
                one | f.sign,
                one + 1,
                f.fraction,
                f.fraction + 1,
                f.sign | 3,
                f.infinity - 1,
                f.infinity - 1 | f.sign,
            ]
    random = [int(x) & mask for x in rng.integers(0, 1 << 64, count, np.uint64)]
    return edges + random


# ---- buffers -----------------------------------------------------------------------------------


def descriptor(
    base: int,
    stride: int,
    records: int,
    gfx11: bool,
    *,
    oob: int = 3,
    swizzle: int = 0,
    index_stride: int = 0,
    add_tid: bool = False,
    data_format: int = 4,
    resource: int = 0,
) -> int:
    """The 128 bits of a V#; `swizzle` is the enable bit, or gfx1151's element size code."""
    word1 = base >> 32 & 0xFFFF | stride << 16 | (swizzle << 30 if gfx11 else swizzle << 31)
    word3 = index_stride << 21 | add_tid << 23 | resource << 30
    word3 |= (oob << 28 | 0x14 << 12) if gfx11 else data_format << 15
    return base & M32 | word1 << 32 | records << 64 | word3 << 96


def buffer_element(
    v: int,
    gfx11: bool,
    *,
    lane: int,
    idxen: bool,
    index: int,
    offset: int,
    soffset: int,
    at: int,
    count: int,
) -> int | None:
    """Address of the element at byte `at` of an access, or None when it is out of range.
    `offset` is the VGPR's plus the instruction's, in 32 bits."""

    def word(low: int, width: int) -> int:
        return v >> low & (1 << width) - 1

    base, stride, records = word(0, 48), word(48, 14), word(64, 32)
    group, add_tid = 8 << word(117, 2), word(119, 1)
    offset &= M32
    end = offset + at + count
    if gfx11:
        swizzle, element = word(62, 2), 16 if word(62, 2) == 3 else 4
        swizzled = bool(swizzle) and (idxen or add_tid)
        record = index if idxen else lane if add_tid else 0
        structured = record < records and end <= stride
        rule = word(124, 2)
        legal = {
            0: structured,
            1: record < records,
            2: records != 0,
            3: structured if swizzled and stride else end + soffset <= records,
        }[rule]
        legal = legal and word(126, 2) == 0 and v != 0
    else:
        swizzle, element = word(63, 1), 4
        swizzled = bool(swizzle and add_tid)
        record = index if idxen else 0
        if add_tid and (swizzle or not idxen):
            record += lane
        if add_tid:
            stride |= word(111, 4) << 14
        if add_tid and not idxen:
            legal = True
        elif idxen and stride:
            legal = index < records
        else:
            legal = end + soffset <= records
    if not legal:
        return None
    byte = offset + at
    if not swizzled:
        return base + record * stride + byte + soffset
    place = (record // group * stride + byte // element * element) * group
    return base + place + record % group * element + byte % element + soffset
