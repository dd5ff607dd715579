"""Recorded programs and values that differ from the hardware, each with what settles it.

What was recorded is the buffer of an emulator.  The tests around it compared a few values with
hardware, any NaN as good as another, and nobody compared the rest.  Every entry covers as little
as its reason does: tests by name, registers and values.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Settled:
    """A value of ours that is right although it is not the recorded one."""

    tests: str  # regular expressions for the end of a test's name and for a register
    registers: str
    got: int
    recorded: int
    why: str

    def covers(self, test: str, register: str, got: int, recorded: int) -> bool:
        return (
            re.search(f"(?:{self.tests})$", test) is not None
            and re.fullmatch(self.registers, register) is not None
            and (got, recorded) == (self.got, self.recorded)
        )


@dataclass(frozen=True)
class Rewrite:
    """Dwords of a program that are replaced before it runs."""

    tests: str
    old: tuple[int, ...]
    new: tuple[int, ...]
    why: str

    def applies(self, test: str) -> bool:
        return re.search(f"(?:{self.tests})$", test) is not None


@dataclass(frozen=True)
class Excused:
    """A program that may end in a fault with this text: it is not counted then."""

    tests: str
    fault: str  # a regular expression for a part of it
    why: str

    def covers(self, test: str, fault: str) -> bool:
        found = re.search(f"(?:{self.tests})$", test) and re.search(self.fault, fault)
        return found is not None


_DIV_SCALE = "v_div_scale with a zero among its operands gives the negative quiet NaN on hardware"
_DIV_FIXUP = "v_div_fixup of 0/0 and inf/inf is the NaN 0xffc00000 in the ISA guide's pseudocode"
_DOT2 = (
    "v_dot2_f32_f16 with terms of both signs ends one unit below 4.0 in the steps measured on "
    "gfx1151; the test allows that unit"
)
_LOG = "v_log_f32 of a negative number is the NaN 0xffc00000 on hardware"

SETTLED = (
    Settled(r"TestDivScale::\w+", r"v\d+", 0xFFC00000, 0x7FC00000, _DIV_SCALE),
    Settled(r"TestDivScaleF64::\w+", r"v\d+(\[\d+\])?", 0xFFF80000, 0x7FF80000, _DIV_SCALE),
    Settled(r"TestDivFixup::\w+", r"v\d+", 0xFFC00000, 0x7FC00000, _DIV_FIXUP),
    Settled(r"test_v_dot2_f32_f16_negative_values", r"v3", 0x407FFFFF, 0x40800000, _DOT2),
    Settled(r"test_v_log_f32_negative", r"v\d+", 0xFFC00000, 0x7FC00000, _LOG),
)

_IGNORED = "a field that the instruction ignores is not 0, which LLVM's disassembler refuses"

REWRITES = (
    Rewrite(
        "TestCDNA.*", (0xC0041728, 0xF8000000), (0xC0061728, 0x00000000),
        "the buffer's address is loaded with IMM=0, that is with an offset from s0; 0 was meant",
    ),
    Rewrite("_no_rtn.*", (0xD8000000, 0x0200010A), (0xD8000000, 0x0000010A), _IGNORED),
    Rewrite("_no_rtn.*", (0xD8200000, 0x0200010A), (0xD8200000, 0x0000010A), _IGNORED),
    Rewrite("ds_cmpstore_b32.*", (0xD8400000, 0x0302010A), (0xD8400000, 0x0002010A), _IGNORED),
    Rewrite("test_vopd_multilane_mov_add", (0xCA2004FF,), (0xCA2000FF,), _IGNORED),
)  # fmt: skip

EXCUSED = (
    Excused(
        "test_row_bcast15_materializes_vcc", "row_bcast",
        "DPP row_bcast does not exist on gfx10 and later",
    ),
    Excused(
        "TestVInterp::.*", "v_interp_p10",
        "the program names an SGPR where VINTERP has VGPRs only",
    ),
)  # fmt: skip
