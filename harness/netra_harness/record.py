"""Turns what a run found into result files (docs/evidence.md): `--record`.

The hashes are taken before the run and once more after it; a checkout that changed in between is
recorded by nobody.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import re
import shlex
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import netra_sim
import numpy as np
from netra_catalog import hashes, paths, result
from netra_catalog.result import Result
from netra_catalog.tactic import Tactic

from netra_harness.errors import NetraError, ToolError
from netra_harness.mutation.campaign import Settings as MutationSettings
from netra_harness.mutation.campaign import TacticFates
from netra_harness.results import CaseResult
from netra_harness.validate import Settings, TacticReport

_TEXT = 1500  # characters of a failure that are kept
_REPLAYS = re.compile(r"(\d+) replays")
# What the sanitizer is answerable for; a wrong number is the oracle's matter.
_WATCHED = ("finding", "order", "fault", "outside", "unwritten", "crash", "hang", "error")

Hashes = Mapping[str, Any]


@dataclass
class Keeping:
    """What one command is asked to keep: nothing, or results of these kinds."""

    kinds: Sequence[str] = ()
    taken: dict[str, Hashes] = field(default_factory=dict)
    written: list[Result] = field(default_factory=list)

    @property
    def paths(self) -> list[str]:
        return [paths.display(result.path) for result in self.written]

    def started(self, tactics: Iterable[Tactic]) -> None:
        """Takes the hashes of the tactics about to run.

        Raises ToolError when the simulator was built from other sources than the checkout's.
        """
        if not self.kinds:
            return
        self.taken = {tactic.id: hashes.of_tactic(tactic) for tactic in tactics}
        built = netra_sim.semantics_sha256()
        if any(now["semantics"] != built for now in self.taken.values()):
            raise ToolError(
                f"{paths.display(netra_sim.library_path())} was built from other sources than "
                "those here", hint="type: make sim",
            )  # fmt: skip

    def validated(self, settings: Settings, of: TacticReport) -> list[Result]:
        """Writes what `validate` or `sanitize` found of one tactic; the sanitizer watches the
        simulator only."""
        watched = settings.sanitize and of.device == "sim"
        return self._kept([
            _validation(kind, settings, of, self.taken)
            for kind in self.kinds if kind == "oracle" or watched
        ])  # fmt: skip

    def mutated(self, fates: TacticFates, settings: MutationSettings) -> list[Result]:
        """Writes what `mutate` found of one tactic."""
        return self._kept([_mutation(fates, settings, self.taken)] if self.kinds else [])

    def put(
        self, tactic: Tactic, kind: str, verdict: str, on: Mapping[str, Any], seed: int,
        words: Sequence[str], details: Mapping[str, Any],
    ) -> list[Result]:
        """Writes a result of another kind, when anything is to be kept."""
        if not self.kinds:
            return []
        return self._kept([put(tactic, kind, verdict, self.taken, on, seed, words, details)])

    def _kept(self, results: list[Result]) -> list[Result]:
        self.written += results
        return results


def _validation(
    kind: str, settings: Settings, of: TacticReport, taken: Mapping[str, Hashes]
) -> Result:
    tactic = of.tactic
    words = ["netra-harness", "validate" if kind == "oracle" else "sanitize", tactic.id]
    words += ["--full"] if settings.full else []
    words += ["--case", settings.case] if settings.case else []
    words += ["--device", of.device] if kind == "oracle" else []
    words += ["--no-sanitize"] if kind == "oracle" and not settings.sanitize else []
    words += ["--seed", str(settings.seed), "--record"]
    if kind == "oracle":
        good = of.done and bool(of.results) and not any(
            not r.arms or not r.against or any(f.kind != "finding" for f in r.failures)
            for r in of.results
        )
        replays = [int(n[1]) for r in of.results for arm in r.arms if (n := _REPLAYS.match(arm))]
        details: dict[str, Any] = {
            "decides": tactic.numerics.decides, "allowed": tactic.numerics.allowed,
            "eager": all("eager" in r.arms for r in of.results),
            "replays": max(replays, default=0), "replayed_cases": len(replays),
            "sanitized": of.device == "sim" and settings.sanitize,
            "cases": [_case(r) for r in of.results],
        }  # fmt: skip
    else:
        good = of.done and bool(of.results) and not any(
            f.kind in _WATCHED for r in of.results for f in r.failures
        )
        details = {
            "cases": [_watched(r) for r in of.results], "warnings": of.warnings,
        }
    details |= {"case_set": settings.case_set, "case": settings.case}
    return put(
        tactic, kind, "pass" if good else "fail", taken, device(of.results, of), settings.seed,
        words, details,
    )


def _mutation(
    fates: TacticFates, settings: MutationSettings, taken: Mapping[str, Hashes]
) -> Result:
    tactic = fates.tactic
    words = ["netra-harness", "mutate", tactic.id, "--seed", str(settings.seed)]
    for name in settings.operators:
        words += ["--operator", name]
    words += ["--line", str(settings.line)] if settings.line is not None else []
    words += ["--record"]
    form = fates.json()
    details = {
        key: form[key]
        for key in ("operators", "hidden_share", "share", "refused", "survivors")
    }
    details["restricted"] = bool(settings.operators) or settings.line is not None
    details["mutants"] = len(fates.fates)
    model = {"matrix_model": tactic.numerics.matrix_model, "schedule_seeds": [settings.seed]}
    on = {"kind": "sim", "arch": tactic.arch, **model}
    return put(
        tactic, "mutate", "pass" if fates.passed else "fail", taken, on, settings.seed, words,
        details,
    )


def device(results: Sequence[CaseResult], of: TacticReport) -> dict[str, Any]:
    """What the live device said of itself, in the first case that reached it."""
    said = next((r.device for r in results if "kind" in r.device), None)
    found: dict[str, Any] = {"kind": of.device, "arch": of.tactic.arch}
    found |= {k: v for k, v in (said or {}).items() if k != "lost"}
    if of.device == "sim":
        found["matrix_model"] = of.tactic.numerics.matrix_model
        found["schedule_seeds"] = sorted({r.seed for r in results})
    return found


def _case(r: CaseResult) -> dict[str, Any]:
    form: dict[str, Any] = {
        "case": r.case, "passed": r.passed, "arms": r.arms,
        "worst": {key: _worst(entry) for key, entry in r.worst.items()},
    }  # fmt: skip
    if r.failures:
        form["failures"] = [
            {"kind": f.kind, "text": f.text[:_TEXT], "arm": f.arm, "where": f.where}
            for f in r.failures
        ]  # fmt: skip
    return form


def _worst(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The worst element of an output with its bits; where all are right there is none."""
    keys = ("metric", "value", "index", "got", "want") if entry["value"] else ("metric", "value")
    return {key: entry[key] for key in keys}


