"""One mutant in a worker: assembled, run on the cases of the set `mutation` until one fails."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

import netra_sim
from netra_catalog.tactic import Tactic

from netra_harness.case import Case
from netra_harness.draw import Draw
from netra_harness.mutation import assembly
from netra_harness.run import Options, run_case

# A worker serves many mutants of the same tactic: inputs and right answers are drawn once, and the
# case that killed most mutants so far is tried first.
_draws: dict[str, Draw] = {}
_kills: Counter[tuple[str, str]] = Counter()


@lru_cache(maxsize=1)
def _tactic(path: Path, seed: int) -> tuple[Tactic, ModuleType, tuple[Case, ...]]:
    from netra_catalog import load_one, oracle

    _draws.clear()
    tactic = load_one(path)
    module = oracle(tactic)
    return tactic, module, tuple(module.cases("mutation", tactic.variant))


@lru_cache(maxsize=16)
def _original(path: Path, kernel: str) -> tuple[str, int]:
    return _inspected(path, kernel)


def _inspected(path: Path, kernel: str) -> tuple[str, int]:
    """Hash of the code and the descriptor, not of the line table; and the wave size."""
    kernels = netra_sim.inspect(path)["kernels"]
    found = next(k for k in kernels if k["name"] == kernel)
    return str(found["kernel_sha256"]), int(found["wave_size"])


def run_mutant(job: dict[str, Any], device: Any, seed: int) -> dict[str, str]:
    """What became of it: `verdict` "refused" by the assembler, "same" bytes, "killed", "survived";
    and `text`, why."""
    text, kernel = Path(job["source"]), str(job["kernel"])
    built = text.with_suffix(".co")
    sha256, wave = _original(Path(job["original"]), kernel)
    refused = assembly.assemble(text, built, job["arch"], wave)
    if refused:
        return {"verdict": "refused", "text": refused}
    if _inspected(built, kernel)[0] == sha256:
        return {"verdict": "same", "text": ""}
    tactic, module, cases = _tactic(Path(job["path"]), seed)
    with device.substituted(kernel, built):
        for case in sorted(cases, key=lambda c: -_kills[tactic.id, c.name]):
            result = run_case(tactic, module, case, device, Options(seed, draws=_draws))
            if not result.passed:
                _kills[tactic.id, case.name] += 1
                failure = result.failures[0]
                first = failure.text.splitlines()[0]
                return {"verdict": "killed", "text": f"{case.name}: {failure.kind}: {first}"}
    return {"verdict": "survived", "text": "every case passes"}
