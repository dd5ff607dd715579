"""Sets of integers, exactly: finite unions of intervals, each with the residues that it allows.

`rows % 16 == 0 and rows <= 128` is one piece: 0..128, period 16, residue 0.  What has a period
above LIMIT raises Undecided rather than being guessed.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

FAR = 1 << 140  # beyond every value that the language computes
LIMIT = 1 << 16


class Undecided(Exception):
    """The reasoning does not reach this far."""


@dataclass(frozen=True)
class Piece:
    """low..high, of which those n with n % period in residues."""

    low: int
    high: int
    period: int = 1
    residues: frozenset[int] = frozenset((0,))

    def first(self, start: int | None = None) -> int | None:
        """The smallest member, of those from `start` on."""
        low = self.low if start is None else max(self.low, start)
        if not self.residues:
            return None
        found = min(low + (r - low) % self.period for r in self.residues)
        return found if found <= self.high else None

    def last(self) -> int | None:
        if not self.residues:
            return None
        found = max(self.high - (self.high - r) % self.period for r in self.residues)
        return found if found >= self.low else None

    def __contains__(self, n: int) -> bool:
        return self.low <= n <= self.high and n % self.period in self.residues


def piece(low: int, high: int, period: int = 1, residues: Iterable[int] = (0,)) -> list[Piece]:
    """The piece with its ends at members; [] when it has none."""
    made = Piece(low, high, period, frozenset(residues))
    first, last = made.first(), made.last()
    if first is None or last is None:
        return []
    if len(made.residues) == period:
        return [Piece(first, last)]
    return [Piece(first, last, period, made.residues)]


@dataclass(frozen=True)
class Ints:
    pieces: tuple[Piece, ...]

    @staticmethod
    def between(low: int, high: int) -> Ints:
        return Ints(tuple(piece(low, high)))

    @staticmethod
    def of(values: Iterable[int]) -> Ints:
        """Neighbours become one interval."""
        found: list[Piece] = []
        for n in sorted(set(values)):
            if found and found[-1].high == n - 1:
                found[-1] = Piece(found[-1].low, n)
            else:
                found.append(Piece(n, n))
        return Ints(tuple(found))

    def __bool__(self) -> bool:
        return bool(self.pieces)

    def __contains__(self, n: int) -> bool:
        return any(n in p for p in self.pieces)

    def __and__(self, other: Ints) -> Ints:
        made = [q for a in self.pieces for b in other.pieces for q in _both(a, b)]
        return Ints(tuple(made))

    def __or__(self, other: Ints) -> Ints:
        """Without a member twice."""
        return Ints((*self.pieces, *(other - self).pieces))

    def __sub__(self, other: Ints) -> Ints:
        left = self
        for p in other.pieces:
            outside = [*piece(-FAR, p.low - 1), *piece(p.high + 1, FAR)]
            if p.period > 1:
                rest = frozenset(range(p.period)) - p.residues
                outside += piece(p.low, p.high, p.period, rest)
            left = left & Ints(tuple(outside))
            if len(left.pieces) > 4096:
                raise Undecided("a set has too many parts")
        return left

    @property
    def low(self) -> int:
        return min(p.low for p in self.pieces)

    @property
    def high(self) -> int:
        return max(p.high for p in self.pieces)

    def includes(self, other: Ints) -> bool:
        return not other - self

    def single(self) -> int | None:
        return self.low if self.pieces and self.low == self.high else None

    def samples(self, count: int) -> list[int]:
        """Members to try: both ends of the pieces first, then a few inside."""
        found: list[int] = []
        for p in self.pieces[:count]:
            found += [p.low, p.high]
        for p in self.pieces[:count]:
            for start in (p.low + 1, (p.low + p.high) // 2):
                inside = p.first(start)
                if inside is not None:
                    found.append(inside)
        return list(dict.fromkeys(found))[: max(count, 2)]

    def __iter__(self) -> Iterator[int]:
        for p in self.pieces:
            n = p.first()
            while n is not None:
                yield n
                n = p.first(n + 1)

    def __str__(self) -> str:
        return ", ".join(_text(p) for p in sorted(merged(self), key=lambda p: p.low)) or "nothing"


def _text(p: Piece) -> str:
    if p.low == p.high:
        return str(p.low)
    low = "..." if p.low <= -(1 << 63) else str(p.low)
    high = "..." if p.high >= (1 << 63) - 1 else str(p.high)
    text = f"{low}..{high}" if high != "..." else f"{low} and more"
    if p.period > 1:
        residues = ", ".join(map(str, sorted(p.residues)[:6]))
        more = ", ..." if len(p.residues) > 6 else ""
        text += f" (n % {p.period} in {{{residues}{more}}})"
    return text


def merged(ints: Ints) -> list[Piece]:
    """Plain intervals that touch become one."""
    plain = sorted((p for p in ints.pieces if p.period == 1), key=lambda p: p.low)
    found: list[Piece] = []
    for p in plain:
        if found and p.low <= found[-1].high + 1:
            found[-1] = Piece(found[-1].low, max(found[-1].high, p.high))
        else:
            found.append(p)
    return found + [p for p in ints.pieces if p.period > 1]


def _both(a: Piece, b: Piece) -> list[Piece]:
    low, high = max(a.low, b.low), min(a.high, b.high)
    if low > high:
        return []
    if a.period < b.period:
        a, b = b, a
    if b.period == 1:
        return piece(low, high, a.period, a.residues)
    period = math.lcm(a.period, b.period)
    if period > LIMIT or len(a.residues) * (period // a.period) > LIMIT:
        raise Undecided(f"a set of period {period}")
    residues = [
        n for r in a.residues for n in range(r, period, a.period) if n % b.period in b.residues
    ]
    return piece(low, high, period, residues)


ALL = Ints.between(-FAR, FAR)
NONE = Ints(())
FITS = Ints.between(-(1 << 127), (1 << 127) - 1)


# The members x for which a function of x lies in a set.


def shifted(s: Ints, by: int) -> Ints:
    """{x : x + by in s}"""
    return Ints(tuple(
        Piece(p.low - by, p.high - by, p.period,
              frozenset((r - by) % p.period for r in p.residues))
        for p in s.pieces
    ))


def negated(s: Ints) -> Ints:
    """{x : -x in s}"""
    return Ints(tuple(
        Piece(-p.high, -p.low, p.period, frozenset(-r % p.period for r in p.residues))
        for p in s.pieces
    ))


def divided(s: Ints, by: int) -> Ints:
    """{x : x * by in s}, by not 0"""
    if by < 0:
        return divided(negated(s), -by)
    made: list[Piece] = []
    for p in s.pieces:
        period = p.period // math.gcd(p.period, by)
        residues = [r for r in range(period) if r * by % p.period in p.residues]
        made += piece(-(-p.low // by), p.high // by, period, residues)
    return Ints(tuple(made))


def multiplied(s: Ints, by: int) -> Ints:
    """{x : x // by in s}, by not 0"""
    if by < 0:
        return negated(multiplied(s, -by))  # x // -b == (-x) // b
    made: list[Piece] = []
    for p in s.pieces:
        period = p.period * by if p.period > 1 else 1
        if period > LIMIT:
            raise Undecided(f"a set of period {period}")
        residues: Iterable[int] = (0,)
        if period > 1:
            residues = [r * by + i for r in p.residues for i in range(by)]
        made += piece(p.low * by, p.high * by + by - 1, period, residues)
    return Ints(tuple(made))


def remainders(s: Ints, by: int) -> Ints:
    """{x : x % by in s}, by not 0"""
    if by < 0:
        return negated(remainders(negated(s), -by))  # x % -b == -(-x % b)
    if by > LIMIT:
        raise Undecided(f"a set of period {by}")
    return Ints(tuple(piece(-FAR, FAR, by, [r for r in range(by) if r in s])))


def rounded_up(s: Ints, by: int) -> Ints:
    """{x : ceildiv(x, by) in s}"""
    return negated(multiplied(negated(s), by))


POWERS = Ints.of(1 << n for n in range(127))


# Floats as integers.


def key_of(value: float) -> int:
    """An integer in the order of the floats; -0 and 0 share one."""
    bits: int = struct.unpack("<q", struct.pack("<d", value))[0]
    return bits if bits >= 0 else -(bits & (2**63 - 1))


def float_of(key: int) -> float:
    magnitude: float = struct.unpack("<d", struct.pack("<Q", abs(key)))[0]
    return magnitude if key >= 0 else -magnitude
