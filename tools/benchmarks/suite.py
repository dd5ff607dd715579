"""What is measured: instruction loops, the GEMM of the catalog, and how both scale."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import assemble
import netra_sim
import numpy as np
from netra_catalog import paths
from netra_catalog.errors import NetraError, ToolError
from netra_sim.hip import Hip

from benchmarks import gemm
from benchmarks.kernels import LOOPS, Loop
from benchmarks.measure import Figure, Native, Time, rounds_for, timed, turns

THREADS = 2  # the budget is stated for two cores


class Simulated:
    """A loop on the simulator."""

    def __init__(self, hip: Hip, loop: Loop, llvm: Path, folder: Path) -> None:
        source, target = folder / f"{loop.name}.s", folder / f"{loop.name}.co"
        source.write_text(loop.source())
        assemble.assemble(source, target, loop.arch, llvm)
        self._hip, self._loop = hip, loop
        hip.call("hipSetDevice", paths.ARCHES.index(loop.arch))
        self._function = hip.function(hip.load_module(target), "loop")

    def run(self, groups: int, rounds: int, threads: int) -> Time:
        """`rounds` in one wave of each of `groups` workgroups."""
        self._hip.call("hipSetDevice", paths.ARCHES.index(self._loop.arch))
        os.environ["NETRA_SIM_THREADS"] = str(threads)

        def launch() -> None:
            block = (self._loop.lanes, 1, 1)
            self._hip.launch(self._function, (groups, 1, 1), block, struct.pack("<II", rounds, 0))
            self._hip.synchronize()

        time = timed(launch)
        counted = netra_sim.counters()
        ran = sum(counted.get(f"instructions.{kind}", 0) for kind in self._loop.kinds)
        if ran < groups * rounds * self._loop.count:
            raise NetraError(f"{self._loop.name}: ran {ran} instructions, too few", where="bench")
        return time


def loops(
    hip: Hip, native: Native, llvm: Path, folder: Path, seconds: float, repeats: int
) -> Iterator[Figure]:
    for loop in LOOPS:
        simulated = Simulated(hip, loop, llvm, folder)
        rounds = rounds_for(seconds, lambda n, s=simulated: s.run(1, n, 1))  # type: ignore[misc]
        limit = rounds_for(seconds, lambda n, i=loop: native.run(i.native, 1, n))  # type: ignore[misc]
        ours, theirs = turns(
            repeats,
            lambda s=simulated, n=rounds: s.run(THREADS, n, THREADS),  # type: ignore[misc]
            lambda i=loop, n=limit: native.run(i.native, THREADS, n),  # type: ignore[misc]
        )
        done, most = (THREADS * n * loop.count for n in (rounds, limit))
        yield Figure(
            loop.name, done / ours.wall, "instructions/s", loop.target, most / theirs.wall, True,
            idle=done / ours.idle(THREADS),
        )
        if loop is LOOPS[0]:
            yield from _scaling(simulated, native, loop, rounds, limit, repeats)


def _scaling(
    simulated: Simulated, native: Native, loop: Loop, rounds: int, limit: int, repeats: int
) -> Iterator[Figure]:
    """Twice the threads with twice the work; sixteen times the workgroups on as many threads."""
    one, two, native_one, native_two = turns(
        repeats,
        lambda: simulated.run(1, rounds, 1),
        lambda: simulated.run(2, rounds, 2),
        lambda: native.run(loop.native, 1, limit),
        lambda: native.run(loop.native, 2, limit),
    )
    yield Figure(
        "scaling_threads_1_to_2", 2 * one.wall / two.wall, "x", None,
        2 * native_one.wall / native_two.wall, True,
    )
    part = max(1, rounds // 16)
    small, large, native_small, native_large = turns(
        repeats,
        lambda: simulated.run(THREADS, part, THREADS),
        lambda: simulated.run(16 * THREADS, part, THREADS),
        lambda: native.run(loop.native, THREADS, max(1, limit // 16)),
        lambda: native.run(loop.native, THREADS, limit),
    )
    yield Figure(
        "scaling_work_1_to_16", large.wall / small.wall, "x time", None,
        native_large.wall / native_small.wall, False,
    )


def product(hip: Hip, native: Native, repeats: int) -> Iterator[Figure]:
    """The FP8 GEMM of the catalog, checked against NumPy before it is timed."""
    object_ = paths.build_dir() / "gfx950" / f"{gemm.KERNEL}.co"
    if not object_.is_file():
        raise ToolError(f"{object_} is missing", hint="type: make gfx950")
    hip.call("hipSetDevice", paths.ARCHES.index("gfx950"))
    os.environ["NETRA_SIM_THREADS"] = str(THREADS)
    with gemm.Problem(hip, object_, np.random.default_rng(1024)) as problem:
        problem.launch()
        wrong = problem.difference()
        if wrong:
            raise NetraError(f"{gemm.KERNEL}: {wrong}", where="bench")
        ours, theirs = turns(
            repeats,
            lambda: timed(problem.launch),
            lambda: native.run("gemm", THREADS, 1),
        )
    yield Figure(
        "gemm_fp8_1024", ours.wall, "s", 0.3, theirs.wall, False, idle=ours.idle(THREADS)
    )


def everything(
    hip: Hip, llvm: Path, folder: Path, seconds: float, repeats: int,
    wanted: Callable[[str], bool],
) -> Iterator[Figure]:
    native = Native(llvm / "clang", folder)
    if wanted("loops"):
        yield from loops(hip, native, llvm, folder, seconds, repeats)
    if wanted("gemm"):
        yield from product(hip, native, repeats)
