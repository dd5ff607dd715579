"""ctypes face of libnetra_bridge.so (bridges/hip/netra_bridge.h): one Device for each GPU."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import (
    POINTER,
    byref,
    c_char,
    c_char_p,
    c_int,
    c_int32,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
)
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from netra_catalog import paths

from netra_bridge.errors import (
    ArtefactError,
    BridgeError,
    CaptureError,
    LibraryError,
    NetraError,
    UsageError,
)

ABI = 1

# netra_status
ARGUMENT, LIBRARY, DEVICE, FILE, IMAGE, HASH, ARCH, SYMBOL, KERNARG = range(-1, -10, -1)
LAUNCH, CAPTURE, HIP, MEMORY, CATALOG = range(-10, -15, -1)

_ARTEFACT = frozenset((FILE, IMAGE, HASH, ARCH, SYMBOL, KERNARG, CATALOG))
_ENVIRONMENT = frozenset((HIP, MEMORY))

# netra_memory
UNKNOWN, HOST, ON_DEVICE, MANAGED = range(4)

_Triple = c_uint32 * 3


class _DeviceInfo(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("device", c_int32),
        ("simulated", c_int32),
        ("cu_count", c_int32),
        ("warp_size", c_int32),
        ("max_threads", c_int32),
        ("runtime_version", c_int32),
        ("memory_bytes", c_uint64),
        ("lds_bytes", c_uint64),
        ("arch", c_char * 64),
        ("features", c_char * 256),
        ("hip_library", c_char * 1024),
    ]


class _LoadRequest(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("path", c_char_p),
        ("sha256", c_char_p),
        ("arch", c_char_p),
        ("stream", c_void_p),
    ]


class _Argument(ctypes.Structure):
    _fields_ = [("offset", c_uint32), ("size", c_uint32)]


class _PointerInfo(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("memory", c_int32),
        ("device", c_int32),
        ("base", c_uint64),
        ("size", c_uint64),
    ]


@dataclass(frozen=True)
class Pointer:
    """What HIP knows of an address; base and size are 0 when it does not tell."""

    memory: int
    device: int
    base: int
    size: int


def library_path() -> Path:
    return paths.build_dir() / "bridge" / "libnetra_bridge.so"


@cache
def library() -> ctypes.CDLL:
    """libnetra_bridge.so with every function declared."""
    path = library_path()
    try:
        lib = ctypes.CDLL(str(path))
    except OSError as error:
        raise LibraryError(f"cannot load {path}: {error}", hint="type: make bridge") from None
    signatures: dict[str, tuple[object, list[object]]] = {
        "netra_abi": (c_int, []),
        "netra_version": (c_char_p, []),
        "netra_last_error": (c_char_p, []),
        "netra_last_hip_error": (c_int, []),
        "netra_status_name": (c_char_p, [c_int]),
        "netra_open": (c_int, [c_char_p, c_int, POINTER(c_void_p)]),
        "netra_device": (c_int, [c_void_p, POINTER(_DeviceInfo)]),
        "netra_load": (c_int, [c_void_p, POINTER(_LoadRequest), POINTER(c_void_p)]),
        "netra_object_sha256": (c_char_p, [c_void_p]),
        "netra_find_kernel": (
            c_int,
            [c_void_p, c_char_p, c_size_t, POINTER(_Argument), c_size_t, POINTER(c_void_p)],
        ),
        "netra_launch": (
            c_int,
            [c_void_p, _Triple, _Triple, c_uint32, c_char_p, c_size_t, c_void_p],
        ),
        "netra_capture_status": (c_int, [c_void_p, c_void_p, POINTER(c_int)]),
        "netra_pointer": (c_int, [c_void_p, c_void_p, POINTER(_PointerInfo)]),
    }
    for name, (result, arguments) in signatures.items():
        try:
            function = getattr(lib, name)
        except AttributeError:
            raise LibraryError(f"{path} has no {name}", hint="type: make bridge") from None
        function.restype = result
        function.argtypes = arguments
    if lib.netra_abi() != ABI:
        raise LibraryError(
            f"{path} has ABI {lib.netra_abi()}, this package needs {ABI}", hint="type: make bridge"
        )
    return lib


def check(status: int) -> None:
    """Raises what a netra_status means, with the words of netra_last_error."""
    if status == 0:
        return
    lib = library()
    text = (lib.netra_last_error() or b"").decode(errors="replace")
    hip = int(lib.netra_last_hip_error())
    raise _error(status, hip, text)


def _error(status: int, hip: int, text: str) -> NetraError:
    if status in (LIBRARY, DEVICE):
        return LibraryError(text)
    if status == ARGUMENT:
        return UsageError(text)
    if status in _ARTEFACT:
        return ArtefactError(text, status=status, hip=hip)
    if status == CAPTURE:
        return CaptureError(text, status=status, hip=hip)
    return BridgeError(text, status=status, hip=hip)


def environmental(error: BridgeError) -> bool:
    """HIP or the host failed; nothing is wrong with the code object or the call."""
    return error.status in _ENVIRONMENT


class Device:
    """An open device.  Objects and kernels are opaque handles that live as long as it does."""

    def __init__(self, index: int, hip_library: str | None) -> None:
        handle = c_void_p()
        asked = hip_library.encode() if hip_library else None
        check(library().netra_open(asked, index, byref(handle)))
        self._handle = handle
        self._lib = library()
        info = _DeviceInfo(struct_size=ctypes.sizeof(_DeviceInfo))
        check(self._lib.netra_device(handle, byref(info)))
        self.index = index
        self.simulated = bool(info.simulated)
        self.cu_count = int(info.cu_count)
        self.warp_size = int(info.warp_size)
        self.runtime_version = int(info.runtime_version)
        self.memory_bytes = int(info.memory_bytes)
        self.arch = info.arch.decode()
        self.features = info.features.decode()
        self.hip_library = info.hip_library.decode()

    def load(self, path: Path, sha256: str | None, arch: str, stream: int) -> tuple[int, str]:
        """A code object, and the hash of what was loaded."""
        request = _LoadRequest(
            ctypes.sizeof(_LoadRequest),
            str(path).encode(),
            sha256.encode() if sha256 else None,
            arch.encode(),
            stream or None,
        )
        loaded = c_void_p()
        check(self._lib.netra_load(self._handle, byref(request), byref(loaded)))
        return loaded.value or 0, self._lib.netra_object_sha256(loaded).decode()

    def kernel(self, loaded: int, name: str, size: int, args: Sequence[tuple[int, int]]) -> int:
        """A kernel of a loaded object; `args` are (offset, bytes), rising."""
        table = (_Argument * len(args))(*(_Argument(*arg) for arg in args))
        found = c_void_p()
        check(
            self._lib.netra_find_kernel(
                loaded, name.encode(), size, table, len(args), byref(found)
            )
        )
        return found.value or 0

    def launch(
        self,
        kernel: int,
        grid: Sequence[int],
        block: Sequence[int],
        lds: int,
        kernarg: bytes,
        stream: int,
    ) -> None:
        status = self._lib.netra_launch(
            kernel, _Triple(*grid), _Triple(*block), lds, kernarg, len(kernarg), stream or None
        )
        if status:
            check(status)

    def capturing(self, stream: int) -> bool:
        """Whether the stream is being captured; a capture that was voided counts as one."""
        status = c_int()
        check(self._lib.netra_capture_status(self._handle, stream or None, byref(status)))
        return status.value != 0

    def pointer(self, address: int) -> Pointer:
        info = _PointerInfo(struct_size=ctypes.sizeof(_PointerInfo))
        check(self._lib.netra_pointer(self._handle, address or None, byref(info)))
        return Pointer(info.memory, info.device, info.base, info.size)
