"""The kill table in a Markdown file: a row for each tactic, kept when another run replaces others.

A cell is killed/equivalent/survived of one operator. The rows stand between two marks; what is
outside stays as it is.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from netra_harness.errors import NetraError
from netra_harness.mutation.operators import HIDDEN, OPERATORS

BEGIN, END = "<!-- kill table -->", "<!-- end of the kill table -->"
_ROW = re.compile(r"^\| (?P<tactic>gfx\w+/\w+) \|(?P<cells>.*)\|$")
_MISSING = "Not run yet: "
_SHARES = ("waits, nops, barriers", "all")


def merge(path: Path, tactics: list[Mapping[str, Any]], known: set[str]) -> None:
    """Writes the rows of these tactics (as `mutate --json` has them) into the file; rows of tactics
    that are not `known` any more go, and known ones without a row are named. Raises NetraError when
    the file has no table."""
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise NetraError(f"{path} has no place for the table", hint=f"write {BEGIN} and {END}")
    before, rest = text.split(BEGIN)
    inside, after = rest.split(END)
    rows = {name: line for name, line in rows_of(inside).items() if name in known}
    rows |= {str(one["tactic"]): row(one) for one in tactics}
    made = "\n".join([BEGIN, "", *_head(), *(rows[name] for name in sorted(rows)), ""])
    missing = sorted(known - set(rows))
    if missing:
        made += f"\n{_MISSING}{', '.join(missing)}\n"
    made += "\n".join(["", *totals(rows), "", END])
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as out:
        out.write(before + made + after)
    os.chmod(out.name, 0o644)
    os.replace(out.name, path)


def rows_of(text: str) -> dict[str, str]:
    """The rows of a table by tactic."""
    found = (_ROW.match(line) for line in text.splitlines())
    return {match["tactic"]: match.group() for match in found if match}


def not_run(text: str) -> set[str]:
    """The tactics that the file says have no row yet."""
    lines = [line for line in text.splitlines() if line.startswith(_MISSING)]
    return {name for line in lines for name in line.removeprefix(_MISSING).split(", ")}


def counts_of(line: str) -> dict[str, tuple[int, int, int]]:
    """Killed, equivalent and survived of a row, by operator."""
    found = _ROW.match(line)
    if found is None:
        raise ValueError(f"no row of a kill table: {line}")
    cells = [cell.strip() for cell in found["cells"].split("|")]
    counts = {}
    for name, cell in zip(OPERATORS, cells, strict=False):
        if cell:
            killed, equivalent, survived = map(int, cell.split("/"))
            counts[name] = (killed, equivalent, survived)
    return counts


def share(counts: Mapping[str, tuple[int, int, int]], names: tuple[str, ...]) -> float:
    """Killed among those that are not equivalent; 1 where there are none."""
    some = [counts[name] for name in names if name in counts]
    killed, survived = sum(c[0] for c in some), sum(c[2] for c in some)
    return killed / (killed + survived) if killed + survived else 1.0


def row(tactic: Mapping[str, Any]) -> str:
    """`| tactic | 3/0/0 | ... | 100% | 98.1% |`."""
    counts = {
        name: (one["killed"], one["equivalent"], one["survived"])
        for name, one in tactic["operators"].items()
    }
    cells = ["/".join(map(str, counts[name])) if name in counts else "" for name in OPERATORS]
    shares = [share(counts, names) for names in (HIDDEN, tuple(OPERATORS))]
    return _line([str(tactic["tactic"]), *cells, *(_percent(one) for one in shares)])


def totals(rows: Mapping[str, str]) -> list[str]:
    """A table of all tactics together: how many of each operator, and its share of equivalents."""
    lines = [_line(["operator", "killed", "equivalent", "survived", "equivalent"])]
    lines.append(_line(["---"] * 5))
    table = [counts_of(line) for line in rows.values()]
    for name in OPERATORS:
        some = [counts[name] for counts in table if name in counts]
        killed, equivalent, survived = (sum(c[i] for c in some) for i in range(3))
        whole = killed + equivalent + survived
        if whole:
            cells = [name, str(killed), str(equivalent), str(survived)]
            lines.append(_line([*cells, _percent(equivalent / whole)]))
    return lines


def _head() -> list[str]:
    names = ["tactic", *OPERATORS, *_SHARES]
    return [_line(names), _line(["---"] * len(names))]


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _percent(value: float) -> str:
    """Rounded down, so that 100% means all."""
    return f"{int(value * 1000) / 10:g}%"
