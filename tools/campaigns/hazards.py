"""Random instruction sequences: our wait-state verdict against what LLVM would insert.

Each sequence is written twice, as assembly for the simulator and as machine IR for llc's hazard
recogniser. The two agree when the first instruction that needs more wait states is the same, and
so is their number. Sequences are gfx950's: on gfx1151 the recogniser has no wait states to insert.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from netra_catalog import paths

from campaigns import core

NAME = "hazard-fuzz"
DEFAULT_COUNT = 1000
ARCH = "gfx950"
_BATCH = 100
_LLC = ["-mtriple=amdgcn-amd-amdhsa", f"-mcpu={ARCH}", "-mattr=-xnack",
        "-run-pass=post-RA-hazard-rec", "-x", "mir"]  # fmt: skip
# Rows whose LLVM figure is our warning; every other warning is a figure of the guide alone.
_LLVM_WARNINGS = ("V3", "V10")
_E, _M = "implicit $exec", "implicit $mode, implicit $exec"


@dataclass(frozen=True)
class Sequence:
    """The same instructions, for the assembler and for llc."""

    asm: tuple[str, ...]
    mir: tuple[str, ...]


def _tuple(first: int, count: int) -> str:
    return "$" + "_".join(f"vgpr{k}" for k in range(first, first + count))


def _range(first: int, count: int) -> str:
    return f"v[{first}:{first + count - 1}]"


Make = Callable[[random.Random], tuple[str, str]]


def _v(rng: random.Random) -> int:
    return rng.randrange(32, 40)


def _even(rng: random.Random) -> int:
    return rng.randrange(32, 40, 2)


def _s(rng: random.Random) -> int:
    return rng.randrange(20, 23)


def _matrix(asm: str, mir: str, ab: int, cd: int, tail: str) -> Make:
    def make(rng: random.Random) -> tuple[str, str]:
        d, a, b = _even(rng), _even(rng), _even(rng)
        c = d if cd > 4 or rng.random() < 0.6 else rng.choice((32, 34, 36, 48))
        # A result wider than four registers may overlap neither addend nor factors.
        if cd > 4:
            d = c = 64
            a, b = (_even(rng) for _ in range(2))
        left = (f"{asm} {_range(d, cd)}, {_reg(a, ab)}, {_reg(b, ab)}, {_range(c, cd)}",)
        right = f"{_tuple(d, cd)} = {mir} {_tuple(a, ab)}, {_tuple(b, ab)}, {_tuple(c, cd)}, {tail}"
        return left[0], f"{right}, {_M}"

    return make


def _reg(first: int, count: int) -> str:
    return f"v{first}" if count == 1 else _range(first, count)


def _plain(asm: str, mir: str) -> Make:
    """{d} {a} {b}: VGPRs; {e}: an even one; {s} {t}: SGPRs."""

    def make(rng: random.Random) -> tuple[str, str]:
        n = {"d": _v(rng), "a": _v(rng), "b": _v(rng), "s": _s(rng), "t": _s(rng)}
        n["b"] = n["b"] if n["b"] != n["a"] else 32 + (n["a"] - 31) % 8
        n["e"] = _even(rng)
        pair = f"$vgpr{n['e']}_vgpr{n['e'] + 1}"
        quad = _tuple(n["e"], 4)
        text = asm.format(**n, e1=n["e"] + 1, e3=n["e"] + 3)
        return text, mir.format(**n, pair=pair, quad=quad, E=_E, M=_M)

    return make


VOCABULARY: tuple[Make, ...] = (
    _plain("v_mov_b32 v{d}, v{a}", "$vgpr{d} = V_MOV_B32_e32 $vgpr{a}, {E}"),
    _plain("v_add_u32 v{d}, v{a}, v{b}", "$vgpr{d} = V_ADD_U32_e32 $vgpr{a}, $vgpr{b}, {E}"),
    _plain("v_rcp_f32 v{d}, v{a}", "$vgpr{d} = V_RCP_F32_e32 $vgpr{a}, {M}"),
    _plain("v_mov_b32_dpp v{d}, v{a} quad_perm:[0,0,0,0] row_mask:0xf bank_mask:0xf",
           "$vgpr{d} = V_MOV_B32_dpp $vgpr{d}, $vgpr{a}, 0, 15, 15, 0, {E}"),
    _plain("v_mov_b32_sdwa v{d}, v{a} dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD",
           "$vgpr{d} = V_MOV_B32_sdwa 0, $vgpr{a}, 0, 5, 2, 6, implicit $vgpr{d}(tied-def 0), {E}"),
    _plain("v_dot4_i32_i8 v{d}, v{a}, v{b}, v{a}",
           "$vgpr{d} = V_DOT4_I32_I8 8, $vgpr{a}, 8, $vgpr{b}, 8, $vgpr{a}, 0, 0, 0, {E}"),
    _plain("v_readfirstlane_b32 s{s}, v{a}", "$sgpr{s} = V_READFIRSTLANE_B32 $vgpr{a}, {E}"),
    _plain("v_readlane_b32 s{s}, v{a}, s{t}", "$sgpr{s} = V_READLANE_B32 $vgpr{a}, $sgpr{t}"),
    _plain("v_mov_b32 v{d}, s{s}", "$vgpr{d} = V_MOV_B32_e32 $sgpr{s}, {E}"),
    _plain("v_cmp_eq_u32 vcc, v{a}, v{b}",
           "V_CMP_EQ_U32_e32 $vgpr{a}, $vgpr{b}, implicit-def $vcc, {E}"),
    _plain("v_cndmask_b32 v{d}, v{a}, v{b}, vcc",
           "$vgpr{d} = V_CNDMASK_B32_e32 $vgpr{a}, $vgpr{b}, implicit $vcc, {E}"),
    _plain("v_div_fmas_f32 v{d}, v{a}, v{b}, v{a}",
           "$vgpr{d} = V_DIV_FMAS_F32_e64 0, $vgpr{a}, 0, $vgpr{b}, 0, $vgpr{a}, 0, 0, "
           "implicit $vcc, {M}"),
    _plain("v_permlane32_swap_b32 v{a}, v{b}",
           "$vgpr{a}, $vgpr{b} = V_PERMLANE32_SWAP_B32_e32 $vgpr{a}, $vgpr{b}, {E}"),
    _plain("global_store_dword v[2:3], v{a}, off",
           "GLOBAL_STORE_DWORD $vgpr2_vgpr3, $vgpr{a}, 0, 0, {E}"),
    _plain("global_store_dwordx4 v[2:3], v[{e}:{e3}], off",
           "GLOBAL_STORE_DWORDX4 $vgpr2_vgpr3, {quad}, 0, 0, {E}"),
    _plain("ds_write_b32 v1, v{a}", "DS_WRITE_B32_gfx9 $vgpr1, $vgpr{a}, 0, 0, {E}"),
    _plain("ds_read_b32 v{d}, v1", "$vgpr{d} = DS_READ_B32_gfx9 $vgpr1, 0, 0, {E}"),
    _plain("buffer_load_dword v{d}, off, s[8:11], s{s}",
           "$vgpr{d} = BUFFER_LOAD_DWORD_OFFSET $sgpr8_sgpr9_sgpr10_sgpr11, $sgpr{s}, "
           "0, 0, 0, {E}"),
    _plain("s_mov_b32 s{s}, 0", "$sgpr{s} = S_MOV_B32 0"),
    _matrix("v_mfma_f32_16x16x16_f16", "V_MFMA_F32_16X16X16F16_vgprcd_e64", 2, 4, "0, 0, 0"),
    _matrix("v_mfma_f32_4x4x4_16b_f16", "V_MFMA_F32_4X4X4F16_vgprcd_e64", 2, 4, "0, 0, 0"),
    _matrix("v_mfma_f32_32x32x8_f16", "V_MFMA_F32_32X32X8F16_vgprcd_e64", 2, 16, "0, 0, 0"),
    _matrix("v_mfma_f32_16x16x4_f32", "V_MFMA_F32_16X16X4F32_vgprcd_e64", 1, 4, "0, 0, 0"),
    _matrix("v_mfma_f64_4x4x4_4b_f64", "V_MFMA_F64_4X4X4F64_vgprcd_e64", 2, 2, "0, 0, 0"),
)  # fmt: skip


def draw(rng: random.Random) -> Sequence:
    """Two to six instructions, with a few wait states here and there."""
    asm, mir = [], []
    for k in range(rng.randrange(2, 7)):
        if k and rng.random() < 0.4:
            n = rng.choice((0, 0, 1, 2, 4, 7))
            asm.append(f"s_nop {n}")
            mir.append(f"S_NOP {n}")
        one, other = rng.choice(VOCABULARY)(rng)
        asm.append(one)
        mir.append(other)
    return Sequence(tuple(asm), tuple(mir))


def llvm_verdicts(llc: Path, sequences: list[Sequence]) -> list[tuple[int, int] | None]:
    """(index, wait states) of the first insertion of each sequence; None where there is none."""
    text = "".join(
        f"---\nname: f{n}\nbody: |\n  bb.0:\n"
        + "".join(f"    {line}\n" for line in sequence.mir)
        + "    S_ENDPGM 0\n...\n"
        for n, sequence in enumerate(sequences)
    )
    done = subprocess.run([str(llc), *_LLC, "-", "-o", "-"], input=text, capture_output=True,
                          text=True, check=True)  # fmt: skip
    bodies = re.findall(r"^body:.*?\n  bb\.0:\n(.*?)^\.\.\.", done.stdout, re.M | re.S)
    out: list[tuple[int, int] | None] = []
    for sequence, body in zip(sequences, bodies, strict=True):
        got = [line.strip() for line in body.splitlines() if line.strip()]
        got = [line for line in got if not line.startswith(("liveins", "S_ENDPGM"))]
        out.append(_first_insertion(sequence, got))
    return out


def _first_insertion(sequence: Sequence, got: list[str]) -> tuple[int, int] | None:
    at = 0
    for index, own in enumerate(sequence.mir):
        added = 0
        while at < len(got) and got[at].startswith("S_NOP") and not own.startswith("S_NOP"):
            added += int(got[at].split()[1]) + 1
            at += 1
        if added:
            return index, added
        at += 1
    return None


_HEAD = """.amdgcn_target "amdgcn-amd-amdhsa--gfx950"
.text
.globl k
.p2align 8
.type k,@function
k:
s_load_dwordx2 s[4:5], s[0:1], 0x0
s_mov_b32 s10, 65536
s_mov_b32 s11, 0x00020000
s_waitcnt lgkmcnt(0)
s_mov_b32 s8, s4
s_and_b32 s9, s5, 0xffff
v_lshlrev_b32 v1, 2, v0
v_mov_b32 v2, s4
v_mov_b32 v3, s5
"""
_TAIL = """s_endpgm
.size k, .-k
.rodata
.p2align 6
.amdhsa_kernel k
  .amdhsa_next_free_vgpr 128
  .amdhsa_next_free_sgpr 64
  .amdhsa_accum_offset 128
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_kernarg_size 8
  .amdhsa_group_segment_fixed_size 1024
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.kernels:
  - .name: k
    .symbol: k.kd
    .kernarg_segment_size: 8
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 1024
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 64
    .vgpr_count: 128
    .max_flat_workgroup_size: 64
    .args:
      - {.name: data, .offset: 0, .size: 8, .value_kind: global_buffer}
