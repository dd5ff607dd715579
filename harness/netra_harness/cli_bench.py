"""netra-harness bench."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from netra_catalog import select
from netra_catalog.tactic import Tactic

from netra_harness.device import KINDS
from netra_harness.errors import UsageError

Option = Callable[[Any], Any]


def commands(seed: Option, as_json: Option, keep: Option) -> list[click.Command]:
    """The commands, with the options that they share with the other commands."""

    @click.command()
    @click.argument("tactic_id", metavar="ID")
    @click.option("--compare", metavar="ID", help="Against this tactic of the same op, by turns.")
    @click.option(
        "--system", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
        help="Judge runs of a full server with the tactic on and off (docs/evidence.md).",
    )
    @click.option("--device", type=click.Choice(KINDS), default="auto", show_default=True)
    @click.option("--case", metavar="NAME", help="The quick case to launch; default: the last.")
    @click.option(
        "--pairs", type=click.IntRange(min=6), default=20, show_default=True,
        help="How many pairs, or warm calls.",
    )
    @keep
    @seed
    @as_json
    def bench(
        tactic_id: str, compare: str | None, system: Path | None, device: str, case: str | None,
        pairs: int, recorded: bool, seed: int, as_json: bool,
    ) -> None:
        """Times the launches of one tactic, alone or against another one.

        Alone: load, first call, warm calls, and replays of a graph, each apart. With --compare:
        pairs in alternating order, a ratio with its 95 % confidence interval, and "no difference
        shown" where that is so. On a GPU these are times of the operation; on the simulator,
        which models no time, the counters are compared, and host seconds are called that.
        """
        from netra_harness import bench as work
        from netra_harness import record
        from netra_harness import system as server

        tactic = _one(tactic_id)
        other = _one(compare) if compare else None
        if system is not None and (other or case):
            raise UsageError("--system goes with neither --compare nor --case")
        words = ["netra-harness", "bench", tactic.id]
        keeping = record.Keeping(("bench",) if recorded else ())
        keeping.started([tactic])
        if system is not None:
            from netra_catalog import hashes

            data = server.read(system)
            form: dict[str, Any] = {"tactic": tactic.id, "scope": "system", **server.judge(
                data, hashes.of_tactic(tactic)["objects"]
            )}
            on = {"kind": "hip", **data["device"]}
            words += ["--system", str(system), "--record"]
            for kind in ("toggle", "order", "invariants"):
                keeping.put(tactic, kind, form[kind]["verdict"], on, 0, words,
                            form[kind]["details"])
        else:
            settings = work.Settings(tactic, other, device, seed, case, pairs)
            form = work.run(settings)
            words += ["--compare", other.id] if other else []
            words += ["--device", form["device"]["kind"], "--case", form["case"]]
            words += ["--pairs", str(pairs), "--seed", str(seed), "--record"]
            kind, verdict, details = _result(form)
            keeping.put(tactic, kind, verdict, form["device"], seed, words, details)
            form |= {"kind": kind, "verdict": verdict}
        form |= {"seed": seed, **({"recorded": keeping.paths} if recorded else {})}
        if as_json:
            click.echo(json.dumps(form, indent=2))
            return
        (_show_system if system is not None else _show)(form)
        for path in keeping.paths:
            click.echo(f"recorded {path}")

    return [bench]


def _one(pattern: str) -> Tactic:
    found = select(pattern)
    if len(found) > 1:
        raise UsageError(
            f"'{pattern}' selects {', '.join(t.id for t in found)}", hint="name exactly one"
        )
    return found[0]


def _result(form: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    """(kind, verdict, details) of a measured operation.

    On the simulator a comparison is one of counters, which fails where the candidate moves more
    bytes than the baseline; a time of the simulator decides nothing.
    """
    from netra_harness.bench import differing, moved_bytes

    keys = ("scope", "clock", "cache", "case", "baseline", "load", "first_call", "eager", "replay",
            "time", "samples")  # fmt: skip
    details = {key: form[key] for key in keys if form.get(key) is not None}
    if "counters" not in form:
        verdict = form["time"]["verdict"] if "time" in form else "pass"
        return "timing", "pass" if verdict == "faster" else verdict, details
    if "baseline_counters" not in form:
        return "timing", "pass", {**details, "counters": form["counters"]}
    before, after = form["baseline_counters"], form["counters"]
    bytes_ = moved_bytes(before), moved_bytes(after)
    form["bytes"] = {"baseline": bytes_[0], "candidate": bytes_[1]}
    form["differing"] = differing(before, after)
    details |= {"bytes": form["bytes"], "differing": form["differing"]}
    return "counters", "fail" if bytes_[1] > bytes_[0] else "pass", details


def _show(form: dict[str, Any]) -> None:
    against = f" against {form['baseline']}" if form["baseline"] else ""
    click.echo(f"{form['tactic']}{against}, case {form['case']}: operation, {form['clock']}")
    if "time" in form:
        time = form["time"]
        click.echo(
            f"  ratio {time['ratio']:.4f}, {100 * time['level']:.1f} % confidence "
            f"{time['low']:.4f}..{time['high']:.4f}, {time['pairs']} pairs: {time['verdict']}"
        )
        click.echo(
            f"  baseline first {time['by_order']['AB']:.4f}, "
            f"candidate first {time['by_order']['BA']:.4f}"
        )
    else:
        click.echo(f"  load {form['load']:.6f}, first call {form['first_call']:.6f}")
        for arm in ("eager", "replay"):
            said = form[arm]
            click.echo(f"  {arm}: median {said['median']:.6f}, p90 {said['p90']:.6f}, "
                       f"{said['calls']} calls")
        click.echo(f"  cache {form['cache']}")
    for name, (before, after) in form.get("differing", {}).items():
        click.echo(f"  {name}: {before} -> {after}")
    if "bytes" in form:
        said = form["bytes"]
        click.echo(f"  bytes moved: {said['baseline']} -> {said['candidate']}: {form['verdict']}")
    click.echo(f"seed {form['seed']}")


def _show_system(form: dict[str, Any]) -> None:
    time = form["toggle"]["details"]["time"]
    click.echo(
        f"{form['tactic']}: system, ratio {time['ratio']:.4f}, {100 * time['level']:.1f} % "
        f"confidence {time['low']:.4f}..{time['high']:.4f}, {time['pairs']} pairs"
    )
    for kind in ("toggle", "order", "invariants"):
        click.echo(f"  {kind}: {form[kind]['verdict']}")
    for text in form["invariants"]["details"]["broken"]:
        click.echo(f"    {text}")
