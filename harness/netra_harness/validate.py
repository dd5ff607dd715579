"""Every case of every selected tactic, in worker processes, and what came of it."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import netra_sim
from netra_catalog import oracle, select
from netra_catalog.errors import nearest
from netra_catalog.tactic import Tactic

from netra_harness import workers
from netra_harness.case import DEFAULT_SEED
from netra_harness.device import code_object, gpu_plausible, library
from netra_harness.errors import DeviceError, NetraError, ToolError, UsageError
from netra_harness.results import CaseResult, Failure

QUICK_LIMIT, FULL_LIMIT = 120.0, 1800.0  # seconds a case may take
NOT_VALIDATED = ("rejected", "quarantined")


@dataclass(frozen=True)
class Settings:
    """What the command line asked for."""

    pattern: str = "*"
    arch: str | None = None
    device: str = "auto"
    seed: int = DEFAULT_SEED
    case: str | None = None
    full: bool = False
    all: bool = False
    limit: float | None = None
    bands: bool = False
    sanitize: bool = True
    schedules: int = 1

    @property
    def case_set(self) -> str:
        return "full" if self.full else "quick"


@dataclass
class TacticReport:
    """The cases of one tactic; `broken` says why there were none."""

    tactic: Tactic
    device: str
    names: list[str] = field(default_factory=list)
    results: list[CaseResult] = field(default_factory=list)
    hashes: dict[str, str] = field(default_factory=dict)

    @property
    def failed(self) -> list[CaseResult]:
        return [result for result in self.results if not result.passed]

    @property
    def done(self) -> bool:
        return len(self.results) == len(self.names)

    @property
    def passed(self) -> bool:
        return self.done and bool(self.results) and not self.failed

    @property
    def warnings(self) -> list[str]:
        """What the sanitizer warns of, each once; the same two lines may do it in every case."""
        first: dict[str, str] = {}
        for text in (text for result in self.results for text in result.warnings):
            first.setdefault("\n".join(text.splitlines()[:3]), text)
        return list(first.values())

    @property
    def seconds(self) -> float:
        return sum(result.seconds for result in self.results)


@dataclass
class Report:
    """A whole run."""

    settings: Settings
    tactics: list[TacticReport]
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        return bool(self.tactics) and all(tactic.passed for tactic in self.tactics)

    @property
    def device(self) -> str:
        kinds = sorted({tactic.device for tactic in self.tactics})
        return kinds[0] if len(kinds) == 1 else "mixed"

    @property
    def arches(self) -> str:
        return ",".join(dict.fromkeys(tactic.tactic.arch for tactic in self.tactics))

    def json(self) -> dict[str, Any]:
        """The document of `validate --json`."""
        return {
            "device": self.device,
            "arch": self.arches,
            "seed": self.settings.seed,
            "passed": self.passed,
            "seconds": round(self.seconds, 3),
            "tactics": [self._tactic(report) for report in self.tactics],
        }

    def _tactic(self, report: TacticReport) -> dict[str, Any]:
        return {
            "tactic": report.tactic.id,
            "arch": report.tactic.arch,
            "op": report.tactic.op,
            "device": report.device,
            "cases": len(report.names),
            "passed": len(report.results) - len(report.failed),
            "failed": len(report.failed),
            "findings": [
                {
                    "case": result.case,
                    "kind": failure.kind,
                    "text": failure.text,
                    "launch": failure.arm,
                    "where": failure.where,
                    "comparison": failure.comparison,
                    "rerun": rerun(self.settings, report, result.case),
                }
                for result in report.failed
                for failure in result.failures
            ],
            "warnings": report.warnings,
            "worst": worst(report.results),
            "kernel_sha256": report.hashes,
            "matrix_model": report.tactic.numerics.matrix_model,
            "seconds": round(report.seconds, 3),
        }


def worst(results: list[CaseResult]) -> dict[str, dict[str, Any]]:
    """The largest error against each oracle, over outputs and cases."""
    out: dict[str, dict[str, Any]] = {}
    for result in results:
        for entry in result.worst.values():
            before = out.get(entry["against"])
            if before is None or float(before["value"]) < float(entry["value"]):
                out[entry["against"]] = {**entry, "case": result.case}
    for entry in out.values():
        entry.pop("against")
    return out


def rerun(settings: Settings, report: TacticReport, case: str) -> str:
    """The command that runs just this case again."""
    words = [_program(), "validate", report.tactic.id, "--case", case]
    words += ["--device", report.device, "--seed", str(settings.seed)]
    words += ["--full"] if settings.full else []
    words += [] if settings.sanitize else ["--no-sanitize"]
    words += ["--schedules", str(settings.schedules)] if settings.schedules > 1 else []
    words += ["--all"] if report.tactic.maturity in NOT_VALIDATED else []
    return shlex.join(words)


def _program() -> str:
    """netra-harness as it can be typed here: PATH may not know the virtual environment."""
    name = "netra-harness"
    beside = Path(sys.executable).parent / name
    found = shutil.which(name)
    if beside.is_file() and (found is None or Path(found).resolve() != beside.resolve()):
        relative = os.path.relpath(beside)
        return str(beside) if relative.startswith("../..") else relative
    return name


def validate(
    settings: Settings,
    started: Callable[[list[TacticReport]], None] = lambda reports: None,
    progress: Callable[[TacticReport, CaseResult], None] = lambda report, result: None,
    only: tuple[str, ...] = (),
) -> Report:
    """Runs what the settings select, or `only` those of them; `progress` hears of each case as it
    ends."""
    begin = time.perf_counter()
    reports = [r for r in plan(settings) if not only or r.tactic.id in only]
    jobs = [_job(settings, report, name) for report in reports for name in report.names]
    by_id = {report.tactic.id: report for report in reports}
    started(reports)
    for outcome in workers.run(jobs):
        body = outcome.job.body
        report = by_id[body["tactic"]]
        result = _result(outcome)
        report.results.append(result)
        progress(report, result)
    for report in reports:
        order = {name: i for i, name in enumerate(report.names)}
        report.results.sort(key=lambda result: order[result.case])
    return Report(settings, reports, time.perf_counter() - begin)


def plan(settings: Settings) -> list[TacticReport]:
    """The tactics with their devices and cases; everything that must exist does."""
    chosen = [
        tactic
        for tactic in select(settings.pattern, settings.arch)
        if settings.all or tactic.maturity not in NOT_VALIDATED
    ]
    if not chosen:
        raise UsageError(
            f"every tactic that matches '{settings.pattern}' is rejected or quarantined",
            hint="--all takes those too",
        )
    devices = choose_devices(settings.device, sorted({tactic.arch for tactic in chosen}))
    reports = []
    for tactic in chosen:
        report = TacticReport(tactic, devices[tactic.arch])
        for kernel in tactic.kernels:
            report.hashes[kernel] = kernel_sha256(code_object(tactic.arch, kernel), kernel)
        report.names = case_names(tactic, settings.case_set)
        reports.append(report)
    if settings.case is None:
        return reports
    known = [name for report in reports for name in report.names]
    for report in reports:
        report.names = [name for name in report.names if name == settings.case]
    reports = [report for report in reports if report.names]
    if not reports:
        raise UsageError(
            f"no case is called '{settings.case}' in the {settings.case_set} set"
            f"{nearest(settings.case, known)}"
        )
    return reports


def case_names(tactic: Tactic, case_set: str) -> list[str]:
    """The names of a tactic's cases; no case, or two of one name, is the oracle's error."""
    module = oracle(tactic)
    names = [case.name for case in module.cases(case_set, tactic.variant)]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice or not names:
        what = f"two cases called '{twice[0]}'" if twice else "no cases"
        raise NetraError(
            f"the set {case_set} of variant {tactic.variant} has {what}",
            where=f"oracle {tactic.oracle_name}",
        )
    return names


def present_gpus(kind: str) -> list[str]:
    """Architectures of the GPUs that `--device kind` may use; another process asks for them."""
    if kind == "sim" or (kind == "auto" and not gpu_plausible()):
        return []
    outcome = next(workers.run([workers.Job({"do": "gpus"}, {}, 60.0)]))
    if outcome.kind == "ok":
        return list(outcome.answer["arches"])
    if kind == "hip":
        raise DeviceError(f"no GPU can be used: {outcome.text}")
    return []


def choose_devices(kind: str, arches: list[str]) -> dict[str, str]:
    """"sim" or "hip" for each architecture; `auto` takes the GPU where one has it."""
    present = present_gpus(kind)
    chosen = {arch: "hip" if arch in present else "sim" for arch in arches}
    if kind == "hip" and "sim" in chosen.values():
        missing = ", ".join(arch for arch, kind in chosen.items() if kind == "sim")
        raise DeviceError(
            f"no GPU here is a {missing} (there is: {', '.join(present) or 'none'})",
            hint="use --device sim, or choose tactics with --arch",
        )
    for device in set(chosen.values()):
        library(device)
    return chosen


def kernel_sha256(path: Path, kernel: str) -> str:
    """The hash that evidence is keyed on; an unreadable code object is an error here."""
    for found in netra_sim.inspect(path)["kernels"]:
        if found["name"] == kernel:
            return str(found["kernel_sha256"])
    raise DeviceError(f"{path} has no kernel {kernel}", hint="each .s holds the kernel of its name")


def _job(settings: Settings, report: TacticReport, case: str) -> workers.Job:
    tactic = report.tactic
    body = {
        "do": "run",
        "tactic": tactic.id,
        "path": str(tactic.path),
        "arch": tactic.arch,
        "case": case,
        "case_set": settings.case_set,
        "seed": settings.seed,
        "device": report.device,
        "bands": settings.bands,
        "sanitize": settings.sanitize,
        "schedules": settings.schedules,
    }
    limit = settings.limit or (FULL_LIMIT if settings.full else QUICK_LIMIT)
    environment = {}
    if report.device == "sim":
        environment["NETRA_SIM_DEVICES"] = tactic.arch
        # So that a kernel which never ends is told of by the simulator, before its worker is
        # stopped without a word.
        seconds = os.environ.get("NETRA_SIM_SECONDS", str(max(1, int(0.75 * limit))))
        environment["NETRA_SIM_SECONDS"] = seconds
    return workers.Job(body, environment, limit)


def _result(outcome: workers.Outcome) -> CaseResult:
    body = outcome.job.body
    if outcome.kind == "ok":
        return CaseResult.from_json(outcome.answer)
    if outcome.exit_code == ToolError.exit_code:
        raise ToolError(outcome.text)
    text = outcome.text
    if outcome.answer:  # the traceback of the oracle or the harness, for whoever mends it
        text += "\n" + str(outcome.answer).rstrip()
    failure = Failure(outcome.kind, text, where=outcome.where)
    return CaseResult(body["tactic"], body["case"], body["seed"], [failure])
