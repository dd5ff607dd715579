#!/usr/bin/env python3
"""How fast is the simulator?  `make bench` comes here.

Measures instruction loops, the FP8 GEMM of the catalog, and native C that does the same work, in
one run on this machine; prints a table and puts the figures into build/bench.json beside those
that others keep there.  (Tactics on a device are timed by `netra-harness bench`.)
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click
from netra_catalog import paths
from netra_catalog.errors import NetraError
from rich.console import Console
from rich.table import Table

# The simulator reads these once: before anything of it is opened.
os.environ["NETRA_SIM_DEVICES"] = ",".join(paths.ARCHES)
os.environ["NETRA_SIM_MATRIX_MODEL"] = "fma_chain"

import netra_sim  # noqa: E402
from benchmarks import measure, suite  # noqa: E402
from benchmarks.measure import Figure  # noqa: E402
from netra_sim.hip import Hip  # noqa: E402

_PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"))


def si(value: float, unit: str) -> str:
    """151 M/s, 40.2 ms, 1.97 x."""
    factor, prefix = next((p for p in _PREFIXES if abs(value) >= p[0]), (1e-6, "u"))
    if unit.startswith("x"):
        return f"{value:.3g} {unit}"
    return f"{value / factor:.3g} {prefix}{unit.removeprefix('instructions')}"


def table(figures: Sequence[Figure]) -> Table:
    grid = Table(title="simulator, matrix model fma_chain, 2 threads; medians")
    for heading in ("figure", "value", "target", "", "native C", "value / native", "idle machine"):
        grid.add_column(
            heading, justify="left" if heading == "figure" else "right", no_wrap=True
        )
    for f in figures:
        verdict = {None: "", True: "met", False: "missed"}[f.met]
        optional = [si(x, f.unit) if x is not None else "" for x in (f.target, f.native, f.idle)]
        ratio = f"{f.ratio:.3g}" if f.ratio is not None else ""
        grid.add_row(f.name, si(f.value, f.unit), optional[0], verdict, optional[1], ratio,
                     optional[2])
    return grid


def write(figures: Sequence[Figure], path: Path) -> None:
    """Replaces these figures in the file, and keeps the others."""
    kept = json.loads(path.read_text()) if path.is_file() else {}
    kept.update({f.name: f.json() for f in figures})
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        json.dump(kept, file, indent=1)
        file.write("\n")
    os.replace(file.name, path)


@click.command()
@click.option("--only", type=click.Choice(["loops", "gemm"]), help="One part of the suite.")
@click.option("--seconds", type=click.FloatRange(0.001), default=0.5, show_default=True,
              help="About how long one run of a loop takes.")
@click.option("--repeats", type=click.IntRange(1), default=5, show_default=True,
              help="Runs of which the median is taken.")
@click.option("--output", type=click.Path(path_type=Path), help="Instead of build/bench.json.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON, no table.")
def main(
    only: str | None, seconds: float, repeats: int, output: Path | None, as_json: bool
) -> None:
    """Measures the simulator against its budget and against native C."""
    path = output or paths.build_dir() / "bench.json"
    llvm = Path((paths.build_dir() / "llvm.txt").read_text().strip())
    found: list[Figure] = []
    log = Console(stderr=True)
    try:
        hip = Hip(netra_sim.library_path())
        with tempfile.TemporaryDirectory() as folder, log.status("starting") as status:
            for figure in suite.everything(
                hip, llvm, Path(folder), seconds, repeats, lambda part: only in (None, part)
            ):
                found.append(figure)
                status.update(f"{figure.name} done")
    except NetraError as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    write(found, path)
    if as_json:
        print(json.dumps({f.name: f.json() for f in found}, indent=1))
        return
    console = Console(width=None if sys.stdout.isatty() else 140)
    console.print(table(found))
    load = os.getloadavg()[0]
    console.print(f"{measure.cores()} cores, load {load:.1f}; 'idle machine' is from processor "
                  "time, what a run alone would have given")
    console.print(f"written to {path}")


if __name__ == "__main__":
    main()
