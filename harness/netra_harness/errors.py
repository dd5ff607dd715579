"""Errors of the harness; netra_catalog.errors says which exit code each class has."""

from __future__ import annotations

from netra_catalog.errors import NetraError, ToolError, UsageError

__all__ = ["CaptureError", "DeviceError", "NetraError", "ToolError", "UsageError", "WorkerError"]


class DeviceError(ToolError):
    """No HIP library, no device of the target, or no code object to run on it."""


class CaptureError(NetraError):
    """A capture is damaged, or no longer belongs to the inputs that it names."""


class WorkerError(NetraError):
    """A worker process could not be started."""
