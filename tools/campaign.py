#!/usr/bin/env python3
"""Run a campaign: `make ctorture`, `make csmith` and `make vectors` come here.

Usage: campaign.py ctorture [-n N] [--seed S] [--arch ARCH] [PROGRAM...]
"""

from __future__ import annotations

import importlib
import sys

import click
from campaigns import core
from netra_catalog.paths import ARCHES

_MODULES = {"hazard-fuzz": "hazards"}


@click.command()
@click.argument("campaign", type=click.Choice(["ctorture", "csmith", "vectors", "hazard-fuzz"]))
@click.argument("names", nargs=-1, metavar="[PROGRAM]...")
@click.option("-n", "--count", type=click.IntRange(1), help="How many programs.")
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=1,
    show_default=True,
    help="Decides which programs run.",
)
@click.option(
    "--arch", "arches", multiple=True, type=click.Choice(ARCHES), help="Only this target."
)
@click.option("--file", help="vectors: the recorded programs, .jsonl or .jsonl.gz.")
@click.option(
    "--flag",
    "flags",
    multiple=True,
    help="ctorture, csmith: one more option for the compiler, as --flag=-O3.",
)
@click.option(
    "--workers", type=click.IntRange(1), default=2, show_default=True, help="Processes at a time."
)
@click.option(
    "--seconds",
    type=click.FloatRange(1),
    default=core.LAUNCH_SECONDS,
    show_default=True,
    help="Limit for one launch.",
)
@click.option("--check", is_flag=True, help="Under the sanitizer, whose errors fail a program.")
@click.option("--discover", is_flag=True, help="ctorture: find which programs can run.")
def main(
    campaign: str,
    names: tuple[str, ...],
    count: int | None,
    seed: int,
    arches: tuple[str, ...],
    file: str | None,
    flags: tuple[str, ...],
    workers: int,
    seconds: float,
    check: bool,
    discover: bool,
) -> None:
    """Runs CAMPAIGN on the simulator: all its programs, N of them, or those named."""
    options = core.Options(
        count, seed, arches or ARCHES, names, workers, seconds, file, flags, check
    )
    module = importlib.import_module(f"campaigns.{_MODULES.get(campaign, campaign)}")
    sys.exit(module.discover(options) if discover else module.run(options))


if __name__ == "__main__":
    main()
