"""The faults that are put into kernels: one row an operator, each a small edit of one line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from netra_harness.mutation.decoded import Decoded, Program
from netra_harness.mutation.source import Instruction, Line
from netra_harness.mutation.waits import flow

# A line's number -> what stands there instead; an empty string removes it.
Edit = dict[int, str]


@dataclass(frozen=True)
class Mutant:
    """`line` is the line of the kernel's text at fault; `after` is what stands there, or what was
    done."""

    operator: str
    line: int
    before: str
    after: str
    edit: Edit


@dataclass(frozen=True)
class Kernel:
    """A kernel's text and its decoded form; `lines` leads from a line to what it became. `waves`:
    of a workgroup, all whole and in one dimension; 0 where that is not so. `origin` has the file
    and line of each line, since the text holds what the `.s` includes."""

    arch: str
    name: str
    wave: int
    text: list[str]
    source: list[Instruction]
    program: Program
    lines: dict[int, list[int]]
    waves: int = 0
    origin: tuple[Line, ...] = ()

    @property
    def code(self) -> tuple[Decoded, ...]:
        return self.program.code


Make = Callable[[Kernel, Instruction], Iterator[Mutant]]


def mutants(kernel: Kernel) -> Iterator[Mutant]:
    """Every mutant of the kernel, in the order of the operators' table and of the lines."""
    for make in OPERATORS.values():
        for insn in kernel.source:
            yield from make(kernel, insn)


def _changed(operator: str, kernel: Kernel, insn: Instruction, line: str) -> Mutant:
    before = kernel.text[insn.line - 1].strip()
    return Mutant(operator, insn.line, before, line.strip() or "(removed)", {insn.line: line})


# ---- waits, nops, barriers -------------------------------------------------------------------

_COUNT = re.compile(r"(\w+)(\()([^()]*)(\))")


def _is_wait(insn: Instruction) -> bool:
    return insn.mnemonic.startswith("s_waitcnt") and insn.mnemonic != "s_waitcnt_depctr"


def _wait_drop(kernel: Kernel, insn: Instruction) -> Iterator[Mutant]:
    if insn.mnemonic.startswith("s_waitcnt"):
        yield _changed("wait-drop", kernel, insn, "")


def _wait_raise(kernel: Kernel, insn: Instruction) -> Iterator[Mutant]:
    if not _is_wait(insn):
        return
    if insn.mnemonic != "s_waitcnt":  # s_waitcnt_vscnt null, N
        *first, count = insn.operands
        yield _changed("wait-raise", kernel, insn, insn.text((*first, f"({count})+1")))
        return
    line = kernel.text[insn.line - 1]
    for start, end in _counts(line.split("//")[0]):
        edited = f"{line[:start]}(({line[start:end]})+1){line[end:]}"
        yield _changed("wait-raise", kernel, insn, edited)


def _counts(code: str) -> Iterator[tuple[int, int]]:
    """Where the counts of a wait stand: what is between the brackets of `vmcnt(...)`."""
    depth = start = 0
    for at, character in enumerate(code):
        if character == "(":
            depth += 1
            start = at + 1 if depth == 1 else start
        elif character == ")":
            depth -= 1
            if depth == 0:
                yield start, at


def _nop_drop(kernel: Kernel, insn: Instruction) -> Iterator[Mutant]:
    if insn.mnemonic in ("s_nop", "v_nop"):
        yield _changed("nop-drop", kernel, insn, "")


def _nop_shorten(kernel: Kernel, insn: Instruction) -> Iterator[Mutant]:
    if insn.mnemonic == "s_nop" and insn.operands[0] not in ("0", "0x0"):
        yield _changed("nop-shorten", kernel, insn, insn.text((f"({insn.operands[0]})-1",)))


def _barrier_drop(kernel: Kernel, insn: Instruction) -> Iterator[Mutant]:
    if insn.mnemonic == "s_barrier":
        yield _changed("barrier-drop", kernel, insn, "")


_LEAVES = ("s_branch", "s_cbranch", "s_setpc", "s_endpgm", "s_barrier")


