"""Proof that a program without some of its waits is still right, by a flow over all its paths.

Each memory instruction adds to one or two counters. An operation of a class that finishes in order
is known to be finished after `wait N` when more than N operations of its class, itself included,
were issued since; one of an unordered class only when N is 0. The flow keeps, for each operation
that may be unfinished, the least number issued since over all paths. A program is right when no
instruction names a register that an unfinished operation will write. What other waves may see, at
barriers and atomics, must be finished as before; scalar loads, of what no kernel writes, need not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from netra_harness.mutation.decoded import Decoded, Program, Register, registers

_WAIT = re.compile(r"(vmcnt|lgkmcnt|vscnt|expcnt)\((\d+)\)")
_SEPARATE = {"s_waitcnt_vscnt": "vscnt", "s_waitcnt_vmcnt": "vmcnt", "s_waitcnt_lgkmcnt": "lgkmcnt"}
_MOST = 64  # no counter goes further

# Where what earlier operations have done to memory may matter to somebody else.
_MEETING = re.compile(r"s_barrier|.*_atomic|buffer_(inv|wbl2|gl\d_inv)|s_dcache|s_icache|s_sendmsg")
_BEYOND = re.compile(r".*movrel|s_set_gpr_idx|s_set_vskip")

Pending = dict[int, int]  # instruction -> fewest operations of its class issued since


@dataclass(frozen=True)
class Operation:
    """What one memory instruction counts as, and what it writes when it is done."""

    kind: str
    counters: tuple[str, ...]
    ordered: bool
    writes: frozenset[Register]


@dataclass(frozen=True)
class Flow:
    """`pending`: what may be unfinished before each instruction (None: never reached);
    `premature`: (instruction, unfinished operation) pairs; `meetings`: unfinished ones where others
    may look, by instruction."""

    operations: list[Operation | None]
    pending: list[Pending | None]
    premature: frozenset[tuple[int, int]]
    meetings: dict[int, frozenset[int]]


def operation(insn: Decoded, arch: str) -> Operation | None:
    """How this instruction counts; None when it is no memory operation."""
    name = insn.mnemonic
    gfx950 = arch == "gfx950"
    stores = "store" in name or ("atomic" in name and not re.search(r"\b(sc0|glc)\b", insn.text))
    into = frozenset() if stores else _destination(insn)
    memory = "vmcnt" if gfx950 or not stores else "vscnt"
    if name.startswith(("global_", "buffer_", "scratch_")):
        if name.startswith("buffer_") and ("inv" in name or "wb" in name):
            counted = name == "buffer_wbl2"
            return Operation("vmcnt", ("vmcnt",), True, frozenset()) if counted else None
        return Operation(memory, (memory,), True, into)
    if name.startswith("flat_"):
        return Operation("flat", (memory, "lgkmcnt"), not gfx950, into)
    if name.startswith("ds_"):
        quiet = name.startswith(("ds_write", "ds_store", "ds_nop")) or _no_return(name)
        return Operation("ds", ("lgkmcnt",), True, frozenset() if quiet else _destination(insn))
    if name.startswith(("s_load", "s_buffer_load", "s_memtime", "s_memrealtime", "s_atc")):
        return Operation("smem", ("lgkmcnt",), False, _destination(insn))
    if name.startswith("s_sendmsg"):
        return Operation("message", ("lgkmcnt",), False, frozenset())
    return None


def _no_return(name: str) -> bool:
    atomic = re.match(r"ds_(add|sub|min|max|and|or|xor|inc|dec|pk_add|cmpst)", name)
    return bool(atomic) and "_rtn" not in name


def _destination(insn: Decoded) -> frozenset[Register]:
    return registers(insn.operands[0]) if insn.operands else frozenset()


def waited(insn: Decoded) -> dict[str, int]:
    """What a wait instruction waits for: counter -> N."""
    if insn.mnemonic in _SEPARATE:
        number = re.search(r"(\d+|0x[0-9a-f]+)$", insn.text)
        return {_SEPARATE[insn.mnemonic]: int(number.group(), 0)} if number else {}
    if insn.mnemonic != "s_waitcnt":
        return {}
    if insn.text.split()[-1] == "0":
        return dict.fromkeys(("vmcnt", "lgkmcnt", "expcnt"), 0)
    return {name: int(count) for name, count in _WAIT.findall(insn.text)}


def flow(program: Program, arch: str, dropped: frozenset[int] = frozenset()) -> Flow:
    """Runs the flow; the waits at the indices `dropped` wait for nothing."""
    operations = [operation(insn, arch) for insn in program.code]
    waits = [{} if i in dropped else waited(insn) for i, insn in enumerate(program.code)]
    before: list[Pending | None] = [None] * len(program.code)
    if program.code:
        before[0] = {}
    work = [0]
    while work:
        i = work.pop()
        state = before[i]
        assert state is not None
        out = _step(state, i, operations, waits[i])
        for j in program.after[i]:
            joined = _join(before[j], out)
            if joined != before[j]:
                before[j] = joined
                work.append(j)
    premature = set()
    meetings = {}
    for i, insn in enumerate(program.code):
        state = before[i]
        if state is None:
            continue
        for x in state:
            if _touches(insn, operations[i], operations[x]):
                premature.add((i, x))
        if _MEETING.match(insn.mnemonic):
            meetings[i] = frozenset(x for x in state if _kind(operations[x]) != "smem")
    return Flow(operations, before, frozenset(premature), meetings)


def _touches(insn: Decoded, own: Operation | None, other: Operation | None) -> bool:
    assert other is not None
    if not insn.registers & other.writes:
        return False
    if own and own.kind == other.kind and own.ordered and other.ordered:
        # The same class writes back in order: only a source would be too early.
        return bool(registers(", ".join(insn.operands[1:])) & other.writes)
    return True


def _step(
    state: Pending, i: int, operations: list[Operation | None], wait: dict[str, int]
) -> Pending:
    out = {x: n for x, n in state.items() if not _finished(operations[x], n, wait)}
    own = operations[i]
    if own is not None:
        for x in out:
            other = operations[x]
            if other is not None and other.kind == own.kind:
                out[x] = min(out[x] + 1, _MOST)
        out[i] = 1
    return out


def _finished(op: Operation | None, since: int, wait: dict[str, int]) -> bool:
    assert op is not None
    if op.ordered:
        return all(c in wait and wait[c] < since for c in op.counters)
    return all(wait.get(c, 1) == 0 for c in op.counters)


def _join(old: Pending | None, new: Pending) -> Pending:
    if old is None:
        return dict(new)
    return {x: min(old.get(x, _MOST), new.get(x, _MOST)) for x in old.keys() | new.keys()}


def _kind(op: Operation | None) -> str:
    return op.kind if op else ""


def _beyond(insn: Decoded) -> bool:
    """Registers chosen at run time: the flow does not see those."""
    return bool(_BEYOND.match(insn.mnemonic))


def _into_lds(insn: Decoded) -> bool:
    """A load that ends in LDS: which bytes it writes is not followed."""
    return bool(re.search(r"_lds_|_lds$", insn.mnemonic)) or insn.text.endswith(" lds")


def is_wait(insn: Decoded) -> bool:
    """An instruction that only waits for counters."""
    return insn.mnemonic.startswith("s_waitcnt") and insn.mnemonic != "s_waitcnt_depctr"


def needless(program: Program, mutant: Program, arch: str) -> str:
    """Why two programs that differ in their waits do the same, or an empty string."""
    if not (program.regular and mutant.regular) or any(_beyond(insn) for insn in program.code):
        return ""
    if without_waits(program) != without_waits(mutant):
        return ""
    here, there = flow(program, arch), flow(mutant, arch)
    changed = _changed_kinds(here, program, there, mutant)
    pairs = zip(program.code, here.operations, strict=True)
    if any(_into_lds(insn) and _kind(own) in changed for insn, own in pairs):
        return ""
    for found in (here, there):
        if any(_kind(found.operations[x]) in changed for _, x in found.premature):
            return ""
    if _meetings(here, program) != _meetings(there, mutant):
        return ""
    return "no path reaches an unfinished operation without it"


def _changed_kinds(here: Flow, program: Program, there: Flow, mutant: Program) -> set[str]:
    """Classes of operations of which something else may be unfinished somewhere."""
    sides = [
        [
            {number[x]: (n, _kind(found.operations[x])) for x, n in (state or {}).items()}
            for insn, state in zip(code.code, found.pending, strict=True)
            if not is_wait(insn)
        ]
        for found, code, number in (
            (here, program, _numbers(program)),
            (there, mutant, _numbers(mutant)),
        )
    ]
    return {
        kind
        for ours, theirs in zip(*sides, strict=True)
        for _, (_, kind) in ours.items() ^ theirs.items()
    }


def without_waits(program: Program) -> list[tuple[str, tuple[int, ...]]]:
    """The other instructions, and which of them can follow each."""
    number = _numbers(program)
    rows = []
    for i, insn in enumerate(program.code):
        if not is_wait(insn):
            text = insn.text if insn.target is None else insn.mnemonic
            rows.append((text, tuple(number[j] for j in program.after[i])))
    return rows


def _numbers(program: Program) -> list[int]:
    """For each index the number, among the instructions that are no waits, of the next such."""
    numbers, count = [], 0
    for insn in program.code:
        numbers.append(count)
        count += not is_wait(insn)
    return numbers


def _meetings(found: Flow, program: Program) -> dict[int, frozenset[int]]:
    number = _numbers(program)
    return {number[i]: frozenset(number[x] for x in xs) for i, xs in found.meetings.items()}
