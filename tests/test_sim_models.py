"""The adders of matrix instructions, by name, against tests/reference/matrices.py.

Factors are any codes in some rows and columns (NaN, infinities and denormals among them) and of
everyday size in others. Each model also meets the vector that tells adders apart, and on finite
data stays within the bound that every adder keeps. Which lane holds what is test_sim_matrix.py's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import sim_kernels
from matrices import adder_bound, exact, fma_chain, gfx11_dot2, number, tr_fdpa
from matrix_programs import (
    BF6,
    BITS,
    FP4,
    FP6,
    MFMA,
    ROWS,
    SCALES,
    A,
    B,
    C,
    Shape,
    code_object,
    line,
    operand,
    pack,
    place,
    run,
)  # fmt: skip
from netra_sim.hip import Hip

DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "fp8": ml_dtypes.float8_e4m3fn,
          "bf8": ml_dtypes.float8_e5m2}
SMALL = {"fp6": FP6, "bf6": BF6, "fp4": FP4}
ARCHES = ("gfx950", "gfx1151")
SATURATE = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), 1\n        "  # FP16_OVFL
DENORMS = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 4), {}\n        "
WILD = 5  # rows and columns of any codes
# The vector of row 0 and column 0, and what the models make of it; 8-bit factors have two trees.
VECTOR = ([-(2.0**13), -0.5, -0.25, -0.125], [2.0**10, 1.0, 1.0, 1.0], 2.0**23)
VECTOR_GIVES = {"fma_chain": -0.875, "exact": -0.875, "tr_fdpa": -0.5, "tr_fdpa bf8": -1.0,
                "gfx11_dot2": -1.875}


def _shapes(*names: str) -> list[Shape]:
    found = [s for s in MFMA if s.name + "".join(s.tail.partition(" cbsz")[1:]) in names]
    assert len(found) == len(names), names
    return found


def _formats(x: int, y: int, m: int = 16, k: int = 128, scale: str = "scale_") -> str:
    return f"v_mfma_{scale}f32_{m}x{m}x{k}_f8f6f4 cbsz:{x} blgp:{y}"


PLAIN = [f"v_mfma_f32_16x16x{k}_{t}" for t in ("f16", "bf16") for k in (16, 32)] + [
    "v_mfma_f32_32x32x8_bf16", "v_mfma_f32_4x4x4_16b_f16", "v_mfma_f32_4x4x4_16b_bf16",
    *(f"v_mfma_f32_16x16x32_{a}_{b}" for a in ("fp8", "bf8") for b in ("fp8", "bf8")),
    "v_mfma_f32_32x32x16_bf8_bf8",
]
MIXED = [*(_formats(x, x) for x in range(5)), _formats(0, 4), _formats(4, 1), _formats(2, 3),
         _formats(1, 0, 32, 64), _formats(0, 0, scale=""), _formats(1, 4, scale="")]
CASES = {"fma_chain": (*PLAIN, *MIXED[:2]), "tr_fdpa": (*PLAIN, *MIXED), "exact": (*PLAIN, *MIXED)}


def values_of(codes: np.ndarray, kind: str) -> np.ndarray:
    if kind in SMALL:
        table = SMALL[kind]
        return table[codes % len(table)] * np.where(codes >= len(table), -1.0, 1.0)
    width = np.uint16 if BITS[kind] == 16 else np.uint8
    with np.errstate(invalid="ignore"):  # signalling NaNs
        return codes.astype(width).view(DTYPES[kind]).astype(np.float64)


def codes_of(values: np.ndarray, kind: str) -> np.ndarray:
    raw = values.astype(np.float32).astype(DTYPES[kind])
    return raw.view(f"u{raw.itemsize}").astype(np.int64)


def factors(rng: np.random.Generator, kind: str, shape: tuple[int, int]) -> np.ndarray:
    """codes[row][k]; rows from 1 to WILD are of any codes, the last of them with few NaN."""
    codes = rng.integers(0, 1 << BITS[kind], shape)
    if kind in SMALL:
        return codes
    codes[WILD:] = codes_of(rng.normal(size=codes[WILD:].shape) * 2, kind)
    if len(codes) > WILD:
        wild, whole = codes[1:WILD], values_of(codes[1:WILD], kind)
        rare = rng.random(wild.shape) < 0.97
        wild[~np.isfinite(whole) & rare] = 0
        special = [0.0, -0.0, math.inf, -math.inf, math.nan]
        if kind == "fp8":
            special = [0.0, -0.0, math.nan]
        codes[1, : len(special)] = codes_of(np.array(special), kind)
        codes[2, 0] = 1  # the least denormal number
    return codes


def addends(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    c = rng.normal(size=shape).astype(np.float32)
    flat = c.reshape(-1)
    chosen = np.array([0.0, -0.0, math.inf, -math.inf, 1e-40, -1e-45, 3e38, 2.0**-126], np.float32)
    at = rng.choice(len(flat), len(flat) // 8, replace=False)
    flat[at] = rng.choice(chosen, len(at))
    wide = rng.choice(len(flat), len(flat) // 4, replace=False)
    with np.errstate(over="ignore"):
        flat[wide] *= np.float32(2.0) ** rng.integers(-40, 40, len(wide)).astype(np.float32)
    return c


@pytest.fixture
def simulator(
    sim_library: Path, tmp_path: Path
) -> Iterator[Callable[[str, str], Hip]]:
    """simulator(model, arch): one for a test, since a copy reads its model at the first launch."""
    with ExitStack() as stack:
        def opened(model: str, arch: str) -> Hip:
            default = {"fma_chain": "gfx950", "gfx11_dot2": "gfx1151"}.get(model) == arch
            variables = {} if default else {"NETRA_SIM_MATRIX_MODEL": model}
            hip = stack.enter_context(sim_kernels.private_simulator(
                sim_library, tmp_path, ",".join(ARCHES), **variables))
            hip.call("hipSetDevice", ARCHES.index(arch))
            return hip

        yield opened


def _scales(rng: np.random.Generator, rows: np.ndarray, s: Shape) -> list[np.ndarray]:
    """E8M0 codes [operand][row][block], put into bytes 1 and 2; few are NaN or the least one."""
    blocks = s.k // 32
    found = []
    for x, byte in ((0, 1), (1, 2)):
        codes = rng.integers(117, 138, (s.m, blocks))
        codes[3, 0], codes[4, blocks - 1] = 255, 0
        codes[0] = 127  # the vector
        found.append(codes)
        noise = rng.integers(0, 1 << 32, 64, np.uint64) & ~np.uint64(0xFF << (8 * byte))
        lane = np.arange(64)
        own = codes[lane % s.m, lane // s.m].astype(np.uint64)
        rows[SCALES + x] = noise | own << np.uint64(8 * byte)
    return found


def _scaled(values: np.ndarray, codes: np.ndarray) -> np.ndarray:
    factor = np.where(codes == 255, math.nan, 2.0 ** (codes - 127.0))
    return values * np.repeat(factor, 32, axis=1)


GROUP = {"fma_chain": 1, "tr_fdpa": 8, "gfx11_dot2": 2}


def _check_bound(
    model: str, a: list[float], b: list[float], c: float, got: float, narrow: bool
) -> None:
    group = len(a) if model == "exact" else 16 if model == "tr_fdpa" and narrow else GROUP[model]
    terms = (Fraction(x) * Fraction(y) for x, y in zip(a, b, strict=True))
    off = abs(Fraction(got) - sum(terms, Fraction(c)))
    assert off <= adder_bound(a, b, c, group), (model, a, b, c, got)


@pytest.mark.parametrize("model", list(CASES))
def test_mfma(
    model: str, simulator: Callable[[str, str], Hip], assemble: Callable[..., Path]
) -> None:
    hip = simulator(model, "gfx950")
    shapes = _shapes(*CASES[model])
    # MODE has no influence: every other shape runs under FP16_OVFL with denormals kept, the rest
    # with those of f32 flushed.
    lines = [SATURATE * (n % 2) + DENORMS.format(15 if n % 2 else 0) + line(s)
             for n, s in enumerate(shapes)]
    module = hip.load_module(assemble(code_object("gfx950", 64, lines)))
    rng = np.random.default_rng(4)
    elements = bounded = vectors = 0
    for n, s in enumerate(shapes):
        codes = [np.stack([factors(rng, t, (s.m, s.k)) for _ in range(s.blocks)])
                 for t in (s.a, s.b)]
        c = addends(rng, (s.blocks, s.m, s.m))
        vector = {s.a, s.b} <= {"f16", "bf16", "bf8"}
        if vector:
            for x, kind, v in zip(codes, (s.a, s.b), VECTOR[:2], strict=True):
                x[0, 0] = 0
                x[0, 0, :4] = codes_of(np.array(v), kind)
            c[0, 0, 0] = VECTOR[2]
        rows = np.zeros((ROWS, 64), np.uint32)
        for at, kind, x in ((A, s.a, codes[0]), (B, s.b, codes[1])):
            packed = operand(s, kind, x)
            rows[at : at + len(packed)] = packed
        values = [values_of(x, t) for x, t in zip(codes, (s.a, s.b), strict=True)]
        if s.scaled:
            values = [_scaled(x[0], e)[None]
                      for x, e in zip(values, _scales(rng, rows, s), strict=True)]
        count = s.blocks * s.m * s.m // 64
        for v in range(count):
            rows[C + v] = [c[place(s, v, x)].view(np.uint32) for x in range(64)]
        got = run(hip, hip.function(module, f"k{n}"), rows, 64).view(np.float32)
        narrow = BITS[s.a] <= 8
        for v in range(count):
            for x in range(64):
                block, i, j = place(s, v, x)
                first = block == i == j == 0
                if not first and rng.random() > 6000 / (s.m * s.m * s.k):
                    continue
                a, b = values[0][block, i].tolist(), values[1][block, j].tolist()
                acc, have = float(c[block, i, j]), float(got[v, x])
                with np.errstate(invalid="ignore", over="ignore"):
                    want = float(fma_chain(a, b, acc) if model == "fma_chain" else
                                 exact(a, b, acc) if model == "exact" else
                                 tr_fdpa(a, b, acc, narrow))
                same = math.isnan(have) if math.isnan(want) else have == want
                assert same, f"{model} {s.name}{s.tail} {block},{i},{j}: {have!r}, want {want!r}"
                elements += 1
                if all(map(math.isfinite, [*a, *b, acc, have])):
                    _check_bound(model, a, b, acc, have, narrow)
                    bounded += 1
        if vector:
            known = VECTOR_GIVES.get(f"{model} {s.a}", VECTOR_GIVES[model])
            assert got[0, 0] == known, f"{model} {s.name}{s.tail}"
            vectors += 1
    assert elements > 3000 and bounded > elements // 3 and vectors >= 5
    print(f"\n{model}: {len(shapes)} shapes, {elements} elements equal, {bounded} within the bound,"
          f" {vectors} vectors")


WMMA = (("f16", "f32"), ("bf16", "f32"), ("f16", "f16"), ("bf16", "bf16"))


def _wmma(kind: str, out: str, tail: str = "", before: str = "") -> str:
    c = f"v[{8 + C}:{15 + C}]"
    return (f"{before}v_wmma_{out}_16x16x16_{kind} {c}, v[{8 + A}:{15 + A}], v[{8 + B}:{15 + B}], "
            f"{c}{tail}")


def test_wmma(simulator: Callable[[str, str], Hip], assemble: Callable[..., Path]) -> None:
    hip = simulator("gfx11_dot2", "gfx1151")
    signs = " neg_lo:[1,0,1] neg_hi:[0,1,0]"
    forms = [(kind, out, tail, before) for kind, out in WMMA
             for tail, before in (("", ""), (signs, ""), ("", SATURATE))]
    module = hip.load_module(assemble(
        code_object("gfx1151", 32, [_wmma(*f) for f in forms]), "gfx1151"))
    rng = np.random.default_rng(11)
    lane = np.arange(32)
    elements = bounded = vectors = overflows = 0
    for n, (kind, out, tail, before) in enumerate(forms * 2):
        codes = [factors(rng, kind, (16, 16)) for _ in "ab"]
        if out == "f16":  # some sums past 65504
            codes[0][15] = codes_of(np.full(16, 3e4), kind)
        c = addends(rng, (16, 16))
        for x, v in zip(codes, VECTOR[:2], strict=True):
            x[0] = 0
            x[0, :4] = codes_of(np.array(v), kind)
        c[0, 0] = VECTOR[2]
        if out == "f32":
            acc = c.view(np.uint32).astype(np.int64)
            acc[7, 7] = 0x7F812345  # a signalling NaN
        else:
            with np.errstate(over="ignore"):
                acc = codes_of(c, out)
        rows = np.zeros((ROWS, 32), np.uint32)
        for at, x in ((A, codes[0]), (B, codes[1])):
            rows[at : at + 8] = pack(x[lane % 16], 16, 8)
        for v in range(8):
            rows[C + v] = acc[2 * v + lane // 16, lane % 16]
        got = run(hip, hip.function(module, f"k{n % len(forms)}"), rows, 32)
        a, b = (values_of(x, kind) for x in codes)
        sign = 0
        if tail:
            a, b = a * np.tile([-1, 1], 8), b * np.tile([1, -1], 8)
            sign = 1 << 31 if out == "f32" else 1 << 15
        for i in range(16):
            for j in range(16):
                have = int(got[i // 2, j + 16 * (i % 2)])
                x, y, z = a[i].tolist(), b[j].tolist(), int(acc[i, j]) ^ sign
                want = gfx11_dot2(x, y, z, out, kind == "bf16", bool(before))
                assert have == want, (f"{kind} to {out}{tail}, {i},{j}: {have:#x}, want {want:#x}; "
                                      f"{x} {y} {z:#x}")
                elements += 1
                overflows += out == "f16" and bool(before) and want & 0x7FFF == 0x7BFF
                result, start = number(have, out), number(z, out)
                if out == "f32" and all(map(math.isfinite, [*x, *y, start, result])):
                    _check_bound("gfx11_dot2", x, y, start, result, False)
                    bounded += 1
        if out == "f32" and not tail:
            assert number(int(got[0, 0]), out) == VECTOR_GIVES["gfx11_dot2"]
            vectors += 1
    assert elements > 5000 and bounded > 1000 and vectors and overflows
    print(f"\ngfx11_dot2: {len(forms)} forms, {elements} elements equal, {bounded} within the "
          f"bound, {vectors} vectors, {overflows} saturated")
