"""Device memory through the HIP library that the bridge has bound: allocate, copy, wait."""

from __future__ import annotations

import ctypes
import threading
import weakref
from ctypes import byref, c_char_p, c_int, c_size_t, c_void_p

from netra_bridge.errors import BridgeError
from netra_bridge.library import HIP, Device

TO_DEVICE, TO_HOST = 1, 2
_FAULTS = frozenset((700, 719))


class Memory:
    """Allocations on one device.  Each call makes the device current and puts the old one back."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._lib = ctypes.CDLL(device.hip_library)  # mapped already: the same library
        self._lib.hipGetErrorName.restype = c_char_p
        self._lib.hipGetErrorString.restype = c_char_p
        self._garbage: list[int] = []
        self._lock = threading.Lock()

    def allocate(self, size: int) -> int:
        """Not legal while any stream is being captured.  Size 0 gives an address, too."""
        self.collect()
        pointer = c_void_p()
        self._call("hipMalloc", byref(pointer), c_size_t(max(size, 1)))
        return pointer.value or 0

    def allocate_for(self, owner: object, size: int) -> int:
        """Memory that is released some time after `owner` is gone."""
        pointer = self.allocate(size)
        weakref.finalize(owner, self._discard, pointer).atexit = False
        return pointer

    def _discard(self, pointer: int) -> None:
        # hipFree would void a capture that happens to be going on; the next allocation, which is
        # not legal then either, releases what has gathered.
        self._garbage.append(pointer)

    def collect(self) -> None:
        """Releases what `allocate_for` owned and nobody uses any more."""
        with self._lock:
            garbage, self._garbage = self._garbage, []
        for pointer in garbage:
            self._call("hipFree", c_void_p(pointer))

    def fill(self, pointer: int, byte: int, size: int) -> None:
        self._call("hipMemset", c_void_p(pointer), c_int(byte), c_size_t(size))

    def copy(self, target: int, source: int, size: int, direction: int) -> None:
        if size:
            self._call(
                "hipMemcpy", c_void_p(target), c_void_p(source), c_size_t(size), c_int(direction)
            )

    def synchronize(self, stream: int | None) -> None:
        """Waits for one stream, or for the whole device."""
        if stream is None:
            self._call("hipDeviceSynchronize")
        else:
            self._call("hipStreamSynchronize", c_void_p(stream))

    def _call(self, name: str, *arguments: object) -> None:
        before = c_int()
        self._check("hipGetDevice", self._lib.hipGetDevice(byref(before)))
        other = before.value != self._device.index
        if other:
            self._check("hipSetDevice", self._lib.hipSetDevice(self._device.index))
        try:
            self._check(name, getattr(self._lib, name)(*arguments))
        finally:
            if other:
                self._lib.hipSetDevice(before.value)

    def _check(self, name: str, code: int) -> None:
        if code == 0:
            return
        self._lib.hipGetLastError()
        label = (self._lib.hipGetErrorName(code) or b"?").decode()
        text = (self._lib.hipGetErrorString(code) or b"").decode()
        fault = self._fault() if code in _FAULTS else ""
        raise BridgeError(
            f"{name} failed with {label} ({code}): {text}", status=HIP, hip=code, hint=fault
        )

    def _fault(self) -> str:
        """What the simulator says about a kernel that faulted."""
        if not self._device.simulated:
            return ""
        function = self._lib.netraSimLastFault
        function.restype = c_char_p
        return (function() or b"").decode()
