"""netra-catalog: what may run, and why something may not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from netra_catalog import cli_evidence
from netra_catalog.errors import NetraError, NoTacticError, UsageError, nearest
from netra_catalog.paths import ARCHES, display, repo_root

if TYPE_CHECKING:
    from netra_catalog.tactic import Tactic

_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
_arch = click.option("--arch", type=click.Choice(ARCHES), help="Only this target.")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """The catalog of tactics: which kernel may take which call."""


for _command in (cli_evidence.promote, cli_evidence.reject, cli_evidence.quarantine):
    main.add_command(_command)


def _print(document: Any) -> None:
    click.echo(json.dumps(document, indent=2))


@main.command("list")
@click.argument("pattern", default="*")
@_arch
@_json
def list_(pattern: str, arch: str | None, as_json: bool) -> None:
    """List the tactics that PATTERN selects."""
    from netra_catalog.load import select

    tactics = select(pattern, arch)
    if as_json:
        keys = ("arch", "op", "maturity", "hold")
        _print({"tactics": [
            {"tactic": t.id, **{key: getattr(t, key) for key in keys}, "kernels": list(t.kernels)}
            for t in tactics
        ]})
        return
    rows = [("tactic", "op", "maturity", "kernels")]
    rows += [(t.id, t.op, _state(t), ", ".join(t.kernels)) for t in tactics]
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        click.echo("  ".join([*cells, row[3]]).rstrip())


def _state(tactic: Tactic) -> str:
    return f"{tactic.maturity}, held" if tactic.hold else tactic.maturity


@main.command()
@click.argument("tactic_id", metavar="ID")
@_json
def show(tactic_id: str, as_json: bool) -> None:
    """Show all that one tactic states."""
    tactic = cli_evidence.one(tactic_id)
    if as_json:
        _print(_document(tactic))
        return
    click.echo(f"{tactic.id}  {tactic.op}  {_state(tactic)}")
    click.echo(f"  file       {display(tactic.path)}")
    click.echo(f"  oracle     {tactic.oracle_name}, variant {tactic.variant}")
    click.echo(f"  rank       {tactic.rank}")
    click.echo(f"  contract   sha256 {tactic.contract_sha256}")
    width = max(len(id) for id in tactic.contract)
    for id, predicate in tactic.contract.items():
        click.echo(f"    {id.ljust(width)}  {predicate.text}")
    for launch in tactic.launches:
        grid, block = (", ".join(map(str, triple)) for triple in (launch.grid, launch.block))
        click.echo(f"  launch     {launch.kernel}")
        click.echo(f"    grid [{grid}]  block [{block}]  lds {launch.lds}")
        for arg in launch.args:
            value = f" = {arg.value}" if arg.value else ""
            click.echo(f"    @{arg.offset:<4} {arg.kind:<4} {arg.name}{value}")
    for kernel, resources in tactic.resources.items():
        text = "  ".join(f"{key} {value}" for key, value in resources.items())
        click.echo(f"  resources  {kernel}: {text}")
    space, effects, numerics = tactic.workspace, tactic.effects, tactic.numerics
    click.echo(f"  workspace  {space.bytes} bytes, zeroed by {space.zeroed_by}")
    click.echo(f"  reads      {', '.join(effects.reads) or 'nothing'}")
    click.echo(f"  writes     {', '.join(effects.writes)}")
    click.echo(f"  commits    {', '.join(effects.commits) or 'nothing'}")
    second = f"; exact: {numerics.exact.metric} {numerics.exact.value}" if numerics.exact else ""
    click.echo(
        f"  numerics   {numerics.decides}: {numerics.allowed}, "
        f"matrix model {numerics.matrix_model}{second}"
    )
    for engine, path in tactic.fallback.items():
        click.echo(f"  fallback   {engine}: {path}")
    if tactic.hold:
        click.echo(f"  hold       {tactic.hold}")
    for line in cli_evidence.shown(tactic):
        click.echo(line)


def _document(tactic: Tactic) -> dict[str, Any]:
    numerics = tactic.numerics
    return {
        "tactic": tactic.id, "arch": tactic.arch, "op": tactic.op,
        "maturity": tactic.maturity, "hold": tactic.hold, "rank": tactic.rank,
        "oracle": {"name": tactic.oracle_name, "variant": tactic.variant},
        "file": display(tactic.path), "contract_sha256": tactic.contract_sha256,
        "contract": {id: predicate.text for id, predicate in tactic.contract.items()},
        "launches": [
            {
                "kernel": launch.kernel, "grid": [str(e) for e in launch.grid],
                "block": [str(e) for e in launch.block], "lds": str(launch.lds),
                "kernarg_size": launch.kernarg_size,
                "args": [
                    {
                        "name": arg.name, "kind": arg.kind, "offset": arg.offset,
                        "value": str(arg.value) if arg.value else None,
                    }
                    for arg in launch.args
                ],
            }
            for launch in tactic.launches
        ],
        "resources": {kernel: dict(r) for kernel, r in tactic.resources.items()},
        "workspace": {
            "bytes": str(tactic.workspace.bytes), "zeroed_by": tactic.workspace.zeroed_by,
        },
        "effects": {
            "reads": list(tactic.effects.reads), "writes": list(tactic.effects.writes),
            "commits": list(tactic.effects.commits),
        },
        "numerics": {
            "decides": numerics.decides, "metric": numerics.metric, "value": numerics.value,
            "relative": numerics.relative, "matrix_model": numerics.matrix_model,
            "exact": numerics.exact
            and {"metric": numerics.exact.metric, "value": numerics.exact.value},
        },
        "fallback": dict(tactic.fallback), "evidence": tactic.evidence,
        **cli_evidence.facts(tactic),
    }


@main.command()
@click.argument("op")
@click.argument("words", metavar="[KEY=VALUE]...", nargs=-1)
@click.option(
    "--device", type=click.Choice(("sim", "hip")), default="sim", show_default=True,
    help="Whose rules of admission apply.",
)
@_json
def why(op: str, words: tuple[str, ...], device: str, as_json: bool) -> None:
    """Resolve one call of OP, or name each tactic's first false predicate.

    \b
    Tensors:    logits=f32[16,248320]  logits.stride=248320,1  logits.ptr=0x1000
                also .extent .layout .dtype .shape
    Dimensions: rows=9, for tensors that are left out
    Signature:  arch=gfx950 graph=capture phase=decode cu_count=256
    Scalars:    eps=1e-6

    Tensors that are left out are assumed dense and aligned, with the shape that
    the op's dimensions give.  Without arch=, each target is asked.
    """
    from netra_catalog.ask import read_question
    from netra_catalog.build import of_op
    from netra_catalog.dispatch import describe_call

    tactics, ops = of_op(repo_root(), op)
    if not tactics:
        raise UsageError(f"no tactic implements '{op}'{nearest(op, ops)}")
    question = read_question(tactics[0].definition, words)
    arch = question.signature.get("arch")
    targets = [arch] if arch else sorted({tactic.arch for tactic in tactics})
    answers: list[dict[str, Any]] = []
    for target in targets:
        call = question.call(target)
        assumed = question.assumed(call)
        answers.append({**_answer(tactics, call, device == "sim"), "assumed": assumed})
    accepted = [answer["tactic"] for answer in answers if answer["tactic"]]
    if as_json:
        _print({"op": op, "device": device, "accepted": bool(accepted), "targets": answers})
    else:
        for answer in answers:
            _print_answer(answer)
    if not accepted:
        call = question.call(targets[0])
        asked = describe_call(call) if arch else describe_call(call).replace(
            f" arch={targets[0]}", ""
        )
        raise NoTacticError(f"no tactic accepts {asked}")


def _answer(tactics: list[Any], call: Any, simulated: bool) -> dict[str, Any]:
    from netra_catalog.dispatch import Judge, Match, barred, describe_call, match

    asked: list[dict[str, Any]] = []
    able: list[Any] = []
    judge = Judge(call)
    here = any(t.arch == call.arch for t in tactics)
    for tactic in tactics:
        if here and tactic.arch != call.arch:
            continue
        reason = barred(tactic, simulated=simulated)
        failure = judge.explain(tactic)
        if not reason:
            able.append(tactic)
        text = failure.text if failure else f"would take it, but {reason}" if reason else "takes it"
        asked.append({
            "tactic": tactic.id, "accepts": not failure and not reason,
            "predicate": failure.id if failure else None, "text": text, "barred": reason or None,
        })
    result = match(able, call, judge)
    chosen = result.tactic if isinstance(result, Match) else None
    return {
        "arch": call.arch, "call": describe_call(call), "tactic": chosen.id if chosen else None,
        "tactics": asked, "fallback": None if chosen else _fallback(tactics, call.arch),
    }


def _fallback(tactics: list[Any], arch: str) -> dict[str, str]:
    merged: dict[str, str] = {}
    for tactic in tactics:
        if tactic.arch == arch:
            for engine, path in tactic.fallback.items():
                merged.setdefault(engine, path)
    return merged


def _print_answer(answer: dict[str, Any]) -> None:
    click.echo(answer["call"])
    if answer["assumed"]:
        click.echo(f"  assumed: {' '.join(answer['assumed'])}")
    for asked in answer["tactics"]:
        click.echo(f"  {asked['tactic']}: {asked['text']}")
    if answer["tactic"]:
        click.echo(f"  -> {answer['tactic']}")
    else:
        paths = ", ".join(f"{key}: {value}" for key, value in answer["fallback"].items())
        click.echo(f"  -> the caller's own path{f' ({paths})' if paths else ''}")


@main.command()
@click.argument("op")
@_arch
@click.option(
    "--device", type=click.Choice(("sim", "hip")), default="sim", show_default=True,
    help="Whose rules of admission apply.",
)
@_json
def coverage(op: str, arch: str | None, device: str, as_json: bool) -> None:
    """Show which calls of OP are admitted, the holes between them, and where the rest goes."""
    from netra_catalog.coverage import coverage as run
    from netra_catalog.dispatch import barred
    from netra_catalog.load import load

    every = load()
    tactics = [t for t in every if t.op == op and arch in (None, t.arch)]
    if not tactics:
        known = {t.op for t in every if arch in (None, t.arch)}
        raise UsageError(f"no tactic implements '{op}'{nearest(op, known)}")
    out = {t.id: reason for t in tactics if (reason := barred(t, simulated=device == "sim"))}
    able = [t for t in tactics if t.id not in out]
    targets: list[dict[str, Any]] = []
    for target in sorted({t.arch for t in tactics}):
        found = run(able, target) if able else {
            "arch": target, "admitted": [], "holes": [], "declined": [], "unknown": [],
        }
        targets.append({**found, "fallback": _fallback(tactics, target)})
    if as_json:
        _print({"op": op, "device": device, "targets": targets, "barred": out})
        return
    for target_ in targets:
        _print_coverage(op, target_)
    for id, reason in out.items():
        click.echo(f"{id} is left out: {reason}")


def _print_coverage(op: str, found: dict[str, Any]) -> None:
    click.echo(f"{op} on {found['arch']}")
    for entry in found["admitted"]:
        click.echo(f"  {entry['tactic']} (rank {entry['rank']}) admits")
        click.echo(f"    phase {', '.join(entry['phases'])}; graph {', '.join(entry['graphs'])}")
        for name, text in entry["inputs"].items():
            click.echo(f"    {name}: {text}")
        if entry["where"]:
            click.echo(f"    where {'; '.join(entry['where'])}")
    for hole in found["holes"]:
        click.echo(
            f"  hole: {hole['input']} = {hole['missing']} is missing in {hole['between']} "
            f"(phase {', '.join(hole['phases'])}; graph {', '.join(hole['graphs'])}; "
            f"{', '.join(hole['tactics'])})"
        )
    for text in found["unknown"]:
        click.echo(f"  not known: {text}")
    if not found["holes"]:
        click.echo("  holes: none")
    paths = ", ".join(f"{key}: {value}" for key, value in found["fallback"].items())
    for graph in dict.fromkeys(d["graph"] for d in found["declined"]):
        phases = [d["phase"] for d in found["declined"] if d["graph"] == graph]
        click.echo(f"  graph {graph}, phase {', '.join(phases)}: never admitted")
    click.echo(f"  every other call -> the caller's own path ({paths})")


@main.command()
@click.option("--output", type=click.Path(dir_okay=False), help="Instead of build/catalog.bin.")
@_json
def build(output: str | None, as_json: bool) -> None:
    """Compile the catalog into catalog.bin, which the bridge reads.

    The kernels must be assembled (make gfx950 gfx1151): their hashes go into the file.
    """
    from pathlib import Path

    from netra_catalog.build import build as run

    path, count = run(repo_root(), Path(output) if output else None)
    size = path.stat().st_size
    if as_json:
        _print({"file": display(path), "tactics": count, "bytes": size})
    else:
        click.echo(f"{display(path)}: tactics {count}, bytes {size}")


@main.command()
@_arch
@click.option("--sources", is_flag=True, help="Leave out what needs built code objects.")
@click.option("--no-evidence", is_flag=True, help="Leave out whether the evidence is current.")
@_json
def check(arch: str | None, sources: bool, no_evidence: bool, as_json: bool) -> None:
    """Check every tactic and the kernels it names.  Nothing is ever edited.

    Schema, names and types; launches, workspace and arguments over all that the contract admits;
    overlaps of equal rank, with a call that shows them; and, of every kernel's code object, that
    it is the one last built, its symbol, arguments and resources.  Then the results: each file
    whole, and every maturity the one that they give.
    """
    from netra_catalog.checks import check as run

    evidence = not (sources or no_evidence)
    report = run(repo_root(), arch, built=not sources, evidence=evidence)
    if as_json:
        _print({
            "passed": not report.errors, "tactics": report.tactics, "kernels": report.kernels,
            "errors": list(report.errors),
        })
    else:
        for error in report.errors:
            click.echo(error)
    if report.errors:
        raise NetraError(f"the catalog has errors: {len(report.errors)}")
    if not as_json:
        click.echo(f"no errors (tactics: {report.tactics}, kernels: {report.kernels})")


if __name__ == "__main__":
    main()
