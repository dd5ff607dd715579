"""netra-sim lint: what shows without running; the kernels of asm/ are clean."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from netra_sim import library, source
from netra_sim.cli import main

Assemble = Callable[..., Path]

_KERNEL = """
        .text
        .globl  k
        .p2align 8
        .type   k,@function
k:
{code}
        s_endpgm
        .size   k, . - k
        .section .rodata,"a"
        .p2align 6
        .amdhsa_kernel k
          .amdhsa_kernarg_size {size}
          .amdhsa_user_sgpr_kernarg_segment_ptr 1
          .amdhsa_float_denorm_mode_32 {denorm}
          .amdhsa_group_segment_fixed_size {lds}
          .amdhsa_next_free_sgpr 32
          {accum}
          .amdhsa_next_free_vgpr {vgprs}
        .end_amdhsa_kernel
        .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--{arch}
amdhsa.kernels:
  - .name: k
    .symbol: k.kd
    .kernarg_segment_size: {meta_size}
    .kernarg_segment_align: 8
    .group_segment_fixed_size: {lds}
    .private_segment_fixed_size: 0
    .wavefront_size: {wave}
    .sgpr_count: {sgpr_count}
    .vgpr_count: {vgprs}
    .agpr_count: 0
    .max_flat_workgroup_size: 64
    {args}
...
        .end_amdgpu_metadata
"""
_ARGS = """.args:
      - {.name: dst, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}
      - {.name: n, .offset: 8, .size: 4, .value_kind: by_value}"""
_GOOD = """
        s_load_dwordx2 s[4:5], s[0:1], 0x0
        v_lshlrev_b32 v1, 2, v0
        s_waitcnt lgkmcnt(0)
        global_load_dword v2, v1, s[4:5]
        s_waitcnt vmcnt(0)
        v_add_u32 v2, v2, v2
        global_store_dword v1, v2, s[4:5]"""


def kernel(code: str = _GOOD, arch: str = "gfx950", **changes: object) -> str:
    values: dict[str, Any] = {
        "size": 16, "meta_size": 16, "denorm": 3, "lds": 0, "vgprs": 64, "arch": arch,
        "wave": 64 if arch == "gfx950" else 32, "sgpr_count": 38, "args": _ARGS, "code": code,
    }  # fmt: skip
    values.update(changes)
    if arch == "gfx1151":
        values["code"] = code.replace("v_add_u32", "v_add_nc_u32")
    values["accum"] = f".amdhsa_accum_offset {values['vgprs']}" if arch == "gfx950" else ""
    return _KERNEL.format(**values)


@pytest.fixture
def found(assemble: Assemble, sim_library: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("NETRA_SIM_LIBRARY", str(sim_library))

    def run(text: str, arch: str = "gfx950") -> list[dict[str, Any]]:
        return list(library.lint(assemble(text, arch))["findings"])

    return run


def rules(findings: list[dict[str, Any]]) -> set[tuple[str, str]]:
    return {(one["rule"], one["severity"]) for one in findings}


@pytest.mark.parametrize("arch", ["gfx950", "gfx1151"])
def test_a_good_kernel_is_clean(found: Any, arch: str) -> None:
    assert found(kernel(arch=arch), arch) == []


def test_a_register_that_was_never_allocated(found: Any) -> None:
    told = rules(found(kernel(_GOOD + "\n        v_mov_b32 v79, 0", vgprs=8)))
    assert ("E.3 VGPR", "error") in told and ("E.3 .vgpr_count", "error") in told


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"meta_size": 24}, "kernarg"),
        ({"wave": 32}, "wave size"),
        ({"args": ""}, ".args has no argument"),
        ({"code": _GOOD.replace("s_waitcnt lgkmcnt(0)", "s_nop 0")}, "provably arrived"),
        ({"code": _GOOD + "\n        v_mov_b32 v79, 0", "vgprs": 8}, "the descriptor allocates"),
    ],
)
def test_what_the_assembler_lets_through_is_found_by_the_command(
    assemble: Assemble, sim_library: Path, monkeypatch: pytest.MonkeyPatch, changes: Any, said: str
) -> None:
    monkeypatch.setenv("NETRA_SIM_LIBRARY", str(sim_library))
    done = CliRunner().invoke(main, ["lint", str(assemble(kernel(**changes)))])
    assert done.exit_code == 1
    assert said in done.output + (done.stderr if done.stderr_bytes else str(done.exception))


def test_counts_segments_and_modes(found: Any) -> None:
    assert ("E.3 .sgpr_count", "error") in rules(found(kernel(sgpr_count=4)))
    assert ("float mode", "warning") in rules(found(kernel(denorm=0)))
    late = _GOOD.replace("s[0:1], 0x0", "s[0:1], 0xc")
    assert ("E.3 kernarg", "error") in rules(found(kernel(late)))
    far = _ARGS.replace(".offset: 8, .size: 4", ".offset: 16, .size: 4")
    with pytest.raises(library.CodeObjectError, match="argument n ends at byte 20"):
        found(kernel(args=far))
    inside = _ARGS.replace(".offset: 8, .size: 4", ".offset: 4, .size: 4")
    assert ("E.3 .args n", "error") in rules(found(kernel(args=inside)))


def test_s_nop_counts_four_bits(found: Any) -> None:
    assert found(kernel(_GOOD + "\n        s_nop 15")) == []
    (one,) = found(kernel(_GOOD + "\n        s_nop 16"))
    assert one["rule"] == "s_nop" and "1 wait state" in one["text"]


def test_a_result_over_its_factors(found: Any) -> None:
    wide = "\n        v_mfma_f32_32x32x8_f16 v[16:31], v[{a}], v[{b}], v[16:31]"
    assert found(kernel(_GOOD + wide.format(a="4:5", b="6:7"))) == []
    assert rules(found(kernel(_GOOD + wide.format(a="16:17", b="6:7")))) == {
        ("A.2 D over A", "error")
    }
    assert rules(found(kernel(_GOOD + wide.format(a="4:5", b="30:31")))) == {
        ("A.2 D over B", "error")
    }


_ONE_PATH = """
        s_load_dwordx2 s[4:5], s[0:1], 0x0
        v_lshlrev_b32 v1, 2, v0
        s_waitcnt lgkmcnt(0)
        global_load_dword v2, v1, s[4:5]
        s_cmp_eq_u32 s4, 0
        s_cbranch_scc1 .Lskip
        s_waitcnt vmcnt(0)
