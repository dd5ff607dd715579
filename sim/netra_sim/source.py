"""What the text of a kernel shows that its object no longer does: banner, maps, macros."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Finding = dict[str, Any]

LABELS = ("Contract", "Launch", "Numerics", "Oracle", "Schedule")
_COLUMNS = 100
_REGISTER_FILES = {"v": "vector", "s": "scalar", "a": "accumulator"}
_INDEXED = re.compile(r"(?<![\w.])([vsa])\[([^\]]*)\]")
_NAME = re.compile(r"(?<![\w.\\])([kvsa])[A-Z]\w*")
_NUMBERED = re.compile(r"(?<![\w.\\])[vsa](?:\d+|\[\d+(?::\d+)?\])(?!\w)")
_MAP = re.compile(r"(?:karg|sreg|vreg|areg)\s+(\w+)\s*,\s*([^,/]+)")
_HIDDEN = (
    (re.compile(r"s_wait"), "a wait"),
    (re.compile(r"s_c?branch|s_setpc|s_swappc|s_call"), "a branch"),
    (re.compile(r"(?:global|flat|buffer|tbuffer|scratch|ds|s_(?:buffer_)?(?:load|store))_"),
     "a memory access"),
    (re.compile(r"v_cmpx|s_\w+saveexec"), "a write of EXEC"),
)  # fmt: skip
_EXEC = re.compile(r"s_\w+\s+exec(?:_lo|_hi)?\b")
_ARGUMENT = re.compile(r"\.name:\s*(\w+)\s*,\s*\.offset:\s*(\d+)")


def check(text: str, name: str) -> list[Finding]:
    """Findings of the source `text` of the kernel `name`; `at` holds the line and its number."""
    lines = text.splitlines()
    found = [
        *_banner(lines),
        *_layout(lines),
        *_files(lines),
        *_macros(lines),
        *_offsets(lines),
    ]
    return [_finding(name, lines, *one) for one in found]


_Told = tuple[int, str, str, str]  # line (0 is the first), rule, what, mend


def _finding(name: str, lines: list[str], line: int, rule: str, what: str, mend: str) -> Finding:
    text = lines[line].strip() if line < len(lines) else ""
    place = f"{name}:{line + 1}"
    return {
        "kind": "source", "rule": rule, "severity": "error", "certainty": "house style",
        "kernel": Path(name).stem, "text": what, "mend": mend,
        "at": {"place": place, "line": place, "text": text}, "other": None, "wave": None,
        "workgroup": None, "lane": None, "register": "", "address": None, "count": 1,
    }  # fmt: skip


def _code(line: str) -> str:
    return line.split("//")[0]


def _banner(lines: list[str]) -> Iterator[_Told]:
    banner = []
    for line in lines:
        if not line.startswith("//"):
            break
        banner.append(line)
    at = 0
    for label in LABELS:
        places = [k for k, line in enumerate(banner) if re.match(rf"// {label}\s+\S", line)]
        if not places:
            yield 0, "banner", f"the banner has no '{label}'", f"add a line '// {label}   ...'"
        elif places[0] < at:
            yield places[0], "banner", f"'{label}' is out of order", "order: " + ", ".join(LABELS)
        at = max([at, *places[:1]])


def _layout(lines: list[str]) -> Iterator[_Told]:
    for k, line in enumerate(lines):
        if "\t" in line:
            yield k, "layout", "a tab", "spaces: code in column 8, operands in column 24"
        if len(line) > _COLUMNS:
            yield k, "layout", f"{len(line)} columns", f"at most {_COLUMNS}"
        if re.match(r"\s*\.include\b", line):
            yield k, "layout", ".include loses dependencies and line numbers", "#include"
        if re.match(r"\s*\.set\s+[kvsa][A-Z]", line):
            yield k, "layout", ".set lets a second definition win in silence", ".equiv"


def _files(lines: list[str]) -> Iterator[_Told]:
    """A name's first letter says what it is; the assembler takes v[sRow] for a vector register."""
    metadata = False
    for k, line in enumerate(lines):
        code = _code(line)
        metadata |= ".amdgpu_metadata" in code
        if metadata or re.match(r"\s*(?:\.equiv|\.set|\.if|#|karg|[sva]reg)\b", code):
            continue
        for file, inside in _INDEXED.findall(code):
            for name in _NAME.finditer(inside):
                if name.group(1) != file:
                    yield (
                        k,
                        "register file",
                        f"{name.group(0)} is used as a {_REGISTER_FILES[file]} register",
                        f"{file}[...] takes names that begin with {file}",
                    )
        for number in _NUMBERED.findall(code):
            yield (
                k,
                "undocumented symbol",
                f"{number} has no name",
                "give it an entry in the register map",
            )


def _macros(lines: list[str]) -> Iterator[_Told]:
    inside = ""
    for k, line in enumerate(lines):
        code = _code(line).strip()
        words = code.split()
        if words[:1] == [".macro"] and len(words) > 1:
            inside = words[1].rstrip(",")
        elif words[:1] == [".endm"]:
            inside = ""
        elif inside:
            hidden = [what for pattern, what in _HIDDEN if pattern.match(code)]
            if _EXEC.match(code):
                hidden.append("a write of EXEC")
            for what in hidden:
                yield k, "macro", f"macro {inside} hides {what}", "write it out where it happens"


def _offsets(lines: list[str]) -> Iterator[_Told]:
    """kDst is the offset of the argument dst."""
    offsets = dict(_ARGUMENT.findall("\n".join(lines)))
    for k, line in enumerate(lines):
        entry = _MAP.match(_code(line).strip())
        if not entry or not entry.group(1).startswith("k"):
            continue
        name = entry.group(1)
        argument = re.sub(r"(?<=.)(?=[A-Z])", "_", name[1:]).lower()
        declared = offsets.get(argument, offsets.get(argument.replace("_", "")))
        value = entry.group(2).strip()
        if declared is not None and value.isdigit() and int(value) != int(declared):
            yield (
                k,
                "argument map",
                f"{name} is {value}, and .args has {argument} at {declared}",
                "make them agree",
            )
