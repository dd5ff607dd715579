"""docs/catalog.md shows what the commands print."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner
from netra_catalog.cli import main

ROOT = Path(__file__).resolve().parents[1]


def shown() -> list[tuple[str, list[str]]]:
    """Each command of the page with the lines under it; `...` stands for lines left out."""
    found: list[tuple[str, list[str]]] = []
    for line in (ROOT / "docs" / "catalog.md").read_text().splitlines():
        if line.startswith("    $ netra-catalog "):
            found.append((line.removeprefix("    $ netra-catalog "), []))
        elif line.startswith("    ") and found and line.strip() != "...":
            found[-1][1].append(line[4:])
    return found


def essence(line: str) -> str:
    """Without column widths and counts, which change with every tactic that is added."""
    return re.sub(r"(tactics|kernels|bytes):? \d+", r"\1 N", " ".join(line.split()))


@pytest.mark.parametrize(("command", "lines"), shown(), ids=lambda value: str(value)[:30])
def test_the_page_shows_what_is_printed(
    command: str, lines: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(ROOT)
    for name in ("NETRA_ROOT", "NETRA_ENABLE", "NETRA_ADMIT"):
        monkeypatch.delenv(name, raising=False)
    words = shlex.split(command)
    if words == ["build"]:
        words += ["--output", str(tmp_path / "catalog.bin")]
        lines = [line.replace("build/catalog.bin", str(tmp_path / "catalog.bin")) for line in lines]
    result = CliRunner().invoke(main, words)
    assert lines
    printed = {essence(line) for line in result.output.splitlines()}
    missing = [line for line in lines if essence(line) not in printed]
    assert not missing, (missing, result.output)


def test_every_command_is_on_the_page() -> None:
    edit = {"promote", "reject", "quarantine"}  # docs/evidence.md
    assert {command.split()[0] for command, _ in shown()} >= set(main.commands) - edit
    for name in main.commands:
        result = CliRunner().invoke(main, [name, "--help"])
        assert result.exit_code == 0 and "--json" in result.output
