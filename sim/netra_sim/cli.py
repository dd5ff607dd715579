"""netra-sim: look into code objects, and run one kernel on the simulator."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any

import click
from netra_catalog.errors import NetraError, UsageError, nearest
from netra_catalog.paths import ARCHES

import netra_sim
from netra_sim import arguments, counted, sanitizer, schedules
from netra_sim.hip import Hip, HipError
from netra_sim.lint import lint as lint_file

_FILL = 0xA5  # what a buffer without contents holds: an unwritten element shows
_DEFAULT_SEED = 1
_TRACE_LIMIT = 10_000  # instructions


@click.group()
def main() -> None:
    """Netra's simulator: inspect code objects, run kernels."""


@main.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def inspect(file: Path, as_json: bool) -> None:
    """Registers, LDS, arguments and hashes of the kernels in FILE."""
    document = netra_sim.inspect(file)
    if as_json:
        click.echo(json.dumps(document, indent=2))
        return
    click.echo(f"{file}: {document['arch']}, code object version "
               f"{document['code_object_version']}")
    click.echo(f"co_sha256     {document['co_sha256']}")
    for kernel in document["kernels"]:
        click.echo("")
        _show(kernel)


def _show(kernel: dict[str, Any]) -> None:
    click.echo(kernel["name"])
    click.echo(f"  kernel_sha256 {kernel['kernel_sha256']}")
    click.echo("  registers     used  declared  allocated")
    for name in ("vgpr", "agpr", "sgpr"):
        counts = kernel[name]
        shown = ["-" if counts[key] is None else str(counts[key])
                 for key in ("used", "declared", "allocated")]
        click.echo(f"    {name.upper():10}{shown[0]:>6}{shown[1]:>10}{shown[2]:>11}")
    if "used_error" in kernel:
        click.echo(f"    used is unknown: {kernel['used_error']}")
    if not kernel["has_metadata"]:
        click.echo("  no metadata: HIP cannot launch this kernel")
    dynamic = " and a dynamic stack" if kernel["dynamic_stack"] else ""
    click.echo(f"  LDS           {kernel['lds']} bytes")
    click.echo(f"  scratch       {kernel['scratch']} bytes per lane{dynamic}")
    click.echo(f"  wave size     {kernel['wave_size']}")
    click.echo(f"  workgroup     at most {kernel['max_workgroup']}")
    click.echo(f"  waves         {kernel['waves_per_simd']} per SIMD")
    click.echo(f"  kernarg       {kernel['kernarg']} bytes")
    positions = {arg["offset"]: name for name, arg in arguments.explicit(kernel).items()}
    for arg in kernel["args"]:
        name = arg["name"] or positions.get(arg["offset"], "")
        click.echo(f"    {arg['offset']:>4}  {arg['size']:>4}  {arg['kind']:<24} {name}".rstrip())


@main.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--arch", type=click.Choice(ARCHES), help="Target of a source in another folder.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def lint(files: tuple[Path, ...], arch: str | None, as_json: bool) -> None:
    """What is wrong with FILES (.co or .s) that shows without running them; errors exit 1."""
    documents = [lint_file(file, arch) for file in files]
    found = [finding for document in documents for finding in document["findings"]]
    if as_json:
        click.echo(json.dumps(documents, indent=2))
    else:
        for finding in found:
            click.echo(sanitizer.text(finding))
        click.echo(f"{len(files)} files: {sanitizer.summary(found) or 'clean'}")
    if sanitizer.errors(found):
        raise NetraError("lint found " + sanitizer.summary(found))


def _triple(ctx: click.Context, param: click.Parameter, value: str) -> tuple[int, int, int]:
    """X, X,Y or X,Y,Z; what is left out is 1."""
    try:
        numbers = [int(part, 0) for part in value.split(",")]
    except ValueError:
        numbers = []
    if not 1 <= len(numbers) <= 3 or any(not 0 <= n < 2**32 for n in numbers):
        raise click.BadParameter(
            f"{value!r} is not one to three counts such as 16 or 16,4", ctx=ctx, param=param
        )
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z


