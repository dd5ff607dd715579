"""Rows of bf16 for the cases of several oracles, by name, and random ones.

A row has one kind of NaN, so that it does not matter which operand's payload is handed on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from netra_harness.oracles import _f32, _random

Array = NDArray[Any]
U16 = NDArray[np.uint16]
Maker = Callable[[U16, np.random.Generator], None]


def of_bits(pattern: U16) -> Array:
    return np.asarray(pattern.view(ml_dtypes.bfloat16))


def normal(shape: tuple[int, ...], rng: np.random.Generator, size: float = 1.0) -> Array:
    """Normally distributed, as activations and weights about are."""
    return _f32.to_bf16((_random.normal(shape, rng) * size).astype(np.float32))


def integers(shape: tuple[int, ...], rng: np.random.Generator, most: int = 3) -> Array:
    """Small whole numbers: sums of their products are exact in f32, in whatever order."""
    return np.asarray(rng.integers(-most, most + 1, shape).astype(ml_dtypes.bfloat16))


def make_rows(
    rows: Mapping[str, Maker], width: int, rng: np.random.Generator, size: float = 1.0
) -> Array:
    """One row for each maker, which changes what it likes of a random row."""
    x = normal((len(rows), width), rng, size)
    for row, make in zip(x.view(np.uint16), rows.values(), strict=True):
        make(row, rng)
    return x


def _put(where: Any, value: int) -> Maker:
    def make(row: U16, rng: np.random.Generator) -> None:
        row[where] = value

    return make


def _inf_and_minus_inf(row: U16, rng: np.random.Generator) -> None:
    row[5], row[-9] = 0x7F80, 0xFF80


def _only(where: int, value: int) -> Maker:
    def make(row: U16, rng: np.random.Generator) -> None:
        row[:] = 0
        row[where] = value

    return make


def _denormals(row: U16, rng: np.random.Generator) -> None:
    row[:] = rng.integers(0, 0x80, row.shape, dtype=np.uint16)


EVERYTHING = slice(None)

ROWS: dict[str, Maker] = {
    "zeros": _put(EVERYTHING, 0x0000),
    "minus-zeros": _put(EVERYTHING, 0x8000),
    "all-equal": _put(EVERYTHING, 0x3F81),
    "only-first": _only(0, 0x4000),
    "only-last": _only(-1, 0xC0A0),
    "outlier": _put(100, 0x7180),  # 2^100
    "largest": _put(EVERYTHING, 0xFF7F),
    "denormals": _denormals,
    "smallest-normal": _put(EVERYTHING, 0x0080),
    "inf": _put(3, 0x7F80),
    "minus-inf": _put(-1, 0xFF80),
    "inf-and-minus-inf": _inf_and_minus_inf,
    "nan": _put(1000, 0x7FC0),
    "nan-signalling": _put(-8, 0x7F81),
    "nan-negative": _put(64, 0xFFFF),
    "nan-each": _put(EVERYTHING, 0x7FFF),
}
