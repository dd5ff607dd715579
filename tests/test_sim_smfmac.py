"""SMFMAC: every sparse shape against the dense product of the matrix that A stands for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import sim_kernels
from matrix_programs import BITS, ROWS, A, B, C, Shape, code_object, draw, operand, pack, run
from matrix_programs import register as accumulator
from netra_sim.hip import Hip

INDEX = 16
PAIRS = np.array([0x4, 0x8, 0xC, 0x9, 0xD, 0xE])  # two rising places of four, two bits each
EIGHT = [(a, b) for a in ("fp8", "bf8") for b in ("fp8", "bf8")]


def shapes() -> list[Shape]:
    out = []
    for m, k in ((16, 32), (32, 16), (16, 64), (32, 32)):
        out += [Shape(f"v_smfmac_f32_{m}x{m}x{k}_{t}", m, k, 1, t, t) for t in ("f16", "bf16")]
    for m, k in ((16, 64), (32, 32), (16, 128), (32, 64)):
        out += [Shape(f"v_smfmac_f32_{m}x{m}x{k}_{a}_{b}", m, k, 1, a, b) for a, b in EIGHT]
        out.append(Shape(f"v_smfmac_i32_{m}x{m}x{k}_i8", m, k, 1, "i8", "i8", "i32"))
    return out


SHAPES = shapes()


def held(s: Shape) -> int:
    """Elements of A in a lane."""
    return s.m * s.k // 128


def sets(s: Shape) -> int:
    """Sets of indices in a register."""
    return 32 // (2 * held(s))


def text(s: Shape, modifiers: str = "") -> str:
    def registers(first: int, count: int) -> str:
        return f"v[{first}:{first + count - 1}]" if count > 1 else f"v{first}"

    a, b = held(s) * BITS[s.a] // 32, 2 * held(s) * BITS[s.b] // 32
    d = registers(8 + C, s.m * s.m // 64)
    return (f"{s.name} {d}, {registers(8 + A, a)}, {registers(8 + B, b)}, v{8 + INDEX}{modifiers}")


@pytest.fixture(scope="module")
def hip(sim_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hip]:
    folder = tmp_path_factory.mktemp("sim")
    with sim_kernels.private_simulator(sim_library, folder, "gfx950") as opened:
        yield opened


class Sparse:
    """Operands of one instruction; `dense` is what A stands for when `chosen` indices are used."""

    def __init__(self, s: Shape, rng: np.random.Generator) -> None:
        self.shape, groups = s, 64 // s.m
        self.a_codes, a = draw(rng, s.a, (64, held(s)))
        self.b_codes, self.b = draw(rng, s.b, (1, s.m, s.k))
        self.index = np.zeros(64, np.uint32)
        self.dense = np.zeros((sets(s), s.m, s.k))
        for lane in range(64):
            row, group = lane % s.m, lane // s.m
            for n in range(8):
                pair = int(rng.choice(PAIRS))
                self.index[lane] |= np.uint32(pair << 4 * n)
                chosen, q = divmod(n, held(s) // 2)
                first = s.k // groups * group + 4 * q
                self.dense[chosen, row, first + (pair & 3)] = a[lane, 2 * q]
                self.dense[chosen, row, first + (pair >> 2)] = a[lane, 2 * q + 1]
        self.c = rng.integers(-50, 50, (1, s.m, s.m))
        self.kind = np.float32 if s.out == "f32" else np.int32

    def rows(self) -> np.ndarray:
        s = self.shape
        out = np.zeros((ROWS, 64), np.uint32)
        for at, lanes in ((A, pack(self.a_codes, BITS[s.a], held(s) * BITS[s.a] // 32)),
                          (B, operand(s, s.b, self.b_codes))):  # fmt: skip
            out[at : at + len(lanes)] = lanes
        out[INDEX] = self.index
        for v in range(s.m * s.m // 64):
            out[C + v] = accumulator(s, self.c, v, self.kind)
        return out

    def check(self, got: np.ndarray, chosen: int, label: str) -> None:
        s = self.shape
        want = self.c + self.dense[chosen] @ self.b[0].T
        for v in range(s.m * s.m // 64):
            assert np.array_equal(got[v], accumulator(s, want, v, self.kind)), f"{label}, v{v} of D"


def test_every_shape_and_set_of_indices(hip: Hip, assemble: Callable[..., Path]) -> None:
    rng = np.random.default_rng(42)
    variants = [(s, n, f" abid:{n}" if n else "") for s in SHAPES for n in range(sets(s))]
    variants += [(s, 0, " cbsz:1") for s in SHAPES]  # the first set, whatever abid would say
    variants += [(SHAPES[0], 0, " cbsz:1 abid:2")]
    texts = [text(s, modifiers) for s, _, modifiers in variants]
    module = hip.load_module(assemble(code_object("gfx950", 64, texts)))
    for n, (s, chosen, modifiers) in enumerate(variants):
        given = Sparse(s, rng)
        got = run(hip, hip.function(module, f"k{n}"), given.rows(), 64)
        given.check(got, chosen, f"{s.name}{modifiers}")
    print(f"\nsmfmac: {len(variants)} programs of {len(SHAPES)} instructions")


def test_what_is_left_out_is_no_product(hip: Hip, assemble: Callable[..., Path]) -> None:
    """An infinity of B where A has nothing must not turn into 0 * inf."""
    s = SHAPES[0]
    given = Sparse(s, np.random.default_rng(1))
    given.index[:] = 0x4444
    rows = given.rows()
    halves = rows[B : B + 4].view(np.uint16).reshape(4, 64, 2)
    halves[1::2] = 0x7C00  # places 2 and 3 of each four
    module = hip.load_module(assemble(code_object("gfx950", 64, [text(s)])))
    got = run(hip, hip.function(module, "k0"), rows, 64)[: s.m * s.m // 64]
    assert np.isfinite(got.view(np.float32)).all()


@pytest.mark.parametrize(
    "shape, modifiers, index, why",
    [
        (SHAPES[0], "", 0x45, "lane 0: the indices of elements 0 and 1 do not rise"),
        (SHAPES[0], "", 0x14, "lane 0: the indices of elements 2 and 3 do not rise"),
        (SHAPES[8], " abid:2", 0x4444, "one of 2 sets"),
    ],
)
def test_refused(
    hip: Hip, assemble: Callable[..., Path], shape: Shape, modifiers: str, index: int, why: str
) -> None:
    given = Sparse(shape, np.random.default_rng(2))
    given.index[:] = index
    module = hip.load_module(assemble(code_object("gfx950", 64, [text(shape, modifiers)])))
    try:
        with pytest.raises(Exception, match="LaunchFailure"):
            run(hip, hip.function(module, "k0"), given.rows(), 64)
        assert why in hip.last_fault()
    finally:
        hip.library.netraSimReset()
