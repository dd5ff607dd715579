"""From what a caller passes to a call as contracts see it: arrays found, checked and located."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from netra_catalog.call import Call, Tensor
from netra_catalog.errors import nearest
from netra_catalog.op import GRAPHS, PHASES, Op, TensorArg

from netra_bridge import arrays, runtime
from netra_bridge.arrays import View
from netra_bridge.errors import PointerError, UsageError
from netra_bridge.library import MANAGED, ON_DEVICE
from netra_bridge.runtime import DeviceState


@dataclass(frozen=True)
class Request:
    """A call with the device and the stream that it goes to."""

    state: DeviceState
    call: Call
    stream: int
    capturing: bool
    readonly: tuple[str, ...]


def read_request(
    op: str, args: Mapping[str, object], stream: object, phase: str, graph: str | None
) -> Request:
    """Raises for what no contract could make right: names, host pointers, views out of bounds."""
    definition = _definition(op)
    _check_names(definition, args, phase, graph)
    views: dict[str, View] = {}
    values: dict[str, Tensor | int | float] = {}
    for name, value in args.items():
        if arrays.is_scalar(value):
            values[name] = arrays.scalar(name, value)
        else:
            views[name] = arrays.read(name, value)
    state, tensors = _locate(views)
    values |= tensors
    handle = runtime.stream_handle(stream, state.device.index)
    for name, view in views.items():
        _check_producer(name, view, handle)
    capturing = state.device.capturing(handle)
    mode = graph if graph is not None else "capture" if capturing else "eager"
    call = Call(op, state.device.arch, phase, mode, state.device.cu_count, values)
    readonly = tuple(name for name, view in views.items() if view.readonly)
    return Request(state, call, handle, capturing, readonly)


def _definition(op: str) -> Op:
    definition = next((t.definition for t in runtime.catalog() if t.op == op), None)
    if definition is None:
        ops = {tactic.op for tactic in runtime.catalog()}
        raise UsageError(f"the catalog has no op '{op}'{nearest(op, ops)}")
    return definition


def _check_names(op: Op, args: Mapping[str, object], phase: str, graph: str | None) -> None:
    known = [arg.name for arg in op.args]
    for name in args:
        if name not in known:
            raise UsageError(f"{op.name} has no argument '{name}'{nearest(name, known)}")
    for arg in op.args:
        if arg.name not in args:
            if isinstance(arg, TensorArg) or arg.default is None:
                raise UsageError(f"{op.name}: argument '{arg.name}' is missing")
        elif arrays.is_scalar(args[arg.name]) == isinstance(arg, TensorArg):
            want = "an array" if isinstance(arg, TensorArg) else f"a number ({arg.kind})"
            raise UsageError(f"{op.name}: argument '{arg.name}' must be {want}")
    if phase not in PHASES:
        raise UsageError(f"unknown phase '{phase}'{nearest(phase, PHASES)}")
    if graph is not None and graph not in GRAPHS:
        raise UsageError(f"unknown graph mode '{graph}'{nearest(graph, GRAPHS)}")


def _locate(views: Mapping[str, View]) -> tuple[DeviceState, dict[str, Tensor]]:
    """The device that holds the arrays, and the arrays as contracts see them."""
    opened = runtime.opened()
    probe = (opened[0] if opened else runtime.state(0)).device
    tensors: dict[str, Tensor] = {}
    home: tuple[int, str] | None = None
    for name, view in views.items():
        extent = 0
        if not view.empty:
            pointer = probe.pointer(view.ptr)
            if pointer.memory not in (ON_DEVICE, MANAGED):
                raise PointerError(
                    f"{name} is a host pointer ({view.ptr:#x}), and kernels need device memory"
                    if view.ptr
                    else f"{name} is a null pointer",
                    hint="copy it to the device first: netra_bridge.to_device(array)",
                )
            if home is None:
                home = pointer.device, name
            elif home[0] != pointer.device:
                raise PointerError(
                    f"{name} is on device {pointer.device}, {home[1]} on device {home[0]}"
                )
            extent = _extent(name, view, pointer.base, pointer.size)
        tensors[name] = Tensor(view.ptr, view.dtype, view.shape, view.strides, extent, view.layout)
    return runtime.state(probe.index if home is None else home[0]), tensors


def _extent(name: str, view: View, base: int, size: int) -> int:
    """Bytes from the pointer to the end of the storage.  A view beyond its allocation is an error:
    no contract could make it right, and the fallback would read the same memory."""
    span = Tensor(view.ptr, view.dtype, view.shape, view.strides, 0)
    last, first = span.max_byte_offset, span.min_byte_offset
    known = [extent for extent in (view.extent, base + size - view.ptr if base else None)
             if extent is not None]  # fmt: skip
    extent = min(known) if known else last + 1
    if last >= extent or (base and view.ptr + first < base):
        raise PointerError(
            f"{name} ({view.dtype}, shape {list(view.shape)}, strides {list(view.strides)}) spans "
            f"bytes {first} to {last} of its pointer, but the allocation ends at {extent}"
        )
    return extent


def _check_producer(name: str, view: View, stream: int) -> None:
    # In the interface, 1 is the default stream.
    if view.stream is None or view.stream == stream or (view.stream == 1 and stream == 0):
        return
    raise UsageError(
        f"{name} was written on stream {view.stream:#x}, the launch is on {stream:#x}",
        hint="pass that stream, or order the two and wrap the array in netra_bridge.DeviceArray",
    )