def _use_early(kernel: Kernel, insn: Instruction) -> Iterator[Mutant]:
    """The wait moves below the first instruction that needs what it waits for."""
    places = kernel.lines.get(insn.line, [])
    if not _is_wait(insn) or not places:
        return
    early = flow(kernel.program, kernel.arch, frozenset(places)).premature
    users = sorted(user for user, _ in early if user > places[0])
    if not users:
        return  # nothing needs this wait: `wait-drop` shows it
    between = kernel.code[places[0] + 1 : users[0]]
    line = kernel.code[users[0]].line
    if line <= insn.line or any(other.mnemonic.startswith(_LEAVES) for other in between):
        return
    edit = {insn.line: "", line: f"{kernel.text[line - 1]}\n{kernel.text[insn.line - 1]}"}
    before = kernel.text[insn.line - 1].strip()
    yield Mutant("use-early", insn.line, before, f"moved below line {line}", edit)


# ---- caches and scopes -----------------------------------------------------------------------

_CACHE = re.compile(r"buffer_(inv|wbl2|gl\d_inv)|s_dcache_\w+|s_icache_\w+")
_SCOPE = re.compile(r"\s+(sc0|sc1|glc|dlc)\b")


def _cache_drop(kernel: Kernel, insn: Instruction) -> Iterator[Mutant]:
    if _CACHE.fullmatch(insn.mnemonic):
        yield _changed("cache-drop", kernel, insn, "")


def _scope_drop(kernel: Kernel, insn: Instruction) -> Iterator[Mutant]:
    line = kernel.text[insn.line - 1]
    code = line.split("//")[0]
    if insn.mnemonic.startswith("s_"):
        return
    for found in _SCOPE.finditer(code):
        yield _changed("scope-drop", kernel, insn, line[: found.start()] + line[found.end() :])


# ---- operands --------------------------------------------------------------------------------

_PLAIN = re.compile(r"([sva])\[([^\]:]*)\]|([sva])(\d+)|vcc|exec")
# Sources 0 and 1 may be exchanged: the same result, or one that only a NaN's payload tells apart.
_COMMUTES = re.compile(
    r"[sv]_(pk_)?(add|mul|min|max|and|or|xor|xnor|nand|nor|fma|mad|fmac|add3|or3|min3|max3|and_or"
    r"|minimum3?|maximum3?|med3|cmp_(eq|ne|lg)|cmpx?_(eq|ne|lg)|addk|mulk|bcnt|sad|dot2|dot4|dot8)\w*"
)
# Here any two sources may be exchanged.
_SYMMETRIC = re.compile(r"[sv]_(or3|xor3|add3|min3|max3|med3|minimum3|maximum3)_\w+")
_EQUAL = re.compile(r"s_(cmp|cmpk)_(eq|lg)_\w+")
_NO_SWAP = re.compile(
    r"s_(waitcnt|nop|barrier|branch|cbranch|endpgm|set|get|delay|sleep|load|code)\w*|v_mfma\w*"
)


def _file(operand: str) -> str:
    found = _PLAIN.fullmatch(operand)
    return (found[1] or found[3] or "") if found else ""


def _swap_registers(kernel: Kernel, insn: Instruction) -> Iterator[Mutant]:
    """The last two sources of one register file change places; without them, D and a source."""
    if _NO_SWAP.match(insn.mnemonic) or "store" in insn.mnemonic or "load" in insn.mnemonic:
        return
    count = len(insn.operands)
    pairs = [(count - 2, count - 1), (count - 3, count - 2), (0, 1)]
    for a, b in pairs:
        if not 0 <= a < b < count:
            continue
        first, second = insn.operands[a], insn.operands[b]
        if not _file(first) or _file(first) != _file(second) or first == second:
            continue
        if (a, b) == (1, 2) and _COMMUTES.fullmatch(insn.mnemonic):
            continue
        if a >= 1 and _SYMMETRIC.fullmatch(insn.mnemonic):
            continue
        if _EQUAL.fullmatch(insn.mnemonic):
            continue
        swapped = list(insn.operands)
        swapped[a], swapped[b] = second, first
        yield _changed("swap-registers", kernel, insn, insn.text(tuple(swapped)))
        return


