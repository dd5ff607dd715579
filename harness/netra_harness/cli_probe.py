"""netra-harness probe."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from netra_catalog.paths import ARCHES, display

from netra_harness.device import KINDS
from netra_harness.errors import UsageError

Option = Callable[[Any], Any]


def commands(seed: Option, as_json: Option) -> list[click.Command]:
    """The commands, with the options that they share with the other commands."""

    @click.command()
    @click.argument("pattern", default="*")
    @click.option("--arch", type=click.Choice(ARCHES), help="The target; needed on the simulator.")
    @click.option("--device", type=click.Choice(KINDS), default="auto", show_default=True)
    @click.option(
        "--out", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
        help="Where the run goes; default: probe-ARCH-DEVICE.json.",
    )
    @click.option(
        "--compare", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
        help="Run what FILE ran on the simulator instead, and list where the two differ.",
    )
    @click.option(
        "--limit", type=click.FloatRange(min=1), default=60.0, show_default=True,
        help="Seconds that one item may take before its process is ended.",
    )
    @seed
    @as_json
    def probe(
        pattern: str, arch: str | None, device: str, out: Path | None, compare: Path | None,
        limit: float, seed: int, as_json: bool,
    ) -> None:
        """Asks a device what no document says, for the project to learn from.

        Items: layout/ (one-hot matrices), adder/ (sums that adders round differently), trans/ and
        convert/ (tables), hazard/ (too few wait states), case/ (the quick cases of every tactic,
        eager and replayed). PATTERN selects by glob. Each runs in a process that is ended when it
        takes too long. Exit code 1: with --compare, something differs; else an item failed.
        """
        from netra_harness.probes import pack

        theirs = pack.read(compare) if compare else None
        if theirs is not None:
            arch, device, seed = theirs["arch"], "sim", theirs["seed"]
        target, kind = _target(arch, device)
        wanted = pack.names(target, pattern)
        if theirs is not None:
            there = {entry["name"] for entry in theirs["items"]}
            wanted = [name for name in wanted if name in there]
        if not wanted:
            raise UsageError(f"no probe of {target} matches '{pattern}'")
        click.echo(f"seed {seed}", err=as_json)

        def heard(entry: dict[str, Any]) -> None:
            if entry["verdict"] != "ok":
                click.echo(f"{entry['verdict']}  {entry['name']}: {entry['text']}", err=as_json)

        ours = pack.run(target, kind, wanted, seed, limit, heard)
        if theirs is None:
            _written(pack, ours, out or Path(f"probe-{target}-{kind}.json"), as_json)
        else:
            _compared(pack, theirs, ours, as_json)

    return [probe]


def _target(arch: str | None, device: str) -> tuple[str, str]:
    """The target and where it is: a GPU that is here need not be named."""
    from netra_harness.validate import choose_devices, present_gpus

    if arch is None:
        here = [a for a in present_gpus(device) if a in ARCHES]
        if len(here) != 1:
            raise UsageError("which target?", hint=f"--arch {' or --arch '.join(ARCHES)}")
        arch = here[0]
    return arch, choose_devices(device, [arch])[arch]


def _written(pack: Any, ours: dict[str, Any], path: Path, as_json: bool) -> None:
    pack.write(path, ours)
    good = sum(entry["verdict"] == "ok" for entry in ours["items"])
    if as_json:
        click.echo(json.dumps({
            "file": display(path), "arch": ours["arch"], "device": ours["device"],
            "items": len(ours["items"]), "ok": good,
        }, indent=2))
    else:
        click.echo(f"{display(path)}: {good} of {len(ours['items'])} items ok")
    sys.exit(0 if good == len(ours["items"]) else 1)


def _compared(pack: Any, theirs: dict[str, Any], ours: dict[str, Any], as_json: bool) -> None:
    found = pack.compare(theirs, ours)
    missing = len(theirs["items"]) - len(ours["items"])
    if as_json:
        click.echo(json.dumps({
            "arch": ours["arch"], "theirs": theirs["device"], "ours": ours["device"],
            "compared": len(ours["items"]), "not_here": missing,
            "differences": [
                {"name": d.name, "count": d.count, "total": d.total, "texts": list(d.texts)}
                for d in found
            ],
        }, indent=2))
    else:
        for difference in found:
            click.echo(f"{difference.name}: {difference.count} of {difference.total} differ")
            for text in difference.texts:
                click.echo(f"  {text}")
        click.echo(f"compared {len(ours['items'])} items, {len(found)} differ")
    sys.exit(1 if found else 0)
