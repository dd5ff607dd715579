"""`--arg` and `--save` of `netra-sim run`: from text to kernel arguments and back to files."""

from __future__ import annotations

import io
import re
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netra_catalog import dtypes
from netra_catalog.errors import NetraError, UsageError, nearest

if TYPE_CHECKING:
    import numpy

_BUFFER = re.compile(r"(?P<dtype>\w+)\[(?P<shape>[0-9a-fA-FxX, ]+)\]")
_PACK = {
    "f64": "<d", "f32": "<f", "f16": "<e", "i64": "<q", "i32": "<i", "i16": "<h", "i8": "<b",
    "u64": "<Q", "u32": "<I", "u16": "<H", "u8": "<B", "bool": "<?",
}
# How .npy files hold what NumPy has no name for.
_STORED = {"bf16": "u2", "f8e4m3fn": "u1", "f8e4m3fnuz": "u1", "f8e5m2": "u1", "e8m0": "u1"}
_NUMPY_NAMES = {
    "float64": "f64", "float32": "f32", "float16": "f16", "int64": "i64", "int32": "i32",
    "int16": "i16", "int8": "i8", "uint64": "u64", "uint32": "u32", "uint16": "u16",
    "uint8": "u8", "bool": "bool",
}


@dataclass(frozen=True)
class Argument:
    """One `--arg`: a buffer (with contents, or filled with 0xA5), or bytes passed by value."""

    name: str
    dtype: str
    shape: tuple[int, ...] = ()
    data: bytes | None = None
    value: bytes | None = None

    @property
    def is_buffer(self) -> bool:
        return self.value is None

    @property
    def nbytes(self) -> int:
        count = 1
        for extent in self.shape:
            count *= extent
        return count * dtypes.itemsize(self.dtype)


def parse(text: str) -> Argument:
    """NAME=@FILE, NAME:DTYPE=@FILE, NAME=DTYPE[SHAPE] or NAME=VALUE:DTYPE."""
    left, equals, right = text.partition("=")
    name, _, dtype = left.partition(":")
    if not equals or not name or not right:
        raise UsageError(
            f"--arg {text}: expected NAME=@FILE, NAME=DTYPE[SHAPE] or NAME=VALUE:DTYPE"
        )
    if right.startswith("@"):
        return _from_file(name, dtype, Path(right[1:]))
    if dtype:
        raise UsageError(f"--arg {text}: a dtype before '=' goes with @FILE only")
    buffer = _BUFFER.fullmatch(right)
    if buffer:
        shape = tuple(_integer(text, part) for part in buffer["shape"].split(","))
        dtypes.itemsize(buffer["dtype"])
        return Argument(name, buffer["dtype"], shape)
    value, colon, kind = right.rpartition(":")
    if not colon:
        raise UsageError(f"--arg {text}: a value needs its type, for example {name}={right}:u32")
    return Argument(name, kind, value=_scalar(text, value, kind))


def _integer(text: str, word: str) -> int:
    try:
        return int(word.strip(), 0)
    except ValueError:
        raise UsageError(f"--arg {text}: {word.strip()!r} is no integer") from None


def _scalar(text: str, value: str, kind: str) -> bytes:
    if kind not in _PACK:
        raise UsageError(f"--arg {text}: {kind!r} cannot be passed by value{nearest(kind, _PACK)}")
    try:
        number: Any = float(value) if kind[0] == "f" else int(value, 0)
        return struct.pack(_PACK[kind], number)
    except (ValueError, struct.error, OverflowError):
        raise UsageError(f"--arg {text}: {value!r} is no {kind}") from None


def _from_file(name: str, dtype: str, path: Path) -> Argument:
    import numpy

    try:
        if path.suffix != ".npy":
            if not dtype:
                raise UsageError(
                    f"{path}: a raw file needs its type",
                    hint=f"for example --arg {name}:f32=@{path}",
                )
            raw = path.read_bytes()
            size = dtypes.itemsize(dtype)
            if not raw or len(raw) % size:
                raise NetraError(f"{len(raw)} bytes are not whole {dtype} elements",
                                 where=str(path))
            return Argument(name, dtype, (len(raw) // size,), data=raw)
        array = numpy.load(path, allow_pickle=False)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        raise NetraError(f"not a usable .npy file: {error}", where=str(path)) from None
    dtype = dtype or _NUMPY_NAMES.get(array.dtype.name, "")
    stored = numpy.dtype(_STORED[dtype]) if dtype in _STORED else None
    expected = stored if stored is not None else dtypes.numpy_dtype(dtype) if dtype else None
    if expected is None or array.dtype != expected:
        raise NetraError(f"the file holds {array.dtype}, not {dtype or 'a known type'}",
                         where=str(path))
    if array.size == 0:
        raise NetraError("the array is empty", where=str(path))
    return Argument(name, dtype, array.shape, data=numpy.ascontiguousarray(array).tobytes())


def save(path: Path, argument: Argument, data: bytes) -> None:
    """Writes .npy with the shape, or the bytes as they are for any other suffix."""
    import numpy

    if path.suffix == ".npy":
        whole = io.BytesIO()
        numpy.save(whole, array(argument, data, stored=True))
        data = whole.getvalue()
    write(path, data)


def write(path: Path, data: bytes) -> None:
    """The file appears whole or not at all; what is no regular file (a pipe) is written to."""
    from netra_catalog.whole_file import write_whole

    try:
        if path.exists() and not path.is_file():
            path.write_bytes(data)
        else:
            write_whole(path, data)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None


def array(argument: Argument, data: bytes, *, stored: bool = False) -> numpy.ndarray[Any, Any]:
    """The bytes as an array; `stored` gives the type that a .npy file can hold."""
    import numpy

    kind = (numpy.dtype(_STORED[argument.dtype]) if stored and argument.dtype in _STORED
            else dtypes.numpy_dtype(argument.dtype))
    return numpy.frombuffer(data, kind).reshape(argument.shape)


def explicit(kernel: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The arguments of a kernel of `inspect` that a caller gives, by name.

    A compiler may leave names out: such an argument goes by its position, from 0.
    """
    wanted = [arg for arg in kernel["args"] if not arg["kind"].startswith("hidden_")]
    return {arg["name"] or str(position): arg for position, arg in enumerate(wanted)}


def lay_out(kernel: dict[str, Any], values: dict[str, bytes], where: str) -> bytes:
    """The kernarg bytes of a kernel of `inspect`, every explicit argument given once."""
    names = explicit(kernel)
    for name in values:
        if name not in names:
            raise UsageError(f"kernel {kernel['name']} has no argument '{name}'"
                             f"{nearest(name, names)}")
    missing = [name for name in names if name not in values]
    if missing:
        raise UsageError(f"no --arg for {', '.join(missing)}", where=where)
    out = bytearray(kernel["kernarg"])
    for name, arg in names.items():
        value = values[name]
        if len(value) != arg["size"]:
            raise UsageError(
                f"argument {name} takes {arg['size']} bytes, the given value has "
                f"{len(value)}", where=where
            )
        out[arg["offset"] : arg["offset"] + arg["size"]] = value
    return bytes(out)
