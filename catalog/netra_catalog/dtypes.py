"""The data types that every part names alike.

`bool` is one byte.  `e8m0` is the block scale of MX formats: an exponent and
nothing else.  FP8 is always named by flavour, since the same byte means
different numbers in each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from netra_catalog.errors import UsageError, nearest

if TYPE_CHECKING:
    import numpy

# name -> (bytes, NumPy name, name in ml_dtypes)
_TABLE: dict[str, tuple[int, str, str]] = {
    "f64": (8, "float64", ""),
    "f32": (4, "float32", ""),
    "f16": (2, "float16", ""),
    "bf16": (2, "", "bfloat16"),
    "f8e4m3fn": (1, "", "float8_e4m3fn"),
    "f8e4m3fnuz": (1, "", "float8_e4m3fnuz"),
    "f8e5m2": (1, "", "float8_e5m2"),
    "i64": (8, "int64", ""),
    "i32": (4, "int32", ""),
    "i16": (2, "int16", ""),
    "i8": (1, "int8", ""),
    "u64": (8, "uint64", ""),
    "u32": (4, "uint32", ""),
    "u16": (2, "uint16", ""),
    "u8": (1, "uint8", ""),
    "e8m0": (1, "", "float8_e8m0fnu"),
    "bool": (1, "bool", ""),
}

DTYPES: tuple[str, ...] = tuple(_TABLE)


def _entry(dtype: str) -> tuple[int, str, str]:
    try:
        return _TABLE[dtype]
    except KeyError:
        raise UsageError(f"unknown dtype '{dtype}'{nearest(dtype, DTYPES)}") from None


def itemsize(dtype: str) -> int:
    """Bytes of one element."""
    return _entry(dtype)[0]


def numpy_dtype(dtype: str) -> numpy.dtype[Any]:
    """The NumPy type, from ml_dtypes where NumPy has none."""
    import numpy

    _, native, extended = _entry(dtype)
    if native:
        return numpy.dtype(native)
    import ml_dtypes

    found: numpy.dtype[Any] = numpy.dtype(getattr(ml_dtypes, extended))
    return found
