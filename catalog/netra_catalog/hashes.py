"""The hashes that evidence is keyed on: when one moves, what was recorded before is stale.

What each is taken over is in docs/evidence.md.  None depends on the machine, on the compiler of
the simulator or on where the checkout lies.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from netra_catalog.definition import oracle_dir
from netra_catalog.errors import NetraError, ToolError
from netra_catalog.paths import display
from netra_catalog.tactic import Tactic

_ORACLES = "netra_harness.oracles"


def of_tactic(tactic: Tactic) -> dict[str, Any]:
    """Every hash of a tactic as it is now: `kernels` and `objects` by kernel, `captures` by file,
    and `contract`, `oracle`, `semantics`.

    Raises ToolError when a kernel is not assembled.
    """
    kernels, objects = {}, {}
    for name in tactic.kernels:
        kernels[name], objects[name] = kernel(tactic.root, tactic.arch, name)
    return {
        "kernels": kernels, "objects": objects, "contract": tactic.contract_sha256,
        "oracle": oracle(tactic.root, tactic.oracle_name),
        "captures": captures(tactic.root, tactic.op), "semantics": semantics(tactic.root),
    }


def kernel(root: Path, arch: str, name: str) -> tuple[str, str]:
    """(kernel_sha256, co_sha256) of a built kernel."""
    path = root / "build" / arch / f"{name}.co"
    try:
        stat = path.stat()
    except OSError:
        raise ToolError(f"{display(path)} is not built", hint=f"type: make {arch}") from None
    found = _kernels(path, stat.st_mtime_ns, stat.st_size)
    if name not in found[0]:
        raise NetraError(f"{display(path)} holds no kernel '{name}'", hint=f"type: make {arch}")
    return found[0][name], found[1]


@lru_cache(maxsize=1024)
def _kernels(path: Path, _mtime: int, _size: int) -> tuple[Mapping[str, str], str]:
    from netra_catalog.artefacts import inspect_object

    document = inspect_object(path)
    return {k["name"]: k["kernel_sha256"] for k in document["kernels"]}, document["co_sha256"]


def oracle(root: Path, name: str) -> str:
    """Of an oracle module and of the other modules of its folder that it imports."""
    folder = oracle_dir(root)
    total = hashlib.sha256()
    for module in sorted(_imported(folder, name)):
        body = hashlib.sha256((folder / f"{module}.py").read_bytes()).hexdigest()
        total.update(f"{module} {body}\n".encode())
    return total.hexdigest()


def _imported(folder: Path, name: str) -> set[str]:
    """The module and, with what they import in turn, those beside it."""
    found, todo = set(), [name]
    while todo:
        module = todo.pop()
        path = folder / f"{module}.py"
        if module in found or not path.is_file():
            continue
        found.add(module)
        for node in ast.walk(ast.parse(path.read_bytes(), str(path))):
            if isinstance(node, ast.ImportFrom) and node.module == _ORACLES:
                todo += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and str(node.module).startswith(f"{_ORACLES}."):
                todo.append(str(node.module).rsplit(".", 1)[1])
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
                todo += [n.rsplit(".", 1)[1] for n in names if n.startswith(f"{_ORACLES}.")]
    return found


def captures(root: Path, op: str) -> dict[str, str]:
    """Of each capture of an op, by file name."""
    folder = root / "harness" / "captures" / op
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.glob("*.safetensors"))
    }


def semantics(root: Path) -> str:
    """Of the simulator: what it computes, its sanitizer and its matrix models.  A tree without
    its sources has that of the library."""
    from netra_sim import semantics as sources

    files = tuple((str(p), p.stat().st_mtime_ns, p.stat().st_size) for p in sources.files(root))
    if files:
        return _semantics(root, files)
    from netra_sim import semantics_sha256

    return semantics_sha256()


@lru_cache(maxsize=8)
def _semantics(root: Path, _files: tuple[tuple[str, int, int], ...]) -> str:
    from netra_sim import semantics as sources

    return sources.sha256(root)
