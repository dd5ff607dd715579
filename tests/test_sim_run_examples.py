"""The examples of docs/simulator-run.md, run as they stand there, print what is shown there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
_ADDRESS = re.compile(r"0x[0-9a-f]{8,}")  # of device memory
HOME = "/home/you"  # the folder of the reader


def commands(block: str) -> Iterator[tuple[str, str]]:
    """(command, what it prints); a command goes on while a line ends in \\ or a quote is open."""
    lines = block.splitlines()
    while lines:
        line = lines.pop(0)
        assert line.startswith("$ "), line
        command = [line[2:]]
        while command[-1].endswith("\\") or "\n".join(command).count('"') % 2:
            command.append(lines.pop(0))
        shown = []
        while lines and not lines[0].startswith("$ "):
            shown.append(lines.pop(0))
        yield "\n".join(command), "\n".join(shown)


def run(command: str, folder: Path) -> str:
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, timeout=120,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
    )  # fmt: skip
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout.rstrip("\n").replace(str(folder), HOME)


@pytest.mark.usefixtures("sim_library")
def test_the_examples_print_what_they_show(
    repo_root: Path, llvm_bin: Path, tmp_path: Path
) -> None:
    blocks = _FENCE.findall((repo_root / "docs" / "simulator-run.md").read_text())
    assert [kind for kind, _ in blocks] == ["console", "c", "console", "console"]
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "gfx1151").symlink_to(repo_root / "build" / "gfx1151")
    (tmp_path / "build" / "llvm.txt").write_text(f"{llvm_bin}\n")
    version = run("$(cat build/llvm.txt)/clang --version", tmp_path)
    same_compiler = "version 22." in version  # another one may choose other instructions
    compiled, ran = False, 0
    for kind, block in blocks:
        if kind == "c":
            (tmp_path / "scale.c").write_text(block)
            compiled = True
            continue
        for command, shown in commands(block):
            got = run(command, tmp_path)
            ran += command.startswith("netra-sim run")
            if not compiled or same_compiler:
                assert _ADDRESS.sub("ADDRESS", got) == _ADDRESS.sub("ADDRESS", shown), command
    assert ran == 3
