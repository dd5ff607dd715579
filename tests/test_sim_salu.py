"""Every scalar ALU row against Python integers (tests/reference/scalars.py), and program flow.

Each wave of a launch runs all rows once, on values of its own.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import driven
import netra_sim
import pytest
import scalars
import sim_kernels
import sim_rows
from netra_sim.hip import Hip
from sim_rows import LANES, WIDTH

ARCHES = ("gfx950", "gfx1151")
CLASSES = ("sop1", "sop2", "sopc", "sopk")
WAVES = 64

# Rows that jump, choose registers at run time, read the machine, or do nothing: the tests below
# and test_sim_lanes.py.
ELSEWHERE = set(
    "s_getpc_b64 s_setpc_b64 s_swappc_b64 s_call_b64 s_movrels_b32 s_movrels_b64 s_movreld_b32 "
    "s_movreld_b64 s_movrelsd_2_b32 s_set_gpr_idx_idx s_set_gpr_idx_on s_setvskip "
    "s_sendmsg_rtn_b32 s_sendmsg_rtn_b64 s_getreg_b32 s_setreg_b32 s_setreg_imm32_b32 s_version "
    "s_waitcnt_vscnt s_waitcnt_vmcnt s_waitcnt_expcnt s_waitcnt_lgkmcnt".split()
)
K16, K32 = 0x8123, 0x40490FDB
_DESTINATION, _SOURCES = 20, (16, 18)

_STEP = """
        {load8} s[16:23], s[4:5], {at:#x}
        s_waitcnt lgkmcnt(0)
        s_cmp_lg_u32 s22, 0
        {instruction}
        s_cselect_b32 s24, 1, 0
        s_mov_b64 s[26:27], exec
        s_mov_b64 exec, s[28:29]
        v_mov_b32 v2, s20
        v_mov_b32 v3, s21
        v_mov_b32 v4, s24
        v_mov_b32 v5, s26
        v_mov_b32 v6, s27
        {store4} v1, v[2:5], s[6:7]
        {store1} v1, v6, s[6:7] offset:16
        {add} v1, 32, v1
"""


def rows_of(arch: str) -> list[dict[str, Any]]:
    return [r for r in netra_sim.rows() if r["class"] in CLASSES and arch in r["archs"]
            and r["name"] not in ELSEWHERE]


def test_every_row_has_a_reference() -> None:
    missing = {r["name"] for arch in ARCHES for r in rows_of(arch)
               if r["name"] not in scalars.ROWS}
    assert not missing, f"rows without an entry in tests/reference/scalars.py: {sorted(missing)}"


def spelling(row: dict[str, Any]) -> tuple[str, list[str], list[int | None]]:
    """The text, the types of the sources, and what the text spells out instead of a register."""
    operands, kinds, constants = [], [], []
    sources = iter(_SOURCES)
    for k, slot in enumerate(row["slots"]):
        pair = WIDTH[slot["type"]] == 64
        if slot["role"] != "read":
            at = _DESTINATION
        else:
            kinds.append(slot["type"])
            immediate = row["class"] == "sopk" and k == len(row["slots"]) - 1
            literal = (row["name"] == "s_fmamk_f32" and k == 2) or (
                row["name"] == "s_fmaak_f32" and k == 3)
            constants.append(K16 if immediate else K32 if literal else None)
            if immediate or literal:
                operands.append(hex(constants[-1] or 0))
                continue
            at = next(sources)
        operands.append(f"s[{at}:{at + 1}]" if pair else f"s{at}")
    return f"{row['name']} {', '.join(operands)}", kinds, constants


@pytest.fixture(scope="module")
def hip(sim_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hip]:
    folder = tmp_path_factory.mktemp("sim")
    with sim_kernels.private_simulator(sim_library, folder, ",".join(ARCHES)) as hip:
        yield hip


def body(arch: str, texts: list[str]) -> str:
    spell = {
        "gfx950": {"load4": "s_load_dwordx4", "load8": "s_load_dwordx8",
                   "store4": "global_store_dwordx4", "store1": "global_store_dword",
                   "add": "v_add_u32"},
        "gfx1151": {"load4": "s_load_b128", "load8": "s_load_b256",
                    "store4": "global_store_b128", "store1": "global_store_b32",
                    "add": "v_add_nc_u32"},
    }[arch]
    lines = ["""
        {load4} s[4:7], s[0:1], 0x0
        s_mul_i32 s8, s2, {stride}
        v_mov_b32 v1, s8
        s_mov_b64 s[28:29], -1
        s_waitcnt lgkmcnt(0)
        s_add_u32 s4, s4, s8
        s_addc_u32 s5, s5, 0
        s_mov_b64 exec, -1
""".format(**spell, stride=32 * len(texts))]
    lines += [_STEP.format(**spell, instruction=t, at=32 * k) for k, t in enumerate(texts)]
    return "".join(lines) + "        s_endpgm\n"


ARGS = (("data", 0, 8, sim_kernels.POINTER), ("out", 8, 8, sim_kernels.POINTER))


def source_of(name: str, text: str, arch: str) -> str:
    """A kernel with room for more registers than the smallest have."""
    made = sim_kernels.kernel(name, text, ARGS, 16, arch)
    return made.replace("next_free_sgpr 16", "next_free_sgpr 96").replace(
        "next_free_vgpr 8", "next_free_vgpr 32").replace("accum_offset 8", "accum_offset 32")


def launch(
    hip: Hip, path: Path, name: str, data: bytes, size: int, groups: int, lanes: int
) -> bytes:
    function = hip.function(hip.load_module(path), name)
    source, out = hip.malloc(max(len(data), 16)), hip.malloc(size)
    try:
        hip.upload(source, data)
        hip.fill(out, 0xA5, size)
        hip.launch(function, (groups, 1, 1), (lanes, 1, 1), struct.pack("<QQ", source, out))
        hip.synchronize()
        return hip.download(out, size)
    finally:
        hip.free(source)
        hip.free(out)


@pytest.mark.parametrize("arch", ARCHES)
def test_rows(arch: str, hip: Hip, assemble: Callable[..., Path]) -> None:
    hip.call("hipSetDevice", ARCHES.index(arch))
    rows = rows_of(arch)
    spelt = [spelling(r) for r in rows]
    driven.note(arch, "\n".join(text for text, _, _ in spelt))
    path = assemble(source_of("rows", body(arch, [s[0] for s in spelt]), arch), arch)
    rng = random.Random(7)
    values = []
    for _ in range(WAVES):
        for _, kinds, _ in spelt:
            drawn = [sim_rows.draw(k, rng) | rng.getrandbits(64) << WIDTH[k] for k in kinds[:2]]
            drawn = [d & scalars.FULL for d in drawn] + [rng.getrandbits(64)] * (2 - len(drawn))
            values.append((*drawn, rng.getrandbits(64), rng.getrandbits(1)))
    data = b"".join(struct.pack("<4Q", *v) for v in values)
    out = launch(hip, path, "rows", data, len(data), WAVES, LANES[arch])
    wrong = []
    for k, given in enumerate(values):
        row, (text, kinds, constants) = rows[k % len(rows)], spelt[k % len(rows)]
        low, high, scc, exec_low, exec_high = struct.unpack_from("<5I", out, 32 * k)
        sources = [given[n] & ((1 << WIDTH[kind]) - 1) for n, kind in enumerate(kinds[:2])]
        if "fmamk" in text:
            sources = [sources[0], K32, given[1] & 0xFFFFFFFF]
        elif "fmaak" in text:
            sources.append(K32)
        else:
            sources = [s if c is None else c for s, c in zip(sources, constants, strict=False)]
        slot = next((s for s in row["slots"] if s["role"] != "read"), None)
        width = max(32, WIDTH[slot["type"]]) if slot else 0
        old = given[2] & ((1 << (WIDTH[slot["type"]] if slot else 32)) - 1)
        got = scalars.ROWS[row["name"]](sources, given[3], old)
        destination, flag = got[:2]
        want = given[2] if destination is None else given[2] >> width << width | destination
        exec_now = scalars.FULL
        if len(got) == 3:
            exec_now = got[2] if row["name"].endswith("64") else got[2] | scalars.FULL >> 32 << 32
        have = (low | high << 32, scc, exec_low | exec_high << 32)
        expected = (want, given[3] if flag is None else flag, exec_now)
        if have != expected:
            wrong.append(f"{text}: {[hex(x) for x in given]}: got {[hex(x) for x in have]}, "
                         f"want {[hex(x) for x in expected]}")
    assert not wrong, "\n".join([f"{len(wrong)} results differ", *wrong[:20]])


# ---- flow, registers of the machine ----------------------------------------------------------

_STORE = {"gfx950": "global_store_dword", "gfx1151": "global_store_b32"}
_LOAD = {"gfx950": "s_load_dwordx4", "gfx1151": "s_load_b128"}


def scalar_results(
    hip: Hip, assemble: Callable[..., Path], arch: str, text: str, count: int, groups: int = 1
) -> list[int]:
    """Runs the text, which leaves its results in s40 and up; one list for all workgroups."""
    driven.note(arch, text)
    hip.call("hipSetDevice", ARCHES.index(arch))
    stores = "".join(
        f"        v_mov_b32 v2, s{40 + k}\n        {_STORE[arch]} v1, v2, s[6:7] offset:{4 * k}\n"
        for k in range(count))
    code = f"""
        {_LOAD[arch]} s[4:7], s[0:1], 0x0
        s_mul_i32 s8, s2, {4 * count}
        v_mov_b32 v1, s8
        s_waitcnt lgkmcnt(0)
{text}
        s_mov_b64 exec, 1
{stores}        s_endpgm
"""
    path = assemble(source_of("flow", code, arch), arch)
    out = launch(hip, path, "flow", b"", 4 * count * groups, groups, LANES[arch])
    return list(struct.unpack(f"<{count * groups}I", out))


@pytest.mark.parametrize("arch", ARCHES)
def test_flow(arch: str, hip: Hip, assemble: Callable[..., Path]) -> None:
    text = """
        s_mov_b32 s40, 0
        s_mov_b32 s41, 0
        s_getpc_b64 s[20:21]
.Lafter:
        s_add_u32 s20, s20, .Lfunction-.Lafter
        s_addc_u32 s21, s21, 0
        s_swappc_b64 s[30:31], s[20:21]
        s_call_b64 s[30:31], .Lfunction
        s_cmp_eq_u32 s40, 2
        s_cbranch_scc0 .Lend
        s_mov_b32 s41, 1
        s_branch .Lend
.Lfunction:
        s_add_u32 s40, s40, 1
        s_setpc_b64 s[30:31]
.Lend:
        s_nop 0
"""
    assert scalar_results(hip, assemble, arch, text, 2) == [2, 1]


def test_registers_of_gfx950(hip: Hip, assemble: Callable[..., Path]) -> None:
    text = """
        s_getreg_b32 s40, hwreg(HW_REG_XCC_ID)
        s_getreg_b32 s41, hwreg(HW_REG_HW_ID, 8, 4)
        s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 9
        s_getreg_b32 s42, hwreg(HW_REG_MODE, 0, 8)
        s_cmp_eq_u32 s40, s40
        s_mov_b64 vcc, 0
        s_getreg_b32 s43, hwreg(HW_REG_STATUS, 0, 11)
        s_getreg_b32 s44, hwreg(HW_REG_TRAPSTS)
        s_mov_b32 s45, 0xabc
        s_setreg_b32 hwreg(HW_REG_MODE, 4, 4), s45
        s_getreg_b32 s45, hwreg(HW_REG_MODE, 0, 8)
"""
    got = scalar_results(hip, assemble, "gfx950", text, 6, groups=24)
    rows = [got[6 * k : 6 * k + 6] for k in range(24)]
    assert [r[0] for r in rows] == [k % 8 for k in range(24)]
    assert [r[1] for r in rows] == [k // 8 for k in range(24)]
    assert all(r[2:] == [0xF9, 1 | 1 << 10, 0, 0xC9] for r in rows)


def test_registers_of_gfx1151(hip: Hip, assemble: Callable[..., Path]) -> None:
    text = """
        s_round_mode 0x6
        s_denorm_mode 0x5
        s_getreg_b32 s40, hwreg(HW_REG_MODE, 0, 8)
        s_getreg_b32 s41, hwreg(HW_REG_SH_MEM_BASES)
        s_getreg_b32 s42, hwreg(HW_REG_SHADER_CYCLES)
        s_nop 0
        s_getreg_b32 s43, hwreg(HW_REG_SHADER_CYCLES)
        s_sendmsg_rtn_b64 s[44:45], sendmsg(MSG_RTN_GET_REALTIME)
        s_sendmsg_rtn_b32 s46, sendmsg(MSG_RTN_GET_REALTIME)
        s_waitcnt lgkmcnt(0)
        s_mov_b32 s47, 0xabc
        s_setreg_b32 hwreg(HW_REG_MODE, 4, 4), s47
        s_getreg_b32 s47, hwreg(HW_REG_MODE, 0, 8)
"""
    mode, bases, before, after, low, high, later, set_to = scalar_results(
        hip, assemble, "gfx1151", text, 8)
    assert (high, set_to) == (0, 0xC6) and low <= later < 1 << 20
    assert (mode, bases) == (0x56, 0x00010002)
    assert before <= after < 1 << 20
