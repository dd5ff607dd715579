"""The instructions of a kernel's `.s`: where they stand, and their operands as they are written.

Code that a kernel includes is part of it: `whole` puts an included file in the place of its
`#include` when it holds instructions outside of macros.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_INSTRUCTION = re.compile(
    r"^(?P<indent>\s+)(?P<mnemonic>(?:s|v|ds|global|flat|scratch|t?buffer)_[a-z0-9_]+)"
    r"(?P<gap>\s*)(?P<rest>.*)$"
)
# An operand: sign, bars, a name or number, an index in brackets, a half.
_OPERAND = re.compile(r"-?(?:\||abs\()?-?[\w.\\()]*(?:\[[^\]]*\])?(?:\.[lh])?\|?\)?")
_INCLUDE = re.compile(r'\s*#\s*include\s+"(?P<name>[^"]+)"')
_END = ".amdgpu_metadata"


@dataclass(frozen=True)
class Instruction:
    """`line` counts from 1; `modifiers` is what follows the last operand, blanks included."""

    line: int
    mnemonic: str
    operands: tuple[str, ...]
    modifiers: str
    indent: str
    gap: str
    tail: str  # blanks and comment

    def text(
        self, operands: tuple[str, ...] | None = None, *, mnemonic: str = "",
        modifiers: str | None = None,
    ) -> str:
        """The line again, with some of it replaced."""
        given = self.operands if operands is None else operands
        name = mnemonic or self.mnemonic
        gap = self.gap[: max(1, len(self.gap) + len(self.mnemonic) - len(name))]
        return (
            f"{self.indent}{name}{gap if given else ''}{', '.join(given)}"
            f"{self.modifiers if modifiers is None else modifiers}{self.tail}"
        )


@dataclass(frozen=True)
class Line:
    """One line of a whole kernel, and the file and line that it comes from."""

    text: str
    path: Path
    number: int


def whole(path: Path, include: Path) -> list[Line]:
    """The lines of a kernel with the code that it includes from the folder `include`."""
    lines: list[Line] = []
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        found = _INCLUDE.match(text)
        part = include / found["name"] if found else None
        if part is not None and part.is_file() and _has_code(part):
            lines += whole(part, include)
        else:
            lines.append(Line(text, path, number))
    return lines


def _has_code(path: Path) -> bool:
    depth = 0
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        word = (line.split() or [""])[0]
        depth += (word == ".macro") - (word == ".endm")
        if not depth and parse(number, line) is not None:
            return True
    return False


def instructions(text: str) -> Iterator[Instruction]:
    """Every instruction line before the metadata, inside macros and repetitions too."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() == _END:
            return
        found = parse(number, line)
        if found is not None:
            yield found


def parse(number: int, line: str) -> Instruction | None:
    """The instruction on this line, if there is one."""
    code = line.split("//", 1)[0].rstrip()
    found = _INSTRUCTION.match(code)
    if found is None:
        return None
    operands, modifiers = _split(found["rest"])
    return Instruction(
        number, found["mnemonic"], operands, modifiers, found["indent"], found["gap"],
        line[len(code):],
    )  # fmt: skip


def _split(rest: str) -> tuple[tuple[str, ...], str]:
    pieces, depth, start = [], 0, 0
    for at, character in enumerate(rest):
        depth += (character in "[(") - (character in "])")
        if character == "," and depth == 0:
            pieces.append(rest[start:at].strip())
            start = at + 1
    last = rest[start:].strip()
    if not last:
        return tuple(pieces), ""
    operand = _OPERAND.match(last)
    cut = operand.end() if operand else len(last)
    if last[cut:] and not last[cut].isspace():  # an expression with blanks, or a modifier alone
        cut = 0 if ":" in last.split("[")[0] and not pieces else len(last)
    return (*pieces, *([last[:cut]] if cut else [])), last[cut:]
