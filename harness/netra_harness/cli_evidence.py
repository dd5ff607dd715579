"""The commands about evidence: revalidate."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import click
from netra_catalog.paths import ARCHES

Option = Callable[[Any], Any]


def commands(seed: Option, as_json: Option) -> list[click.Command]:
    """The commands, with the options that they share with the other commands."""

    @click.command()
    @click.argument("pattern", default="*")
    @click.option("--arch", type=click.Choice(ARCHES), help="Only this target.")
    @click.option("--dry-run", is_flag=True, help="Only say what is missing, and why.")
    @click.option(
        "--no-run", is_flag=True, help="Run nothing: write the maturities that the results give."
    )
    @click.option(
        "--prune", is_flag=True,
        help="Remove stale results that passed on the simulator: anyone can record them anew.",
    )
    @seed
    @as_json
    def revalidate(
        pattern: str, arch: str | None, dry_run: bool, no_run: bool, prune: bool, seed: int,
        as_json: bool,
    ) -> None:
        """Records anew what a change made stale, and writes the maturities that follow.

        For each tactic that PATTERN selects: what the simulator can show and no current result
        does (full cases, sanitizer, mutants) is run and kept in results/, then the YAML gets the
        maturity that the results give. A decision (rejected, quarantined) is left alone while it
        holds. Exit code 1: something failed; the maturities are written all the same.
        """
        from netra_harness import revalidate as work

        begin = time.perf_counter()
        changes = work.plan(pattern, arch)
        if not dry_run:
            def say(text: str) -> None:
                click.echo(text, err=as_json)

            click.echo(f"seed {seed}", err=as_json)
            if no_run:
                for change in changes:
                    change.todo = ()
            work.run(changes, seed, prune, say)
        if as_json:
            form = {
                "seed": seed, "seconds": round(time.perf_counter() - begin, 3),
                "tactics": [{**c.json(), "todo": list(c.todo)} for c in changes],
            }  # fmt: skip
            click.echo(json.dumps(form, indent=2))
        else:
            for change in changes:
                _show(change, dry_run)
            todo = sum(bool(c.todo) for c in changes)
            did = "to record" if dry_run else "recorded"
            click.echo(
                f"{did}: {todo} of {len(changes)} tactics, "
                f"{time.perf_counter() - begin:.1f} s"
            )
        sys.exit(0 if all(change.good for change in changes) else 1)

    return [revalidate]


def _show(change: Any, dry_run: bool) -> None:
    tactic = change.tactic.id
    if dry_run:
        if change.todo:
            click.echo(f"{tactic}: {', '.join(change.todo)} ({change.why})")
        return
    arrow = f"{change.was} -> " if change.was != change.now else ""
    if change.todo or arrow:
        click.echo(f"{tactic}: {arrow}{change.now}")
    for text in change.verdicts:
        click.echo(f"  {text}")
    for text in change.errors:
        click.echo(f"  not recorded: {text}")
