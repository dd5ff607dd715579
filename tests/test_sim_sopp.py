"""SOPP: branches, ends, modes, and the hints that change nothing; and SOPK's counter waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import lanes as machine
import numpy as np
import pytest
from lanes import IDS, TARGETS, Bench, Case, State

Benches = dict[tuple[str, int], Bench]

HINTS = [
    "s_nop 0x7", "s_waitcnt vmcnt(0) lgkmcnt(0)", "s_sleep 3", "s_wakeup", "s_setprio 2",
    "s_sendmsg sendmsg(MSG_INTERRUPT)", "s_icache_inv", "s_incperflevel 1", "s_decperflevel 1",
    "s_ttracedata", "s_barrier", "s_setkill 0", "s_sethalt 0", "s_trap 3",
]
HINTS_OF_GFX1151 = [
    "s_ttracedata_imm 5", "s_wait_idle", "s_wait_event 0x1", "s_delay_alu instid0(VALU_DEP_1)",
    "s_clause 0x3", "s_set_inst_prefetch_distance 0x2", "s_waitcnt_depctr 0xfffe",
    "s_waitcnt_vscnt null, 0x0", "s_waitcnt_vmcnt null, 0x0", "s_waitcnt_expcnt null, 0x0",
    "s_waitcnt_lgkmcnt null, 0x0", "s_version UC_VERSION_GFX11",
]
ENDS = ["s_endpgm", "s_endpgm_saved", "s_endpgm_ordered_ps_done", "s_setkill 1"]


@pytest.fixture(scope="module")
def benches(
    assemble: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Benches]:
    with machine.benches(assemble, tmp_path_factory.mktemp("sopp")) as found:
        yield found


@pytest.fixture(params=TARGETS, ids=IDS)
def bench(request: pytest.FixtureRequest, benches: Benches) -> Bench:
    return benches[request.param]


def start(bench: Bench, seed: int) -> State:
    return State.drawn(bench.lanes, np.random.default_rng(seed))


def test_hints_change_nothing(bench: Bench) -> None:
    cases = []
    for k, line in enumerate(HINTS + (HINTS_OF_GFX1151 if bench.gfx11 else [])):
        before = start(bench, k)
        before.vcc = 0x123456789ABCDEF0
        cases.append(Case(line, before, before.copy()))
    bench.check(cases)


# Branch, and whether it is taken with SCC, VCC and EXEC being zero or not.
BRANCHES: dict[str, Callable[[bool, bool, bool], bool]] = {
    "s_branch": lambda scc, vcc, live: True,
    "s_cbranch_scc0": lambda scc, vcc, live: not scc,
    "s_cbranch_scc1": lambda scc, vcc, live: scc,
    "s_cbranch_vccz": lambda scc, vcc, live: not vcc,
    "s_cbranch_vccnz": lambda scc, vcc, live: vcc,
    "s_cbranch_execz": lambda scc, vcc, live: not live,
    "s_cbranch_execnz": lambda scc, vcc, live: live,
    # The conditions of the debugger are never set.
    "s_cbranch_cdbgsys": lambda scc, vcc, live: False,
    "s_cbranch_cdbguser": lambda scc, vcc, live: False,
    "s_cbranch_cdbgsys_or_user": lambda scc, vcc, live: False,
    "s_cbranch_cdbgsys_and_user": lambda scc, vcc, live: False,
}


@pytest.mark.parametrize("upper", [False, True], ids=["low", "high"])
def test_branches(bench: Bench, upper: bool) -> None:
    """`upper`: only the high half of VCC and EXEC differs from zero, which wave32 has not."""
    cases = []
    bit = 1 << (40 if upper else 3)
    for name, taken in BRANCHES.items():
        for state in range(8):
            scc, vcc, live = (bool(state >> k & 1) for k in range(3))
            before = start(bench, state)
            before.vcc = bit if vcc else 0
            before.exec = bit if live and bit >> bench.lanes == 0 else 0
            want = before.copy()
            want.set_s(20, 77 if taken(scc, vcc and bit >> bench.lanes == 0, before.exec != 0)
                       else 78)
            label = f".Ltaken{len(cases)}"
            lines = f"""
        s_cmp_eq_u32 {int(scc)}, 1
        s_movk_i32 s20, 77
        {name} {label}
        s_movk_i32 s20, 78
{label}:"""
            cases.append(Case(lines, before, want, f"{name} scc {scc} vcc {vcc} exec {live}"))
    bench.check(cases)


def test_a_loop_runs_backwards(bench: Bench) -> None:
    before = start(bench, 1)
    want = before.copy()
    want.set_s(20, 10), want.set_s(21, 0)
    bench.check([Case("""
        s_movk_i32 s20, 0
        s_movk_i32 s21, 5
.Lagain:
        s_add_u32 s20, s20, 2
        s_sub_u32 s21, s21, 1
        s_cmp_lg_u32 s21, 0
        s_cbranch_scc1 .Lagain""", before, want)])


def test_what_ends_a_wave(bench: Bench) -> None:
    """Nothing behind it runs: the state is not even stored."""
    done = bench.run([Case(line, start(bench, 2)) for line in ENDS])
    for line, after in zip(ENDS, done, strict=True):
        assert after.block() == bytes(len(after.block())), line


def test_what_stops_a_wave(bench: Bench) -> None:
    rows = [("s_trap 2", "s_trap 2 aborts the launch"), ("s_sethalt 1", "s_sethalt stops the wave")]
    if bench.gfx11:
        rows.append(("s_code_end", "ran into the padding behind the code"))
    cases = [Case(line, start(bench, 4)) for line, _ in rows]
    for (line, why), (code, text) in zip(rows, bench.faults(cases), strict=True):
        assert code == 719 and why in text, f"{line}: {text}"


def test_modes_of_gfx1151(benches: Benches) -> None:
    """They write four bits of MODE each and leave the others."""
    for lanes in (32, 64):
        bench = benches["gfx1151", lanes]
        before = start(bench, 5)
        want = before.copy()
        want.set_s(20, 0xF6), want.set_s(21, 0x56)
        bench.check([Case("""
        s_round_mode 0x6
        s_denorm_mode 0xf
        s_getreg_b32 s20, hwreg(HW_REG_MODE, 0, 8)
        s_denorm_mode 0x5
        s_getreg_b32 s21, hwreg(HW_REG_MODE, 0, 8)
        s_round_mode 0x0
        s_denorm_mode 0xf""", before, want)])


def test_register_indexing_of_gfx950(benches: Benches) -> None:
    bench = benches["gfx950", 64]
    before = start(bench, 6)
    before.exec = (1 << 64) - 1
    before.m0 = 0xABCD1234
    want = before.copy()
    want.v[10], want.v[11], want.v[16] = before.v[4], before.v[2], before.v[2]
    want.m0 = 0xABCD8202  # [7:0] the index, [15:12] the roles; the other bits stay
    want.set_s(20, 2)
    bench.check([Case("""
        s_movk_i32 s20, 2
        s_set_gpr_idx_on s20, gpr_idx(SRC0)
        v_mov_b32 v10, v2
        s_set_gpr_idx_off
        v_mov_b32 v11, v2
        s_set_gpr_idx_on s20, gpr_idx(SRC0)
        s_set_gpr_idx_mode gpr_idx(DST)
        v_mov_b32 v14, v2
        s_set_gpr_idx_off""", before, want)])
