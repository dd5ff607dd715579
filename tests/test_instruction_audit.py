"""docs/instruction-audit.md: every point has a test that exists, or says why it has none."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import netra_sim
import pytest

HERE = Path(__file__).resolve().parent
TABLE = HERE.parent / "docs" / "instruction-audit.md"
POINTS = 126  # of the audit; its pull requests come on top


def lines() -> list[tuple[str, str, str]]:
    found = re.findall(r"^\| (\d+) \| (.*?) \| (.*) \|$", TABLE.read_text(), re.M)
    return [(number, what, where) for number, what, where in found]


@cache
def source(module: str) -> str:
    path = HERE / module
    return path.read_text() if path.is_file() else ""


@cache
def functions(module: str) -> set[str]:
    return {n.name for n in ast.walk(ast.parse(source(module))) if isinstance(n, ast.FunctionDef)}


@cache
def rows() -> set[str]:
    return {r["name"] for r in netra_sim.rows()}


def test_every_point_is_there_once() -> None:
    numbers = [number for number, _, _ in lines()]
    assert len(set(numbers)) == len(numbers)
    assert sum(len(n) == 3 for n in numbers) == POINTS


@pytest.mark.parametrize("number, what, where", lines(), ids=[n for n, _, _ in lines()])
def test_point(number: str, what: str, where: str) -> None:
    named = re.findall(r"`(test_\w+\.py)(?:::(\w+))?`(?: \((.*?)\)(?=,|$|;))?", where)
    assert named or where.startswith("exception: "), f"{number} ({what}): neither test nor reason"
    for module, function, programs in named:
        assert source(module), f"{module} does not exist"
        assert not function or function in functions(module), f"{module} has no {function}"
        for program in programs.split(", ") if programs else ():
            known = program in source(module) or (function == "test_rows" and program in rows())
            assert known, f"{module} does not name '{program}'"
