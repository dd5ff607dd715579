"""Random inputs that every host draws alike, so that a seed stands for the data itself.

NumPy's normal, exponential and gamma draws call the C library's logarithm, whose last bit (and
with it which draws are rejected) is the host's own.  Everything here is integers and IEEE
arithmetic.  Round f64 to a narrow type by way of f32 and _f32.py: whether ml_dtypes rounds once or
twice depends on its version.  `Generator.integers`, `random`, `uniform`, `permutation` and `choice`
are as safe.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]

_PARTS = 8  # uniform 16-bit numbers that are added: of mean _PARTS / 2 and variance _PARTS / 12


def normal(shape: tuple[int, ...], rng: np.random.Generator) -> F64:
    """f64 of mean 0 and variance 1, the sum of 8 uniform numbers (Irwin-Hall): within 4.9."""
    count = int(np.prod(shape, dtype=np.int64))
    words = rng.integers(0, 1 << 64, (count, _PARTS // 4), dtype=np.uint64)
    total = words.view(np.uint16).sum(axis=1, dtype=np.int32)
    centred = total - _PARTS * ((1 << 16) - 1) // 2
    scaled: F64 = centred * (np.sqrt(12 / _PARTS) / (1 << 16))
    return scaled.reshape(shape)


def scales(shape: tuple[int, ...], rng: np.random.Generator, low: int, high: int) -> NDArray[Any]:
    """f32 from 2^low to 2^high: the exponents evenly spread, and within each the numbers."""
    exponent = rng.integers(low, high, shape)
    return np.asarray(np.ldexp(1 + rng.random(shape), exponent).astype(np.float32))
