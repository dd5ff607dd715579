"""Spoilt kernels, on the simulator: each must fail, and say what is wrong and where."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from harness_root import SmallRoot, kernel_text
from netra_catalog.paths import ARCHES
from netra_harness.results import CaseResult
from netra_harness.validate import Report, Settings, TacticReport, rerun, validate
from spoils import SPOILT, capture_only, same

LIMIT = 10.0


def line_of(text: str, pattern: str) -> int:
    """The number of the only line that matches."""
    (found,) = [i for i, line in enumerate(text.splitlines(), 1) if re.search(pattern, line)]
    return found


@dataclass
class Ran:
    reports: dict[str, TacticReport]
    kernels: dict[str, str]
    settings: Settings


@pytest.fixture(scope="module")
def ran(
    tmp_path_factory: pytest.TempPathFactory, llvm_bin: Path, sim_library: Path
) -> Iterator[Ran]:
    """All spoilt tactics of both targets, validated: exact regions in one run, bands in another."""
    roots = {bands: SmallRoot(tmp_path_factory.mktemp("root"), llvm_bin) for bands in (False, True)}
    kernels = {}
    for arch in ARCHES:
        for stem, spoilt in SPOILT.items():
            kernels[f"{arch}/{stem}"] = roots[spoilt.bands].add(
                arch, stem, partial(spoilt.edit, arch=arch), spoilt.yaml, spoilt.base
            )
        for root in roots.values():
            root.add(arch, "right")
            root.add(arch, "right_under_capture", yaml=capture_only)
    with pytest.MonkeyPatch.context() as patch:
        reports: dict[str, TacticReport] = {}
        for bands, root in roots.items():
            patch.setenv("NETRA_ROOT", str(root.path))
            patch.setenv("NETRA_SIM_WAVE_BUDGET", "2000000")
            settings = Settings(device="sim", limit=LIMIT, bands=bands)
            report = validate(settings)
            assert not report.passed
            prefix = "banded " if bands else ""
            reports |= {prefix + entry.tactic.id: entry for entry in report.tactics}
        yield Ran(reports, kernels, settings)


def result(ran: Ran, tactic: str, case: str) -> CaseResult:
    (found,) = [r for r in ran.reports[tactic].results if r.case == case]
    return found


@pytest.mark.parametrize("stem", SPOILT)
@pytest.mark.parametrize("arch", ARCHES)
def test_a_spoilt_kernel_fails_with_the_right_words(ran: Ran, arch: str, stem: str) -> None:
    spoilt = SPOILT[stem]
    tactic = f"{arch}/{stem}"
    got = result(ran, ("banded " if spoilt.bands else "") + tactic, spoilt.case)
    assert not got.passed
    # The sanitizer may notice more: a load from a guard band reads what nobody has written.
    failure = next(f for f in got.failures if f.kind in (spoilt.kind, "fault", "mismatch"))
    assert failure.kind == spoilt.kind, got.failures
    for word in spoilt.words:
        assert word in failure.text
    if spoilt.line is not None:
        line = line_of(ran.kernels[tactic], spoilt.line[arch] + " ")
        assert failure.where == f"asm/{arch}/{stem}.s:{line}"


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("prefix", ["", "banded "])
def test_the_right_kernel_passes(ran: Ran, arch: str, prefix: str) -> None:
    entry = ran.reports[f"{prefix}{arch}/right"]
    assert entry.passed, entry.failed
    arms = {r.case: r.arms for r in entry.results}
    assert arms == {"n1": ["eager"], "n100": ["eager"], "n300": ["eager", "3 replays"]}
    assert all(r.against == ["deployed", "exact"] for r in entry.results)
    assert all(r.device["arch"] == arch for r in entry.results)


@pytest.mark.parametrize("arch", ARCHES)
def test_a_tactic_for_graphs_only_runs_both_ways(ran: Ran, arch: str) -> None:
    entry = ran.reports[f"{arch}/right_under_capture"]
    assert entry.passed, entry.failed
    assert [r.arms for r in entry.results] == [["eager", "3 replays"]] * 3


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("stem", ["crash", "sleep", "no_mask"])
def test_only_the_case_itself_fails(ran: Ran, arch: str, stem: str) -> None:
    others = [r for r in ran.reports[f"{arch}/{stem}"].results if r.case != "n100"]
    if stem == "no_mask":
        assert all(r.failures[0].kind == "fault" for r in others)
    else:
        assert others and all(r.passed for r in others)


def test_the_rerun_command_runs_that_case(ran: Ran) -> None:
    entry = ran.reports["gfx950/one_wrong"]
    command = rerun(ran.settings, entry, "n100")
    assert re.search(
        r"netra-harness validate gfx950/one_wrong --case n100 --device sim --seed \d+$", command
    )


def test_a_report_is_strict_json(ran: Ran) -> None:
    report = Report(ran.settings, list(ran.reports.values()))
    document = json.loads(json.dumps(report.json(), allow_nan=False))
    assert document["passed"] is False and document["arch"] == "gfx1151,gfx950"
    entry = next(t for t in document["tactics"] if t["tactic"] == "gfx950/one_wrong")
    assert (entry["cases"], entry["passed"], entry["failed"]) == (3, 1, 2)
    finding = entry["findings"][0]
    assert finding["comparison"]["first"] == [37] and "--case" in finding["rerun"]
    assert re.fullmatch("[0-9a-f]{64}", entry["kernel_sha256"]["one_wrong"])


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("stem", SPOILT)
def test_an_edit_changes_the_kernel(arch: str, stem: str) -> None:
    spoilt = SPOILT[stem]
    right = kernel_text(arch, spoilt.base)
    assert (spoilt.edit(right, arch) == right) == (spoilt.edit is same)
