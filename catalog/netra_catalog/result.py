"""Result files: what a run found, written once and never edited.

A file holds one JSON document in one form only (`render`), with a SHA-256 of itself; its name
repeats the kind and the first digits of that.  So a change of any byte is noticed, and one id,
`<kind>-<12 digits>`, names a result for good.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from netra_catalog.errors import NetraError
from netra_catalog.paths import display
from netra_catalog.whole_file import write_whole

FOLDER = "results"
SCHEMA = 1
_DIGITS = 12
_MAX_BYTES = 4 << 20


@dataclass(frozen=True)
class Result:
    """One result, as its file states it."""

    path: Path
    data: Mapping[str, Any]

    @property
    def id(self) -> str:
        return self.path.stem

    @property
    def kind(self) -> str:
        return str(self.data["kind"])

    @property
    def tactic(self) -> str:
        return str(self.data["tactic"])

    @property
    def verdict(self) -> str:
        return str(self.data["verdict"])

    @property
    def passed(self) -> bool:
        return self.verdict == "pass"

    @property
    def device(self) -> str:
        """"sim", "hip", or "none" for a decision."""
        return str(self.data["device"]["kind"])

    @property
    def hashes(self) -> Mapping[str, Any]:
        return dict(self.data["hashes"])

    @property
    def details(self) -> Mapping[str, Any]:
        return dict(self.data["details"])


def folder(root: Path, tactic: str) -> Path:
    """Where the results of a tactic lie."""
    return root / FOLDER / tactic


def _canonical(document: Mapping[str, Any]) -> bytes:
    return json.dumps(
        document, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    ).encode()


def digest(document: Mapping[str, Any]) -> str:
    """SHA-256 of everything but the key `digest`, in canonical JSON."""
    rest = {key: value for key, value in document.items() if key != "digest"}
    return hashlib.sha256(_canonical(rest)).hexdigest()


def render(document: Mapping[str, Any]) -> bytes:
    """The bytes of the file, with the digest put in: a line for each key and each item of a list,
    and the same within `details`."""
    return (_rendered({**document, "digest": digest(document)}, "details") + "\n").encode()


def _rendered(value: Any, opened: str = "") -> str:
    if isinstance(value, dict) and value:
        rows = [
            f"{_text(key)}: {_rendered(value[key]) if key == opened else _listed(value[key])}"
            for key in sorted(value)
        ]
        return "{" + ",\n ".join(rows) + "}"
    return _listed(value)


def _listed(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n  " + ",\n  ".join(map(_text, value)) + "]"
    return _text(value)


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=True, allow_nan=False)


@cache
def _validator() -> Any:
    import jsonschema

    schema = json.loads(Path(__file__).with_name("result_schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def write(root: Path, document: Mapping[str, Any]) -> Result:
    """Puts a new result beside the others of its tactic; the file is whole, or not there.

    Raises NetraError for a document that the schema refuses: that is a fault of the caller.
    """
    data = render(document)
    whole = json.loads(data)
    name = f"{whole['kind']}-{whole['digest'][:_DIGITS]}.json"
    path = folder(root, str(whole["tactic"])) / name
    _check(whole, display(path))
    write_whole(path, data, durable=True)
    return Result(path, whole)


def _check(document: Any, where: str) -> None:
    for error in _validator().iter_errors(document):
        key = ".".join(map(str, error.absolute_path))
        raise NetraError(f"{key or 'the document'}: {error.message[:200]}", where=where)


def read(path: Path) -> Result:
    """A result; NetraError when one byte of it is not as it was written."""
    shown = display(path)
    hint = f"results are never edited: git checkout {shown}, or remove it and record anew"
    try:
        with open(path, "rb") as file:
            raw = file.read(_MAX_BYTES + 1)
        document = json.loads(raw)
    except OSError as error:
        raise NetraError(f"cannot be read: {error.strerror}", where=shown) from None
    except (ValueError, RecursionError) as error:
        raise NetraError(f"is damaged: not JSON ({error})", where=shown, hint=hint) from None
    if not isinstance(document, dict) or not isinstance(document.get("digest"), str):
        raise NetraError("is damaged: it has no digest", where=shown, hint=hint)
    try:
        same = render(document) == raw
    except ValueError:  # NaN
        same = False
    if not same:
        raise NetraError("is damaged: its digest is not that of its bytes", where=shown, hint=hint)
    _check(document, shown)
    name = f"{document['kind']}-{document['digest'][:_DIGITS]}"
    place = f"{path.parent.parent.name}/{path.parent.name}"
    if (path.stem, place) != (name, document["tactic"]):
        raise NetraError(
            f"belongs at {FOLDER}/{document['tactic']}/{name}.json", where=shown, hint=hint
        )
    return Result(path, document)


def read_all(root: Path, tactic: str) -> tuple[list[Result], list[NetraError]]:
    """Every result of a tactic in the order of their times, and an error for each damaged file."""
    results: list[Result] = []
    errors: list[NetraError] = []
    for path in sorted(folder(root, tactic).glob("[a-z]*.json")):
        try:
            results.append(read(path))
        except NetraError as error:
            errors.append(error)
    return sorted(results, key=lambda r: (str(r.data["recorded"]), r.id)), errors