.Lskip:{wait}
        v_add_u32 v2, v2, v2"""


@pytest.mark.parametrize("arch", ["gfx950", "gfx1151"])
def test_a_wait_that_one_path_goes_around(found: Any, arch: str) -> None:
    (one,) = found(kernel(_ONE_PATH.format(wait=""), arch), arch)
    assert one["rule"] == "C.4 RAW" and one["mend"] == "needs vmcnt(0) before this line"
    assert one["at"]["text"].startswith("v_add") and one["other"]["text"].startswith("global_load")
    assert one["wave"] is None and one["certainty"] == "ISA + compiler"
    assert found(kernel(_ONE_PATH.format(wait="\n        s_waitcnt vmcnt(0)"), arch), arch) == []


_LOOP = """
        s_mov_b32 s4, 4
.Lnext:{read}
        s_sub_u32 s4, s4, 1
        s_cmp_lg_u32 s4, 0
        v_mfma_f32_4x4x4_16b_f16 v[8:11], v[4:5], v[6:7], v[8:11]{nops}
        s_cbranch_scc1 .Lnext"""


def test_wait_states_around_a_loop(found: Any) -> None:
    """Only the way back is too short; the branch itself counts one."""
    code = _LOOP.format(read="\n        v_mov_b32 v12, v8", nops="\n        s_nop {}")
    (one,) = found(kernel(code.format(2)))
    assert one["rule"] == "M1" and one["mend"].startswith("1 more wait state")
    assert found(kernel(code.format(3))) == []


_PIPELINE = """
        s_load_dwordx2 s[4:5], s[0:1], 0x0
        v_lshlrev_b32 v1, 2, v0
        s_waitcnt lgkmcnt(0)
        global_load_dword v2, v1, s[4:5]
        s_mov_b32 s6, 4