def _watched(r: CaseResult) -> dict[str, Any]:
    found = [
        {"kind": f.kind, "text": f.text[:_TEXT], "arm": f.arm, "where": f.where}
        for f in r.failures if f.kind in _WATCHED
    ]  # fmt: skip
    return {"case": r.case, "arms": r.arms, **({"findings": found} if found else {})}


def _unchanged(tactic: Tactic, taken: Mapping[str, Hashes]) -> None:
    """Raises NetraError when the tactic is not what it was before the run."""
    from netra_catalog.load import load_one

    now = hashes.of_tactic(load_one(tactic.path))
    if now != taken[tactic.id]:
        keys = ", ".join(key for key in now if now[key] != taken[tactic.id][key])
        raise NetraError(
            f"{keys} changed while it ran; nothing is recorded", where=tactic.id,
            hint="run it again",
        )


def put(
    tactic: Tactic,
    kind: str,
    verdict: str,
    taken: Mapping[str, Hashes],
    on: Mapping[str, Any],
    seed: int,
    words: Sequence[str],
    details: Mapping[str, Any],
) -> Result:
    """Writes one result of a tactic with everything around it that a reader may ask for."""
    _unchanged(tactic, taken)
    return result.write(tactic.root, {
        "schema": result.SCHEMA, "kind": kind, "tactic": tactic.id, "verdict": verdict,
        "recorded": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "hashes": dict(taken[tactic.id]), "device": dict(on), "toolchain": toolchain(),
        "harness": {"version": version(), "sha256": harness_sha256()}, "host": host(),
        "seed": seed, "rerun": shlex.join(words), "details": dict(details),
    })  # fmt: skip


@cache
def toolchain() -> dict[str, str]:
    """The assembler that the kernels were built with."""
    clang = paths.llvm_bin() / "clang"
    done = subprocess.run([str(clang), "--version"], capture_output=True, text=True, check=False)
    return {"clang": (done.stdout.splitlines() or ["unknown"])[0]}


def version() -> str:
    """Of this package."""
    try:
        return importlib.metadata.version("netra")
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


@cache
def harness_sha256() -> str:
    """Over the harness itself, its oracles left out: they have a hash of their own."""
    folder = Path(__file__).parent
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder)
        if name.parts[0] != "oracles":
            body = hashlib.sha256(path.read_bytes()).hexdigest()
            total.update(f"{name.as_posix()} {body}\n".encode())
    return total.hexdigest()


@cache
def host() -> dict[str, str]:
    """The machine around the device."""
    return {
        "system": f"{platform.system()} {platform.release()}", "machine": platform.machine(),
        "cpu": _cpu(), "cpus": str(os.cpu_count() or 1), "python": platform.python_version(),
        "numpy": np.__version__,
    }  # fmt: skip


def _cpu() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return platform.processor() or "unknown"
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1] if found else platform.machine()
