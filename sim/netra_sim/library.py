"""The extra functions of the simulator's library (netraSim*), as Python."""

from __future__ import annotations

import ctypes
import json
import os
from functools import cache
from pathlib import Path
from typing import Any

from netra_catalog import paths
from netra_catalog.errors import NetraError, ToolError

_NAME = "libamdhip64.so.7"


class CodeObjectError(NetraError):
    """A file is no code object that a device could run; `code` is the HIP error for it."""

    def __init__(self, message: str, *, where: str, code: int) -> None:
        super().__init__(message, where=where)
        self.code = code


def library_path() -> Path:
    """The simulator's library: $NETRA_SIM_LIBRARY, else build/sim/libamdhip64.so.7."""
    given = os.environ.get("NETRA_SIM_LIBRARY")
    path = Path(given) if given else paths.build_dir() / "sim" / _NAME
    if not path.is_file():
        hint = "NETRA_SIM_LIBRARY names no file" if given else "type: make sim"
        raise ToolError(f"the simulator {path} is missing", hint=hint)
    return path


@cache
def load() -> ctypes.CDLL:
    """Opens the library once per process and declares what this module calls."""
    path = library_path()
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise ToolError(f"the simulator {path} cannot be opened: {error}") from None
    text_out = ctypes.POINTER(ctypes.c_void_p)
    try:
        library.netraSimInspect.argtypes = [ctypes.c_char_p, ctypes.c_size_t, text_out]
        library.netraSimLint.argtypes = [ctypes.c_char_p, ctypes.c_size_t, text_out]
        library.netraSimCounters.argtypes = [text_out]
        library.netraSimFindings.argtypes = [text_out]
        library.netraSimRows.argtypes = [text_out]
        library.netraSimFree.argtypes = [ctypes.c_void_p]
        library.netraSimFree.restype = None
        library.netraSimLastFault.argtypes = []
        library.netraSimLastFault.restype = ctypes.c_char_p
        library.netraSimLastError.argtypes = []
        library.netraSimLastError.restype = ctypes.c_char_p
        library.netraSimSemantics.argtypes = []
        library.netraSimSemantics.restype = ctypes.c_char_p
        library.netraSimReset.argtypes = []
        library.netraSimSetChecked.argtypes = [ctypes.c_int]
        library.netraSimSetCounting.argtypes = [ctypes.c_int]
        library.netraSimSetTrace.argtypes = [ctypes.c_uint64]
        library.netraSimTrace.argtypes = [text_out]
        library.netraSimSetSeed.argtypes = [ctypes.c_uint64, ctypes.c_int]
    except AttributeError:
        raise ToolError(f"{path} is no simulator of Netra's (ROCm's library?)") from None
    return library


def _text(pointer: ctypes.c_void_p) -> bytes:
    """Takes over a text that the library allocated."""
    try:
        return ctypes.string_at(pointer.value) if pointer.value else b""
    finally:
        load().netraSimFree(pointer)


def _document(pointer: ctypes.c_void_p) -> Any:
    """The same, of a JSON text; None when there is none."""
    return json.loads(_text(pointer) or b"null")


def inspect(path: Path | str | os.PathLike[str]) -> dict[str, Any]:
    """What a code object holds.

    Keys: file, arch, code_object_version, co_sha256, kernels.  Of a kernel: name; vgpr, agpr and
    sgpr, each {used, declared, allocated} (used by the code, declared in the metadata, allocated
    by the descriptor; None where unknown: gfx1151 encodes no SGPR count, and without llvm-objdump
    `used` is None and `used_error` says why); lds, scratch, kernarg in bytes; args, a list of
    {name, kind, offset, size}; wave_size; max_workgroup; waves_per_simd; dynamic_stack;
    code_bytes; has_metadata; kernel_sha256.

    Raises CodeObjectError for a file that is damaged or for another machine.
    """
    return inspect_bytes(_image(path), str(path))


