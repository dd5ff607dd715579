"""How long `netra-catalog why` and a match take with many tactics.

    .venv/bin/python tools/catalog_speed.py [--tactics 1000] [--runs 7]

A synthetic catalog is written to a temporary folder and compiled.  Each run is a new process; what
is printed are milliseconds from the first line of netra_catalog to the end of the command, without
the start of Python and the import of click, and the match alone.  The fastest run counts: the
others waited for something else.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SNIPPET = """
import click, contextlib, io, json, sys, time
start = time.perf_counter(), time.process_time()
from netra_catalog.cli import main
out = io.StringIO()
with contextlib.redirect_stdout(out):
    try:
        main(["why", "made.copy", "x=bf16[%s,4096]", "out=bf16[%s,4096]", "--json"],
             standalone_mode=False)
    except click.ClickException:
        pass
wall, cpu = time.perf_counter() - start[0], time.process_time() - start[1]
from netra_catalog.ask import read_question
from netra_catalog.build import fresh
from netra_catalog.dispatch import match
from pathlib import Path
import os
tactics = fresh(Path(os.environ["NETRA_ROOT"]).resolve()).tactics("made.copy")
call = read_question(tactics[0].definition, ["x=bf16[%s,4096]", "out=bf16[%s,4096]"]).call("gfx950")
begin = time.perf_counter()
found = match(tactics, call)
print(json.dumps({"wall": wall, "cpu": cpu, "match": time.perf_counter() - begin,
                  "why": json.loads(out.getvalue())["accepted"], "found": type(found).__name__}))
"""


def measure(root: Path, rows: int, runs: int) -> list[dict[str, float]]:
    """One entry a run, times in seconds; `rows` decides whether the call hits or misses."""
    folders = os.pathsep.join(str(ROOT / name) for name in ("catalog", "harness", "sim", "bridges"))
    environment = {**os.environ, "NETRA_ROOT": str(root), "PYTHONPATH": folders}
    found: list[dict[str, float]] = []
    for _ in range(runs):
        done = subprocess.run(
            [sys.executable, "-c", SNIPPET % (rows, rows, rows, rows)], env=environment, check=True,
            capture_output=True, text=True,
        )
        found.append(json.loads(done.stdout))
    return found


def prepare(root: Path, tactics: int) -> Path:
    """A synthetic catalog with its catalog.bin; there are no code objects, so no hashes of any."""
    sys.path[:0] = [str(ROOT / "tests" / "fixtures"), str(ROOT / "catalog")]
    toy_catalogs = importlib.import_module("toy_catalogs")
    from netra_catalog import build, load
    from netra_catalog.binary import compile_catalog

    toy_catalogs.many(root, tactics)
    build.store(root, compile_catalog(load(root=root), root), build.sources(root))
    return root


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tactics", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = prepare(Path(folder), options.tactics)
        for name, rows in (("hit", options.tactics * 2), ("miss", 10**6)):
            found = measure(root, rows, options.runs)
            wall, cpu, match = (min(f[k] for f in found) * 1e3 for k in ("wall", "cpu", "match"))
            print(f"{options.tactics} tactics, {name}: why {wall:.1f} ms ({cpu:.1f} ms of CPU), "
                  f"match {match:.1f} ms")


if __name__ == "__main__":
    main()
