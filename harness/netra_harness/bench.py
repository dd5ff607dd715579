"""How long the launches of a tactic take and what they move; two tactics are compared by turns.

On a GPU times are the device's own, between two events on the stream.  The simulator models no
time: there the counters of a launch are compared, which are exact, and beside them the seconds
that the simulator itself takes on this host, under that name and no other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import netra_sim
from netra_catalog import load_one, oracle
from netra_catalog.errors import nearest
from netra_catalog.tactic import Tactic

from netra_harness import paired, workers
from netra_harness.buffers import Buffers
from netra_harness.case import DEFAULT_SEED, Case, case_rng
from netra_harness.device import Device
from netra_harness.errors import NetraError, UsageError
from netra_harness.results import CaseResult
from netra_harness.run import CaseRun, Options, Stop
from netra_harness.validate import case_names, choose_devices

PAIRS = 20
FLUSH_BYTES = 512 << 20  # more than every cache of the targets holds
CLOCKS = {"sim": "host seconds of the simulator", "hip": "device seconds between events"}
_SECONDS = 900.0
# Counters that say how the simulator ran, and not what the kernel did.
_HOST_ONLY = ("numerics.", "host")


@dataclass(frozen=True)
class Settings:
    """What to measure: one tactic, or `other` (the baseline) against it."""

    tactic: Tactic
    other: Tactic | None = None
    device: str = "auto"
    seed: int = DEFAULT_SEED
    case: str | None = None
    pairs: int = PAIRS


def run(settings: Settings) -> dict[str, Any]:
    """Measures in a worker process; the document of `bench --json`.

    Raises UsageError for tactics that cannot be compared, NetraError for a failing launch.
    """
    tactic, other = settings.tactic, settings.other
    names = case_names(tactic, "quick")
    if other is not None:
        if (tactic.arch, tactic.op) != (other.arch, other.op):
            raise UsageError(
                f"{tactic.id} is {tactic.op}, {other.id} is {other.op}",
                hint="compare two tactics of one op on one target",
            )
        shared = set(case_names(other, "quick"))
        names = [name for name in names if name in shared]
        if not names:
            raise UsageError(f"{tactic.id} and {other.id} share no quick case")
    case = settings.case or names[-1]
    if case not in names:
        raise UsageError(f"no case is called '{case}'{nearest(case, names)}")
    device = choose_devices(settings.device, [tactic.arch])[tactic.arch]
    body = {
        "do": "bench", "path": str(tactic.path), "other": str(other.path) if other else "",
        "arch": tactic.arch, "device": device, "case": case, "seed": settings.seed,
        "pairs": settings.pairs,
    }  # fmt: skip
    environment = {"NETRA_SIM_DEVICES": tactic.arch} if device == "sim" else {}
    outcome = next(workers.run([workers.Job(body, environment, _SECONDS)]))
    if outcome.kind != "ok":
        raise NetraError(f"case {case}: {outcome.kind}: {outcome.text}", where=tactic.id)
    return {
        "tactic": tactic.id, "baseline": other.id if other else None, "case": case,
        "scope": "operation", "clock": CLOCKS[device], **outcome.answer,
    }  # fmt: skip


# ---- in the worker ---------------------------------------------------------------------------


@dataclass
class Bench:
    """A case that is ready to be launched again and again."""

    run: CaseRun
    plan: tuple[Any, ...]
    again: Callable[[], None]

    @classmethod
    def make(
        cls, path: Path, case_name: str, seed: int, device: Device, buffers: Buffers
    ) -> Bench:
        tactic = load_one(path)
        module = oracle(tactic)
        case: Case = {c.name: c for c in module.cases("quick", tactic.variant)}[case_name]
        result = CaseResult(tactic.id, case.name, seed)
        made = CaseRun(tactic, module, case, device, Options(seed), buffers, result)
        try:
            draw = made.draw(case_rng(seed, made.op.name, case.name), "")
            made.allocate(draw)
            graph, _ = made.modes(draw)
        except Stop:
            raise NetraError(result.failures[0].text, where=tactic.id) from None
        return cls(made, made.plan(draw, graph), lambda: made.place(draw))

    def launch(self) -> None:
        for launch in self.plan:
            self.run.device.launch(launch)

    def counters(self) -> dict[str, int]:
        """What all launches of one call count together; the simulator only."""
        self.again()
        total: dict[str, int] = {}
        netra_sim.set_counting(True)
        try:
            for launch in self.plan:
                self.run.device.launch(launch)
                self.run.device.hip.stream_synchronize(self.run.device.stream)
                for name, count in netra_sim.counters().items():
                    total[name] = total.get(name, 0) + count
        finally:
            netra_sim.set_counting(False)
        return {k: v for k, v in total.items() if not k.startswith(_HOST_ONLY)}


def measure(job: Mapping[str, Any], device: Device) -> dict[str, Any]:
    """The answer of the worker: phases of one tactic, or pairs of two."""
    device.hip.watch(False)
    with ExitStack() as stack:
        made = [
            Bench.make(Path(path), job["case"], job["seed"], device,
                       stack.enter_context(Buffers(device.hip, 0)))
            for path in (job["other"], job["path"]) if path
        ]  # fmt: skip
        clock = _Clock(device, stack)
        answer: dict[str, Any] = {"device": dict(device.facts), "cache": clock.cache}
        if job["other"]:
            samples = _pairs(made[0], made[1], clock, job["pairs"])
            answer |= {"samples": samples, "time": paired.judge(samples).json()}
        else:
            answer |= _phases(made[0], clock, job["pairs"])
        if device.kind == "sim":
            answer["counters"] = made[-1].counters()
            if job["other"]:
                answer["baseline_counters"] = made[0].counters()
        return answer


class _Clock:
    """Seconds of one call: the device's on a GPU, the host's on the simulator."""

    def __init__(self, device: Device, stack: ExitStack) -> None:
        self.device, self.hip, self.stream = device, device.hip, device.stream
        self.cache = "flushed" if device.kind == "hip" else "not modelled"
        self.flush = 0
        if device.kind == "hip":
            self.flush = self.hip.malloc(FLUSH_BYTES)
            stack.callback(self.hip.free, self.flush)
            self.events = self.hip.event(), self.hip.event()
            for event in self.events:
                stack.callback(self.hip.event_destroy, event)

    def seconds(self, call: Callable[[], None]) -> float:
        if not self.flush:
            start = time.perf_counter()
            call()
            self.hip.stream_synchronize(self.stream)
            return time.perf_counter() - start
        self.hip.fill(self.flush, 0, FLUSH_BYTES)
        self.hip.event_record(self.events[0], self.stream)
        call()
        self.hip.event_record(self.events[1], self.stream)
        return self.hip.seconds_between(*self.events)


def _pairs(a: Bench, b: Bench, clock: _Clock, pairs: int) -> list[tuple[float, float, str]]:
    """A call of each, next to each other; who is first changes every time."""
    for bench in (a, b):
        bench.again()
        clock.seconds(bench.launch)
    out = []
    for number in range(pairs):
        order = "AB" if number % 2 == 0 else "BA"
        took = {}
        for bench in (a, b) if order == "AB" else (b, a):
            bench.again()
            took[id(bench)] = clock.seconds(bench.launch)
        out.append((took[id(a)], took[id(b)], order))
    return out


def _phases(bench: Bench, clock: _Clock, count: int) -> dict[str, Any]:
    """Load, first call, then warm calls: eager, and replayed from a graph."""
    hip, stream = clock.hip, clock.stream
    start = time.perf_counter()
    for launch in bench.plan:
        bench.run.device.function(launch.kernel)
    load = time.perf_counter() - start
    bench.again()
    first = clock.seconds(bench.launch)
    eager = _warm(bench, clock, bench.launch, count)
    hip.begin_capture(stream)
    try:
        bench.launch()
    finally:
        graph = hip.end_capture(stream)
    executable = hip.instantiate(graph)
    try:
        replay = _warm(bench, clock, lambda: hip.graph_launch(executable, stream), count)
    finally:
        hip.graph_destroy(graph, executable)
    return {"load": load, "first_call": first, "eager": eager, "replay": replay}


def _warm(
    bench: Bench, clock: _Clock, call: Callable[[], None], count: int
) -> dict[str, float | int]:
    samples: Sequence[float] = []
    for number in range(count + 1):
        bench.again()
        took = clock.seconds(call)
        samples = [*samples, took] if number else samples  # the first warms up
    return {"median": paired.median(samples), "p90": paired.quantile(samples, 0.9), "calls": count}


def moved_bytes(counters: Mapping[str, int]) -> int:
    """Bytes that the launches of a call read from and wrote to global memory."""
    return sum(
        counters.get(f"memory.{path}.{way}_bytes", 0)
        for path in ("global", "scalar") for way in ("read", "write")
    )  # fmt: skip


def differing(before: Mapping[str, int], after: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """Counters that differ, as (baseline, candidate)."""
    names = sorted({*before, *after})
    both = {name: (before.get(name, 0), after.get(name, 0)) for name in names}
    return {name: pair for name, pair in both.items() if pair[0] != pair[1]}
