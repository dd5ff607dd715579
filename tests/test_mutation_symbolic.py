"""Proof on terms that two kernels do the same: what is proved, and what must not be."""

from __future__ import annotations

import pytest
from netra_harness.mutation import campaign, decoded, equivalence, symbolic
from netra_harness.mutation.operators import VALUES, mutants
from netra_harness.mutation.terms import ALL, Terms


def _program(*texts: str) -> decoded.Program:
    """One instruction each 8 bytes; `@N` after a branch is the index it goes to."""
    rows = ["0000000000001000 <k>:"]
    for i, text in enumerate((*texts, "s_endpgm")):
        code, _, target = text.partition("@")
        to = f" <k+{int(target) * 8:#x}>" if target else ""
        rows.append(f"\t{code.strip()}    // {0x1000 + 8 * i:012X}: 00000000{to}")
    return decoded.program("\n".join(rows), "k")


STORE = "global_store_dword v2, v1, s[4:5]"
LOAD = "global_load_dword v1, v0, s[4:5]"
SUM = tuple(
    f"v_add_f32_dpp v1, v1, v1 {how} row_mask:0xf bank_mask:0xf"
    for how in ("quad_perm:[1,0,3,2]", "quad_perm:[2,3,0,1]", "row_half_mirror", "row_mirror")
)
LANE = ("v_mov_b32_e32 v2, s6", "s_mov_b64 exec, {}", STORE)


def _pair(name: str, texts: tuple[str, ...], one: str, other: str, equal: bool) -> object:
    """`{}` in the texts is where the two programs differ."""
    sides = [tuple(text.replace("{}", what) for text in texts) for what in (one, other)]
    return pytest.param(*sides, equal, id=name.replace(" ", "-"))


