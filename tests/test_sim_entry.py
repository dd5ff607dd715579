"""What a wave finds when it starts: workgroup numbers, its place in the group, status, masks."""

from __future__ import annotations

import itertools
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sim_kernels
from netra_sim.hip import Hip, HipError
from sim_rows import LANES

ARCHES = ("gfx950", "gfx1151")
ARGS = (("out", 0, 8, sim_kernels.POINTER), ("ticket", 8, 8, sim_kernels.POINTER))
GRID, BLOCK = (3, 2, 4), (48, 2, 1)
# Every wave draws a ticket and stores four dwords there; `{body}` puts them into s20 to s23.
_BODY = """
{body}
        {load4} s[8:11], s[0:1], 0x0
        s_mov_b64 exec, 1
        v_mov_b32 v1, 0
        v_mov_b32 v2, 1
        s_waitcnt lgkmcnt(0)
        {add} v3, v1, v2, s[10:11] {old}
        s_waitcnt vmcnt(0)
        v_lshlrev_b32 v3, 4, v3
        v_mov_b32 v4, s20
        v_mov_b32 v5, s21
        v_mov_b32 v6, s22
        v_mov_b32 v7, s23
        {store4} v3, v[4:7], s[8:9]
        s_endpgm
"""
_SPELLING = {
    "gfx950": {"load4": "s_load_dwordx4", "add": "global_atomic_add", "old": "sc0",
               "store4": "global_store_dwordx4"},
    "gfx1151": {"load4": "s_load_b128", "add": "global_atomic_add_u32", "old": "glc",
                "store4": "global_store_b128"},
}


@pytest.fixture(scope="module")
def hip(sim_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hip]:
    folder = tmp_path_factory.mktemp("sim")
    with sim_kernels.private_simulator(sim_library, folder, ",".join(ARCHES)) as hip:
        yield hip


