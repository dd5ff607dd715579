#!/usr/bin/env python3
"""Assemble one kernel: clang, then ld.lld; the output appears whole or not at all.

    assemble.py --llvm /usr/lib/llvm-22/bin asm/gfx950/X.s build/gfx950/X.co --arch gfx950

Run it in the repository's root with relative paths, as make does: the object then holds no absolute
path and is the same, byte for byte, in every clone.  Standard library only.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path


class AssemblyFailed(Exception):
    """The assembler or the linker refused the source; the text is what they printed."""


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        raise AssemblyFailed(f"{command[0]} does not run: {error.strerror}") from None
    if done.returncode != 0:
        raise AssemblyFailed(done.stderr.strip() or f"{command[0]}: exit code {done.returncode}")
    return done.stderr


def assemble(
    source: Path,
    output: Path,
    arch: str,
    llvm: Path,
    *,
    include: Sequence[Path] = (),
    wave: int | None = None,
    dependencies: Path | None = None,
    link: bool = True,
    debug: bool = True,
) -> None:
    """Assemble `source` for `arch` into the code object `output` (`link=False`: relocatable).

    `debug=False` leaves out the line table, for a source that brings its own.
    `wave=64` is needed for a gfx1151 kernel of 64 lanes.  `dependencies` receives a rule for make.
    An older `output` is removed first, so that a failure leaves none behind.
    Raises AssemblyFailed with the tool's own text.
    """
    output.unlink(missing_ok=True)
    output.parent.mkdir(parents=True, exist_ok=True)
    wanted = ["-MD", "-MP", "-MF", str(dependencies), "-MT", str(output)] if dependencies else []
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=f".{output.name}.") as folder:
        relocatable, linked = Path(folder) / "kernel.o", Path(folder) / "kernel.co"
        _run(
            [str(llvm / "clang"), "--target=amdgcn-amd-amdhsa", f"-mcpu={arch}"]
            + ([f"-mwavefrontsize{wave}"] if wave == 64 else [])
            + ["-x", "assembler-with-cpp", f"-ffile-prefix-map={os.getcwd()}=."]
            + (["-g"] if debug else [])
            + ["-Wa,--fatal-warnings", *(f"-I{folder}" for folder in include), *wanted]
            + ["-c", str(source), "-o", str(relocatable)]
        )
        if link:
            _run([str(llvm / "ld.lld"), "-shared", str(relocatable), "-o", str(linked)])
        os.replace(linked if link else relocatable, output)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--arch", required=True)
    parser.add_argument("--llvm", type=Path, required=True, help="directory of clang and ld.lld")
    parser.add_argument("--include", type=Path, action="append", default=[])
    parser.add_argument("--wave", type=int, choices=(32, 64))
    parser.add_argument("--dependencies", type=Path, help="write a make rule to this file")
    given = vars(parser.parse_args(argv))
    try:
        assemble(
            given.pop("source"), given.pop("output"), given.pop("arch"), given.pop("llvm"), **given
        )
    except AssemblyFailed as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
