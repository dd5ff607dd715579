"""What one process holds: open devices, loaded kernels, workspaces.

A device is opened at its first use. What was loaded stays loaded, and a workspace stays allocated,
until the process ends: a graph may hold either, and nothing tells when the last graph is gone.
"""

from __future__ import annotations

import fnmatch
import logging
import os
import sys
import threading
from dataclasses import dataclass
from functools import cache
from typing import Any

import netra_catalog
from netra_catalog import paths
from netra_catalog.dispatch import LaunchPlan, barred
from netra_catalog.tactic import Tactic

from netra_bridge.errors import BridgeError, LibraryError, UsageError
from netra_bridge.hip import Memory
from netra_bridge.library import Device, environmental
from netra_bridge.manifest import Manifest

log = logging.getLogger("netra_bridge")
lock = threading.RLock()  # opening, loading and allocating; never taken by a prepared dispatch


@dataclass(frozen=True)
class Workspace:
    ptr: int
    size: int


class DeviceState:
    """One device with everything that was prepared on it."""

    def __init__(self, index: int, hip_library: str | None) -> None:
        self.device = Device(index, hip_library)
        self.memory = Memory(self.device)
        self.objects: dict[str, int] = {}  # kernel -> loaded code object
        self.kernels: dict[str, tuple[int, ...]] = {}  # tactic -> a handle for each launch
        self.workspaces: dict[tuple[str, int], Workspace] = {}  # (tactic, stream)
        self.disabled: dict[str, str] = {}  # tactic -> why
        self._candidates: dict[str, tuple[list[Tactic], dict[str, str]]] = {}

    def candidates(self, op: str) -> tuple[list[Tactic], dict[str, str]]:
        """The op's tactics for this target that may run here, and why the others may not."""
        found = self._candidates.get(op)
        if found is None:
            mine = [t for t in catalog() if t.op == op and t.arch == self.device.arch]
            reasons = {t.id: self._barred(t) for t in mine}
            found = (
                [t for t in mine if not reasons[t.id]],
                {name: reason for name, reason in reasons.items() if reason},
            )
            self._candidates[op] = found
        return found

    def _barred(self, tactic: Tactic) -> str:
        if names(tactic, os.environ.get("NETRA_DISABLE", "")):
            return "NETRA_DISABLE names it"
        return barred(tactic, simulated=self.device.simulated)

    def ready(self, tactic: Tactic, stream: int, size: int) -> Workspace | None:
        """The workspace to use, when everything is prepared; None when something is missing."""
        if tactic.id not in self.kernels:
            return None
        if size == 0:
            return Workspace(0, 0)
        workspace = self.workspaces.get((tactic.id, stream))
        return workspace if workspace is not None and workspace.size >= size else None

    def load(self, tactic: Tactic, stream: int) -> None:
        """Loads what the tactic launches.  Mismatches raise; the stream must not be capturing."""
        if tactic.id in self.kernels:
            return
        handles = []
        for launch in tactic.launches:
            loaded = self._object(launch.kernel, stream)
            table = sorted((arg.offset, arg.size) for arg in launch.args)
            handles.append(
                self.device.kernel(loaded, launch.kernel, launch.kernarg_size, table)
            )
        self.kernels[tactic.id] = tuple(handles)

    def _object(self, kernel: str, stream: int) -> int:
        if kernel not in self.objects:
            arch = self.device.arch
            expected = manifest().expected(arch, kernel)
            path = paths.code_object(arch, kernel)
            self.objects[kernel], sha256 = self.device.load(path, expected, arch, stream)
            manifest().loaded(arch, kernel, sha256)
        return self.objects[kernel]

    def reserve(self, tactic: Tactic, stream: int, size: int, exact: bool) -> None:
        """Makes sure of a workspace of at least `size` bytes for this tactic and stream.

        An outgrown one is kept, since a graph may use it. Unless the caller named its largest call
        (`exact`), sizes are powers of two, so that all of them together are less than twice the
        last."""
        if size == 0 or self.ready(tactic, stream, size) is not None:
            return
        zeroed_by = tactic.workspace.zeroed_by
        if zeroed_by == "caller":
            raise UsageError(
                f"{tactic.id}: its workspace is zeroed by the caller before each call, which the "
                "Python face cannot do; use the C ABI"
            )
        total = size if exact else 1 << (size - 1).bit_length()
        pointer = self.memory.allocate(total)
        if zeroed_by == "prepare":
            self.memory.fill(pointer, 0, total)
            self.memory.synchronize(None)
        self.workspaces[tactic.id, stream] = Workspace(pointer, total)

    def prepare(self, tactic: Tactic, stream: int, size: int, exact: bool) -> str:
        """Loads and reserves.  "" or, when HIP or the host failed, why the tactic is disabled."""
        with lock:
            if tactic.id in self.disabled:
                return self.disabled[tactic.id]
            try:
                self.load(tactic, stream)
                self.reserve(tactic, stream, size, exact)
            except BridgeError as error:
                if not environmental(error):
                    raise
                self.disabled[tactic.id] = error.message
                log.warning("%s is disabled in this process: %s", tactic.id, error.message)
                return error.message
        return ""

    def launch(self, tactic: Tactic, plans: tuple[LaunchPlan, ...], stream: int) -> None:
        for handle, plan in zip(self.kernels[tactic.id], plans, strict=True):
            self.device.launch(handle, plan.grid, plan.block, plan.lds, plan.kernarg, stream)


