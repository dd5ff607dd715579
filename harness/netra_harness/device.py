"""Which device runs a tactic, and the little that a run needs from it."""

from __future__ import annotations

import ctypes.util
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import netra_sim
from netra_catalog import paths

from netra_harness.errors import DeviceError
from netra_harness.hip import Hip, HipError

KINDS = ("auto", "sim", "hip")
_ROCM_LIBRARIES = tuple(f"/opt/rocm/lib/libamdhip64.so{end}" for end in ("", ".7", ".6"))


class Planned(Protocol):
    """A launch with every number in it, as netra_catalog.dispatch.plan makes them."""

    @property
    def kernel(self) -> str: ...
    @property
    def grid(self) -> tuple[int, int, int]: ...
    @property
    def block(self) -> tuple[int, int, int]: ...
    @property
    def lds(self) -> int: ...
    @property
    def kernarg(self) -> bytes: ...


def library(kind: str) -> Path:
    """The HIP library behind `--device sim` or `--device hip`."""
    if kind == "sim":
        return netra_sim.library_path()
    given = os.environ.get("NETRA_HIP_LIBRARY")
    candidates = [given] if given else [*_ROCM_LIBRARIES, ctypes.util.find_library("amdhip64")]
    for candidate in candidates:
        if candidate and (given or "/" not in candidate or Path(candidate).exists()):
            return Path(candidate)
    raise DeviceError(
        "ROCm's libamdhip64.so was not found",
        hint="install ROCm, name the file in NETRA_HIP_LIBRARY, or use --device sim",
    )


def gpu_plausible() -> bool:
    """Cheap: is there a driver node that `auto` should ask for a GPU?"""
    return os.path.exists("/dev/kfd")


def gpu_arches() -> list[str]:
    """Architectures of the GPUs here. It opens the driver: call it in a process that may die."""
    path = library("hip")
    try:
        hip = Hip(path)
        return [] if hip.simulated else [arch for arch, _, _ in hip.devices()]
    except HipError:  # a library and no device
        return []


@dataclass
class Device:
    """One opened device of the wanted architecture, with the modules that were loaded on it."""

    hip: Hip
    kind: str
    arch: str
    index: int
    cu_count: int
    wave_size: int
    stream: int
    _modules: dict[Path, int] = field(default_factory=dict)
    _instead: dict[str, Path] = field(default_factory=dict)

    @classmethod
    def open(cls, kind: str, arch: str) -> Device:
        """Opens `kind` ("sim" or "hip"); the live library says what the device is.

        The simulator presents the devices of NETRA_SIM_DEVICES, which must be set before.
        """
        path = library(kind)
        try:
            hip = Hip(path)
            if kind == "hip" and hip.simulated:
                raise DeviceError(
                    f"{path} is the simulator, not ROCm", hint="use --device sim to run on it"
                )
            devices = hip.devices()
            for index, (found, units, wave) in enumerate(devices):
                if found == arch:
                    hip.set_device(index)
                    return cls(hip, kind, arch, index, units, wave, hip.stream())
        except HipError as error:
            raise DeviceError(f"{path}: {error}") from None
        names = ", ".join(name or "nameless" for name, _, _ in devices) or "no device"
        raise DeviceError(f"{path} has no {arch} device (it has: {names})")

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What the live library says of device and driver, for the record."""
        driver, runtime = self.hip.versions()
        return {
            "kind": self.kind, "arch": self.arch, "name": self.hip.name(self.index),
            "cu_count": self.cu_count, "wave_size": self.wave_size, "driver": driver,
            "runtime": runtime,
        }  # fmt: skip

    @property
    def checks_bounds(self) -> bool:
        """Does it check every access itself?"""
        return self.hip.simulated

    def function(self, kernel: str) -> int:
        """The handle of a kernel, whose code object is loaded on first use."""
        path = self._instead.get(kernel) or code_object(self.arch, kernel)
        if path not in self._modules:
            self._modules[path] = self.hip.load_module(path)
        return self.hip.function(self._modules[path], kernel)

    @contextmanager
    def substituted(self, kernel: str, path: Path) -> Iterator[None]:
        """Within it, this code object stands for the built one of the kernel."""
        self._instead[kernel] = path
        try:
            yield
        finally:
            del self._instead[kernel]
            module = self._modules.pop(path, 0)
            if module:
                self.hip.unload_module(module)

    def launch(self, plan: Planned) -> None:
        """Queues one kernel on the device's stream."""
        function = self.function(plan.kernel)
        self.hip.launch(
            function, plan.grid, plan.block, plan.kernarg, lds=plan.lds, stream=self.stream
        )

    def close(self) -> None:
        """Gives back the modules and the stream; a lost device cannot, and is let go."""
        try:
            for module in self._modules.values():
                self.hip.unload_module(module)
            self.hip.stream_destroy(self.stream)
        except HipError:
            pass
        self._modules.clear()


def code_object(arch: str, kernel: str) -> Path:
    """The built code object, or the error that says how to build it."""
    path = paths.code_object(arch, kernel)
    if not path.is_file():
        raise DeviceError(f"{path} is not built", hint=f"run `make {arch}`")
    return path