PAIRS = [
    _pair("a register", (LOAD, "v_add_f32_e32 v1, {}, v1", STORE), "s6", "s7", False),
    _pair("factors change places", (LOAD, "v_mul_f32_e32 v1, {}", STORE), "v3, v1", "v1, v3", True),
    _pair("not of a difference", (LOAD, "v_sub_f32_e32 v1, {}", STORE), "v3, v1", "v1, v3", False),
    _pair("a bit that is shifted out",
          (LOAD, "v_or_b32_e32 v1, {}, v1", "v_lshrrev_b32_e32 v1, 16, v1", STORE),
          "0x400000", "0x400001", True),
    _pair("a bit that stays",
          (LOAD, "v_or_b32_e32 v1, {}, v1", "v_lshrrev_b32_e32 v1, 16, v1", STORE),
          "0x400000", "0x410000", False),
    _pair("a bit that carries",
          (LOAD, "v_add_u32_e32 v1, {}, v1", "v_lshrrev_b32_e32 v1, 16, v1", STORE),
          "0x7fff", "0x8000", False),
    _pair("a carry that goes up",
          (LOAD, "v_add_u32_e32 v1, {}, v1", "v_and_b32_e32 v1, 0xffff, v1", STORE),
          "0x7fff", "0x17fff", True),
    _pair("a byte that v_perm leaves out",
          (LOAD, "v_xor_b32_e32 v1, {}, v1", "v_perm_b32 v1, v1, v3, 0x7060302", STORE),
          "1", "2", True),
    _pair("a byte that v_perm takes",
          (LOAD, "v_xor_b32_e32 v1, {}, v1", "v_perm_b32 v1, v1, v3, 0x7060302", STORE),
          "1", "0x10000", False),
    _pair("a bit that v_bfi leaves out",
          (LOAD, "v_xor_b32_e32 v1, {}, v1", "s_mov_b32 s6, 0xffff0000",
           "v_bfi_b32 v1, s6, v1, v3", STORE), "1", "2", True),
    _pair("a bit that v_bfi takes",
          (LOAD, "v_xor_b32_e32 v1, {}, v1", "s_mov_b32 s6, 0xffff0000",
           "v_bfi_b32 v1, s6, v3, v1", STORE), "1", "2", False),
    _pair("a half that is not stored",
          (LOAD, "v_xor_b32_e32 v1, {}, v1", "global_store_short v2, v1, s[4:5]"),
          "1", "0x10001", True),
    _pair("a register that nobody reads", (LOAD, "v_mov_b32_e32 v7, {}", STORE), "1", "2", True),
    _pair("a lane of sixteen that hold one sum", (LOAD, *SUM, *LANE), "1", "2", True),
    _pair("a lane of another row", (LOAD, *SUM, *LANE), "1", "0x10000", False),
    _pair("a lane before the sum is complete", (LOAD, *SUM[:3], *LANE), "1", "0x100", False),
    _pair("another lane of eight", (LOAD, *SUM[:3], *LANE), "1", "2", True),
    _pair("lanes that shift away",
          ("v_lshrrev_b32_e32 v2, 4, v0", "s_mov_b64 exec, {}", "v_mov_b32_e32 v1, 0", STORE),
          "1", "0x8000", True),
    _pair("lanes that do not",
          ("v_lshrrev_b32_e32 v2, 4, v0", "s_mov_b64 exec, {}", "v_mov_b32_e32 v1, 0", STORE),
          "1", "0x10000", False),
    _pair("where a load asks", ("global_load_dword v7, v0, s[4:5]{}", STORE), "", " offset:4",
          False),
    _pair("another register is clobbered", (LOAD, "v_mov_b32_e32 {}, 0", STORE), "v2", "v3", False),
    _pair("a limit between two steps",
          ("s_mov_b32 s6, 0", "s_add_u32 s6, s6, 4", "s_cmp_gt_u32 s6, {}", "s_cbranch_scc0 0 @1",
           "v_mov_b32_e32 v1, s6", STORE), "60", "61", True),
    _pair("a limit past a step",
          ("s_mov_b32 s6, 0", "s_add_u32 s6, s6, 4", "s_cmp_gt_u32 s6, {}", "s_cbranch_scc0 0 @1",
           "v_mov_b32_e32 v1, s6", STORE), "60", "64", False),
    _pair("a limit that is not known", ("s_cmp_gt_u32 s6, {}", "s_cbranch_scc0 0 @3", STORE),
          "60", "61", False),
    _pair("both ways lead to the same",
          ("s_cmp_gt_u32 s6, 4", "s_cbranch_scc0 0 @3", "v_mov_b32_e32 v7, {}", STORE),
          "60", "61", True),
    _pair("one way does not",
          ("s_cmp_gt_u32 s6, 4", "s_cbranch_scc0 0 @3", "v_mov_b32_e32 v1, {}", STORE),
          "60", "61", False),
    _pair("a loop without an end that is known",
          ("s_add_u32 s6, s6, 4", "s_cmp_gt_u32 s6, s7", "s_cbranch_scc0 0 @0",
           "v_mov_b32_e32 v7, {}", STORE), "1", "2", True),
    _pair("a fault behind such a loop",
          ("s_add_u32 s6, s6, 4", "s_cmp_gt_u32 s6, s7", "s_cbranch_scc0 0 @0",
           "v_mov_b32_e32 v1, {}", STORE), "1", "2", False),
    _pair("a fault in it", ("v_mov_b32_e32 v1, 0", "v_add_u32_e32 v1, {}, v1",
                            "s_add_u32 s6, s6, 4", "s_cmp_gt_u32 s6, s7", "s_cbranch_scc0 0 @1",
                            STORE), "1", "2", False),
    _pair("a fault in it that is thrown away",
          ("v_mov_b32_e32 v1, 0", "v_add_u32_e32 v1, 1, v1", "v_mov_b32_e32 v7, {}",
           "s_add_u32 s6, s6, 4", "s_cmp_gt_u32 s6, s7", "s_cbranch_scc0 0 @1", STORE), "1", "2",
          True),
    _pair("a fault of the first round alone",
          ("v_mov_b32_e32 v1, {}", "s_add_u32 s6, s6, 4", "s_cmp_gt_u32 s6, s7",
           "s_cbranch_scc0 0 @1", STORE), "1", "2", False),
    _pair("a fault of the second round",
          ("s_mov_b32 s8, 0", "s_mov_b32 s9, {}", "v_mov_b32_e32 v1, s8", "s_mov_b32 s8, s9",
           "s_add_u32 s6, s6, 4", "s_cmp_gt_u32 s6, s7", "s_cbranch_scc0 0 @2", STORE), "1", "2",
          False),
    _pair("an atomic of another lane",
          ("v_mov_b32_e32 v2, 0", "s_mov_b64 exec, {}", "v_mov_b32_e32 v1, 4",
           "global_atomic_add v3, v2, v1, s[4:5] sc0", "v_readfirstlane_b32 s6, v3",
           "s_mov_b64 exec, -1", "v_mov_b32_e32 v1, s6", STORE), "1", "2", True),
    _pair("an atomic of more lanes",
          ("v_mov_b32_e32 v2, 0", "s_mov_b64 exec, {}", "v_mov_b32_e32 v1, 4",
           "global_atomic_add v2, v1, s[4:5]", "s_endpgm"), "1", "3", False),
    _pair("a column of a matrix",
          ("v_mfma_f32_16x16x32_f16 v[4:7], v[8:11], v[12:15], 0", "v_mov_b32_e32 v1, v4",
           "v_mov_b32_e32 v2, s6", "s_mov_b64 exec, {}", STORE), "1", "2", False),
    _pair("a carry", ("v_add_co_u32_e32 v3, vcc, {}, v0", "v_addc_co_u32_e32 v1, vcc, v1, v1, vcc",
                      STORE), "s6", "s7", False),
    _pair("SCC of a sum", ("s_add_u32 s6, s6, {}", "s_mov_b32 s6, 0", "s_cselect_b32 s7, 1, 2",
                           "v_mov_b32_e32 v1, s7", STORE), "4", "5", False),
    _pair("a part of a register is kept",
          ("v_mov_b32_e32 v1, {}", "v_cvt_pk_fp8_f32 v1, v3, v4 op_sel:[0,0,1]", STORE), "1", "2",
          False),
    _pair("an accumulator", ("v_mov_b32_e32 v1, {}", "v_fmac_f32_e32 v1, v3, v4", STORE), "1", "2",
          False),
    _pair("LDS between waves", ("ds_write_b32 v0, {}", "s_barrier", "ds_read_b32 v1, v0", STORE),
          "v3", "v4", False),
]  # fmt: skip


