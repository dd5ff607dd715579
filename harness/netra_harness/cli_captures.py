"""The commands about captures: take one, list, verify, and tabulate how far oracles agree."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from netra_catalog import paths

from netra_harness import agreement, captures
from netra_harness.capture import capture as make_capture
from netra_harness.errors import CaptureError

Option = Callable[[Any], Any]


def commands(seed: Option, as_json: Option) -> list[click.Command]:
    """The commands, with the options that they share with the other commands."""

    @click.command()
    @click.argument("op")
    @click.option(
        "--from", "source", metavar="torch|sglang|MODULE:FUNCTION", required=True,
        help="Whom to ask.",
    )  # fmt: skip
    @click.option("--variant", help="Only this variant of the op.")
    @click.option("--full", is_flag=True, help="Capture the full case set, not the quick one.")
    @seed
    @as_json
    def capture(
        op: str, source: str, variant: str | None, full: bool, seed: int, as_json: bool
    ) -> None:
        """Records what a real implementation answers to the cases of OP.

        The file goes to harness/captures/OP/. Exit code 1: our `deployed` oracle is further from
        it than the reference's metric allows.
        """
        summaries = make_capture(op, source, seed, "full" if full else "quick", variant)
        click.echo(f"seed {seed}", err=as_json)
        if as_json:
            click.echo(json.dumps({"captures": [s.json() for s in summaries]}, indent=2))
        else:
            for summary in summaries:
                click.echo(
                    f"{summary.path}: {summary.cases} cases of {summary.op} ({summary.variant}) "
                    f"from {summary.label}, {summary.bytes} bytes"
                )
                for case, why in summary.left_out.items():
                    click.echo(f"  left out {case}: {why}")
                _show(summary.counts)
        sys.exit(1 if any(summary.counts.beyond for summary in summaries) else 0)

    @click.group("captures")
    def group() -> None:
        """The captures of this checkout: harness/captures/OP/*.safetensors."""

    @group.command("list")
    @as_json
    def list_(as_json: bool) -> None:
        """What is captured, from whom, and on what."""
        rows = [_row(path, captures.load(path)) for path in captures.files()]
        if as_json:
            click.echo(json.dumps({"captures": rows}, indent=2))
            return
        for row in rows:
            click.echo(
                f"{row['op']} ({row['variant']}): {row['cases']} cases from {row['source']} on "
                f"{row['device']}, {row['bytes']} bytes"
            )
        click.echo(f"{len(rows)} captures, {sum(row['bytes'] for row in rows)} bytes")

    @group.command()
    @as_json
    def verify(as_json: bool) -> None:
        """Recomputes every digest, makes the inputs again, and asks the `deployed` oracles.

        Exit code 1: a file is damaged, its inputs are no longer what the oracle makes, or the
        oracle is further from it than its metric allows.
        """
        rows, bad = [], 0
        for path in captures.files():
            try:
                loaded = captures.load(path)
                counts = agreement.recount(loaded)
            except CaptureError as error:
                bad += 1
                rows.append({"path": paths.display(path), "error": error.message})
                if not as_json:
                    click.echo(f"{paths.display(path)}: {error.message}")
                continue
            bad += counts.beyond > 0
            rows.append({**_row(path, loaded), **counts.json()})
            if not as_json:
                verdict = "ok" if not counts.beyond else f"{counts.beyond} beyond the metric"
                click.echo(f"{paths.display(path)}: {counts.elements} elements, {verdict}")
                for text in counts.texts:
                    click.echo(f"  {text}")
        if as_json:
            click.echo(json.dumps({"captures": rows}, indent=2))
        else:
            click.echo(f"{len(rows)} captures, {bad} not as they should be")
        sys.exit(1 if bad or not rows else 0)

    @group.command("agreement")
    @click.option(
        "--write", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path),
        help="Put the table into this page, between its two marks.",
    )  # fmt: skip
    def agreement_(write: Path | None) -> None:
        """A table: how often captures and both oracles agree, in Markdown."""
        table = agreement.table()
        if write is None:
            click.echo(table, nl=False)
        else:
            agreement.write_table(write, table)

    return [capture, group]


def _row(path: Path, loaded: list[captures.CapturedCase]) -> dict[str, Any]:
    first = loaded[0]
    return {
        "path": paths.display(path), "op": first.op, "variant": first.variant,
        "source": first.label, "device": first.device, "seed": first.seed,
        "cases": len(loaded), "bytes": path.stat().st_size,
    }  # fmt: skip


def _show(counts: agreement.Counts) -> None:
    click.echo(
        f"  of {counts.elements} elements `deployed` differs in {counts.differ}, by more than is "
        f"allowed in {counts.beyond}; `exact` is another number in {counts.exact}"
    )
    for text in counts.texts:
        click.echo(f"  {text}")
