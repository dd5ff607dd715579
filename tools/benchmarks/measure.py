"""Timing: a piece of work on the simulator and the same work as native C, turn by turn.

Both are repeated and their medians taken; taking turns lets a busy neighbour disturb both alike.
Besides wall time each run has its processor time, from which follows what an idle machine would
have given: that figure is shown, but never recorded.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from netra_catalog.errors import ToolError

SOURCE = Path(__file__).with_name("native.c")


@dataclass(frozen=True)
class Time:
    """Seconds, of one run or the median of several."""

    wall: float
    processor: float

    def idle(self, threads: int) -> float:
        """Wall seconds if `threads` cores had done nothing else."""
        return self.processor / threads


@dataclass(frozen=True)
class Figure:
    """One line of the table; `target`, `native` and `idle` are None where there is none."""

    name: str
    value: float
    unit: str
    target: float | None
    native: float | None
    higher_is_better: bool
    idle: float | None = None

    @property
    def ratio(self) -> float | None:
        """value / native: a rate's share of the limit, a time's multiple of it."""
        return self.value / self.native if self.native else None

    @property
    def met(self) -> bool | None:
        if self.target is None:
            return None
        return self.value >= self.target if self.higher_is_better else self.value <= self.target

    def json(self) -> dict[str, float | str | bool | None]:
        return {
            "value": self.value,
            "unit": self.unit,
            "target": self.target,
            "higher_is_better": self.higher_is_better,
            "native": self.native,
            "ratio": self.ratio,
        }


def median(times: list[Time]) -> Time:
    return Time(
        statistics.median(t.wall for t in times), statistics.median(t.processor for t in times)
    )


def turns(repeats: int, *works: Callable[[], Time]) -> list[Time]:
    """The median of each, run in turn `repeats` times after one round that is not counted."""
    taken: list[list[Time]] = [[] for _ in works]
    for turn in range(repeats + 1):
        for work, times in zip(works, taken, strict=True):
            measured = work()
            if turn:
                times.append(measured)
    return [median(times) for times in taken]


def timed(work: Callable[[], None]) -> Time:
    """One run in this process, all its threads counted."""
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return Time(time.perf_counter() - wall, time.process_time() - processor)


class Native:
    """native.c, compiled for this host."""

    def __init__(self, clang: Path, folder: Path) -> None:
        self._program = folder / "native"
        command = [str(clang), "-O3", "-march=native", "-o", str(self._program), str(SOURCE)]
        done = subprocess.run([*command, "-lm", "-lpthread"], capture_output=True, text=True)
        if done.returncode:
            raise ToolError(f"the native loops do not compile:\n{done.stderr.strip()}")

    def run(self, loop: str, threads: int, rounds: int) -> Time:
        """`rounds` of a loop on each of `threads` threads."""
        command = [str(self._program), loop, str(threads), str(rounds)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise ToolError(f"{' '.join(command)}: {done.stderr.strip()}")
        wall, processor = map(float, done.stdout.split())
        return Time(wall, processor)


def rounds_for(seconds: float, run: Callable[[int], Time]) -> int:
    """How many rounds take about `seconds`, by doubling from a guess."""
    rounds = 64
    while True:
        took = run(rounds).processor
        if took > seconds / 8:
            return max(1, round(rounds * seconds / took))
        rounds *= 4


def cores() -> int:
    return len(os.sched_getaffinity(0))
