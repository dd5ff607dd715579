"""Where sources disagree: what NETRA_SIM_SWITCHES changes, and that nothing else does."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sim_kernels
from netra_sim.hip import Hip
from sim_programs import ARCHES, Programs, check
from sim_rows import IDS, TARGETS

SWITCHED = "dpp_inactive=zero,fma_mix=once,minimum3_dx10=zero"


def programs(switched: bool) -> Programs:
    """Each has one right answer with the switch, and another without."""
    made = Programs()
    made.both(
        "DPP from a lane that is off",
        "v_xor_b32_dpp v8, v2, v3 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf",
        lambda r, e, k: (r[2][k ^ 1] ^ r[3][k] if e >> (k ^ 1) & 1
                         else r[3][k] if switched else r[8][k]))
    # 2^-40 + (1 + 2^-11): above the middle of two f16 numbers, on it once it is an f32.
    mix = ("v_mov_b32 v10, 0x35800000\n v_mov_b32 v11, 0x3f801000\n v_mov_b32 v8, 0\n"
           " v_fma_mixlo_f16 v8, v10, v10, v11")
    made.gfx9("fma_mix", mix, lambda r, e, k: 0x3C01)
    made.gfx11("fma_mix", mix, lambda r, e, k: 0x3C01 if switched else 0x3C00)
    for name in ("minimum3", "maximum3"):
        made.gfx9(f"{name} of a NaN", f"v_mov_b32 v10, 0x7fc00000\n v_mov_b32 v11, 1.0\n"
                  f" v_{name}_f32 v8, v11, v10, v11",
                  lambda r, e, k: 0 if switched else 0x7FC00000)
    return made


@pytest.fixture(scope="module", params=[False, True], ids=["default", "switched"])
def machine(
    request: pytest.FixtureRequest, sim_library: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Hip, bool]]:
    """A copy of the library for each: it reads its switches once."""
    before = os.environ.get("NETRA_SIM_SWITCHES")
    os.environ["NETRA_SIM_SWITCHES"] = SWITCHED if request.param else ""
    folder = tmp_path_factory.mktemp("sim")
    try:
        with sim_kernels.private_simulator(sim_library, folder, ",".join(ARCHES)) as hip:
            yield hip, request.param
    finally:
        os.environ.pop("NETRA_SIM_SWITCHES")
        if before is not None:
            os.environ["NETRA_SIM_SWITCHES"] = before


@pytest.mark.parametrize("arch, lanes", TARGETS, ids=IDS)
def test_programs(
    arch: str, lanes: int, machine: tuple[Hip, bool], assemble: Callable[..., Path]
) -> None:
    hip, switched = machine
    wrong = check(hip, assemble, arch, lanes, programs(switched))
    assert not wrong, "\n".join(wrong)
