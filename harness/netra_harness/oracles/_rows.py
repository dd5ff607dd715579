"""The row counts that a full case set tries."""

from __future__ import annotations

import numpy as np

SEED = 20260


def counts(most: int, admitted: int) -> list[int]:
    """Of 1..admitted: every count to 128, powers of two and their neighbours, the last two
    admitted, and 32 drawn with a fixed seed; nothing above `most`, which memory bounds."""
    found = set(range(1, 129))
    power = 256
    while power <= most:
        found |= {power - 1, power, power + 1}
        power *= 2
    found |= {admitted - 1, admitted}
    rng = np.random.default_rng(SEED)
    found |= {int(n) for n in rng.integers(129, most + 1, 32)}
    return sorted(n for n in found if n <= min(most, admitted))
