"""Helpers for programs that have no tensor library on the device: allocate, copy, wait."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from netra_catalog.call import Tensor
from netra_catalog.dtypes import itemsize, numpy_dtype

from netra_bridge import arrays, runtime
from netra_bridge.arrays import DeviceArray
from netra_bridge.errors import UsageError
from netra_bridge.hip import TO_DEVICE, TO_HOST


class _Allocation:
    """Owns device memory: it is released some time after the last array on it is gone."""


def empty(
    shape: int | Sequence[int], dtype: object, *, device: int = 0, layout: str = "row_major"
) -> DeviceArray:
    """Uninitialised device memory, row-major.  Not legal while a stream is being captured."""
    dims = (shape,) if isinstance(shape, int) else tuple(int(n) for n in shape)
    if any(n < 0 for n in dims):
        raise UsageError(f"shape {dims} has a negative extent")
    name = arrays.dtype_name(dtype)
    size = itemsize(name)
    for extent in dims:
        size *= extent
    owner = _Allocation()
    pointer = runtime.state(device).memory.allocate_for(owner, size)
    return DeviceArray(pointer, dims, name, None, layout, owner)


def to_device(
    array: Any, *, dtype: object = None, device: int = 0, layout: str = "row_major"
) -> DeviceArray:
    """A copy of a host array (NumPy, or a CPU tensor that NumPy can read), row-major.

    `dtype` names what raw bits are, as for a BF16 array held as uint16; `layout` what their order
    means, as for weights that were shuffled on the host."""
    host = np.ascontiguousarray(array) if np.ndim(array) else np.asarray(array)
    name = arrays.dtype_name(host.dtype if dtype is None else dtype)
    if itemsize(name) != host.dtype.itemsize:
        raise UsageError(f"an array of {host.dtype} cannot be read as {name}")
    target = empty(host.shape, name, device=device, layout=layout)
    memory = runtime.state(device).memory
    memory.copy(target.ptr, host.ctypes.data, host.nbytes, TO_DEVICE)
    return target


def to_host(array: object, *, device: int | None = None) -> np.ndarray[Any, Any]:
    """A NumPy copy of a device array of any kind.  Waits for the null stream only: synchronize()
    first when the array was written on another one."""
    view = arrays.read("array", array)
    dtype = numpy_dtype(view.dtype)
    if view.empty:
        return np.empty(view.shape, dtype)
    span = Tensor(view.ptr, view.dtype, view.shape, view.strides, 0)
    first, count = span.min_byte_offset, span.max_byte_offset + 1 - span.min_byte_offset
    state = runtime.state(0 if device is None else device)
    home = state.device.pointer(view.ptr).device
    if device is None and home > 0:
        state = runtime.state(home)
    raw = np.empty(count, np.uint8)
    state.memory.copy(raw.ctypes.data, view.ptr + first, count, TO_HOST)
    steps = tuple(step * dtype.itemsize for step in view.strides)
    strided = np.ndarray(view.shape, dtype, raw.data, -first, steps)
    return np.ascontiguousarray(strided) if view.shape else strided.copy()


def synchronize(stream: object = None, *, device: int = 0) -> None:
    """Waits for a stream, or for the whole device when none is given."""
    handle = None if stream is None else runtime.stream_handle(stream, device)
    runtime.state(device).memory.synchronize(handle)
