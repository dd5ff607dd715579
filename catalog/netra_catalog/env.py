"""What an expression is evaluated in, and the two ways in which it can fail.

Apart from the trees of expr.py, since a reader of catalog.bin needs no trees.
"""

from __future__ import annotations

import math
import struct
from typing import Any

from netra_catalog.call import Call


class Overflow(Exception):
    """A number left the range that the language computes in."""


class Undefined(Exception):
    """A value that does not exist: division by zero, an unknown layout."""


class Env:
    """What names stand for in one call; `memo` is for what was computed from it."""

    def __init__(
        self, call: Call, defaults: dict[str, int | float], workspace: int = 0
    ) -> None:
        self.call, self.defaults, self.workspace = call, defaults, workspace
        self.memo: dict[Any, Any] = {}


def to_f32(value: float) -> float:
    """The nearest float32, as a scalar argument holds it."""
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return rounded
