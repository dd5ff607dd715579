"""netra-harness: runs tactics and says whether they compute what they must."""

from __future__ import annotations

import json
import secrets
import signal
import sys
from pathlib import Path

import click
from netra_catalog import select
from netra_catalog.paths import ARCHES
from rich.console import Console
from rich.table import Table

from netra_harness import cli_bench, cli_captures, cli_evidence, cli_probe, record
from netra_harness import report as reporting
from netra_harness.case import DEFAULT_SEED
from netra_harness.device import KINDS
from netra_harness.mutation import campaign
from netra_harness.mutation import report as mutation_report
from netra_harness.mutation import table as kill_table
from netra_harness.mutation.operators import OPERATORS
from netra_harness.validate import Settings, TacticReport
from netra_harness.validate import validate as run_validate

_ARCH = click.option("--arch", type=click.Choice(ARCHES), help="Only this target.")
_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
_RECORD = click.option(
    "--record", "recorded", is_flag=True, help="Keep what was found in results/ (docs/evidence.md)."
)


def _terminated(number: int, _frame: object) -> None:
    """Leaves as Ctrl-C does, so that the workers end too."""
    sys.exit(128 + number)


def _seed(_context: click.Context, _param: click.Parameter, value: str) -> int:
    """A number, or `random` for a fresh one."""
    if value == "random":
        return secrets.randbelow(2**32)
    try:
        seed = int(value, 0)
    except ValueError:
        raise click.BadParameter(f"'{value}' is neither a number nor 'random'") from None
    if not 0 <= seed < 2**64:
        raise click.BadParameter(f"{seed} is outside 0..2^64-1")
    return seed


