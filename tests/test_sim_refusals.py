"""What the simulator does not understand stops the kernel with a precise reason, never silently."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sim_kernels
from replaced_text import ARCHES, ReplacedText


@pytest.fixture(scope="module")
def replaced(
    sim_library: Path, assemble: Callable[..., Path], llvm_bin: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ReplacedText]:
    folder = tmp_path_factory.mktemp("sim")
    with sim_kernels.private_simulator(sim_library, folder, ",".join(ARCHES)) as hip:
        yield ReplacedText(hip, assemble, llvm_bin, tmp_path_factory.mktemp("text"))


# Instructions of gfx803, gfx90a, gfx1030, gfx1201, gfx1250 and of the other target.
FOREIGN = (
    "v_mac_f32_e32 v1, v2, v3", "v_mad_f32 v1, v2, v3, v4", "v_interp_p1_f32 v1, v2, attr0.x",
    "v_cvt_pk_f16_fp8 v1, v2", "v_mfma_f32_32x32x4bf16_1k a[0:31], v[0:1], v[2:3], a[0:31]",
    "s_mul_u64 s[0:1], s[2:3], s[4:5]", "v_s_exp_f32 s1, s2", "v_minimum_f32 v1, v2, v3",
    "v_maximumminimum_f32 v1, v2, v3, v4", "s_barrier_signal -1", "s_wait_loadcnt 0x0",
    "v_pk_add_min_i16 v1, v2, v3, v4", "v_tanh_f32_e32 v1, v2",
    "s_prefetch_data s[0:1], 0x0, s2, 0",
    "global_load_tr_b128_v4i32 v[0:3], v[4:5], off",
    ".long 0xdeadbeef",
)
OF_GFX950 = ("v_bitop3_b32 v1, v2, v3, v4 bitop3:0x27", "v_permlane32_swap_b32_e32 v1, v2",
             "s_set_gpr_idx_off", "s_andn2_b64 s[0:1], s[2:3], s[4:5]",
             "v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7]")
OF_GFX1151 = ("v_permlane64_b32 v1, v2", "s_add_f32 s1, s2, s3", "v_xor3_b32 v1, v2, v3, v4",
              "s_round_mode 0x3", "v_minmax_f32 v1, v2, v3, v4")
CASES = [(arch, line) for arch in ARCHES for line in FOREIGN]
CASES += [("gfx1151", line) for line in OF_GFX950] + [("gfx950", line) for line in OF_GFX1151]


def test_foreign_instructions(replaced: ReplacedText) -> None:
    for arch, line in CASES:
        text = replaced.fault(arch, line)
        name = re.sub(r"(_e32|_e64)$", "", line.split()[0])
        assert f"instruction '{name}' is not implemented for {arch}" in text, text
        assert re.search(r"\.s:\d+, pc 0x[0-9a-f]+ \(k\+0x4\): ", text), text
        assert line in text


@pytest.mark.parametrize(
    "arch, line, reason",
    [
        ("gfx950", "v_add_u32_e64 v1, v2, v3 mul:2", "modifier omod has no meaning for v_add_u32"),
        ("gfx950", "v_mul_lo_u32 v1, v2, v3 clamp", "modifier clamp has no meaning"),
        ("gfx950", "v_and_b32_e64 v1, v2, v3 op_sel:[1,0]", "modifier op_sel has no meaning"),
        ("gfx950", "v_add_f32_e32 v1, v2, v3 sparkle", "modifier 'sparkle' is not understood"),
        ("gfx950", "v_add_f32_e32 v1, v2, v3 row_twist:3", "'row_twist:3' is not understood"),
        ("gfx950", "v_add_f32_e32 v1, v2", "expected 3 operands, found 2"),
        ("gfx950", "v_add_f64 v[0:1], v2, v[4:5]", "operand 2 names 1 registers, expected 2"),
        ("gfx950", "v_add_u32_e64 v1, -v2, v3", "operand 2 is an integer and takes no neg or abs"),
        ("gfx950", "v_add_f32_e32 v1, v2, v77", "v77 is past the 8 VGPRs"),
        ("gfx950", "v_add_f32_e32 v1, v2, banana", "operand 3 is not understood"),
        ("gfx950", "v_add_f32_dpp v1, v2, v3", "DPP or SDWA suffix without its controls"),
        ("gfx950", "v_add_f32_e32 v1.h, v2, v3", "modifier .l/.h has no meaning for v_add_f32"),
        ("gfx1151", "v_mad_u32_u16 v1, v2.l, v3.h, v4.h", "operand 4 has 32 bits and takes no"),
        ("gfx950", "s_getreg_b32 s4, hwreg(HW_REG_TBA_LO)", "hardware register is not implemented"),
        ("gfx950", "s_setreg_b32 hwreg(HW_REG_STATUS), s4", "hardware register cannot be written"),
        ("gfx1151", "image_sample v[0:3], v[4:5], s[0:7], s[8:11]", "images are not simulated"),
        ("gfx950", "s_sethalt 1", "s_sethalt stops the wave"),
        ("gfx950", "s_trap 2", "s_trap 2 aborts the launch"),
    ],
)
def test_reasons(arch: str, line: str, reason: str, replaced: ReplacedText) -> None:
    text = replaced.fault(arch, line)
    assert reason in text, text
    assert ".s:" in text and line in text
