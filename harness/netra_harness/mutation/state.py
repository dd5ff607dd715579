"""One wave's registers as terms, and what it has done that others can see."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from netra_harness.mutation.operands import Operand, float_bits
from netra_harness.mutation.terms import ALL, Terms

Lanes = tuple[int, ...]


class Unprovable(Exception):
    """An instruction or a path that the terms do not model; nothing can be said of the mutant."""


@dataclass
class State:
    """`events` is what can be told from outside: loads, stores, barriers, decisions, in order.

    `vector` and `scalar` fill as registers are first read: both programs start with the same.
    """

    terms: Terms
    width: int
    waves: int
    at: int = 0
    vector: dict[tuple[str, int], Lanes] = field(default_factory=dict)
    scalar: dict[int, int] = field(default_factory=dict)
    active: Lanes = ()
    scc: int = 0
    mode: int = 0
    memory: int = 0
    lds: int = 0
    events: list[int] = field(default_factory=list)
    assumed: dict[int, int] = field(default_factory=dict)

    @classmethod
    def entry(cls, terms: Terms, width: int, waves: int) -> State:
        """At the first instruction of a wave whose lanes are all there."""
        scc, mode, memory, lds = (
            terms.make("entry", name) for name in ("scc", "mode", "memory", "lds")
        )
        ones = (terms.const(1),) * width
        return cls(
            terms, width, waves, active=ones, scc=scc, mode=mode, memory=memory, lds=lds
        )

    def fork(self, condition: int, outcome: int, at: int) -> State:
        """The same wave where the condition is known, at another instruction."""
        return replace(
            self, at=at, vector=dict(self.vector), scalar=dict(self.scalar),
            events=list(self.events), assumed={**self.assumed, condition: outcome},
        )  # fmt: skip

    def copy(self) -> State:
        """The same wave, to go on by itself."""
        return replace(
            self, vector=dict(self.vector), scalar=dict(self.scalar), events=list(self.events),
            assumed=dict(self.assumed),
        )  # fmt: skip

    def differing(self, other: State) -> set[tuple[str, int]] | None:
        """Registers that the two waves do not agree on; None where it is more than registers."""
        if (self.active, self.scc, self.mode, self.memory, self.lds) != (
            other.active, other.scc, other.mode, other.memory, other.lds
        ):  # fmt: skip
            return None
        vectors = self.vector.keys() | other.vector.keys()
        scalars = self.scalar.keys() | other.scalar.keys()
        found = {key for key in vectors if self.lanes(*key) != other.lanes(*key)}
        return found | {("s", n) for n in scalars if self.word(n) != other.word(n)}

    def joined(self, other: State, place: int) -> State:
        """A wave of which both are cases: what they disagree on is unknown. `place` names it."""
        t = self.terms

        def one(name: object, a: int, b: int) -> int:
            return a if a == b else t.make("joined", place, name)

        def row(name: object, a: Lanes, b: Lanes) -> Lanes:
            pairs = enumerate(zip(a, b, strict=True))
            return tuple(one((name, lane), x, y) for lane, (x, y) in pairs)

        vectors = self.vector.keys() | other.vector.keys()
        scalars = self.scalar.keys() | other.scalar.keys()
        return replace(
            self,
            at=place,
            vector={k: row(k, self.lanes(*k), other.lanes(*k)) for k in vectors},
            scalar={n: one(("s", n), self.word(n), other.word(n)) for n in scalars},
            active=row("exec", self.active, other.active),
            scc=one("scc", self.scc, other.scc),
            mode=one("mode", self.mode, other.mode),
            memory=one("memory", self.memory, other.memory),
            lds=one("lds", self.lds, other.lds),
            events=[],
            assumed={},
        )

    def event(self, *key: object) -> int:
        """Notes something visible; it becomes a term like any other."""
        term = self.terms.make(*key)
        self.events.append(term)
        return term

    @property
    def everywhere(self) -> bool:
        """Are all lanes known to be active?"""
        return all(self.terms.value(bit) == 1 for bit in self.active)

    # ---- vector registers -----------------------------------------------------------------

    def lanes(self, file: str, number: int) -> Lanes:
        found = self.vector.get((file, number))
        if found is None:
            found = self._fresh(file, number)
            self.vector[file, number] = found
        return found

    def _fresh(self, file: str, number: int) -> Lanes:
        """At entry v0 is the thread of a workgroup with one dimension; the rest is unknown."""
        t = self.terms
        if (file, number) != ("v", 0):
            return tuple(t.make("vector", file, number, lane) for lane in range(self.width))
        if self.waves == 1:
            return tuple(t.const(lane) for lane in range(self.width))
        return tuple(t.thread(self.width, lane) for lane in range(self.width))

    def write(self, file: str, number: int, new: Lanes, active: Lanes | None = None) -> None:
        """Where a lane is active; `active` in place of EXEC."""
        old = self.lanes(file, number)
        bits = self.active if active is None else active
        choose = self.terms.choose
        self.vector[file, number] = tuple(map(choose, bits, new, old))

    # ---- scalar registers and masks -------------------------------------------------------

    def word(self, number: int) -> int:
        found = self.scalar.get(number)
        if found is None:
            found = self.scalar[number] = self.terms.make("scalar", number)
        return found

    def halves(self, bits: Lanes) -> list[int]:
        """The words that hold one bit a lane."""
        t = self.terms
        words = []
        for start in range(0, self.width, 32):
            part = bits[start : start + 32]
            known = [t.value(bit) for bit in part]
            if None in known:
                words.append(t.make("mask", *part))
            else:
                words.append(t.const(sum((v or 0) << i for i, v in enumerate(known))))
        return words

    def bits(self, words: list[int]) -> Lanes:
        """One bit a lane, of words."""
        t = self.terms
        found: list[int] = []
        for word in words[: self.width // 32]:
            key, known = t.key(word), t.value(word)
            if known is not None:
                found += [t.const(known >> i & 1) for i in range(32)]
            elif key[0] == "mask":
                found += [bit for bit in key[1:] if isinstance(bit, int)]
            else:
                found += [t.make("bit", word, i) for i in range(32)]
        return tuple(found)

    def words(self, operand: Operand, count: int | None = None) -> list[int]:
        """A scalar operand's 32-bit words; a constant's second word repeats its sign."""
        t = self.terms
        count = operand.count if count is None else count
        if operand.file == "s":
            if operand.count < count:
                raise Unprovable(f"{operand.text} is too narrow")
            return [self.word(operand.first + i) for i in range(count)]
        if operand.file == "exec":
            return self.halves(self.active)[operand.first : operand.first + count]
        if operand.file == "const":
            sign = ALL if operand.text.startswith("-") else 0
            return [t.const(operand.first), *[t.const(sign)] * (count - 1)]
        bits = float_bits(operand.text) if operand.file == "text" else None
        if bits is not None and count == 1:
            return [t.const(bits)]
        if operand.text == "null":
            return [t.const(0)] * count
        if operand.file == "text" and operand.text not in ("scc", "vccz", "execz"):
            return [t.make("text", operand.text, i) for i in range(count)]
        raise Unprovable(f"{operand.text} is no scalar")

    def set_words(self, operand: Operand, words: list[int]) -> None:
        if operand.text == "null":
            return
        if operand.file == "exec":
            now = self.halves(self.active)
            now[operand.first : operand.first + len(words)] = words
            self.active = self.bits(now[: self.width // 32])
        elif operand.file == "s":
            for i, word in enumerate(words):
                self.scalar[operand.first + i] = word
        else:
            raise Unprovable(f"{operand.text} is written")

    def source(self, operand: Operand) -> list[Lanes]:
        """A vector instruction's source: for each of its registers a term a lane, which is right
        where the lane is active."""
        if operand.file in "va":
            rows = [self.lanes(operand.file, operand.first + i) for i in range(operand.count)]
            rows = [tuple(map(self.terms.where, self.active, row)) for row in rows]
        else:
            rows = [(word,) * self.width for word in self.words(operand)]
        if operand.signs:
            make = self.terms.make
            rows = [tuple(make("signed", operand.signs, x) for x in row) for row in rows]
        return rows
