"""Reads of what nothing defined: which are uses, and which copies pass in silence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import check_programs
import pytest
from check_programs import Told, case
from netra_sim.hip import Hip
from sim_kernels import private_simulator
from spelling import BOTH, spell

# v200 and up, s40 and up, and LDS are undefined at the start of these kernels.
START = {
    "gfx950": ["s_load_dwordx2 s[4:5], s[0:1], 0x0", "s_waitcnt lgkmcnt(0)",
               "v_mov_b32 v2, s4", "v_mov_b32 v3, s5", "v_lshlrev_b32 v1, 2, v0",
               "v_mov_b32 v16, 0", "v_mov_b32 v17, 0"],
    "gfx1151": ["s_load_b64 s[4:5], s[0:1], 0x0", "s_waitcnt lgkmcnt(0)",
                "v_mov_b32 v2, s4", "v_mov_b32 v3, s5", "v_lshlrev_b32 v1, 2, v0",
                "v_mov_b32 v16, 0", "v_mov_b32 v17, 0"],
}  # fmt: skip
ADD = {"gfx950": "v_add_u32 v{0}, v{1}, v{2}", "gfx1151": "v_add_nc_u32 v{0}, v{1}, v{2}"}


def lines(arch: str, text: str) -> list[str]:
    """Lines of assembly; `add d a b`, `exec N` and the words of test_check_wait are short forms."""
    out = []
    for part in text.split(";"):
        words = part.split()
        if words[0] == "add":
            out.append(ADD[arch].format(*words[1:]))
        elif words[0] == "exec":
            name = "s_mov_b64 exec" if arch == "gfx950" else "s_mov_b32 exec_lo"
            out.append(f"{name}, {words[1]}")
        elif words[0] in ("store", "ds", "dswrite", "lgkm", "vm"):
            out += spell(arch, part)
        else:
            vcc = "vcc" if arch == "gfx950" else "vcc_lo"
            out.append(part.strip().replace("VCC", vcc))
    return ["s_nop 4", *out]


# (instructions, register of the error or "", lane)
ROWS: list[tuple[str, str, int | None]] = [
    ("add 210 16 17", "", None),
    ("add 210 200 16", "v200", 0),
    ("v_mul_f32 v210, v16, v201", "v201", 0),
    ("v_fmac_f32 v202, v16, v17", "v202", 0),
    # Copies are silent; the first use tells, with the register that is used.
    ("v_mov_b32 v210, v203", "", None),
    ("v_mov_b32 v210, v204;s_nop 1;add 211 210 16", "v210", 0),
    ("v_and_b32 v210, 0, v205;add 211 210 16", "", None),
    ("v_and_b32 v210, 0xff, v206;s_nop 1;add 211 210 16", "", None),  # a part is defined
    ("v_cndmask_b32 v210, v16, v207, VCC", "VCC", None),
    ("v_cmp_eq_u32 VCC, v16, v17;s_nop 1;v_cndmask_b32 v7, v208, v16, VCC;add 8 7 16", "", None),
    ("v_cmp_ne_u32 VCC, v16, v17;s_nop 1;v_cndmask_b32 v7, v209, v16, VCC;add 8 7 16", "v7", 0),
    # By lane.
    ("exec 0xff;v_mov_b32 v212, 0;exec -1;add 213 212 16", "v212", 8),
    ("exec 0xff;v_mov_b32 v214, 0;exec 0x0f;add 213 214 16;exec -1", "", None),
    ("exec 15;v_mov_b32 v5, 0;exec -1;v_readlane_b32 s40, v5, 8;s_add_u32 s6, s40, 1", "s40", None),
    ("exec 15;v_mov_b32 v6, 0;exec -1;v_readlane_b32 s42, v6, 3;s_add_u32 s41, s42, 1", "", None),
    # By half.
    ("v_lshlrev_b16 v217, 0, v16;v_pk_add_u16 v218, v217, v217", "", None),
    # The halves of a 64-bit integer are one number: sums and left shifts carry upwards.
    ("v_mov_b32 v100, 0;v_mad_u64_u32 v[102:103], VCC, v16, v17, v[100:101];add 210 102 16",
     "", None),
    ("v_mov_b32 v104, 0;v_mad_i64_i32 v[106:107], VCC, v16, v17, v[104:105];add 210 107 16",
     "v107", 0),
    ("v_mov_b32 v109, 0;v_mad_u64_u32 v[110:111], VCC, v16, v17, v[108:109]", "v108", 0),
    ("v_mad_u64_u32 v[110:111], VCC, v16, v112, v[16:17]", "v112", 0),
    ("v_mad_u64_u32 v[110:111], VCC, v16, s50, v[16:17]", "s50", None),
    ("v_mov_b32 v114, 0;v_mad_u64_u32 v[116:117], VCC, v16, v17, v[114:115];s_nop 4;"
     "v_cndmask_b32 v118, v16, v17, VCC", "VCC", None),
    ("v_mov_b32 v120, 0;v_mad_u64_u32 v[122:123], VCC, v16, v17, v[120:121] clamp;add 210 122 16",
     "v122", 0),
    ("v_mov_b32 v124, 0;v_lshlrev_b64 v[126:127], 2, v[124:125];add 210 126 16", "", None),
    ("v_mov_b32 v128, 0;v_lshlrev_b64 v[130:131], 2, v[128:129];add 210 131 16", "v131", 0),
    ("v_mov_b32 v132, 0;v_lshlrev_b64 v[134:135], v16, v[132:133];add 210 134 16", "", None),
    ("v_mov_b32 v137, 0;v_lshrrev_b64 v[138:139], 32, v[136:137];add 210 138 139", "", None),
    ("v_mov_b32 v141, 0;v_lshrrev_b64 v[142:143], v16, v[140:141];add 210 142 16", "v142", 0),
    ("v_mov_b32 v144, 0;v_ashrrev_i64 v[146:147], 40, v[144:145];add 210 147 16", "v147", 0),
    ("v_lshlrev_b64 v[148:149], v150, v[16:17];add 210 148 16", "v148", 0),
    ("s_mov_b32 s53, 0;s_lshl_b64 s[54:55], s[52:53], 28;s_add_u32 s66, s55, 1", "s55", None),
    ("s_mov_b32 s53, 0;s_lshl_b64 s[54:55], s[52:53], 7;s_add_u32 s66, s55, 1", "", None),
    ("s_mov_b32 s56, 0;s_lshl_b64 s[58:59], s[56:57], 1;s_add_u32 s66, s58, 1", "", None),
    ("s_mov_b32 s69, 0;s_lshr_b64 s[70:71], s[68:69], 32;s_add_u32 s66, s70, 1", "", None),
    ("s_mov_b32 s72, 0;s_ashr_i64 s[74:75], s[72:73], 28;s_add_u32 s66, s74, 1", "s74", None),
    ("s_mov_b32 s72, 0;s_ashr_i64 s[74:75], s[72:73], 8;s_add_u32 s66, s74, 1", "", None),
    ("s_mov_b32 s72, 0;s_ashr_i64 s[74:75], s[72:73], 40;s_add_u32 s66, s75, 1", "s75", None),
    ("s_mov_b32 s76, 0;s_lshr_b64 s[76:77], s[76:77], 7;s_cmp_lg_u32 s76, 0;"
     "s_cbranch_scc1 .Lz;.Lz:", "", None),
    # A compare is no use yet; what asks SCC is.
    ("s_cmp_eq_u32 s78, 0;s_mov_b32 s40, 0", "", None),
    ("s_cmp_eq_u32 s79, 0;s_cbranch_scc1 .Lw;.Lw:", "scc", None),
    ("s_cmp_eq_u32 s80, 0;s_cselect_b32 s81, -1, 0;s_or_b32 s81, s81, -1;s_add_u32 s40, s81, 1",
     "", None),
    ("s_cmp_eq_u32 s82, 0;s_cselect_b32 s83, 1, 2;s_add_u32 s40, s83, 1", "s83", None),
    # Scalars, SCC, VCC, M0.
    ("s_add_u32 s40, s44, 1", "s44", None),
    ("s_mov_b32 s40, s45", "", None),
    ("s_mov_b32 s46, s45;s_lshl_b32 s46, s46, 1;s_add_u32 s40, s46, 1", "s46", None),
    ("s_and_b32 s40, s47, 0;s_add_u32 s41, s40, 1", "", None),
    ("v_mov_b32 v210, s48;v_mul_f32 v211, v210, v210", "v210", 0),
    ("v_mul_f32 v211, s49, v16", "s49", None),
    # Memory.
    ("ds 219;lgkm 0;v_mov_b32 v220, v219", "", None),
    ("dswrite 16;lgkm 0;ds 221;lgkm 0;add 210 221 16", "", None),
    ("v_add_f32 v222, v223, v223", "v223", 0),
]  # fmt: skip


@pytest.fixture(scope="module")
def hip(sim_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hip]:
    folder = tmp_path_factory.mktemp("checks")
    with private_simulator(sim_library, folder, "gfx950,gfx1151") as found:
        yield found


@pytest.fixture(params=BOTH)
def arch(request: pytest.FixtureRequest, hip: Hip) -> Iterator[str]:
    hip.call("hipSetDevice", BOTH.index(request.param))
    yield request.param
    hip.call("hipSetDevice", 0)


def run(hip: Hip, assemble: Callable[..., Path], arch: str, *texts: str, scratch: int = 0) -> Told:
    cases = [case("start", *START[arch])]
    cases += [case(text, *lines(arch, text)) for text in texts]
    return check_programs.run(hip, assemble, arch, cases, set_up=False, scratch=scratch)


def errors(told: Told, name: str) -> list[tuple[str, int | None]]:
    return [(f["register"].split()[0], f["lane"]) for f in told.by_case[name]
            if f["kind"] == "init" and f["severity"] == "error"]  # fmt: skip


def test_uses_are_told_and_copies_are_not(
    arch: str, hip: Hip, assemble: Callable[..., Path]
) -> None:
    told = run(hip, assemble, arch, *(text for text, _, _ in ROWS))
    assert not told.fault
    wrong = []
    for text, register, lane in ROWS:
        name = register.replace("VCC", "vcc_lo")
        want = [(name, lane)] if register else []
        if errors(told, text) != want:
            wrong.append(f"{text}: {errors(told, text)}, expected {want}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("text", "register"),
    [("s_addc_u32 s40, s4, s4", "scc"), ("s_cbranch_vccz .Lx;.Lx:", "vcc_lo"),
     ("s_cbranch_scc1 .Ly;.Ly:", "scc"), ("s_movrels_b32 s40, s4", "m0")],
)  # fmt: skip
def test_flags_are_undefined_at_the_start(
    text: str, register: str, arch: str, hip: Hip, assemble: Callable[..., Path]
) -> None:
    told = run(hip, assemble, arch, text)
    assert errors(told, text) == [(register, None)]


def test_a_sum_of_64_bits_that_gfx950_alone_has(
    hip: Hip, assemble: Callable[..., Path]
) -> None:
    hip.call("hipSetDevice", 0)
    start = "v_mov_b32 v100, 0;v_mov_b32 v104, 0;v_lshl_add_u64 v[102:103], v[100:101], 2, "
    rows = {f"{start}v[16:17];add 210 102 16": [], f"{start}v[104:105];add 211 102 16": [],
            f"{start}v[16:17];add 212 103 16": [("v103", 0)],
            f"{start}v[106:107]": [("v106", 0)]}  # fmt: skip
    told = run(hip, assemble, "gfx950", *rows)
    assert {text: errors(told, text) for text in rows} == rows


def test_the_finding_names_what_put_it_there(
    arch: str, hip: Hip, assemble: Callable[..., Path]
) -> None:
    lds = "ds 219;lgkm 0;add 210 219 16"
    store = "v_mov_b32 v210, v211;store 210"
    told = run(hip, assemble, arch, lds, store, "add 212 213 16")
    (found,) = [f for f in told.by_case[lds] if f["severity"] == "error"]
    assert found["other"]["text"].startswith(("ds_read_b32", "ds_load_b32"))
    assert found["register"] == "v219" and found["rule"] == "E.3 vector"
    (found,) = [f for f in told.by_case[store] if f["kind"] == "init"]
    assert (found["rule"], found["severity"], found["register"]) == ("E.3 store", "warning", "v210")
    (found,) = [f for f in told.by_case["add 212 213 16"] if f["severity"] == "error"]
    assert found["other"] is None and "nothing has written it" in found["text"]


def test_an_undefined_address_is_a_use(arch: str, hip: Hip, assemble: Callable[..., Path]) -> None:
    text = spell(arch, "ds 210")[0].replace("v1", "v220")
    told = run(hip, assemble, arch, text)
    assert "LDS access" in told.fault  # what an undefined register holds is no address
    assert errors(told, text) == [("v220", 0)]


def test_scratch_is_followed_by_byte(arch: str, hip: Hip, assemble: Callable[..., Path]) -> None:
    load, store = ("dword", "byte") if arch == "gfx950" else ("b32", "b8")
    bad = f"scratch_load_{load} v210, off, off;vm 0;ds_swizzle_b32 v211, v210;lgkm 0"
    whole = f"scratch_store_{load} off, v16, off;scratch_load_{load} v212, off, off;vm 0;" + (
        "v_readlane_b32 s40, v212, 0;s_add_u32 s41, s40, 1"
    )
    part = f"scratch_store_{store} off, v16, off offset:16;" + (
        f"scratch_load_{load} v213, off, off offset:16;vm 0;v_readlane_b32 s42, v213, 0;"
        "s_cmp_eq_u32 s42, 0;s_nop 4;s_mov_b32 m0, s43;s_movrels_b32 s40, s4"
    )
    told = run(hip, assemble, arch, bad, whole, part, scratch=64)
    assert errors(told, whole) == []
    assert errors(told, part)[0] == ("m0", None)
