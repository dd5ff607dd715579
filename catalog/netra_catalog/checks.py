"""What `netra-catalog check` looks at beyond loading: the files around the YAML."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from netra_catalog.errors import NetraError, nearest
from netra_catalog.load import load_all
from netra_catalog.paths import ARCHES, display
from netra_catalog.tactic import Tactic
from netra_catalog.yaml_loader import load_yaml

MAX_LINES = 120


@dataclass(frozen=True)
class Report:
    tactics: int
    kernels: int
    errors: tuple[str, ...]


def check(root: Path, arch: str | None = None) -> Report:
    """Everything wrong with the catalog of a checkout.  Nothing is ever edited."""
    tactics, errors = load_all("*", arch, root)
    found = [error.message for error in errors]
    for tactic in tactics:
        found += _kernels(root, tactic)
        found += _length(tactic)
        found += _unstated(tactic)
    found += _duplicates(tactics)
    found += _stray_files(root, arch)
    if not errors:  # a file that does not load might name any of them
        found += _unnamed(root, tactics, arch)
    kernels = {(tactic.arch, kernel) for tactic in tactics for kernel in tactic.kernels}
    return Report(len(tactics), len(kernels), tuple(found))


def _kernels(root: Path, tactic: Tactic) -> Iterator[str]:
    for index, launch in enumerate(tactic.launches):
        path = root / "asm" / tactic.arch / f"{launch.kernel}.s"
        if not path.is_file():
            known = [file.stem for file in path.parent.glob("*.s")]
            where = tactic.where(f"launches[{index}].kernel")
            close = nearest(launch.kernel, known)
            yield NetraError(f"{display(path)} does not exist{close}", where=where).message


def _length(tactic: Tactic) -> Iterator[str]:
    lines = load_yaml(tactic.path).lines
    if lines > MAX_LINES:
        where = f"{display(tactic.path)}:{MAX_LINES + 1}"
        yield f"{where}: {lines} lines; a tactic has at most {MAX_LINES}"


def _unstated(tactic: Tactic) -> Iterator[str]:
    """Shape alone is never a complete signature: every tensor needs predicates on
    its type, each extent, its strides and its alignment."""
    read = {
        (load.name, load.field, load.index)
        for predicate in tactic.contract.values()
        for load in predicate.expr.inputs()
    }
    texts = " ".join(predicate.text for predicate in tactic.contract.values())
    where = tactic.where("contract")
    for arg in tactic.definition.tensors:
        missing = [] if (arg.name, "dtype", 0) in read else [f"{arg.name}.dtype"]
        for index in range(len(arg.dims)):
            if (arg.name, "shape", index) not in read:
                missing.append(f"{arg.name}.shape[{index}]")
        strided = any(name == arg.name and field == "stride" for name, field, _ in read)
        if not strided and f"contiguous({arg.name})" not in texts:
            missing.append(f"contiguous({arg.name}) or {arg.name}.stride(i)")
        if f"aligned({arg.name}," not in texts:
            missing.append(f"aligned({arg.name}, n)")
        if missing:
            yield f"{where}: no predicate states {', '.join(missing)}"


def _duplicates(tactics: list[Tactic]) -> Iterator[str]:
    seen: dict[tuple[object, ...], Tactic] = {}
    for tactic in tactics:
        predicates = frozenset(p.expr.node for p in tactic.contract.values())
        key = (tactic.arch, tactic.op, tactic.rank, predicates)
        first = seen.setdefault(key, tactic)
        if first is not tactic:
            yield (
                f"{tactic.where('contract')}: the contract is that of {first.id} "
                f"({first.where('contract')}), at the same rank"
            )


def _stray_files(root: Path, arch: str | None) -> Iterator[str]:
    for target in ARCHES if arch is None else (arch,):
        for path in sorted((root / "catalog" / target).glob("*.yml")):
            yield f"{display(path)}: is not read: name it {path.stem}.yaml"


def _unnamed(root: Path, tactics: list[Tactic], arch: str | None) -> Iterator[str]:
    for target in ARCHES if arch is None else (arch,):
        named = {kernel for t in tactics if t.arch == target for kernel in t.kernels}
        for path in sorted((root / "asm" / target).glob("*.s")):
            if path.stem not in named:
                yield f"{display(path)}:1: no launch in catalog/{target}/ names this kernel"
