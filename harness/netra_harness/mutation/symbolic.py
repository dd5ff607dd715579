"""Proof that two kernels do the same, by running one wave of both on terms instead of numbers.

Both start with the same unknown registers and memory. Where a branch hangs on something unknown,
both ways are followed. The kernels are equal when on every way both decide by equal terms and ask
for, store and wait for the same, in the same order. What other waves do between barriers is the
same in both, since they run the same kernel.
"""

from __future__ import annotations

from dataclasses import dataclass

from netra_harness.mutation.decoded import Decoded, Program
from netra_harness.mutation.memory_steps import memory
from netra_harness.mutation.operands import Parsed, parse
from netra_harness.mutation.scalar_steps import QUIET, scalar
from netra_harness.mutation.state import State, Unprovable
from netra_harness.mutation.terms import Terms
from netra_harness.mutation.vector_steps import vector

WAYS, STEPS = 1024, 20_000  # paths, and instructions of one: more is not proved


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
        self._parsed: dict[int, Parsed] = {}
        self._index = {insn.pc: i for i, insn in enumerate(program.code)}

    def parsed(self, i: int) -> Parsed:
        if i not in self._parsed:
            self._parsed[i] = parse(self.code[i])
        return self._parsed[i]

    def target(self, insn: Decoded) -> int:
        if insn.target is None:
            raise Unprovable(insn.text)
        return self._index[insn.target]

    def run(self, state: State) -> Fork | None:
        """To the next unknown branch, or to the end."""
        for _ in range(STEPS):
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
        raise Unprovable("a loop that does not end")

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
            todo.append(tuple(
                state.fork(fork.condition, outcome, fork.taken if outcome else fork.passed)
                for state, fork in ((ours, here), (theirs, there))
            ))  # type: ignore[arg-type]
    return False
