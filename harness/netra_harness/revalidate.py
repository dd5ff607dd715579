"""Records anew what a change made stale, promotes or demotes, and says which verdicts moved."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from netra_catalog import evidence, select
from netra_catalog.evidence import Standing
from netra_catalog.load import load_one
from netra_catalog.promote import write
from netra_catalog.result import Result
from netra_catalog.tactic import Tactic

from netra_harness import record, validate
from netra_harness.case import DEFAULT_SEED
from netra_harness.errors import NetraError, UsageError
from netra_harness.mutation import campaign
from netra_harness.results import CaseResult

KINDS = ("oracle", "sanitize", "mutate")  # what can be recorded without a GPU
Say = Callable[[str], None]


@dataclass
class Change:
    """What one tactic had, what it lacked and why, and what it has now."""

    tactic: Tactic
    before: Standing
    todo: tuple[str, ...]
    why: str
    written: list[Result] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    after: Standing | None = None
    pruned: list[Path] = field(default_factory=list)

    @property
    def was(self) -> str:
        """The maturity before anything moved: that which the YAML still states."""
        return self.tactic.maturity

    @property
    def now(self) -> str:
        return self.after.maturity if self.after else self.before.maturity

    @property
    def verdicts(self) -> list[str]:
        """Verdicts that are not what they were: `oracle: pass -> fail`."""
        old = {r.kind: r.verdict for r in self.before.results if r.device == "sim"}
        return [
            f"{r.kind}: {old.get(r.kind, 'none')} -> {r.verdict}"
            for r in self.written if r.verdict != old.get(r.kind)
        ]  # fmt: skip

    @property
    def good(self) -> bool:
        """Nothing failed, and the maturity is not lower than it was."""
        return not self.errors and all(r.passed for r in self.written)

    def json(self) -> dict[str, Any]:
        return {
            "tactic": self.tactic.id, "was": self.was, "maturity": self.now, "why": self.why,
            "recorded": [r.id for r in self.written], "verdicts": self.verdicts,
            "errors": self.errors, "pruned": [path.name for path in self.pruned],
        }  # fmt: skip


def plan(pattern: str, arch: str | None = None) -> list[Change]:
    """What each tactic that PATTERN selects lacks of the evidence that the simulator can give."""
    changes = []
    for tactic in select(pattern, arch):
        found = evidence.standing(tactic)
        lacks = {m.rung.kind: m.why for m in found.missing if m.rung.device == "sim"}
        failed = {
            r.kind for r in found.results
            if r.id not in found.stale and r.device == "sim" and not r.passed
        }  # fmt: skip
        todo = tuple(kind for kind in KINDS if kind in lacks and kind not in failed)
        if found.decision is not None:
            todo, why = (), f"{found.maturity}: {found.decision.details['reason']}"
        else:
            why = "; ".join(dict.fromkeys(lacks.values()))
        changes.append(Change(tactic, found, todo, why))
    return changes


def run(
    changes: Iterable[Change], seed: int = DEFAULT_SEED, prune: bool = False,
    say: Say = lambda text: None,
) -> None:
    """Records what is to do and writes each maturity; a run that is interrupted goes on from where
    it was when it is started again.

    What one tactic does wrong does not keep the others from being recorded.
    """
    changes = list(changes)
    try:
        # The oracle sees the full set, which the sanitizer would make several times as long; the
        # sanitizer sees the quick one, in which every path is.
        _validate(changes, "oracle", seed, say)
        _validate(changes, "sanitize", seed, say)
        for change in changes:
            if "mutate" in change.todo:
                _mutate(change, seed)
                say(f"{change.tactic.id}: mutants, {_verdict(change, 'mutate')}")
                settle(change, prune)
    finally:
        for change in changes:
            if change.after is None:
                settle(change, prune)


def settle(change: Change, prune: bool) -> None:
    """Writes the maturity; with `prune` results that passed and were superseded are removed."""
    tactic = load_one(change.tactic.path)
    change.after = evidence.standing(tactic)
    if prune:
        kept = set(change.after.ids)
        for old in change.after.results:
            stale = old.id in change.after.stale and old.device == "sim" and old.passed
            if stale and old.id not in kept:
                old.path.unlink()
                change.pruned.append(old.path)
    write(tactic, change.after.maturity, change.after.ids)


def _validate(changes: list[Change], kind: str, seed: int, say: Say) -> None:
    """The cases of all tactics at once, since the workers are shared by them."""
    by_id = {c.tactic.id: c for c in changes if kind in c.todo}
    if not by_id:
        return
    watched = kind == "sanitize"
    settings = validate.Settings(
        device="sim", seed=seed, full=not watched, all=True, sanitize=watched
    )
    keeping = {id: record.Keeping((kind,)) for id in by_id}

    def started(reports: list[validate.TacticReport]) -> None:
        for report in reports:
            keeping[report.tactic.id].started([report.tactic])

    def heard(report: validate.TacticReport, _result: CaseResult) -> None:
        if not report.done:
            return
        change = by_id[report.tactic.id]
        order = {name: i for i, name in enumerate(report.names)}
        report.results.sort(key=lambda result: order[result.case])
        try:
            change.written += keeping[report.tactic.id].validated(settings, report)
        except NetraError as error:
            change.errors.append(error.message)
        say(f"{report.tactic.id}: {kind}, {len(report.names)} cases, {_verdict(change, kind)}")

    validate.validate(settings, started, heard, only=tuple(by_id))


def _mutate(change: Change, seed: int) -> None:
    tactic = change.tactic
    if any(not r.passed for r in change.written):
        change.errors.append("no mutants were tried, since the kernel itself fails")
        return
    settings = campaign.Settings(pattern=tactic.id, seed=seed)
    keeping = record.Keeping(("mutate",))
    try:
        keeping.started([tactic])
        for fates in campaign.run(settings):
            change.written += keeping.mutated(fates, settings)
    except UsageError:
        raise
    except NetraError as error:
        change.errors.append(error.message)


def _verdict(change: Change, kind: str) -> str:
    said = [r.verdict for r in change.written if r.kind == kind]
    return said[-1] if said else "recorded" if change.written else "not recorded"
