"""Guard bands, fills, and bytes that were never written, on a HIP made of host memory."""

from __future__ import annotations

import ctypes
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from netra_harness.buffers import (
    BAND,
    FILL,
    OTHER_FILL,
    Buffers,
    suspicious,
    untouched,
)
from netra_harness.draw import gaps, laid_out


class HostHip:
    """malloc, free, copies and fills in host memory: what Buffers needs of a device."""

    def __init__(self) -> None:
        self.live: dict[int, Any] = {}
        self.undefined: list[tuple[int, int]] = []

    def malloc(self, size: int) -> int:
        memory = ctypes.create_string_buffer(size)
        address = ctypes.addressof(memory)
        self.live[address] = memory
        return address

    def free(self, pointer: int) -> None:
        del self.live[pointer]

    def fill(self, pointer: int, byte: int, size: int) -> None:
        ctypes.memset(pointer, byte, size)

    def undefine(self, pointer: int, size: int) -> None:
        self.undefined.append((pointer, size))

    def copy_in(self, pointer: int, data: int, size: int) -> None:
        ctypes.memmove(pointer, data, size)

    def copy_out(self, data: int, pointer: int, size: int) -> None:
        ctypes.memmove(data, pointer, size)


@pytest.fixture
def hip() -> Any:
    return HostHip()


@pytest.mark.parametrize("dtype", [np.float32, np.int64, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2])
def test_arrays_go_there_and_back(hip: Any, dtype: Any) -> None:
    array = np.arange(24).reshape(2, 3, 4).astype(dtype)
    with Buffers(hip) as buffers:
        buffers.allocate("x", array.nbytes)
        buffers.upload("x", array)
        back = buffers.download("x", array.shape, array.dtype)
        assert back.dtype == array.dtype and back.tobytes() == array.tobytes()
        assert buffers.strays() == []
    assert hip.live == {}


def test_a_view_is_stored_in_its_own_order(hip: Any) -> None:
    array = np.arange(12, dtype=np.float32).reshape(3, 4)[:, ::2]
    with Buffers(hip) as buffers:
        buffers.allocate("x", array.nbytes)
        buffers.upload("x", array)
        assert np.array_equal(buffers.download("x", (3, 2), array.dtype), array)


def test_outputs_start_filled(hip: Any) -> None:
    with Buffers(hip) as buffers:
        buffers.allocate("out", 8)
        assert set(buffers.download("out", (8,), np.dtype(np.uint8))) == {FILL}
        buffers.fill("out", OTHER_FILL)
        assert set(buffers.download("out", (8,), np.dtype(np.uint8))) == {OTHER_FILL}
        assert buffers.strays() == []


def test_what_no_kernel_may_use(hip: Any) -> None:
    """Fresh memory with its bands, outputs between launches, and the gaps of a strided view."""
    view = np.zeros((3, 8), np.float32)[:, :6]
    with Buffers(hip) as buffers:
        x = buffers.allocate("x", laid_out(view).nbytes)
        assert hip.undefined == [(x.pointer - BAND, x.size + 2 * BAND)]
        hip.undefined.clear()
        buffers.upload("x", laid_out(view))
        buffers.leave_out("x", gaps(view))
        assert hip.undefined == [(x.pointer + 24, 8), (x.pointer + 56, 8)]
        buffers.fill("x", OTHER_FILL)
        assert len(hip.undefined) == 2
        buffers.fill("x", OTHER_FILL, defined=False)
        assert hip.undefined[2:] == [(x.pointer, x.size)]
    assert gaps(np.zeros((3, 4))) == [] and gaps(np.zeros(5, np.int8)[::2]) == [(1, 2), (3, 4)]


@pytest.mark.parametrize(
    "where, side, offset", [(16, "after", 0), (20, "after", 4), (-4, "before", 0),
                            (-BAND, "before", BAND - 4), (16 + BAND - 4, "after", BAND - 4)]
)  # fmt: skip
def test_a_write_outside_is_found(hip: Any, where: int, side: str, offset: int) -> None:
    with Buffers(hip) as buffers:
        buffers.allocate("in", 16)
        out = buffers.allocate("out", 16)
        ctypes.memset(out.pointer + where, 0, 4)
        (stray,) = buffers.strays()
        assert (stray.name, stray.side, stray.offset, stray.count) == ("out", side, offset, 4)
        word = "past the end of out" if side == "after" else "before the start of out"
        assert f"4 bytes were written {word}" in stray.text() and "00 00" in stray.text()


def test_without_bands_the_region_ends_with_the_array(hip: Any) -> None:
    with Buffers(hip, band=0) as buffers:
        out = buffers.allocate("out", 16)
        assert ctypes.sizeof(hip.live[out.pointer]) == 16
        assert buffers.strays() == []


def test_an_empty_array_has_no_memory(hip: Any) -> None:
    with Buffers(hip) as buffers:
        assert buffers.allocate("x", 0).pointer == 0
        buffers.fill("x")
        buffers.upload("x", np.empty((0, 4), np.float32))
        assert buffers.download("x", (0, 4), np.dtype(np.float32)).shape == (0, 4)
    assert hip.live == {}


def test_sizes_must_agree(hip: Any) -> None:
    with Buffers(hip) as buffers:
        buffers.allocate("x", 16)
        with pytest.raises(ValueError, match="x: 20 bytes for a buffer of 16"):
            buffers.upload("x", np.zeros(5, np.float32))
        with pytest.raises(ValueError, match="x: 12 bytes from a buffer of 16"):
            buffers.download("x", (3,), np.dtype(np.float32))


def test_everything_is_freed_when_a_run_fails(hip: Any) -> None:
    with pytest.raises(RuntimeError), Buffers(hip) as buffers:
        buffers.allocate("x", 16)
        buffers.allocate("y", 16)
        raise RuntimeError
    assert hip.live == {}


def test_a_byte_that_follows_the_fill_was_never_written() -> None:
    first = np.array([1, 2, 3], np.uint32)
    second = first.copy()
    first.view(np.uint8)[5], second.view(np.uint8)[5] = FILL, OTHER_FILL
    assert untouched(first, second).tolist() == [False, True, False]
    first.view(np.uint8)[0] = second.view(np.uint8)[0] = FILL  # a result that looks like it
    assert untouched(first, second).tolist() == [False, True, False]


def test_suspicion_by_element_or_by_byte() -> None:
    array = np.array([0x010203A5, 0xA5A5A5A5], np.uint32)
    assert suspicious(array, whole=True) and suspicious(array, whole=False)
    assert not suspicious(array[:1], whole=True) and suspicious(array[:1], whole=False)
