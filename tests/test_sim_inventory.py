"""Every instruction that the decoder can print has semantics, or is refused by name with a reason.

tests/fixtures/mnemonics_*.txt are the inventory, written by tools/mnemonics.py.  So a row that is
lost in an edit is noticed here, and not by the kernel that needs it.
"""

from __future__ import annotations

import fnmatch
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import mnemonics
import netra_sim
import pytest
import sim_kernels
from replaced_text import ARCHES, ReplacedText

# Left out on purpose, as patterns, and the reason that a kernel is told.
REFUSED = {
    "image_bvh*": "ray tracing is not simulated",
    "ds_bvh_stack_*": "ray tracing is not simulated",
    "image_*": "images are not simulated",
    "ds_gws_*": "global wave sync is not simulated",
    "ds_ordered_count": "global data share is not simulated",
    "ds_*_gs_reg_rtn": "geometry registers are not simulated",
    "lds_*_load": "graphics attributes in LDS are not simulated",
    "exp": "exports to the graphics pipeline are not simulated",
    "v_interp_*": "graphics attributes are not simulated",
    "v_screen_partition_4se_b32": "its table is not published",
    "v_illegal": "the illegal instruction by definition",
    "v_mfma_ld_scale_b32": "the first half of v_mfma_scale",
    "s_cbranch_*_fork": "the fork stack is not simulated",
    "s_cbranch_join": "the fork stack is not simulated",
    "s_rfe_*": "it returns from a trap handler",
    "s_sendmsghalt": "it halts the wave",
    "s_subvector_loop_*": "the loop over the halves of a wave",
    "s_dcache_discard*": "depends on the scalar cache",
}
# Rows that the decoder of LLVM 22 does not name: halves of VOPD, and an older name.
UNPRINTED = {"v_dual", "v_dot2acc_f32_bf16", "v_dot2c_f32_f16"}


def rows_of(arch: str) -> set[str]:
    return {r["name"] for r in netra_sim.rows() if arch in r["archs"]}


def matches(name: str, patterns: object) -> bool:
    return any(fnmatch.fnmatchcase(name, p) for p in patterns)  # type: ignore[attr-defined]


def row_of(name: str) -> str:
    """VOPD halves run through the row of the plain instruction."""
    return re.sub(r"^v_dual_", "v_", name)


@pytest.mark.parametrize("arch", ARCHES)
def test_every_mnemonic_has_a_row_or_a_reason(arch: str) -> None:
    names, rows = mnemonics.stored(arch), rows_of(arch)
    assert len(names) > 1100
    without = {n for n in names if row_of(n) not in rows}
    unexplained = {n for n in without if not matches(n, REFUSED)}
    assert not unexplained, f"{arch}: neither a row nor a reason: {sorted(unexplained)}"


@pytest.mark.parametrize("arch", ARCHES)
def test_no_row_is_unknown_to_the_decoder(arch: str) -> None:
    printed = {row_of(n) for n in mnemonics.stored(arch)}
    unknown = rows_of(arch) - printed - UNPRINTED
    assert not unknown, f"{arch}: {sorted(unknown)}"


@pytest.mark.parametrize("arch", ARCHES)
def test_the_assembler_knows_every_name(arch: str, llvm_bin: Path) -> None:
    """Without operands each is an error, but not the one that the target has no such thing."""
    names = sorted(n for n in mnemonics.stored(arch) if not n.startswith("v_dual_"))  # in pairs
    known = set()
    for attribute in mnemonics.TARGETS[arch]:
        done = subprocess.run(
            [str(llvm_bin / "llvm-mc"), "-triple=amdgcn-amd-amdhsa", f"-mcpu={arch}",
             f"-mattr={attribute}", "-filetype=null"],
            input="\n".join([*names, "v_no_such_thing"]), capture_output=True, text=True,
            check=False,
        )
        unknown = {
            int(n) for n, why in re.findall(r"<stdin>:(\d+):\d+: error: (.*)", done.stderr)
            if "not supported on this GPU" in why or "invalid instruction" in why
        }
        assert len(names) + 1 in unknown
        known |= {n for k, n in enumerate(names, 1) if k not in unknown}
    assert known == set(names)


def test_exceptions_are_not_stale() -> None:
    names = mnemonics.stored("gfx950") | mnemonics.stored("gfx1151")
    rows = rows_of("gfx950") | rows_of("gfx1151")
    for pattern in REFUSED:
        assert matches_any(pattern, names), f"nothing is called {pattern}"
        assert not matches_any(pattern, rows), f"{pattern} has rows: take it off the list"


def matches_any(pattern: str, names: set[str]) -> list[str]:
    return fnmatch.filter(sorted(names), pattern)


def test_what_is_refused_is_in_the_manual(repo_root: Path) -> None:
    text = (repo_root / "docs" / "simulator.md").read_text()
    named = {re.sub(r"_$", "", re.split(r"[*?]", p)[0]) for p in REFUSED if p[0] != "*"}
    assert not {n for n in named if n not in text}


# ---- what a kernel is told -------------------------------------------------------------------


@pytest.fixture(scope="module")
def replaced(
    sim_library: Path, assemble: Callable[..., Path], llvm_bin: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ReplacedText]:
    folder = tmp_path_factory.mktemp("sim")
    with sim_kernels.private_simulator(sim_library, folder, ",".join(ARCHES)) as hip:
        yield ReplacedText(hip, assemble, llvm_bin, tmp_path_factory.mktemp("text"))


@pytest.mark.parametrize("arch", ARCHES)
def test_a_refused_instruction_tells_the_reason(arch: str, replaced: ReplacedText) -> None:
    told = 0
    for name in sorted(mnemonics.stored(arch) - {n for n in rows_of(arch)}):
        pattern = next((p for p in REFUSED if fnmatch.fnmatchcase(name, p)), None)
        if pattern is None:
            continue
        text = replaced.fault(arch, f"{name} v0, v1")
        assert REFUSED[pattern] in text and name in text, text
        told += 1
    assert told >= 10
