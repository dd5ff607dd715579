"""Every vector ALU row of the simulator against an arithmetic of its own (tests/reference).

One kernel a target runs all rows; each launch has another MODE and EXEC.  A row without an entry
fails `test_every_row_has_a_reference`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import driven
import floats
import integers
import netra_sim
import others
import pytest
import sim_kernels
import sim_rows
import trans
from netra_sim.hip import Hip
from sim_rows import IDS, TARGETS, THREADS, WIDTH, Case
from softfloat import DOWN, NEAREST, UP, ZERO, Mode

Reference = Callable[..., Any]
ARCHES = ("gfx950", "gfx1151")
CLASSES = ("vop1", "vop2", "vop3", "vop3p", "vopc")

# Rows that another module drives: lanes and registers chosen at run time (test_sim_lanes.py), and
# the narrow formats and dot products of floats.
ELSEWHERE = (
    "v_readfirstlane_b32 v_readlane_b32 v_writelane_b32 v_permlane16_b32 v_permlanex16_b32 "
    "v_permlane64_b32 v_permlane16_swap_b32 v_permlane32_swap_b32 v_swap_b32 v_swap_b16 "
    "v_movreld_b32 v_movrels_b32 v_movrelsd_b32 v_movrelsd_2_b32 v_swaprel_b32 v_mqsad_u32_u8 "
    "v_nop v_clrexcp v_pipeflush"
).split()


def _elsewhere(name: str) -> bool:
    narrow = ("fp8", "bf8", "fp6", "bf6", "fp4", "cvt_sr_", "scalef32")
    floating_dot = name.startswith("v_dot2") and not name.endswith(("_i16", "_u16"))
    return name in ELSEWHERE or floating_dot or any(part in name for part in narrow)


# A source that the text spells out, and instructions that need more than their operands.
K32, K16 = 0x40490FDB, 0x4248
TEXTS = {
    "v_fmamk_f32": f"v_fmamk_f32 v8, v2, {K32:#x}, v6",
    "v_fmaak_f32": f"v_fmaak_f32 v8, v2, v4, {K32:#x}",
    "v_fmamk_f16": f"v_fmamk_f16 v8.l, v2.l, {K16:#x}, v6.l",
    "v_fmaak_f16": f"v_fmaak_f16 v8.l, v2.l, v4.l, {K16:#x}",
    "v_madmk_f16": f"v_madmk_f16 v8, v2, {K16:#x}, v6",
    "v_madak_f16": f"v_madak_f16 v8, v2, v4, {K16:#x}",
    "v_pk_mov_b32": "v_pk_mov_b32 v[8:9], v[2:3], v[4:5] op_sel:[0,1]",
    "v_accvgpr_read_b32": "v_accvgpr_write_b32 a2, v2\n v_accvgpr_read_b32 v8, a2",
    "v_accvgpr_write_b32": "v_accvgpr_write_b32 a3, v2\n v_accvgpr_read_b32 v8, a3",
    "v_accvgpr_mov_b32": "v_accvgpr_write_b32 a2, v2\n v_accvgpr_mov_b32 a3, a2\n"
                         " v_accvgpr_read_b32 v8, a3",
}
CONSTANTS = {
    "v_fmamk_f32": (None, K32, None), "v_fmaak_f32": (None, None, K32),
    "v_fmamk_f16": (None, K16, None), "v_fmaak_f16": (None, None, K16),
    "v_madmk_f16": (None, K16, None), "v_madak_f16": (None, None, K16),
}
SUFFIXES = {"v_bitop3": f" bitop3:{integers.BITOP3:#x}",
            "v_fma_mix": " op_sel:[0,0,1] op_sel_hi:[0,1,1]",
            "v_dot4_i32_iu8": " neg_lo:[1,1,0]", "v_dot8_i32_iu4": " neg_lo:[1,1,0]"}
# 16-bit results on gfx950 clear the other half of the register, except those of these rows.
KEEPS_HALF = set(
    "v_fma_f16 v_mad_f16 v_mad_u16 v_mad_i16 v_div_fixup_f16 v_min3_f16 v_min3_i16 v_min3_u16 "
    "v_max3_f16 v_max3_i16 v_max3_u16 v_med3_f16 v_med3_i16 v_med3_u16 v_add_i16 v_sub_i16 "
    "v_bitop3_b16 v_ashr_pk_i8_i32 v_ashr_pk_u8_i32".split()
)

# Rows that are within so many steps of the correctly rounded value.
ULPS = {"v_rsq_f64": 1, "v_sin_f32": 1, "v_cos_f32": 1}


def reference(row: dict[str, Any]) -> Reference | None:
    name = row["name"]
    if row["class"] == "vopc":
        return others.COMPARES.get(name.split("_", 2)[2])
    tables = [integers.CLAMPED, floats.CLAMPED] if row["clamp"] else [
        integers.ROWS, floats.ROWS, trans.ROWS, others.ROWS]
    return next((t[name] for t in tables if name in t), None)


def _registers(base: str, kind: str, half: str) -> str:
    first = int(base[1:])
    if WIDTH[kind] == 64:
        return f"v[{first}:{first + 1}]"
    return base + half if WIDTH[kind] == 16 else base


def case_of(row: dict[str, Any], arch: str, lanes: int) -> Case:
    """The text of a row: its destination in v8, its sources in v2, v4, v6, masks in SGPRs."""
    name, half = row["name"], ".l" if arch == "gfx1151" else ""
    spell = sim_rows.spelling(arch, lanes)
    operands, sources, destination = [], [], ""
    packed = name.startswith("v_pk_") and row["class"] in ("vop2", "vop3p")
    for slot in row["slots"]:
        kind = slot["type"]
        if kind == "mask":
            operands.append(spell["sout"] if slot["role"] == "write" else spell["sin"])
            continue
        if slot["role"] == "read":
            place = sim_rows.SOURCES[len(sources)]
            sources.append("b32" if packed and WIDTH[kind] == 16 else kind)
        else:
            place, destination = sim_rows.DESTINATION, kind
        operands.append(_registers(place, kind, "" if packed else half))
    if row["slots"][0]["role"] == "update" and not name.startswith(("v_fma_mix",)):
        sources.append(destination)
    if "v_cmpx" in name and arch == "gfx1151":
        operands = operands[1:]
    suffix = next((s for key, s in SUFFIXES.items() if name.startswith(key)), "")
    suffix += " clamp" if row["clamp"] else ""
    args = ", ".join(operands) + suffix
    texts = (TEXTS[name],) if name in TEXTS else (f"{name}_e64 {args}", f"{name} {args}")
    constants = CONSTANTS.get(name, (None,) * 3)
    return Case(name, texts, tuple(sources), destination, constants, "v_cmpx" in name)


def rows_of(arch: str) -> list[dict[str, Any]]:
    return [r for r in netra_sim.rows() if r["class"] in CLASSES and arch in r["archs"]
            and not _elsewhere(r["name"])]


@pytest.fixture(scope="module")
def hip(sim_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hip]:
    folder = tmp_path_factory.mktemp("sim")
    with sim_kernels.private_simulator(sim_library, folder, ",".join(ARCHES)) as hip:
        yield hip


def test_every_row_has_a_reference() -> None:
    missing = {(r["name"], r["clamp"]) for arch in ARCHES for r in rows_of(arch)
               if reference(r) is None}
    assert not missing, f"rows without an entry in tests/reference: {sorted(missing)}"


MODES = (
    Mode(),
    Mode(UP, ZERO, 0, 0, ieee=False),
    Mode(DOWN, UP, 1, 2, ovfl=True),
    Mode(ZERO, DOWN, 2, 3, dx10=False),
    Mode(NEAREST, NEAREST, 0, 0),
)


def _inputs(case: Case, arch: str, seed: int) -> list[tuple[int, int, int, int]]:
    rng = random.Random(f"{case.name} {arch} {seed}")
    lanes = []
    for _ in range(THREADS):
        drawn = [rng.getrandbits(64)] * 4
        for k, kind in enumerate(case.sources):
            high = rng.getrandbits(64) << WIDTH[kind] & (1 << 64) - 1
            drawn[k] = sim_rows.draw(kind, rng) | high
        if case.name.startswith("v_div_scale"):
            drawn[0] = drawn[1 + rng.getrandbits(1)]
        drawn[3] = rng.getrandbits(64)
        if case.destination and len(case.sources) and case.destination == case.sources[-1]:
            width = WIDTH[case.destination]
            drawn[3] = drawn[3] >> width << width | sim_rows.draw(case.destination, rng)
        lanes.append(tuple(drawn))
    return lanes


def _expected(
    case: Case, arch: str, row: Reference, mode: Mode, lane: tuple[int, int, int, int],
    accumulates: bool,
) -> tuple[int, int]:
    """(destination, mask bit) of an active lane."""
    sources = list(lane[: len(case.sources)])
    if accumulates:
        sources[-1] = lane[3]
    sources = [s & ((1 << WIDTH[k]) - 1) for s, k in zip(sources, case.sources, strict=False)]
    sources = [s if c is None else c for s, c in zip(sources, case.constants, strict=False)]
    got = row(mode, *sources)
    if not case.destination:
        return lane[3], got
    value, carry = got if isinstance(got, tuple) else (got, 0)
    width = WIDTH[case.destination]
    if case.name == "v_fma_mixhi_f16":
        value = lane[3] & 0xFFFF | value << 16
        width = 32
    elif width == 16 and arch == "gfx950" and case.name not in KEEPS_HALF:
        width = 32
    if case.name == "v_fma_mixlo_f16":
        value, width = lane[3] & 0xFFFF0000 | value, 32
    return lane[3] >> width << width | value, carry


@pytest.mark.parametrize("arch, lanes", TARGETS, ids=IDS)
def test_rows(
    arch: str, lanes: int, hip: Hip, llvm_bin: Path, assemble: Callable[..., Path]
) -> None:
    hip.call("hipSetDevice", ARCHES.index(arch))
    rows = rows_of(arch)
    cases = [case_of(r, arch, lanes) for r in rows]
    texts = sim_rows.spellable(arch, llvm_bin, [c.texts for c in cases], lanes)
    unspelt = [c.texts for c, t in zip(cases, texts, strict=False) if not t]
    assert not unspelt, f"LLVM assembles none of {unspelt}"
    driven.note(arch, "\n".join(texts))
    source = sim_rows.kernel(arch, texts, [c.writes_exec for c in cases], lanes)
    function = hip.function(hip.load_module(assemble(source, arch, lanes)), "k")
    wrong = []
    for seed, base in enumerate(MODES):
        rng = random.Random(seed)
        full = (1 << lanes) - 1
        exec_mask = full if seed == 0 else rng.getrandbits(lanes)
        carry = rng.getrandbits(lanes)
        values = [_inputs(c, arch, seed) for c in cases]
        got = sim_rows.run(hip, function, values, mode=base.bits(), exec_mask=exec_mask,
                           carry=carry, lanes=lanes)
        for r, case, text, given, outcomes in zip(rows, cases, texts, values, got, strict=False):
            row = reference(r)
            assert row is not None
            accumulates = r["slots"][0]["role"] == "update" and "v_fma_mix" not in case.name
            for t in range(THREADS):
                lane = t % lanes
                mode = replace(base, gfx11=arch == "gfx1151", lane=lane, carry=carry >> lane & 1)
                want = given[t][3], 0
                if exec_mask >> lane & 1:
                    want = _expected(case, arch, row, mode, given[t], accumulates)
                have = outcomes[t].low | outcomes[t].high << 32, outcomes[t].mask
                if have != want and abs(have[0] - want[0]) > ULPS.get(case.name, 0):
                    wrong.append(
                        f"{text}: mode {seed}, lane {lane}, "
                        f"sources {[hex(x) for x in given[t]]}: got {have[0]:#x} mask {have[1]}, "
                        f"want {want[0]:#x} mask {want[1]}")
                    break
    assert not wrong, "\n".join([f"{len(wrong)} rows differ", *wrong[:20]])