...
.end_amdgpu_metadata
"""
_BETWEEN = ("s_waitcnt vmcnt(0) lgkmcnt(0)", "s_nop 15", "s_nop 15", "s_mov_b64 exec, -1",
            "s_mov_b32 s20, 0", "s_mov_b32 s21, 0", "s_mov_b32 s22, 0")  # fmt: skip


def our_verdicts(folder: Path, sequences: list[Sequence]) -> list[tuple[int, int] | None]:
    """The same question to the simulator's check."""
    import netra_sim
    from netra_sim.hip import Hip

    lines = _HEAD.splitlines()
    places: dict[int, tuple[int, int]] = {}
    for n, sequence in enumerate(sequences):
        lines += _BETWEEN
        for index, text in enumerate(sequence.asm):
            lines.append(text)
            places[len(lines)] = (n, index)
    source, built = folder / "k.s", folder / "k.co"
    source.write_text("\n".join([*lines, *_TAIL.splitlines()]) + "\n")
    clang = paths.llvm_bin() / "clang"
    subprocess.run([str(clang), "--target=amdgcn-amd-amdhsa", f"-mcpu={ARCH}", "-g", str(source),
                    "-o", str(built)], check=True)  # fmt: skip
    hip = Hip(netra_sim.library_path())
    module = hip.load_module(built)
    pointer = hip.malloc(65536)
    hip.fill(pointer, 0, 65536)
    netra_sim.reset()
    hip.sanitize()
    hip.launch(hip.function(module, "k"), (1, 1, 1), (64, 1, 1), pointer.to_bytes(8, "little"))
    hip.synchronize()
    out: list[tuple[int, int] | None] = [None] * len(sequences)
    for found in netra_sim.findings():
        if found["kind"] != "wait_states":
            continue
        if found["severity"] == "warning" and found["rule"] not in _LLVM_WARNINGS:
            continue
        n, index = places[int(found["at"]["line"].rsplit(":", 1)[1])]
        missing = int(found["mend"].split()[0])
        before = out[n]
        if before is None or index < before[0] or (index == before[0] and missing > before[1]):
            out[n] = (index, missing)
    hip.free(pointer)
    hip.unload_module(module)
    netra_sim.reset()
    return out


def run(options: core.Options) -> int:
    """Compares `count` sequences; the exit code."""
    os.environ["NETRA_SIM_DEVICES"] = ARCH
    rng = random.Random(options.seed)
    total = options.count or DEFAULT_COUNT
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        for start in range(0, total, _BATCH):
            batch = [draw(rng) for _ in range(min(_BATCH, total - start))]
            theirs = llvm_verdicts(paths.llvm_bin() / "llc", batch)
            ours = our_verdicts(Path(name), batch)
            for sequence, want, got in zip(batch, theirs, ours, strict=True):
                if want != got:
                    failed += 1
                    print(f"FAIL LLVM {_words(want)}, the sanitizer {_words(got)}:")
                    for text in sequence.asm:
                        print(f"    {text}")
    print(f"seed {options.seed}")
    print(f"{NAME}: {total - failed} passed, {failed} failed of {total}")
    return 1 if failed else 0


def _words(verdict: tuple[int, int] | None) -> str:
    if verdict is None:
        return "adds nothing"
    return f"adds {verdict[1]} before instruction {verdict[0] + 1}"
