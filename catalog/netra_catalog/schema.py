"""Checks a document against schema.json, with messages made for its writer.

This reads the part of JSON Schema that schema.json uses and refuses any other
keyword.  It exists beside the jsonschema package because a message must carry
the line and the nearest valid key, and because the command line must start
quickly; a test holds the two to the same verdicts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from netra_catalog.errors import closest, nearest
from netra_catalog.yaml_loader import Document, Where, dotted

Schema = dict[str, Any]

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "integer": (int,),
}
_ENGLISH = {"object": "a mapping", "array": "a list", "string": "a string", "integer": "an integer"}
_KNOWN = frozenset((
    "$schema", "$defs", "$ref", "title", "type", "required", "additionalProperties", "properties",
    "propertyNames", "items", "minItems", "maxItems", "minProperties", "enum", "pattern",
    "minimum", "maximum", "minLength", "maxLength",
))


@dataclass(frozen=True)
class Problem:
    """One thing wrong: where in the document, and whether its key is to blame."""

    where: Where
    message: str
    key: bool = False
    hint: str = ""


@cache
def schema() -> Schema:
    text = Path(__file__).with_name("schema.json").read_text(encoding="utf-8")
    loaded: Schema = json.loads(text)
    return loaded


def problems(document: Document) -> list[Problem]:
    """Everything wrong with the document, in the order of its lines."""
    found = list(_check(schema(), document.data, ()))
    return sorted(found, key=lambda problem: document.mark(problem.where, problem.key).line)


def _check(rule: Schema, value: Any, where: Where) -> Iterator[Problem]:
    if "$ref" in rule:
        rule = schema()["$defs"][rule["$ref"].rsplit("/", 1)[1]]
    unknown = rule.keys() - _KNOWN
    if unknown:
        raise NotImplementedError(f"schema.json uses {sorted(unknown)}, which schema.py ignores")
    name = dotted(where)
    if "type" in rule:
        wanted = [rule["type"]] if isinstance(rule["type"], str) else rule["type"]
        if not any(isinstance(value, _TYPES[kind]) for kind in wanted):
            text = " or ".join(_ENGLISH[kind] for kind in wanted)
            yield Problem(where, f"{name}: want {text}, got {_shown(value)}")
            return
    if "enum" in rule and value not in rule["enum"]:
        close = nearest(str(value), rule["enum"])
        yield Problem(where, f"{name}: {_shown(value)} is not a valid value{close}")
        return
    if isinstance(value, dict):
        yield from _check_mapping(rule, value, where)
    elif isinstance(value, list):
        yield from _check_list(rule, value, where)
    elif isinstance(value, str):
        yield from _check_text(rule, value, where)
    elif not rule.get("minimum", value) <= value <= rule.get("maximum", value):
        low, high = rule.get("minimum", "-"), rule.get("maximum", "-")
        yield Problem(where, f"{name}: {value} is outside {low}..{high}")


def _check_mapping(rule: Schema, value: dict[str, Any], where: Where) -> Iterator[Problem]:
    name = dotted(where)
    prefix = f"{name}: " if name else ""
    properties: dict[str, Schema] = rule.get("properties", {})
    others = rule.get("additionalProperties", True)
    if len(value) < rule.get("minProperties", 0):
        yield Problem(where, f"{name}: is empty", key=True)
    for key in rule.get("required", ()):
        unknown = [k for k in value if k not in properties]
        # A key that is nearly this one is reported below, with this as its mend.
        if key not in value and (others is not False or not closest(key, unknown)):
            yield Problem(where, f"{prefix}required key '{key}' is missing", key=True)
    for key, item in value.items():
        here = (*where, key)
        if "propertyNames" in rule and not re.search(rule["propertyNames"]["pattern"], key):
            want = rule["propertyNames"]["pattern"]
            yield Problem(here, f"{prefix}'{key}' is not a valid name (want {want})", key=True)
        if key in properties:
            yield from _check(properties[key], item, here)
        elif others is False:
            missing = properties.keys() - value.keys()
            close = nearest(key, missing if closest(key, missing) else properties)
            yield Problem(here, f"{prefix}unknown key '{key}'{close}", key=True)
        elif isinstance(others, dict):
            yield from _check(others, item, here)


def _check_list(rule: Schema, value: list[Any], where: Where) -> Iterator[Problem]:
    low, high = rule.get("minItems", 0), rule.get("maxItems", len(value))
    split = any(isinstance(item, str) and item.count("(") != item.count(")") for item in value)
    hint = "a comma inside [ ] splits an item: quote expressions, [\"ceildiv(n, 256)\", 1, 1]"
    if not low <= len(value) <= high or split:
        want = str(low) if low == high else f"{low}..{high}"
        what = (
            f"{len(value)} items, want {want}" if not low <= len(value) <= high
            else "an item has unbalanced parentheses"
        )
        yield Problem(where, f"{dotted(where)}: {what}", hint=hint if split else "")
        return
    for index, item in enumerate(value):
        yield from _check(rule.get("items", {}), item, (*where, index))


def _check_text(rule: Schema, value: str, where: Where) -> Iterator[Problem]:
    name = dotted(where)
    if len(value) < rule.get("minLength", 0):
        yield Problem(where, f"{name}: is empty")
    elif len(value) > rule.get("maxLength", len(value)):
        yield Problem(where, f"{name}: longer than {rule['maxLength']} characters")
    elif "pattern" in rule and not re.search(rule["pattern"], value):
        yield Problem(where, f"{name}: {_shown(value)} does not have the form {rule['pattern']}")


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
