"""Assembles a `.s` as the build does, and says which source line each instruction came from.

The line table that LLVM writes gives every instruction of a `.rept` or `.irp` the line where the
repetition begins. `decode` therefore assembles the text once more with a `.loc` before each line
that can become code, and a compile unit by hand for objdump to find them by.
"""

from __future__ import annotations

import importlib.util
import re
import tempfile
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from netra_catalog import paths

from netra_harness.errors import ToolError
from netra_harness.mutation import decoded

_STATEMENT = re.compile(r"\s+[A-Za-z]\w*(\s|$)")
_METADATA = ".amdgpu_metadata"

# DWARF 4: one compile unit with a line table and the range of the kernel.
_UNIT = """
        .text
.Lnetra_end:
        .section .debug_abbrev,"",@progbits
        .byte   1, 0x11, 0, 0x10, 0x17, 0x11, 0x01, 0x12, 0x06, 0, 0, 0
        .section .debug_info,"",@progbits
        .long   .Lnetra_unit_end - .Lnetra_unit
.Lnetra_unit:
        .short  4
        .long   .debug_abbrev
        .byte   8, 1
        .long   .debug_line
        .quad   {kernel}
        .long   .Lnetra_end - {kernel}
        .byte   0
.Lnetra_unit_end:
        .section .debug_line,"",@progbits
"""


@lru_cache(maxsize=1)
def _tool() -> Any:
    """tools/assemble.py, which the build runs as a program."""
    place = paths.repo_root() / "tools" / "assemble.py"
    spec = importlib.util.spec_from_file_location("netra_assemble", place)
    if spec is None or spec.loader is None or not place.is_file():
        raise ToolError(f"{place} is missing", hint="run this in a checkout")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def assemble(text: Path, built: Path, arch: str, wave: int) -> str:
    """Writes the code object; what the assembler objects to, or an empty string."""
    tool = _tool()
    build: Callable[..., None] = tool.assemble
    try:
        build(
            text, built, arch, paths.llvm_bin(),
            include=(paths.repo_root() / "asm" / "include",), wave=wave if wave == 64 else None,
        )  # fmt: skip
    except tool.AssemblyFailed as error:
        return str(error) or "refused"
    return ""


def placed(text: str, kernel: str) -> str:
    """The text with its line numbers as directives."""
    lines = ['        .file   1 "kernel.s"']
    code = True
    for number, line in enumerate(text.splitlines(), 1):
        code = code and line.strip() != _METADATA
        if code and _STATEMENT.match(line.split("//")[0]):
            lines.append(f"        .loc    1 {number}")
        lines.append(line)
    return "\n".join(lines) + _UNIT.format(kernel=kernel)


def decode(text: str, arch: str, kernel: str, wave: int) -> decoded.Program:
    """The instructions of a kernel's text, each with the line that it stands in.

    Raises ToolError where it does not assemble.
    """
    with tempfile.TemporaryDirectory(prefix="netra-decode-") as folder:
        path, built = Path(folder) / f"{kernel}.s", Path(folder) / f"{kernel}.co"
        path.write_text(placed(text, kernel), encoding="utf-8")
        tool = _tool()
        try:
            tool.assemble(
                path, built, arch, paths.llvm_bin(), debug=False,
                include=(paths.repo_root() / "asm" / "include",),
                wave=wave if wave == 64 else None,
            )  # fmt: skip
        except tool.AssemblyFailed as error:
            raise ToolError(f"{kernel} does not assemble: {error}") from None
        return decoded.decode(built, kernel, paths.llvm_bin(), arch == "gfx1151" and wave == 64)


def lines_of(program: decoded.Program) -> dict[int, list[int]]:
    """Source line -> indices of the instructions that it became."""
    found: dict[int, list[int]] = {}
    for i, insn in enumerate(program.code):
        found.setdefault(insn.line, []).append(i)
    return found


