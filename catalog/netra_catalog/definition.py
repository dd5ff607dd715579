"""Finds the definition of an op in its oracle module.

`OP = Op(...)` is data.  When it is written as a literal it is read from the
source, so that commands which run nothing need not import NumPy; otherwise the
module is imported.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from netra_catalog.errors import NetraError
from netra_catalog.op import Op, ScalarArg, TensorArg
from netra_catalog.paths import display

_PACKAGE = Path(__file__).resolve().parent
_CLASSES: dict[str, Any] = {"Op": Op, "TensorArg": TensorArg, "ScalarArg": ScalarArg}


def oracle_dir(root: Path) -> Path:
    """The oracles of a checkout, or those beside an installed package."""
    checkout = root / "harness" / "netra_harness" / "oracles"
    return root.parent / "netra_harness" / "oracles" if root == _PACKAGE else checkout


def read_op(root: Path, name: str) -> Op:
    """The op that oracles/<name>.py defines."""
    path = oracle_dir(root) / f"{name}.py"
    stat = path.stat()
    return _read_op(root, name, path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=256)
def _read_op(root: Path, name: str, path: Path, mtime: int, size: int) -> Op:
    shown = display(path)
    try:
        tree = ast.parse(path.read_bytes(), str(path))
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise NetraError(f"not Python: {error}", where=f"{shown}:{line}") from None
    for statement in tree.body:
        targets: list[ast.expr] = []
        if isinstance(statement, ast.Assign):
            targets = statement.targets
        elif isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        value = getattr(statement, "value", None)
        if value is None or not any(isinstance(t, ast.Name) and t.id == "OP" for t in targets):
            continue
        try:
            found = _literal(value)
        except _NotLiteralError:
            found = getattr(import_oracle(root, name), "OP", None)
        except (TypeError, ValueError) as error:
            raise NetraError(f"OP: {error}", where=f"{shown}:{statement.lineno}") from None
        if isinstance(found, Op):
            return found
        raise NetraError("OP is not an Op(...)", where=f"{shown}:{statement.lineno}")
    raise NetraError(
        "defines no OP", where=f"{shown}:1", hint="add OP = Op(name=..., args=(...), ...)"
    )


class _NotLiteralError(Exception):
    pass


def _literal(tree: ast.expr) -> Any:
    if isinstance(tree, ast.Call):
        name = tree.func.attr if isinstance(tree.func, ast.Attribute) else ""
        name = tree.func.id if isinstance(tree.func, ast.Name) else name
        if name not in _CLASSES or any(word.arg is None for word in tree.keywords):
            raise _NotLiteralError
        words = {str(word.arg): _literal(word.value) for word in tree.keywords}
        return _CLASSES[name](*(_literal(arg) for arg in tree.args), **words)
    if isinstance(tree, ast.Tuple):
        return tuple(_literal(item) for item in tree.elts)
    try:
        return ast.literal_eval(tree)
    except ValueError:
        raise _NotLiteralError from None


def import_oracle(root: Path, name: str) -> ModuleType:
    """The module itself: netra_harness.oracles.<name>, or the file of another root."""
    path = (oracle_dir(root) / f"{name}.py").resolve()
    shown = display(path)
    dotted = f"netra_harness.oracles.{name}"
    try:
        spec = importlib.util.find_spec(dotted)
    except ImportError:
        spec = None
    try:
        if spec is not None and spec.origin and Path(spec.origin).resolve() == path:
            return importlib.import_module(dotted)
        return _import_file(path, name)
    except NetraError:
        raise
    except Exception as error:
        raise NetraError(
            f"cannot be imported: {type(error).__name__}: {error}", where=f"{shown}:1"
        ) from error


def _import_file(path: Path, name: str) -> ModuleType:
    alias = f"_netra_oracle_{abs(hash(path))}_{name}"
    if alias in sys.modules:
        return sys.modules[alias]
    spec = importlib.util.spec_from_file_location(alias, path)
    if spec is None or spec.loader is None:
        raise NetraError("is not a Python module", where=f"{display(path)}:1")
    module = importlib.util.module_from_spec(spec)
    sys.modules[alias] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[alias]
        raise
    return module
