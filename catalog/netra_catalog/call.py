"""One call of an op, as contracts see it: no data, only what describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from netra_catalog.dtypes import itemsize


@dataclass(frozen=True)
class Tensor:
    """A tensor argument.  Strides count elements; `extent` is the number of
    bytes from `ptr` to the end of the storage; no layout tag means unknown."""

    ptr: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    extent: int
    layout: str | None = None

    def __post_init__(self) -> None:
        if len(self.shape) != len(self.strides):
            raise ValueError(f"shape {self.shape} and strides {self.strides} differ in length")

    @classmethod
    def dense(
        cls, ptr: int, dtype: str, shape: tuple[int, ...], layout: str | None = None
    ) -> Tensor:
        """A contiguous tensor that fills its storage."""
        strides = dense_strides(shape)
        size = itemsize(dtype)
        for extent in shape:
            size *= extent
        return cls(ptr, dtype, shape, strides, size, layout)

    @property
    def empty(self) -> bool:
        return 0 in self.shape

    @property
    def max_byte_offset(self) -> int:
        """Offset from `ptr` of the last byte of the tensor; -1 when it is empty."""
        if self.empty:
            return -1
        reach = sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True) if s > 0)
        return (reach + 1) * itemsize(self.dtype) - 1

    @property
    def min_byte_offset(self) -> int:
        """Offset of the first byte: negative when a stride is."""
        if self.empty:
            return 0
        reach = sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True) if s < 0)
        return reach * itemsize(self.dtype)

    @property
    def contiguous(self) -> bool:
        """Row-major with no gaps.  The stride of an extent of 1 does not matter."""
        if self.empty:
            return True
        step = 1
        for extent, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if extent != 1 and stride != step:
                return False
            step *= extent
        return True

    def disjoint(self, other: Tensor) -> bool:
        """No byte lies between the first and the last byte of both."""
        if self.empty or other.empty:
            return True
        return (
            self.ptr + self.max_byte_offset < other.ptr + other.min_byte_offset
            or other.ptr + other.max_byte_offset < self.ptr + self.min_byte_offset
        )


@dataclass(frozen=True)
class Call:
    """An op with its arguments, on a device, in a phase of serving."""

    op: str
    arch: str
    phase: str
    graph: str
    cu_count: int
    args: Mapping[str, Tensor | int | float]


def dense_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides: list[int] = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def describe(value: Tensor | int | float) -> str:
    """`f32[16,248320]`, with strides and layout when they are not the usual ones."""
    if not isinstance(value, Tensor):
        return str(value)
    text = f"{value.dtype}[{','.join(map(str, value.shape))}]"
    if not value.contiguous:
        text += f" stride=({','.join(map(str, value.strides))})"
    if value.layout not in (None, "row_major"):
        text += f" layout={value.layout}"
    return text
