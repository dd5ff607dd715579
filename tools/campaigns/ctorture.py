"""GCC's self-checking C programs (gcc.c-torture/execute) as kernels.

A program checks itself: it calls exit(0) or returns 0 when all is well, and abort() when something
is not.  Which of them can run at all is in ctorture_programs.txt: those that clang compiles for
both targets with the small C library of runtime/, and that pass when built for the host.

Program and library become one module before code is generated (-flto), since only then does the
compiler know what main() needs, and declare enough registers and scratch for the kernel.
"""

from __future__ import annotations

import subprocess
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from netra_catalog import paths
from netra_catalog.errors import UsageError, nearest
from netra_harness import workers

from campaigns import compiler, core, packages, simulate

NAME = "ctorture"
LIST = Path(__file__).resolve().parent / "ctorture_programs.txt"
PACKAGES = ("gcc-12-source",)
TESTSUITE = "gcc/testsuite/gcc.c-torture/execute/"
FLAGS = ["-O1", "-w", "-std=gnu89", "-fno-builtin"]
LINK = ["-flto", "-Wl,--no-undefined", "-Wl,--lto-O1"]
HOST_SECONDS = 10

# Programs that need another option, and why.
OPTIONS = {
    # An undeclared memset gets an int for its size_t: half of that register pair is undefined.
    "980506-3": ["-Dmemset=__builtin_memset"],
    # From -O1 on, clang takes a shift of a signed byte for one of an unsigned byte, which is what
    # the program is about, and selects v_perm_b32.
    "pr61306-1": ["-O0"],
}
_COMPUTED_GOTO = (
    "clang for AMDGPU replaces the computed goto by branches on an SCC that nothing sets"
)
# Programs that abort() because they are compiled wrongly; any other failure of theirs counts.
MISCOMPILED = dict.fromkeys(["920501-4", "920501-5", "pr70460"], _COMPUTED_GOTO)


def _tarball() -> Path | None:
    return next(iter(sorted(Path("/usr/src/gcc-12").glob("gcc-12*.tar.xz"))), None)


def sources() -> Path:
    """The folder of the programs, unpacked from Debian's package of GCC's sources."""
    tarball = packages.ensure(PACKAGES, _tarball, "the source of GCC's test suite")
    output = core.folder(NAME) / "source"
    if output.is_dir():
        return output
    print(f"unpacking {TESTSUITE} of {tarball}", flush=True)
    with tempfile.TemporaryDirectory(dir=output.parent) as name, tarfile.open(tarball) as archive:
        partial = Path(name) / "source"
        partial.mkdir()
        for member in archive:
            _, found, file = member.name.partition(TESTSUITE)
            if found and member.isfile() and "/" not in file and file.endswith(".c"):
                data = archive.extractfile(member)
                assert data is not None
                (partial / file).write_bytes(data.read())
        try:
            partial.rename(output)
        except OSError:  # another process was sooner
            if not output.is_dir():
                raise
    return output


def programs() -> list[str]:
    """The names of the programs that can run."""
    return LIST.read_text().split()


def _folder(arch: str, flags: Sequence[str]) -> Path:
    return core.folder(NAME) / "".join([arch, *flags])


def library(arch: str, flags: Sequence[str] = ()) -> Path:
    """runtime/libc.c as bitcode."""
    source, header = compiler.RUNTIME / "libc.c", compiler.RUNTIME / "result.h"
    clang = compiler.target_command(paths.llvm_bin(), arch)
    command = [*clang, *FLAGS, *flags, "-flto", "-c", str(source)]
    return compiler.build(command, [source, header], _folder(arch, flags) / "libc.bc")


def code_object(source: Path, arch: str, flags: Sequence[str] = ()) -> Path:
    """The program as a code object with one kernel."""
    runtime = library(arch, flags)
    options = [*FLAGS, *flags, *OPTIONS.get(source.stem, []), *LINK]
    command = [*compiler.target_command(paths.llvm_bin(), arch), *options]
    output = _folder(arch, flags) / f"{source.stem}.co"
    return compiler.build([*command, str(source), str(runtime)], [source, runtime], output)


def work(job: dict[str, Any]) -> dict[str, Any]:
    """In the worker: compiles and runs one program on one target."""
    source = Path(job["source"])
    ended = simulate.run_program(code_object(source, job["arch"], job["flags"]), job["arch"])
    excuse = MISCOMPILED.get(source.stem) if ended.failure == simulate.ABORT else None
    return {**ended.answer(), "excuse": excuse}


def run(options: core.Options) -> int:
    """The campaign; its exit code."""
    known = programs()
    for name in options.names:
        if name not in known:
            raise UsageError(f"ctorture has no program '{name}'{nearest(name, known)}")
    chosen = list(options.names) or core.choose(known, options)
    folder = sources()
    for arch in options.arches:
        library(arch, options.flags)
    tasks = [
        core.Task(
            name, arch, "campaigns.ctorture:work",
            {"source": str(folder / f"{name}.c"), "flags": options.flags},
            core.again(NAME, options, name, arch),
        )
        for name in chosen
        for arch in options.arches
    ]  # fmt: skip
    return core.finish(NAME, core.run(NAME, tasks, options), options.seed)


# ---- which programs can run ------------------------------------------------------------------


def usable(job: dict[str, Any]) -> dict[str, Any]:
    """In the worker: why a program is not usable; None if it is."""
    source = Path(job["source"])
    try:
        host = [str(paths.llvm_bin() / "clang"), *FLAGS, str(source), "-lm"]
        binary = compiler.build(host, [source], core.folder(NAME) / "host" / source.stem)
        for arch in paths.ARCHES:
            code_object(source, arch)
    except compiler.CompileFailed as error:
        return {"failure": f"does not compile: {error.message}"}
    try:
        done = subprocess.run(
            [str(binary)], stdin=subprocess.DEVNULL, capture_output=True, timeout=HOST_SECONDS
        )
    except subprocess.TimeoutExpired:
        return {"failure": "does not end on the host"}
    return {"failure": f"exit code {done.returncode} on the host" if done.returncode else None}


def discover(options: core.Options) -> int:
    """Writes the list of programs that can run."""
    folder = sources()
    for arch in paths.ARCHES:
        library(arch)
    names = sorted(path.stem for path in folder.glob("*.c"))
    tasks = [
        core.Task(name, "", "campaigns.ctorture:usable", {"source": str(folder / f"{name}.c")}, "")
        for name in names
    ]
    out: dict[str, str] = {}
    for outcome in workers.run(core.jobs(tasks, options), options.workers):
        text = outcome.answer["failure"] if outcome.kind == "ok" else outcome.text
        out[tasks[outcome.job.body["index"]].name] = text or ""
    for name in names:
        if out[name]:
            print(f"{name}: {out[name].splitlines()[0]}")
    good = [name for name in names if not out[name]]
    LIST.write_text("\n".join(good) + "\n")
    print(f"{len(good)} of {len(names)} programs can run: {paths.display(LIST)}")
    return 0
