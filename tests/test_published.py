"""Figures from papers: shown as published, and counted for nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from netra_catalog import evidence, load, published
from netra_catalog.cli import main
from netra_catalog.errors import NetraError

GOOD = """source: "A paper"
arch: gfx950
conditions: "one machine"
figures:
  - {id: a, scope: operation, op: x.y, what: "a thing", unit: ms, candidate: "1.5", baseline: "3"}
rejected:
  - {id: b, scope: system, what: "another", reason: "slower"}
"""


@pytest.fixture
def paper(tmp_path: Path) -> Path:
    folder = tmp_path / "results" / "published"
    folder.mkdir(parents=True)
    path = folder / "paper.yaml"
    path.write_text(GOOD)
    return path


def test_entries_carry_source_and_conditions(paper: Path) -> None:
    root = paper.parents[2]
    first, second = published.load(root)
    assert (first.source, first.conditions) == ("A paper", "one machine")
    assert first.text == "a thing: 1.5 ms (operation), against 3"
    assert second.text == "another: rejected (system), slower"
    assert published.of(root, "x.y", "gfx950") == [first]
    assert published.of(root, "x.y", "gfx1151") == []


@pytest.mark.parametrize(("old", "new", "text"), [
    ('source: "A paper"\n', "", "paper.yaml:1: required key 'source' is missing"),
    ("unit: ms, ", "", r"paper.yaml:5: required key 'unit' is missing"),
    ("scope: operation", "scope: kernel", "scope is one of operation, system"),
    ('"1.5"', "1.5e1", None),
    ('candidate: "1.5"', "candidate: 15", "candidate is text: quote it"),
    ("id: b", "id: a", "id 'a' occurs twice"),
    ("unit:", "units:", r"unknown key 'units' \(did you mean 'unit'\?\)"),
])
def test_a_figure_without_its_context_is_refused(
    paper: Path, old: str, new: str, text: str | None
) -> None:
    paper.write_text(GOOD.replace(old, new))
    if text is None:
        assert published.load(paper.parents[2])[0].candidate == "1.5e1"
        return
    with pytest.raises(NetraError, match=text):
        published.load(paper.parents[2])


def test_show_prints_them_as_published_and_nothing_counts_them(
    repo_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repo_root)
    monkeypatch.delenv("NETRA_ROOT", raising=False)
    text = CliRunner().invoke(main, ["show", "gfx950/argmax_f32"]).output
    assert "  published  argmax of 16 x 248320 f32: 7.949 µs (operation), against 56.304" in text
    assert "not measured here" in text
    form = json.loads(CliRunner().invoke(main, ["show", "gfx950/argmax_f32", "--json"]).output)
    assert [p["ratio"] for p in form["published"]] == ["7.08"]
    # Whatever is published: no rung of the ladder looks there.
    [tactic] = load("gfx950/argmax_f32", root=repo_root)
    found = evidence.standing(tactic)
    assert all("published" not in str(r.path) for r in found.results)
    assert not {"verified", "accepted"} & {found.maturity}


def test_every_source_has_both_kinds_and_the_rejected_have_reasons(repo_root: Path) -> None:
    entries = published.load(repo_root)
    assert {e.scope for e in entries} == {"operation", "system"}
    by_source: dict[str, set[bool]] = {}
    for entry in entries:
        by_source.setdefault(entry.source, set()).add(bool(entry.reason))
        assert entry.conditions and (entry.reason or entry.candidate)
    assert all(kinds == {True, False} for kinds in by_source.values()) and len(by_source) >= 4
