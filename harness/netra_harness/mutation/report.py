"""What a mutation run looks like: a row for each operator of each tactic, then the survivors."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from netra_harness.mutation.campaign import (
    HIDDEN_SHARE,
    MANY_EQUIVALENTS,
    SHARE,
    Fate,
    TacticFates,
)  # fmt: skip
from netra_harness.mutation.operators import HIDDEN, OPERATORS

COLUMNS = ("tactic", "operator", "killed", "equivalent", "survived")


def survivor_text(fates: TacticFates, fate: Fate) -> str:
    """Where it is, what was changed, and the command that runs it again."""
    mutant, tactic = fate.mutant, fates.tactic
    return (
        f"survived  {mutant.operator}  {fate.where}  ({fate.kernel})\n"
        f"  was: {mutant.before}\n  now: {mutant.after}\n  {fate.why}\n"
        f"  rerun: netra-harness mutate {tactic.id} --operator {mutant.operator} "
        f"--line {fate.place.number}"
    )


def show(console: Console, reports: list[TacticFates], seed: int) -> None:
    """The table, the operators that measure little, the seed and the verdict."""
    rows = [
        (report.tactic.id, name, *(str(count[key]) for key in COLUMNS[2:]))
        for report in reports
        for name, count in report.counts().items()
    ]
    if console.is_terminal:
        table = Table(*COLUMNS)
        for cells in rows:
            table.add_row(*cells, style="red" if cells[-1] != "0" else None)
        console.print(table)
    else:
        for cells in [COLUMNS, *rows]:
            line = "  ".join(cell.ljust(w) for cell, w in zip(cells, _widths(rows), strict=True))
            _say(console, line.rstrip())
    for report in reports:
        for name, count in report.counts().items():
            if count["equivalent"] > MANY_EQUIVALENTS * sum(count.values()):
                _say(console, f"{report.tactic.id}: {name} has many equivalents: {count}")
    _say(console, f"seed {seed}")
    for report in reports:
        _say(console, _verdict(report))


def _widths(rows: list[tuple[str, ...]]) -> list[int]:
    return [max(map(len, column)) for column in zip(COLUMNS, *rows, strict=True)]


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def _verdict(report: TacticFates) -> str:
    hidden, overall = report.share(HIDDEN), report.share(tuple(OPERATORS))
    return (
        f"{'ok  ' if report.passed else 'FAIL'}  {report.tactic.id}: {len(report.fates)} mutants, "
        f"killed {hidden:.1%} of the waits, nops and barriers (want {HIDDEN_SHARE:.0%}) and "
        f"{overall:.1%} of all (want {SHARE:.0%}), {report.seconds:.1f} s"
    )
