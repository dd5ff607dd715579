"""Figures that others published: shown beside a tactic of the same op, and never counted.

results/published/*.yaml, one file a source and target: `source`, `arch`, `conditions`, then
`figures` and `rejected`.  Numbers are text, as they were printed; an entry without `op` is about
a whole system.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netra_catalog.errors import NetraError, nearest
from netra_catalog.yaml_loader import Document, load_yaml

_TOP = {"source", "arch", "conditions", "figures", "rejected"}
_FIGURE = ("id", "scope", "what", "unit", "candidate")
_FIGURE_MORE = ("op", "baseline", "baseline_is", "ratio", "remark")
_REJECTED = ("id", "scope", "what", "reason")
SCOPES = ("operation", "system")


@dataclass(frozen=True)
class Published:
    """One entry; `reason` only of a rejected experiment."""

    id: str
    source: str
    arch: str
    conditions: str
    scope: str
    what: str
    op: str = ""
    unit: str = ""
    candidate: str = ""
    baseline: str = ""
    baseline_is: str = ""
    ratio: str = ""
    remark: str = ""
    reason: str = ""

    @property
    def text(self) -> str:
        """On one line: what, the figure, whose it is compared with."""
        if self.reason:
            return f"{self.what}: rejected ({self.scope}), {self.reason}"
        out = f"{self.what}: {self.candidate} {self.unit} ({self.scope})"
        if self.baseline:
            whose = f", {self.baseline_is}" if self.baseline_is else ""
            out += f", against {self.baseline}{whose}"
        out += f", {self.ratio}x" if self.ratio else ""
        return out + (f"; {self.remark}" if self.remark else "")


def load(root: Path) -> list[Published]:
    """Every entry of a checkout, in the order of the files; NetraError for one that is not right.
    An installed package has none."""
    found: list[Published] = []
    for path in sorted((root / "results" / "published").glob("*.yaml")):
        found += _read(load_yaml(path))
    return found


def of(root: Path, op: str, arch: str) -> list[Published]:
    """What was published on an op, for a target."""
    return [p for p in load(root) if p.op == op and p.arch == arch]


def _read(document: Document) -> list[Published]:
    data = document.data
    for key in data.keys() - _TOP:
        raise _wrong(document, (key,), f"unknown key '{key}'{nearest(key, _TOP)}")
    for key in _TOP - {"rejected"}:
        if not data.get(key):
            raise _wrong(document, (), f"required key '{key}' is missing")
    common = {key: str(data[key]) for key in ("source", "arch", "conditions")}
    out: list[Published] = []
    for part, needed, more in (
        ("figures", _FIGURE, _FIGURE_MORE), ("rejected", _REJECTED, ("op",)),
    ):
        for index, entry in enumerate(data.get(part, ())):
            where = (part, index)
            _check(document, where, entry, needed, more)
            if entry["id"] in (p.id for p in out):
                raise _wrong(document, where, f"id '{entry['id']}' occurs twice")
            out.append(Published(**common, **entry))
    return out


def _check(
    document: Document, where: tuple[str, int], entry: Any, needed: tuple[str, ...],
    more: tuple[str, ...],
) -> None:
    if not isinstance(entry, dict):
        raise _wrong(document, where, "an entry is a mapping")
    for key, value in entry.items():
        if key not in needed + more:
            raise _wrong(document, where, f"unknown key '{key}'{nearest(key, needed + more)}")
        if not isinstance(value, str) or not value:
            raise _wrong(document, (*where, key), f"{key} is text: quote it")
    for key in needed:
        if key not in entry:
            raise _wrong(document, where, f"required key '{key}' is missing")
    if entry["scope"] not in SCOPES:
        raise _wrong(document, (*where, "scope"), f"scope is one of {', '.join(SCOPES)}")


def _wrong(document: Document, where: tuple[Any, ...], message: str) -> NetraError:
    return NetraError(message, where=document.at(where))
