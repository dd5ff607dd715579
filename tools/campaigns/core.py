"""What all campaigns share: choosing programs, running them in workers, telling what failed."""

from __future__ import annotations

import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from netra_catalog import paths
from netra_harness import workers

from campaigns import compiler, simulate

TOOLS = Path(__file__).resolve().parents[1]
LAUNCH_SECONDS = 20.0
_MARGIN_SECONDS = 15.0  # for starting the worker and disassembling
_PROGRESS_SECONDS = 10.0
_SHOWN_FAILURES = 200
_SHOWN_REASONS = 40


@dataclass(frozen=True)
class Options:
    """How a campaign runs, for all of them."""

    count: int | None = None  # programs; None is all there are, or the campaign's default
    seed: int = 1
    arches: tuple[str, ...] = paths.ARCHES
    names: tuple[str, ...] = ()  # only these programs
    workers: int = 2
    seconds: float = LAUNCH_SECONDS  # for one launch
    file: str | None = None  # vectors: what was recorded
    flags: tuple[str, ...] = ()  # ctorture and csmith: more options for the compiler
    check: bool = False  # under the sanitizer, whose errors fail a program


@dataclass(frozen=True)
class Task:
    """One program on one target.  `work` is a function "campaigns.x:name" for the worker."""

    name: str
    arch: str
    work: str
    body: Mapping[str, Any]
    rerun: str


@dataclass(frozen=True)
class Result:
    """`failure` is empty for a pass."""

    name: str
    arch: str
    failure: str
    instructions: int
    rerun: str


@dataclass
class Tally:
    """The results so far."""

    results: list[Result] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)
    excused: dict[str, dict[str, None]] = field(default_factory=dict)  # by reason: not counted

    @property
    def failures(self) -> list[Result]:
        return [result for result in self.results if result.failure]


def folder(campaign: str) -> Path:
    """Where a campaign keeps what it made."""
    path = paths.build_dir() / "campaigns" / campaign
    path.mkdir(parents=True, exist_ok=True)
    return path


def choose(names: Sequence[str], options: Options) -> list[str]:
    """All of them, or a sample of `count` that the seed decides; in the order given."""
    if options.count is None or options.count >= len(names):
        return list(names)
    chosen = set(random.Random(options.seed).sample(range(len(names)), options.count))
    return [name for index, name in enumerate(names) if index in chosen]


def jobs(tasks: Sequence[Task], options: Options) -> list[workers.Job]:
    """What the workers are given for each task, in order."""
    environment = simulate.environment(paths.llvm_bin(), options.seconds, options.check)
    limit = options.seconds + 2 * compiler.SECONDS + _MARGIN_SECONDS
    return [
        workers.Job(
            {"do": "call", "function": task.work, "sys_path": [str(TOOLS)], "index": index,
             "arch": task.arch, **task.body},
            environment,
            limit,
        )
        for index, task in enumerate(tasks)
    ]  # fmt: skip


def run(campaign: str, tasks: Sequence[Task], options: Options) -> Tally:
    """Runs every task; failures are printed as they come."""
    tally = Tally()
    told = time.monotonic()
    for outcome in workers.run(jobs(tasks, options), options.workers):
        task = tasks[outcome.job.body["index"]]
        if outcome.kind == "ok":
            if outcome.answer.get("excuse"):
                tally.excused.setdefault(outcome.answer["excuse"], {})[task.name] = None
                continue
            failure = outcome.answer["failure"] or ""
            instructions = outcome.answer.get("instructions", 0)
            tally.notes.update(outcome.answer.get("notes", []))
        else:
            failure, instructions = outcome.text, 0
        result = Result(task.name, task.arch, failure, instructions, task.rerun)
        tally.results.append(result)
        if failure and len(tally.failures) <= _SHOWN_FAILURES:
            show(result)
        if time.monotonic() - told > _PROGRESS_SECONDS:
            told = time.monotonic()
            failed = len(tally.failures)
            print(f"{campaign}: {len(tally.results)} of {len(tasks)} runs, {failed} failed",
                  file=sys.stderr, flush=True)  # fmt: skip
    return tally


def again(campaign: str, options: Options, name: str, arch: str) -> str:
    """The command that runs one C program again."""
    flags = "".join(f" --flag={flag}" for flag in options.flags)
    check = "CHECK=1 " if options.check else ""
    return f"make {campaign} {check}ARGS='{name} --arch {arch}{flags}'"


def show(result: Result) -> None:
    """One failure, with the command that repeats it."""
    print(f"FAIL {result.arch} {result.name}: {result.failure}")
    print(f"  rerun: {result.rerun}", flush=True)


def reason(failure: str) -> str:
    """A failure without what differs from program to program: addresses, lanes, line numbers."""
    text = re.sub(r"^(record_\d+|entry): ", "", failure.splitlines()[0])
    text = re.sub(r"(is not implemented for \w+|has no meaning for \w+):.*", r"\1", text)
    text = re.sub(r"\b0x[0-9a-f]+|\b[0-9A-F]{8}\b", "..", text)
    return re.sub(r"\b\d{3,}\b", "..", text)[:160]


def finish(campaign: str, tally: Tally, seed: int) -> int:
    """Prints the counts, writes results.json; the exit code.

    A program passes when it passed on every target that it ran on.
    """
    failures = tally.failures
    results = sorted(tally.results, key=lambda result: (result.name, result.arch))
    excused = {name for names in tally.excused.values() for name in names}
    programs = list(dict.fromkeys(r.name for r in results if r.name not in excused))
    reasons = Counter(f"{failure.arch}: {reason(failure.failure)}" for failure in failures)
    if len(failures) > _SHOWN_FAILURES:
        print(f"and {len(failures) - _SHOWN_FAILURES} more failures, see results.json")
    if reasons:
        print("reasons:")
        for text, count in reasons.most_common(_SHOWN_REASONS):
            print(f"  {count:5}  {text}")
    for arch in dict.fromkeys(result.arch for result in tally.results):
        ran = [result for result in tally.results if result.arch == arch]
        failed = sum(1 for result in ran if result.failure)
        executed = sum(result.instructions for result in ran)
        print(f"{arch}: {len(ran) - failed} passed, {failed} failed of {len(ran)} "
              f"({executed / 1e6:.1f} M instructions)")  # fmt: skip
    for why, names in tally.excused.items():
        print(f"not counted: {', '.join(name.split()[0] for name in names)}: {why}")
    output = folder(campaign) / "results.json"
    not_counted = {why: list(names) for why, names in tally.excused.items()}
    document = {"campaign": campaign, "seed": seed, "programs": programs,
                "not_counted": not_counted,
                "results": [asdict(result) for result in results]}  # fmt: skip
    output.write_text(json.dumps(document, indent=1) + "\n")
    print(f"seed {seed}, every result: {paths.display(output)}")
    failed = len({result.name for result in failures} - excused)
    print(f"{campaign}: {len(programs) - failed} passed, {failed} failed of {len(programs)}")
    return 1 if failed or not programs else 0
