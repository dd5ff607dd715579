"""One kernel on the simulator, in a worker process that serves both targets."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import netra_sim
from netra_catalog.paths import ARCHES
from netra_sim import sanitizer
from netra_sim.hip import Hip, HipError

STARTED, EXITED, ABORTED = 1, 2, 3  # enum state of runtime/result.h
RESULT = struct.Struct("<4I")
ENTRY = "entry"
ABORT = "abort()"  # the failure of a program that found itself wrong
_GUARD = 256  # bytes behind the output that must stay as they were
_FILL = 0xA5


def environment(llvm: Path, seconds: float, check: bool = False) -> dict[str, str]:
    """What a worker must be started with: both devices, the toolchain, the limit of a launch."""
    return {
        "NETRA_SIM_DEVICES": ",".join(ARCHES),
        "NETRA_LLVM_BIN": str(llvm),
        "NETRA_SIM_SECONDS": str(max(1, round(seconds))),
        "NETRA_SIM_CHECK": str(int(check)),
    }


@dataclass(frozen=True)
class Launched:
    """`fault` is empty when the kernel ended; `output` is then what it wrote."""

    output: bytes
    fault: str = ""
    instructions: int = 0


@cache
def _hip(arch: str) -> Hip:
    return Hip(netra_sim.library_path(), ARCHES.index(arch))


class Module:
    """A loaded code object; its kernels take one pointer, to the output buffer."""

    def __init__(self, path: Path, arch: str) -> None:
        self._hip = _hip(arch)
        self._device = ARCHES.index(arch)
        self._hip.call("hipSetDevice", self._device)
        self._module = self._hip.load_module(path)

    def __enter__(self) -> Module:
        return self

    def __exit__(self, *_: object) -> None:
        self.unload()

    def unload(self) -> None:
        self._hip.unload_module(self._module)

    def launch(
        self, kernel: str, size: int, block: Sequence[int] = (1, 1, 1), fill: int = 0
    ) -> Launched:
        """One workgroup.  A fault is part of the answer and leaves the device usable."""
        hip = self._hip
        hip.call("hipSetDevice", self._device)
        function = hip.function(self._module, kernel)
        pointer = hip.malloc(size + _GUARD)
        try:
            hip.fill(pointer, fill, size)
            hip.fill(pointer + size, _FILL, _GUARD)
            hip.launch(function, (1, 1, 1), block, struct.pack("<Q", pointer))
            hip.synchronize()
            found = sanitizer.errors(netra_sim.findings())
            if found:
                netra_sim.reset()
                return Launched(b"", "\n".join(sanitizer.text(one) for one in found))
            data = hip.download(pointer, size + _GUARD)
        except HipError as error:
            fault = netra_sim.last_fault() or str(error)
            found = sanitizer.errors(netra_sim.findings())
            fault = "\n".join([*(sanitizer.text(one) for one in found), fault])
            netra_sim.reset()
            return Launched(b"", fault)
        finally:
            hip.free(pointer)
        if data[size:] != bytes([_FILL]) * _GUARD:
            return Launched(data[:size], "wrote past the end of its output buffer")
        return Launched(data[:size], "", netra_sim.counters().get("instructions", 0))


@dataclass(frozen=True)
class Ended:
    """How a C program ended: `failure` is empty after exit(0)."""

    failure: str
    checksum: int = 0
    instructions: int = 0

    def answer(self) -> dict[str, Any]:
        """What the worker hands back: None for a pass."""
        return {"failure": self.failure or None, "instructions": self.instructions}


def run_program(path: Path, arch: str) -> Ended:
    """Runs the kernel of runtime/libc.c, which runs the program's main()."""
    with Module(path, arch) as module:
        launched = module.launch(ENTRY, RESULT.size)
    if launched.fault:
        return Ended(launched.fault)
    state, code, checksum, _ = RESULT.unpack(launched.output)
    count = launched.instructions
    if state == EXITED:
        return Ended(f"exit code {code}" if code else "", checksum, count)
    if state == ABORTED:
        return Ended(ABORT, checksum, count)
    return Ended(f"the kernel ended in state {state} without exit() or abort()", checksum, count)
