"""Fixtures that every test may use: the tools, what make built, and an assembler for kernels.

A test that needs a build product fails, with the command to type, when it is missing: a skipped
test would say nothing about the product.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

import assemble as assembler
import find_llvm
import pytest

ROOT = Path(__file__).resolve().parents[1]


def _built(product: str, target: str) -> Path:
    path = ROOT / "build" / product
    if not path.exists():
        pytest.fail(f"build/{product} is missing; type: make {target}", pytrace=False)
    return path


@pytest.fixture(scope="session")
def repo_root() -> Path:
    """The checkout that holds these tests."""
    return ROOT


@pytest.fixture(scope="session")
def llvm_bin() -> Path:
    """The directory of clang, ld.lld and llvm-objdump: what set-up chose, else the search."""
    chosen = ROOT / "build" / "llvm.txt"
    if chosen.is_file() and not os.environ.get("NETRA_LLVM_BIN"):
        return Path(chosen.read_text().strip())
    try:
        return find_llvm.find(os.environ).bin
    except find_llvm.NotFound as error:
        pytest.fail(f"{error}\n  type: make setup", pytrace=False)


@pytest.fixture(scope="session")
def cxx_compiler() -> str:
    """The C++20 compiler that set-up chose."""
    return _built("cxx.txt", "setup").read_text().strip()


@pytest.fixture(scope="session")
def c_compiler(cxx_compiler: str) -> str:
    """The C compiler that belongs to `cxx_compiler`."""
    folder, slash, name = cxx_compiler.rpartition("/")
    return folder + slash + name.replace("clang++", "clang").replace("g++", "gcc")


@pytest.fixture(scope="session")
def sim_library() -> Path:
    """The simulator: build/sim/libamdhip64.so.7, or $NETRA_SIM_LIBRARY (`make sim-asan`)."""
    named = os.environ.get("NETRA_SIM_LIBRARY")
    return Path(named) if named else _built("sim/libamdhip64.so.7", "sim")


@pytest.fixture(scope="session")
def bridge_library() -> Path:
    """The bridge, build/bridge/libnetra_bridge.so."""
    return _built("bridge/libnetra_bridge.so", "bridge")


@pytest.fixture(scope="session")
def hip_env(sim_library: Path, llvm_bin: Path) -> Callable[..., dict[str, str]]:
    """hip_env(arch, ...): the environment that puts a HIP program on these simulated devices."""

    def environment(*arches: str) -> dict[str, str]:
        inherited = os.environ.get("LD_LIBRARY_PATH")
        folders = [str(sim_library.parent), *([inherited] if inherited else [])]
        return {
            **os.environ,
            "LD_LIBRARY_PATH": os.pathsep.join(folders),
            "NETRA_SIM_DEVICES": ",".join(arches or ("gfx950",)),
            "NETRA_LLVM_BIN": str(llvm_bin),
        }

    return environment


@pytest.fixture(scope="session")
def assemble(llvm_bin: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """assemble(source, arch="gfx950", wave=None) -> the code object of a kernel.

    `source` is a path or the text of a .s file; asm/include is searched for includes.  `wave=64`
    assembles for 64 lanes on gfx1151.  The same text is assembled once in a session.  A source that
    does not assemble raises `assemble.AssemblyFailed` with the assembler's words.
    """
    folder = tmp_path_factory.mktemp("assembled")
    include = ROOT / "asm" / "include"

    def build(source: Path | str, arch: str = "gfx950", wave: int | None = None) -> Path:
        text = source.read_text() if isinstance(source, Path) else source
        key = hashlib.sha256(f"{arch} {wave}\n{text}".encode()).hexdigest()[:16]
        name = source.stem if isinstance(source, Path) else "kernel"
        output = folder / f"{name}-{key}.co"
        if not output.exists():
            path = source
            if not isinstance(path, Path):
                path = output.with_suffix(".s")
                path.write_text(text)
            assembler.assemble(path, output, arch, llvm_bin, include=[include], wave=wave)
        return output

    return build
