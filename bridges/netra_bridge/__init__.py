"""Launches Netra's kernels from Python on the caller's stream, or leaves the call to the caller.

    netra_bridge.prepare("sampling.argmax", stream=s, logits=largest, out=largest_out)
    netra_bridge.dispatch("sampling.argmax", stream=s, logits=x, out=y, fallback=torch_argmax)

dispatch() launches the tactic whose contract the call meets completely, else it calls `fallback`.
Arrays are torch tensors, objects with __cuda_array_interface__ or with ptr, shape and dtype, or
DeviceArray; use("sim") puts everything on the simulator.
"""

from netra_bridge.arrays import DeviceArray, as_array
from netra_bridge.dispatch import Decline, Prepared, Why, dispatch, prepare, why
from netra_bridge.errors import (
    ArtefactError,
    BridgeError,
    CaptureError,
    LibraryError,
    NetraError,
    NoTacticError,
    PointerError,
    ToolError,
    UsageError,
)
from netra_bridge.memory import empty, synchronize, to_device, to_host
from netra_bridge.runtime import use

__all__ = [
    "ArtefactError",
    "BridgeError",
    "CaptureError",
    "Decline",
    "DeviceArray",
    "LibraryError",
    "NetraError",
    "NoTacticError",
    "PointerError",
    "Prepared",
    "ToolError",
    "UsageError",
    "Why",
    "as_array",
    "dispatch",
    "empty",
    "prepare",
    "synchronize",
    "to_device",
    "to_host",
    "use",
    "why",
]
