#!/usr/bin/env python3
"""Find the LLVM that assembles the kernels, and say exactly what to do when there is none.

Search order: $NETRA_LLVM_BIN, /opt/rocm/llvm/bin, /usr/lib/llvm-{22,21,20}/bin, PATH.
Version 20 is the oldest that knows gfx950.  Release 22 is what the project is tested with; any
other version must first assemble and disassemble the files of tools/canary exactly as 22 does.

    find_llvm.py                     print the bin directory
    find_llvm.py --write build/llvm.txt [--install]

Standard library only: this runs before the virtual environment exists.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import assemble
import stamp
import system_packages

CANARY = Path(__file__).resolve().parent / "canary"
OLDEST = 20
TESTED = 22
NEWEST_FIRST = (22, 21, 20)
FIXED_PLACES = ("/opt/rocm/llvm/bin", *(f"/usr/lib/llvm-{v}/bin" for v in NEWEST_FIRST))
TOOLS = ("clang", "ld.lld", "llvm-objdump")


class Refused(Exception):
    """This directory holds no LLVM that can be used; the text says why."""


class NotFound(Exception):
    """No directory of the search order can be used."""


@dataclass(frozen=True)
class Toolchain:
    """An LLVM installation: its bin directory and the version that its clang reports."""

    bin: Path
    major: int
    version: str

    @property
    def is_tested(self) -> bool:
        """True for release 22.x.y; a `22.0.0git` of a vendor is another version."""
        return self.major == TESTED and re.fullmatch(r"[\d.]+", self.version) is not None


def _run(command: list[str], cwd: Path | None = None) -> str:
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Refused(f"{command[0]} does not run: {error}") from None
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
        raise Refused(f"{' '.join(command)} failed: {lines[0]}")
    return done.stdout


def inspect(folder: Path) -> Toolchain:
    """The toolchain in `folder`, if its tools exist, agree on a version, and that is new enough."""
    missing = [tool for tool in TOOLS if not os.access(folder / tool, os.X_OK)]
    if missing:
        raise Refused(f"{', '.join(missing)} not there" if folder.is_dir() else "not there")
    majors = {}
    version = ""
    for tool in TOOLS:
        text = _run([str(folder / tool), "--version"])
        found = re.search(r"\b(?:clang version|LLD|LLVM version) ((\d+)\.\d+[\w.]*)", text)
        if not found:
            raise Refused(f"{tool} --version says no version: {text.strip()[:60]!r}")
        majors[tool] = int(found[2])
        version = version or found[1]
    if len(set(majors.values())) > 1:
        raise Refused(
            "tools of different versions: " + ", ".join(f"{t} {v}" for t, v in majors.items())
        )
    major = majors["clang"]
    if major < OLDEST:
        raise Refused(
            f"version {version}, but {OLDEST} or later is needed: older ones reject gfx950"
        )
    return Toolchain(folder, major, version)


def disassemble(toolchain: Toolchain, source: Path, folder: Path) -> list[str]:
    """`source` assembled into `folder` and disassembled again: llvm-objdump's lines."""
    arch, _, wave = source.stem.partition("_")
    is_wave64 = wave == "wave64"
    output = folder / f"{source.stem}.o"
    try:
        assemble.assemble(
            source, output, arch, toolchain.bin, wave=64 if is_wave64 else None, link=False
        )
    except assemble.AssemblyFailed as error:
        raise Refused(f"version {toolchain.version}: {error}") from None
    mattr = ["--mattr=+wavefrontsize64"] if is_wave64 else []
    text = _run([str(toolchain.bin / "llvm-objdump"), "-d", "-l", *mattr, str(output)])
    lines = [line.rstrip() for line in text.splitlines() if "file format" not in line]
    return [re.sub(r"^; \S*/", "; ", line) for line in lines]  # line numbers without the folder


def check_canary(toolchain: Toolchain, fixtures: Path = CANARY) -> None:
    """Refuse a toolchain whose disassembly of the fixtures differs from the stored text."""
    with tempfile.TemporaryDirectory() as folder:
        for source in sorted(fixtures.glob("*.s")):
            expected = source.with_suffix(".expected")
            want = expected.read_text().splitlines()
            got = disassemble(toolchain, source, Path(folder))
            for number, (a, b) in enumerate(itertools.zip_longest(want, got, fillvalue="(end)"), 1):
                if a != b:
                    raise Refused(
                        f"version {toolchain.version} disassembles otherwise than {TESTED} does "
                        f"(tools/canary/{expected.name}:{number})\n"
                        f"    want: {a.strip()}\n"
                        f"    got:  {b.strip()}"
                    )


