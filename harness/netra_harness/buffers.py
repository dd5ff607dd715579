"""Device memory of one case: filled before, guarded on both sides, checked after.

A device that checks every access itself (the simulator) gets regions that end where the array
ends, so a stray access faults and names its line. Elsewhere a band of known bytes lies on
either side of each array and is looked at after the launch.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netra_harness.hip import Hip

Array = NDArray[Any]

FILL = 0xA5  # what outputs, workspace and bands hold before a launch
OTHER_FILL = 0x5A  # the second opinion: a byte that is FILL, then OTHER_FILL, was never written
_PIECE = 1 << 26
BAND = 64 * 1024  # bytes on each side; keeps the alignment that hipMalloc gives


@dataclass
class Buffer:
    """`pointer` is what the kernel gets; the allocation starts `band` bytes before it."""

    name: str
    pointer: int
    size: int
    band: int


@dataclass(frozen=True)
class Stray:
    """Bytes that were written outside an array."""

    name: str
    side: str  # "before" or "after"
    offset: int  # of the written byte nearest to the array, counted away from it
    count: int
    found: str

    def text(self) -> str:
        where = "past the end of" if self.side == "after" else "before the start of"
        return (
            f"{self.count} bytes were written {where} {self.name}, the nearest "
            f"{self.offset} bytes from it: found {self.found}, want {FILL:02x}"
        )


class Buffers:
    """The buffers of one case; leaving the `with` frees them."""

    def __init__(self, hip: Hip, band: int = BAND) -> None:
        self._hip = hip
        self._band = band
        self._all: dict[str, Buffer] = {}

    def __enter__(self) -> Buffers:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for buffer in self._all.values():
            if not buffer.pointer:
                continue
            try:
                self._hip.free(buffer.pointer - buffer.band)
            except Exception:
                if error is None:  # after a fault every call fails; the first error matters
                    raise
        self._all.clear()

    def __getitem__(self, name: str) -> Buffer:
        return self._all[name]

    def text(self) -> str:
        """Where each array lies, for reading a fault's address."""
        return ", ".join(
            f"{b.name} {b.pointer:#x} ({b.size} bytes)" for b in self._all.values()
        )

    def allocate(self, name: str, size: int) -> Buffer:
        """A new buffer, filled; an empty one has no memory and the address 0."""
        buffer = Buffer(name, 0, size, self._band)
        if size:
            base = self._hip.malloc(size + 2 * self._band)
            buffer.pointer = base + self._band
            self._all[name] = buffer
            self._hip.fill(base, FILL, size + 2 * self._band)
            self._hip.undefine(base, size + 2 * self._band)
        else:
            self._all[name] = buffer
        return buffer

    def fill(self, name: str, byte: int = FILL, defined: bool = True) -> None:
        """Every byte; `defined`: a kernel may use it before it writes there."""
        buffer = self._all[name]
        if buffer.size:
            self._hip.fill(buffer.pointer, byte, buffer.size)
            if not defined:
                self._hip.undefine(buffer.pointer, buffer.size)

    def leave_out(self, name: str, gaps: Iterable[tuple[int, int]]) -> None:
        """No kernel may use the bytes start..end - 1 of each gap: they belong to no element."""
        buffer = self._all[name]
        for start, end in gaps:
            self._hip.undefine(buffer.pointer + start, end - start)

    def upload(self, name: str, array: Array) -> None:
        buffer = self._all[name]
        data = np.ascontiguousarray(array)
        if data.nbytes != buffer.size:
            raise ValueError(f"{name}: {data.nbytes} bytes for a buffer of {buffer.size}")
        if buffer.size:
            self._hip.copy_in(buffer.pointer, data.ctypes.data, data.nbytes)

    def download(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        buffer = self._all[name]
        data = np.empty(shape, dtype)
        if data.nbytes != buffer.size:
            raise ValueError(f"{name}: {data.nbytes} bytes from a buffer of {buffer.size}")
        if buffer.size:
            self._hip.copy_out(data.ctypes.data, buffer.pointer, data.nbytes)
        return data

    def holds(self, name: str, array: Array) -> bool:
        """Does the buffer hold just these bytes?  Looked at in pieces: inputs can be large."""
        buffer = self._all[name]
        want = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        for start in range(0, buffer.size, _PIECE):
            piece = np.empty(min(_PIECE, buffer.size - start), np.uint8)
            self._hip.copy_out(piece.ctypes.data, buffer.pointer + start, piece.nbytes)
            if not np.array_equal(piece, want[start : start + piece.nbytes]):
                return False
        return True

    def strays(self) -> list[Stray]:
        """What lies changed in the bands of every buffer."""
        found = []
        for buffer in self._all.values():
            if not buffer.band or not buffer.size:
                continue
            for side in ("before", "after"):
                start = buffer.pointer + (-buffer.band if side == "before" else buffer.size)
                band = np.empty(buffer.band, np.uint8)
                self._hip.copy_out(band.ctypes.data, start, band.nbytes)
                changed = np.flatnonzero(band != FILL)
                if changed.size:
                    near = int(changed[-1] if side == "before" else changed[0])
                    offset = buffer.band - 1 - near if side == "before" else near
                    low = max(0, near - 7) if side == "before" else near
                    shown = band[low : low + 8].tobytes().hex(" ")
                    found.append(Stray(buffer.name, side, offset, int(changed.size), shown))
        return found


def untouched(first: Array, second: Array) -> NDArray[np.bool_]:
    """Per element: has it a byte that still holds the fill of both launches?"""
    return np.asarray(
        ((_bytes(first) == FILL) & (_bytes(second) == OTHER_FILL)).any(axis=-1), np.bool_
    )


def suspicious(got: Array, whole: bool) -> bool:
    """May an element be unwritten?  `whole`: only if all of its bytes hold the fill."""
    held = _bytes(got) == FILL
    return bool((held.all(axis=-1) if whole else held).any())


def _bytes(array: Array) -> NDArray[np.uint8]:
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(np.uint8).reshape(*array.shape, array.dtype.itemsize)
