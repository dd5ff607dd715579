"""Proof that two kernels do the same, by running one wave of both on terms instead of numbers.

Both start with the same unknown registers and memory. Where a branch hangs on something unknown,
both ways are followed. The kernels are equal when on every way both decide by equal terms and ask
for, store and wait for the same, in the same order. What other waves do between barriers is the
same in both, since they run the same kernel.

A loop whose end is not known is followed until nothing new comes: where both waves agree on every
register that is still read, the place is left with what all visits so far have in common, and a
visit that adds nothing is not followed further. Any number of rounds is then covered.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from netra_harness.mutation.decoded import Decoded, Program, Register, registers
from netra_harness.mutation.memory_steps import memory
from netra_harness.mutation.operands import Parsed, parse
from netra_harness.mutation.scalar_steps import QUIET, scalar
from netra_harness.mutation.state import State, Unprovable
from netra_harness.mutation.terms import Terms
from netra_harness.mutation.vector_steps import vector

WAYS, STEPS = 1024, 30_000  # paths, and instructions of all of them: more is not proved


_ONLY_WRITES = re.compile(
    r"v_(mov|add|sub|mul|max|min|fma|and|or|xor|lsh|ash|cvt_f32|exp|rcp|rsq|bfe|perm|cndmask)\w*"
    r"|s_(mov|add|sub|mul|and|or|xor|lshl|lshr|cselect|load|bfe|min|max)\w*"
    r"|(global|buffer)_load_(dword|b32|b64|b96|b128)\w*|ds_(read|load)_b\d+"
)
_READS_FIRST = re.compile(r"\w*(d16|fmac|mac|saveexec|addk|mulk|_co_|fp8|bf8|f16|_lds)\w*")
_VCC: frozenset[Register] = frozenset({("s", 106), ("s", 107)})


@dataclass(frozen=True)
class Fork:
    """A branch whose condition is not known, and where it leads when that is 1 and 0."""

    condition: int
    taken: int
    passed: int


class Machine:
    """A program with its parsed instructions and its branch targets as indices."""

    def __init__(self, program: Program) -> None:
        if not program.regular:
            raise Unprovable("computed branches")
        self.code = program.code
        self.steps = STEPS
        self._after = program.after
        self._read_from: dict[int, frozenset[Register]] = {}
        self._parsed: dict[int, Parsed] = {}
        self._index = {insn.pc: i for i, insn in enumerate(program.code)}

    def parsed(self, i: int) -> Parsed:
        if i not in self._parsed:
            self._parsed[i] = parse(self.code[i])
        return self._parsed[i]

    def read_from(self, at: int) -> frozenset[Register]:
        """Registers that may be read on some way from here, before anything is said of writes."""
        if at not in self._read_from:
            seen, todo = {at}, [at]
            found: set[Register] = set()
            while todo:
                i = todo.pop()
                found |= self._reads(i)
                for j in self._after[i]:
                    if j not in seen:
                        seen.add(j)
                        todo.append(j)
            self._read_from[at] = frozenset(found)
        return self._read_from[at]

    def _reads(self, i: int) -> frozenset[Register]:
        """All that the text names, but for what a load or a plain instruction only writes."""
        insn = self.code[i]
        written = _ONLY_WRITES.match(insn.mnemonic) and not _READS_FIRST.match(insn.mnemonic)
        named = registers(", ".join(insn.operands[1:])) if written else insn.registers
        implied = "vcc" in insn.mnemonic or "div_fmas" in insn.mnemonic
        return named | _VCC if implied else named

    def target(self, insn: Decoded) -> int:
        if insn.target is None:
            raise Unprovable(insn.text)
        return self._index[insn.target]

    def run(self, state: State) -> Fork | None:
        """To the next unknown branch, or to the end."""
        while self.steps:
            self.steps -= 1
            insn = self.code[state.at]
            name = insn.mnemonic
            if name == "s_endpgm":
                state.event("end")
                return None
            if name == "s_branch":
                state.at = self.target(insn)
            elif name.startswith("s_cbranch"):
                fork = self._branch(state, insn)
                if fork is not None:
                    return fork
            else:
                _step(state, self.parsed(state.at))
                state.at += 1
        raise Unprovable("too many instructions, or a loop that does not end")

    def _branch(self, state: State, insn: Decoded) -> Fork | None:
        condition, wanted = _condition(state, insn.mnemonic)
        known = state.terms.value(condition)
        if known is None:
            known = state.assumed.get(condition)
        taken, passed = self.target(insn), state.at + 1
        if known is None:
            return Fork(condition, *((taken, passed) if wanted else (passed, taken)))
        state.at = taken if known == wanted else passed
        return None


def _condition(state: State, name: str) -> tuple[int, int]:
    """The term that a branch looks at, and the value for which it is taken."""
    t = state.terms
    what = name.removeprefix("s_cbranch_")
    if what in ("scc0", "scc1"):
        return state.scc, int(what[-1])
    if what in ("vccz", "vccnz"):
        words = [state.word(106 + i) for i in range(state.width // 32)]
    elif what in ("execz", "execnz"):
        words = state.halves(state.active)
    else:
        raise Unprovable(name)
    bits = state.bits(words)
    known = [t.value(bit) for bit in bits]
    if 1 in known:
        some = t.const(1)
    elif None not in known:
        some = t.const(0)
    else:
        some = t.make("nonzero", *words)
    return some, int(what.endswith("nz"))


def _step(state: State, parsed: Parsed) -> None:
    name = parsed.mnemonic
    if QUIET.fullmatch(name):
        return
    if name == "s_barrier":
        state.event("barrier")
        state.memory = state.terms.make("barrier", state.memory)
        state.lds = state.terms.make("barrier", state.lds)
    elif memory(state, parsed):
        return
    elif name.startswith("v_"):
        vector(state, parsed)
    elif name.startswith("s_"):
        scalar(state, parsed)
    else:
        raise Unprovable(name)


def same(one: Program, other: Program, width: int, waves: int) -> bool:
    """Do both programs do the same for a workgroup of `waves` waves of `width` lanes, each of them
    whole and in one dimension?  False where that is not proved."""
    try:
        return _same(Machine(one), Machine(other), width, waves)
    except (Unprovable, KeyError, IndexError, ValueError):
        return False


def _same(one: Machine, other: Machine, width: int, waves: int) -> bool:
    terms = Terms()
    todo = [(State.entry(terms, width, waves), State.entry(terms, width, waves))]
    known: dict[int, State] = {}  # by place: what all visits have in common
    for _ in range(WAYS):
        if not todo:
            return True
        ours, theirs = todo.pop()
        here, there = one.run(ours), other.run(theirs)
        if ours.events != theirs.events or (here is None) != (there is None):
            return False
        if here is None or there is None:
            continue
        if here.condition != there.condition:
            return False
        for outcome in (0, 1):
            at = here.taken if outcome else here.passed
            there_at = there.taken if outcome else there.passed
            left = ours.fork(here.condition, outcome, at)
            right = theirs.fork(there.condition, outcome, there_at)
            if at != there_at or not _agree(one, other, left, right):
                todo.append((left, right))
                continue
            left.events.clear()
            before = known.get(at)
            known[at] = left if before is None else before.joined(left, at)
            if before is None or _narrower(before, known[at]):
                again = known[at].fork(here.condition, outcome, at) if before is None else known[at]
                todo.append((again.copy(), again.copy()))
    return False


def _agree(one: Machine, other: Machine, ours: State, theirs: State) -> bool:
    """Do both waves go on alike?  Registers that nobody reads any more do not count."""
    found = ours.differing(theirs)
    if found is None:
        return False
    return not found or not found & (one.read_from(ours.at) | other.read_from(ours.at))


def _narrower(before: State, now: State) -> bool:
    """Is there something that `before` knew and `now` does not?"""
    return before.differing(now) != set()