def waves(arch: str) -> int:
    """Of a workgroup."""
    return -(-BLOCK[0] * BLOCK[1] // LANES[arch])


def results(
    hip: Hip, assemble: Callable[..., Path], arch: str, body: str, enable: str = ""
) -> Counter[tuple[int, ...]]:
    """s20 to s23 of every wave; `enable` are lines of the kernel's descriptor."""
    hip.call("hipSetDevice", ARCHES.index(arch))
    text = sim_kernels.kernel("k", _BODY.format(body=body, **_SPELLING[arch]), ARGS, 16, arch)
    text = text.replace("next_free_sgpr 16", f"next_free_sgpr 40\n{enable}")
    function = hip.function(hip.load_module(assemble(text, arch)), "k")
    count = GRID[0] * GRID[1] * GRID[2] * waves(arch)
    out, ticket = hip.malloc(16 * count), hip.malloc(4)
    try:
        hip.fill(ticket, 0, 4)
        hip.launch(function, GRID, BLOCK, struct.pack("<QQ", out, ticket))
        hip.synchronize()
        return Counter(struct.iter_unpack("<4I", hip.download(out, 16 * count)))
    finally:
        hip.free(out)
        hip.free(ticket)


MOVE = "\n".join(f"        s_mov_b32 s{20 + k}, {{{k}}}" for k in range(4))


@pytest.mark.parametrize("axes", ["x", "xz", "xy", "xyz"])
@pytest.mark.parametrize("arch", ARCHES)
def test_workgroup_numbers(
    arch: str, axes: str, hip: Hip, assemble: Callable[..., Path]
) -> None:
    """Those that the descriptor asks for, without holes; X alone is X and no linear number."""
    enable = "".join(f".amdhsa_system_sgpr_workgroup_id_{a} 1\n" for a in axes if a != "x")
    found = [f"s{2 + k}" if k < len(axes) else "0" for k in range(4)]
    got = results(hip, assemble, arch, MOVE.format(*found), enable)
    want: Counter[tuple[int, ...]] = Counter()
    for group in itertools.product(*(range(n) for n in GRID)):
        numbers = [group["xyz".index(a)] for a in axes]
        want[tuple(numbers + [0] * (4 - len(axes)))] += waves(arch)
    assert got == want


@pytest.mark.parametrize("arch", ARCHES)
def test_place_in_the_workgroup(arch: str, hip: Hip, assemble: Callable[..., Path]) -> None:
    """First wave in bit 31, its number from bit 20, the number of waves in bits 5:0."""
    enable = "          .amdhsa_system_sgpr_workgroup_info 1\n"
    got = results(hip, assemble, arch, MOVE.format("s3", "0", "0", "0"), enable)
    n, groups = waves(arch), GRID[0] * GRID[1] * GRID[2]
    assert got == {((k == 0) << 31 | k << 20 | n, 0, 0, 0): groups for k in range(n)}


@pytest.mark.parametrize("arch", ARCHES)
def test_status_is_live(arch: str, hip: Hip, assemble: Callable[..., Path]) -> None:
    """EXECZ and VCCZ follow the masks at once, and nothing of an earlier wave is left in them."""
    body = """
        s_getreg_b32 s20, hwreg(HW_REG_STATUS, 9, 1)
        s_mov_b64 s[30:31], exec
        s_mov_b64 vcc, 0
        s_mov_b64 exec, 0
        s_getreg_b32 s21, hwreg(HW_REG_STATUS, 9, 2)
        s_mov_b64 vcc, 2
        s_mov_b64 exec, s[30:31]
        s_getreg_b32 s22, hwreg(HW_REG_STATUS, 9, 2)
        s_mov_b64 exec, 0
        s_mov_b64 vcc, exec
        s_cmp_eq_u32 s20, s20
        s_getreg_b32 s23, hwreg(HW_REG_STATUS, 0, 1)
"""
    got = results(hip, assemble, arch, body)
    assert got == {(0, 3, 0, 1): sum(got.values())}


@pytest.mark.parametrize("arch", ARCHES)
def test_fields_of_mode(arch: str, hip: Hip, assemble: Callable[..., Path]) -> None:
    """A field is written with the low bits of the source, and the rest of MODE stays."""
    body = """
        s_getreg_b32 s23, hwreg(HW_REG_MODE)
        s_mov_b32 s30, 0xfffffff1
        s_setreg_b32 hwreg(HW_REG_MODE, 4, 3), s30
        s_getreg_b32 s20, hwreg(HW_REG_MODE, 0, 10)
        s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), 3
        s_getreg_b32 s21, hwreg(HW_REG_MODE, 20, 12)
        s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), 2
        s_getreg_b32 s22, hwreg(HW_REG_MODE)
        s_andn2_b32 s22, s22, 0x70
        s_andn2_b32 s23, s23, 0x70
        s_xor_b32 s22, s22, s23
        s_mov_b32 s23, 0
"""
    got = results(hip, assemble, arch, body)
    assert got == {(0x390, 8, 0, 0): sum(got.values())}


@pytest.mark.parametrize("text", ["s_setpc_b64 s[30:31]", "s_swappc_b64 s[32:33], s[30:31]"])
@pytest.mark.parametrize("arch", ARCHES)
def test_a_jump_to_nowhere_is_a_fault(
    arch: str, text: str, hip: Hip, assemble: Callable[..., Path]
) -> None:
    """Zero does not end the wave; nor does the middle of an instruction begin one."""
    for target, words in (("s_mov_b64 s[30:31], 0", "jump to 0x0,"),
                          ("s_getpc_b64 s[30:31]\n s_add_u32 s30, s30, 8\n s_mov_b32 s20, 0x12345",
                           "where no instruction of the code object starts")):
        body = f"        {target}\n        {text}\n        s_mov_b32 s21, 0x12345678\n"
        with pytest.raises(HipError):
            results(hip, assemble, arch, body)
        fault = hip.last_fault()
        hip.call("netraSimReset")
        assert words in fault, fault


@pytest.mark.parametrize("arch", ARCHES)
def test_a_wave_that_ended_counts_at_the_barrier(
    arch: str, hip: Hip, assemble: Callable[..., Path]
) -> None:
    """The first wave waits for one that is gone, or goes: no deadlock."""
    enable = "          .amdhsa_system_sgpr_workgroup_info 1\n"
    body = """
        s_bitcmp1_b32 s3, 31
        s_cbranch_scc1 .Lfirst
        s_nop 7
        s_branch .Lover
.Lfirst:
        s_barrier
.Lover:
""" + MOVE.format(1, 2, 3, 4)
    got = results(hip, assemble, arch, body, enable)
    assert got == {(1, 2, 3, 4): GRID[0] * GRID[1] * GRID[2] * waves(arch)}
