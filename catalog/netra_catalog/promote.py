"""Writes into a tactic's YAML what its evidence gives, and nothing else.

The rest of the file stays byte for byte, comments too; the new file is checked to say the same,
and then takes the place of the old one at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from netra_catalog.errors import NetraError
from netra_catalog.paths import display
from netra_catalog.tactic import Tactic
from netra_catalog.whole_file import write_whole
from netra_catalog.yaml_loader import load_text, load_yaml

_KEYS = ("maturity", "evidence")
_A_LINE = 3  # ids


def edited(text: str, path: Path, maturity: str, ids: Sequence[str]) -> str:
    """The YAML with these two keys; an experiment has neither."""
    document = load_text(text, path)
    lines = text.splitlines(keepends=True)
    gone: set[int] = set()
    place = len(lines)
    starts = sorted(mark.line for where, mark in document.keys.items() if len(where) == 1)
    for key in _KEYS:
        if key in document.data:
            first = document.keys[(key,)].line
            after = next((line for line in starts if line > first), len(lines) + 1)
            last = after - 1
            while last > first and not _indented(lines[last - 1]):
                last -= 1  # blank lines and comments above the next key are its own
            gone |= set(range(first - 1, last))
            place = min(place, first - 1)
    kept = [line for number, line in enumerate(lines) if number not in gone]
    before, rest = kept[:place], kept[place:]
    block = _block(maturity, ids)
    if block and before and not before[-1].endswith("\n"):
        before[-1] += "\n"
    if block and not gone and before and before[-1].strip():
        before.append("\n")
    return "".join([*before, *block, *rest])


def _indented(line: str) -> bool:
    return line[:1] in (" ", "]", "-") and bool(line.strip())


def _block(maturity: str, ids: Sequence[str]) -> list[str]:
    if maturity == "experiment":
        return []
    out = [f"maturity: {maturity}\n"]
    rows = [", ".join(ids[i : i + _A_LINE]) for i in range(0, len(ids), _A_LINE)]
    for number, row in enumerate(rows):
        head = "evidence: [" if number == 0 else "           "
        out.append(f"{head}{row}{']' if number == len(rows) - 1 else ','}\n")
    return out


def write(tactic: Tactic, maturity: str, ids: Iterable[str]) -> bool:
    """Puts maturity and evidence into the file of a tactic; says whether that changed it.

    Raises NetraError, and writes nothing, when the file would then say anything else otherwise.
    """
    path, named = tactic.path, list(ids)
    before = path.read_text(encoding="utf-8")
    after = edited(before, path, maturity, named)
    if after == before:
        return False
    old, new = load_yaml(path).data, load_text(after, path).data
    rest = [{k: v for k, v in data.items() if k not in _KEYS} for data in (old, new)]
    said = (new.get("maturity", "experiment"), new.get("evidence", []))
    if rest[0] != rest[1] or said != (maturity, named if maturity != "experiment" else []):
        raise NetraError(
            "maturity and evidence cannot be written without changing the rest",
            where=display(path), hint="put each of the two at the margin, on lines of its own",
        )
    write_whole(path, after.encode(), durable=True)
    return True
