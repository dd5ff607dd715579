"""docs/oracles.md says what the captures of this checkout say."""

from __future__ import annotations

import re

from netra_catalog import paths
from netra_harness import agreement, captures

PAGE = (paths.repo_root() / "docs/oracles.md").read_text()


def test_the_table_is_what_the_command_makes() -> None:
    assert agreement.table_in(PAGE) == agreement.table(), (
        "run: netra-harness captures agreement --write docs/oracles.md"
    )


def test_no_capture_is_further_from_deployed_than_its_metric_allows() -> None:
    rows = [[cell.strip() for cell in line.split("|")] for line in PAGE.splitlines()
            if re.match(r"\| `", line)]  # fmt: skip
    assert len(rows) == len(captures.files()) > 15
    assert {row[6] for row in rows} == {"0"}


def test_the_commands_shown_exist() -> None:
    from netra_harness.cli import main

    for command, word in re.findall(r"^    netra-harness (\w+) (\w+)", PAGE, re.M):
        found = main.commands[command]
        assert command == "capture" or word in found.commands  # type: ignore[attr-defined]


def test_all_captures_together_stay_small() -> None:
    assert sum(path.stat().st_size for path in captures.files()) < 40e6
