"""MFMA and WMMA: every dense shape on data where no adder can round, against NumPy.

Operands are distinct small numbers, so an element that lands in the wrong place changes the result.
The register layouts are written here from AMD's published tables, not from the simulator.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import sim_kernels
from netra_sim.hip import Hip

A, B, SCALES, C, ROWS = 0, 8, 16, 18, 50  # first row of each operand in the buffer
_FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
_FP6 = np.array([m / 8 if e == 0 else (1 + m / 8) * 2.0 ** (e - 1)
                 for e in range(4) for m in range(8)])
_BF6 = np.array([m / 16 if e == 0 else (1 + m / 4) * 2.0 ** (e - 3)
                 for e in range(8) for m in range(4)])
_TYPES = {"f32": np.float32, "i32": np.int32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}


@dataclass(frozen=True)
class Shape:
    name: str
    m: int
    k: int
    blocks: int
    a: str
    b: str
    out: str = "f32"
    tail: str = ""
    scaled: bool = False


def _dense() -> list[Shape]:
    found = []
    for m, k, blocks, kind in (
        (32, 1, 2, "f32"), (16, 1, 4, "f32"), (4, 1, 16, "f32"), (32, 2, 1, "f32"),
        (16, 4, 1, "f32"),
        *((m, k, b, t) for t in ("f16", "bf16") for m, k, b in (
            (32, 4, 2), (16, 4, 4), (4, 4, 16), (32, 8, 1), (16, 16, 1), (16, 32, 1), (32, 16, 1),
        )),
    ):
        block = f"_{blocks}b" if blocks > 1 else ""
        found.append(Shape(f"v_mfma_f32_{m}x{m}x{k}{block}_{kind}", m, k, blocks, kind, kind))
    for m, k in ((16, 32), (32, 16)):
        found += [Shape(f"v_mfma_f32_{m}x{m}x{k}_{a}_{b}", m, k, 1, a, b)
                  for a in ("fp8", "bf8") for b in ("fp8", "bf8")]
    for m, k, blocks in (
        (32, 4, 2), (16, 4, 4), (4, 4, 16), (32, 16, 1), (16, 32, 1), (16, 64, 1), (32, 32, 1),
    ):
        block = f"_{blocks}b" if blocks > 1 else ""
        found.append(Shape(f"v_mfma_i32_{m}x{m}x{k}{block}_i8", m, k, blocks, "i8", "i8", "i32"))
    formats = ("fp8", "bf8", "fp6", "bf6", "fp4")
    for m, k in ((16, 128), (32, 64)):
        for x, a in enumerate(formats):
            for y, b in enumerate(formats):
                tail = f" cbsz:{x} blgp:{y}"
                found.append(Shape(f"v_mfma_f32_{m}x{m}x{k}_f8f6f4", m, k, 1, a, b, tail=tail))
                found.append(Shape(f"v_mfma_scale_f32_{m}x{m}x{k}_f8f6f4", m, k, 1, a, b,
                                   tail=" op_sel:[1,0,0] op_sel_hi:[0,1,0]" + tail, scaled=True))
    return found


MFMA = _dense()
_BITS = {"f32": 32, "f16": 16, "bf16": 16, "i8": 8, "fp8": 8, "bf8": 8, "fp6": 6, "bf6": 6,
         "fp4": 4, "iu8": 8, "iu4": 4}


def _draw(
    rng: np.random.Generator, kind: str, shape: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """(codes, values): random elements whose products and sums are exact in every adder."""
    if kind in ("i8", "iu8", "iu4"):
        codes = rng.integers(0, 1 << _BITS[kind], shape)
        return codes, codes - (codes >> (_BITS[kind] - 1) << _BITS[kind])
    if kind in ("fp4", "fp6", "bf6"):
        table = {"fp4": _FP4, "fp6": _FP6, "bf6": _BF6}[kind]
        codes = rng.integers(0, 2 * len(table), shape)
        values = table[codes % len(table)] * np.where(codes >= len(table), -1, 1)
        return codes, values
    limit = 3 if kind == "bf8" else 8
    values = rng.integers(-limit, limit + 1, shape).astype(np.float64)
    types = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
             "fp8": ml_dtypes.float8_e4m3fn, "bf8": ml_dtypes.float8_e5m2}
    raw = values.astype(np.float32).astype(types[kind])
    return raw.view(f"u{raw.itemsize}").astype(np.int64), values


def _pack(lanes: np.ndarray, bits: int, registers: int) -> np.ndarray:
    """[lane][element] codes -> [register][lane] dwords, first element lowest."""
    out = np.zeros((registers, len(lanes)), np.uint64)
    for n in range(lanes.shape[1]):
        at, shift = divmod(n * bits, 32)
        wide = lanes[:, n].astype(np.uint64) << np.uint64(shift)
        out[at] |= wide & np.uint64(0xFFFFFFFF)
        if shift + bits > 32:
            out[at + 1] |= wide >> np.uint64(32)
    return out.astype(np.uint32)


def _operand(shape: Shape, kind: str, codes: np.ndarray) -> np.ndarray:
    """codes[block][row][k] in the lanes of an MFMA operand."""
    per_lane = shape.blocks * shape.m * shape.k // 64
    lanes = np.zeros((64, per_lane), np.int64)
    for lane in range(64):
        group = lane // (shape.m * shape.blocks)
        for n in range(per_lane):
            k = group * per_lane + n
            if "f8f6f4" in shape.name and _BITS[kind] == 8:
                k = shape.k // 2 * (n // 16) + 16 * group + n % 16
            lanes[lane, n] = codes[lane // shape.m % shape.blocks, lane % shape.m, k]
    return _pack(lanes, _BITS[kind], -(-per_lane * _BITS[kind] // 32))


def _place(shape: Shape, v: int, lane: int) -> tuple[int, int, int]:
    if shape.m == 32:
        return v // 16, 8 * (v % 16 // 4) + 4 * (lane // 32) + v % 4, lane % 32
    if shape.m == 16:
        return v // 4, 4 * (lane // 16) + v % 4, lane % 16
    return lane // 4, v, lane % 4


def _register(shape: Shape, values: np.ndarray, v: int, kind: type) -> np.ndarray:
    """Register v of an accumulator that holds values[block][row][column]."""
    return np.array([values[_place(shape, v, n)] for n in range(64)], kind).view(np.uint32)


def _kernel(name: str, arch: str, lanes: int, line: str) -> str:
    step = f"        s_add_u32 s4, s4, {4 * lanes}\n        s_addc_u32 s5, s5, 0\n"
    load = "".join(f"        global_load_dword v{8 + r}, v2, s[4:5]\n{step}" for r in range(ROWS))
    store = "".join(
        f"        global_store_dword v2, v{8 + C + r}, s[4:5]\n{step}" for r in range(32)
    )
    accum = "          .amdhsa_accum_offset 64\n" if arch == "gfx950" else (
        f"          .amdhsa_wavefront_size32 {int(lanes == 32)}\n")
    return f"""
        .text
        .globl  {name}
        .p2align 8
        .type   {name},@function
{name}:
        s_load_dwordx2  s[4:5], s[0:1], 0
        v_lshlrev_b32   v2, 2, v0
        s_waitcnt       lgkmcnt(0)
{load}        s_waitcnt       vmcnt(0)
        {line}
        s_nop 15
        s_nop 15
{store}        s_endpgm
        .size   {name}, . - {name}
        .section .rodata,"a"
        .p2align 6
        .amdhsa_kernel {name}
          .amdhsa_kernarg_size 8
          .amdhsa_user_sgpr_kernarg_segment_ptr 1
          .amdhsa_next_free_sgpr 16
          .amdhsa_next_free_vgpr 64
{accum}        .end_amdhsa_kernel
"""


def _object(arch: str, lanes: int, lines: list[str]) -> str:
    kernels = "".join(_kernel(f"k{n}", arch, lanes, line) for n, line in enumerate(lines))
    names = "".join(f"""  - .name: k{n}
    .symbol: k{n}.kd
    .kernarg_segment_size: 8
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: {lanes}
    .sgpr_count: 16
    .vgpr_count: 64
    .max_flat_workgroup_size: 64
    .args:
      - {{.name: data, .offset: 0, .size: 8, .value_kind: global_buffer, .address_space: global}}
