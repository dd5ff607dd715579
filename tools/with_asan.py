#!/usr/bin/env python3
"""Run a command on the simulator that was built with ASan and UBSan (`make sim-asan`).

    with_asan.py --cxx g++ build/asan/libamdhip64.so.7 COMMAND...

A sanitized library inside an ordinary program needs the sanitizer's runtime before all else: it is
preloaded, with the C++ library whose exceptions it intercepts.  A report ends the process that it
is about and stays in a file beside the library; the tops of all reports are shown at the end, and
the exit code is then never 0, whatever the command made of it.  Leaks are not looked for: Python
keeps what it keeps.
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
    reports = options.library.resolve().parent / "report"
    for old in reports.parent.glob(f"{reports.name}.*"):
        old.unlink()
    environment = {
        **os.environ,
        "LD_PRELOAD": ":".join(str(path) for path in runtime_files(options.cxx)),
        "ASAN_OPTIONS": f"detect_leaks=0:log_path={reports}",
        "UBSAN_OPTIONS": f"print_stacktrace=1:log_path={reports}",
        "NETRA_SIM_LIBRARY": str(options.library.resolve()),
    }
    code = subprocess.call(options.command, env=environment)
    found = sorted(reports.parent.glob(f"{reports.name}.*"))
    for report in found:
        top = report.read_text(errors="replace").splitlines()[:24]
        print(f"{report}:", *top, sep="\n", file=sys.stderr)
    return code or (1 if found else 0)


if __name__ == "__main__":
    sys.exit(main())
