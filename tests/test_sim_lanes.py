"""Instructions that move values between lanes or choose registers at run time, VOPD, and DPP.

Every test is a piece of text that leaves its result in v8 and v9, and a Python function that says
what each lane has then, from the registers v2..v9 before and EXEC.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import netra_sim
import pytest
import sim_kernels
import sim_rows
from integers import ROWS
from netra_sim.hip import Hip, HipError
from sim_programs import (
    ARCHES,
    Expected,
    Program,
    Programs,
    Registers,
    check,
    lanes_of,
)
from sim_rows import IDS, LANES, TARGETS, THREADS
from softfloat import Mode

PROGRAMS = Programs()
both, gfx9, gfx11 = PROGRAMS.both, PROGRAMS.gfx9, PROGRAMS.gfx11


def first(mask: int) -> int:
    return (mask & -mask).bit_length() - 1 if mask else 0


# Lanes and scalars.
both("v_readfirstlane_b32", "v_readfirstlane_b32 s20, v2\n v_mov_b32 v8, s20",
     lambda r, e, k: r[2][first(e)])
both("v_readfirstlane_b32 without lanes",
     "s_mov_b64 s[22:23], exec\n s_mov_b64 exec, 0\n v_readfirstlane_b32 s20, v2\n"
     " s_mov_b64 exec, s[22:23]\n v_mov_b32 v8, s20", lambda r, e, k: r[2][0])
both("v_readlane_b32", "s_movk_i32 s21, 0x7d\n v_readlane_b32 s20, v2, s21\n v_mov_b32 v8, s20",
     lambda r, e, k: r[2][0x7D % lanes_of(r)])
both("v_writelane_b32", "s_movk_i32 s20, 0x1234\n v_writelane_b32 v8, s20, 45",
     lambda r, e, k: 0x1234 if k == 45 % lanes_of(r) else r[8][k], all_lanes=True)
both("v_nop", "v_nop\n v_mov_b32 v8, v2", lambda r, e, k: r[2][k])
gfx9("v_clrexcp", "v_clrexcp\n v_mov_b32 v8, v2", lambda r, e, k: r[2][k])
gfx11("v_pipeflush", "v_pipeflush\n v_mov_b32 v8, v2", lambda r, e, k: r[2][k])
SELECT = 0xFEDCBA98_01327654


def _permlane16(other: int, fetch: bool, zero: bool) -> Expected:
    def lane(r: Registers, e: int, k: int) -> int:
        source = ((k & ~15) ^ other) | SELECT >> 4 * (k & 15) & 15
        if fetch or e >> source & 1:
            return r[2][source]
        return 0 if zero else r[8][k]

    return lane


for _name, _other in (("v_permlane16_b32", 0), ("v_permlanex16_b32", 16)):
    for _fi in (0, 1):
        for _bc in (0, 1):
            _sel = f" op_sel:[{_fi},{_bc}]" if _fi or _bc else ""
            gfx11(f"{_name}{_sel}", f"s_mov_b32 s20, {SELECT & 0xFFFFFFFF:#x}\n"
                  f" s_mov_b32 s21, {SELECT >> 32:#x}\n {_name} v8, v2, s20, s21{_sel}",
                  _permlane16(_other, bool(_fi), bool(_bc)))
gfx11("v_permlane64_b32 in wave32", "v_permlane64_b32 v8, v2", lambda r, e, k: r[8][k],
      lanes=(32,))  # does nothing
gfx11("v_permlane64_b32", "v_permlane64_b32 v8, v2", lambda r, e, k: r[2][k ^ 32], lanes=(64,))


def _swap_rows(size: int, control: str) -> Expected:
    """v8 is D, and v9 S: odd rows of D change places with even rows of S."""
    fetch, zero = "fi" in control, "bound_ctrl" in control

    def lane(r: Registers, e: int, k: int) -> tuple[int, int]:
        d, s = r[8][k], r[9][k]
        partner = k ^ size
        there = bool(e >> partner & 1)
        if there or fetch or zero:
            got = r[9 if k & size else 8][partner] if there or fetch else 0
            if k & size:
                d = got
            else:
                s = got
        return d, s

    return lane


for _size in (16, 32):
    for _control in ("", " bound_ctrl:1", " bound_ctrl:1 fi:1"):
        gfx9(f"v_permlane{_size}_swap_b32{_control}",
             f"v_permlane{_size}_swap_b32_e64 v8, v9{_control}", _swap_rows(_size, _control))
both("v_swap_b32", "v_swap_b32 v8, v9", lambda r, e, k: (r[9][k], r[8][k]))
gfx11("v_swap_b16", "v_swap_b16 v8.h, v9.l", lambda r, e, k: (
    r[8][k] & 0xFFFF | (r[9][k] & 0xFFFF) << 16, r[9][k] >> 16 << 16 | r[8][k] >> 16))

# Registers chosen by M0.
gfx11("v_movreld_b32", "s_mov_b32 m0, 4\n v_movreld_b32 v4, v2", lambda r, e, k: r[2][k])
gfx11("v_movrels_b32", "s_mov_b32 m0, 5\n v_movrels_b32 v8, v2", lambda r, e, k: r[7][k])
gfx11("v_movrelsd_b32", "s_mov_b32 m0, 2\n v_movrelsd_b32 v6, v2", lambda r, e, k: r[4][k])
gfx11("v_movrelsd_2_b32", "s_mov_b32 m0, 0x20003\n v_movrelsd_2_b32 v6, v2",
      lambda r, e, k: r[5][k])
gfx11("v_swaprel_b32", "s_mov_b32 m0, 0x20003\n v_swaprel_b32 v6, v6",
      lambda r, e, k: (r[9][k], r[8][k]))
both("s_movrels", "s_mov_b32 s20, 1\n s_mov_b32 s21, 2\n s_mov_b32 s22, 3\n s_mov_b32 s23, 4\n"
     " s_mov_b32 m0, 2\n s_movrels_b32 s30, s20\n s_movrels_b64 s[32:33], s[20:21]\n"
     " v_mov_b32 v8, s30\n v_mov_b32 v9, s33", lambda r, e, k: (3, 4))
both("s_movreld", "s_mov_b32 m0, 2\n s_mov_b32 s32, 7\n s_mov_b32 s33, 8\n s_movreld_b32 s20, s32\n"
     " s_movreld_b64 s[24:25], s[32:33]\n v_mov_b32 v8, s22\n v_mov_b32 v9, s27",
     lambda r, e, k: (7, 8))
gfx11("s_movrelsd_2_b32", "s_mov_b32 m0, 0x20003\n s_mov_b32 s23, 9\n s_movrelsd_2_b32 s30, s20\n"
      " v_mov_b32 v8, s32", lambda r, e, k: 9)
gfx9("s_set_gpr_idx_on", "s_mov_b32 s20, 3\n s_set_gpr_idx_on s20, gpr_idx(SRC0,DST)\n"
     " v_sub_u32 v5, v2, v3\n s_set_gpr_idx_off", lambda r, e, k: (r[5][k] - r[3][k]) % (1 << 32))
gfx9("s_set_gpr_idx_idx", "s_mov_b32 s20, 1\n s_set_gpr_idx_on s20, gpr_idx(SRC1)\n"
     " s_mov_b32 s20, 2\n s_set_gpr_idx_idx s20\n v_sub_u32 v8, v2, v3\n s_set_gpr_idx_off",
     lambda r, e, k: (r[2][k] - r[5][k]) % (1 << 32))
gfx9("s_set_gpr_idx_mode", "s_mov_b32 s20, 2\n s_set_gpr_idx_on s20, gpr_idx(SRC1)\n"
     " s_set_gpr_idx_mode gpr_idx(SRC0)\n v_sub_u32 v8, v2, v3\n s_set_gpr_idx_off\n"
     " v_mov_b32 v9, v2", lambda r, e, k: ((r[4][k] - r[3][k]) % (1 << 32), r[2][k]))
gfx9("s_setvskip", "s_mov_b32 s20, 4\n s_setvskip s20, 2\n v_mov_b32 v8, v2\n s_mov_b32 s21, 77\n"
     " s_setvskip s20, 0\n v_mov_b32 v9, s21", lambda r, e, k: (r[8][k], 77))
both("v_mqsad_u32_u8", "v_mov_b32 v12, v8\n v_mov_b32 v13, v9\n v_mov_b32 v14, v6\n"
     " v_mov_b32 v15, v7\n s_nop 4\n v_mqsad_u32_u8 v[16:19], v[2:3], v4, v[12:15]\n"
     " v_mov_b32 v8, v16\n v_mov_b32 v9, v19", lambda r, e, k: _mqsad(r, k))


def _mqsad(r: Registers, k: int) -> tuple[int, int]:
    add = r[8][k] | r[9][k] << 32 | r[6][k] << 64 | r[7][k] << 96
    made = ROWS["v_mqsad_u32_u8"](Mode(), r[2][k] | r[3][k] << 32, r[4][k], add)
    return made & 0xFFFFFFFF, made >> 96


# VOPD: both halves read before either writes.
gfx11("v_dual", "v_mov_b32 v16, v2\n v_mov_b32 v17, v3\n"
      " v_dual_mov_b32 v16, v17 :: v_dual_add_nc_u32 v17, v16, v17\n"
      " v_mov_b32 v8, v16\n v_mov_b32 v9, v17",
      lambda r, e, k: (r[3][k], (r[2][k] + r[3][k]) % (1 << 32)), lanes=(32,))
gfx11("v_dual accumulates", "v_mov_b32 v16, 2.0\n v_mov_b32 v17, 0x40400000\n"
      " v_dual_fmac_f32 v16, 0x40400000, v17 :: v_dual_fmac_f32 v17, 0x40400000, v16\n"
      " v_mov_b32 v8, v16\n v_mov_b32 v9, v17", lambda r, e, k: (0x41300000, 0x41100000),
      lanes=(32,))
gfx11("v_dual cndmask", "s_mov_b32 vcc_lo, 0x5555\n v_mov_b32 v17, v4\n"
      " v_dual_cndmask_b32 v16, v2, v3 :: v_dual_lshlrev_b32 v17, 3, v17\n"
      " v_mov_b32 v8, v16\n v_mov_b32 v9, v17",
      lambda r, e, k: (r[3 if 0x5555 >> k & 1 else 2][k], r[4][k] << 3 & 0xFFFFFFFF), lanes=(32,))


# DPP: the source lane of each control, or None where there is none.
def _dpp(
    source: Callable[[int, int], int | None], *, masks: tuple[int, int] = (15, 15),
    zero: bool = False, fetch: bool = False,
) -> Expected:
    def lane(r: Registers, e: int, k: int) -> int:
        if not masks[0] >> (k >> 4) & 1 or not masks[1] >> (k >> 2 & 3) & 1:
            return r[8][k]
        at = source(k, lanes_of(r))
        if at is not None and (fetch or e >> at & 1):
            return r[2][at] ^ r[3][k]
        return r[3][k] if zero else r[8][k]

    return lane


def _in_row(k: int, by: int) -> int | None:
    return k + by if 0 <= (k & 15) + by < 16 else None


CONTROLS: dict[str, tuple[tuple[str, ...], Callable[[int, int], int | None]]] = {
    "quad_perm:[3,0,2,1]": (ARCHES, lambda k, n: k & ~3 | (3, 0, 2, 1)[k & 3]),
    "row_shl:3": (ARCHES, lambda k, n: _in_row(k, 3)),
    "row_shr:5": (ARCHES, lambda k, n: _in_row(k, -5)),
    "row_ror:7": (ARCHES, lambda k, n: k & ~15 | (k - 7) & 15),
    "row_mirror": (ARCHES, lambda k, n: k ^ 15),
    "row_half_mirror": (ARCHES, lambda k, n: k ^ 7),
    "wave_shl:1": (("gfx950",), lambda k, n: k + 1 if k < n - 1 else None),
    "wave_rol:1": (("gfx950",), lambda k, n: (k + 1) % n),
    "wave_shr:1": (("gfx950",), lambda k, n: k - 1 if k else None),
    "wave_ror:1": (("gfx950",), lambda k, n: (k - 1) % n),
    "row_bcast:15": (("gfx950",), lambda k, n: (k & ~15) - 1 if k > 15 else None),
    "row_bcast:31": (("gfx950",), lambda k, n: 31 if k > 31 else None),
    "row_newbcast:6": (("gfx950",), lambda k, n: k & ~15 | 6),
    "row_share:9": (("gfx1151",), lambda k, n: k & ~15 | 9),
    "row_xmask:11": (("gfx1151",), lambda k, n: k ^ 11),
}
for _control, (_arches, _source) in CONTROLS.items():
    for _tail, _more in (
        ("row_mask:0xf bank_mask:0xf", {}),
        ("row_mask:0xf bank_mask:0xf bound_ctrl:1", {"zero": True}),
        ("row_mask:0xa bank_mask:0x6", {"masks": (10, 6)}),
        ("row_mask:0xf bank_mask:0xf fi:1", {"fetch": True}),
    ):
        _where = tuple(a for a in _arches if a == "gfx1151" or "fi" not in _tail)
        if _where:
            PROGRAMS.append(Program(f"{_control} {_tail}", _where,
                                    f"v_xor_b32_dpp v8, v2, v3 {_control} {_tail}",
                                    _dpp(_source, **_more)))
_EIGHT = (7, 1, 0, 0, 6, 2, 3, 5)
for _tail, _fetch in (("", False), (" fi:1", True)):
    gfx11(f"dpp8{_tail}", f"v_xor_b32_dpp v8, v2, v3 dpp8:[7,1,0,0,6,2,3,5]{_tail}",
          _dpp(lambda k, n: k & ~7 | _EIGHT[k & 7], zero=True, fetch=_fetch))


@pytest.fixture(scope="module")
def hip(sim_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hip]:
    folder = tmp_path_factory.mktemp("sim")
    with sim_kernels.private_simulator(sim_library, folder, ",".join(ARCHES)) as hip:
        yield hip


@pytest.mark.parametrize("arch, lanes", TARGETS, ids=IDS)
def test_programs(arch: str, lanes: int, hip: Hip, assemble: Callable[..., Path]) -> None:
    wrong = check(hip, assemble, arch, lanes, PROGRAMS)
    assert not wrong, "\n".join(wrong)


def test_every_other_row_has_a_program() -> None:
    """Rows that the tables of test_sim_valu.py and test_sim_salu.py leave to this module."""
    texts = " ".join(p.text for p in PROGRAMS)
    names = {r["name"] for r in netra_sim.rows()
             if r["name"].startswith(("v_read", "v_write", "v_permlane", "v_swap", "v_movrel",
                                      "s_movrel", "s_set_gpr_idx", "s_setvskip", "v_mqsad_u32",
                                      "v_nop", "v_clrexcp", "v_pipeflush"))}
    assert names and not {n for n in names if n not in texts}


@pytest.mark.parametrize(
    "arch, text, sentence",
    [
        ("gfx950", "s_mov_b32 s20, 200\n s_set_gpr_idx_on s20, gpr_idx(SRC0)\n v_mov_b32 v8, v2",
         "s_set_gpr_idx adds 200 to v2: past the 64 VGPRs"),
        ("gfx1151", "s_mov_b32 m0, 100\n v_movrels_b32 v8, v2", "M0 adds 100 to v2: past the 64"),
        ("gfx1151", "s_movk_i32 m0, 0x1000\n s_movrels_b32 s20, s20", "M0 adds 4096 to s20"),
    ],
)
def test_a_register_past_the_allocation_is_a_fault(
    arch: str, text: str, sentence: str, hip: Hip, assemble: Callable[..., Path]
) -> None:
    hip.call("hipSetDevice", ARCHES.index(arch))
    source = sim_rows.kernel(arch, [text], [False])
    function = hip.function(hip.load_module(assemble(source, arch)), "k")
    try:
        with pytest.raises(HipError):
            sim_rows.run(hip, function, [[(0, 0, 0, 0)] * THREADS], mode=Mode().bits(),
                         exec_mask=1, carry=0, lanes=LANES[arch])
        assert sentence in hip.last_fault()
    finally:
        hip.call("netraSimReset")
