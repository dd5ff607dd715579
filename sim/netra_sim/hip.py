"""A small ctypes face of a HIP library: what running a kernel from a code object needs."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from netra_catalog.errors import ToolError

_EXTRA_POINTER, _EXTRA_SIZE, _EXTRA_END = 1, 2, 3
_HOST_TO_DEVICE, _DEVICE_TO_HOST = 1, 2


class HipError(Exception):
    """A HIP call failed: `code` and `name` as HIP has them, `detail` from the simulator."""

    def __init__(self, call: str, code: int, name: str, detail: str = "") -> None:
        super().__init__(f"{call}: {name} ({code})" + (f": {detail}" if detail else ""))
        self.call, self.code, self.name, self.detail = call, code, name, detail


class Hip:
    """One opened library and one of its devices.  Pointers and handles are plain integers."""

    def __init__(self, path: Path | str, device: int = 0) -> None:
        try:
            self.library = ctypes.CDLL(str(path))
        except OSError as error:
            raise ToolError(f"the HIP library {path} cannot be opened: {error}") from None
        self.library.hipGetErrorName.restype = ctypes.c_char_p
        self._detail = getattr(self.library, "netraSimLastError", None)
        self._fault = getattr(self.library, "netraSimLastFault", None)
        for text in (self._detail, self._fault):
            if text is not None:
                text.restype = ctypes.c_char_p
        self.call("hipSetDevice", device)

    def call(self, function: str, *args: Any) -> None:
        """Calls by name; anything but hipSuccess raises.  Integers go as 32 bits: wrap others."""
        code = getattr(self.library, function)(*args)
        if code:
            raise HipError(function, code, self.error_name(code), self._text(self._detail))

    def error_name(self, code: int) -> str:
        return str(self.library.hipGetErrorName(code).decode())

    def last_fault(self) -> str:
        """The simulator's words on the last kernel fault; "" on other libraries."""
        return self._text(self._fault)

    def sanitize(self, on: bool = True) -> None:
        """Simulator: later launches are watched by the checks of docs/sanitizer.md."""
        self.call("netraSimSetChecked", ctypes.c_int(on))

    def findings(self) -> list[dict[str, Any]]:
        """What the simulator's checks reported since the last reset."""
        text = ctypes.c_void_p()
        self.call("netraSimFindings", ctypes.byref(text))
        try:
            found = json.loads(ctypes.string_at(text.value or 0))
        finally:
            self.library.netraSimFree(text)
        return list(found)

    @staticmethod
    def _text(function: Any) -> str:
        return str((function() or b"").decode(errors="replace")) if function is not None else ""

    def _handle(self, function: str, *args: Any) -> int:
        """Calls a function whose first argument is where its result goes."""
        out = ctypes.c_void_p()
        self.call(function, ctypes.byref(out), *args)
        return out.value or 0

    def malloc(self, size: int) -> int:
        return self._handle("hipMalloc", ctypes.c_size_t(size))

    def free(self, pointer: int) -> None:
        self.call("hipFree", ctypes.c_void_p(pointer))

    def upload(self, pointer: int, data: bytes) -> None:
        self.call("hipMemcpy", ctypes.c_void_p(pointer), ctypes.c_char_p(data),
                  ctypes.c_size_t(len(data)), _HOST_TO_DEVICE)

    def download(self, pointer: int, size: int) -> bytes:
        data = ctypes.create_string_buffer(size)
        self.call("hipMemcpy", data, ctypes.c_void_p(pointer), ctypes.c_size_t(size),
                  _DEVICE_TO_HOST)
        return data.raw

    def fill(self, pointer: int, byte: int, size: int) -> None:
        self.call("hipMemset", ctypes.c_void_p(pointer), byte, ctypes.c_size_t(size))

    def load_module(self, path: Path | str) -> int:
        return self._handle("hipModuleLoad", str(path).encode())

    def unload_module(self, module: int) -> None:
        self.call("hipModuleUnload", ctypes.c_void_p(module))

    def function(self, module: int, name: str) -> int:
        return self._handle("hipModuleGetFunction", ctypes.c_void_p(module), name.encode())

    def launch(
        self,
        function: int,
        grid: Sequence[int],
        block: Sequence[int],
        kernarg: bytes,
        *,
        lds: int = 0,
        stream: int = 0,
    ) -> None:
        """Launches with the argument bytes as one buffer; `grid` is in workgroups."""
        data = ctypes.create_string_buffer(kernarg, max(1, len(kernarg)))
        size = ctypes.c_size_t(len(kernarg))
        extra = (ctypes.c_void_p * 5)(
            _EXTRA_POINTER, ctypes.addressof(data), _EXTRA_SIZE, ctypes.addressof(size), _EXTRA_END
        )
        dims = [ctypes.c_uint(n) for n in (*grid, *block)]
        self.call("hipModuleLaunchKernel", ctypes.c_void_p(function), *dims, ctypes.c_uint(lds),
                  ctypes.c_void_p(stream), None, extra)

    def synchronize(self) -> None:
        self.call("hipDeviceSynchronize")
