"""What the scripts of these tests have at hand (`from prelude import *`)."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import damage
from netra_bridge import library as abi
from netra_bridge.errors import NetraError
from netra_bridge.library import Device, library

__all__ = [
    "Device", "NetraError", "Path", "Stub", "abi", "ctypes", "damage", "library", "os", "refused",
    "struct", "tmp", "write",
]  # fmt: skip

tmp = Path(os.environ["SCRIPT_FOLDER"])
_last: list[int] = []
_check = abi.check


def _noting(status: int) -> None:
    if status:
        _last[:] = [status]
    _check(status)


abi.check = _noting


def refused(status: int, action: Callable[[], Any], *words: str) -> None:
    """The action must fail with this netra_status, and its text must hold the words."""
    try:
        action()
    except NetraError as error:
        text = error.message
    else:
        raise AssertionError("accepted what it must refuse")
    assert text == library().netra_last_error().decode(), text
    for word in words:
        assert word in text, f"{word!r} is not in: {text}"
    assert _last == [status], f"status {_last}, want {status}: {text}"


def write(name: str, data: bytes) -> Path:
    path = tmp / name
    path.write_bytes(data)
    return path


class Launch(ctypes.Structure):
    _fields_ = [
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("lds", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("params", ctypes.c_void_p),
        ("size", ctypes.c_size_t),
        ("kernarg", ctypes.c_ubyte * 256),
    ]


class Stub:
    """The stub library's own functions."""

    def __init__(self, path: str) -> None:
        self.lib = ctypes.CDLL(path)
        self.lib.stubCalls.restype = ctypes.c_char_p
        self.lib.stubLaunch.restype = ctypes.POINTER(Launch)

    def calls(self) -> list[str]:
        """What was called since the last time."""
        calls: list[str] = self.lib.stubCalls().decode().split()
        self.lib.stubReset()
        return calls

    def launch(self) -> Launch:
        last: Launch = self.lib.stubLaunch().contents
        return last
