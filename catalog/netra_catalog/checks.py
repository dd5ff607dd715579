"""What `netra-catalog check` looks at beyond loading: the files around the YAML."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from netra_catalog.artefacts import Objects
from netra_catalog.errors import NetraError, nearest
from netra_catalog.load import load_all
from netra_catalog.overlap import launchable, overlaps
from netra_catalog.paths import ARCHES, display
from netra_catalog.region import Region
from netra_catalog.tactic import Tactic
from netra_catalog.yaml_loader import load_yaml

MAX_LINES = 120


@dataclass(frozen=True)
class Report:
    tactics: int
    kernels: int
    errors: tuple[str, ...]


def check(
    root: Path, arch: str | None = None, built: bool = False, evidence: bool = False
) -> Report:
    """Everything wrong with the catalog of a checkout, with `built` also of its code objects, with
    `evidence` also of its results.  Nothing is ever edited."""
    tactics, errors = load_all("*", arch, root)
    found = [error.message for error in errors]
    regions: dict[str, Region] = {}
    objects = Objects(root) if built else None
    for tactic in tactics:
        found += _kernels(root, tactic)
        found += _length(tactic)
        found += launchable(tactic, regions)
        if objects is not None:
            found += objects.problems(tactic)
    found += overlaps(tactics, regions)
    found += _stray_files(root, arch)
    if not errors:  # a file that does not load might name any of them
        found += _unnamed(root, tactics, arch)
    if evidence:
        found += _evidence(root, tactics, arch)
    kernels = {(tactic.arch, kernel) for tactic in tactics for kernel in tactic.kernels}
    return Report(len(tactics), len(kernels), tuple(found))


def _evidence(root: Path, tactics: list[Tactic], arch: str | None) -> Iterator[str]:
    from netra_catalog import published
    from netra_catalog.evidence import orphans, problems

    for tactic in tactics:
        yield from problems(tactic)
    if arch is None:
        yield from orphans(root, [tactic.id for tactic in tactics])
        try:
            published.load(root)
        except NetraError as error:
            yield error.message


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
