"""Little kernels that load registers, run a few instructions, and store registers.

Every workgroup is one wave with data of its own: `rows` rows of a word a lane go to v8 and up,
then the code runs, then `out` registers from `first` on are stored behind the data.
"""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from netra_catalog import paths
from netra_sim.hip import Hip
from numpy.typing import NDArray

from netra_harness.errors import ToolError

U32 = NDArray[np.uint32]
FIRST = 8  # the register that the first row goes to
_FILL = 0xA5A5A5A5
_WORDS = {
    "gfx950": ("s_load_dwordx2", "global_load_dword", "global_store_dword"),
    "gfx1151": ("s_load_b64", "global_load_b32", "global_store_b32"),
}


@dataclass(frozen=True)
class Program:
    """`code` may use v8 and up to v251, s8 to s15 and vcc; `registers` is how many VGPRs it has."""

    symbol: str
    arch: str
    lanes: int
    rows: int
    code: str
    first: int
    out: int
    registers: int = 64


def source(programs: Sequence[Program]) -> str:
    """One kernel a program, all of one target and wave size."""
    arch, lanes = programs[0].arch, programs[0].lanes
    load2, load, store = _WORDS[arch]
    stride = 4 * lanes
    step = f"        s_add_u32 s4, s4, {stride}\n        s_addc_u32 s5, s5, 0\n"
    bodies, entries = [], []
    for p in programs:
        accum = f".amdhsa_accum_offset {p.registers}" if arch == "gfx950" else (
            f".amdhsa_wavefront_size32 {int(lanes == 32)}"
        )
        loads = "".join(f"        {load} v{FIRST + r}, v2, s[4:5]\n{step}" for r in range(p.rows))
        stored = range(p.first, p.first + p.out)
        stores = "".join(f"        {store} v2, v{v}, s[4:5]\n{step}" for v in stored)
        code = "".join(f"        {line.strip()}\n" for line in p.code.strip().splitlines())
        bodies.append(f"""
        .text
        .globl {p.symbol}
        .p2align 8
        .type {p.symbol},@function
{p.symbol}:
        {load2} s[4:5], s[0:1], 0x0
        v_lshlrev_b32 v2, 2, v0
        s_mul_i32 s6, s2, {(p.rows + p.out) * stride}
        s_waitcnt lgkmcnt(0)
        s_add_u32 s4, s4, s6
        s_addc_u32 s5, s5, 0
{loads}        s_waitcnt vmcnt(0)
{code}        s_nop 15
        s_nop 15
{stores}        s_endpgm
        .size {p.symbol}, .-{p.symbol}
        .section .rodata,"a"
        .p2align 6
        .amdhsa_kernel {p.symbol}
          .amdhsa_kernarg_size 8
          .amdhsa_user_sgpr_kernarg_segment_ptr 1
          .amdhsa_next_free_sgpr 16
          .amdhsa_next_free_vgpr {p.registers}
          .amdhsa_float_denorm_mode_32 3
          {accum}
        .end_amdhsa_kernel
""")
        entries.append(f"""  - .name: {p.symbol}
    .symbol: {p.symbol}.kd
    .kernarg_segment_size: 8
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: {lanes}
    .sgpr_count: 16
    .vgpr_count: {p.registers}
    .max_flat_workgroup_size: 64
    .args: [{{.name: data, .offset: 0, .size: 8, .value_kind: global_buffer}}]
""")
    head = f'        .amdgcn_target "amdgcn-amd-amdhsa--{arch}"\n'
    head += "        .amdhsa_code_object_version 5\n"
    metadata = "        .amdgpu_metadata\n---\namdhsa.version: [1, 2]\namdhsa.kernels:\n"
    metadata += "".join(entries) + "...\n        .end_amdgpu_metadata\n"
    return head + "".join(bodies) + metadata


def assemble(programs: Sequence[Program], folder: Path, name: str = "probe") -> Path:
    """Their code object; raises ToolError with the assembler's words."""
    arch, lanes = programs[0].arch, programs[0].lanes
    text = folder / f"{name}-{arch}-{lanes}.s"
    text.write_text(source(programs), encoding="utf-8")
    built = text.with_suffix(".co")
    command = [sys.executable, str(paths.repo_root() / "tools" / "assemble.py"), str(text),
               str(built), "--arch", arch, "--llvm", str(paths.llvm_bin())]  # fmt: skip
    command += ["--wave", "64"] if lanes == 64 and arch == "gfx1151" else []
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ToolError(f"a probe does not assemble: {done.stderr.strip()}")
    return built


def run(hip: Hip, function: int, p: Program, words: U32) -> U32:
    """Launches a workgroup for each of words[step][rows][lanes]; returns what it stored, as
    [step][out][lanes].

    A word that was never stored keeps the pattern a5a5a5a5.
    """
    count = len(words)
    image = np.full((count, p.rows + p.out, p.lanes), _FILL, np.uint32)
    image[:, : p.rows] = words
    data = hip.malloc(image.nbytes)
    try:
        hip.upload(data, image.tobytes())
        hip.launch(function, (count, 1, 1), (p.lanes, 1, 1), struct.pack("<Q", data))
        hip.synchronize()
        got = np.frombuffer(hip.download(data, image.nbytes), np.uint32).reshape(image.shape)
    finally:
        hip.free(data)
    return np.asarray(got[:, p.rows :])
