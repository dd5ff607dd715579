"""The kernel as the disassembler prints it: instructions with `.s` lines, registers, branches."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from netra_harness.errors import ToolError

_LABEL = re.compile(r"^[0-9a-f]+ <(?P<name>[^>]+)>:$")
_PLACE = re.compile(r"^; (?P<file>\S+):(?P<line>\d+)$")
_CODE = re.compile(r"^\t(?P<text>\S.*?)\s*// (?P<pc>[0-9A-F]+):")
_REGISTER = re.compile(r"\b(?P<file>[sva])(?:(?P<one>\d+)\b|\[(?P<low>\d+):(?P<high>\d+)\])")
_NAMED = {"vcc": (106, 107), "vcc_lo": (106, 106), "vcc_hi": (107, 107), "m0": (124, 124)}
_NAME = re.compile(r"\b(?:vcc_lo|vcc_hi|vcc|m0)\b")
_TARGET = re.compile(r"<[^>+]+(?:\+0x(?P<offset>[0-9a-f]+))?>")

Register = tuple[str, int]  # file "s", "v" or "a", and number


@dataclass(frozen=True)
class Decoded:
    """One instruction; `line` is 0 where the object has no line for it."""

    pc: int
    text: str
    line: int
    target: int | None  # pc of the branch target

    @cached_property
    def mnemonic(self) -> str:
        return re.sub(r"_(e32|e64|dpp|sdwa|e64_dpp)$", "", self.text.split()[0])

    @cached_property
    def operands(self) -> tuple[str, ...]:
        """Split at commas outside brackets; modifiers stay with the last."""
        rest = self.text.partition(" ")[2]
        return tuple(part.strip() for part in re.split(r",(?![^\[]*\])", rest)) if rest else ()

    @cached_property
    def registers(self) -> frozenset[Register]:
        """Every register that the text names."""
        return registers(self.text.partition(" ")[2])


@dataclass(frozen=True)
class Program:
    """`after[i]` has the indices that can follow instruction i; empty at the end of the wave."""

    code: tuple[Decoded, ...]
    after: tuple[tuple[int, ...], ...]
    regular: bool  # every branch has a target that is printed


def registers(text: str) -> frozenset[Register]:
    """The registers that operand text names: v4, s[2:3], vcc, m0."""
    found: set[Register] = set()
    for match in _REGISTER.finditer(text):
        low = int(match["one"] or match["low"])
        high = int(match["one"] or match["high"])
        found.update((match["file"], n) for n in range(low, high + 1))
    for match in _NAME.finditer(text):
        low, high = _NAMED[match.group()]
        found.update(("s", n) for n in range(low, high + 1))
    return frozenset(found)


def decode(path: Path, kernel: str, llvm: Path, wave64: bool = False) -> Program:
    """Reads the code object; raises ToolError when it cannot be disassembled."""
    command = [str(llvm / "llvm-objdump"), "-d", "-l", f"--disassemble-symbols={kernel}"]
    command += ["--mattr=+wavefrontsize64"] if wave64 else []
    done = subprocess.run([*command, str(path)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ToolError(f"llvm-objdump cannot read {path}: {done.stderr.strip()}")
    return program(done.stdout, kernel)


def program(listing: str, kernel: str) -> Program:
    """The instructions of one kernel in a disassembly, up to its last s_endpgm."""
    code: list[Decoded] = []
    inside, start, line = False, 0, 0
    for row in listing.splitlines():
        if label := _LABEL.match(row):
            inside = label["name"] == kernel
            start = int(row.split()[0], 16)
        elif not inside:
            continue
        elif place := _PLACE.match(row):
            line = int(place["line"])
        elif found := _CODE.match(row):
            target = _TARGET.search(row) if _branches(found["text"]) else None
            to = start + int(target["offset"] or "0", 16) if target else None
            code.append(Decoded(int(found["pc"], 16), found["text"], line, to))
    last = max((i for i, x in enumerate(code) if x.mnemonic == "s_endpgm"), default=-1)
    return _linked(tuple(code[: last + 1]))


def _branches(text: str) -> bool:
    return text.startswith(("s_branch", "s_cbranch"))


def _linked(code: tuple[Decoded, ...]) -> Program:
    index = {insn.pc: i for i, insn in enumerate(code)}
    after: list[tuple[int, ...]] = []
    regular = True
    for i, insn in enumerate(code):
        if insn.mnemonic == "s_endpgm":
            after.append(())
            continue
        nexts = [] if insn.mnemonic == "s_branch" else [i + 1]
        if _branches(insn.text):
            regular &= insn.target in index
            nexts += [index[insn.target]] if insn.target in index else []
        regular &= not insn.mnemonic.startswith(("s_setpc", "s_swappc", "s_call", "s_getpc"))
        after.append(tuple(dict.fromkeys(nexts)))
    return Program(code, tuple(after), regular)
