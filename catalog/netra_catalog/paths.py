"""Where things lie: the checkout, what was built, and LLVM's tools."""

from __future__ import annotations

import os
import re
from pathlib import Path

from netra_catalog.errors import ToolError

ARCHES = ("gfx950", "gfx1151")

# From LLVM 20 on; older ones reject gfx950.
LLVM_MIN = 20
_PACKAGE = Path(__file__).resolve().parent
_LLVM_TOOLS = ("clang", "ld.lld", "llvm-objdump")


def repo_root() -> Path:
    """The checkout: $NETRA_ROOT, else the one that holds this package, else the
    package itself, into which a wheel puts catalog/ and build/."""
    given = os.environ.get("NETRA_ROOT")
    root = Path(given) if given else Path(__file__).resolve().parents[2]
    if (root / "catalog").is_dir() and (root / "asm").is_dir():
        return root.resolve()
    if not given and (_PACKAGE / "catalog").is_dir():
        return _PACKAGE
    if given:
        raise ToolError(
            f"NETRA_ROOT is {given}, which has no catalog/ and asm/",
            hint="set it to the folder of a Netra checkout, or unset it",
        )
    raise ToolError(
        f"{root} is not a Netra checkout (no catalog/ and asm/)",
        hint="set NETRA_ROOT to the folder of a checkout",
    )


def catalog_dir() -> Path:
    return repo_root() / "catalog"


def build_dir() -> Path:
    return repo_root() / "build"


def code_object(arch: str, kernel: str) -> Path:
    """The assembled kernel.  It need not exist yet: `make <arch>` writes it."""
    return build_dir() / arch / f"{kernel}.co"


def display(path: Path) -> str:
    """The path as a user would type it here: relative when it lies below."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


def llvm_bin() -> Path:
    """LLVM's bin folder: $NETRA_LLVM_BIN, else what set-up chose (build/llvm.txt)."""
    given = os.environ.get("NETRA_LLVM_BIN")
    if given:
        return _checked(Path(given), "NETRA_LLVM_BIN")
    chosen = build_dir() / "llvm.txt"
    if chosen.is_file():
        folder = Path(chosen.read_text(encoding="utf-8").strip())
        if not _missing(folder):
            return folder
    raise ToolError(
        f"no LLVM has been chosen ({display(chosen)})",
        hint="run `make setup`, or set NETRA_LLVM_BIN to the folder of clang and llvm-objdump",
    )


def _checked(folder: Path, origin: str) -> Path:
    missing = _missing(folder)
    if missing:
        raise ToolError(f"{folder} (from {origin}) has no {missing}")
    version = _version(folder)
    if version < LLVM_MIN:
        raise ToolError(
            f"{folder} (from {origin}) is LLVM {version}; {LLVM_MIN} or later is needed",
            hint="older versions reject gfx950",
        )
    return folder


def _missing(folder: Path) -> str:
    return next((tool for tool in _LLVM_TOOLS if not (folder / tool).is_file()), "")


def _version(folder: Path) -> int:
    import subprocess  # only here, and slow to import: every command pays for this module

    try:
        text = subprocess.run(
            [str(folder / "llvm-objdump"), "--version"],
            capture_output=True, text=True, check=False, timeout=20,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = re.search(r"LLVM version (\d+)", text)
    return int(found.group(1)) if found else 0
