"""Random C programs (Csmith): the same checksum from the host and from both targets.

Csmith writes programs without undefined behaviour whose main() ends with a checksum of all globals.
A program counts when it ends soon on the host and when the host's compilers agree on the checksum;
most of the others never end.  Its number is the seed that it was made from: campaign seed 1 has
programs 1000000 and up, which is all that is needed to make them again.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from netra_catalog import paths
from netra_catalog.errors import UsageError
from netra_harness import workers

from campaigns import compiler, core, packages, simulate

NAME = "csmith"
PACKAGES = ("csmith", "libcsmith-dev")
INCLUDE = Path("/usr/include/csmith")
DEFAULT_COUNT = 100
SEEDS = 1_000_000  # programs of one campaign seed

# Small programs with nothing that prints, and no volatiles (whose accesses no host can count).
GENERATE = [
    "--no-argc", "--no-volatiles", "--no-volatile-pointers", "--no-vol-struct-union-fields",
    "--no-hash-value-printf", "--quiet", "--max-funcs", "4", "--max-block-depth", "3",
    "--max-block-size", "4", "--max-expr-complexity", "6",
]  # fmt: skip
FLAGS = ["-w", "-fwrapv"]
# With --float, Csmith mixes pointer types, and reads a float through an integer.
FLOAT_FLAGS = ["-Wno-incompatible-pointer-types", "-fno-strict-aliasing", "-ffp-contract=off"]
# Csmith guards integers against undefined behaviour, but not the conversion of a float that is out
# of range: a host build that stops there says which programs do it.
CHECKED = ["-fsanitize=float-cast-overflow", "-fsanitize-trap=float-cast-overflow"]
# Programs that clang compiles wrongly for a target; they do not count.
MISCOMPILED = {
    1001056: "at -O1, clang drops the s_and of a branch on VCC whose SCC an s_cselect still needs",
}
GENERATE_SECONDS, HOST_SECONDS = 20, 20
# Of processor time: what has not ended by then (a thousand times the usual) never will.
HOST_CPU_SECONDS = 0.05


def flavour(seed: int) -> tuple[bool, str]:
    """With floating point or not, and the optimisation level for the targets."""
    levels = ("-O1", "-O1", "-O2", "-O0", "-O1", "-O2", "-O1", "-O3", "-O1", "-O2")
    return seed % 10 >= 7, levels[seed % 10]


def flags(seed: int) -> list[str]:
    return FLAGS + (FLOAT_FLAGS if flavour(seed)[0] else [])


def _csmith() -> Path | None:
    found = shutil.which("csmith")
    return Path(found) if found and (INCLUDE / "csmith.h").is_file() else None


def _folder(seed: int) -> Path:
    return core.folder(NAME) / f"{seed:07}"


# ---- the host: in a worker -------------------------------------------------------------------


def _checksum(command: list[str], source: Path, binary: Path) -> str:
    """Compiles and runs on the host: "checksum = 1A2B3C4D", or why there is none."""
    compiler.run([*command, f"-I{INCLUDE}", str(source), "-o", str(binary), "-lm"])

    def limit() -> None:
        signal.setitimer(signal.ITIMER_VIRTUAL, HOST_CPU_SECONDS)  # survives exec

    try:
        done = subprocess.run(
            [str(binary)], capture_output=True, text=True, timeout=HOST_SECONDS, preexec_fn=limit
        )
    except subprocess.TimeoutExpired:
        return "does not end"
    finally:
        binary.unlink(missing_ok=True)
    if done.returncode == -signal.SIGVTALRM:
        return "does not end"
    if done.returncode in (-signal.SIGILL, -signal.SIGTRAP):
        return "converts a float out of range"
    if done.returncode:
        return f"ends with code {done.returncode}"
    return done.stdout.strip()


def prepare(job: dict[str, Any]) -> dict[str, Any]:
    """Makes a program, asks the host for its checksum and builds it for the targets.

    "dropped" says why it does not count.
    """
    answer = _ask_host(job)
    try:
        for arch in job["arches"] if not answer["dropped"] else ():
            code_object(job["seed"], arch, job["flags"])
    except compiler.CompilerCrashed as error:
        answer["dropped"] = f"{error.message} for {arch}"
    except compiler.CompileFailed:
        pass  # the run will report it, as a failure
    return answer


def _ask_host(job: dict[str, Any]) -> dict[str, Any]:
    seed, hosts = job["seed"], job["hosts"]
    if flavour(seed)[0]:
        hosts = [*hosts, [*hosts[-1], *CHECKED]]
    folder = _folder(seed)
    folder.mkdir(exist_ok=True)
    source, told = folder / "program.c", folder / "host.json"
    generate = [job["csmith"], "--seed", str(seed), "-o", source.name, *GENERATE]
    generate += ["--float"] if flavour(seed)[0] else []
    key = json.dumps([generate, hosts, flags(seed), HOST_CPU_SECONDS])
    if told.is_file() and source.is_file():
        answer: dict[str, Any] = json.loads(told.read_text())
        if answer.pop("key", None) == key:
            return answer
    answer = {"checksum": None, "dropped": None}
    try:
        # It writes platform.info where it runs.
        subprocess.run(
            generate, cwd=folder, check=True, capture_output=True, timeout=GENERATE_SECONDS
        )
        for host in hosts:
            text = _checksum([*host, *flags(seed)], source, folder / "host")
            found = re.fullmatch(r"checksum = ([0-9A-F]+)", text)
            if not found:
                answer["dropped"] = f"{text or 'prints nothing'} on the host"
            elif answer["checksum"] not in (None, int(found[1], 16)):
                answer["dropped"] = "the host's compilers do not agree"
            else:
                answer["checksum"] = int(found[1], 16)
            if answer["dropped"]:
                break
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        answer["dropped"] = "csmith does not write it"
    except compiler.CompileFailed as error:
        answer["dropped"] = f"does not compile for the host: {error.message.splitlines()[0]}"
    told.write_text(json.dumps({**answer, "key": key}) + "\n")
    return answer


# ---- the targets: in a worker ----------------------------------------------------------------


def code_object(seed: int, arch: str, more: Sequence[str] = ()) -> Path:
    source = _folder(seed) / "program.c"
    runtime = compiler.RUNTIME
    inputs = [source, *sorted(runtime.glob("*.[ch]")), *sorted(runtime.glob("include/*.h"))]
    command = [
        *compiler.target_command(paths.llvm_bin(), arch), flavour(seed)[1], *flags(seed), *more,
        "-ffreestanding", "-fno-builtin", "-Wl,--no-undefined", f"-I{runtime / 'include'}",
        "-idirafter", str(INCLUDE), f'-DPROGRAM="{source}"', str(runtime / "csmith_kernel.c"),
    ]  # fmt: skip
    return compiler.build(command, inputs, _folder(seed) / f"{''.join([arch, *more])}.co")


def work(job: dict[str, Any]) -> dict[str, Any]:
    """Runs one program on one target and compares the checksum."""
    ended = simulate.run_program(
        code_object(job["seed"], job["arch"], job.get("flags", ())), job["arch"]
    )
    answer = ended.answer()
    if not ended.failure and ended.checksum != job["checksum"]:
        answer["failure"] = f"checksum {ended.checksum:08X}, the host has {job['checksum']:08X}"
    return answer


# ---- the campaign ----------------------------------------------------------------------------


def host_compilers() -> list[list[str]]:
    """They must agree: a program on which they do not has undefined behaviour after all."""
    gcc = shutil.which("gcc")
    others = [[gcc, "-O0"], [gcc, "-O2"]] if gcc else []
    return [*others, [str(paths.llvm_bin() / "clang"), "-O1"]]


def prepared(options: core.Options) -> dict[int, int]:
    """The first `count` programs of the seed that count, and the host's checksums."""
    csmith = packages.ensure(PACKAGES, _csmith, "csmith")
    hosts = host_compilers()
    wanted = options.count or DEFAULT_COUNT
    seeds = [int(name) for name in options.names]
    first = options.seed * SEEDS
    kept: dict[int, int] = {}
    dropped: Counter[str] = Counter()
    while len(kept) < wanted:
        if not options.names:
            more = (wanted - len(kept)) * 11 // 10 + 1
            seeds, first = list(range(first, first + more)), first + more
        tasks = [
            core.Task(str(seed), "", "campaigns.csmith:prepare",
                      {"seed": seed, "hosts": hosts, "csmith": str(csmith),
                       "arches": options.arches, "flags": options.flags}, "")
            for seed in seeds
        ]  # fmt: skip
        found: dict[int, int] = {}
        for outcome in workers.run(core.jobs(tasks, options), options.workers):
            seed = outcome.job.body["seed"]
            why = outcome.text if outcome.kind != "ok" else outcome.answer["dropped"]
            if not why and not options.names:
                why = MISCOMPILED.get(seed)
            if why:
                dropped[why.splitlines()[0]] += 1
            else:
                found[seed] = outcome.answer["checksum"]
        kept |= dict(sorted(found.items()))
        if options.names:
            break
    for why, count in dropped.most_common():
        print(f"not counted: {count} programs: {why}")
    return dict(list(kept.items())[:wanted] if not options.names else kept)


def run(options: core.Options) -> int:
    """The campaign; its exit code."""
    for name in options.names:
        if not re.fullmatch(r"[0-9]{1,18}", name):
            raise UsageError(f"'{name}' is no csmith seed; programs are named by their seed")
    programs = prepared(options)
    tasks = [
        core.Task(
            str(seed), arch, "campaigns.csmith:work",
            {"seed": seed, "checksum": checksum, "flags": options.flags},
            core.again(NAME, options, str(seed), arch),
        )
        for seed, checksum in programs.items()
        for arch in options.arches
    ]  # fmt: skip
    return core.finish(NAME, core.run(NAME, tasks, options), options.seed)
