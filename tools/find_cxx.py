#!/usr/bin/env python3
"""Choose the C++20 compiler for the simulator and the bridge.

Order: the compiler that make was given (`make CXX=...`), g++ 12 or later, the clang++ of the LLVM
that assembles the kernels.  Standard library only.

    find_cxx.py --llvm /usr/lib/llvm-22/bin [--cxx CXX] [--write build/cxx.txt] [--install]
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import stamp
import system_packages

OLDEST = {"g++": 12, "clang++": 16}


class NotFound(Exception):
    """No compiler can be used; the text says why and what to type."""


@dataclass(frozen=True)
class Compiler:
    """A C++ compiler: its command and the first line of its --version."""

    command: str
    version: str


def inspect(command: str) -> Compiler:
    """The compiler behind `command`; NotFound when it is missing, too old or has no headers."""
    path = shutil.which(command)
    if path is None:
        raise NotFound(f"{command}: not there")
    text = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
    line = (text.splitlines() or [""])[0]
    kind = "clang++" if "clang" in line else "g++"
    found = re.search(r"(?:version|\)) (\d+)\.", line)
    if not found or int(found[1]) < OLDEST[kind]:
        raise NotFound(
            f"{command}: {line or 'says no version'}; {kind} {OLDEST[kind]} or later is needed"
        )
    tried = subprocess.run(
        [path, "-std=c++20", "-fsyntax-only", "-x", "c++", "-"],
        input="#include <bit>\n#include <span>\n",
        capture_output=True,
        text=True,
    )
    if tried.returncode != 0:
        raise NotFound(f"{command}: no C++20 library: {tried.stderr.strip().splitlines()[0]}")
    return Compiler(command, line)


def find(given: str | None, llvm: Path) -> Compiler:
    """`given` if there is one (wrong = error), else g++, else the clang++ beside clang."""
    if given:
        return inspect(given)
    reasons = []
    for command in ("g++", str(llvm / "clang++")):
        try:
            return inspect(command)
        except NotFound as why:
            reasons.append(f"  {why}")
    raise NotFound("no C++20 compiler was found\n" + "\n".join(reasons))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--llvm", type=Path, required=True)
    parser.add_argument("--cxx", help="this compiler and no other")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the command to FILE")
    parser.add_argument("--install", action="store_true", help="install g++ with apt when missing")
    options = parser.parse_args(argv)
    try:
        try:
            compiler = find(options.cxx, options.llvm)
        except NotFound as missing:
            apt = system_packages.Apt()
            if options.cxx:
                raise NotFound(f"{missing}\n  correct CXX, or leave it out") from None
            if not (options.install and apt.can_install()):
                raise NotFound(f"{missing}\n  type: sudo apt-get install g++") from None
            if not apt.offers("g++"):
                apt.update()
            apt.install(["g++"])
            compiler = find(None, options.llvm)
    except (NotFound, system_packages.InstallFailed) as error:
        if options.write:
            options.write.unlink(missing_ok=True)
        print(f"Error: {error}", file=sys.stderr)
        return 4
    if options.write:
        version = options.write.with_suffix(".version")
        stamp.record({version: compiler.version, options.write: compiler.command})
    else:
        print(compiler.command)
    return 0


if __name__ == "__main__":
    sys.exit(main())
