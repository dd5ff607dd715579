"""Assembles the probes of a target, runs them through HIP, and says where the device differs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from netra_sim.hip import Hip

from netra_harness.probes import matrix_layouts as layouts
from netra_harness.probes import programs
from netra_harness.probes.matrix_layouts import U32, Shape, Step
from netra_harness.probes.programs import Program


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


def program(s: Shape, symbol: str) -> Program:
    """The instruction between loads of all that a step fills and stores of D."""
    out = layouts.results(s) * (2 if s.out == "f64" else 1)
    return Program(symbol, s.arch, s.lanes, layouts.ROWS, line(s), 8 + layouts.C, out)


def assemble(shapes: list[Shape], folder: Path) -> Path:
    """The code object of these shapes, k0 and up; raises ToolError with the assembler's words."""
    return programs.assemble([program(s, f"k{n}") for n, s in enumerate(shapes)], folder)


def answers(hip: Hip, function: int, s: Shape, steps: list[Step]) -> tuple[U32, U32]:
    """(what D is, what it must be) for each step, as [step][register][lane]."""
    got = programs.run(hip, function, program(s, ""), np.stack([step.words for step in steps]))
    want = np.stack([step.want for step in steps])
    if s.kind == "wmma" and s.out in ("f16", "bf16"):  # the other half of D is the addend's
        half = np.uint32(0xFFFF0000 if "op_sel:[0,0,1]" in s.tail else 0x0000FFFF)
        got, want = got & half, want & half
    return got, want


def run(hip: Hip, function: int, s: Shape, steps: list[Step]) -> Difference | None:
    """Launches one workgroup for each step; the first difference, if there is one."""
    got, want = answers(hip, function, s, steps)
    wrong = np.argwhere(got != want)
    if not len(wrong):
        return None
    n, v, lane = (int(x) for x in wrong[0])
    return Difference(s, n, v, lane, int(got[n, v, lane]), int(want[n, v, lane]))
