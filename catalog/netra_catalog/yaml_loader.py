"""A YAML reader for tactics that guesses nothing and remembers every line.

What differs from YAML as usual:
  - a plain scalar is a string, except a decimal or 0x integer: `yes`, `null`,
    `1.0` and `1_000` stay text;
  - a key that occurs twice is an error that names both lines;
  - anchors, aliases, tags, merge keys and second documents are errors.
The line and column of every key and value are kept for messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from netra_catalog.errors import NetraError
from netra_catalog.paths import display

Where = tuple[str | int, ...]

_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*|0x[0-9a-fA-F]+)")
_MAX_BYTES = 64 * 1024
_MAX_DEPTH = 16
_MAX_DIGITS = 40  # more than 128 bits need; also bounds the work of int()


@dataclass(frozen=True)
class Mark:
    """Where a key or value starts, from 1, and how a scalar was written."""

    line: int
    column: int
    end_line: int
    quoted: bool = False


@dataclass
class Document:
    path: Path
    data: dict[str, Any]
    lines: int
    keys: dict[Where, Mark] = field(default_factory=dict)
    values: dict[Where, Mark] = field(default_factory=dict)

    def mark(self, where: Where, key: bool = False) -> Mark:
        """The mark of a value (or key), else that of the nearest parent."""
        marks = self.keys if key else self.values
        while where:
            if where in marks:
                return marks[where]
            if where in self.keys:
                return self.keys[where]
            where = where[:-1]
        return Mark(1, 1, 1)

    def at(self, where: Where, key: bool = False) -> str:
        return f"{display(self.path)}:{self.mark(where, key).line}"


def dotted(where: Where) -> str:
    """`launches[0].args[2].offset`."""
    text = ""
    for part in where:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def load_yaml(path: Path) -> Document:
    """Reads one file.  Every error is a NetraError that begins with file:line."""
    name = display(path)
    try:
        with path.open("rb") as file:
            raw = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise NetraError(f"cannot be read: {error.strerror}", where=name) from None
    if len(raw) > _MAX_BYTES:
        raise NetraError(f"is longer than {_MAX_BYTES} bytes", where=f"{name}:1")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise NetraError(f"byte {error.start} is not UTF-8", where=f"{name}:{line}") from None
    return load_text(text, path)


def load_text(text: str, path: Path) -> Document:
    """The same for a text that stands, or would stand, in this file."""
    import yaml  # here: commands that read the compiled catalog need none

    name = display(path)
    document = Document(path, {}, len(text.splitlines()))
    try:
        _Builder(document, name, text).build()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise NetraError(
            f"not YAML: {error.problem or error.context}", where=f"{name}:{line}",
            hint="quote a value that holds ': ' or ' #', that starts with one of \"'*&!%@`{[, "
            "or that holds any of ,[]{} inside brackets",
        ) from None
    except yaml.YAMLError as error:
        position = getattr(error, "position", 0)
        line = text[:position].count("\n") + 1 if isinstance(position, int) else 1
        reason = getattr(error, "reason", None) or str(error)
        raise NetraError(f"not YAML: {reason}", where=f"{name}:{line}") from None
    return document


class _Builder:
    """Turns the parser's events into plain values, with marks beside them."""

    def __init__(self, document: Document, name: str, text: str) -> None:
        import yaml

        self.yaml = yaml
        self.document = document
        self.name = name
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self.events: Iterator[Any] = yaml.parse(text, Loader=loader)

    def build(self) -> None:
        next(self.events)  # the stream starts
        event = next(self.events)
        if isinstance(event, self.yaml.StreamEndEvent):
            raise NetraError("is empty", where=f"{self.name}:1")
        data = self._value(next(self.events), ())
        if not isinstance(data, dict):
            raise NetraError("a tactic is a mapping of keys", where=f"{self.name}:1")
        self.document.data = data
        next(self.events)  # the document ends
        event = next(self.events)
        if not isinstance(event, self.yaml.StreamEndEvent):
            self._fail(event, "a second document; one tactic a file")

    def _fail(self, event: Any, message: str) -> None:
        raise NetraError(message, where=f"{self.name}:{event.start_mark.line + 1}")

    def _mark(self, event: Any) -> Mark:
        start, end = event.start_mark, event.end_mark
        quoted = isinstance(event, self.yaml.ScalarEvent) and event.style not in (None, "")
        return Mark(start.line + 1, start.column + 1, end.line + 1, quoted)

    def _value(self, event: Any, where: Where) -> Any:
        if isinstance(event, self.yaml.AliasEvent) or getattr(event, "anchor", None):
            self._fail(event, "anchors and aliases are not allowed: write the value out")
        if getattr(event, "tag", None):
            self._fail(event, f"tag {event.tag} is not allowed: quote the value instead")
        if len(where) > _MAX_DEPTH:
            self._fail(event, f"nested deeper than {_MAX_DEPTH}")
        self.document.values[where] = self._mark(event)
        if isinstance(event, self.yaml.ScalarEvent):
            return self._scalar(event)
        if isinstance(event, self.yaml.SequenceStartEvent):
            return self._sequence(where)
        return self._mapping(where)

    def _scalar(self, event: Any) -> str | int:
        text: str = event.value
        if event.style in (None, "") and _INTEGER.fullmatch(text):
            if len(text) > _MAX_DIGITS:
                self._fail(event, f"integer of {len(text)} digits")
            return int(text, 0)
        return text

    def _sequence(self, where: Where) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := next(self.events), self.yaml.SequenceEndEvent):
            items.append(self._value(event, (*where, len(items))))
        return items

    def _mapping(self, where: Where) -> dict[str, Any]:
        items: dict[str, Any] = {}
        while not isinstance(event := next(self.events), self.yaml.MappingEndEvent):
            if not isinstance(event, self.yaml.ScalarEvent):
                self._fail(event, "a key must be a plain word")
            if event.anchor or event.tag:
                self._fail(event, "a key with an anchor or a tag is not allowed")
            key: str = event.value
            if key == "<<":
                self._fail(event, "merge keys are not allowed: write the values out")
            here = (*where, key)
            if key in items:
                first = self.document.keys[here].line
                self._fail(
                    event,
                    f"key '{dotted(here)}' occurs twice: first in line {first}, "
                    f"again in line {event.start_mark.line + 1}",
                )
            self.document.keys[here] = self._mark(event)
            items[key] = self._value(next(self.events), here)
        return items
