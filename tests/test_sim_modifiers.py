"""Modifiers of vector instructions: SDWA, op_sel, halves, neg and abs, clamp, omod, constants."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import floats
import pytest
import sim_kernels
import sim_rows
import softfloat as sf
from integers import columns, pack, signed
from netra_sim.hip import Hip
from others import COMPARES
from sim_programs import (
    ARCHES,
    CARRY,
    Expected,
    Programs,
    Registers,
    check,
)
from sim_rows import IDS, TARGETS
from softfloat import Mode

U32 = 0xFFFFFFFF
PLAIN = Mode()
PROGRAMS = Programs()
both, gfx9, gfx11 = PROGRAMS.both, PROGRAMS.gfx9, PROGRAMS.gfx11


def f32(x: float) -> int:
    return sf.encode(Fraction(x), "f32")


def add(a: int, b: int) -> int:
    return (a + b) & U32


# ---- SDWA (gfx950) ---------------------------------------------------------------------------
PARTS = {"BYTE_0": (0, 8), "BYTE_1": (8, 8), "BYTE_2": (16, 8), "BYTE_3": (24, 8),
         "WORD_0": (0, 16), "WORD_1": (16, 16), "DWORD": (0, 32)}


def selected(x: int, part: str, sext: bool) -> int:
    shift, width = PARTS[part]
    field = x >> shift & ((1 << width) - 1)
    return signed(field, width) & U32 if sext else field


def placed(x: int, old: int, part: str, unused: str) -> int:
    shift, width = PARTS[part]
    mask = (1 << width) - 1
    if unused == "PRESERVE":
        return old & ~(mask << shift) & U32 | (x & mask) << shift
    made = signed(x & mask, width) << shift if unused == "SEXT" else (x & mask) << shift
    return made & U32


def _sdwa(dst: str, unused: str, a: str, b: str, sext: bool) -> Expected:
    def lane(r: Registers, e: int, k: int) -> int:
        x = add(selected(r[2][k], a, sext), selected(r[3][k], b, False))
        return x if dst == "DWORD" else placed(x, r[8][k], dst, unused)

    return lane


for _k, _dst in enumerate(PARTS):
    for _unused in ("PAD", "SEXT", "PRESERVE"):
        _a, _b = list(PARTS)[(_k + 2) % 7], list(PARTS)[(_k + 5) % 7]
        for _sext in (False, True):
            _s0 = "sext(v2)" if _sext else "v2"
            gfx9(f"SDWA {_dst} {_unused} {_a} {_b} {_s0}",
                 f"v_add_u32_sdwa v8, {_s0}, v3 dst_sel:{_dst} dst_unused:UNUSED_{_unused} "
                 f"src0_sel:{_a} src1_sel:{_b}", _sdwa(_dst, _unused, _a, _b, _sext))
gfx9("SDWA f16 neg abs", "v_add_f16_sdwa v8, -v2, |v3| dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE "
     "src0_sel:WORD_1 src1_sel:WORD_0", lambda r, e, k: r[8][k] & 0xFFFF | sf.add(
         r[2][k] >> 16 ^ 0x8000, r[3][k] & 0x7FFF, "f16", PLAIN) << 16)
gfx9("SDWA compare", "v_cmp_lt_u32_sdwa s[12:13], v2, v3 src0_sel:BYTE_2 src1_sel:BYTE_0",
     lambda r, e, k: (r[8][k], r[9][k], int(r[2][k] >> 16 & 255 < r[3][k] & 255)))
gfx9("SDWA compare of a scalar",
     "s_mov_b32 s20, 0x80\n v_cmp_gt_u32_sdwa s[12:13], s20, v3 src0_sel:DWORD src1_sel:BYTE_3",
     lambda r, e, k: (r[8][k], r[9][k], int(r[3][k] >> 24 < 0x80)))

# ---- halves ----------------------------------------------------------------------------------
gfx9("op_sel", "v_mad_u16 v8, v2, v3, v4 op_sel:[1,0,1,1]", lambda r, e, k: (
    r[8][k] & 0xFFFF | ((r[2][k] >> 16) * (r[3][k] & 0xFFFF) + (r[4][k] >> 16)) << 16) & U32)
gfx9("op_sel of two sources", "v_add_i16 v8, v2, v3 op_sel:[1,0,1]", lambda r, e, k: (
    r[8][k] & 0xFFFF | ((r[2][k] >> 16) + r[3][k]) << 16) & U32)
gfx11("v.h", "v_mad_u16 v8.h, v2.h, v3.l, v4.h", lambda r, e, k: (
    r[8][k] & 0xFFFF | ((r[2][k] >> 16) * (r[3][k] & 0xFFFF) + (r[4][k] >> 16)) << 16) & U32)
gfx11("v_mov_b16", "v_mov_b16_e32 v8.h, v2.l",
      lambda r, e, k: r[8][k] & 0xFFFF | (r[2][k] & 0xFFFF) << 16)
gfx11("v_cvt_f16_f32 keeps the other half", "v_cvt_f16_f32_e64 v8.h, 1.0",
      lambda r, e, k: r[8][k] & 0xFFFF | 0x3C000000)
gfx11("v_cmp of halves", "v_cmp_lt_u16_e64 MASK, v2.h, v3.l",
      lambda r, e, k: (r[8][k], r[9][k], int(r[2][k] >> 16 < r[3][k] & 0xFFFF)))
gfx11("v_cndmask_b16", "v_cndmask_b16 v8.h, v2.h, v3.l, CARRIES", lambda r, e, k: (
    r[8][k] & 0xFFFF | (r[3][k] if CARRY >> k & 1 else r[2][k] >> 16) << 16) & U32)
gfx11("v_alignbit of a half", "v_alignbit_b32 v8, v2, v3, v4.h",
      lambda r, e, k: (r[2][k] << 32 | r[3][k]) >> (r[4][k] >> 16) % 32 & U32)
gfx11("v_fmac_f16 adds to the half that it writes",
      "v_mov_b32 v8, 0x3800dead\n v_mov_b16_e32 v10.l, 2.0\n v_mov_b16_e32 v10.h, 0x4200\n"
      " v_fmac_f16_e64 v8.h, v10.l, v10.h", lambda r, e, k: 0x4680DEAD)
both("VOP3P op_sel", "v_pk_sub_i16 v8, v2, v3 op_sel:[1,0] op_sel_hi:[0,1]", lambda r, e, k: pack(
    [(r[2][k] >> 16) - r[3][k], r[2][k] - (r[3][k] >> 16)], 16))
both("VOP3P neg", "v_pk_mul_f16 v8, v2, v3 neg_lo:[1,0] neg_hi:[0,1]", lambda r, e, k: pack(
    [sf.mul(a, b, "f16", PLAIN)
     for a, b in columns(16, 2, r[2][k] ^ 0x8000, r[3][k] ^ 0x80000000)], 16))
both("VOP3P inline float", "v_pk_add_u16 v8, v2, 2.0", lambda r, e, k: pack(
    [r[2][k], (r[2][k] >> 16) + 0x4000], 16))
both("VOP3P inline half", "v_mov_b32 v8, 0x40003c00\n v_pk_add_f16 v8, v8, 1.0",
     lambda r, e, k: 0x40004000)
gfx9("v_pk_add_f32 op_sel", "v_pk_add_f32 v[8:9], v[2:3], v[4:5] op_sel:[1,0] op_sel_hi:[0,0]",
     lambda r, e, k: (sf.add(r[3][k], r[4][k], "f32", PLAIN),
                      sf.add(r[2][k], r[4][k], "f32", PLAIN)))
gfx9("v_pk_mul_f32 by a constant", "v_pk_mul_f32 v[8:9], v[2:3], 2.0 op_sel_hi:[1,0] neg_hi:[1,0]",
     lambda r, e, k: (sf.mul(r[2][k], f32(2), "f32", PLAIN),
                      sf.mul(r[3][k] ^ 1 << 31, f32(2), "f32", PLAIN)))

# ---- signs, clamp, omod ----------------------------------------------------------------------
both("neg and abs", "v_add_f32_e64 v8, -v2, |v3|", lambda r, e, k: floats.ROWS["v_add_f32"](
    PLAIN, r[2][k] ^ 1 << 31, r[3][k] & U32 >> 1))
both("neg of abs", "v_mul_f64 v[8:9], -|v[2:3]|, v[4:5]", lambda r, e, k: _pair(sf.mul(
    r[2][k] | (r[3][k] | 1 << 31) << 32, r[4][k] | r[5][k] << 32, "f64", PLAIN)))
both("v_cndmask_b32 neg", "v_cndmask_b32_e64 v8, -v2, |v3|, VCC", lambda r, e, k: (
    r[3][k] & U32 >> 1 if CARRY >> k & 1 else r[2][k] ^ 1 << 31))
both("v_cmp_class neg", "v_mov_b32 v10, 0x11c\n v_cmp_class_f32_e64 VCC, -|v2|, v10\n"
     " v_cndmask_b32_e64 v8, 0, 1, VCC",
     lambda r, e, k: int(not sf.is_nan(r[2][k], "f32") and r[2][k] & U32 >> 1 != 0))


def _pair(x: int) -> tuple[int, int]:
    return x & U32, x >> 32


def clamped(x: int, fmt: str, mode: Mode) -> int:
    if sf.is_nan(x, fmt):
        return 0 if mode.dx10 else x
    one = sf.encode(Fraction(1), fmt)
    return 0 if sf.negative(x, fmt) or sf.is_zero(x, fmt) else min(x, one)


for _mode in (PLAIN, Mode(dx10=False)):
    both("clamp f32", "v_add_f32_e64 v8, v2, v3 clamp", lambda r, e, k, m=_mode: clamped(
        sf.add(r[2][k], r[3][k], "f32", m), "f32", m), mode=_mode)
    both("clamp f64", "v_add_f64 v[8:9], v[2:3], v[4:5] clamp", lambda r, e, k, m=_mode: _pair(
        clamped(sf.add(r[2][k] | r[3][k] << 32, r[4][k] | r[5][k] << 32, "f64", m), "f64", m)),
         mode=_mode)
    both("clamp pk_f16", "v_pk_add_f16 v8, v2, v3 clamp", lambda r, e, k, m=_mode: pack(
        [clamped(sf.add(a, b, "f16", m), "f16", m)
         for a, b in columns(16, 2, r[2][k], r[3][k])], 16), mode=_mode)
OMOD = Mode(denorm32=0, ieee=False)


def scaled(x: int, power: int, mode: Mode) -> int:
    """omod on a rounded f32; only a halving keeps the sign of a result that vanishes."""
    if sf.is_nan(x, "f32") or sf.is_inf(x, "f32"):
        return x
    if sf.flush(x, "f32") & U32 >> 1 == 0:
        return 0
    return sf.result(sf._scaled(sf.value(x, "f32"), power), "f32", mode, sf.negative(x, "f32"))


for _word, _power in (("mul:2", 1), ("mul:4", 2), ("div:2", -1)):
    both(f"omod {_word}", f"v_add_f32_e64 v8, v2, v3 {_word}", lambda r, e, k, p=_power: scaled(
        sf.add(r[2][k], r[3][k], "f32", OMOD), p, OMOD), mode=OMOD)
    both(f"omod {_word} without effect", f"v_add_f32_e64 v8, v2, v3 {_word}",
         lambda r, e, k: sf.add(r[2][k], r[3][k], "f32", PLAIN))

# ---- signs, clamp and omod of conversions; of DPP sources; of pairs ---------------------------


def _row(name: str, r: Registers, k: int, *signs: str, mode: Mode = PLAIN) -> int:
    """A row on v2 and v3, each "" as it is, "-" negated, "||" without its sign or "-||"."""
    sources = []
    for register, sign in zip((2, 3), signs, strict=False):
        x = r[register][k] & (U32 >> 1 if "||" in sign else U32)
        sources.append(x ^ (1 << 31 if "-" in sign else 0))
    return floats.ROWS[name](mode, *sources)


both("v_cvt_i32_f32 neg abs", "v_cvt_i32_f32_e64 v8, -|v2|",
     lambda r, e, k: _row("v_cvt_i32_f32", r, k, "-||"))
both("v_cvt_f64_f32 neg", "v_cvt_f64_f32_e64 v[8:9], -v2",
     lambda r, e, k: _pair(_row("v_cvt_f64_f32", r, k, "-")))
gfx9("v_cvt_f16_f32 neg abs clamp", "v_cvt_f16_f32_e64 v8, -|v2| clamp", lambda r, e, k: clamped(
    _row("v_cvt_f16_f32", r, k, "-||"), "f16", PLAIN))
gfx11("v_cvt_f16_f32 neg clamp", "v_cvt_f16_f32_e64 v8.l, -v2 clamp", lambda r, e, k: (
    r[8][k] >> 16 << 16 | clamped(_row("v_cvt_f16_f32", r, k, "-"), "f16", PLAIN)))
both("v_cvt_f32_i32 clamp", "v_cvt_f32_i32_e64 v8, v2 clamp",
     lambda r, e, k: clamped(_row("v_cvt_f32_i32", r, k, ""), "f32", PLAIN))
both("v_cvt_f32_i32 mul:4", "v_cvt_f32_i32_e64 v8, v2 mul:4",
     lambda r, e, k: scaled(_row("v_cvt_f32_i32", r, k, "", mode=OMOD), 2, OMOD), mode=OMOD)
both("v_cvt_f32_ubyte2 clamp", "v_cvt_f32_ubyte2_e64 v8, v2 clamp",
     lambda r, e, k: f32(min(1, r[2][k] >> 16 & 255)))
gfx9("v_cvt_pk_bf16_f32 neg abs", "v_cvt_pk_bf16_f32 v8, -v2, |v3|",
     lambda r, e, k: _row("v_cvt_pk_bf16_f32", r, k, "-", "||"))
gfx9("v_cvt_pk_f16_f32 neg abs", "v_cvt_pk_f16_f32 v8, -v2, |v3|",
     lambda r, e, k: _row("v_cvt_pk_f16_f32", r, k, "-", "||"))
gfx9("v_cvt_pkrtz_f16_f32 abs neg", "v_cvt_pkrtz_f16_f32_e64 v8, |v2|, -v3",
     lambda r, e, k: _row("v_cvt_pkrtz_f16_f32", r, k, "||", "-"))
gfx11("v_cvt_pk_rtz_f16_f32 abs neg", "v_cvt_pk_rtz_f16_f32_e64 v8, |v2|, -v3",
      lambda r, e, k: _row("v_cvt_pk_rtz_f16_f32", r, k, "||", "-"))
gfx11("v_cvt_pk_i16_f32 neg abs", "v_cvt_pk_i16_f32 v8, -v2, |v3|",
      lambda r, e, k: _row("v_cvt_pk_i16_f32", r, k, "-", "||"))
both("DPP neg abs", "v_add_f32_dpp v8, -v2, |v3| quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf"
     " bound_ctrl:1", lambda r, e, k: sf.add(
         (r[2][k ^ 1] if e >> (k ^ 1) & 1 else 0) ^ 1 << 31, r[3][k] & U32 >> 1, "f32", PLAIN))
gfx9("v_pk_mul_f32 by a pair of SGPRs", "s_mov_b32 s20, 2.0\n s_mov_b32 s21, 0.5\n"
     " v_pk_mul_f32 v[8:9], v[2:3], s[20:21]", lambda r, e, k: (
         sf.mul(r[2][k], f32(2), "f32", PLAIN), sf.mul(r[3][k], f32(Fraction(1, 2)), "f32", PLAIN)))
gfx9("clamp of a compare", "v_cmp_lt_f32_e64 MASK, v2, v3 clamp", lambda r, e, k: (
    r[8][k], r[9][k], COMPARES["lt_f32"](PLAIN, r[2][k], r[3][k])))
# 1 * 2^-53 + 1 lies halfway between two numbers.
for _round, _low in ((sf.NEAREST, 0), (sf.UP, 1), (sf.DOWN, 0), (sf.ZERO, 0)):
    both("v_fma_f64 by MODE", "v_mov_b32 v10, 0\n v_mov_b32 v11, 0x3ff00000\n v_mov_b32 v12, 0\n"
         " v_mov_b32 v13, 0x3ca00000\n v_fma_f64 v[8:9], v[10:11], v[12:13], v[10:11]",
         lambda r, e, k, low=_low: (low, 0x3FF00000), mode=Mode(round64=_round))
    gfx9("v_fmac_f64 by MODE", "v_mov_b32 v8, 0\n v_mov_b32 v9, 0x3ff00000\n v_mov_b32 v12, 0\n"
         " v_mov_b32 v13, 0x3ca00000\n v_mov_b32 v10, 0\n v_mov_b32 v11, 0x3ff00000\n"
         " v_fmac_f64_e64 v[8:9], v[10:11], v[12:13]",
         lambda r, e, k, low=_low: (low, 0x3FF00000), mode=Mode(round64=_round))

# ---- masks through DPP -----------------------------------------------------------------------
_DPP = "row_shr:1 row_mask:0xf bank_mask:0xf"


def _suppressed(r: Registers, e: int, k: int) -> bool:
    return k % 16 == 0 or not e >> k - 1 & 1


gfx11("a compare that DPP leaves out is 0", f"v_cmp_ge_u32_e64_dpp MASK, v2, v3 {_DPP}",
      lambda r, e, k: (r[8][k], r[9][k],
                       int(not _suppressed(r, e, k) and r[2][k - 1] >= r[3][k])))
gfx9("a carry that DPP leaves out stays",
     f"v_add_co_u32_dpp v8, vcc, v2, v3 {_DPP}\n s_mov_b64 s[12:13], vcc",
     lambda r, e, k: (r[8][k], r[9][k], CARRY >> k & 1) if _suppressed(r, e, k) else (
         add(r[2][k - 1], r[3][k]), r[9][k], r[2][k - 1] + r[3][k] >> 32))
gfx9("64-bit row_newbcast",
     "v_mov_b64_dpp v[8:9], v[2:3] row_newbcast:5 row_mask:0xf bank_mask:0xf",
     lambda r, e, k: (r[2][k & ~15 | 5], r[3][k & ~15 | 5]) if e >> (k & ~15 | 5) & 1
     else (r[8][k], r[9][k]))

# ---- constants -------------------------------------------------------------------------------
both("inline -4.0", "v_mov_b32_e32 v8, -4.0", lambda r, e, k: 0xC0800000)
both("1/(2 pi)", "v_mov_b32_e32 v8, 0.15915494", lambda r, e, k: 0x3E22F983)
both("1/(2 pi) f64", "v_add_f64 v[8:9], 0, 0.15915494309189532",
     lambda r, e, k: _pair(0x3FC45F306DC9C882))
both("inline integer in f64", "v_max_f64 v[8:9], 1, 1", lambda r, e, k: (1, 0))
both("literal in f64", "v_mov_b32 v10, 0\n v_mov_b32 v11, 0x40100000\n"
     " v_cmp_lt_f64 VCC, 0x40000000, v[10:11]\n"
     " v_cndmask_b32_e64 v8, 0, 1, VCC", lambda r, e, k: 1)
both("literal in u64", "v_mov_b32 v10, -1\n v_mov_b32 v11, 0\n"
     " v_cmp_lt_u64 VCC, 0x80000000, v[10:11]\n v_cndmask_b32_e64 v8, 0, 1, VCC",
     lambda r, e, k: 1)
both("s_mov_b64 inline float", "s_mov_b64 s[20:21], 1.0\n v_mov_b32 v8, s20\n v_mov_b32 v9, s21",
     lambda r, e, k: (0, 0x3FF00000))
both("s_mov_b64 literal", "s_mov_b64 s[20:21], 0x80000000\n v_mov_b32 v8, s20\n v_mov_b32 v9, s21",
     lambda r, e, k: (0x80000000, 0))
gfx11("VCC_HI is not the compare's", "s_mov_b32 vcc_hi, 77\n v_cmp_eq_u32 vcc_lo, v2, v2\n"
      " v_mov_b32 v8, vcc_hi", lambda r, e, k: 77, lanes=(32,))
gfx11("vccz looks at the low word", "s_mov_b64 vcc, 0\n s_mov_b32 vcc_hi, 1\n s_mov_b32 s20, 1\n"
      " s_cbranch_vccz .Lzero\n s_mov_b32 s20, 2\n.Lzero:\n v_mov_b32 v8, s20",
      lambda r, e, k: 1, lanes=(32,))
gfx11("null", "s_mov_b32 s20, null\n s_add_u32 null, -1, 1\n s_cselect_b32 s21, 5, 6\n"
      " v_mov_b32 v8, s20\n v_mov_b32 v9, s21", lambda r, e, k: (0, 5))
both("mbcnt counts the lanes", "v_mbcnt_lo_u32_b32 v8, -1, 0\n v_mbcnt_hi_u32_b32 v8, -1, v8",
     lambda r, e, k: k)


@pytest.fixture(scope="module")
def hip(sim_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hip]:
    folder = tmp_path_factory.mktemp("sim")
    with sim_kernels.private_simulator(sim_library, folder, ",".join(ARCHES)) as hip:
        yield hip


def _two_floats(rng: random.Random) -> int:
    return sim_rows.draw("pk32", rng) if rng.random() < 0.5 else sim_rows.draw("f64", rng)


@pytest.mark.parametrize("arch, lanes", TARGETS, ids=IDS)
def test_programs(arch: str, lanes: int, hip: Hip, assemble: Callable[..., Path]) -> None:
    wrong = check(hip, assemble, arch, lanes, PROGRAMS, _two_floats)
    assert not wrong, "\n".join(wrong)
