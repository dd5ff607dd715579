"""The loops that are timed, as assembly text: one kernel `loop(rounds u32)` a code object.

Each round is a fixed number of instructions of one kind on registers that the kernel filled from
the lane number, and two scalar instructions to count.  Values stay finite and normal: what is
timed is the instruction, not the host's trouble with denormals.
"""

from __future__ import annotations

from dataclasses import dataclass

_WAVE = {"gfx950": 64, "gfx1151": 32}


@dataclass(frozen=True)
class Loop:
    """`native` is the loop of native.c that does the same work; `count` instructions a round."""

    name: str
    arch: str
    kinds: tuple[str, ...]  # classes of the counters that the body belongs to
    native: str
    target: float | None
    setup: str
    body: str
    count: int
    vgprs: int

    def source(self) -> str:
        """A whole .s file."""
        return _SOURCE.format(
            arch=self.arch,
            load="s_load_dword" if self.arch == "gfx950" else "s_load_b32",
            setup=_lines(self.setup),
            body=_lines(self.body),
            vgprs=self.vgprs,
            accum=(
                f".amdhsa_accum_offset {-(-self.vgprs // 4) * 4}" if self.arch == "gfx950" else ""
            ),
            wave=_WAVE[self.arch],
        )

    @property
    def lanes(self) -> int:
        return _WAVE[self.arch]


def _lines(text: str) -> str:
    return "\n".join("        " + line.strip() for line in text.strip().splitlines())


# A float register moves toward a fixed point near 2, an integer register wanders over all values.
_VALU_SETUP = """
.irp r, 2, 3, 4, 5, 6, 7, 8, 9
v_cvt_f32_u32   v\\r, v0
v_fma_f32       v\\r, v\\r, 0.5, 1.0
.endr
.irp r, 10, 11, 12, 13, 14, 15, 16, 17
v_mul_u32_u24   v\\r, v0, v0
.endr
"""
_VALU_BODY = """
.rept 8
v_mul_f32       v2, 0.5, v3
v_add_f32       v3, 1.0, v2
v_fma_f32       v4, v5, 0.5, v6
v_add_{nc}u32   v10, v11, v12
v_xor_b32       v11, v10, v13
v_lshlrev_b32   v12, 3, v11
v_mul_f32       v5, 0.5, v4
v_fma_f32       v6, v5, 0.5, 1.0
v_and_b32       v13, v12, v14
v_add3_u32      v14, v13, v10, v15
v_fmac_f32      v7, 0.5, v8
v_mul_f32       v7, 0.5, v7
v_add_f32       v8, 1.0, v7
v_or_b32        v15, v16, v11
v_lshl_add_u32  v16, v15, 2, v12
v_add_f32       v9, v8, v2
.endr
"""


def _valu(arch: str, native: str) -> Loop:
    body = _VALU_BODY.replace("{nc}", "nc_" if arch == "gfx1151" else "")
    kinds = ("vop1", "vop2", "vop3")
    return Loop(f"valu_wave{_WAVE[arch]}_{arch}", arch, kinds, native, 60e6, _VALU_SETUP, body,
                128, 18)


def _matrix(
    name: str, arch: str, kind: str, native: str, target: float | None, line: str, pattern: str,
    operand: int,
) -> Loop:
    """`operand` registers each for A (from v8) and B (from v24); accumulators from v40."""
    acc = 8 if arch == "gfx1151" else 4
    setup = "v_and_b32 v1, 15, v0\nv_lshlrev_b32 v2, 2, v1\nv_or_b32 v1, v1, v2\n"
    setup += "".join(
        f"v_mul_u32_u24 v{base + r}, {0x10001 * (2 * r + 1) & 0xffffff}, v1\n"
        f"v_and_b32 v{base + r}, {pattern.split()[0]}, v{base + r}\n"
        f"v_or_b32 v{base + r}, {pattern.split()[1]}, v{base + r}\n"
        for base in (8, 24) for r in range(operand)
    )
    setup += "".join(f"v_mov_b32 v{40 + r}, 0\n" for r in range(4 * acc))
    body = ".rept 8\n" + "".join(
        line.format(
            d=f"v[{40 + k * acc}:{39 + k * acc + acc}]",
            a=f"v[8:{7 + operand}]",
            b=f"v[24:{23 + operand}]",
        ) + "\n"
        for k in range(4)
    ) + ".endr\n"
    return Loop(name, arch, (kind,), native, target, setup, body, 32, 40 + 4 * acc)


# Patterns: a mask and bits that make every element finite, of either sign, near 1.
_FP8, _BF16, _F16, _FP4 = (
    "0x87878787 0x30303030", "0x80078007 0x3f803f80", "0x80ff80ff 0x3c003c00",
    "0xbbbbbbbb 0x00000000",
)

LOOPS = (
    _valu("gfx950", "valu64"),
    _valu("gfx1151", "valu32"),
    _matrix("mfma_16x16x32_fp8", "gfx950", "mfma", "matrix32", 3e6,
            "v_mfma_f32_16x16x32_fp8_fp8 {d}, {a}, {b}, {d}", _FP8, 2),
    _matrix("mfma_16x16x32_bf16", "gfx950", "mfma", "matrix32", 3e6,
            "v_mfma_f32_16x16x32_bf16 {d}, {a}, {b}, {d}", _BF16, 4),
    _matrix("mfma_16x16x128_f8f6f4_fp8", "gfx950", "mfma", "matrix128", None,
            "v_mfma_f32_16x16x128_f8f6f4 {d}, {a}, {b}, {d}", _FP8, 8),
    _matrix("mfma_16x16x128_f8f6f4_fp4", "gfx950", "mfma", "matrix128", None,
            "v_mfma_f32_16x16x128_f8f6f4 {d}, {a}, {b}, {d} cbsz:4 blgp:4", _FP4, 4),
    _matrix("wmma_16x16x16_f16", "gfx1151", "wmma", "matrix16", 3e6,
            "v_wmma_f32_16x16x16_f16 {d}, {a}, {b}, {d}", _F16, 8),
    _matrix("wmma_16x16x16_bf16", "gfx1151", "wmma", "matrix16", 3e6,
            "v_wmma_f32_16x16x16_bf16 {d}, {a}, {b}, {d}", _BF16, 8),
)

_SOURCE = """
        .amdgcn_target "amdgcn-amd-amdhsa--{arch}"
        .amdhsa_code_object_version 5
        .text
        .globl  loop
        .p2align 8
        .type   loop,@function
loop:
        {load} s4, s[0:1], 0
{setup}
        s_waitcnt lgkmcnt(0)
.Lagain:
{body}
        s_sub_u32 s4, s4, 1
        s_cmp_lg_u32 s4, 0
        s_cbranch_scc1 .Lagain
        s_endpgm
        .size   loop, . - loop
        .section .rodata,"a"
        .p2align 6
        .amdhsa_kernel loop
          .amdhsa_kernarg_size 8
          .amdhsa_user_sgpr_kernarg_segment_ptr 1
          .amdhsa_float_denorm_mode_32 3
          .amdhsa_next_free_sgpr 16
          {accum}
          .amdhsa_next_free_vgpr {vgprs}
        .end_amdhsa_kernel
        .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--{arch}
amdhsa.kernels:
  - .name: loop
    .symbol: loop.kd
    .kernarg_segment_size: 8
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: {wave}
    .sgpr_count: 16
    .vgpr_count: {vgprs}
    .max_flat_workgroup_size: 64
    .args:
      - {{.name: rounds, .offset: 0, .size: 4, .value_kind: by_value}}
...
        .end_amdgpu_metadata
"""
