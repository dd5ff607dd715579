"""MFMA and WMMA: every dense shape on data where no adder can round, against NumPy.

Operands are distinct small numbers, so an element that lands in the wrong place changes the result.
The register layouts are written here from AMD's published tables, not from the simulator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import sim_kernels
from matrix_programs import (
    BITS,
    MFMA,
    ROWS,
    SCALES,
    TYPES,
    A,
    B,
    C,
    code_object,
    draw,
    line,
    operand,
    pack,
    register,
    run,
)  # fmt: skip
from netra_sim.hip import Hip


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


def test_mfma_shapes(hip: Callable[[str], Hip], assemble: Callable[..., Path]) -> None:
    device = hip("gfx950")
    module = device.load_module(assemble(code_object("gfx950", 64, [line(s) for s in MFMA])))
    rng = np.random.default_rng(950)
    wrong = []
    for n, s in enumerate(MFMA):
        a_codes, a = draw(rng, s.a, (s.blocks, s.m, s.k))
        b_codes, b = draw(rng, s.b, (s.blocks, s.m, s.k))
        rows = np.zeros((ROWS, 64), np.uint32)
        for at, kind, codes in ((A, s.a, a_codes), (B, s.b, b_codes)):
            packed = operand(s, kind, codes)
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
            rows[C + v] = register(s, c, v, kind)
        got = run(device, device.function(module, f"k{n}"), rows, 64)
        for v in range(count):
            if not np.array_equal(got[v], register(s, want, v, kind)):
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
        size, acc = 16 * BITS[kind] // 32, 8 * 32 // lanes
        c = f"v[{8 + C}:{8 + C + acc - 1}]"
        tail = " neg_lo:[1,1,0]" if out == "i32" else ""
        lines.append(f"v_wmma_{out}_16x16x16_{kind} {c}, v[{8 + A}:{8 + A + size - 1}], "
                     f"v[{8 + B}:{8 + B + size - 1}], {c}{tail}")
    wave = 64 if lanes == 64 else None
    module = device.load_module(assemble(code_object("gfx1151", lanes, lines), "gfx1151", wave))
    rng = np.random.default_rng(1151)
    for n, (kind, out) in enumerate(WMMA):
        a_codes, a = draw(rng, kind, (16, 16))
        b_codes, b = draw(rng, kind, (16, 16))
        c = rng.integers(0, 20, (16, 16))
        if out != "i32":
            # One sign only: the step measured on gfx11 is inexact where terms oppose each other.
            sign = 1 << (BITS[kind] - 1)
            a_codes, b_codes, a, b = a_codes & ~sign, b_codes & ~sign, np.abs(a), np.abs(b)
        if out == "bf16":  # sums must fit 8 bits at every step
            a_codes, a = np.where(a > 1, 0, a_codes), np.where(a > 1, 0, a)
        want = c + a @ b.T
        rows = np.zeros((ROWS, lanes), np.uint32)
        repeat = np.arange(lanes) % 16
        for at, codes in ((A, a_codes), (B, b_codes)):
            packed = pack(codes[repeat], BITS[kind], 16 * BITS[kind] // 32)
            rows[at : at + len(packed)] = packed

        def register(values: np.ndarray, v: int, out: str = out) -> np.ndarray:
            per = lanes // 16
            lane = np.arange(lanes)
            picked = values[per * v + lane // 16, lane % 16].astype(np.float64).astype(TYPES[out])
            return picked.view(f"u{picked.itemsize}").astype(np.uint32)

        acc = 8 * 32 // lanes
        for v in range(acc):
            rows[C + v] = register(c, v)
        got = run(device, device.function(module, f"k{n}"), rows, lanes)
        for v in range(acc):
            assert np.array_equal(got[v], register(want, v)), f"{kind} to {out}, register {v}"


def test_wmma_refuses_lanes_that_are_not_repeated(
    hip: Callable[[str], Hip], assemble: Callable[..., Path]
) -> None:
    device = hip("gfx1151")
    c = f"v[{8 + C}:{15 + C}]"
    line = f"v_wmma_f32_16x16x16_f16 {c}, v[{8 + A}:{15 + A}], v[{8 + B}:{15 + B}], {c}"
    module = device.load_module(assemble(code_object("gfx1151", 32, [line]), "gfx1151"))
    rows = np.zeros((ROWS, 32), np.uint32)
    rows[A, 20] = 0x3C00
    with pytest.raises(Exception, match="LaunchFailure"):
        run(device, device.function(module, "k0"), rows, 32)
    assert "lane 20 of operand 2 differs from lane 4" in device.last_fault()
    device.library.netraSimReset()
