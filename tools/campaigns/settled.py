"""Recorded values that are not the hardware's, each with what settles it.

What was recorded is the buffer of an emulator; the tests around it compared a few values with
hardware, and the rest was compared by nobody.  An entry names the tests, the registers and the
values that it covers, as narrowly as its reason goes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Settled:
    """`tests` and `registers` are regular expressions for the whole name."""

    tests: str
    registers: str
    why: str
    got: int | None = None
    recorded: int | None = None

    def covers(self, test: str, register: str, got: int, recorded: int) -> bool:
        return (
            re.fullmatch(self.tests, test) is not None
            and re.fullmatch(self.registers, register) is not None
            and self.got in (None, got)
            and self.recorded in (None, recorded)
        )


SETTLED: tuple[Settled, ...] = ()