def names(tactic: Tactic, patterns: str) -> bool:
    """Whether one of the patterns (separated by spaces or commas) selects the tactic."""
    return any(
        fnmatch.fnmatchcase(tactic.id if "/" in pattern else tactic.stem, pattern)
        for pattern in patterns.replace(",", " ").split()
    )


@cache
def catalog() -> tuple[Tactic, ...]:
    """Every tactic of the catalog, read once per process."""
    return tuple(netra_catalog.load())


@cache
def manifest() -> Manifest:
    return Manifest(paths.build_dir() / "objects.json")


_library: str | None = None
_states: dict[int, DeviceState] = {}


def use(library: str | os.PathLike[str] | None) -> None:
    """Names the HIP library: "sim" for the simulator, a path, or None for the one of the process
    (see netra_open).  Comes before anything that opens a device."""
    global _library
    wanted = None if library is None else os.fspath(library)
    if wanted == "sim":
        import netra_sim

        wanted = str(netra_sim.library_path())
    with lock:
        if _states and wanted is not None:
            bound = next(iter(_states.values())).device.hip_library
            if os.path.realpath(bound) != os.path.realpath(wanted):
                raise LibraryError(
                    f"this process uses {bound} already; it cannot change to {wanted}",
                    hint="call netra_bridge.use() before anything else",
                )
        _library = wanted


def state(index: int) -> DeviceState:
    """The device, opened at its first use."""
    found = _states.get(index)
    if found is None:
        with lock:
            found = _states.get(index)
            if found is None:
                found = _states[index] = DeviceState(index, _library)
    return found


def opened() -> list[DeviceState]:
    return list(_states.values())


def stream_handle(stream: object, device: int) -> int:
    """The hipStream_t behind what the caller passed: a number, a torch stream, an object with
    `ptr`; None is torch's current stream when torch uses the GPU, else the null stream."""
    if stream is None:
        torch: Any = sys.modules.get("torch")
        version = getattr(torch, "version", None)  # both are absent while torch is being imported
        cuda = getattr(torch, "cuda", None)
        if cuda is not None and getattr(version, "hip", None) and cuda.is_initialized():
            return int(cuda.current_stream(device).cuda_stream)
        return 0
    if isinstance(stream, int):
        return stream
    for attribute in ("cuda_stream", "ptr", "value"):
        if hasattr(stream, attribute):
            return int(getattr(stream, attribute) or 0)
    raise UsageError(f"stream is a {type(stream).__name__}, no HIP stream")