def rewrite_canary(toolchain: Toolchain, fixtures: Path = CANARY) -> None:
    """Store what the tested release prints for the fixtures; no other version may do so."""
    if not toolchain.is_tested:
        raise SystemExit(f"Error: the canary is written by release {TESTED} only")
    with tempfile.TemporaryDirectory() as folder:
        for source in sorted(fixtures.glob("*.s")):
            lines = disassemble(toolchain, source, Path(folder))
            stamp.write_whole(source.with_suffix(".expected"), "\n".join(lines) + "\n")


def candidates(environment: Mapping[str, str]) -> Iterator[Path]:
    """Directories to look into after $NETRA_LLVM_BIN, in order, each once."""
    on_path = [d for d in environment.get("PATH", "").split(os.pathsep) if d]
    with_clang = [d for d in on_path if os.access(Path(d) / "clang", os.X_OK)]
    yield from (Path(d) for d in dict.fromkeys([*FIXED_PLACES, *with_clang]))


def _accept(folder: Path) -> Toolchain:
    toolchain = inspect(folder)
    if not toolchain.is_tested:
        check_canary(toolchain)
    return toolchain


def find(environment: Mapping[str, str]) -> Toolchain:
    """The first usable toolchain; a wrong $NETRA_LLVM_BIN is an error, never passed over."""
    named = environment.get("NETRA_LLVM_BIN")
    if named:
        try:
            return _accept(Path(named).absolute())
        except Refused as why:
            raise NotFound(
                f"NETRA_LLVM_BIN={named} cannot be used: {why}\n"
                f"  correct it, or let the search decide: unset NETRA_LLVM_BIN"
            ) from None
    reasons = []
    for folder in candidates(environment):
        try:
            return _accept(folder)
        except Refused as why:
            reasons.append(f"  {folder}: {why}")
    raise NotFound(
        f"no LLVM of version {OLDEST} or later was found (clang, ld.lld and llvm-objdump; "
        f"older ones reject gfx950)\n" + "\n".join(reasons)
    )


def apt_packages(apt: system_packages.Apt) -> list[str]:
    """The newest of clang, lld and llvm 22, 21, 20 that apt offers; empty when it offers none.

    With them come clang's sanitizer runtimes, where apt has them: `make sim-asan` needs them when
    clang is also the C++ compiler.
    """
    for version in NEWEST_FIRST:
        packages = [f"{name}-{version}" for name in ("clang", "lld", "llvm")]
        if all(apt.offers(package) for package in packages):
            runtimes = f"libclang-rt-{version}-dev"
            return [*packages, runtimes] if apt.offers(runtimes) else packages
    return []


def advice(packages: list[str]) -> str:
    """The command to type when LLVM is missing and was not installed here."""
    if packages:
        first = f"  type: sudo apt-get install {' '.join(packages)}\n"
    else:
        first = (
            "  apt here offers no clang-22, clang-21 or clang-20; if its lists are old or empty, "
            "type: sudo apt-get update\n"
        )
    return (
        first + "  or install ROCm's LLVM (7.0 or later): sudo apt-get install rocm-llvm\n"
        "  or name one that you have: export NETRA_LLVM_BIN=/path/to/llvm/bin"
    )


def find_or_install(environment: Mapping[str, str], install: bool) -> Toolchain:
    """`find`; when that fails and apt works as root, install the newest LLVM and find again."""
    try:
        return find(environment)
    except NotFound as missing:
        if environment.get("NETRA_LLVM_BIN"):
            raise
        apt = system_packages.Apt()
        packages = apt_packages(apt)
        if install and apt.can_install():
            if not packages:
                apt.update()
                packages = apt_packages(apt)
            if packages:
                apt.install(packages)
                return find(environment)
        raise NotFound(f"{missing}\n{advice(packages)}") from None


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the directory to FILE")
    parser.add_argument("--install", action="store_true", help="install with apt when missing")
    parser.add_argument(
        "--rewrite-canary", action="store_true", help="after an edit of tools/canary/*.s"
    )
    options = parser.parse_args(argv)
    try:
        toolchain = find_or_install(os.environ, options.install)
    except (NotFound, system_packages.InstallFailed) as error:
        if options.write:
            options.write.unlink(missing_ok=True)
        print(f"Error: {error}", file=sys.stderr)
        return 4
    if options.rewrite_canary:
        rewrite_canary(toolchain)
    if options.write:
        version = options.write.with_suffix(".version")
        stamp.record({version: toolchain.version, options.write: str(toolchain.bin)})
    else:
        print(toolchain.bin)
    return 0


if __name__ == "__main__":
    sys.exit(main())
