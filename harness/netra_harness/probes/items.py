"""The probes of a target: what each runs, on which data, and what its answer is.

An answer is a row of words. Nothing here says what they must be: `probe --compare` sets those of a
GPU beside those of the simulator.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from netra_harness.probes import matrix_layouts as layouts
from netra_harness.probes import runner
from netra_harness.probes.matrix_layouts import Shape
from netra_harness.probes.programs import FIRST, U32, Program

LANES = {"gfx950": 64, "gfx1151": 32}


@dataclass(frozen=True)
class Item:
    """One probe; `labels` name the words of the answer, where a place in a table does not."""

    name: str
    program: Program
    data: Callable[[], U32]  # made when it is asked for: there are many, and some are large
    labels: tuple[str, ...] = ()
    keep: tuple[int, int] | None = None  # (register, lane) of each step, where only that matters
    each_lane: bool = True  # else lane 0 of every register
    shape: Shape | None = None
    inputs: tuple[U32, ...] = field(default=(), compare=False)

    @property
    def words(self) -> U32:
        """What the program is given, [step][rows][lanes]."""
        return self.data()

    def answer(self, got: U32) -> U32:
        """The words that count of what the program stored, [step][out][lanes]."""
        if self.shape is not None:
            mask = 0xFFFFFFFF
            if self.shape.kind == "wmma" and self.shape.out in ("f16", "bf16"):
                mask = 0xFFFF0000 if "op_sel:[0,0,1]" in self.shape.tail else 0x0000FFFF
            got = got & np.uint32(mask)
        if self.keep is not None:
            got = got[:, self.keep[0], self.keep[1]]
        elif not self.each_lane:
            got = got[:, :, 0]
        return np.ascontiguousarray(got).reshape(-1)

    def label(self, index: int) -> str:
        """What a word of the answer belongs to."""
        if self.labels:
            return self.labels[index]
        if self.inputs:
            return "of " + ", ".join(f"{int(row.reshape(-1)[index]):#010x}" for row in self.inputs)
        return f"word {index}"


def items(arch: str) -> Iterator[Item]:
    """All probes of a target, but for the cases of its tactics."""
    yield from _layouts(arch)
    yield from _adders(arch)
    yield from _tables(arch)
    yield from _hazards(arch)


# ---- matrices --------------------------------------------------------------------------------


def _layouts(arch: str) -> Iterator[Item]:
    """One-hot matrices (matrix_layouts.py): a wrong place of any element shows."""
    for s in layouts.shapes():
        if s.arch == arch:
            yield Item(f"layout/{s.name}{s.tail.replace(' ', '_')}/{s.lanes}",
                       runner.program(s, "k"), partial(_one_hot, s), shape=s)  # fmt: skip


def _one_hot(s: Shape) -> U32:
    return np.stack([step.words for step in layouts.steps(s)])


# name, a[k], b[k], c: sums that different adders round differently.  The first is the one that
# tells the generations of CDNA apart; the others move a large pair that cancels through k (the
# length of a group), shift a small term down (the width of the grid), and change its sign (floor
# or truncation).
def _vectors(k: int) -> Iterator[tuple[str, list[float], list[float], float]]:
    yield ("generations", [-(2.0**13), -0.5, -0.25, -0.125], [2.0**10, 1, 1, 1], 2.0**23)
    for second in range(1, k):
        a = [1.0] * k
        b = [2.0**-9] * k
        a[0], b[0], a[second], b[second] = 2.0**12, 2.0**12, -(2.0**12), 2.0**12
        yield (f"cancel-0-{second}", a, b, 0.0)
    for shift in range(18, 34):
        for sign in (1.0, -1.0):
            a = [2.0**10, sign * 2.0 ** (10 - shift // 2)]
            b = [2.0**10, 2.0 ** (10 - (shift - shift // 2))]
            yield (f"width-{shift}{'+' if sign > 0 else '-'}", a, b, 0.0)
            yield (f"addend-{shift}{'+' if sign > 0 else '-'}", [sign * 2.0 ** (-(shift // 2))],
                   [2.0 ** (-(shift - shift // 2))], 1.0)  # fmt: skip
    yield ("subnormal-product", [2.0**-14], [2.0**-14], 0.0)
    yield ("overflow", [2.0**15, 2.0**15], [2.0**15, -(2.0**15)], 3.0e38)


def _adders(arch: str) -> Iterator[Item]:
    wanted = {
        "gfx950": ("v_mfma_f32_16x16x16_f16", "v_mfma_f32_16x16x32_f16",
                   "v_mfma_f32_16x16x32_bf16", "v_mfma_f32_32x32x16_f16"),
        "gfx1151": ("v_wmma_f32_16x16x16_f16", "v_wmma_f32_16x16x16_bf16"),
    }[arch]  # fmt: skip
    for s in layouts.shapes():
        if s.name in wanted and not s.tail and s.lanes == LANES[arch]:
            yield _adder(s)


def _adder(s: Shape) -> Item:
    """D[0][0] of each vector: row 0 of A and column 0 of B hold it, everything else is 0."""
    labels, steps = [], []
    for name, a, b, c in _vectors(s.k):
        words = np.zeros((layouts.ROWS, s.lanes), np.uint32)
        for first, kind, values in ((layouts.A, s.a, a), (layouts.B, s.b, b)):
            for k, value in enumerate(values):
                if s.kind == "wmma":
                    spots = [(lane, k) for lane in range(0, s.lanes, 16)]
                else:
                    spots = [layouts.place(s, kind, s.k, 0, 0, k)]
                for lane, element in spots:
                    layouts.put(words, first, lane, element, 16, _half(kind, value))
        words[layouts.C, 0] = struct.unpack("<I", struct.pack("<f", c))[0]
        labels.append(name)
        steps.append(words)
    program = runner.program(s, "k")
    return Item(f"adder/{s.name}", program, partial(np.stack, steps), tuple(labels), (0, 0))


def _half(kind: str, value: float) -> int:
    if kind == "f16":
        return int(np.float16(value).view(np.uint16))
    return int(np.float32(value).view(np.uint32)) >> 16  # these values are exact in bf16


# ---- tables ----------------------------------------------------------------------------------


def _f32_grid() -> U32:
    """Every exponent, with mantissas at both ends, in the middle, and some between; both signs."""
    mantissas = np.array([0, 1, 2, 0x3FFFFF, 0x400000, 0x400001, 0x7FFFFE, 0x7FFFFF, 0x123456,
                          0x2AAAAA, 0x555555, 0x6DB6DB], np.uint32)  # fmt: skip
    exponents = np.arange(256, dtype=np.uint32) << np.uint32(23)
    grid = (exponents[:, None] | mantissas).reshape(-1)
    return np.concatenate([grid, grid | np.uint32(0x80000000)])


def _f32_unit() -> U32:
    """[1, 4) in steps of 2^-9: where v_rcp, v_rsq and v_log have their tables."""
    return np.linspace(1, 4, 1536, endpoint=False, dtype=np.float32).view(np.uint32)


def _f32_exponents() -> U32:
    """-150 .. 130 by eighths: the range of v_exp with its denormal and infinite ends."""
    return np.arange(-150, 130, 0.125, dtype=np.float32).view(np.uint32)


def _boundaries(mantissa: int, lowest: int, highest: int) -> U32:
    """Around midpoints between neighbours of a narrow format: below, on it, above.  Of formats
    with many mantissas some, of every exponent."""
    points, step = [], (1 << max(0, mantissa - 5)) + 1 if mantissa > 3 else 1
    for exponent in range(lowest - mantissa - 1, highest + 2):
        for numerator in range(1 << mantissa + 1, 1 << mantissa + 2, step):
            points.append(float(numerator) * 2.0 ** (exponent - mantissa - 1))
    middle = np.unique(np.array([0.0, *points], np.float32)).view(np.uint32)
    around = np.concatenate([middle, middle + np.uint32(1), middle[1:] - np.uint32(1)])
    special = np.array([0x7F800000, 0x7FC00000, 0x7F800001, 0x7F7FFFFF, 1], np.uint32)
    every = np.concatenate([around, special])
    return np.concatenate([every, every | np.uint32(0x80000000)])


def _halves() -> U32:
    """Every f16 pattern."""
    return np.arange(1 << 16, dtype=np.uint32)


def _tables(arch: str) -> Iterator[Item]:
    for name, table in (("exp", _f32_exponents), ("log", _f32_unit), ("rcp", _f32_unit),
                        ("rsq", _f32_unit)):  # fmt: skip
        for part, data in (("grid", _f32_grid()), ("table", table())):
            yield _table(f"trans/v_{name}_f32/{part}", arch, f"v_{name}_f32 v8, v8", data)
    yield _table("convert/v_cvt_f16_f32", arch, "v_cvt_f16_f32 v8, v8", _boundaries(10, -14, 15))
    yield _table("convert/v_cvt_f32_f16", arch, "v_cvt_f32_f16 v8, v8", _halves())
    yield _table("convert/v_cvt_i32_f32", arch, "v_cvt_i32_f32 v8, v8", _f32_grid())
    yield _table("convert/v_cvt_u32_f32", arch, "v_cvt_u32_f32 v8, v8", _f32_grid())
    if arch == "gfx950":
        codes = np.arange(256, dtype=np.uint32)
        for kind, mantissa, lowest, highest in (("fp8", 3, -6, 8), ("bf8", 2, -14, 15)):
            code = f"v_mov_b32 v9, 0\nv_cvt_pk_{kind}_f32 v9, v8, v8\nv_mov_b32 v8, v9"
            data = _boundaries(mantissa, lowest, highest)
            yield _table(f"convert/v_cvt_pk_{kind}_f32", arch, code, data)
            yield _table(f"convert/v_cvt_f32_{kind}", arch, f"v_cvt_f32_{kind} v8, v8", codes)
        code = "v_cvt_pk_bf16_f32 v8, v8, v8"
        yield _table("convert/v_cvt_pk_bf16_f32", arch, code, _boundaries(7, -16, 16))


def _table(name: str, arch: str, code: str, data: U32) -> Item:
    """A word in, a word out, lane by lane."""
    lanes = LANES[arch]
    steps = -(-len(data) // lanes)
    padded = np.zeros(steps * lanes, np.uint32)
    padded[: len(data)] = data
    words = padded.reshape(steps, 1, lanes)
    program = Program("k", arch, lanes, 1, code, FIRST, 1)
    return Item(name, program, lambda: words, inputs=(padded,))


# ---- hazards ---------------------------------------------------------------------------------
# A producer, n wait states, a consumer: right at which n?  The value is right or stale; nothing
# here can hang or leave memory.  The simulator, which has no pipeline, is always right.


def _hazards(arch: str) -> Iterator[Item]:
    if arch == "gfx950":
        passes = (("v_mfma_f32_4x4x4_16b_f16 v[16:19], v[8:9], v[10:11], 0", 4, 8),
                  ("v_mfma_f32_16x16x32_f16 v[16:19], v[8:11], v[8:11], 0", 4, 12),
                  ("v_mfma_f32_32x32x16_f16 v[16:31], v[8:11], v[8:11], 0", 16, 16))  # fmt: skip
        for code, wide, most in passes:
            last = 16 + wide - 1
            yield _hazard(f"hazard/{code.split()[0]}/valu-read", arch, code,
                          f"v_mov_b32 v32, v{last}", last, most)
        yield _hazard("hazard/v_exp_f32/valu-read", arch, "v_exp_f32 v16, v8",
                      "v_add_f32 v32, v16, v16", 16, 3)
        yield _hazard("hazard/v_mov_b32/dpp-read", arch, "v_mov_b32 v16, v8",
                      "v_mov_b32_dpp v32, v16 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf",
                      16, 3)
        yield _hazard("hazard/v_mov_b32/mfma-read", arch, "v_mov_b32 v16, v8",
                      "v_mfma_f32_4x4x1_16b_f32 v[32:35], v16, v16, 0", 16, 4)
        yield _hazard("hazard/v_cmp/valu-vcc", arch, "v_cmp_gt_u32 vcc, v8, 0",
                      "v_cndmask_b32 v32, 0, 1, vcc", 16, 3)
    else:
        yield _hazard("hazard/v_wmma_f32_16x16x16_f16/valu-read", arch,
                      "v_wmma_f32_16x16x16_f16 v[16:23], v[8:15], v[8:15], v[16:23]",
                      "v_mov_b32 v32, v23", 23, 4)
        yield _hazard("hazard/v_exp_f32/valu-read", arch, "v_exp_f32 v16, v8",
                      "v_add_f32 v32, v16, v16", 16, 3)


def _hazard(
    name: str, arch: str, producer: str, consumer: str, register: int, most: int
) -> Item:
    """The word of lane 0 after 0, 1, .. `most` wait states, and after 32 of them.

    All registers that a producer may name hold small numbers beforehand; the register that is
    waited for holds 7 until the producer writes it.
    """
    code, out = [], 40
    for n in (*range(most + 1), 32):
        code += ["v_mov_b32 v32, 0", f"v_mov_b32 v{register}, 7", "s_nop 15", producer]
        left = n
        while left > 0:
            code.append(f"s_nop {min(left, 16) - 1}")
            left -= 16
        code += [consumer, "s_nop 15", "s_nop 15", f"v_mov_b32 v{out}, v32"]
        out += 1
    rows = 8
    words = np.full((1, rows, LANES[arch]), 0x3C003C00, np.uint32)  # f16: ones
    labels = tuple(f"{n} wait states" for n in (*range(most + 1), 32))
    p = Program("k", arch, LANES[arch], rows, "\n".join(code), 40, out - 40, registers=80)
    return Item(name, p, lambda: words, labels, each_lane=False)