def _image(path: Path | str | os.PathLike[str]) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise CodeObjectError(
            f"the file cannot be read: {error.strerror}", where=str(path), code=301
        ) from None


def lint(path: Path, name: str = "") -> dict[str, Any]:
    """{file, arch, findings}: what is wrong with a code object that shows without running it.

    The findings have the keys of docs/sanitizer.md.  Raises CodeObjectError like `inspect`, and
    when the code cannot be disassembled.
    """
    name = name or str(path)
    image = _image(path)
    pointer = ctypes.c_void_p()
    code = load().netraSimLint(image, len(image), ctypes.byref(pointer))
    document = _document(pointer)
    if code:
        text = (document or {}).get("error", "the library gave no reason")
        raise CodeObjectError(text, where=name, code=code)
    return {"file": name, **document}


def inspect_bytes(image: bytes, name: str) -> dict[str, Any]:
    """`inspect` of an image in memory; `name` is for messages."""
    pointer = ctypes.c_void_p()
    code = load().netraSimInspect(image, len(image), ctypes.byref(pointer))
    document = _document(pointer)
    if code:
        text = (document or {}).get("error", "the library gave no reason")
        raise CodeObjectError(text, where=name, code=code)
    return {"file": name, **document}


def semantics_sha256() -> str:
    """The hash of the sources that the library was made of (netra_sim.semantics)."""
    return str(load().netraSimSemantics().decode())


def reset() -> None:
    """Clears every device's sticky error, the last fault and the findings."""
    load().netraSimReset()


def last_fault() -> str:
    """What the last faulting kernel did, or "": kernel, pc, .s line, lane, address, region."""
    return str((load().netraSimLastFault() or b"").decode(errors="replace"))


def last_error() -> str:
    """The sentence behind this thread's last failed HIP call; "" when the code says it all."""
    return str((load().netraSimLastError() or b"").decode(errors="replace"))


def counters() -> dict[str, int]:
    """Counters of the last launch: "instructions", "waves", ... (docs/simulator-run.md)."""
    pointer = ctypes.c_void_p()
    load().netraSimCounters(ctypes.byref(pointer))
    return dict(_document(pointer) or {})


def set_counting(on: bool) -> None:
    """Later launches count memory traffic, LDS bank conflicts, matrix passes and barriers too."""
    load().netraSimSetCounting(int(on))


def set_trace(limit: int) -> None:
    """Of each later launch the first `limit` instructions are written down; 0 ends that."""
    load().netraSimSetTrace(limit)


def trace() -> str:
    """What the last launch executed, a line each: workgroup, wave, pc, .s line, instruction."""
    pointer = ctypes.c_void_p()
    load().netraSimTrace(ctypes.byref(pointer))
    return _text(pointer).decode(errors="replace")


def set_checked(on: bool) -> None:
    """Later launches are watched by the sanitizer; NETRA_SIM_CHECK=1 starts a process that way."""
    load().netraSimSetChecked(int(on))


def findings() -> list[dict[str, Any]]:
    """What the checks reported since the last reset (docs/sanitizer.md has the keys)."""
    pointer = ctypes.c_void_p()
    load().netraSimFindings(ctypes.byref(pointer))
    return list(_document(pointer) or [])


def rows() -> list[dict[str, Any]]:
    """The table of instruction semantics.

    Keys of a row: name (no encoding suffix), class, archs, the modifier that selects it among rows
    of one name (clamp; returns, which is sc0 or glc; lds), promise ("exact", "within_1_ulp" or
    "model"), slots, each {type, role, dwords}.
    """
    pointer = ctypes.c_void_p()
    load().netraSimRows(ctypes.byref(pointer))
    return list(_document(pointer) or [])


def set_seed(seed: int | None) -> None:
    """Runs later launches on one host thread in the seeded order; None goes back to threads."""
    on = seed is not None
    load().netraSimSetSeed((seed or 0) & (2**64 - 1), int(on))
