"""Makes every mutant of the selected kernels, runs it, and says which ones nobody noticed.

A mutant is killed when a case of the oracle's `mutation` set fails with it: a wrong result, a
finding, a fault, no end. It is equivalent only for a reason that a machine checked: the assembled
kernel is the same, or no path through the kernel can tell (waits.py). All others survive.
"""

from __future__ import annotations

import math
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import netra_sim
from netra_catalog import paths, select
from netra_catalog.tactic import Tactic

from netra_harness import workers
from netra_harness.case import DEFAULT_SEED
from netra_harness.device import code_object, library
from netra_harness.errors import NetraError, ToolError
from netra_harness.mutation import assembly, equivalence, source
from netra_harness.mutation.operators import HIDDEN, OPERATORS, Kernel, Mutant, mutants
from netra_harness.results import CaseResult
from netra_harness.validate import NOT_VALIDATED, case_names

HIDDEN_SHARE, SHARE = 0.99, 0.95  # of the mutants that are not equivalent must be killed
MANY_EQUIVALENTS = 0.15  # an operator with more of them measures little
_SECONDS = 60.0
_SLACK = 20  # how much longer than the kernel itself a mutant may run


@dataclass(frozen=True)
class Settings:
    """What the command line asked for; `operators` empty: all of them."""

    pattern: str = "*"
    arch: str | None = None
    seed: int = DEFAULT_SEED
    operators: tuple[str, ...] = ()
    line: int | None = None
    keep: Path | None = None


@dataclass(frozen=True)
class Fate:
    """What became of one mutant: "killed", "equivalent" or "survived", and by what."""

    kernel: str
    mutant: Mutant
    fate: str
    why: str
    place: source.Line

    @property
    def where(self) -> str:
        """`asm/gfx950/x.s:12`."""
        path, root = self.place.path, paths.repo_root()
        shown = path.relative_to(root) if path.is_relative_to(root) else path
        return f"{shown.as_posix()}:{self.place.number}"

    def json(self) -> dict[str, Any]:
        return {
            "operator": self.mutant.operator, "kernel": self.kernel, "line": self.place.number,
            "place": self.where, "before": self.mutant.before, "after": self.mutant.after,
            "why": self.why,
        }  # fmt: skip


@dataclass
class TacticFates:
    """All mutants of one tactic's kernels."""

    tactic: Tactic
    fates: list[Fate] = field(default_factory=list)
    refused: int = 0  # edits that do not assemble: no mutants
    seconds: float = 0.0

    def counts(self) -> dict[str, dict[str, int]]:
        table = {
            name: {"killed": 0, "equivalent": 0, "survived": 0}
            for name in OPERATORS
            if any(f.mutant.operator == name for f in self.fates)
        }
        for fate in self.fates:
            table[fate.mutant.operator][fate.fate] += 1
        return table

    def share(self, names: tuple[str, ...]) -> float:
        """Killed among those that are not equivalent; 1 where there are none."""
        live = [f for f in self.fates if f.mutant.operator in names and f.fate != "equivalent"]
        return sum(f.fate == "killed" for f in live) / len(live) if live else 1.0

    @property
    def passed(self) -> bool:
        enough = self.share(HIDDEN) >= HIDDEN_SHARE and self.share(tuple(OPERATORS)) >= SHARE
        return bool(self.fates) and enough

    def json(self) -> dict[str, Any]:
        return {
            "tactic": self.tactic.id,
            "operators": self.counts(),
            "hidden_share": round(self.share(HIDDEN), 4),
            "share": round(self.share(tuple(OPERATORS)), 4),
            "passed": self.passed,
            "refused": self.refused,
            "survivors": [fate.json() for fate in self.fates if fate.fate == "survived"],
            "equivalents": [fate.json() for fate in self.fates if fate.fate == "equivalent"],
            "seconds": round(self.seconds, 3),
        }


def run(
    settings: Settings, heard: Callable[[TacticFates, Fate], None] = lambda fates, fate: None
) -> list[TacticFates]:
    """Mutates what the settings select; `heard` is told of every mutant as it ends.

    Raises NetraError when a tactic does not pass its own `mutation` cases.
    """
    library("sim")
    folder = Path(tempfile.mkdtemp(prefix="netra-mutants-")) if not settings.keep else settings.keep
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return [_tactic(settings, tactic, folder, heard) for tactic in chosen(settings)]
    finally:
        if not settings.keep:
            shutil.rmtree(folder, ignore_errors=True)


def chosen(settings: Settings) -> list[Tactic]:
    """The tactics that the settings select, those left out that are never selected."""
    return [t for t in select(settings.pattern, settings.arch) if t.maturity not in NOT_VALIDATED]