@main.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("kernel")
@click.option("--grid", callback=_triple, required=True, metavar="X[,Y[,Z]]", help="Workgroups.")
@click.option("--block", callback=_triple, required=True, metavar="X[,Y[,Z]]",
              help="Work-items of a workgroup.")
@click.option("--lds", type=click.IntRange(0, 2**32 - 1), default=0, help="Dynamic LDS in bytes.")
@click.option("--arg", "args", multiple=True, metavar="NAME=...",
              help="NAME=@FILE, NAME:DTYPE=@FILE, NAME=DTYPE[SHAPE] or NAME=VALUE:DTYPE.")
@click.option("--save", "saves", multiple=True, metavar="NAME=FILE",
              help="Writes a buffer after the run, as .npy or raw bytes.")
@click.option("--arch", type=click.Choice(ARCHES), help="Refuse an object for another target.")
@click.option("--seed", default=str(_DEFAULT_SEED), help="Schedule seed, or `random`.")
@click.option("--schedules", "schedules_", type=click.IntRange(1, 10_000), default=1, metavar="N",
              help="Run under N seeds from --seed on; outputs that differ are a finding.")
@click.option("--sanitize", is_flag=True, help="Watch the run (docs/sanitizer.md); errors exit 1.")
@click.option("--trace", is_flag=True, help="What is executed, with register names, on stderr.")
@click.option("--trace-file", type=click.Path(path_type=Path), metavar="FILE",
              help="The same into FILE.")
@click.option("--trace-limit", type=click.IntRange(1, 10**8), default=_TRACE_LIMIT,
              show_default=True, help="How many instructions a trace shows.")
@click.option("--counters", is_flag=True,
              help="Memory traffic, LDS conflicts, MFMA passes, barriers, occupancy.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def run(
    file: Path,
    kernel: str,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    lds: int,
    args: tuple[str, ...],
    saves: tuple[str, ...],
    arch: str | None,
    seed: str,
    schedules_: int,
    sanitize: bool,
    trace: bool,
    trace_file: Path | None,
    trace_limit: int,
    counters: bool,
    as_json: bool,
) -> None:
    """Runs KERNEL of FILE once on the simulator."""
    document = netra_sim.inspect(file)
    if arch is not None and arch != document["arch"]:
        raise UsageError(f"{file} is for {document['arch']}, not for {arch}")
    by_name = {found["name"]: found for found in document["kernels"]}
    if kernel not in by_name:
        raise UsageError(f"no kernel '{kernel}'{nearest(kernel, by_name)}", where=str(file))
    given: dict[str, arguments.Argument] = {}
    for text in args:
        argument = arguments.parse(text)
        if argument.name in given:
            raise UsageError(f"--arg {argument.name} is given twice")
        given[argument.name] = argument
    targets = _save_targets(saves, given)
    number = _seed(seed)
    click.echo(f"seed {number}", err=as_json)

    # The device is the object's; an environment that names others does not apply here.
    os.environ["NETRA_SIM_DEVICES"] = document["arch"]
    netra_sim.set_checked(sanitize)
    netra_sim.set_counting(counters)
    netra_sim.set_trace(trace_limit if trace or trace_file else 0)
    try:
        outputs = _launch(file, by_name[kernel], given, grid, block, lds, number, set(targets))
    except HipError as error:
        fault = netra_sim.last_fault()
        if fault:
            _watched(trace, trace_file, counters, err=True)
        for finding in netra_sim.findings():
            click.echo(sanitizer.text(finding), err=True)
        raise NetraError(fault or str(error), where=f"{file}: {kernel}") from None
    for name, path in targets.items():
        arguments.save(path, given[name], outputs[name])
    order: list[dict[str, Any]] = []
    if schedules_ > 1:
        # Under the checks nothing more would be seen than in the run above.
        order = _other_schedules(file, by_name[kernel], given, grid, block, lds, number, schedules_)
        for finding in order:
            click.echo(sanitizer.text(finding), err=True)
        _exit(order)
    _report(kernel, targets, as_json, number)
    _watched(trace, trace_file, counters and not as_json, err=as_json)
    _exit(netra_sim.findings())


