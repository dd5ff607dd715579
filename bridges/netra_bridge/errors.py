"""What the bridge raises, by what the caller can do about it."""

from __future__ import annotations

from netra_catalog.errors import NetraError, NoTacticError, ToolError, UsageError

__all__ = [
    "ArtefactError",
    "BridgeError",
    "CaptureError",
    "LibraryError",
    "NetraError",
    "NoTacticError",
    "PointerError",
    "ToolError",
    "UsageError",
]


class BridgeError(NetraError):
    """A HIP call failed.  `status` is the netra_status, `hip` HIP's code or 0."""

    def __init__(self, message: str, *, status: int = 0, hip: int = 0, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.hip = hip


class ArtefactError(BridgeError):
    """A code object is missing, damaged, or not the one expected.  Never a decline."""


class CaptureError(BridgeError):
    """Not legal while a stream is being captured, or a launch that voided the capture."""


class LibraryError(ToolError):
    """No HIP library, no device, no libnetra_bridge.so, or two HIP libraries at once."""


class PointerError(UsageError):
    """An argument lies in host memory, on another device, or outside its allocation."""