_STRICT = {"lt": "le", "le": "lt", "gt": "ge", "ge": "gt"}
_COMPARE = re.compile(r"([sv]_cmpx?k?_)(lt|le|gt|ge)(_\w+)")


def _tail_off_by_one(kernel: Kernel, insn: Instruction) -> Iterator[Mutant]:
    found = _COMPARE.fullmatch(insn.mnemonic)
    if found and not found[3].startswith("_f"):
        other = f"{found[1]}{_STRICT[found[2]]}{found[3]}"
        yield _changed("tail-off-by-one", kernel, insn, insn.text(mnemonic=other))


_NUMBER = re.compile(r"-?(0x[0-9a-fA-F]+|\d+)|-?\d+\.\d+|k[A-Z]\w*")
_OFFSET = re.compile(r"offset:([^\s/]+)")
_NO_CONSTANT = re.compile(
    r"s_(waitcnt|nop|branch|cbranch|endpgm|delay|sleep|setprio|code|inst|sendmsg|clause)\w*"
)


_FLOAT = re.compile(r"v_\w*_b?f(16|32|64)(_\w+)?")
_PATTERNS = re.compile(r"v_(?!cvt)\w*_f(32|64)|[sv]_mov_b32")
_MOVES = re.compile(r"[sv]_(mov|movk|cndmask|cselect|cmov)_")
_PATTERN = re.compile(r"0x[0-9a-fA-F]{8}")  # a float by its bits


def _constant(kernel: Kernel, insn: Instruction) -> Iterator[Mutant]:
    """The first constant becomes another one; a memory offset moves on by a dword. A float that is
    written as bits grows by some 2^-7, as with a wrong digit: its last bit lies below what the
    rounding of a result shows. A zero that is moved becomes -1, which differs from it for numbers
    of every type: as a float, 1 is next to nothing."""
    if _NO_CONSTANT.match(insn.mnemonic):
        return
    line = kernel.text[insn.line - 1]
    offset = _OFFSET.search(line.split("//")[0])
    if offset:
        moved = f"offset:{offset[1]}+4" if "gds" not in line else offset[0]
        yield _changed(
            "constant", kernel, insn, line[: offset.start()] + moved + line[offset.end() :]
        )
        return
    for at, operand in enumerate(insn.operands):
        if not _NUMBER.fullmatch(operand):
            continue
        wrong = list(insn.operands)
        if operand == "0" and _MOVES.match(insn.mnemonic):
            wrong[at] = "-1"
        elif operand == "0" and _FLOAT.fullmatch(insn.mnemonic):
            wrong[at] = "1.0"
        elif _PATTERN.fullmatch(operand) and _PATTERNS.match(insn.mnemonic):
            wrong[at] = f"({operand})+0x10000"
        elif _PATTERN.fullmatch(operand) and insn.mnemonic == "s_mul_hi_u32":
            wrong[at] = f"({operand})+0x1000000"  # a reciprocal, scaled: 2^-7 of it likewise
        elif "." in operand:
            wrong[at] = {"1.0": "2.0", "0.5": "1.0"}.get(operand, "0")
        elif insn.mnemonic.startswith(("s_load", "s_buffer_load")):
            wrong[at] = f"{operand}+4"
        else:
            wrong[at] = f"({operand})+1"
        yield _changed("constant", kernel, insn, insn.text(tuple(wrong)))
        return


OPERATORS: dict[str, Make] = {
    "wait-drop": _wait_drop,
    "wait-raise": _wait_raise,
    "nop-drop": _nop_drop,
    "nop-shorten": _nop_shorten,
    "barrier-drop": _barrier_drop,
    "cache-drop": _cache_drop,
    "scope-drop": _scope_drop,
    "use-early": _use_early,
    "swap-registers": _swap_registers,
    "tail-off-by-one": _tail_off_by_one,
    "constant": _constant,
}

# Faults in what is computed; the others are in when.
VALUES = ("swap-registers", "tail-off-by-one", "constant")

# The faults that hardware hides: nearly all of these must be found.
HIDDEN = ("wait-drop", "wait-raise", "nop-drop", "nop-shorten", "barrier-drop", "use-early")
