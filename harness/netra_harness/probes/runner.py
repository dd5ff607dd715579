"""Assembles the probes of a target, runs them through HIP, and says where the device differs."""

from __future__ import annotations

import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from netra_catalog import paths
from netra_sim.hip import Hip

from netra_harness.errors import ToolError
from netra_harness.probes import matrix_layouts as layouts
from netra_harness.probes.matrix_layouts import Shape, Step

_WORDS = {
    "gfx950": ("s_load_dwordx2", "global_load_dword", "global_store_dword"),
    "gfx1151": ("s_load_b64", "global_load_b32", "global_store_b32"),
}


@dataclass(frozen=True)
class Difference:
    """The first register of D that is not what the layout says."""

    shape: Shape
    step: int
    register: int
    lane: int
    got: int
    want: int

    @property
    def text(self) -> str:
        return (
            f"{self.shape.label}: step {self.step}, register {self.register} of D, lane "
            f"{self.lane}: got {self.got:#x}, want {self.want:#x}"
        )


def line(s: Shape) -> str:
    """The instruction on the registers that a step fills."""

    def registers(first: int, bits: int) -> str:
        count = max(1, bits // 32)
        low = 8 + first
        return f"v[{low}:{low + count - 1}]" if count > 1 else f"v{low}"

    repeat = s.lanes // 16 if s.kind == "wmma" else 1
    a = s.m * s.held * s.blocks * repeat * layouts.BITS[s.a] // s.lanes
    b = s.m * s.k * s.blocks * repeat * layouts.BITS[s.b] // s.lanes
    d = registers(layouts.C, layouts.results(s) * (64 if s.out == "f64" else 32))
    operands = [d, registers(layouts.A, a), registers(layouts.B, b)]
    operands.append(registers(layouts.EXTRA, 32) if s.kind == "sparse" else d)
    if s.kind == "scaled":
        operands += [registers(layouts.EXTRA, 32), registers(layouts.EXTRA + 1, 32)]
    return f"{s.name} {', '.join(operands)}{s.tail}"


def source(shapes: list[Shape]) -> str:
    """One kernel a shape, k0 and up, all of one target and wave size."""
    arch, lanes = shapes[0].arch, shapes[0].lanes
    load2, load, store = _WORDS[arch]
    stride = 4 * lanes
    step = f"        s_add_u32 s4, s4, {stride}\n        s_addc_u32 s5, s5, 0\n"
    accum = ".amdhsa_accum_offset 64" if arch == "gfx950" else (
        f".amdhsa_wavefront_size32 {int(lanes == 32)}"
    )
    bodies, entries = [], []
    for n, s in enumerate(shapes):
        out = layouts.results(s) * (2 if s.out == "f64" else 1)
        loads = "".join(f"        {load} v{8 + r}, v2, s[4:5]\n{step}" for r in range(layouts.ROWS))
        stores = "".join(
            f"        {store} v2, v{8 + layouts.C + r}, s[4:5]\n{step}" for r in range(out)
        )
        bodies.append(f"""
        .text
        .globl k{n}
        .p2align 8
        .type k{n},@function
k{n}:
        {load2} s[4:5], s[0:1], 0x0
        v_lshlrev_b32 v2, 2, v0
        s_mul_i32 s6, s2, {(layouts.ROWS + out) * stride}
        s_waitcnt lgkmcnt(0)
        s_add_u32 s4, s4, s6
        s_addc_u32 s5, s5, 0
{loads}        s_waitcnt vmcnt(0)
        {line(s)}
        s_nop 15
        s_nop 15
{stores}        s_endpgm
        .size k{n}, .-k{n}
        .section .rodata,"a"
        .p2align 6
        .amdhsa_kernel k{n}
          .amdhsa_kernarg_size 8
          .amdhsa_user_sgpr_kernarg_segment_ptr 1
          .amdhsa_next_free_sgpr 16
          .amdhsa_next_free_vgpr 64
          {accum}
        .end_amdhsa_kernel
""")
        entries.append(f"""  - .name: k{n}
    .symbol: k{n}.kd
    .kernarg_segment_size: 8
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: {lanes}
    .sgpr_count: 16
    .vgpr_count: 64
    .max_flat_workgroup_size: 64
    .args: [{{.name: data, .offset: 0, .size: 8, .value_kind: global_buffer}}]
""")
    head = f'        .amdgcn_target "amdgcn-amd-amdhsa--{arch}"\n'
    head += "        .amdhsa_code_object_version 5\n"
    metadata = "        .amdgpu_metadata\n---\namdhsa.version: [1, 2]\namdhsa.kernels:\n"
    metadata += "".join(entries) + "...\n        .end_amdgpu_metadata\n"
    return head + "".join(bodies) + metadata


def assemble(shapes: list[Shape], folder: Path) -> Path:
    """The code object of these shapes; raises ToolError with the assembler's words."""
    text = folder / f"probe-{shapes[0].arch}-{shapes[0].lanes}.s"
    text.write_text(source(shapes), encoding="utf-8")
    built = text.with_suffix(".co")
    command = [sys.executable, str(paths.repo_root() / "tools" / "assemble.py"), str(text),
               str(built), "--arch", shapes[0].arch, "--llvm", str(paths.llvm_bin())]  # fmt: skip
    command += ["--wave", "64"] if shapes[0].lanes == 64 and shapes[0].arch == "gfx1151" else []
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ToolError(f"a probe does not assemble: {done.stderr.strip()}")
    return built


def run(hip: Hip, function: int, s: Shape, steps: list[Step]) -> Difference | None:
    """Launches one workgroup for each step; the first difference, if there is one."""
    out = len(steps[0].want)
    image = np.zeros((len(steps), layouts.ROWS + out, s.lanes), np.uint32)
    for n, step in enumerate(steps):
        image[n, : layouts.ROWS] = step.words
        image[n, layouts.ROWS :] = 0xA5A5A5A5
    data = hip.malloc(image.nbytes)
    try:
        hip.upload(data, image.tobytes())
        hip.launch(function, (len(steps), 1, 1), (s.lanes, 1, 1), struct.pack("<Q", data))
        hip.synchronize()
        got = np.frombuffer(hip.download(data, image.nbytes), np.uint32).reshape(image.shape)
    finally:
        hip.free(data)
    got = got[:, layouts.ROWS :]
    want = np.stack([step.want for step in steps])
    if s.kind == "wmma" and s.out in ("f16", "bf16"):  # the other half of D is the addend's
        half = np.uint32(0xFFFF0000 if "op_sel:[0,0,1]" in s.tail else 0x0000FFFF)
        got, want = got & half, want & half
    wrong = np.argwhere(got != want)
    if not len(wrong):
        return None
    n, v, lane = (int(x) for x in wrong[0])
    return Difference(s, n, v, lane, int(got[n, v, lane]), int(want[n, v, lane]))
