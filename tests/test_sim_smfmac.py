"""SMFMAC, and what cbsz, abid, blgp and neg do to MFMA, against NumPy on data that no adder rounds.

Where an element of A meets one of B is the slot arithmetic that was measured on an MI350
(tests/reference/matrices.py), not the simulator's formula.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import sim_kernels
from matrices import smfmac_slot_of_b, smfmac_slot_of_b_32
from matrix_programs import ROWS, A, B, C, code_object, pack, registers, run
from netra_sim.hip import Hip

INDEX = 16  # row of the index register
_ELEMENTS = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
             "fp8": ml_dtypes.float8_e4m3fn, "bf8": ml_dtypes.float8_e5m2, "i8": np.int8}
SPARSE = [
    (f"v_smfmac_{'i32' if a == 'i8' else 'f32'}_{m}x{m}x{k // (2 if a in ('f16', 'bf16') else 1)}_"
     + (a if a == b and a not in ("fp8", "bf8") else f"{a}_{b}"), m,
     k // (2 if a in ("f16", "bf16") else 1), a, b)
    for m, k in ((16, 64), (32, 32), (16, 128), (32, 64))
    for a, b in (("f16", "f16"), ("bf16", "bf16"), ("i8", "i8"), ("fp8", "fp8"), ("fp8", "bf8"),
                 ("bf8", "fp8"), ("bf8", "bf8"))
]


@pytest.fixture(scope="module")
def hip(sim_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hip]:
    folder = tmp_path_factory.mktemp("sim")
    with sim_kernels.private_simulator(sim_library, folder, "gfx950") as opened:
        yield opened


def _bits(kind: str) -> int:
    return 8 * np.dtype(_ELEMENTS[kind]).itemsize


def _line(name: str, m: int, k: int, a: str, b: str, tail: str) -> str:
    size = m * k * _bits(a) // 64 // 32
    return (f"{name} {registers(C, m * m // 64)}, {registers(A, size // 2)}, "
            f"{registers(B, size)}, v{8 + INDEX}{tail}")


def _place(m: int, v: int, lane: int) -> tuple[int, int]:
    if m == 32:
        return 8 * (v // 4) + 4 * (lane // 32) + v % 4, lane % 32
    return 4 * (lane // 16) + v, lane % 16


def _codes(kind: str, values: np.ndarray) -> np.ndarray:
    raw = values.astype(np.float32).astype(_ELEMENTS[kind])
    return raw.view(f"u{raw.itemsize}").astype(np.int64)


def _draw(rng: np.random.Generator, kind: str, shape: tuple[int, ...]) -> np.ndarray:
    low, high = (-128, 128) if kind == "i8" else (-3, 4)
    return rng.integers(low, high, shape)


def test_every_smfmac_shape_with_every_index_set(hip: Hip, assemble: Callable[..., Path]) -> None:
    cases = []
    for name, m, k, a, b in SPARSE:
        sets = 32 // (2 * (m * k // 2 // 64))
        cases += [(name, m, k, a, b, s, f" abid:{s}" if s else "") for s in range(sets)]
        cases.append((name, m, k, a, b, 0, " cbsz:1 abid:3"))
    lines = [_line(name, m, k, a, b, tail) for name, m, k, a, b, _, tail in cases]
    module = hip.load_module(assemble(code_object("gfx950", 64, lines)))
    rng = np.random.default_rng(24)
    wrong = []
    for n, (name, m, k, a, b, chosen, tail) in enumerate(cases):
        per_lane = m * k // 2 // 64
        double = 2 * per_lane * _bits(a) == 256
        xa, xb = _draw(rng, a, (64, per_lane)), _draw(rng, b, (64, 2 * per_lane))
        pairs = np.array([(x, y) for x in range(4) for y in range(x + 1, 4)])
        picks = pairs[rng.integers(0, 6, (64, per_lane // 2))].reshape(64, per_lane)
        c = rng.integers(-50, 50, (m, m))
        rows = np.zeros((ROWS, 64), np.uint32)
        for at, kind, x in ((A, a, xa), (B, b, xb)):
            packed = pack(_codes(kind, x), _bits(kind), x.shape[1] * _bits(kind) // 32)
            rows[at : at + len(packed)] = packed
        index = sum(picks[:, s].astype(np.uint64) << np.uint64(2 * s) for s in range(per_lane))
        noise = rng.integers(0, 1 << 32, 64, np.uint64)
        mask = np.uint64(((1 << 2 * per_lane) - 1) << (chosen * 2 * per_lane))
        rows[INDEX] = (noise & ~mask) | index << np.uint64(chosen * 2 * per_lane)
        want = c.copy()
        for lane in range(64):
            row, group = lane % m, lane // m
            for slot in range(per_lane):
                pick = int(picks[lane, slot])
                if double and m == 32:
                    to, at_group = smfmac_slot_of_b_32(per_lane, slot, group, pick)
                else:
                    to, at_group = smfmac_slot_of_b(double, per_lane, slot, group, pick)
                want[row] += xa[lane, slot] * xb[at_group * m : (at_group + 1) * m, to]
        kind = np.int32 if a == "i8" else np.float32
        for v in range(m * m // 64):
            rows[C + v] = np.array([c[_place(m, v, x)] for x in range(64)], kind).view(np.uint32)
        got = run(hip, hip.function(module, f"k{n}"), rows, 64)
        for v in range(m * m // 64):
            expected = np.array([want[_place(m, v, x)] for x in range(64)], kind).view(np.uint32)
            if not np.array_equal(got[v], expected):
                wrong.append(f"{name}{tail}: register {v}")
                break
    print(f"smfmac: {len(SPARSE)} instructions, {len(cases)} index selections")
    assert len(SPARSE) == 28
    assert not wrong, "\n".join(wrong)


REFUSED = (
    ("v_smfmac_f32_16x16x32_f16 v[26:29], v[8:9], v[16:19], v24", 0,
     "lane 0: the indices of elements 0 and 1 do not rise"),
    ("v_smfmac_f32_16x16x64_f16 v[26:29], v[8:11], v[16:23], v24 abid:2", 0x44444444,
     "one of 2 sets"),
    ("v_smfmac_i32_16x16x128_i8 v[26:29], v[8:11], v[16:23], v24 abid:1", 0x44444444,
     "one of 1 sets"),
    ("v_mfma_f32_16x16x16_f16 v[26:29], v[8:9], v[16:17], v[26:29] cbsz:1", 0, "one block"),
    ("v_mfma_f32_16x16x16_f16 v[26:29], v[8:9], v[16:17], v[26:29] blgp:1", 0, "blgp has no"),
    ("v_mfma_f32_16x16x32_fp8_fp8 v[26:29], v[8:9], v[16:17], v[26:29] abid:1", 0, "one block"),
    ("v_mfma_i32_16x16x64_i8 v[26:29], v[8:11], v[16:19], v[26:29] blgp:3", 0, "blgp has no"),
    ("v_mfma_f32_32x32x4_2b_f16 v[26:57], v[8:9], v[16:17], v[26:57] cbsz:2", 0,
     "a cbsz of 0 to 1"),
    ("v_mfma_f32_16x16x4_4b_f16 v[26:41], v[8:9], v[16:17], v[26:41] cbsz:1 abid:2", 0,
     "an abid below 2^cbsz"),
)


def test_what_is_refused(hip: Hip, assemble: Callable[..., Path]) -> None:
    lines = [line for line, _, _ in REFUSED]
    module = hip.load_module(assemble(code_object("gfx950", 64, lines)))
    for n, (line, index, words) in enumerate(REFUSED):
        rows = np.zeros((ROWS, 64), np.uint32)
        rows[INDEX] = index
        with pytest.raises(Exception, match="LaunchFailure"):
            run(hip, hip.function(module, f"k{n}"), rows, 64)
        assert words in hip.last_fault(), line
        hip.library.netraSimReset()
    print(f"refused: {len(lines)} forms")


BLOCKS = (("v_mfma_f32_32x32x1_2b_f32", 32, 1, 2, "f32"),
          ("v_mfma_f32_16x16x1_4b_f32", 16, 1, 4, "f32"),
          ("v_mfma_f32_4x4x1_16b_f32", 4, 1, 16, "f32"),
          ("v_mfma_f32_32x32x2_f32", 32, 2, 1, "f32"),
          ("v_mfma_f32_16x16x4_f32", 16, 4, 1, "f32"),
          *((f"v_mfma_{'i32' if t == 'i8' else 'f32'}_{m}x{m}x4_{n}b_{t}", m, 4, n, t)
            for t in ("f16", "bf16", "i8") for m, n in ((32, 2), (16, 4), (4, 16))))


def test_broadcast_of_a_and_lane_patterns_of_b(hip: Hip, assemble: Callable[..., Path]) -> None:
    cases = []
    for shape in BLOCKS:
        limit = shape[3].bit_length() - 1
        # Every setting in f32, whose lanes the other types share; those get a few.
        every = shape[4] == "f32"
        sizes = range(limit + 1) if every else [limit]
        cases += [(shape, size, abid, 0) for size in sizes for abid in sorted({0, (1 << size) - 1})]
        cases += [(shape, 0, 0, blgp) for blgp in (range(1, 8) if every else (3, 6))]
    lines = []
    for (name, m, k, blocks, kind), cbsz, abid, blgp in cases:
        size = -(-m * k * blocks * _bits(kind) // 64 // 32)
        c = registers(C, blocks * m * m // 64)
        words = (("cbsz", cbsz), ("abid", abid), ("blgp", blgp))
        tail = "".join(f" {word}:{value}" for word, value in words if value)
        lines.append(f"{name} {c}, {registers(A, size)}, {registers(B, size)}, {c}{tail}")
    module = hip.load_module(assemble(code_object("gfx950", 64, lines)))
    rng = np.random.default_rng(19)
    source = {0: lambda x: x, 1: lambda x: x % 32, 2: lambda x: x % 32 + 32,
              3: lambda x: (x + 16) % 64,
              **{n: lambda x, n=n: x % 16 + 16 * (n - 4) for n in range(4, 8)}}
    for n, ((_, m, k, blocks, kind), cbsz, abid, blgp) in enumerate(cases):
        per_lane = m * k * blocks // 64
        xa, xb = rng.integers(-7, 8, (64, per_lane)), rng.integers(-7, 8, (64, per_lane))
        rows = np.zeros((ROWS, 64), np.uint32)
        for at, x in ((A, xa), (B, xb)):
            packed = pack(_codes(kind, x), _bits(kind), -(-per_lane * _bits(kind) // 32))
            rows[at : at + len(packed)] = packed
        # Block abid of each 2^cbsz neighbours feeds them all; lanes of B come from elsewhere.
        block = np.arange(64) // m
        first = block >> cbsz << cbsz
        moved_a = xa[(first + abid) * m + np.arange(64) % m] if cbsz else xa
        moved_b = xb[source[blgp](np.arange(64))]
        got = run(hip, hip.function(module, f"k{n}"), rows, 64)
        lane = np.arange(64)
        block, group = lane // m % blocks, lane // (m * blocks)
        others = ((group * blocks + block) * m)[:, None] + np.arange(m)
        want = np.zeros((blocks, m, m), np.int64)
        np.add.at(want, (block, lane % m), np.einsum("lk,lck->lc", moved_a, moved_b[others]))
        for v in range(blocks * m * m // 64):
            if m == 32:
                at = v // 16, 8 * (v % 16 // 4) + 4 * (lane // 32) + v % 4, lane % 32
            elif m == 16:
                at = v // 4, 4 * (lane // 16) + v % 4, lane % 16
            else:
                at = lane // 4, v, lane % 4
            value = got[v].view(np.int32 if kind == "i8" else np.float32)
            assert np.array_equal(value, want[at]), f"{lines[n]}: register {v}"
    print(f"cbsz, abid, blgp: {len(cases)} settings of {len(BLOCKS)} shapes")


@pytest.mark.parametrize("negate", range(8))
def test_f64(hip: Hip, assemble: Callable[..., Path], negate: int) -> None:
    tail = f" neg:[{negate & 1},{negate >> 1 & 1},{negate >> 2}]" if negate else ""
    lines = [f"v_mfma_f64_16x16x4_f64 v[26:33], v[8:9], v[16:17], v[26:33]{tail}",
             f"v_mfma_f64_4x4x4_4b_f64 v[26:27], v[8:9], v[16:17], v[26:27]{tail}"]
    module = hip.load_module(assemble(code_object("gfx950", 64, lines)))
    rng = np.random.default_rng(64 + negate)
    signs = [-1 if negate >> bit & 1 else 1 for bit in range(3)]
    for n, (m, blocks, count) in enumerate(((16, 1, 4), (4, 4, 1))):
        xa, xb = rng.integers(-99, 99, (2, 64)).astype(np.float64) / 8
        xc = rng.integers(-99, 99, (count, 64)).astype(np.float64)
        rows = np.zeros((ROWS, 64), np.uint32)
        for at, x in ((A, xa), (B, xb), *((C + 2 * v, xc[v]) for v in range(count))):
            rows[at], rows[at + 1] = x.view(np.uint32)[::2], x.view(np.uint32)[1::2]
        got = run(hip, hip.function(module, f"k{n}"), rows, 64)
        for v in range(count):
            value = np.stack([got[2 * v], got[2 * v + 1]], axis=1).reshape(-1).view(np.float64)
            for lane in range(64):
                row, column = (4 * v + lane // 16 if m == 16 else lane // 16), lane % m
                block = 0 if m == 16 else lane // 4 % 4
                terms = [xa[row + m * (block + blocks * k)] * xb[column + m * (block + blocks * k)]
                         for k in range(4)]
                want = signs[0] * signs[1] * sum(terms) + signs[2] * xc[v, lane]
                assert value[lane] == want, f"{lines[n]}: register {v} lane {lane}"
