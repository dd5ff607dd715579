"""Reads the arrays that callers have: torch tensors, `__cuda_array_interface__`, plain objects.

What is read is a View: address, element type, shape, strides in elements. Types are never guessed:
`__cuda_array_interface__` cannot name BF16 or FP8, so such arrays pass through as_array(x, dtype=).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, SupportsIndex

from netra_catalog.call import dense_strides
from netra_catalog.dtypes import DTYPES, itemsize, numpy_dtype

from netra_bridge.errors import PointerError, UsageError

_TYPESTR = {
    "f8": "f64", "f4": "f32", "f2": "f16", "b1": "bool",
    "i8": "i64", "i4": "i32", "i2": "i16", "i1": "i8",
    "u8": "u64", "u4": "u32", "u2": "u16", "u1": "u8",
}  # fmt: skip
_TORCH = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16",
    "float8_e4m3fn": "f8e4m3fn", "float8_e4m3fnuz": "f8e4m3fnuz", "float8_e5m2": "f8e5m2",
    "float8_e8m0fnu": "e8m0", "bool": "bool",
    "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8",
    "uint64": "u64", "uint32": "u32", "uint16": "u16", "uint8": "u8",
}  # fmt: skip
_COPY_HINT = "copy it to the device first: netra_bridge.to_device(array)"


@dataclass(frozen=True)
class View:
    """One array as its owner describes it.  `extent` counts bytes from `ptr` to the end of the
    storage, None when the owner does not say; `stream` is where it was last written, if told."""

    ptr: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    extent: int | None = None
    layout: str | None = None
    readonly: bool = False
    stream: int | None = None

    @property
    def empty(self) -> bool:
        return 0 in self.shape


@dataclass(frozen=True, eq=False)
class DeviceArray:
    """An array in device memory: address, shape, dtype (netra_catalog.dtypes), strides in elements.

    `owner` is kept alive as long as this object is.  `layout` is the tag that contracts ask for."""

    ptr: int
    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...] | None = None
    layout: str | None = None
    owner: object = field(default=None, repr=False)

    def __post_init__(self) -> None:
        itemsize(self.dtype)  # an unknown name is an error here, not at the first use
        object.__setattr__(self, "shape", _integers(self.shape, "shape"))
        if self.strides is not None:
            object.__setattr__(self, "strides", _integers(self.strides, "strides"))
            if len(self.strides) != len(self.shape):
                raise UsageError(f"shape {self.shape} and strides {self.strides} differ in length")

    @property
    def nbytes(self) -> int:
        """Bytes of the elements, gaps not counted."""
        total = itemsize(self.dtype)
        for extent in self.shape:
            total *= extent
        return total

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        names = {name: typestr for typestr, name in _TYPESTR.items()}
        if self.dtype not in names:
            raise AttributeError(f"__cuda_array_interface__ cannot name {self.dtype}")
        size = itemsize(self.dtype)
        strides = self.strides
        return {
            "version": 3,
            "data": (self.ptr, False),
            "typestr": ("|" if size == 1 else "<") + names[self.dtype],
            "shape": self.shape,
            "strides": None if strides is None else tuple(size * step for step in strides),
            "stream": None,
        }


def as_array(value: object, *, dtype: str | None = None, layout: str | None = None) -> DeviceArray:
    """Names what an array object cannot say itself: a BF16 or FP8 type, a layout tag.

    `dtype` must have the size of the elements, and may replace raw integers and void only: an array
    that says f16 is f16.  The result keeps `value` alive."""
    view = read("array", value, dtype=dtype)
    return DeviceArray(view.ptr, view.shape, view.dtype, view.strides, layout or view.layout, value)


def is_scalar(value: object) -> bool:
    """A number passed by value: Python's, or one of NumPy's scalars (not a 0-d array)."""
    if isinstance(value, (int, float)):
        return True
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.generic)


def scalar(name: str, value: Any) -> int | float:
    number = value if isinstance(value, (int, float)) else value.item()
    if isinstance(number, bool):
        return int(number)
    if not isinstance(number, (int, float)):
        raise UsageError(f"{name} is a {type(value).__name__}, no integer or real number")
    return number


def read(name: str, value: object, *, dtype: str | None = None) -> View:
    """The View of any array object; `name` is for messages."""
    if dtype is not None and dtype not in DTYPES:
        itemsize(dtype)  # raises, with the nearest name
    if isinstance(value, DeviceArray):
        strides = value.strides if value.strides is not None else dense_strides(value.shape)
        own = View(value.ptr, value.dtype, value.shape, strides, layout=value.layout)
        return own if dtype is None else _retyped(name, own, dtype)
    if _is_torch(value):
        own = _read_torch(name, value)
        return own if dtype is None else _retyped(name, own, dtype)
    interface = getattr(value, "__cuda_array_interface__", None)
    if interface is not None:
        return _read_interface(name, interface, dtype)
    if hasattr(value, "__array_interface__"):
        raise PointerError(f"{name} is in host memory (NumPy)", hint=_COPY_HINT)
    if hasattr(value, "ptr") and hasattr(value, "shape"):
        return _read_object(name, value, dtype)
    raise UsageError(
        f"{name} is a {type(value).__name__}, which is no device array",
        hint="pass a torch tensor, an object with __cuda_array_interface__ or with ptr, shape and "
        "dtype, or a netra_bridge.DeviceArray",
    )


def _is_torch(value: object) -> bool:
    return callable(getattr(value, "data_ptr", None)) and callable(getattr(value, "stride", None))


def _read_torch(name: str, tensor: Any) -> View:
    if str(getattr(tensor, "layout", "torch.strided")) != "torch.strided":
        raise UsageError(f"{name} has layout {tensor.layout}; only strided tensors have an address")
    if getattr(getattr(tensor, "device", None), "type", "cuda") == "cpu":
        raise PointerError(f"{name} is in host memory (a CPU tensor)", hint=_COPY_HINT)
    for lazy in ("is_conj", "is_neg"):
        if getattr(tensor, lazy, bool)():
            raise UsageError(f"{name} is a lazy view ({lazy}); resolve it first")
    given = str(tensor.dtype).removeprefix("torch.")
    if given not in _TORCH:
        raise UsageError(f"{name} has dtype {tensor.dtype}, which no kernel takes")
    dtype = _TORCH[given]
    extent = None
    storage: Callable[[], Any] | None = getattr(tensor, "untyped_storage", None)
    if storage is not None:
        extent = int(storage().nbytes()) - int(tensor.storage_offset()) * itemsize(dtype)
    return View(
        int(tensor.data_ptr()),
        dtype,
        tuple(int(n) for n in tensor.shape),
        tuple(int(n) for n in tensor.stride()),
        extent,
    )


def _read_interface(name: str, interface: Mapping[str, Any], dtype: str | None) -> View:
    try:
        version = int(interface.get("version", 0))
        typestr = str(interface["typestr"])
        shape = _integers(interface["shape"], f"{name}: shape")
        ptr, readonly = interface["data"]
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{name}: malformed __cuda_array_interface__: {error}") from None
    if version < 2:
        raise UsageError(f"{name}: __cuda_array_interface__ version {version}, want 2 or 3")
    if interface.get("mask") is not None:
        raise UsageError(f"{name} is a masked array, which no kernel takes")
    if typestr[:1] == ">":
        raise UsageError(f"{name} is big-endian ({typestr})")
    kind = typestr[1:]
    natural = _TYPESTR.get(kind)
    size = int(kind[1:]) if kind[1:].isdigit() else 0
    if natural is None and dtype is None:
        raise UsageError(
            f"{name} has typestr {typestr}, which names no type that kernels take",
            hint='if you know it, say so: netra_bridge.as_array(x, dtype="bf16")',
        )
    if dtype is not None and not (dtype == natural or (kind[:1] in "uiV" and kind[:1])):
        raise UsageError(f"{name} has typestr {typestr}; it cannot be read as {dtype}")
    chosen = dtype if dtype is not None else natural
    assert chosen is not None
    if itemsize(chosen) != size:
        raise UsageError(f"{name} has elements of {size} bytes, {chosen} has {itemsize(chosen)}")
    steps = interface.get("strides")
    if steps is None:
        strides = dense_strides(shape)
    else:
        in_bytes = _integers(steps, f"{name}: strides")
        if len(in_bytes) != len(shape) or any(step % size for step in in_bytes):
            raise UsageError(f"{name}: strides {in_bytes} do not fit shape {shape} of {size} bytes")
        strides = tuple(step // size for step in in_bytes)
    stream = interface.get("stream")
    return View(
        int(ptr or 0), chosen, shape, strides,
        readonly=bool(readonly), stream=None if stream is None else int(stream),
    )  # fmt: skip


def _read_object(name: str, value: Any, dtype: str | None) -> View:
    ptr = value.ptr
    if not isinstance(ptr, int):
        raise UsageError(f"{name}.ptr is a {type(ptr).__name__}, no address")
    given = getattr(value, "dtype", None)
    if given is None and dtype is None:
        raise UsageError(f"{name} has no dtype", hint="name it: as_array(x, dtype=...)")
    shape = _integers(value.shape, f"{name}: shape")
    steps = getattr(value, "strides", None)
    strides = dense_strides(shape) if steps is None else _integers(steps, f"{name}: strides")
    if len(strides) != len(shape):
        raise UsageError(f"{name}: shape {shape} and strides {strides} differ in length")
    natural = dtype_name(given) if given is not None else str(dtype)
    view = View(ptr, natural, shape, strides, layout=getattr(value, "layout", None))
    return view if dtype is None else _retyped(name, view, dtype)


def dtype_name(given: object) -> str:
    """Our name of a type: the name itself, or a NumPy (ml_dtypes, torch) type."""
    if isinstance(given, str) and given in DTYPES:
        return given
    text = str(given).removeprefix("torch.")
    if text in _TORCH:
        return _TORCH[text]
    try:
        import numpy

        wanted = numpy.dtype(given)  # type: ignore[call-overload]
    except TypeError:
        itemsize(str(given))  # raises, with the nearest name
        raise
    for name in DTYPES:
        if numpy_dtype(name) == wanted:
            return name
    raise UsageError(f"dtype {given} is none that kernels take")


def _retyped(name: str, view: View, dtype: str) -> View:
    raw = view.dtype[0] in "ui"
    if dtype != view.dtype and (not raw or itemsize(dtype) != itemsize(view.dtype)):
        raise UsageError(f"{name} is {view.dtype}; it cannot be read as {dtype}")
    return View(
        view.ptr, dtype, view.shape, view.strides, view.extent, view.layout, view.readonly,
        view.stream,
    )  # fmt: skip


def _integers(values: Sequence[SupportsIndex] | Any, what: str) -> tuple[int, ...]:
    try:
        return tuple(value.__index__() for value in values)
    except (TypeError, AttributeError):
        raise UsageError(f"{what} is {values!r}, want integers") from None
