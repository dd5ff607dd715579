"""Lanes of one store that meet at one address with different bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import check_programs
import pytest
from check_programs import case
from netra_sim.hip import Hip
from sim_kernels import private_simulator


@pytest.fixture(params=["gfx950", "gfx1151"])
def machine(
    request: pytest.FixtureRequest, sim_library: Path, tmp_path: Path
) -> Iterator[tuple[Hip, str]]:
    with private_simulator(sim_library, tmp_path, request.param) as hip:
        yield hip, request.param


# v20 = the address (all lanes one, or one for each), v21 = 0; v1 = 4 * lane; s[4:5] the memory.
BAD = {
    "everywhere": "v_mov_b32 v20, 0\nglobal_store_b32 v20, v1, s[4:5]",
    "halves overlap": "v_lshrrev_b32 v20, 1, v1\nglobal_store_b32 v20, v1, s[4:5]",
    "backwards": "v_sub_nc_u32 v20, 512, v1\nv_lshrrev_b32 v20, 3, v20\n"
    "v_lshlrev_b32 v20, 3, v20\nglobal_store_b32 v20, v1, s[4:5]",
    "lds": "v_mov_b32 v20, 0\nds_store_b32 v20, v1",
    "low bytes": "v_mov_b32 v20, 0\nglobal_store_b8 v20, v1, s[4:5]",
    "the second dword": "v_mov_b32 v22, 7\nv_mov_b32 v23, v1\nv_mov_b32 v20, 8\n"
    "global_store_b64 v20, v[22:23], s[4:5]",
}
GOOD = {
    "apart": "global_store_b32 v1, v1, s[4:5]",
    "equal bytes": "v_mov_b32 v20, 0\nglobal_store_b32 v20, v16, s[4:5]",
    "equal low bytes": "v_mov_b32 v20, 0\nv_lshlrev_b32 v22, 8, v1\n"
    "global_store_b8 v20, v22, s[4:5]",
    "one lane": "v_mov_b32 v20, 0\ns_mov_b32 exec_lo, 1\ns_mov_b32 exec_hi, 0\n"
    "global_store_b32 v20, v1, s[4:5]",
    "backwards and apart": "v_sub_nc_u32 v20, 512, v1\nglobal_store_b32 v20, v1, s[4:5]",
}
_GFX950 = {
    "_b32 v20, v": "_dword v20, v", "_b32 v1, v1": "_dword v1, v1", "_b64 v20": "_dwordx2 v20",
    "global_store_b8": "global_store_byte", "ds_store_dword": "ds_write_b32",
    "v_sub_nc_u32": "v_sub_u32",
}  # fmt: skip


def _text(arch: str, text: str) -> str:
    if arch == "gfx950":
        for ours, theirs in _GFX950.items():
            text = text.replace(ours, theirs)
        return text.replace("v_lshlrev_dword", "v_lshlrev_b32")
    return text.replace("s_mov_b32 exec_hi, 0\n", "")


def test_lanes_that_meet(machine: tuple[Hip, str], assemble: Callable[..., Path]) -> None:
    hip, arch = machine
    cases = [case(name, _text(arch, text)) for name, text in (BAD | GOOD).items()]
    told = check_programs.run(hip, assemble, arch, cases)
    assert not told.fault
    for name in BAD:
        (found,) = [f for f in told.by_case[name] if f["kind"] == "race"]
        assert (found["rule"], found["severity"]) == ("E lanes", "error")
        assert found["at"]["text"].startswith(("global_store", "ds_"))
    assert {name: [f for f in told.by_case[name] if f["kind"] == "race"] for name in GOOD} == {
        name: [] for name in GOOD
    }
