"""Races between waves and workgroups, and data that a cache hides: each idiom, and each of its
parts taken away."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import check_programs
import pytest
from check_programs import case
from netra_sim.hip import Hip
from sim_kernels import private_simulator
from spelling import BOTH

GFX1151 = {
    "global_store_dword": "global_store_b32",
    "global_load_dwordx4": "global_load_b128",
    "global_load_dword": "global_load_b32",
    "global_atomic_add": "global_atomic_add_u32",
    "ds_write_b32": "ds_store_b32",
    "ds_write_b8": "ds_store_b8",
    "ds_read_b32": "ds_load_b32",
    "ds_add_rtn_u32": "ds_add_rtn_u32",
    "s_load_dword ": "s_load_b32 ",
    "s_mov_b64 exec, 1": "s_mov_b32 exec_lo, 1",
    "s_mov_b64 exec, -1": "s_mov_b32 exec_lo, -1",
    "STORED": "s_waitcnt_vscnt null, 0",
    "ATOMIC": "glc",
}
GFX950 = {"STORED": "s_waitcnt vmcnt(0)", "ATOMIC": "sc0"}

# v20: the wave of the workgroup; wave 0 goes on, wave 1 jumps to .Lother.
WAVES = """
v_readfirstlane_b32 s20, v0
v_mov_b32 v21, 0
v_mov_b32 v22, 1
s_nop 4
s_cmp_eq_u32 s20, 0
s_cbranch_scc0 .Lother
{first}
s_branch .Lend
.Lother:
{second}
.Lend:
s_nop 0
"""
# Each workgroup stores a dword; the one that draws the last ticket reads all four.
TICKET = """
v_mov_b32 v20, s2
v_lshlrev_b32 v20, 2, v20
v_mov_b32 v21, 0
v_mov_b32 v22, 1
s_mov_b64 exec, 1
global_store_dword v20, v20, s[4:5] offset:128
{write_back}
STORED
global_atomic_add v23, v21, v22, s[4:5] ATOMIC
s_waitcnt vmcnt(0)
v_readfirstlane_b32 s20, v23
s_nop 4
s_cmp_lg_u32 s20, 3
s_cbranch_scc1 .Lend
{invalidate}
global_load_dwordx4 v[24:27], v21, s[4:5] offset:128
s_waitcnt vmcnt(0)
.Lend:
s_nop 0
"""
WRITE_BACK = {"gfx950": "buffer_wbl2 sc1", "gfx1151": ""}
INVALIDATE = {"gfx950": "buffer_inv sc1", "gfx1151": "buffer_gl1_inv\nbuffer_gl0_inv"}


@pytest.fixture(params=BOTH)
def machine(
    request: pytest.FixtureRequest, sim_library: Path, tmp_path: Path
) -> Iterator[tuple[Hip, str]]:
    with private_simulator(sim_library, tmp_path, request.param) as hip:
        yield hip, request.param


def spelled(arch: str, text: str) -> str:
    for old, new in (GFX950 if arch == "gfx950" else GFX1151).items():
        text = text.replace(old, new)
    return text


def found(
    machine: tuple[Hip, str], assemble: Callable[..., Path], text: str, *, waves: int, groups: int
) -> list[check_programs.Finding]:
    hip, arch = machine
    threads = waves * (64 if arch == "gfx950" else 32)
    one = case("case", spelled(arch, text))
    told = check_programs.run(hip, assemble, arch, [one], threads=threads, groups=groups)
    assert not told.fault
    return [f for f in told.by_case["case"] if f["kind"] in ("race", "visibility")]


LDS_WRITE = "ds_write_b32 v21, v22\n"
LDS_READ = "ds_read_b32 v24, v21\ns_waitcnt lgkmcnt(0)\n"
DONE = "s_waitcnt lgkmcnt(0)\n"
# (what wave 0 does, what wave 1 does, rules of the errors)
LDS_ROWS = [
    (LDS_WRITE + DONE + "s_barrier", "s_barrier\n" + LDS_READ, set()),
    (LDS_WRITE + DONE, LDS_READ, {"D LDS"}),
    (LDS_WRITE + DONE, LDS_WRITE + DONE, {"D LDS"}),
    (LDS_READ, LDS_READ, set()),
    (LDS_WRITE + DONE + "s_barrier\ns_barrier", "s_barrier\n" + LDS_READ + "s_barrier", set()),
    (LDS_WRITE + DONE + "s_barrier\n" + LDS_WRITE + DONE, "s_barrier\n" + LDS_READ, {"D LDS"}),
    # Neighbours in one dword are not the same bytes.
    ("ds_write_b8 v21, v22\n" + DONE, "ds_write_b8 v21, v22 offset:1\n" + DONE, set()),
    ("ds_write_b8 v21, v22 offset:1\n" + DONE, LDS_WRITE + DONE, {"D LDS"}),
    # Atomics do not race with each other, and a plain store does with one.
    ("ds_add_rtn_u32 v24, v21, v22\n" + DONE, "ds_add_rtn_u32 v24, v21, v22\n" + DONE, set()),
    (LDS_WRITE + DONE, "ds_add_rtn_u32 v24, v21, v22\n" + DONE, {"D LDS"}),
]  # fmt: skip


@pytest.mark.parametrize("row", range(len(LDS_ROWS)))
def test_waves_in_lds(machine: tuple[Hip, str], assemble: Callable[..., Path], row: int) -> None:
    first, second, rules = LDS_ROWS[row]
    lines = found(machine, assemble, WAVES.format(first=first, second=second), waves=2, groups=1)
    assert {f["rule"] for f in lines if f["severity"] == "error"} == rules
    for one in lines:
        assert one["at"]["line"] and one["other"]["line"] and "s_barrier" in one["mend"]


def test_many_barriers_do_not_saturate(
    machine: tuple[Hip, str], assemble: Callable[..., Path]
) -> None:
    barriers = "s_mov_b32 s21, 0\n.Lround{0}:\ns_barrier\ns_add_u32 s21, s21, 1\n"
    barriers += "s_cmp_lt_u32 s21, 70000\ns_cbranch_scc1 .Lround{0}\n"
    first = barriers.format(0) + LDS_WRITE + DONE
    second = barriers.format(1) + LDS_READ
    text = WAVES.format(first=first, second=second)
    lines = found(machine, assemble, text, waves=2, groups=1)
    assert {f["rule"] for f in lines if f["kind"] == "race"} == {"D LDS"}


STORE = "global_store_dword v21, v22, s[4:5] offset:512\n"
LOAD = "global_load_dword v24, v21, s[4:5] offset:512{}\ns_waitcnt vmcnt(0)\n"


def test_waves_of_a_workgroup_in_memory(
    machine: tuple[Hip, str], assemble: Callable[..., Path]
) -> None:
    arch = machine[1]

    def rules(first: str, second: str) -> set[str]:
        text = WAVES.format(first=first, second=second)
        return {f["rule"] for f in found(machine, assemble, text, waves=2, groups=1)}

    near = "" if arch == "gfx950" else "buffer_gl0_inv\n"
    plain = LOAD.format("")
    assert rules(STORE + "STORED\ns_barrier", "s_barrier\n" + near + plain) == set()
    assert rules(STORE + "s_barrier\nSTORED", "s_barrier\n" + near + plain) == {"D workgroup"}
    assert rules(STORE + "STORED", plain) == {"D workgroup"}
    if arch == "gfx1151":  # the default is WGP mode
        late = STORE + "STORED\ns_barrier", "s_barrier\n" + plain
        assert rules(*late) == {"D gl0_inv"}
        assert rules(late[0], "s_barrier\n" + LOAD.format(" glc")) == set()


def ticket(
    machine: tuple[Hip, str], assemble: Callable[..., Path], **parts: str
) -> tuple[set[str], list[check_programs.Finding]]:
    arch = machine[1]
    text = TICKET.format(
        write_back=parts.get("write_back", WRITE_BACK[arch]),
        invalidate=parts.get("invalidate", INVALIDATE[arch]),
    )
    for old, new in (("STORED", parts.get("stored")), ("ATOMIC", parts.get("atomic"))):
        text = text if new is None else text.replace(old, new)
    lines = found(machine, assemble, text, waves=1, groups=4)
    return {f["rule"] for f in lines if f["severity"] == "error"}, lines


def test_the_ticket_hands_data_on(machine: tuple[Hip, str], assemble: Callable[..., Path]) -> None:
    assert ticket(machine, assemble) == (set(), [])


def test_every_part_of_the_ticket_is_needed(
    machine: tuple[Hip, str], assemble: Callable[..., Path]
) -> None:
    arch = machine[1]
    assert ticket(machine, assemble, stored="s_nop 0")[0] == {"D global"}
    if arch == "gfx950":
        assert ticket(machine, assemble, write_back="")[0] == {"D wbl2"}
        assert ticket(machine, assemble, write_back="buffer_wbl2")[0] == {"D wbl2"}
        assert ticket(machine, assemble, invalidate="")[0] == {"D inv"}
        assert ticket(machine, assemble, invalidate="buffer_inv sc0")[0] == {"D inv"}
    else:
        for cut in ("", "buffer_gl0_inv", "buffer_gl1_inv", "buffer_gl0_inv\nbuffer_gl1_inv"):
            assert ticket(machine, assemble, invalidate=cut)[0] == {"D gl1_inv"}, cut
    (one,) = ticket(machine, assemble, invalidate="")[1]
    assert one["kind"] == "visibility" and "inv" in one["mend"]
    assert "_load_" in one["at"]["text"] and "_store_" in one["other"]["text"]


def test_workgroups_that_share_nothing_but_bytes(
    machine: tuple[Hip, str], assemble: Callable[..., Path]
) -> None:
    text = "v_mov_b32 v21, 0\ns_mov_b64 exec, 1\nglobal_store_dword v21, v22, s[4:5] offset:512"
    (one,) = found(machine, assemble, text, waves=1, groups=2)
    assert (one["kind"], one["rule"], one["severity"]) == ("race", "D global", "error")
    assert "workgroup" in one["text"]
    apart = "v_mov_b32 v21, s2\nv_lshlrev_b32 v21, 2, v21\ns_mov_b64 exec, 1\n"
    apart += "global_store_dword v21, v22, s[4:5] offset:512"
    assert found(machine, assemble, apart, waves=1, groups=4) == []
    add = "v_mov_b32 v21, 0\nglobal_atomic_add v21, v22, s[4:5] offset:512"
    assert found(machine, assemble, add, waves=1, groups=4) == []


def test_a_scalar_load_of_what_was_stored(
    machine: tuple[Hip, str], assemble: Callable[..., Path]
) -> None:
    text = "v_mov_b32 v21, 0\n" + STORE + "STORED\n{}s_load_dword s20, s[4:5], 0x200\n"
    text += "s_waitcnt lgkmcnt(0)"
    (one,) = found(machine, assemble, text.format(""), waves=1, groups=1)
    assert (one["kind"], one["rule"]) == ("visibility", "D scalar cache")
    assert found(machine, assemble, text.format("s_dcache_inv\n"), waves=1, groups=1) == []
