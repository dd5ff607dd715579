"""netra-catalog promote, reject and quarantine, and the part of `show` on evidence."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import click

from netra_catalog.errors import NetraError, UsageError
from netra_catalog.paths import display

if TYPE_CHECKING:
    from netra_catalog.evidence import Standing
    from netra_catalog.tactic import Tactic

_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
_reason = click.option("--reason", required=True, metavar="TEXT", help="Why; it is kept.")
_evidence = click.option(
    "--evidence", "ids", multiple=True, metavar="ID",
    help="A result that shows it; may be repeated.  Default: every failed one, as things are.",
)


def one(pattern: str) -> Tactic:
    """The single tactic that a pattern selects; several are a usage error."""
    from netra_catalog.load import select

    found = select(pattern)
    if len(found) > 1:
        raise UsageError(
            f"'{pattern}' selects {', '.join(t.id for t in found)}", hint="name exactly one"
        )
    return found[0]


def document(tactic: Tactic, found: Standing, changed: bool | None = None) -> dict[str, Any]:
    """What the commands print with --json."""
    form: dict[str, Any] = {
        "tactic": tactic.id, "was": tactic.maturity, "maturity": found.maturity,
        "evidence": found.ids if found.maturity != "experiment" else [],
        "held": [{"rung": rung.name, "gives": rung.gives, "result": held.id}
                 for rung, held in found.held],
        "missing": [
            {"rung": m.rung.name, "gives": m.rung.gives, "why": m.why, "command": m.command}
            for m in found.missing
        ],
        "stale": found.stale, "damaged": [error.message for error in found.damaged],
        "reason": found.decision.details["reason"] if found.decision else None,
    }
    return form if changed is None else {**form, "changed": changed}


def lines(found: Standing) -> list[str]:
    """The ladder of a tactic, rung by rung."""
    out = []
    if found.decision is not None:
        out.append(f"{found.maturity}: {found.decision.details['reason']}")
        out += [f"  by {id}" for id in found.ids]
    held = {rung.name: result for rung, result in found.held}
    missing = {m.rung.name: m for m in found.missing}
    from netra_catalog.evidence import LADDER

    for rung in LADDER:
        if rung.name in held:
            out.append(f"  has    {rung.gives:<9}  {rung.name}: {held[rung.name].id}")
        else:
            lack = missing[rung.name]
            out.append(f"  lacks  {rung.gives:<9}  {rung.name}: {lack.why}")
            out.append(f"         {lack.command}")
    return out


def shown(tactic: Tactic) -> list[str]:
    """The lines of `show` on what the maturity rests, and on what others published of the op."""
    from netra_catalog import published

    found = _standing(tactic)
    out = []
    for id in tactic.evidence or ():
        old = found.stale.get(id) if found else None
        out.append(f"  evidence   {id}{': stale, ' + ', '.join(old) + ' changed' if old else ''}")
    if found and found.decision is not None:
        out.append(f"  reason     {found.decision.details['reason']}")
    entries = published.of(tactic.root, tactic.op, tactic.arch)
    out += [f"  published  {entry.text}" for entry in entries]
    sources = dict.fromkeys(entry.source for entry in entries)
    out += [f"  source     {source}; not measured here" for source in sources]
    return out


def facts(tactic: Tactic) -> dict[str, Any]:
    """The same for --json."""
    from dataclasses import asdict

    from netra_catalog import published

    found = _standing(tactic)
    return {
        "stale": found.stale if found else {},
        "reason": found.decision.details["reason"] if found and found.decision else None,
        "published": [asdict(e) for e in published.of(tactic.root, tactic.op, tactic.arch)],
    }


def _standing(tactic: Tactic) -> Standing | None:
    """None where there is nothing to look at: no evidence, no need for built kernels."""
    if not tactic.evidence:
        return None
    from netra_catalog.evidence import standing

    return standing(tactic)


@click.command()
@click.argument("tactic_id", metavar="ID")
@_json
def promote(tactic_id: str, as_json: bool) -> None:
    """Write into the YAML of ID the highest maturity that its results support.

    Prints each rung of the ladder, and for one that is missing the command that records it.  It
    demotes too: a result counts only while every hash it was made with is unchanged.
    """
    from netra_catalog import evidence
    from netra_catalog.promote import write

    tactic = one(tactic_id)
    found = evidence.standing(tactic)
    changed = write(tactic, found.maturity, found.ids)
    if as_json:
        click.echo(json.dumps(document(tactic, found, changed), indent=2))
        return
    arrow = f"{tactic.maturity} -> " if found.maturity != tactic.maturity else ""
    click.echo(f"{tactic.id}: {arrow}{found.maturity}")
    for line in lines(found):
        click.echo(line)
    for error in found.damaged:
        click.echo(f"  not read: {error.message}")


@click.command()
@click.argument("tactic_id", metavar="ID")
@_reason
@_evidence
@_json
def reject(tactic_id: str, reason: str, ids: tuple[str, ...], as_json: bool) -> None:
    """Take ID out of selection: it was tried, and something is better.

    The decision is kept in results/ with the hashes of kernel and contract, and holds until one
    of them changes.
    """
    _decide("rejected", tactic_id, reason, ids, as_json)


@click.command()
@click.argument("tactic_id", metavar="ID")
@_reason
@_evidence
@_json
def quarantine(tactic_id: str, reason: str, ids: tuple[str, ...], as_json: bool) -> None:
    """Take ID out of selection: it faulted, or hung a device.

    The decision is kept in results/ with the hashes of kernel and contract, and holds until one
    of them changes.
    """
    _decide("quarantined", tactic_id, reason, ids, as_json)


def _decide(
    kind: str, tactic_id: str, reason: str, ids: tuple[str, ...], as_json: bool
) -> None:
    from netra_catalog import evidence, hashes, result
    from netra_catalog.promote import write

    tactic = one(tactic_id)
    if not reason.strip():
        raise UsageError("--reason is empty", hint="say what was found, and how")
    before = evidence.standing(tactic)
    known = {r.id: r for r in before.results}
    for id in ids:
        if id not in known:
            raise UsageError(
                f"{tactic.id} has no result {id}", hint=f"see {display(_folder(tactic))}"
            )
    rests = list(ids) or [
        r.id for r in before.results if r.verdict == "fail" and r.id not in before.stale
    ]
    if not rests:
        raise NetraError(
            f"no result shows that {tactic.id} is to be {kind}",
            hint="record one first (netra-harness validate --record, bench --compare --record), "
            "or name one with --evidence",
        )
    made = result.write(tactic.root, {
        "schema": result.SCHEMA, "kind": kind, "tactic": tactic.id, "verdict": "decision",
        "recorded": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "hashes": hashes.of_tactic(tactic), "device": {"kind": "none"}, "toolchain": {},
        "harness": {"version": "netra-catalog"}, "host": {}, "seed": 0,
        "rerun": f"netra-catalog {'reject' if kind == 'rejected' else 'quarantine'} {tactic.id} "
        f"--reason {json.dumps(reason.strip())}",
        "details": {"reason": reason.strip(), "rests_on": rests},
    })
    found = evidence.standing(tactic)
    changed = write(tactic, found.maturity, found.ids)
    if as_json:
        click.echo(json.dumps(document(tactic, found, changed), indent=2))
    else:
        click.echo(f"{tactic.id}: {tactic.maturity} -> {found.maturity}")
        click.echo(f"  {display(made.path)}")
        for id in rests:
            click.echo(f"  by {id}")


def _folder(tactic: Tactic) -> Any:
    from netra_catalog import result

    return result.folder(tactic.root, tactic.id)