.Lnext:
        global_load_dword v3, v1, s[4:5] offset:4
        s_waitcnt vmcnt({n})
        v_add_u32 v4, v2, v2
        s_waitcnt vmcnt(0)
        v_mov_b32 v2, v3
        s_sub_u32 s6, s6, 1
        s_cmp_lg_u32 s6, 0
        s_cbranch_scc1 .Lnext"""


def test_how_many_later_loads_a_wait_may_allow(found: Any) -> None:
    assert found(kernel(_PIPELINE.format(n=1))) == []
    (one,) = found(kernel(_PIPELINE.format(n=2)))
    assert one["rule"] == "C.4 RAW" and one["mend"] == "needs vmcnt(1) or lower before this line"


# Two branches on the same comparison are four paths to lint (docs/sanitizer.md): it reports waits
# that no execution can need. Exactly these, so that the day lint knows better, this test says so.
UNRELATED_BRANCHES = {"smallm_router_bf16.s": {"C.4 RAW", "C.4 WAW"}}


def test_every_built_kernel_is_clean(repo_root: Path, found: Any) -> None:
    objects = sorted((repo_root / "build").glob("gfx*/*.co"))
    sources = sorted((repo_root / "asm").glob("gfx*/*.s"))
    assert {one.stem for one in sources} <= {one.stem for one in objects}, "type: make catalog"
    wrong = []
    for one in sources:
        built = repo_root / "build" / one.parent.name / f"{one.stem}.co"
        told = source.check(one.read_text(), one.name) + library.lint(built)["findings"]
        known = UNRELATED_BRANCHES.get(one.name, set())
        assert not known or {t["rule"] for t in told} & known, f"{one.name} is clean: say so here"
        told = [t for t in told if t["rule"] not in known]
        wrong += [f"{one.name}: {t['rule']}: {t['text']} ({t['at']['line']})" for t in told]
    assert not wrong, "\n".join(wrong)


_TEXT = """// k - dst = src
//
// Contract   any
// Launch     one wave
// Numerics   none
// Oracle     k (harness/netra_harness/oracles/k.py)
// Schedule   none

        karg    kDst, 0, 8
        sreg    sRow, 2
        vreg    vX, 1
        v_mov_b32       v[vX], s[sRow]
        .amdgpu_metadata
      - {.name: dst, .offset: 0, .size: 8}
"""


@pytest.mark.parametrize(
    "old, new, rule",
    [
        ("v[vX], s[sRow]", "v[vX], v[sRow]", "register file"),
        ("v[vX], s[sRow]", "v[vX], s2", "undocumented symbol"),
        ("v[vX], s[sRow]", "v[vX:vX+1], a[vX]", "register file"),
        ("// Numerics   none\n", "", "banner"),
        ("        karg", "\tkarg", "layout"),
        ("kDst, 0", "kDst, 8", "argument map"),
        ("        v_mov", ".macro m\ns_waitcnt vmcnt(0)\n.endm\n        v_mov", "macro"),
        ("        v_mov", ".macro m\ns_mov_b64 exec, -1\n.endm\n        v_mov", "macro"),
        ("        v_mov", ".macro m\nds_read_b32 v[vX], v[vX]\n.endm\n        v_mov", "macro"),
    ],
)
def test_what_the_source_shows(old: str, new: str, rule: str) -> None:
    assert source.check(_TEXT, "k.s") == []
    assert old in _TEXT
    assert {one["rule"] for one in source.check(_TEXT.replace(old, new, 1), "k.s")} == {rule}


def test_a_source_outside_of_its_folder_needs_its_target(tmp_path: Path) -> None:
    (tmp_path / "k.s").write_text(_TEXT)
    done = CliRunner().invoke(main, ["lint", str(tmp_path / "k.s")])
    assert done.exit_code == 2


def test_the_page_shows_a_failing_and_a_mended_kernel(repo_root: Path, found: Any) -> None:
    page = (repo_root / "docs" / "sanitizer.md").read_text()
    section = page.split("## lint:")[1].split("\n## ")[0]
    blocks = re.findall(r"(?:^    .*\n)+", section, re.M)[1:]
    assert len(blocks) == 2
    start = """
        s_load_dwordx2 s[4:5], s[0:1], 0x0
        v_lshlrev_b32 v1, 2, v0
        s_waitcnt lgkmcnt(0)
"""
    (one,) = found(kernel(start + blocks[0]))
    assert one["rule"] == "C.4 RAW"
    assert found(kernel(start + blocks[1])) == []
