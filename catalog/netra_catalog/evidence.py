"""What the recorded results of a tactic let one say of it: its maturity, and what is missing.

Nobody types a maturity.  It is the last one of the ladder below whose rungs, and all rungs before
them, each have a result that passed with the hashes as they are now.  A decision (rejected,
quarantined) stands while the candidate it was taken on is unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from netra_catalog import hashes, result
from netra_catalog.errors import NetraError
from netra_catalog.paths import ARCHES, display
from netra_catalog.result import Result
from netra_catalog.tactic import Tactic

DECISIONS = ("rejected", "quarantined")
MATURITIES = ("experiment", "simulated", "verified", "accepted")
REPLAYS = 10  # at least so often, for the rung that asks for repetition

# The hashes that a result of a kind hangs on.  `semantics` counts on the simulator only.
_ALL = ("kernels", "contract", "oracle", "captures", "semantics")
KEYED: Mapping[str, tuple[str, ...]] = {
    "oracle": _ALL,
    "sanitize": ("kernels", "contract", "oracle", "semantics"),
    "mutate": ("kernels", "contract", "oracle", "semantics"),
    "counters": ("kernels", "contract", "oracle", "semantics"),
    "timing": ("kernels", "contract"),
    "toggle": ("kernels", "contract"),
    "order": ("kernels", "contract"),
    "invariants": ("kernels", "contract"),
    "rejected": ("kernels", "contract"),
    "quarantined": ("kernels", "contract"),
}


@dataclass(frozen=True)
class Rung:
    """One step: what must be recorded, and the command that records it."""

    name: str
    gives: str
    kind: str
    device: str
    command: str
    wants: str = ""
    enough: Callable[[Mapping[str, Any]], bool] = lambda details: True


def _full(details: Mapping[str, Any]) -> bool:
    return details.get("case_set") == "full" and details.get("case") is None


def _timed(details: Mapping[str, Any]) -> bool:
    parts = ("load", "first_call", "eager", "replay")
    return details.get("scope") == "operation" and details.get("cache") == "flushed" and all(
        part in details for part in parts
    )


LADDER = (
    Rung("oracle on the simulator", "simulated", "oracle", "sim",
         "netra-harness validate {id} --full --device sim --record", "the full case set", _full),
    # Every path of the kernel is in the quick set; more rows of the same paths show no more.
    Rung("sanitizer", "simulated", "sanitize", "sim", "netra-harness sanitize {id} --record",
         "a whole case set", lambda details: details.get("case") is None),
    Rung("mutants", "simulated", "mutate", "sim", "netra-harness mutate {id} --record",
         "all operators, all lines", lambda details: details.get("restricted") is False),
    Rung("oracle on the GPU, eager", "verified", "oracle", "hip",
         "netra-harness validate {id} --full --device hip --record", "the full case set", _full),
    Rung("oracle on the GPU, graph replay", "verified", "oracle", "hip",
         "netra-harness validate {id} --full --device hip --record",
         f"the full case set, {REPLAYS} replays of a case",
         lambda details: _full(details) and details.get("replays", 0) >= REPLAYS),
    Rung("timing", "accepted", "timing", "hip",
         "netra-harness bench {id} --device hip --record",
         "load, first call, eager and replay apart, cache flushed", _timed),
    Rung("toggle", "accepted", "toggle", "hip",
         "netra-harness bench {id} --system RUNS.json --record",
         "this tactic alone switched in a full server",
         lambda details: details.get("scope") == "system"),
    Rung("order reversal", "accepted", "order", "hip",
         "netra-harness bench {id} --system RUNS.json --record", "both orders"),
    Rung("invariants", "accepted", "invariants", "hip",
         "netra-harness bench {id} --system RUNS.json --record",
         "requests, tokens and artefact hashes"),
)  # fmt: skip


@dataclass(frozen=True)
class Missing:
    """A rung that nothing holds up, why, and what would."""

    rung: Rung
    why: str
    command: str


@dataclass
class Standing:
    """What the results give a tactic; `stale` has, by id, the hashes that have moved since."""

    tactic: str
    maturity: str = "experiment"
    held: list[tuple[Rung, Result]] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    decision: Result | None = None
    stale: dict[str, list[str]] = field(default_factory=dict)
    results: list[Result] = field(default_factory=list)
    damaged: list[NetraError] = field(default_factory=list)

    @property
    def ids(self) -> list[str]:
        """The results that the maturity rests on, each once."""
        if self.decision is not None:
            return [self.decision.id, *map(str, self.decision.details.get("rests_on", ()))]
        reached = MATURITIES.index(self.maturity)
        used = [r.id for rung, r in self.held if MATURITIES.index(rung.gives) <= reached]
        return list(dict.fromkeys(used))


def moved(past: Result, now: Mapping[str, Any]) -> list[str]:
    """The hashes that a result hangs on and that are others now: `contract`, `kernels.argmax`."""
    out = []
    for key in KEYED[past.kind]:
        if key == "semantics" and past.device != "sim":
            continue
        before, after = past.hashes[key], now[key]
        if isinstance(before, Mapping):
            names = sorted({*before, *after})
            out += [f"{key}.{name}" for name in names if before.get(name) != after.get(name)]
        elif before != after:
            out.append(key)
    return out


def standing(tactic: Tactic) -> Standing:
    """Computes where a tactic stands.  Its kernels must be built, unless it has no results."""
    found = Standing(tactic.id)
    found.results, found.damaged = result.read_all(tactic.root, tactic.id)
    if found.results:
        now = hashes.of_tactic(tactic)
        found.stale = {r.id: m for r in found.results if (m := moved(r, now))}
    current = [r for r in found.results if r.id not in found.stale]
    for rung in LADDER:
        held, why = _held(rung, current, found)
        if held is not None:
            found.held.append((rung, held))
        else:
            found.missing.append(Missing(rung, why, rung.command.format(id=tactic.id)))
    names = {m.rung.name for m in found.missing}
    for maturity in MATURITIES[1:]:
        if any(rung.gives == maturity and rung.name in names for rung in LADDER):
            break
        found.maturity = maturity
    decided = [r for r in current if r.kind in DECISIONS]
    if decided:
        found.decision, found.maturity = decided[-1], decided[-1].kind
    return found


def _held(rung: Rung, current: Iterable[Result], found: Standing) -> tuple[Result | None, str]:
    """The newest result that holds a rung up, or why none does."""
    mine = [r for r in current if r.kind == rung.kind and r.device == rung.device]
    failed = [r for r in mine if not r.passed]
    if failed:
        where = display(failed[-1].path)
        return None, f"{failed[-1].verdict}, with these very hashes ({where})"
    good = [r for r in mine if rung.enough(r.details)]
    if good:
        return good[-1], ""
    if mine:
        return None, f"{mine[-1].id} is not enough: it takes {rung.wants}"
    old = [r for r in found.results if r.kind == rung.kind and r.device == rung.device]
    if old:
        return None, f"{old[-1].id} is stale: {', '.join(found.stale[old[-1].id])} changed"
    return None, "nothing is recorded"


def effective(tactic: Tactic) -> str:
    """The maturity that dispatch goes by: what the YAML says, and never more than the evidence.

    A rejection that was typed and never recorded is kept: it can only do less.
    """
    if tactic.maturity == "experiment" and not result.folder(tactic.root, tactic.id).is_dir():
        return "experiment"
    found = standing(tactic)
    if found.decision is not None:
        return found.maturity
    if tactic.maturity in DECISIONS:
        recorded = any(r.kind in DECISIONS for r in found.results)
        return found.maturity if recorded else tactic.maturity
    return min(tactic.maturity, found.maturity, key=MATURITIES.index)


def demoted(tactic: Tactic) -> Tactic:
    """The tactic as dispatch may see it."""
    maturity = effective(tactic)
    return tactic if maturity == tactic.maturity else replace(tactic, maturity=maturity)


def problems(tactic: Tactic) -> list[str]:
    """In what a YAML and the results differ; [] when the maturity is what the evidence gives."""
    found = standing(tactic)
    out = [error.message for error in found.damaged]
    named = [str(id) for id in tactic.evidence or ()]
    known = {r.id for r in found.results}
    where = tactic.where("maturity")
    revalidate = f"run: netra-harness revalidate {tactic.id}"
    for id in named:
        if id not in known and not found.damaged:
            out.append(_message(f"{id} is not in {result.FOLDER}/{tactic.id}/", where, revalidate))
    if found.maturity != tactic.maturity:
        old = sorted({key for id in named for key in found.stale.get(id, ())})
        if old:
            text = f"evidence of {tactic.id} is stale: {', '.join(old)} changed"
        else:
            text = f"evidence of {tactic.id} gives {found.maturity}, not {tactic.maturity}"
        out.append(_message(text, where, revalidate))
    return out


def orphans(root: Path, known: Iterable[str]) -> list[str]:
    """Damage in results of tactics that are gone; they stay, and stay readable."""
    kept = set(known)
    out: list[str] = []
    for arch in ARCHES:
        for folder in sorted((root / result.FOLDER / arch).glob("*/")):
            id = f"{arch}/{folder.name}"
            if id not in kept:
                out += [error.message for error in result.read_all(root, id)[1]]
    return out


def _message(text: str, where: str, hint: str) -> str:
    return str(NetraError(text, where=where, hint=hint).message)