""" for n in range(len(lines)))
    return f"""        .amdgcn_target "amdgcn-amd-amdhsa--{arch}"
        .amdhsa_code_object_version 5
{kernels}
        .amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--{arch}
amdhsa.kernels:
{names}...
        .end_amdgpu_metadata
"""


@pytest.fixture(scope="module")
def hip(
    sim_library: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Hip]]:
    folder = tmp_path_factory.mktemp("sim")
    with sim_kernels.private_simulator(sim_library, folder, "gfx950,gfx1151") as opened:
        def on(arch: str) -> Hip:
            opened.call("hipSetDevice", ("gfx950", "gfx1151").index(arch))
            return opened

        yield on


def _run(hip: Hip, function: int, rows: np.ndarray, lanes: int) -> np.ndarray:
    data = hip.malloc((ROWS + 32) * lanes * 4)
    hip.upload(data, rows.tobytes() + bytes(32 * lanes * 4))
    hip.launch(function, (1, 1, 1), (lanes, 1, 1), struct.pack("<Q", data))
    hip.synchronize()
    out = hip.download(data, (ROWS + 32) * lanes * 4)
    hip.free(data)
    return np.frombuffer(out, np.uint32).reshape(-1, lanes)[ROWS:]


def _line(shape: Shape) -> str:
    def regs(first: int, count: int) -> str:
        return f"v[{first}:{first + count - 1}]" if count > 1 else f"v{first}"

    def size(kind: str) -> int:
        return -(-shape.blocks * shape.m * shape.k * _BITS[kind] // 64 // 32)

    c = regs(8 + C, shape.blocks * shape.m * shape.m // 64)
    scales = f", v{8 + SCALES}, v{8 + SCALES + 1}" if shape.scaled else ""
    return (f"{shape.name} {c}, {regs(8 + A, size(shape.a))}, {regs(8 + B, size(shape.b))}, {c}"
            f"{scales}{shape.tail}")


def test_mfma_shapes(hip: Callable[[str], Hip], assemble: Callable[..., Path]) -> None:
    device = hip("gfx950")
    module = device.load_module(assemble(_object("gfx950", 64, [_line(s) for s in MFMA])))
    rng = np.random.default_rng(950)
    wrong = []
    for n, s in enumerate(MFMA):
        a_codes, a = _draw(rng, s.a, (s.blocks, s.m, s.k))
        b_codes, b = _draw(rng, s.b, (s.blocks, s.m, s.k))
        rows = np.zeros((ROWS, 64), np.uint32)
        for at, kind, codes in ((A, s.a, a_codes), (B, s.b, b_codes)):
            packed = _operand(s, kind, codes)
            rows[at : at + len(packed)] = packed
        if s.scaled:
            # Byte 1 scales A and byte 2 scales B, by row and block of 32 consecutive k.
            exponents = rng.integers(0, 4, (2, 64)) + 127
            for x, byte in ((0, 1), (1, 2)):
                noise = rng.integers(0, 1 << 32, 64, np.uint64) & ~np.uint64(0xFF << (8 * byte))
                rows[SCALES + x] = noise | exponents[x].astype(np.uint64) << np.uint64(8 * byte)
            for x, values in ((0, a), (1, b)):
                for k in range(s.k):
                    for r in range(s.m):
                        values[0, r, k] *= 2.0 ** (exponents[x][k // 32 * s.m + r] - 127)
        c = rng.integers(-100, 100, (s.blocks, s.m, s.m))
        want = c + np.einsum("bik,bjk->bij", a, b)
        count = s.blocks * s.m * s.m // 64
        kind = np.float32 if s.out == "f32" else np.int32
        for v in range(count):
            rows[C + v] = _register(s, c, v, kind)
        got = _run(device, device.function(module, f"k{n}"), rows, 64)
        for v in range(count):
            if not np.array_equal(got[v], _register(s, want, v, kind)):
                wrong.append(f"{s.name}{s.tail}: register {v} of D")
                break
    assert not wrong, "\n".join(wrong)


WMMA = (
    ("f16", "f32"), ("bf16", "f32"), ("f16", "f16"), ("bf16", "bf16"), ("iu8", "i32"),
    ("iu4", "i32"),
)


@pytest.mark.parametrize("lanes", [32, 64])
def test_wmma_shapes(hip: Callable[[str], Hip], assemble: Callable[..., Path], lanes: int) -> None:
    device = hip("gfx1151")
    lines = []
    for kind, out in WMMA:
        size, acc = 16 * _BITS[kind] // 32, 8 * 32 // lanes
        c = f"v[{8 + C}:{8 + C + acc - 1}]"
        tail = " neg_lo:[1,1,0]" if out == "i32" else ""
        lines.append(f"v_wmma_{out}_16x16x16_{kind} {c}, v[{8 + A}:{8 + A + size - 1}], "
                     f"v[{8 + B}:{8 + B + size - 1}], {c}{tail}")
    wave = 64 if lanes == 64 else None
    module = device.load_module(assemble(_object("gfx1151", lanes, lines), "gfx1151", wave))
    rng = np.random.default_rng(1151)
    for n, (kind, out) in enumerate(WMMA):
        a_codes, a = _draw(rng, kind, (16, 16))
        b_codes, b = _draw(rng, kind, (16, 16))
        c = rng.integers(0, 20, (16, 16))
        if out != "i32":
            # One sign only: the step measured on gfx11 is inexact where terms oppose each other.
            sign = 1 << (_BITS[kind] - 1)
            a_codes, b_codes, a, b = a_codes & ~sign, b_codes & ~sign, np.abs(a), np.abs(b)
        if out == "bf16":  # sums must fit 8 bits at every step
            a_codes, a = np.where(a > 1, 0, a_codes), np.where(a > 1, 0, a)
        want = c + a @ b.T
        rows = np.zeros((ROWS, lanes), np.uint32)
        repeat = np.arange(lanes) % 16
        for at, codes in ((A, a_codes), (B, b_codes)):
            packed = _pack(codes[repeat], _BITS[kind], 16 * _BITS[kind] // 32)
            rows[at : at + len(packed)] = packed

        def register(values: np.ndarray, v: int, out: str = out) -> np.ndarray:
            per = lanes // 16
            lane = np.arange(lanes)
            picked = values[per * v + lane // 16, lane % 16].astype(np.float64).astype(_TYPES[out])
            return picked.view(f"u{picked.itemsize}").astype(np.uint32)

        acc = 8 * 32 // lanes
        for v in range(acc):
            rows[C + v] = register(c, v)
        got = _run(device, device.function(module, f"k{n}"), rows, lanes)
        for v in range(acc):
            assert np.array_equal(got[v], register(want, v)), f"{kind} to {out}, register {v}"


def test_wmma_refuses_lanes_that_are_not_repeated(
    hip: Callable[[str], Hip], assemble: Callable[..., Path]
) -> None:
    device = hip("gfx1151")
    c = f"v[{8 + C}:{15 + C}]"
    line = f"v_wmma_f32_16x16x16_f16 {c}, v[{8 + A}:{15 + A}], v[{8 + B}:{15 + B}], {c}"
    module = device.load_module(assemble(_object("gfx1151", 32, [line]), "gfx1151"))
    rows = np.zeros((ROWS, 32), np.uint32)
    rows[A, 20] = 0x3C00
    with pytest.raises(Exception, match="LaunchFailure"):
        _run(device, device.function(module, "k0"), rows, 32)
    assert "lane 20 of operand 2 differs from lane 4" in device.last_fault()
    device.library.netraSimReset()
