#!/usr/bin/env python3
"""Run a command on the simulator that was built with ASan and UBSan (`make sim-asan`).

    with_asan.py --cxx g++ build/asan/libamdhip64.so.7 COMMAND...

A sanitized library inside an ordinary program needs the sanitizer's runtime before all else: it is
preloaded, with the C++ library whose exceptions it intercepts.  A report ends the process with an
error, which the command then shows.  Leaks are not looked for: Python keeps what it keeps.
Standard library only.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

# Each compiler's own: clang would also find gcc's, which does not fit its code.
RUNTIMES = {
    "clang": ("libclang_rt.asan.so", "libclang_rt.asan-x86_64.so", "libclang_rt.asan-aarch64.so"),
    "gcc": ("libasan.so",),
}


def runtime_files(cxx: str) -> list[Path]:
    """The files to preload for code that the compiler `cxx` instrumented."""

    def ask(option: str) -> str:
        return subprocess.run([cxx, option], capture_output=True, text=True).stdout.strip()

    kind = "clang" if "clang" in ask("--version") else "gcc"
    found = []
    for names in (RUNTIMES[kind], ("libstdc++.so",)):
        answers = [Path(ask(f"-print-file-name={name}")) for name in names]
        there = [path.resolve() for path in answers if path.is_absolute() and path.exists()]
        if not there:
            package = "libclang-rt-22-dev (the number is clang's)" if kind == "clang" else "g++"
            raise SystemExit(
                f"Error: {cxx} has no {names[0]}\n  type: sudo apt-get install {package}"
            )
        found.append(there[0])
    return found


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cxx", required=True, help="the compiler that built the library")
    parser.add_argument("library", type=Path)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args(argv)
    environment = {
        **os.environ,
        "LD_PRELOAD": ":".join(str(path) for path in runtime_files(options.cxx)),
        "ASAN_OPTIONS": "detect_leaks=0:" + os.environ.get("ASAN_OPTIONS", ""),
        "UBSAN_OPTIONS": "print_stacktrace=1:" + os.environ.get("UBSAN_OPTIONS", ""),
        "NETRA_SIM_LIBRARY": str(options.library.resolve()),
    }
    return subprocess.call(options.command, env=environment)


if __name__ == "__main__":
    sys.exit(main())
