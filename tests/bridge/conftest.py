"""Runs a bridge in a process of its own, on a stub HIP library or on the simulator.

A process binds one HIP library for good, so the tests of this folder are scripts (see prelude.py).
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
STAGE2 = ROOT / "build" / "gfx950" / "argmax_f32_stage2.co"

Run = Callable[..., str]


@pytest.fixture
def run(bridge_library: Path, tmp_path: Path) -> Run:
    """run(script, name=value, ..., env={}): runs a script with these names; it must not fail.

    A path becomes a string; `stage2` is the Path of a good code object."""
    assert bridge_library.exists()
    if not STAGE2.exists():
        pytest.fail("build/gfx950 is missing; type: make gfx950", pytrace=False)

    def runner(script: str, *, env: dict[str, str] | None = None, **names: object) -> str:
        text = f"import sys\nsys.path.insert(0, {str(HERE)!r})\nfrom prelude import *\n"
        text += f"stage2 = Path({str(STAGE2)!r})\n"
        for name, value in names.items():
            text += f"{name} = {str(value) if isinstance(value, Path) else value!r}\n"
        path = tmp_path / "script.py"
        path.write_text(text + textwrap.dedent(script))
        folders = [str(ROOT / name) for name in ("bridges", "catalog", "harness", "sim")]
        environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("NETRA_", "STUB_"))},
            "PYTHONPATH": os.pathsep.join(folders),
            "SCRIPT_FOLDER": str(tmp_path),
            **(env or {}),
        }
        done = subprocess.run(
            [sys.executable, str(path)],
            env=environment, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return runner


@pytest.fixture(scope="session")
def stub(c_compiler: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """stub(*flags, folder=NAME): a HIP library that records its calls (hip_stub.c)."""

    def build(*flags: str, folder: str = "one") -> Path:
        place = tmp_path_factory.getbasetemp() / "stubs" / "_".join((folder, *flags))
        library = place / "libamdhip64.so.7"
        if not library.exists():
            place.mkdir(parents=True)
            subprocess.run(
                [c_compiler, "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", *flags]
                + [str(HERE / "hip_stub.c"), "-o", str(library)],
                check=True,
            )
        return library

    return build


