"""Barriers: waves that meet at different ones, that meet fewer, and that wait for nobody."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import check_programs
import pytest
from check_programs import case
from netra_sim.hip import Hip
from sim_kernels import private_simulator

# The first wave of the workgroup and the second take different ways.
SPLIT = """
v_readfirstlane_b32 s20, v0
s_nop 4
s_cmp_eq_u32 s20, 0
s_cbranch_scc{taken} {label}
"""


@pytest.fixture(params=["gfx950", "gfx1151"])
def machine(
    request: pytest.FixtureRequest, sim_library: Path, tmp_path: Path
) -> Iterator[tuple[Hip, str]]:
    with private_simulator(sim_library, tmp_path, request.param) as hip:
        yield hip, request.param


def run(machine: tuple[Hip, str], assemble: Callable[..., Path], text: str) -> check_programs.Told:
    hip, arch = machine
    threads = 128 if arch == "gfx950" else 64
    return check_programs.run(hip, assemble, arch, [case("case", text)], threads=threads)


def test_waves_at_different_barriers(
    machine: tuple[Hip, str], assemble: Callable[..., Path]
) -> None:
    text = SPLIT.format(taken=1, label=".Lfirst")
    text += "s_barrier\ns_branch .Lend\n.Lfirst:\ns_nop 0\ns_barrier\n.Lend:\ns_nop 0"
    told = run(machine, assemble, text)
    (found,) = [f for f in told.by_case["case"] if f["kind"] == "sync"]
    assert (found["rule"], found["severity"]) == ("E barrier", "error")
    assert found["at"]["place"] != found["other"]["place"]
    same = SPLIT.format(taken=1, label=".Lfirst") + "s_nop 1\n.Lfirst:\ns_barrier\ns_barrier"
    assert run(machine, assemble, same).by_case["case"] == []


def test_a_wave_that_ends_early(machine: tuple[Hip, str], assemble: Callable[..., Path]) -> None:
    text = "s_barrier\n" + SPLIT.format(taken=0, label=".Lgo")
    text += "s_endpgm\n.Lgo:\ns_barrier"
    told = run(machine, assemble, text)
    assert not told.fault
    (found,) = [f for f in told.by_case["case"] if f["kind"] == "sync"]
    assert (found["rule"], found["severity"]) == ("E unequal", "warning")
    assert "met 2 barriers" in found["text"] and "after 1" in found["text"]


def test_a_wave_that_never_arrives(
    machine: tuple[Hip, str], assemble: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "NETRA_SIM_WAVE_BUDGET", "20000")
    text = SPLIT.format(taken=1, label=".Lspin") + "s_barrier\ns_endpgm\n.Lspin:\ns_branch .Lspin"
    told = run(machine, assemble, text)
    assert "without ending" in told.fault
    (found,) = [f for f in told.by_case["case"] if f["kind"] == "sync"]
    assert (found["rule"], found["severity"]) == ("E deadlock", "error")
    assert found["at"]["text"] == "s_barrier" and found["wave"] == 1
    assert found["other"]["text"].startswith("s_branch")
