#!/usr/bin/env python3
"""Damaged inputs for what reads untrusted bytes; `make fuzz` comes here.

Runs build/fuzz/fuzz (libFuzzer, AddressSanitizer, UndefinedBehaviorSanitizer) on each kind of
input, from real objects and the corpus in tests/fuzz, and ends in `fuzz: P passed, F failed of N`.
An input that crashes, hangs or takes too much memory is kept in build/fuzz/found; the run goes on
without it.
"""

from __future__ import annotations

import hashlib
import os
import re
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
from netra_catalog import paths
from netra_catalog.errors import NetraError, ToolError

READERS = ("elf", "notes", "bundle", "text")
KINDS = (*READERS, "launch")
MOST_FAILURES = 20  # of a kind: then something is broken, and the rest would say the same
_NOTE_HEAD = 20  # sizes, type and "AMDGPU\0\0" before the description
_LENGTH = {"elf": 40000, "notes": 4000, "bundle": 40000, "text": 12000, "launch": 40000}
_EXECUTED = re.compile(r"stat::number_of_executed_units:\s*(\d+)")
_KEPT = re.compile(r"Test unit written to (\S+)")


@dataclass(frozen=True)
class Outcome:
    kind: str
    executed: int
    failures: tuple[Path, ...]


def _tool(llvm: Path, name: str, *words: str) -> bytes:
    done = subprocess.run([str(llvm / name), *words], capture_output=True)
    if done.returncode:
        raise ToolError(f"{name} {' '.join(words)}: {done.stderr.decode().strip()}")
    return done.stdout


def bundle(entries: dict[str, bytes]) -> bytes:
    """An offload bundle of code objects by target."""
    names = [f"hipv4-amdgcn-amd-amdhsa--{arch}".encode() for arch in entries]
    start = 24 + 8 + sum(24 + len(name) for name in names)
    table, body = struct.pack("<Q", len(entries)), b""
    for name, object_ in zip(names, entries.values(), strict=True):
        table += struct.pack("<QQQ", start + len(body), len(object_), len(name)) + name
        body += object_
    return b"__CLANG_OFFLOAD_BUNDLE__" + table + body


def compressed(data: bytes, version: int) -> bytes:
    """The bundle as clang-offload-bundler --compress writes it in this version of its header: one
    zlib stream."""
    stream = zlib.compress(data)
    sizes = {1: "<I", 2: "<II", 3: "<QQ"}[version]
    total = 4 + 4 + struct.calcsize(sizes) + 8 + len(stream)
    numbers = (len(data),) if version == 1 else (total, len(data))
    digest = hashlib.md5(data, usedforsecurity=False).digest()[:8]
    return b"CCOB" + struct.pack("<HH", version, 0) + struct.pack(sizes, *numbers) + digest + stream


def seeds(kind: str, objects: list[Path], llvm: Path) -> Iterator[bytes]:
    """Inputs that are right."""
    for number, path in enumerate(objects):
        data = path.read_bytes()
        if kind in ("elf", "launch"):
            yield data
        elif kind == "bundle":
            whole = bundle({path.parent.name: data})
            yield whole
            yield compressed(whole, 1 + number % 3)
        elif kind == "notes":
            note = _tool(llvm, "llvm-objcopy", "-O", "binary", "--only-section=.note",
                         "--set-section-flags=.note=alloc,load", str(path), "-")
            (size,) = struct.unpack_from("<I", note, 4)
            yield note[_NOTE_HEAD : _NOTE_HEAD + size]
        else:
            text = _tool(llvm, "llvm-objdump", "-d", "-l", "-z", str(path)).decode()
            # The padding says the same many times over.
            end = text.find("s_endpgm")
            yield bytes([number]) + text[: text.find("\n", end) + 1].encode()