_SEED = click.option(
    "--seed", metavar="N|random", default=str(DEFAULT_SEED), show_default=True, callback=_seed,
    help="Seed of the inputs.",
)  # fmt: skip


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Runs kernels on a GPU or on the simulator and compares them with their oracles."""


@main.command("list")
@click.argument("pattern", default="*")
@_ARCH
@_JSON
def list_command(pattern: str, arch: str | None, as_json: bool) -> None:
    """Shows the tactics that PATTERN selects."""
    tactics = select(pattern, arch)
    rows = [
        {
            "tactic": tactic.id,
            "arch": tactic.arch,
            "op": tactic.op,
            "maturity": tactic.maturity,
            "hold": tactic.hold,
            "kernels": list(tactic.kernels),
        }
        for tactic in tactics
    ]
    if as_json:
        click.echo(json.dumps({"tactics": rows}, indent=2))
        return
    console = Console()
    if console.is_terminal:
        table = Table("tactic", "op", "maturity", "kernels")
        for tactic in tactics:
            held = f" (held: {tactic.hold})" if tactic.hold else ""
            table.add_row(
                tactic.id, tactic.op, tactic.maturity + held, ", ".join(tactic.kernels)
            )
        console.print(table)
        return
    for tactic in tactics:
        held = f"  held: {tactic.hold}" if tactic.hold else ""
        kernels = ",".join(tactic.kernels)
        click.echo(f"{tactic.id}  {tactic.op}  {tactic.maturity}  {kernels}{held}")


_SCHEDULES = click.option(
    "--schedules", type=click.IntRange(1, 1000), default=1, metavar="N",
    help="On the simulator, each case under N schedule seeds: the outputs must not differ.",
)  # fmt: skip


@main.command()
@click.argument("pattern", default="*")
@_ARCH
@click.option("--device", type=click.Choice(KINDS), default="auto", show_default=True)
@_SEED
@_JSON
@click.option("--case", metavar="NAME", help="Only the case of this name.")
@click.option("--full", is_flag=True, help="The full case set, not the quick one.")
@click.option("--all", "everything", is_flag=True, help="Rejected and quarantined tactics too.")
@click.option("--limit", type=click.FloatRange(min=1), help="Seconds that one case may take.")
@click.option("-v", "--verbose", is_flag=True, help="A line for each case.")
@click.option("--no-sanitize", is_flag=True, help="Do not watch the kernels on the simulator.")
@_RECORD
@_SCHEDULES
def validate(
    pattern: str,
    arch: str | None,
    device: str,
    seed: int,
    as_json: bool,
    case: str | None,
    full: bool,
    everything: bool,
    limit: float | None,
    verbose: bool,
    no_sanitize: bool,
    recorded: bool,
    schedules: int,
) -> None:
    """Runs the cases of the tactics that PATTERN selects and compares with their oracles.

    On the simulator every launch is watched by the sanitizer, whose errors fail a case.

    Exit code 0: every case passed. 1: something differs or was found. 2: usage. 4: a tool, a built
    file or a device is missing.
    """
    _validate(
        Settings(
            pattern, arch, device, seed, case, full, everything, limit,
            sanitize=not no_sanitize, schedules=schedules,
        ),  # fmt: skip
        as_json,
        verbose,
        ("oracle", "sanitize") if recorded else (),
    )


@main.command()
@click.argument("pattern", default="*")
@_ARCH
@_SEED
@_JSON
@click.option("--case", metavar="NAME", help="Only the case of this name.")
@click.option("--full", is_flag=True, help="The full case set, not the quick one.")
@click.option("--all", "everything", is_flag=True, help="Rejected and quarantined tactics too.")
@_RECORD
@_SCHEDULES
def sanitize(
    pattern: str,
    arch: str | None,
    seed: int,
    as_json: bool,
    case: str | None,
    full: bool,
    everything: bool,
    recorded: bool,
    schedules: int,
) -> None:
    """Runs the tactics that PATTERN selects on the simulator, watched (docs/sanitizer.md).

    This is `validate --device sim` by the name of what it looks for; exit codes are the same.
    """
    settings = Settings(
        pattern, arch, "sim", seed, case, full, everything, schedules=schedules
    )
    _validate(settings, as_json, False, ("sanitize",) if recorded else ())


def _validate(
    settings: Settings, as_json: bool, verbose: bool, kinds: tuple[str, ...]
) -> None:
    before = signal.signal(signal.SIGTERM, _terminated)
    console = Console(stderr=as_json)
    if as_json:
        click.echo(f"seed {settings.seed}", err=True)
    shown = reporting.Progressing(console, settings, verbose, quiet=as_json)
    keeping = record.Keeping(kinds)

    def started(reports: list[TacticReport]) -> None:
        keeping.started([report.tactic for report in reports])
        shown.started(reports)

    try:
        result = run_validate(settings, started, shown.heard)
    finally:
        shown.stop()
        signal.signal(signal.SIGTERM, before)
    for tactic in result.tactics:
        keeping.validated(settings, tactic)
    if as_json:
        form = {**result.json(), **({"recorded": keeping.paths} if kinds else {})}
        click.echo(json.dumps(form, indent=2, allow_nan=False))
    else:
        reporting.show(console, result)
        _recorded(keeping)
    sys.exit(0 if result.passed else 1)


def _recorded(keeping: record.Keeping) -> None:
    for path in keeping.paths:
        click.echo(f"recorded {path}")


@main.command()
@click.argument("pattern", default="*")
@_ARCH
@_SEED
@_JSON
@click.option(
    "--operator", "operators", type=click.Choice(tuple(OPERATORS)), multiple=True,
    help="Only this kind of fault; may be repeated.",
)
@click.option("--line", type=click.IntRange(min=1), help="Only faults in this line of the .s.")
@click.option(
    "--keep", type=click.Path(file_okay=False, path_type=Path), help="Keep the mutants here."
)
@click.option(
    "--table", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Write the rows of these tactics into the kill table of this file.",
)
@_RECORD
def mutate(
    pattern: str,
    arch: str | None,
    seed: int,
    as_json: bool,
    operators: tuple[str, ...],
    line: int | None,
    keep: Path | None,
    recorded: bool,
    table: Path | None,
) -> None:
    """Puts small faults into the kernels that PATTERN selects; every one should be noticed.

    Runs on the simulator. Exit code 0: enough were, on every tactic. 1: too many survive.
    """
    console = Console(stderr=as_json)
    if as_json:
        click.echo(f"seed {seed}", err=True)

    def heard(fates: campaign.TacticFates, fate: campaign.Fate) -> None:
        if fate.fate == "survived" and not as_json:
            text = mutation_report.survivor_text(fates, fate)
            console.print(text, markup=False, highlight=False, soft_wrap=True)

    if table is not None and (operators or line is not None):
        raise click.UsageError("--table wants all faults: leave out --operator and --line")
    settings = campaign.Settings(pattern, arch, seed, operators, line, keep)
    keeping = record.Keeping(("mutate",) if recorded else ())
    keeping.started(campaign.chosen(settings))
    reports = campaign.run(settings, heard)
    if table is not None:
        known = {tactic.id for tactic in select("*")}
        kill_table.merge(table, [report.json() for report in reports], known)
    for report in reports:
        keeping.mutated(report, settings)
    if as_json:
        form = {"seed": seed, "tactics": [report.json() for report in reports]}
        form |= {"recorded": keeping.paths} if recorded else {}
        click.echo(json.dumps(form, indent=2))
    else:
        mutation_report.show(console, reports, seed)
        _recorded(keeping)
    sys.exit(0 if all(report.passed for report in reports) else 1)


for _command in [
    *cli_captures.commands(_SEED, _JSON), *cli_evidence.commands(_SEED, _JSON),
    *cli_bench.commands(_SEED, _JSON, _RECORD), *cli_probe.commands(_SEED, _JSON),
]:
    main.add_command(_command)
