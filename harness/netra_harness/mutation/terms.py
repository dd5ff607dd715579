"""Values of registers as terms: equal terms are equal values, whatever the inputs.

A term is a number; its key says which operation makes it of which terms. What is not known to
simplify stays as it is written, so two terms that differ may still be equal, never the other way
round. Numbers are 32 bits wide; sums and products commute (a NaN's payload excepted, which hardware
takes from one of the two).
"""

from __future__ import annotations

from functools import reduce

ALL = 0xFFFFFFFF

_NO_WRAP = 1 << 24  # a thread's number times this stays below 2^32
Key = tuple[object, ...]


class Terms:
    """The table of terms; both programs that are compared share one."""

    def __init__(self) -> None:
        self._number: dict[Key, int] = {}
        self._keys: list[Key] = []
        self._masked: dict[tuple[int, int], int] = {}

    def make(self, *key: object) -> int:
        """The term of this key, as it stands."""
        found = self._number.get(key)
        if found is None:
            found = self._number[key] = len(self._keys)
            self._keys.append(key)
        return found

    def key(self, term: int) -> Key:
        return self._keys[term]

    def const(self, value: int) -> int:
        return self.make("const", value & ALL)

    def value(self, term: int) -> int | None:
        """The number, where the term is one."""
        key = self._keys[term]
        number = key[1] if key[0] == "const" else None
        return number if isinstance(number, int) else None

    # ---- operations ------------------------------------------------------------------------

    def symmetric(self, name: str, *terms: int) -> int:
        """An operation whose operands may change places."""
        return self.make(name, *sorted(terms))

    def choose(self, bit: int, yes: int, no: int) -> int:
        """`yes` where the bit is 1."""
        known = self.value(bit)
        if known is not None:
            return yes if known else no
        yes, no = self.where(bit, yes), self.where(bit, no, 2)
        return yes if yes == no else self.make("choose", bit, yes, no)

    def where(self, bit: int, term: int, side: int = 1) -> int:
        """The term where the bit is 1; with `side` 2, where it is 0."""
        key = self._keys[term]
        while key[0] == "choose" and key[1] == bit:
            term = int(str(key[1 + side]))
            key = self._keys[term]
        return term

    def add(self, *terms: int) -> int:
        total, rest = 0, []
        for term in terms:
            known = self.value(term)
            if known is None:
                rest.append(term)
            else:
                total += known
        total &= ALL
        if not rest:
            return self.const(total)
        return self._sum(rest, total)

    def _sum(self, rest: list[int], total: int) -> int:
        """One flat sum, so that its order does not matter."""
        flat: list[int] = []
        for term in rest:
            key = self.key(term)
            if key[0] == "sum":
                flat += [t for t in key[2:] if isinstance(t, int)]
                total += int(str(key[1]))
            else:
                flat.append(term)
        total &= ALL
        if len(flat) == 1 and not total:
            return flat[0]
        return self.make("sum", total, *sorted(flat))

    def multiply(self, a: int, b: int) -> int:
        known, other = self.value(a), self.value(b)
        if known is not None and other is not None:
            return self.const(known * other)
        return self.symmetric("product", a, b)

    def both(self, a: int, b: int) -> int:
        """a & b."""
        for x, y in ((a, b), (b, a)):
            known = self.value(x)
            if known is not None:
                return self.masked(y, known)
        return a if a == b else self.symmetric("and", a, b)

    def either(self, a: int, b: int) -> int:
        """a | b."""
        for x, y in ((a, b), (b, a)):
            known = self.value(x)
            if known is not None:
                other = self.value(y)
                if other is not None:
                    return self.const(known | other)
                return y if known == 0 else self.make("or#", known, self.masked(y, ALL & ~known))
        return a if a == b else self.symmetric("or", a, b)

    def differ(self, a: int, b: int) -> int:
        """a ^ b."""
        known, other = self.value(a), self.value(b)
        if known is not None and other is not None:
            return self.const(known ^ other)
        if a == b:
            return self.const(0)
        return self.symmetric("xor", a, b)

    def left(self, a: int, count: int) -> int:
        known = self.value(a)
        if known is not None:
            return self.const(known << count)
        key = self.key(a)
        if key[0] == "thread":  # wave * scale + offset
            scale, offset = int(str(key[1])), int(str(key[2]))
            if scale << count <= _NO_WRAP:
                return self.thread(scale << count, offset << count)
        return self.make("left", self.masked(a, ALL >> count), count) if count else a

    def right(self, a: int, count: int) -> int:
        known = self.value(a)
        if known is not None:
            return self.const(known >> count)
        key = self.key(a)
        if key[0] == "thread" and int(str(key[1])) >= 1 << count:
            return self.thread(int(str(key[1])) >> count, int(str(key[2])) >> count)
        if key[0] == "thread&" and count:
            return self.make("right", a, count)
        return self.make("right", self.masked(a, ALL << count & ALL), count) if count else a

    def thread(self, scale: int, offset: int) -> int:
        """wave * scale + offset, where scale is a power of two and offset is below it."""
        return self.make("thread", scale, offset)

    def masked(self, term: int, mask: int) -> int:
        """term & mask: of the term only what these bits depend on."""
        if mask == 0:
            return self.const(0)
        if (term, mask) not in self._masked:
            self._masked[term, mask] = self._mask(term, mask)
        return self._masked[term, mask]

    def _mask(self, term: int, mask: int) -> int:
        if mask == ALL:
            return term
        key = self.key(term)
        known = self.value(term)
        if known is not None:
            return self.const(known & mask)
        parts = [part for part in key[1:] if isinstance(part, int)]
        match key[0]:
            case "masked":
                return self.masked(parts[1], parts[0] & mask)
            case "or#":
                inner = self.masked(parts[1], mask & ~parts[0])
                return self.either(inner, self.const(parts[0] & mask))
            case "and" | "or" | "xor":
                inside = [self.masked(part, mask) for part in parts]
                again = {"and": self.both, "or": self.either, "xor": self.differ}[str(key[0])]
                return reduce(again, inside)
            case "choose":
                bit, yes, no = parts
                return self.choose(bit, self.masked(yes, mask), self.masked(no, mask))
            case "left":
                return self.left(self.masked(parts[0], mask >> parts[1]), parts[1])
            case "right":
                return self.right(self.masked(parts[0], mask << parts[1] & ALL), parts[1])
            case "sum":
                low = (1 << mask.bit_length()) - 1  # no carry comes down
                if low != ALL:
                    inside = [self.masked(part, low) for part in parts[1:]]
                    term = self.add(self.const(parts[0] & low), *inside)
            case "thread":
                scale, offset = parts
                kept = offset & mask
                if mask < scale:
                    return self.const(kept)
                high = self.make("thread&", scale, mask & ~(scale - 1))
                return self.either(high, self.const(kept)) if kept else high
            case "pack":  # two halves
                low_half, high_half = parts
                if not mask & 0xFFFF0000:
                    return self.make("masked", mask, self.make("pack", low_half, self.const(0)))
                if not mask & 0xFFFF:
                    return self.make("masked", mask, self.make("pack", self.const(0), high_half))
        return self.make("masked", mask, term)
