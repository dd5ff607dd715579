"""The HIP functions that the harness calls, of whichever library it was given.

netra_sim.hip has what launching takes; here are devices, streams, graphs, and copies from
arrays where they lie.
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any

from netra_sim.hip import Hip as Launching
from netra_sim.hip import HipError

__all__ = ["Hip", "HipError"]

_HOST_TO_DEVICE, _DEVICE_TO_HOST = 1, 2
_NON_BLOCKING = 1
_CAPTURE_THREAD_LOCAL = 1

# hipDeviceProp_tR0600: its size, and where the three fields lie that are read here.
_PROPERTIES_BYTES = 1472
_WARP_SIZE, _MULTIPROCESSORS, _ARCH_NAME = 308, 388, 1160


class Hip(Launching):
    """One opened library. Methods raise HipError; pointers and handles are plain integers."""

    def devices(self) -> list[tuple[str, int, int]]:
        """(architecture, compute units, wave size) of each device, as the library says."""
        count = c_int()
        self.call("hipGetDeviceCount", byref(count))
        found = []
        for index in range(count.value):
            raw = ctypes.create_string_buffer(_PROPERTIES_BYTES)
            self.call("hipGetDevicePropertiesR0600", raw, index)
            arch = raw.raw[_ARCH_NAME:].split(b"\0", 1)[0].decode().split(":")[0]
            units = c_int.from_buffer(raw, _MULTIPROCESSORS).value
            found.append((arch, units, c_int.from_buffer(raw, _WARP_SIZE).value))
        return found

    def name(self, index: int) -> str:
        """The product name of a device, as the driver has it."""
        raw = ctypes.create_string_buffer(_PROPERTIES_BYTES)
        self.call("hipGetDevicePropertiesR0600", raw, index)
        return raw.value.decode(errors="replace")

    def versions(self) -> tuple[int, int]:
        """(driver, runtime), as HIP numbers them."""
        driver, runtime = c_int(), c_int()
        self.call("hipDriverGetVersion", byref(driver))
        self.call("hipRuntimeGetVersion", byref(runtime))
        return driver.value, runtime.value

    def set_device(self, index: int) -> None:
        self.call("hipSetDevice", index)

    def copy_in(self, pointer: int, host: int, size: int) -> None:
        """Copies from a host address to the device."""
        self.call("hipMemcpy", c_void_p(pointer), c_void_p(host), c_size_t(size), _HOST_TO_DEVICE)

    def copy_out(self, host: int, pointer: int, size: int) -> None:
        """Copies from the device to a host address."""
        self.call("hipMemcpy", c_void_p(host), c_void_p(pointer), c_size_t(size), _DEVICE_TO_HOST)

    def fill(self, pointer: int, byte: int, size: int) -> None:
        """Sets every byte, and waits until that is done."""
        super().fill(pointer, byte, size)
        self.synchronize()

    def undefine(self, pointer: int, size: int) -> None:
        """Simulator: a watched kernel may not use these bytes before it has written them."""
        if self.simulated and size:
            self.call("netraSimUndefine", c_void_p(pointer), c_size_t(size))

    def stream(self) -> int:
        """A stream of its own: a kernel must not need the default one."""
        return self._handle("hipStreamCreateWithFlags", c_uint(_NON_BLOCKING))

    def stream_destroy(self, stream: int) -> None:
        self.call("hipStreamDestroy", c_void_p(stream))

    def stream_synchronize(self, stream: int) -> None:
        self.call("hipStreamSynchronize", c_void_p(stream))

    def event(self) -> int:
        return self._handle("hipEventCreate")

    def event_record(self, event: int, stream: int) -> None:
        self.call("hipEventRecord", c_void_p(event), c_void_p(stream))

    def event_destroy(self, event: int) -> None:
        self.call("hipEventDestroy", c_void_p(event))

    def seconds_between(self, start: int, end: int) -> float:
        """Device time between two recorded events; waits for the second."""
        self.call("hipEventSynchronize", c_void_p(end))
        milliseconds = c_float()
        self.call("hipEventElapsedTime", byref(milliseconds), c_void_p(start), c_void_p(end))
        return milliseconds.value / 1e3

    def begin_capture(self, stream: int) -> None:
        self.call("hipStreamBeginCapture", c_void_p(stream), c_int(_CAPTURE_THREAD_LOCAL))

    def end_capture(self, stream: int) -> int:
        graph = c_void_p()
        self.call("hipStreamEndCapture", c_void_p(stream), byref(graph))
        return graph.value or 0

    def instantiate(self, graph: int) -> int:
        return self._handle("hipGraphInstantiate", c_void_p(graph), None, None, c_size_t(0))

    def graph_launch(self, executable: int, stream: int) -> None:
        self.call("hipGraphLaunch", c_void_p(executable), c_void_p(stream))

    def graph_destroy(self, graph: int, executable: int) -> None:
        """Either may be 0: it was never made."""
        if executable:
            self.call("hipGraphExecDestroy", c_void_p(executable))
        if graph:
            self.call("hipGraphDestroy", c_void_p(graph))

    @property
    def simulated(self) -> bool:
        return hasattr(self.library, "netraSimLastFault")

    def recover(self) -> bool:
        """After a kernel's fault: can this process go on?  On a GPU it cannot."""
        if self.simulated:
            self.call("netraSimReset")
        return self.simulated

    def watch(self, on: bool) -> None:
        """Simulator: the sanitizer watches later launches, or does not; it forgets what was."""
        if self.simulated:
            self.call("netraSimReset")
            self.sanitize(on)

    def watched(self) -> list[dict[str, Any]]:
        """Simulator: what the sanitizer found since it was asked last."""
        if not self.simulated:
            return []
        found = self.findings()
        self.call("netraSimForgetFindings")
        return found

    def schedule(self, seed: int) -> None:
        """Simulator: waves and workgroups in the order of this seed from now on."""
        if self.simulated:
            self.call("netraSimSetSeed", c_uint64(seed), c_int(1))
