"""`netra-sim lint`: what is wrong with a kernel that can be told without running it."""

from __future__ import annotations

import importlib.util
import re
import tempfile
from pathlib import Path
from typing import Any

from netra_catalog import paths
from netra_catalog.errors import ToolError, UsageError
from netra_catalog.paths import ARCHES

from netra_sim import library, source

Finding = dict[str, Any]


def lint(file: Path, arch: str | None = None) -> dict[str, Any]:
    """{file, arch, findings} of a code object, or of a source with the object that it makes.

    `arch` is needed for a source outside of a folder of that name.  Findings have the keys of
    docs/sanitizer.md; wave, workgroup and lane are None, for nothing ran.

    Raises CodeObjectError for a file that no device could load, UsageError for a source of which
    the target is not known or which does not assemble.
    """
    if file.suffix != ".s":
        document = library.lint(file)
        if arch not in (None, document["arch"]):
            raise UsageError(f"{file} is for {document['arch']}, not for {arch}")
        return document
    target = arch or file.resolve().parent.name
    if target not in ARCHES:
        raise UsageError(
            f"{file}: the target of the source is not known", hint="type: --arch gfx950"
        )
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}") from None
    with tempfile.TemporaryDirectory(prefix="netra-lint-") as folder:
        built = Path(folder) / f"{file.stem}.co"
        _assemble(file, built, target, text)
        findings = library.lint(built, str(file))["findings"]
    return {
        "file": str(file),
        "arch": target,
        "findings": source.check(text, paths.display(file)) + findings,
    }


def _assemble(file: Path, built: Path, arch: str, text: str) -> None:
    """With the build's own tool, so that the object is the one that the build makes."""
    place = paths.repo_root() / "tools" / "assemble.py"
    spec = importlib.util.spec_from_file_location("netra_assemble", place)
    if spec is None or spec.loader is None or not place.is_file():
        raise ToolError(f"{place} is missing", hint="run this in a checkout")
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    wave = 64 if re.search(r"\.wavefront_size:\s*64", text) and arch == "gfx1151" else None
    try:
        tool.assemble(
            file, built, arch, paths.llvm_bin(),
            include=(paths.repo_root() / "asm" / "include",), wave=wave,
        )  # fmt: skip
    except tool.AssemblyFailed as error:
        raise UsageError(f"{file} does not assemble:\n{error}") from None