def _tactic(
    settings: Settings,
    tactic: Tactic,
    folder: Path,
    heard: Callable[[TacticFates, Fate], None],
) -> TacticFates:
    begin = time.perf_counter()
    fates = TacticFates(tactic)
    baseline = _baseline(settings, tactic)
    limit = {"NETRA_SIM_SECONDS": str(math.ceil(max(1.0, _SLACK * baseline)))}
    jobs: list[workers.Job] = []
    by_source: dict[str, tuple[str, Kernel, Mutant]] = {}
    for name in tactic.kernels:
        kernel = load(tactic.arch, name, _threads(tactic, name))
        for number, mutant in enumerate(_wanted(settings, kernel)):
            path = folder / tactic.arch / tactic.stem / f"{name}-{number}" / f"{name}.s"
            _write(path, kernel, mutant)
            by_source[str(path)] = (name, kernel, mutant)
            body = {
                "do": "mutant", "tactic": tactic.id, "path": str(tactic.path), "device": "sim",
                "arch": tactic.arch, "kernel": name, "source": str(path), "seed": settings.seed,
                "original": str(code_object(tactic.arch, name)),
            }  # fmt: skip
            jobs.append(workers.Job(body, _environment(tactic, limit), _SECONDS))
    for outcome in workers.run(jobs):
        name, kernel, mutant = by_source[outcome.job.body["source"]]
        fate = _fate(outcome, name, kernel, mutant)
        if fate is None:
            fates.refused += 1
            continue
        fates.fates.append(fate)
        heard(fates, fate)
    order = list(OPERATORS)
    fates.fates.sort(key=lambda f: (f.kernel, order.index(f.mutant.operator), f.mutant.line))
    fates.seconds = time.perf_counter() - begin
    return fates


def _environment(tactic: Tactic, limit: dict[str, str]) -> dict[str, str]:
    return {"NETRA_SIM_DEVICES": tactic.arch, **limit}


def _wanted(settings: Settings, kernel: Kernel) -> Iterator[Mutant]:
    for mutant in mutants(kernel):
        if settings.operators and mutant.operator not in settings.operators:
            continue
        if settings.line in (None, kernel.origin[mutant.line - 1].number):
            yield mutant


def _threads(tactic: Tactic, kernel: str) -> int:
    """Of a workgroup, where each launch of the kernel has the same number in one dimension."""
    blocks = {tuple(map(str, x.block)) for x in tactic.launches if x.kernel == kernel}
    [(x, *others), *more] = blocks
    return int(x) if x.isdecimal() and others == ["1", "1"] and not more else 0


def load(arch: str, name: str, threads: int = 0) -> Kernel:
    """A kernel of the checkout with its decoded form, which must belong to the text."""
    folder = paths.repo_root() / "asm"
    origin = source.whole(folder / arch / f"{name}.s", folder / "include")
    text = "\n".join(line.text for line in origin) + "\n"
    kernels = netra_sim.inspect(code_object(arch, name))["kernels"]
    wave = int(next(k for k in kernels if k["name"] == name)["wave_size"])
    program = assembly.decode(text, arch, name, wave)
    instructions = list(source.instructions(text))
    lines = assembly.lines_of(program)
    waves = threads // wave if threads % wave == 0 else 0
    return Kernel(
        arch, name, wave, text.splitlines(), instructions, program, lines, waves, tuple(origin)
    )


def _write(path: Path, kernel: Kernel, mutant: Mutant) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(equivalence.mutated(kernel, mutant), encoding="utf-8")


def _baseline(settings: Settings, tactic: Tactic) -> float:
    """Seconds that the kernel itself takes; it must pass its cases before its mutants run."""
    slowest = 0.0
    jobs = [
        workers.Job(
            {"do": "run", "tactic": tactic.id, "path": str(tactic.path), "arch": tactic.arch,
             "case": case, "case_set": "mutation", "seed": settings.seed, "device": "sim"},
            _environment(tactic, {}), _SECONDS,
        )
        for case in case_names(tactic, "mutation")
    ]  # fmt: skip
    for outcome in workers.run(jobs):
        result = CaseResult.from_json(outcome.answer) if outcome.kind == "ok" else None
        if result is None or not result.passed:
            text = result.failures[0].text if result and result.failures else outcome.text
            raise NetraError(
                f"case {outcome.job.body['case']} fails without any mutation: {text}",
                where=tactic.id,
                hint=f"mend the kernel first: netra-harness validate {tactic.id}",
            )
        slowest = max(slowest, result.launch_seconds)
    return slowest


def _fate(
    outcome: workers.Outcome, name: str, kernel: Kernel, mutant: Mutant
) -> Fate | None:
    """None for an edit that is no program."""

    def ended(fate: str, why: str) -> Fate:
        return Fate(name, mutant, fate, why, kernel.origin[mutant.line - 1])

    if outcome.kind != "ok":
        if outcome.exit_code == ToolError.exit_code:
            raise ToolError(outcome.text)
        if outcome.kind == "error":
            raise NetraError(f"{outcome.text}\n{outcome.answer or ''}", where=name)
        return ended("killed", f"{outcome.kind}: {outcome.text.splitlines()[0]}")
    answer = outcome.answer
    if answer["verdict"] == "refused":
        return None
    if answer["verdict"] == "same":
        return ended("equivalent", "the assembled kernel is the same")
    if answer["verdict"] == "killed":
        return ended("killed", answer["text"])
    reason = equivalence.reason(kernel, mutant)
    return ended("equivalent" if reason else "survived", reason or answer["text"])
