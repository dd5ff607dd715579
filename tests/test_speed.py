"""The speed bench measures what it says, and its file is what readers of bench.json expect.

No speed is tested: a loaded machine would fail without a fault.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sim_kernels
from benchmarks import gemm
from benchmarks.kernels import LOOPS
from benchmarks.measure import Figure, Time, median


@pytest.fixture(scope="module")
def measured(
    repo_root: Path, sim_library: Path, llvm_bin: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[str, object]]:
    """A short run that finds figures of somebody else in its file."""
    path = tmp_path_factory.mktemp("bench") / "bench.json"
    path.write_text('{"bridge_hit": {"value": 1}}')
    command = [sys.executable, str(repo_root / "tools" / "bench.py"), "--output", str(path)]
    done = subprocess.run(
        [*command, "--seconds", "0.002", "--repeats", "1"],
        env={**os.environ, "NETRA_LLVM_BIN": str(llvm_bin), "NETRA_SIM_LIBRARY": str(sim_library)},
        capture_output=True, text=True,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(path.read_text())
    assert found.pop("bridge_hit") == {"value": 1}
    for name in found:
        assert name in done.stdout
    return found


def test_the_file_has_every_figure(measured: dict[str, dict[str, object]]) -> None:
    names = {loop.name for loop in LOOPS}
    assert set(measured) == names | {
        "scaling_threads_1_to_2", "scaling_work_1_to_16", "gemm_fp8_1024"
    }
    for figure in measured.values():
        assert set(figure) == {"value", "unit", "target", "higher_is_better", "native", "ratio"}
        assert figure["value"] > 0 and figure["native"] > 0  # type: ignore[operator]
        assert figure["ratio"] == pytest.approx(
            figure["value"] / figure["native"]  # type: ignore[operator]
        )


def test_a_target_is_met_from_the_right_side() -> None:
    rate = Figure("r", 2.0, "instructions/s", 3.0, None, True)
    time = Figure("t", 2.0, "s", 3.0, None, False)
    assert (rate.met, time.met) == (False, True)
    assert rate.ratio is None
    assert Figure("n", 1.0, "s", None, None, True).met is None


def test_the_median_is_taken_of_each_clock() -> None:
    times = [Time(1, 30), Time(5, 10), Time(3, 20)]
    assert median(times) == Time(3, 20)


def test_the_gemm_check_notices_one_wrong_element(
    sim_library: Path, repo_root: Path, tmp_path: Path
) -> None:
    path = repo_root / "build" / "gfx950" / f"{gemm.KERNEL}.co"
    with (
        sim_kernels.private_simulator(sim_library, tmp_path, "gfx950") as hip,
        gemm.Problem(hip, path, np.random.default_rng(5)) as problem,
    ):
        problem.launch()
        assert problem.difference() == ""
        hip.fill(problem._out + 2 * (7 * gemm.SIZE + 3), 0x40, 2)
        assert problem.difference().startswith("1 elements differ, first (7, 3)")
