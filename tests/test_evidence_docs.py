"""docs/evidence.md shows what the commands print, on the real catalog."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from harness_root import ROOT, runner
from netra_catalog import evidence, result
from netra_catalog.cli import main as catalog
from netra_harness.cli import main as harness

PAGE = (ROOT / "docs" / "evidence.md").read_text()
COMMANDS = {"netra-catalog": catalog, "netra-harness": harness}


def shown() -> list[tuple[str, list[str]]]:
    """Each command of the page with the lines under it; `...` stands for what is left out."""
    found: list[tuple[str, list[str]]] = []
    for line in PAGE.splitlines():
        if line.startswith("    $ "):
            found.append((line.removeprefix("    $ "), []))
        elif line.startswith("    ") and found and line.strip() != "...":
            found[-1][1].append(line[4:])
    return [entry for entry in found if entry[1]]


@pytest.mark.parametrize(("command", "lines"), shown(), ids=lambda value: str(value)[:40])
def test_the_page_shows_what_is_printed(
    command: str, lines: list[str], sim_library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("NETRA_ROOT", raising=False)
    program, *words = shlex.split(command)
    done = runner().invoke(COMMANDS[program], words)
    assert done.exit_code == 0, done.output
    printed = done.output.splitlines()
    for line in lines:
        pattern = re.escape(line).replace(re.escape("..."), ".*")
        assert any(re.fullmatch(pattern, there) for there in printed), (line, done.output)


def test_every_command_and_kind_is_on_the_page() -> None:
    for command, names in ((catalog, ("promote", "reject", "quarantine")),
                           (harness, ("revalidate", "bench", "probe"))):  # fmt: skip
        for name in names:
            done = runner().invoke(command, [name, "--help"])
            assert done.exit_code == 0 and "--json" in done.output and name in PAGE
    for rung in evidence.LADDER:
        assert rung.gives in PAGE and rung.command.split()[1] in PAGE
    for key in evidence.KEYED["oracle"]:
        assert f"| {key} |" in PAGE


def test_two_real_candidates_stand_as_rejected_with_their_evidence() -> None:
    for stem, kind, verdict in (("in_order", "oracle", "fail"), ("reread", "counters", "fail")):
        results, errors = result.read_all(ROOT, f"gfx950/add_rmsnorm_bf16_n2048_{stem}")
        assert not errors
        by_id = {r.id: r for r in results}
        decision = next(r for r in results if r.kind == "rejected")
        grounds = [by_id[id] for id in decision.details["rests_on"]]
        assert [(r.kind, r.verdict) for r in grounds] == [(kind, verdict)]
