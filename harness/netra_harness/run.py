"""Runs one case of one tactic: inputs, buffers, contract, launches, checks, comparison."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any, NoReturn

import numpy as np
from netra_catalog import dispatch
from netra_catalog.call import Call, Tensor
from netra_catalog.dtypes import numpy_dtype
from netra_catalog.op import Op
from netra_catalog.tactic import Tactic
from numpy.typing import NDArray

from netra_harness import captures
from netra_harness.buffers import BAND, FILL, OTHER_FILL, Buffers, suspicious, untouched
from netra_harness.case import GRAPHS, Case, case_rng
from netra_harness.compare import Comparison, compare, element_text
from netra_harness.device import Device
from netra_harness.draw import Check, Draw, gaps, laid_out, make_draw
from netra_harness.errors import CaptureError
from netra_harness.hip import HipError
from netra_harness.results import CaseResult, Failure

Array = NDArray[Any]
Outputs = dict[str, Array]

# MANY is for launches that take less than FAST seconds; slower ones get FULL.
QUICK_REPLAYS, FULL_REPLAYS, MANY_REPLAYS, FAST = 3, 10, 1000, 0.010
WORKSPACE = "workspace"
_SOURCE_LINE = re.compile(r"[\w./-]+\.(?:s|inc):\d+")


@dataclass(frozen=True)
class Options:
    """How a case is run; `bands` forces guard bands where the device checks bounds itself.

    `sanitize` has the simulator watch every launch; a GPU cannot. With `schedules` above 1 the
    eager launch is repeated there under as many schedule seeds, and must give the same bytes. Runs
    that share `draws` draw the inputs of a case once, for a caller who runs the same cases of one
    tactic again and again.
    """

    seed: int
    replays: int = QUICK_REPLAYS
    bands: bool = False
    schedule: bool = True
    sanitize: bool = True
    draws: dict[str, Draw] | None = None
    schedules: int = 1


class Stop(Exception):
    """Raised inside a run when a failure makes the rest of the case pointless."""


def run_case(
    tactic: Tactic, oracle: ModuleType, case: Case, device: Device, options: Options
) -> CaseResult:
    """Never raises for what the kernel does; HIP errors become failures of kind "fault"."""
    result = CaseResult(tactic.id, case.name, options.seed)
    result.device = dict(device.facts)
    start = time.perf_counter()
    band = BAND if options.bands or not device.checks_bounds else 0
    if options.schedule:
        device.hip.schedule(options.seed)
    device.hip.watch(options.sanitize)
    try:
        with Buffers(device.hip, band) as buffers:
            try:
                CaseRun(tactic, oracle, case, device, options, buffers, result).all()
            except HipError as error:
                result.note_findings(device.hip.watched())
                result.failures.append(_fault(device, error, result, buffers.text()))
                raise Stop from None
            finally:
                result.note_findings(device.hip.watched())
    except Stop:
        pass
    except CaptureError as error:
        result.failures.append(Failure("capture", error.message))
    result.seconds = time.perf_counter() - start
    return result


def _fault(device: Device, error: HipError, result: CaseResult, buffers: str) -> Failure:
    told = device.hip.last_fault()
    place = _SOURCE_LINE.search(told)
    arm = result.arms[-1] if result.arms else "set-up"
    text = f"the device reports: {error}"
    if told and told not in text:
        text += f"\n{told}"
    text += f"\nbuffers: {buffers}"
    result.device["lost"] = not device.hip.recover()
    return Failure("fault", text, arm, place.group(0) if place else "")


@dataclass
class CaseRun:
    """One case on one device, with its buffers; `all` is what `run_case` does."""

    tactic: Tactic
    oracle: ModuleType
    case: Case
    device: Device
    options: Options
    buffers: Buffers
    result: CaseResult
    outputs: dict[str, tuple[tuple[int, ...], np.dtype[Any]]] = field(default_factory=dict)

    @property
    def op(self) -> Op:
        op: Op = self.oracle.OP
        return op

    def all(self) -> None:
        """Every arm that the case and the contract ask for."""
        seed = self.options.seed
        first = self.draw(case_rng(seed, self.op.name, self.case.name), "")
        variant = self.tactic.variant
        recorded = captures.captured(self.op.name, variant, self.case.name)
        for capture in recorded:
            if capture.seed == seed:
                capture.check_inputs(first.args)
                first.checks += Check.of_capture(capture)
        self.allocate(first)
        eager, replayed = self.modes(first)
        plan = self.plan(first, eager)
        expected = self.launch_once(first, plan, "eager")
        self.other_schedules(first, plan, expected)
        for capture in recorded:
            if capture.seed != seed:
                args = capture.regenerate(self.oracle, self.case)
                other = Draw(args, Check.of_capture(capture), f" (inputs of {capture.label})")
                self.launch_once(other, self.plan(other, eager), f"eager{other.label}")
        if replayed:
            self.replays(first, expected)

    def draw(self, rng: np.random.Generator, label: str, like: Draw | None = None) -> Draw:
        kept = self.options.draws
        if kept is None:
            return make_draw(self.tactic, self.oracle, self.case, rng, label, like)
        key = f"{self.case.name}{label}"
        if key not in kept:
            kept[key] = make_draw(self.tactic, self.oracle, self.case, rng, label, like)
        return replace(kept[key], checks=list(kept[key].checks))

    def allocate(self, draw: Draw) -> None:
        for name, value in draw.args.items():
            if isinstance(value, np.ndarray):
                self.buffers.allocate(name, laid_out(value).nbytes)
        for name, (shape, dtype) in self.oracle.outputs(self.case).items():
            self.outputs[name] = (tuple(shape), numpy_dtype(dtype))
            count = int(np.prod(shape, dtype=np.int64))
            self.buffers.allocate(name, count * numpy_dtype(dtype).itemsize)
        for arg in self.op.tensors:
            if arg.role == "inout":
                value = draw.args[arg.name]
                self.outputs[arg.name] = (value.shape, value.dtype)
        if not self.outputs:
            self.fail("error", f"{self.op.name} has no output to look at")

    def call(self, draw: Draw, graph: str) -> Call:
        args: dict[str, Tensor | int | float] = {}
        for arg in self.op.tensors:
            if arg.name in self.outputs:
                shape, dtype = self.outputs[arg.name]
            else:
                shape, dtype = draw.args[arg.name].shape, draw.args[arg.name].dtype
            buffer, dtype_name = self.buffers[arg.name], _name(arg.dtypes, dtype)
            made = Tensor.dense(buffer.pointer, dtype_name, shape, arg.layout)
            if arg.role == "in" and not draw.args[arg.name].flags.c_contiguous:
                strides = tuple(s // dtype.itemsize for s in draw.args[arg.name].strides)
                made = replace(made, strides=strides, extent=buffer.size)
            args[arg.name] = made
        for scalar in self.op.scalars:
            args[scalar.name] = draw.args[scalar.name]
        device = self.device
        return Call(self.op.name, device.arch, self.case.phase, graph, device.cu_count, args)

    def modes(self, draw: Draw) -> tuple[str, bool]:
        """(graph mode to plan the eager launch in, is it replayed as well?).

        A tactic that is admitted under capture only still runs eagerly, so that the two can
        be compared bit for bit.
        """
        refused = {graph: dispatch.explain(self.tactic, self.call(draw, graph))
                   for graph in GRAPHS}  # fmt: skip
        if refused["eager"] is None:
            return "eager", self.case.graph == "capture" and refused["capture"] is None
        if refused["capture"] is None:
            return "capture", True
        asked = refused[self.case.graph]
        assert asked is not None
        text = f"the contract does not admit this case: {asked.text}"
        self.fail("contract", text, self.tactic.where(f"contract.{asked.id}"))

    def plan(self, draw: Draw, graph: str) -> tuple[Any, ...]:
        call = self.call(draw, graph)
        size = dispatch.workspace_bytes(self.tactic, call)
        pointer = 0
        if size:
            try:
                buffer = self.buffers[WORKSPACE]
            except KeyError:
                buffer = self.buffers.allocate(WORKSPACE, size)
                if self.tactic.workspace.zeroed_by in ("prepare", "caller"):
                    self.buffers.fill(WORKSPACE, 0)
            if size > buffer.size:
                self.fail("error", f"the workspace grew from {buffer.size} to {size} bytes")
            pointer = buffer.pointer
        plan: tuple[Any, ...] = dispatch.plan(self.tactic, call, pointer)
        return plan

    def place(self, draw: Draw, fill: int = FILL) -> None:
        """Inputs in, everything that is only written filled."""
        for name, value in draw.args.items():
            if isinstance(value, np.ndarray):
                self.buffers.upload(name, laid_out(value))
                self.buffers.leave_out(name, gaps(value))
        for name in self.outputs:
            if name not in draw.args:
                self.buffers.fill(name, fill, defined=False)
        zeroed_by = self.tactic.workspace.zeroed_by
        if zeroed_by == "caller":
            self._workspace(0, defined=True)
        elif zeroed_by != "prepare":  # zeroed once, and the kernel leaves it so
            self._workspace(fill, defined=False)

    def _workspace(self, byte: int, defined: bool) -> None:
        try:
            self.buffers.fill(WORKSPACE, byte, defined)
        except KeyError:
            pass  # this tactic has none

    def launch_once(self, draw: Draw, plan: tuple[Any, ...], arm: str) -> Outputs:
        self.result.arms.append(arm)
        self.place(draw)
        self.go(plan)
        got = self.fetch()
        self.judge(draw, got, arm)
        self.second_opinion(draw, plan, got, arm)
        return got

    def other_schedules(self, draw: Draw, plan: tuple[Any, ...], expected: Outputs) -> None:
        """The same inputs under other schedule seeds, on the simulator: the same bytes."""
        if self.options.schedules < 2 or not self.device.hip.simulated:
            return
        for seed in range(self.options.seed + 1, self.options.seed + self.options.schedules):
            arm = f"schedule {seed}"
            self.result.arms.append(arm)
            self.device.hip.schedule(seed & (2**64 - 1))
            self.place(draw)
            self.go(plan)
            for name, array in self.fetch().items():
                against = f"the schedule of seed {self.options.seed}"
                verdict = compare(name, array, expected[name], against=against)
                if not verdict.passed:
                    self.mismatch("order", verdict, arm, array)
            self.stop_if_failed()
        self.device.hip.schedule(self.options.seed)

    def go(self, plan: tuple[Any, ...]) -> None:
        start = time.perf_counter()
        for launch in plan:
            self.device.launch(launch)
        self.device.hip.stream_synchronize(self.device.stream)
        self.result.launch_seconds += time.perf_counter() - start

    def replays(self, first: Draw, expected: Outputs) -> None:
        """Records the launches once, then replays them on inputs that change in between."""
        hip, stream = self.device.hip, self.device.stream
        rng = case_rng(self.options.seed, self.op.name, self.case.name, 1)
        draws = [first, self.draw(rng, " (other inputs)", like=first)]
        seen: list[Outputs | None] = [expected, None]
        graph = executable = 0
        try:
            plan = self.plan(first, "capture")
            hip.begin_capture(stream)
            try:
                for launch in plan:
                    self.device.launch(launch)
            finally:
                graph = hip.end_capture(stream)
            executable = hip.instantiate(graph)
            self.result.arms.append("replay 1")
            number, total = 0, self.options.replays
            while number < total:
                which = number % 2
                arm = f"replay {number + 1}{draws[which].label}"
                self.result.arms[-1] = arm
                self.place(draws[which], OTHER_FILL if number % 4 > 1 else FILL)
                start = time.perf_counter()
                hip.graph_launch(executable, stream)
                hip.stream_synchronize(stream)
                took = time.perf_counter() - start
                self.result.launch_seconds += took
                if took > FAST:
                    total = min(total, FULL_REPLAYS)
                seen[which] = self.replay_checked(draws[which], seen[which], arm)
                number += 1
            self.result.arms[-1] = f"{total} replays"
        finally:
            hip.graph_destroy(graph, executable)

    def replay_checked(self, draw: Draw, seen: Outputs | None, arm: str) -> Outputs:
        """The first answer to these inputs meets the oracle, each later one the first."""
        got = self.fetch()
        if seen is None:
            self.judge(draw, got, arm)
            return got
        for name, array in got.items():
            verdict = compare(name, array, seen[name], against="the same inputs run before")
            if not verdict.passed:
                self.mismatch("replay", verdict, arm, array)
        self.judge_memory(draw, arm)
        self.stop_if_failed()
        return seen

    def fetch(self) -> Outputs:
        return {
            name: self.buffers.download(name, shape, dtype)
            for name, (shape, dtype) in self.outputs.items()
        }

    def judge(self, draw: Draw, got: Outputs, arm: str) -> None:
        """Memory first, then every output against every oracle; stops at a failing launch."""
        self.judge_memory(draw, arm)
        told: set[str] = set()  # one report for an output is enough
        for check in draw.checks:
            if check.against not in self.result.against:
                self.result.against.append(check.against)
            for name, want in check.outputs.items():
                verdict = compare(name, got[name], want, check.metric, check.value, check.against)
                self.note_worst(check, verdict, got[name], want)
                if not verdict.passed and name not in told:
                    told.add(name)
                    self.mismatch("mismatch", verdict, arm, got[name])
        self.stop_if_failed()

    def judge_memory(self, draw: Draw, arm: str) -> None:
        for stray in self.buffers.strays():
            self.add("outside", stray.text(), arm)
        for name, value in draw.args.items():
            if not isinstance(value, np.ndarray) or name in self.outputs:
                continue
            there = laid_out(value)
            if not self.buffers.holds(name, there):
                now = self.buffers.download(name, there.shape, there.dtype)
                verdict = compare(name, now, there, against="what was put there")
                self.add("outside", f"the input was overwritten: {verdict.text()}", arm)

    def second_opinion(
        self, draw: Draw, plan: tuple[Any, ...], got: Outputs, arm: str
    ) -> None:
        """An output byte that always holds the fill, whichever it is, was never stored."""
        exact = all(check.metric == "bitwise" for check in draw.checks)
        doubtful = [n for n in got if n not in draw.args and suspicious(got[n], whole=exact)]
        if not doubtful:
            return
        self.place(draw, OTHER_FILL)
        self.go(plan)
        again = self.fetch()
        for name in doubtful:
            missed = np.argwhere(untouched(got[name], again[name]))
            if len(missed):
                index = ", ".join(map(str, missed[0]))
                self.add(
                    "unwritten",
                    f"{len(missed)} of {got[name].size} elements of {name} were not stored whole, "
                    f"the first is {name}[{index}]",
                    arm,
                )
        self.stop_if_failed()

    def note_worst(self, check: Check, verdict: Comparison, got: Array, want: Array) -> None:
        key = f"{verdict.output} vs {check.against}"
        before = self.result.worst.get(key)
        if before is None or float(before["value"]) < verdict.worst:
            form, at = verdict.json(), verdict.worst_index
            self.result.worst[key] = {
                "output": verdict.output, "against": check.against, "metric": verdict.metric,
                "value": form["worst"], "index": form["worst_index"],
                "got": None if at is None else element_text(got, at),
                "want": None if at is None else element_text(want, at),
            }  # fmt: skip

    def mismatch(self, kind: str, verdict: Comparison, arm: str, got: Array) -> None:
        text = verdict.text()
        raw = got.reshape(-1).view(np.uint8)
        if not verdict.error and not raw.any():
            text += "\n  the whole output is zero"
        elif not verdict.error and (raw == FILL).all():
            text += f"\n  nothing was stored: every byte is still {FILL:02x}"
        elif verdict.first is not None:
            element = got[verdict.first].tobytes()
            if set(element) == {FILL}:
                text += f"\n  that element was not stored: it still holds {FILL:02x}"
        sources = ", ".join(f"asm/{self.tactic.arch}/{x.kernel}.s" for x in self.tactic.launches)
        self.add(kind, text, arm, f"stored by {sources}", verdict.json())

    def add(
        self, kind: str, text: str, arm: str, where: str = "", form: dict[str, Any] | None = None
    ) -> None:
        self.result.failures.append(Failure(kind, text, arm, where, form))

    def fail(self, kind: str, text: str, where: str = "") -> NoReturn:
        self.add(kind, text, "set-up", where)
        raise Stop

    def stop_if_failed(self) -> None:
        if self.result.failures:
            raise Stop


def _name(dtypes: tuple[str, ...], dtype: np.dtype[Any]) -> str:
    for name in dtypes:
        if numpy_dtype(name) == dtype:
            return name
    raise TypeError(f"dtype {dtype} is none of {', '.join(dtypes)}")
