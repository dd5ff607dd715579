"""Finds tactics by pattern and loads them.  Nothing is registered anywhere:
catalog/<arch>/<stem>.yaml is the list."""

from __future__ import annotations

import fnmatch
import re
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from netra_catalog.definition import import_oracle, oracle_dir, read_op
from netra_catalog.errors import NetraError, UsageError, nearest
from netra_catalog.paths import ARCHES, display, repo_root

if TYPE_CHECKING:
    from netra_catalog.tactic import Tactic

_STEM = re.compile(r"[a-z][a-z0-9_]*")


def tactic_files(
    pattern: str = "*", arch: str | None = None, root: Path | None = None
) -> list[Path]:
    """The YAML files that a PATTERN selects, in the order of their ids."""
    if arch is not None and arch not in ARCHES:
        raise UsageError(f"unknown arch '{arch}'{nearest(arch, ARCHES)}")
    folder = (root or repo_root()) / "catalog"
    found: list[tuple[str, Path]] = []
    for target in ARCHES if arch is None else (arch,):
        for path in (folder / target).glob("*.yaml"):
            id = f"{target}/{path.stem}"
            if fnmatch.fnmatchcase(id if "/" in pattern else path.stem, pattern):
                found.append((id, path))
    return [path for _, path in sorted(found)]


def load(
    pattern: str = "*", arch: str | None = None, root: Path | None = None
) -> list[Tactic]:
    """The tactics that a PATTERN selects, sorted by id; [] when there is none."""
    tactics, errors = load_all(pattern, arch, root)
    if errors:
        more = len(errors) - 1
        hint = f"and {more} more files with errors: netra-catalog check" if more else ""
        raise NetraError(errors[0].message, hint=hint)
    return tactics


def load_all(
    pattern: str = "*", arch: str | None = None, root: Path | None = None
) -> tuple[list[Tactic], list[NetraError]]:
    """Like `load`, with one error for each file that has any."""
    tactics: list[Tactic] = []
    errors: list[NetraError] = []
    for path in tactic_files(pattern, arch, root):
        try:
            tactics.append(load_one(path))
        except NetraError as error:
            errors.append(error)
    return tactics, errors


def load_one(path: Path) -> Tactic:
    """One tactic.  Errors are NetraError and name file and line."""
    # Here, since a command that reads the compiled catalog needs none of them.
    from netra_catalog.compose import Composer
    from netra_catalog.schema import problems
    from netra_catalog.yaml_loader import load_yaml

    path = Path(path)
    arch, stem = path.parent.name, path.stem
    shown = display(path)
    if arch not in ARCHES:
        raise NetraError(f"folder '{arch}' is no target{nearest(arch, ARCHES)}", where=shown)
    if not _STEM.fullmatch(stem):
        raise NetraError("a file name is lower case letters, digits and _", where=shown)
    document = load_yaml(path)
    found = problems(document)
    if found:
        raise NetraError("\n".join(
            NetraError(
                problem.message, where=document.at(problem.where, problem.key), hint=problem.hint
            ).message
            for problem in found
        ))
    root = path.parent.parent.parent
    name = document.data["oracle"]["name"]
    if not (oracle_dir(root) / f"{name}.py").is_file():
        known = [file.stem for file in oracle_dir(root).glob("[a-z]*.py")]
        raise NetraError(
            f"unknown oracle '{name}'{nearest(name, known)}",
            where=document.at(("oracle", "name")),
            hint=f"a new op needs {display(oracle_dir(root) / name)}.py",
        )
    op = read_op(root, name)
    if op.name != document.data["op"]:
        raise NetraError(
            f"op is '{document.data['op']}', but the oracle '{name}' defines '{op.name}'",
            where=document.at(("op",)),
        )
    return Composer(document, op, arch, stem).compose()


def select(
    pattern: str = "*", arch: str | None = None, root: Path | None = None
) -> list[Tactic]:
    """Like `load`, but a pattern that matches nothing is a usage error."""
    tactics = load(pattern, arch, root)
    if tactics:
        return tactics
    files = tactic_files("*", arch, root)
    ids = [f"{path.parent.name}/{path.stem}" for path in files]
    names = ids if "/" in pattern else [path.stem for path in files]
    on = f" on {arch}" if arch else ""
    raise UsageError(
        f"no tactic matches '{pattern}'{on}{nearest(pattern, names)}",
        hint="see: netra-catalog list",
    )


def oracle(tactic: Tactic) -> ModuleType:
    """The oracle module of a tactic (this imports NumPy)."""
    return import_oracle(tactic.root, tactic.oracle_name)