def _other_schedules(
    file: Path,
    kernel: dict[str, Any],
    given: dict[str, arguments.Argument],
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    lds: int,
    seed: int,
    count: int,
) -> list[dict[str, Any]]:
    """Findings about buffers that `count` seeds leave different; addresses cannot differ, since
    each run frees what it allocates."""
    widths = {name: one.nbytes // _count(one) for name, one in given.items() if one.is_buffer}

    def launch(one: int) -> dict[str, bytes]:
        return _launch(file, kernel, given, grid, block, lds, one, set(widths))

    try:
        return schedules.compare(kernel["name"], seed, count, widths, launch)
    except HipError as error:
        fault = netra_sim.last_fault()
        raise NetraError(fault or str(error), where=f"{file}: --schedules") from None


def _count(argument: arguments.Argument) -> int:
    count = 1
    for extent in argument.shape:
        count *= extent
    return max(count, 1)


def _watched(trace: bool, trace_file: Path | None, counters: bool, *, err: bool) -> None:
    """The trace and the counters that were asked for; `err` sends the counters to stderr."""
    lines = netra_sim.trace() if trace or trace_file else ""
    if trace:
        click.echo(lines, err=True, nl=False)
    if trace_file:
        arguments.write(trace_file, lines.encode())
    found = netra_sim.counters() if counters else {}
    if found:  # a launch that was refused has none
        click.echo(counted.text(found), err=err)


def _save_targets(saves: tuple[str, ...], given: dict[str, arguments.Argument]) -> dict[str, Path]:
    targets = {}
    for text in saves:
        name, equals, path = text.partition("=")
        if not equals or not path:
            raise UsageError(f"--save {text}: expected NAME=FILE")
        if name not in given or not given[name].is_buffer:
            buffers = [known for known, argument in given.items() if argument.is_buffer]
            raise UsageError(f"--save {text}: no buffer '{name}'{nearest(name, buffers)}")
        targets[name] = Path(path)
    return targets


def _seed(text: str) -> int:
    if text == "random":
        return int.from_bytes(os.urandom(4), "little")
    try:
        return int(text, 0) & (2**64 - 1)
    except ValueError:
        raise UsageError(f"--seed {text}: expected a number or `random`") from None


def _launch(
    file: Path,
    kernel: dict[str, Any],
    given: dict[str, arguments.Argument],
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    lds: int,
    seed: int,
    wanted: set[str],
) -> dict[str, bytes]:
    hip = Hip(netra_sim.library_path())
    netra_sim.set_seed(seed)
    module = hip.load_module(file)
    function = hip.function(module, kernel["name"])
    pointers = {}
    values = {}
    for name, argument in given.items():
        if argument.value is not None:
            values[name] = argument.value
            continue
        if argument.nbytes == 0:
            raise UsageError(f"--arg {name}: the buffer is empty")
        pointer = hip.malloc(argument.nbytes)
        if argument.data is None:
            hip.fill(pointer, _FILL, argument.nbytes)
        else:
            hip.upload(pointer, argument.data)
        pointers[name] = pointer
        values[name] = struct.pack("<Q", pointer)
    kernarg = arguments.lay_out(kernel, values, str(file))
    hip.launch(function, grid, block, kernarg, lds=lds)
    hip.synchronize()
    outputs = {name: hip.download(pointers[name], given[name].nbytes) for name in wanted}
    for pointer in pointers.values():
        hip.free(pointer)
    hip.unload_module(module)
    return outputs


def _report(kernel: str, targets: dict[str, Path], as_json: bool, seed: int) -> None:
    counters, findings = netra_sim.counters(), netra_sim.findings()
    if as_json:
        click.echo(json.dumps({
            "kernel": kernel,
            "seed": seed,
            "saved": {name: str(path) for name, path in targets.items()},
            "counters": counters,
            "findings": findings,
        }, indent=2))
    else:
        for name, path in targets.items():
            click.echo(f"saved {name} to {path}")
        click.echo(f"{kernel}: {counters.get('instructions', 0)} instructions, "
                   f"{counters.get('waves', 0)} waves")
        for finding in findings:
            click.echo(sanitizer.text(finding), err=True)


def _exit(findings: list[dict[str, Any]]) -> None:
    """Errors are the caller's failure; warnings are shown and pass."""
    if sanitizer.errors(findings):
        raise NetraError("the sanitizer found " + sanitizer.summary(findings))
