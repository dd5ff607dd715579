"""What a run looks like: a table on a terminal, plain lines elsewhere."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from netra_harness.compare import number, unit
from netra_harness.results import CaseResult
from netra_harness.validate import Report, Settings, TacticReport, rerun, worst

COLUMNS = ("tactic", "target", "cases", "worst error", "seconds")


class Progressing:
    """Shows how far a run is: a bar on a terminal, a line per finished tactic elsewhere."""

    def __init__(self, console: Console, settings: Settings, verbose: bool, quiet: bool) -> None:
        self._console = console
        self._settings = settings
        self._verbose = verbose
        self._quiet = quiet
        self._bar: Progress | None = None
        self._task: Any = None

    def started(self, reports: list[TacticReport]) -> None:
        total = sum(len(report.names) for report in reports)
        if self._console.is_terminal and not self._quiet:
            self._bar = Progress(
                TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
                TimeElapsedColumn(), console=self._console, transient=True,
            )  # fmt: skip
            self._task = self._bar.add_task("validating", total=total)
            self._bar.start()

    def heard(self, report: TacticReport, result: CaseResult) -> None:
        if not result.passed:
            self._say(failure_text(self._settings, report, result))
        elif self._verbose:
            self._say(f"ok    {report.tactic.id} {result.case}  {case_text(result)}")
        if self._bar is not None:
            self._bar.update(self._task, advance=1, description=report.tactic.id)
        elif report.done and not self._quiet:
            verdict = "ok  " if report.passed else "FAIL"
            self._say(f"{verdict}  {'  '.join(row(report))}")

    def stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


def failure_text(settings: Settings, report: TacticReport, result: CaseResult) -> str:
    """What differed, where, and the command that shows it again."""
    lines = [f"FAIL  {report.tactic.id}, case {result.case}"]
    for failure in result.failures:
        lines += [f"  {line}" for line in failure.text.splitlines()]
        if failure.arm:
            lines.append(f"  launch: {failure.arm}")
        if failure.where:
            lines.append(f"  where: {failure.where}")
    if not result.failures:
        lines.append("  nothing was compared")
    lines.append(f"  rerun: {rerun(settings, report, result.case)}")
    return "\n".join(lines)


def case_text(result: CaseResult) -> str:
    """One case on one line, for -v."""
    return (
        f"{', '.join(result.arms)}; {worst_text([result])}; "
        f"{result.seconds:.2f} s ({result.launch_seconds:.2f} s in launches)"
    )


def worst_text(results: list[CaseResult]) -> str:
    """`deployed 0 (bitwise), exact 0.51 ulp`."""
    parts = []
    for against, entry in sorted(worst(results).items()):
        value = float(entry["value"])
        if entry["metric"] == "bitwise" and value == 0:
            parts.append(f"{against} 0 (bitwise)")
        else:
            parts.append(f"{against} {number(value)} {unit(entry['metric'])}")
    return ", ".join(parts) or "-"


def row(report: TacticReport) -> tuple[str, str, str, str, str]:
    """The cells of COLUMNS."""
    good = sum(result.passed for result in report.results)
    total = len(report.names)
    cases = str(total) if good == total else f"{good} of {total}"
    tactic = report.tactic
    return (
        tactic.stem, tactic.arch, cases, worst_text(report.results), f"{report.seconds:.1f}"
    )  # fmt: skip


def show(console: Console, report: Report) -> None:
    """The table, the seed and the verdict."""
    rows = [row(tactic) for tactic in report.tactics]
    if console.is_terminal:
        table = Table(*COLUMNS)
        for entry, cells in zip(report.tactics, rows, strict=True):
            table.add_row(*cells, style=None if entry.passed else "red")
        console.print(table)
    else:
        widths = [max(map(len, column)) for column in zip(COLUMNS, *rows, strict=True)]
        for cells in [COLUMNS, *rows]:
            line = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
            console.print(line.rstrip(), markup=False, highlight=False, soft_wrap=True)
    for tactic in report.tactics:
        for text in tactic.warnings:
            text = f"{tactic.tactic.id}: {text}"
            console.print(text, markup=False, highlight=False, soft_wrap=True)
    console.print(f"seed {report.settings.seed}", markup=False, highlight=False)
    console.print(verdict(report), markup=False, highlight=False, soft_wrap=True)


def verdict(report: Report) -> str:
    """The last line."""
    cases = sum(len(tactic.names) for tactic in report.tactics)
    failed = sum(len(tactic.failed) for tactic in report.tactics)
    where = {"sim": "the simulator", "hip": "the GPU"}.get(report.device, "GPU and simulator")
    warned = sum(len(tactic.warnings) for tactic in report.tactics)
    more = f", {warned} warning{'s' if warned > 1 else ''} of the sanitizer" if warned else ""
    if report.passed:
        return (
            f"passed: {len(report.tactics)} tactics, {cases} cases on {where} "
            f"in {report.seconds:.1f} s{more}"
        )
    bad = sum(not tactic.passed for tactic in report.tactics)
    return f"FAILED: {failed} of {cases} cases, in {bad} of {len(report.tactics)} tactics{more}"
