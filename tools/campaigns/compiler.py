"""Compiling for the host and the targets, with a cache in build/campaigns."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from netra_catalog.errors import NetraError

RUNTIME = Path(__file__).resolve().parent / "runtime"
SECONDS = 120  # for one compilation
_SHOWN_LINES = 3


class CompileFailed(NetraError):
    """The compiler refused; the text is the first of what it printed."""


class CompilerCrashed(CompileFailed):
    """The compiler itself broke down: the program says nothing about what runs it."""


def target_command(llvm: Path, arch: str) -> list[str]:
    """clang for freestanding C on a target."""
    return [
        str(llvm / "clang"), "--target=amdgcn-amd-amdhsa", f"-mcpu={arch}", "-nogpulib",
        "-fuse-ld=lld",
    ]  # fmt: skip


def build(command: Sequence[str], inputs: Sequence[Path], output: Path, stdin: str = "") -> Path:
    """Runs `command`, to which `-o FILE` is added, unless the cache has its result.

    The result is `output` with a digest in its name: of the words, the inputs, `stdin` and the
    compiler.  Older results of the same `output` are removed.
    """
    digest = hashlib.sha256("\0".join([*command, stdin]).encode())
    compiler = Path(command[0])
    if compiler.is_absolute():
        stat = compiler.stat()
        digest.update(f"{compiler.resolve()} {stat.st_size} {stat.st_mtime_ns}".encode())
    for path in inputs:
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    name = digest.hexdigest()[:16]
    cached = output.with_name(f"{output.stem}-{name}{output.suffix}")
    if cached.exists():
        return cached
    output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=output.parent, prefix=f".{output.stem}.") as folder:
        made = Path(folder) / output.name
        run([*command, "-o", str(made)], stdin)
        for old in output.parent.glob(f"{output.stem}-{'[0-9a-f]' * 16}{output.suffix}"):
            old.unlink(missing_ok=True)
        os.replace(made, cached)
    return cached


def run(command: Sequence[str], stdin: str = "") -> str:
    """Runs a compiler; what it wrote on standard output.  CompileFailed otherwise."""
    name = Path(command[0]).name
    try:
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=SECONDS, errors="replace"
        )
    except subprocess.TimeoutExpired:
        raise CompileFailed(f"{name} did not end within {SECONDS} s") from None
    except OSError as error:
        raise CompileFailed(f"{command[0]} does not run: {error.strerror}") from None
    if done.returncode < 0 or "PLEASE submit a bug report" in done.stderr:
        raise CompilerCrashed(f"{name} crashes on it")
    if done.returncode != 0:
        said = [line for line in done.stderr.splitlines() if "error" in line]
        text = "\n  ".join((said or done.stderr.splitlines())[:_SHOWN_LINES])
        raise CompileFailed(text or f"{name}: exit code {done.returncode}")
    return done.stdout
