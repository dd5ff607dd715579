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
from netra_harness.results import CaseResult
from netra_harness.run import Options, run_case

# A worker serves many mutants of the same tactic: inputs and right answers are drawn once, and the
# case that killed most mutants so far is tried first.
_draws: dict[str, Draw] = {}
_warned: dict[str, Counter[str]] = {}  # by case: what the sanitizer says of the kernel itself
_kills: Counter[tuple[str, str]] = Counter()


@lru_cache(maxsize=1)
def _tactic(path: Path, seed: int) -> tuple[Tactic, ModuleType, tuple[Case, ...]]:
    from netra_catalog import load_one, oracle

    _draws.clear()
    _warned.clear()
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


def _warnings(result: CaseResult) -> Counter[str]:
    """How often each rule warned: "warning wait_states V3"."""
    return Counter(text.split(":", 1)[0] for text in result.warnings)


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
    options = Options(seed, draws=_draws)
    for case in cases:
        if case.name not in _warned:
            _warned[case.name] = _warnings(run_case(tactic, module, case, device, options))
    with device.substituted(kernel, built):
        for case in sorted(cases, key=lambda c: -_kills[tactic.id, c.name]):
            result = run_case(tactic, module, case, device, options)
            told = ""
            if not result.passed:
                failure = result.failures[0]
                told = f"{failure.kind}: {failure.text.splitlines()[0]}"
            elif more := _warnings(result) - _warned[case.name]:
                told = f"finding: {next(iter(more))}"
            if told:
                _kills[tactic.id, case.name] += 1
                return {"verdict": "killed", "text": f"{case.name}: {told}"}
    return {"verdict": "survived", "text": "every case passes"}
