"""Oracle modules: one per op, found by looking, never listed."""

from __future__ import annotations

from types import ModuleType

from netra_catalog import paths
from netra_catalog.definition import import_oracle, oracle_dir, read_op
from netra_catalog.errors import nearest

from netra_harness.errors import UsageError


def names() -> list[str]:
    """Oracle modules by name; files that start with an underscore are helpers."""
    folder = oracle_dir(paths.repo_root())
    return sorted(path.stem for path in folder.glob("[a-z]*.py"))


def find(op: str) -> tuple[str, ModuleType]:
    """(name, module) of an op, given as the op's name or the oracle's."""
    root = paths.repo_root()
    known = {read_op(root, name).name: name for name in names()}
    name = known.get(op, op)
    if name not in known.values():
        raise UsageError(f"no op is called '{op}'{nearest(op, known)}")
    return name, import_oracle(root, name)
