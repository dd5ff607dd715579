"""The reference of narrow formats against ml_dtypes: all codes, halves and boundaries."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import narrow
import numpy as np
import pytest

TYPES: dict[str, Any] = {
    "fp8": ml_dtypes.float8_e4m3fn, "bf8": ml_dtypes.float8_e5m2, "fp6": ml_dtypes.float6_e2m3fn,
    "bf6": ml_dtypes.float6_e3m2fn, "fp4": ml_dtypes.float4_e2m1fn, "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
}  # fmt: skip


def _raw(name: str, codes: Any) -> Any:
    unsigned = np.uint16 if narrow.FORMATS[name].bits == 16 else np.uint8
    return codes.astype(unsigned).view(TYPES[name])


@pytest.mark.parametrize("name", TYPES)
def test_every_code(name: str) -> None:
    codes = np.arange(1 << narrow.FORMATS[name].bits, dtype=np.uint32)
    ours = narrow.decode(name, codes)
    with np.errstate(invalid="ignore"):  # signalling NaNs
        theirs = _raw(name, codes).astype(np.float64)
    assert np.array_equal(ours, theirs, equal_nan=True)
    number = ~np.isnan(ours)
    assert np.array_equal(np.signbit(ours)[number], np.signbit(theirs)[number])


@pytest.mark.parametrize("name", TYPES)
def test_rounding(name: str) -> None:
    """Every f16 and bf16, every number, tie and neighbour in f32; what overflows is clipped."""
    halves = np.arange(1 << 16, dtype=np.uint32)
    table = narrow.numbers(name)
    edges = np.concatenate([table, (table[1:] + table[:-1]) / 2]).astype(np.float32)
    bits = edges.view(np.uint32)
    inputs = [narrow.decode(half, halves).astype(np.float32) for half in ("f16", "bf16")]
    inputs += [(bits + np.uint32(1)).view(np.float32), edges,
               (np.maximum(bits, np.uint32(1)) - np.uint32(1)).view(np.float32)]  # fmt: skip
    x = np.concatenate(inputs)
    x = x[np.isfinite(x)]
    x = np.concatenate([x, -x])
    x = x[np.abs(x) <= table[-1]]
    ours = narrow.encode(name, x.astype(np.float64), np.signbit(x), ovfl=True)
    dtype = np.uint16 if narrow.FORMATS[name].bits == 16 else np.uint8
    theirs = x.astype(TYPES[name]).view(dtype)
    assert np.array_equal(ours, theirs)
    print(f"\nnarrow reference: {x.size} values to {name}")
