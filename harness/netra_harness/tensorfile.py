"""safetensors files by their raw bytes: 8 bytes of header length, JSON, data.

safetensors' own NumPy loader does not know BF16 and FP8; the format is simple enough to read
here, and every length is checked against the file before anything is believed.
"""

from __future__ import annotations

import json
import math
import os
import struct
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from netra_catalog.dtypes import numpy_dtype
from numpy.typing import NDArray

from netra_harness.errors import CaptureError

Array = NDArray[Any]

# Our name -> the name in the file.
NAMES = {
    "f64": "F64", "f32": "F32", "f16": "F16", "bf16": "BF16",
    "f8e4m3fn": "F8_E4M3", "f8e4m3fnuz": "F8_E4M3FNUZ", "f8e5m2": "F8_E5M2", "e8m0": "F8_E8M0",
    "i64": "I64", "i32": "I32", "i16": "I16", "i8": "I8",
    "u64": "U64", "u32": "U32", "u16": "U16", "u8": "U8", "bool": "BOOL",
}  # fmt: skip
_OURS = {theirs: ours for ours, theirs in NAMES.items()}
_BY_NUMPY = {numpy_dtype(ours): ours for ours in NAMES}


def dtype_name(dtype: np.dtype[Any]) -> str:
    """Our name of a NumPy type: f32, bf16, f8e4m3fn."""
    try:
        return _BY_NUMPY[dtype.newbyteorder("=")]
    except KeyError:
        raise ValueError(f"dtype {dtype} has no name here") from None


def write(path: Path, arrays: Mapping[str, Array], metadata: Mapping[str, str]) -> None:
    """Writes whole or not at all; the same content gives the same bytes."""
    header: dict[str, Any] = {"__metadata__": dict(sorted(metadata.items()))}
    parts: list[bytes] = []
    end = 0
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        data = array.tobytes()
        header[name] = {
            "dtype": NAMES[dtype_name(array.dtype)],
            "shape": list(arrays[name].shape),
            "data_offsets": [end, end + len(data)],
        }
        parts.append(data)
        end += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text + b"".join(parts))
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def read(path: Path) -> tuple[dict[str, Array], dict[str, str]]:
    """All arrays and the metadata; CaptureError says what is wrong with the file."""

    def wrong(what: str) -> CaptureError:
        return CaptureError(f"{path} is no safetensors file: {what}")

    try:
        raw = path.read_bytes()
    except OSError as error:
        raise CaptureError(f"{path} cannot be read: {error.strerror}") from None
    if len(raw) < 8:
        raise wrong(f"{len(raw)} bytes, and the length of the header alone takes 8")
    (length,) = struct.unpack("<Q", raw[:8])
    if length > len(raw) - 8:
        raise wrong(f"a header of {length} bytes in a file of {len(raw)}")
    try:
        header = json.loads(raw[8 : 8 + length])
        metadata = {str(k): str(v) for k, v in header.pop("__metadata__", {}).items()}
        entries = [
            (str(name), str(e["dtype"]), [int(n) for n in e["shape"]], e["data_offsets"])
            for name, e in header.items()
        ]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise wrong(f"the header does not parse ({error})") from None
    data = memoryview(raw)[8 + length :]
    arrays: dict[str, Array] = {}
    covered = 0
    for name, theirs, shape, offsets in sorted(entries, key=lambda entry: str(entry[3])):
        if theirs not in _OURS:
            raise wrong(f"{name} has the unknown dtype {theirs}")
        dtype = numpy_dtype(_OURS[theirs])
        size = math.prod(shape) * dtype.itemsize
        if (
            len(offsets) != 2
            or not all(isinstance(offset, int) for offset in offsets)
            or min(shape, default=0) < 0
            or not 0 <= offsets[0] <= offsets[1] <= len(data)
            or offsets[1] - offsets[0] != size
        ):
            raise wrong(f"{name} is {theirs}{shape} at {offsets} in {len(data)} bytes of data")
        covered += size
        arrays[name] = np.frombuffer(data[offsets[0] : offsets[1]], dtype).reshape(shape)
    if covered != len(data):
        raise wrong(f"its arrays cover {covered} of {len(data)} bytes of data")
    return arrays, metadata