def environment(kind: str, objects: list[Path], llvm: Path) -> dict[str, str]:
    return {
        **os.environ,
        "NETRA_FUZZ": kind,
        "NETRA_FUZZ_OBJECTS": ":".join(map(str, objects)),
        "NETRA_LLVM_BIN": str(llvm),
        "NETRA_SIM_DEVICES": ",".join(paths.ARCHES),
        "NETRA_SIM_WAVE_BUDGET": "2000",
        "NETRA_SIM_LAUNCH_BUDGET": "20000",
        "NETRA_SIM_SECONDS": "5",
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=0",
    }


def run(kind: str, count: int, seed: int, folder: Path, llvm: Path) -> Outcome:
    """`count` inputs of a kind; a failure takes one of them."""
    objects = sorted(folder.parent.glob("gfx*/*.co"))
    corpus, found = folder / "corpus" / kind, folder / "found"
    first = folder / "seeds" / kind
    for made in (corpus, found, first):
        made.mkdir(parents=True, exist_ok=True)
    for number, data in enumerate(seeds(kind, objects, llvm)):
        (first / f"seed{number}").write_bytes(data)
    kept = paths.repo_root() / "tests" / "fuzz" / kind
    program, done = folder / "fuzz", 0
    failures: list[Path] = []
    while done < count and len(failures) < MOST_FAILURES:
        command = [
            str(program), f"-runs={count - done}", f"-seed={seed + len(failures)}",
            f"-max_len={_LENGTH[kind]}", "-timeout=30", "-rss_limit_mb=6000", "-len_control=0",
            f"-artifact_prefix={found}/{kind}-", "-print_final_stats=1", "-verbosity=1",
            "-reload=0", str(corpus), str(first), *([str(kept)] if kept.is_dir() else []),
        ]
        ended = subprocess.run(
            command, env=environment(kind, objects, llvm), stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        log = ended.stderr.decode(errors="replace")
        counted = _EXECUTED.findall(log)
        if not counted:
            raise ToolError(f"{program} did not run:\n{log[-2000:]}")
        done += max(1, int(counted[-1]))
        if ended.returncode == 0:
            break
        artifact = _KEPT.findall(log)
        failures.append(Path(artifact[-1]) if artifact else found)
        report = [line for line in log.splitlines() if line.startswith(("SUMMARY", "==", "    #"))]
        print(f"FAIL {kind}: {failures[-1]}")
        for line in report[:14]:
            print(f"  {line}")
        print(f"  rerun: NETRA_FUZZ={kind} {program} {failures[-1]}", flush=True)
    return Outcome(kind, min(done, count), tuple(failures))


@click.command()
@click.option("-n", "--count", type=click.IntRange(1), help="Inputs in all.  [default: 40000; "
              "500 with --kind launch]")
@click.option("--seed", type=click.IntRange(1), default=1, show_default=True)
@click.option("--kind", type=click.Choice(KINDS), help="Only this; without it, all readers.")
def main(count: int | None, seed: int, kind: str | None) -> None:
    """Feeds N damaged inputs to the readers of code objects, or to whole launches."""
    kinds = (kind,) if kind else READERS
    total = count or (500 if kind == "launch" else 40000)
    folder = paths.build_dir() / "fuzz"
    llvm = Path((paths.build_dir() / "llvm.txt").read_text().strip())
    print(f"seed {seed}", flush=True)
    executed = failed = 0
    try:
        for number, name in enumerate(kinds):
            share = total // len(kinds) + (number < total % len(kinds))
            if share == 0:
                continue
            outcome = run(name, share, seed, folder, llvm)
            print(f"{name}: {outcome.executed} inputs, {len(outcome.failures)} failed", flush=True)
            executed += outcome.executed
            failed += len(outcome.failures)
    except NetraError as error:
        print(f"Error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    print(f"fuzz: {executed - failed} passed, {failed} failed of {executed}")
    sys.exit(1 if failed or executed < total else 0)


if __name__ == "__main__":
    main()