@pytest.mark.parametrize("one, other, equal", PAIRS)
def test_what_is_proved(one: tuple[str, ...], other: tuple[str, ...], equal: bool) -> None:
    assert symbolic.same(_program(*one), _program(*other), 64, 4) is equal
    assert symbolic.same(_program(*one), _program(*one), 64, 4)


@pytest.mark.parametrize("value", [0, 1, 0x12345678, 0x80000001, ALL])
@pytest.mark.parametrize("mask", [1, 0xFF00, 0xFFFF0000, 0x80000000, ALL])
def test_operations_on_numbers(value: int, mask: int) -> None:
    """Numbers go through the same rules as unknowns."""
    t = Terms()
    x, m = t.const(value), t.const(mask)
    found = [t.add(x, m), t.multiply(x, m), t.both(x, m), t.either(x, m), t.differ(x, m)]
    want = [value + mask, value * mask, value & mask, value | mask, value ^ mask]
    assert [t.value(one) for one in found] == [number & ALL for number in want]
    assert t.value(t.left(x, 5)) == value << 5 & ALL and t.value(t.right(x, 5)) == value >> 5
    assert t.value(t.masked(x, mask)) == value & mask


@pytest.mark.parametrize("wave", [0, 1, 3, 15])
@pytest.mark.parametrize("count", [0, 1, 3, 6])
@pytest.mark.parametrize("mask", [1, 3, 12, 48, 0xFF0, ALL])
def test_a_thread_is_its_wave_and_its_lane(wave: int, count: int, mask: int) -> None:
    """Lanes with equal terms have equal numbers, in every wave."""
    t = Terms()
    by_term: dict[int, set[int]] = {}
    for lane in range(64):
        term = t.masked(t.right(t.thread(64, lane), count), mask)
        by_term.setdefault(term, set()).add((64 * wave + lane >> count) & mask)
    assert all(len(numbers) == 1 for numbers in by_term.values())
    assert count == 0 or mask == 1 or len(by_term) < 64


def test_no_proof_for_faults_that_show() -> None:
    """Of a whole kernel: each value that decides, and the one bit that does not."""
    kernel = campaign.load("gfx1151", "silu_mul_bf16", 256)
    made = [m for m in mutants(kernel) if m.operator in VALUES]
    proved = [m.before for m in made if equivalence.reason(kernel, m)]
    assert len(made) > 15
    assert [text.split()[:3] for text in proved] == [["v_or_b32", "v[vR+\\i],", "0x00400000,"]]
