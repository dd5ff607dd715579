"""Records the tensors of a call in a running Python service, as they are.

A service is not an oracle's case: its tensors are views with strides and offsets, of types whose
flavour matters, with whatever sentinels it uses. All of that is kept.
"""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from netra_catalog.dtypes import numpy_dtype
from numpy.typing import NDArray

from netra_harness import tensorfile
from netra_harness.errors import CaptureError

Array = NDArray[Any]

KEY, SUM, FORMAT = "netra_callsite", "netra_sha256", 1

# PyTorch's name of a type -> ours, and the NumPy type that carries its bytes.
_TORCH = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16",
    "float8_e4m3fn": "f8e4m3fn", "float8_e4m3fnuz": "f8e4m3fnuz", "float8_e5m2": "f8e5m2",
    "float8_e8m0fnu": "e8m0", "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8",
    "uint64": "u64", "uint32": "u32", "uint16": "u16", "uint8": "u8", "bool": "bool",
}  # fmt: skip


@dataclass
class Call:
    """The tensors and numbers of one call, copied when they are named."""

    op: str
    tensors: dict[str, Array] = field(default_factory=dict)  # the whole span, first to last
    forms: dict[str, dict[str, Any]] = field(default_factory=dict)
    scalars: dict[str, int | float | str | bool] = field(default_factory=dict)

    def inputs(self, **values: Any) -> None:
        """What goes in; call it before the call, since many write in place."""
        self._take("in", values)

    def outputs(self, **values: Any) -> None:
        """What came out; tensors only."""
        self._take("out", values)

    def _take(self, side: str, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            key = f"{side}/{name}"
            if key in self.tensors or key in self.scalars:
                raise CaptureError(f"{name} is recorded twice as {side}put of {self.op}")
            if isinstance(value, (bool, int, float, str)):
                self.scalars[key] = value
                continue
            span, form = _span(name, value)
            self.tensors[key] = span
            self.forms[key] = form


@dataclass(frozen=True)
class Recorded:
    """A call read back; `tensors` are views with the strides that were recorded, in elements."""

    op: str
    tensors: Mapping[str, Array]
    forms: Mapping[str, Mapping[str, Any]]
    scalars: Mapping[str, int | float | str | bool]
    provenance: Mapping[str, str]


@contextmanager
def record(path: str | Path, op: str) -> Iterator[Call]:
    """Stores the call at the end of the block, whole or not at all; nothing after an exception.

    Raises CaptureError when nothing was recorded or a value is neither tensor nor number.
    """
    call = Call(op)
    yield call
    if not call.tensors:
        raise CaptureError(f"no tensor of {op} was recorded", hint="call.inputs(x=...)")
    form = {
        "format": FORMAT, "op": op, "tensors": call.forms, "scalars": call.scalars,
        "provenance": _provenance(),
    }  # fmt: skip
    text = json.dumps(form, separators=(",", ":"), sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()
    tensorfile.write(Path(path), call.tensors, {KEY: text, SUM: digest})


def load(path: str | Path) -> Recorded:
    """Reads a recorded call; CaptureError for a file that is damaged or something else."""
    spans, metadata = tensorfile.read(Path(path))
    if KEY not in metadata:
        raise CaptureError(f"{path} is no recorded call")
    if hashlib.sha256(metadata[KEY].encode()).hexdigest() != metadata.get(SUM):
        raise CaptureError(f"{path}: the metadata was changed after it was made")
    form = json.loads(metadata[KEY])
    if form["format"] != FORMAT:
        raise CaptureError(f"{path}: format {form['format']}, want {FORMAT}")
    if set(form["tensors"]) != set(spans):
        raise CaptureError(f"{path}: lists {sorted(form['tensors'])}, holds {sorted(spans)}")
    tensors = {}
    for key, one in form["tensors"].items():
        if _digest(spans[key]) != one["sha256"]:
            raise CaptureError(f"{path}: {key} does not have the SHA-256 that the file states")
        strides = [n * spans[key].itemsize for n in one["strides"]]
        tensors[key] = np.lib.stride_tricks.as_strided(
            spans[key], one["shape"], strides, writeable=False
        )
    return Recorded(form["op"], tensors, form["tensors"], form["scalars"], form["provenance"])


def _span(name: str, value: Any) -> tuple[Array, dict[str, Any]]:
    """The memory from a tensor's first element to its last, and how its elements lie there."""
    if isinstance(value, np.ndarray):
        shape, kind, device = value.shape, tensorfile.dtype_name(value.dtype), "cpu"
        strides = [s // value.itemsize for s in value.strides]
        offset, flavour = 0, str(value.dtype)
    elif "torch" in sys.modules and isinstance(value, sys.modules["torch"].Tensor):
        shape, strides = tuple(value.shape), list(value.stride())
        flavour, device = str(value.dtype), str(value.device)
        offset = int(value.storage_offset())
        try:
            kind = _TORCH[flavour.removeprefix("torch.")]
        except KeyError:
            raise CaptureError(f"{name} has the type {flavour}, which has no name here") from None
    else:
        raise CaptureError(f"{name} is {type(value).__name__}: neither tensor nor number")
    if any(s < 0 for s in strides):
        raise CaptureError(f"{name} has negative strides {strides}")
    count = 0
    if 0 not in shape:
        count = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    if isinstance(value, np.ndarray):
        span = np.lib.stride_tricks.as_strided(value, (count,), (value.itemsize,)).copy()
    else:
        span = _torch_bytes(value, count).view(numpy_dtype(kind))
    form = {
        "dtype": kind, "flavour": flavour, "shape": list(shape), "strides": strides,
        "storage_offset": offset, "device": device, "sha256": _digest(span),
    }  # fmt: skip
    return span, form


def _torch_bytes(value: Any, count: int) -> NDArray[np.uint8]:
    """Copies through a byte view: NumPy knows neither BF16 nor FP8."""
    torch = sys.modules["torch"]
    flat = value.detach().as_strided((count,), (1,))
    return np.asarray(flat.view(torch.uint8).cpu().numpy().copy())


def _digest(span: Array) -> str:
    return hashlib.sha256(span.view(np.uint8).tobytes()).hexdigest()


def _provenance() -> dict[str, str]:
    out = {"python": platform.python_version(), "machine": platform.machine()}
    for package in ("torch", "triton", "sglang", "vllm", "aiter"):
        version = getattr(sys.modules.get(package), "__version__", None)
        if version is not None:
            out[package] = str(version)
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        out["gpu"] = torch.cuda.get_device_name()
    return out
