"""Builds catalog.bin, and tells whether the one in build/ is that of the files as they are.

catalog.stamp beside it holds size and time of every source, so that a command which only reads
may use the compiled catalog instead of parsing each YAML.  Two clones get the same catalog.bin;
the stamp is theirs alone.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from netra_catalog.errors import NetraError, ToolError
from netra_catalog.paths import ARCHES, display

if TYPE_CHECKING:
    from netra_catalog.binary import Object
    from netra_catalog.compiled import CompiledCatalog, CompiledTactic
    from netra_catalog.tactic import Tactic

BINARY, STAMP = "catalog.bin", "catalog.stamp"


def build(root: Path, output: Path | None = None) -> tuple[Path, int]:
    """Compiles the catalog of a checkout whose kernels are assembled.  Returns the file and how
    many tactics it holds; an error of any tactic, or a missing object, writes nothing."""
    from netra_catalog.binary import compile_catalog
    from netra_catalog.evidence import demoted
    from netra_catalog.load import load
    from netra_catalog.whole_file import write_whole

    seen = sources(root)
    tactics = [demoted(tactic) for tactic in load(root=root)]
    data = compile_catalog(tactics, root, lambda arch, kernel: inspected(root, arch, kernel))
    if output is None:
        return store(root, data, seen), len(tactics)
    write_whole(output, data)
    return output, len(tactics)


def store(root: Path, data: bytes, seen: dict[str, list[int]]) -> Path:
    """Puts a compiled catalog into build/, with the stamp of the sources that were seen before
    they were read."""
    from netra_catalog.whole_file import write_whole

    path = root / "build" / BINARY
    write_whole(path, data)
    stamp = {"catalog_sha256": hashlib.sha256(data).hexdigest(), "files": seen}
    write_whole(root / "build" / STAMP, json.dumps(stamp).encode())
    return path


def inspected(root: Path, arch: str, kernel: str) -> Object:
    """What the code object of a kernel says of itself."""
    from netra_catalog.artefacts import inspect_object
    from netra_catalog.binary import Object

    path = root / "build" / arch / f"{kernel}.co"
    if not path.is_file():
        raise ToolError(f"{display(path)} is missing", hint=f"type: make {arch}")
    document = inspect_object(path)
    found = next((k for k in document["kernels"] if k["name"] == kernel), None)
    if found is None or document["arch"] != arch:
        raise NetraError(
            f"holds no kernel '{kernel}' for {arch}", where=display(path), hint=f"type: make {arch}"
        )
    return Object(
        document["co_sha256"], found["kernel_sha256"], found["kernarg"], found["wave_size"],
        found["max_workgroup"], document["code_object_version"],
    )


def sources(root: Path) -> dict[str, list[int]]:
    """Size and time of every file that catalog.bin is made from."""
    from netra_catalog.definition import oracle_dir

    found: dict[str, list[int]] = {}
    folders = [(f"catalog/{arch}", root / "catalog" / arch, ".yaml") for arch in ARCHES]
    for name, folder, suffix in (*folders, ("oracles", oracle_dir(root), ".py")):
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.name.endswith(suffix):
                        stat = entry.stat()
                        found[f"{name}/{entry.name}"] = [stat.st_size, stat.st_mtime_ns]
        except FileNotFoundError:
            continue
    return found


def fresh(root: Path) -> CompiledCatalog | None:
    """The compiled catalog of build/, when it is that of the sources; None when it is not, or is
    not there: then the YAML files are the catalog."""
    try:
        stamp = json.loads((root / "build" / STAMP).read_bytes())
        if stamp["files"] != sources(root):
            return None
        from netra_catalog.compiled import read

        found = read(root / "build" / BINARY, root)
    except (OSError, ValueError, KeyError, TypeError, NetraError):
        return None
    digest = hashlib.sha256(found.data).hexdigest()
    return found if digest == stamp.get("catalog_sha256") else None


def of_op(root: Path, op: str) -> tuple[list[Tactic] | list[CompiledTactic], tuple[str, ...]]:
    """The tactics of an op, compiled when that is up to date, and the names of all ops."""
    compiled = fresh(root)
    if compiled is not None:
        return compiled.tactics(op), compiled.ops
    from netra_catalog.load import load

    every = load(root=root)
    return [t for t in every if t.op == op], tuple(sorted({t.op for t in every}))
