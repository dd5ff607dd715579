"""One-hot probes of matrix instructions: which register element is which element of the matrix.

Every launch has one workgroup for each step t. In A, row r has a single one, at k = (r + t) % K;
in B, column j has one, at k = (3 j + t) % K. So D[r][j] is 1 where both are the same k and 0
elsewhere, and over all steps each element of A and of B stood alone once. C is probed with numbers
that differ, a scale by doubling that of one row and block of 32 k, the index of a sparse matrix by
moving the ones of A through the places that an index can name.

A k that A and B misplace alike leaves every product where it was. Only a scale shows it: in the
steps with single ones, each block of 32 k has its own scale, so that D names the block of both.

The layouts are those that AMD publishes (ROCm blog "Matrix cores", matrix instruction calculator)
and, for SMFMAC with B in eight registers, those that were probed on an MI350.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

U32 = NDArray[np.uint32]
Coordinates = NDArray[np.int64]  # [element of D in a lane][lane] -> block, row, column
BITS = {"f64": 64, "f32": 32, "f16": 16, "bf16": 16, "i8": 8, "fp8": 8, "bf8": 8, "fp6": 6,
        "bf6": 6, "fp4": 4, "iu8": 8, "iu4": 4, "i32": 32}  # fmt: skip
ONE = {"f64": 0x3FF0000000000000, "f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80, "fp8": 0x38,
       "bf8": 0x3C, "fp6": 0x08, "bf6": 0x0C, "fp4": 0x2, "i8": 1, "iu8": 1, "iu4": 1}  # fmt: skip
F8F6F4 = ("fp8", "bf8", "fp6", "bf6", "fp4")
# First row of each operand in a step's data, in registers from v8 on; D replaces C.
A, B, EXTRA, C, ROWS = 0, 8, 16, 18, 50


@dataclass(frozen=True)
class Shape:
    """A matrix instruction: D (M x M) = A (M x K) * B (K x M) + C, in `blocks` of it."""

    name: str
    arch: str
    lanes: int
    m: int
    k: int
    a: str
    b: str
    out: str
    blocks: int = 1
    kind: str = "dense"  # or "scaled", "sparse", "wmma"
    tail: str = ""

    @property
    def label(self) -> str:
        return f"{self.name}{self.tail}, {self.lanes} lanes"

    @property
    def held(self) -> int:
        """Elements of A in its k direction that registers hold."""
        return self.k // 2 if self.kind == "sparse" else self.k


def shapes() -> list[Shape]:
    """Every matrix instruction of gfx950 and gfx1151; f8f6f4 with each pair of formats."""
    return [*_dense(), *_flexible(), *_sparse(), *_wmma()]


def _dense() -> Iterator[Shape]:
    blocks = ((32, 4, 2), (16, 4, 4), (4, 4, 16))
    halves = (*blocks, (32, 8, 1), (16, 16, 1), (16, 32, 1), (32, 16, 1))
    bytes_ = (*blocks, (32, 16, 1), (16, 32, 1), (16, 64, 1), (32, 32, 1))
    singles = ((32, 1, 2), (16, 1, 4), (4, 1, 16), (32, 2, 1), (16, 4, 1))
    for kinds, out, sizes in ((("f32",), "f32", singles), (("f16", "bf16"), "f32", halves),
                              (("i8",), "i32", bytes_)):  # fmt: skip
        for kind in kinds:
            for m, k, n in sizes:
                block = f"_{n}b" if n > 1 else ""
                name = f"v_mfma_{out}_{m}x{m}x{k}{block}_{kind}"
                yield Shape(name, "gfx950", 64, m, k, kind, kind, out, n)
    for m, k in ((16, 32), (32, 16)):
        for a in ("fp8", "bf8"):
            for b in ("fp8", "bf8"):
                yield Shape(f"v_mfma_f32_{m}x{m}x{k}_{a}_{b}", "gfx950", 64, m, k, a, b, "f32")
    yield Shape("v_mfma_f64_16x16x4_f64", "gfx950", 64, 16, 4, "f64", "f64", "f64")
    yield Shape("v_mfma_f64_4x4x4_4b_f64", "gfx950", 64, 4, 4, "f64", "f64", "f64", 4)


# Bytes 0 and 0, 1 and 2, 3 and 3 of the scale registers.
_SELECTS = ("", " op_sel:[1,0,0] op_sel_hi:[0,1,0]", " op_sel:[1,1,0] op_sel_hi:[1,1,0]")


def _flexible() -> Iterator[Shape]:
    for m, k in ((16, 128), (32, 64)):
        for x, a in enumerate(F8F6F4):
            for y, b in enumerate(F8F6F4):
                formats = f" cbsz:{x} blgp:{y}"
                name = f"f32_{m}x{m}x{k}_f8f6f4"
                yield Shape(f"v_mfma_{name}", "gfx950", 64, m, k, a, b, "f32", tail=formats)
                # Each format meets each choice of bytes, as A and as B.
                yield Shape(f"v_mfma_scale_{name}", "gfx950", 64, m, k, a, b, "f32",
                            kind="scaled", tail=_SELECTS[(x + y) % 3] + formats)  # fmt: skip


def _sparse() -> Iterator[Shape]:
    for m, k in ((16, 32), (32, 16), (16, 64), (32, 32)):
        for kind in ("f16", "bf16"):
            yield Shape(f"v_smfmac_f32_{m}x{m}x{k}_{kind}", "gfx950", 64, m, k, kind, kind, "f32",
                        kind="sparse")  # fmt: skip
    for m, k in ((16, 64), (32, 32), (16, 128), (32, 64)):
        yield Shape(f"v_smfmac_i32_{m}x{m}x{k}_i8", "gfx950", 64, m, k, "i8", "i8", "i32",
                    kind="sparse")  # fmt: skip
        for a in ("fp8", "bf8"):
            for b in ("fp8", "bf8"):
                yield Shape(f"v_smfmac_f32_{m}x{m}x{k}_{a}_{b}", "gfx950", 64, m, k, a, b, "f32",
                            kind="sparse")  # fmt: skip


def _wmma() -> Iterator[Shape]:
    forms = (("f32", "f16", ""), ("f32", "bf16", ""), ("f16", "f16", ""), ("bf16", "bf16", ""),
             ("f16", "f16", " op_sel:[0,0,1]"), ("bf16", "bf16", " op_sel:[0,0,1]"),
             ("i32", "iu8", ""), ("i32", "iu4", ""))  # fmt: skip
    for lanes in (32, 64):
        for out, kind, tail in forms:
            yield Shape(f"v_wmma_{out}_16x16x16_{kind}", "gfx1151", lanes, 16, 16, kind, kind, out,
                        kind="wmma", tail=tail)  # fmt: skip


# ---- layouts ---------------------------------------------------------------------------------


def place(s: Shape, kind: str, count: int, block: int, row: int, k: int) -> tuple[int, int]:
    """(lane, element) of an operand of `count` elements in k; the element counts from bit 0."""
    per_lane = s.blocks * s.m * count // s.lanes
    group, element = divmod(k, per_lane)
    if per_lane * BITS[kind] == 256 and BITS[kind] in (8, 16):  # eight registers: two runs
        run = per_lane // 2
        half, within = divmod(k, count // 2)
        group, element = within // run, half * run + within % run
    return (group * s.blocks + block) * s.m + row, element


def result(s: Shape, v: int, lane: int) -> tuple[int, int, int]:
    """(block, row, column) of element v of C and D in a lane."""
    if s.kind == "wmma":
        return 0, s.lanes // 16 * v + lane // 16, lane % 16
    if s.out == "f64":
        if s.m == 16:
            return 0, 4 * v + lane // 16, lane % 16
        return lane // 4 % 4, lane // 16, lane % 4
    if s.m == 32:
        return v // 16, 8 * (v % 16 // 4) + 4 * (lane // 32) + v % 4, lane % 32
    return (v // 4, 4 * (lane // 16) + v % 4, lane % 16) if s.m == 16 else (lane // 4, v, lane % 4)


def results(s: Shape) -> int:
    """Elements of D in a lane."""
    return s.blocks * s.m * s.m // s.lanes


# ---- data ------------------------------------------------------------------------------------


def put(words: U32, first: int, lane: int, element: int, bits: int, code: int) -> None:
    """Sets one element of an operand in words[row][lane]."""
    at, shift = divmod(element * bits, 32)
    wide = code << shift
    while wide:
        words[first + at, lane] |= np.uint32(wide & 0xFFFFFFFF)
        wide, at = wide >> 32, at + 1


def _numbers(out: str, values: NDArray[np.int64]) -> NDArray[np.uint64]:
    """The bits of small integers in the type of D."""
    if out == "i32":
        return values.astype(np.uint32).astype(np.uint64)
    if out == "bf16":
        single = values.astype(np.float32).view(np.uint32)
        high: NDArray[np.uint64] = (single >> 16).astype(np.uint64)
        return high
    kinds: dict[str, Any] = {"f64": np.float64, "f32": np.float32, "f16": np.float16}
    raw = values.astype(kinds[out])
    codes: NDArray[np.uint64] = raw.view(f"u{raw.itemsize}").astype(np.uint64)
    return codes


@dataclass
class Step:
    """What one workgroup is given, and what it must leave in D."""

    words: U32  # [ROWS][lanes]
    want: U32  # [registers of D][lanes]


def steps(s: Shape) -> list[Step]:
    """All steps of all the operands of a shape."""
    where = np.array([[result(s, v, n) for n in range(s.lanes)] for v in range(results(s))])
    out = [_pair(s, where, t) for t in range(s.k)]
    out.append(_addend(s, where))
    if s.kind == "scaled":
        ones = _blank(s)
        for row in range(s.m):
            for k in range(s.k):
                _set(s, ones, A, s.a, s.k, 0, row, k)
                _set(s, ones, B, s.b, s.k, 0, row, k)
        out += [_scale(s, where, ones, which, lane) for which in (0, 1) for lane in range(64)]
    return out


def _blank(s: Shape) -> U32:
    words = np.zeros((ROWS, s.lanes), np.uint32)
    if s.kind == "scaled":
        words[EXTRA : EXTRA + 2] = 0x7F7F7F7F
    return words


def _pair(s: Shape, where: Coordinates, t: int) -> Step:
    words = _blank(s)
    rows = np.arange(s.m)
    at, column_k = (rows + t) % s.held, (3 * rows + t) % s.k
    row_k = np.array(_index(s, words, t))[rows, at] if s.kind == "sparse" else at
    for block in range(s.blocks):
        for row in range(s.m):
            _set(s, words, A, s.a, s.held, block, row, int(at[row]))
            _set(s, words, B, s.b, s.k, block, row, int(column_k[row]))
    same = (row_k[:, None] == column_k).astype(np.int64)
    if s.kind == "scaled":
        a, b = _scales(s, words)
        same = same << (a[at // 32, rows][:, None] + b[column_k // 32, rows])
    return Step(words, wanted(s, where, np.broadcast_to(same, (s.blocks, s.m, s.m))))


def _scales(s: Shape, words: U32) -> tuple[Coordinates, Coordinates]:
    """Fills both scale registers; the exponents of A and B, [block of 32 k][row or column].

    Blocks of A count in ones and those of B in fours, so for a given row and column the sum of
    the two names both blocks.
    The three bytes that are not chosen have other exponents.
    """
    block, row = np.divmod(np.arange(64), s.m)
    exponents = [block + row % 3, 4 * block + (row + 1) % 3]
    for which, exponent in enumerate(exponents):
        shift = 8 * _byte(s, which)
        keep = 0x60616263 & ~(0xFF << shift)
        words[EXTRA + which] = np.asarray(keep | (127 + exponent) << shift, np.uint32)
    return exponents[0].reshape(-1, s.m), exponents[1].reshape(-1, s.m)


def _byte(s: Shape, which: int) -> int:
    """The byte of the scale register of A (0) or B (1) that op_sel and op_sel_hi choose."""
    digits = []
    for word in ("op_sel:[", "op_sel_hi:["):
        chosen = s.tail.split(word)[1].split(",") if word in s.tail else ["0", "0"]
        digits.append(int(chosen[which]))
    return digits[0] | digits[1] << 1


def _set(
    s: Shape, words: U32, first: int, kind: str, count: int, block: int, row: int, k: int
) -> None:
    if s.kind == "wmma":  # every group of 16 lanes has the same
        for lane in range(row, s.lanes, 16):
            put(words, first, lane, k, BITS[kind], ONE[kind])
        return
    lane, element = place(s, kind, count, block, row, k)
    put(words, first, lane, element, BITS[kind], ONE[kind])


def _index(s: Shape, words: U32, t: int) -> list[list[int]]:
    """Fills the index register; the k that each element of A then stands for."""
    pairs = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))
    per_lane = s.m * s.held // 64
    picked = [[0] * s.held for _ in range(s.m)]
    for lane in range(64):
        for q in range(per_lane // 2):
            low, high = pairs[(lane + q + t) % 6]
            words[EXTRA, lane] |= np.uint32((low | high << 2) << 4 * q)
            at = lane // s.m * per_lane + 2 * q
            picked[lane % s.m][at : at + 2] = [2 * at + low, 2 * at + high]
    return picked


def _addend(s: Shape, where: Coordinates) -> Step:
    words = _blank(s)
    if s.kind == "sparse":
        words[EXTRA] = 0x44444444
    numbers = 1 + np.arange(s.blocks * s.m * s.m).reshape(s.blocks, s.m, s.m) % 251
    want = wanted(s, where, numbers)
    words[C : C + len(want)] = want
    return Step(words, want)


def _scale(s: Shape, where: Coordinates, ones: U32, which: int, lane: int) -> Step:
    """Everything is 1, and the scale of one row (or column) and block of 32 k is 2."""
    words = ones.copy()
    words[EXTRA + which, lane] += np.uint32(1 << 8 * _byte(s, which))
    sums = np.full((1, s.m, s.m), s.k)
    sums[0, :, lane % s.m] += 32 * which
    sums[0, lane % s.m, :] += 32 * (1 - which)
    return Step(words, wanted(s, where, sums))


def wanted(s: Shape, where: Coordinates, values: NDArray[np.int64]) -> U32:
    """Registers of D that hold values[block][row][column]; `where` has each element's place."""
    bits = _numbers(s.out, values[where[..., 0], where[..., 1], where[..., 2]])
    if s.out != "f64":
        shift = 16 if s.kind == "wmma" and "op_sel:[0,0,1]" in s.tail else 0
        return np.asarray(bits << np.uint64(shift), np.uint32)
    out: U32 = np.empty((2 * len(bits), s.lanes), np.uint32)
    out[0::2], out[1::2] = bits & np.uint64(0xFFFFFFFF), bits >> np.uint64(32)
    return out
