"""Streams, events, stream capture and graphs of the simulator, with ROCm's error codes."""

from __future__ import annotations

import ctypes
import struct
import threading
from collections.abc import Callable, Iterator
from ctypes import byref, c_float, c_int, c_size_t, c_uint, c_ulonglong, c_void_p
from pathlib import Path

import pytest
import sim_kernels
from netra_sim.hip import Hip, HipError

Assemble = Callable[..., Path]

GLOBAL, THREAD_LOCAL, RELAXED = 0, 1, 2
NONE, ACTIVE, INVALIDATED = 0, 1, 2
KERNEL, MEMCPY, MEMSET = 0, 1, 2
D2D = 3


class Params(ctypes.Structure):
    """hipKernelNodeParams."""

    _fields_ = [
        ("block", c_uint * 3), ("extra", c_void_p), ("func", c_void_p), ("grid", c_uint * 3),
        ("params", c_void_p), ("lds", c_uint),
    ]


@pytest.fixture(scope="module")
def hip(sim_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hip]:
    folder = tmp_path_factory.mktemp("sim")
    with sim_kernels.private_simulator(sim_library, folder, "gfx950", shared=False) as hip:
        yield hip


@pytest.fixture
def streams(hip: Hip) -> Iterator[tuple[int, int]]:
    """Two streams; whatever a test left capturing is ended."""
    made = (c_void_p(), c_void_p())
    for flags, stream in enumerate(made):
        hip.call("hipStreamCreateWithFlags", byref(stream), flags)
    yield made[0].value or 0, made[1].value or 0
    for stream in made:
        hip.library.hipStreamEndCapture(stream, byref(c_void_p()))
    for stream in made:
        hip.call("hipStreamDestroy", stream)
    hip.call("netraSimReset")


@pytest.fixture(scope="module")
def function(hip: Hip, assemble: Assemble) -> int:
    return hip.function(hip.load_module(assemble(sim_kernels.add())), "add_step")


@pytest.fixture
def data(hip: Hip) -> Iterator[int]:
    """64 words of zero."""
    pointer = hip.malloc(256)
    yield pointer
    hip.free(pointer)


def begin(hip: Hip, stream: int, mode: int = GLOBAL) -> None:
    hip.call("hipStreamBeginCapture", c_void_p(stream), mode)


def end(hip: Hip, stream: int) -> int:
    graph = c_void_p()
    hip.call("hipStreamEndCapture", c_void_p(stream), byref(graph))
    return graph.value or 0


def status(hip: Hip, stream: int) -> int:
    value = c_int(-1)
    hip.call("hipStreamIsCapturing", c_void_p(stream), byref(value))
    return value.value


def event(hip: Hip, flags: int = 0) -> c_void_p:
    made = c_void_p()
    hip.call("hipEventCreateWithFlags", byref(made), flags)
    return made


def add(hip: Hip, function: int, data: int, step: int, stream: int) -> None:
    hip.launch(function, (1, 1, 1), (64, 1, 1), struct.pack("<QI4x", data, step), stream=stream)


def value(hip: Hip, data: int) -> int:
    """The word that all 64 lanes hold."""
    found = set(struct.unpack("<64I", hip.download(data, 256)))
    assert len(found) == 1
    return int(found.pop())


def instantiate(hip: Hip, graph: int) -> c_void_p:
    made = c_void_p()
    hip.call("hipGraphInstantiate", byref(made), c_void_p(graph), None, None, c_size_t(0))
    return made


def refused(hip: Hip, code: int, function: str, *args: object) -> str:
    with pytest.raises(HipError) as caught:
        hip.call(function, *args)
    assert caught.value.code == code, str(caught.value)
    return caught.value.detail


# ---- streams and events ------------------------------------------------------------------------


def test_streams(hip: Hip, function: int, data: int) -> None:
    stream, number = c_void_p(), c_int(-1)
    hip.call("hipStreamCreateWithPriority", byref(stream), 1, -1)
    hip.call("hipStreamGetFlags", stream, byref(number))
    assert number.value == 1
    hip.call("hipStreamGetPriority", stream, byref(number))
    assert number.value == -1
    hip.call("hipStreamGetDevice", stream, byref(number))
    assert number.value == 0
    for handle in (stream.value or 0, 0, 1, 2):  # the null, legacy and per-thread streams too
        add(hip, function, data, 1, handle)
        hip.call("hipStreamSynchronize", c_void_p(handle))
        hip.call("hipStreamQuery", c_void_p(handle))
    assert value(hip, data) == 4
    refused(hip, 1, "hipStreamCreateWithFlags", byref(c_void_p()), 2)
    hip.call("hipStreamDestroy", stream)
    refused(hip, 400, "hipStreamDestroy", stream)
    assert "another libamdhip64" in refused(hip, 709, "hipStreamSynchronize", stream)


def test_events(hip: Hip, streams: tuple[int, int], function: int, data: int) -> None:
    first, last = event(hip), event(hip)
    elapsed = c_float(-1)
    hip.call("hipEventQuery", first)  # never recorded: nothing to wait for
    refused(hip, 400, "hipEventElapsedTime", byref(elapsed), first, last)
    hip.call("hipEventRecord", first, c_void_p(streams[0]))
    add(hip, function, data, 1, streams[0])
    hip.call("hipEventRecord", last, c_void_p(streams[0]))
    hip.call("hipEventSynchronize", last)
    hip.call("hipStreamWaitEvent", c_void_p(streams[1]), last, 0)
    hip.call("hipEventElapsedTime", byref(elapsed), first, last)
    assert elapsed.value > 0
    untimed = event(hip, 2)
    hip.call("hipEventRecord", untimed, None)
    assert "without timing" in refused(hip, 400, "hipEventElapsedTime", byref(elapsed), first,
                                       untimed)
    refused(hip, 801, "hipEventCreateWithFlags", byref(c_void_p()), 6)
    for made in (first, last, untimed):
        hip.call("hipEventDestroy", made)
    refused(hip, 400, "hipEventRecord", first, None)


def test_event_reports_a_fault(hip: Hip, streams: tuple[int, int], function: int) -> None:
    done = event(hip)
    add(hip, function, 0x1000, 1, streams[0])
    hip.call("hipEventRecord", done, c_void_p(streams[0]))
    refused(hip, 700, "hipEventSynchronize", done)
    refused(hip, 700, "hipStreamQuery", c_void_p(streams[1]))


# ---- graphs ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [GLOBAL, THREAD_LOCAL, RELAXED])
def test_capture_and_replay(
    hip: Hip, streams: tuple[int, int], function: int, data: int, mode: int
) -> None:
    stream = c_void_p(streams[0])
    other = hip.malloc(256)
    begin(hip, streams[0], mode)
    hip.call("hipMemsetD32Async", c_void_p(data), 5, c_size_t(64), stream)
    add(hip, function, data, 7, streams[0])
    hip.call("hipMemcpyAsync", c_void_p(other), c_void_p(data), c_size_t(256), D2D, stream)
    assert status(hip, streams[0]) == ACTIVE
    graph = end(hip, streams[0])
    assert status(hip, streams[0]) == NONE
    assert value(hip, data) == 0, "a captured operation ran"

    count, kind = c_size_t(), c_int()
    hip.call("hipGraphGetNodes", c_void_p(graph), None, byref(count))
    assert count.value == 3
    nodes, count = (c_void_p * 5)(*[1] * 5), c_size_t(5)
    hip.call("hipGraphGetNodes", c_void_p(graph), nodes, byref(count))
    assert count.value == 3 and nodes[3] is nodes[4] is None
    kinds = []
    for node in nodes[:3]:
        hip.call("hipGraphNodeGetType", c_void_p(node), byref(kind))
        kinds.append(kind.value)
    assert kinds == [MEMSET, KERNEL, MEMCPY]

    run = instantiate(hip, graph)
    hip.call("hipGraphDestroy", c_void_p(graph))
    hip.call("hipGraphUpload", run, stream)
    for launch_on in (stream, None, c_void_p(streams[1])):
        hip.call("hipGraphLaunch", run, launch_on)
        assert value(hip, data) == value(hip, other) == 12
    hip.call("hipGraphExecDestroy", run)
    refused(hip, 1, "hipGraphLaunch", run, stream)
    refused(hip, 1, "hipGraphNodeGetType", c_void_p(nodes[0]), byref(kind))
    hip.free(other)


def test_arguments_are_copied_at_capture(
    hip: Hip, streams: tuple[int, int], function: int, data: int
) -> None:
    begin(hip, streams[0])
    pointer, step = c_void_p(data), c_uint(3)
    params = (c_void_p * 2)(ctypes.addressof(pointer), ctypes.addressof(step))
    dims = [c_uint(n) for n in (1, 1, 1, 64, 1, 1, 0)]
    hip.call("hipModuleLaunchKernel", c_void_p(function), *dims, c_void_p(streams[0]), params, None)
    pointer.value, step.value = 0, 99
    run = instantiate(hip, end(hip, streams[0]))
    for _ in range(2):
        hip.call("hipGraphLaunch", run, c_void_p(streams[0]))
    assert value(hip, data) == 6


@pytest.mark.parametrize("form", ["params", "extra"])
def test_kernel_node_params(
    hip: Hip, streams: tuple[int, int], function: int, data: int, form: str
) -> None:
    begin(hip, streams[0])
    pointer, step = c_void_p(data), c_uint(3)
    given = (c_void_p * 2)(ctypes.addressof(pointer), ctypes.addressof(step))
    if form == "extra":
        add(hip, function, data, 3, streams[0])
    else:
        dims = [c_uint(n) for n in (1, 1, 1, 64, 1, 1, 0)]
        hip.call("hipModuleLaunchKernel", c_void_p(function), *dims, c_void_p(streams[0]), given,
                 None)
    graph = end(hip, streams[0])
    run = instantiate(hip, graph)
    nodes, count = (c_void_p * 1)(), c_size_t(1)
    hip.call("hipGraphGetNodes", c_void_p(graph), nodes, byref(count))
    node, params = c_void_p(nodes[0]), Params()
    hip.call("hipGraphKernelNodeGetParams", node, byref(params))
    assert params.func == function
    assert (list(params.grid), list(params.block), params.lds) == ([1, 1, 1], [64, 1, 1], 0)
    if form == "extra":
        assert not params.params
        extra = ctypes.cast(params.extra, ctypes.POINTER(c_void_p * 5)).contents
        assert (extra[0], extra[2], extra[4]) == (1, 2, 3)
        size = c_size_t.from_address(extra[3] or 0).value
        assert ctypes.string_at(extra[1] or 0, size) == struct.pack("<QI", data, 3)
    else:
        assert not params.extra
        places = ctypes.cast(params.params, ctypes.POINTER(c_void_p * 2)).contents
        assert c_uint.from_address(places[1] or 0).value == 3

    step.value = 100
    params.extra, params.params = None, ctypes.addressof(given)
    hip.call("hipGraphExecKernelNodeSetParams", run, node, byref(params))
    hip.call("hipGraphLaunch", run, None)
    assert value(hip, data) == 100
    fresh = instantiate(hip, graph)  # the template still has its own
    hip.call("hipGraphLaunch", fresh, None)
    assert value(hip, data) == 103
    hip.call("hipGraphKernelNodeSetParams", node, byref(params))
    fresh = instantiate(hip, graph)
    hip.call("hipGraphLaunch", fresh, None)
    assert value(hip, data) == 203
    params.grid[0] = 0
    refused(hip, 1, "hipGraphExecKernelNodeSetParams", run, node, byref(params))
    params.grid[0], params.func = 1, data
    refused(hip, 400, "hipGraphExecKernelNodeSetParams", run, node, byref(params))


def test_graph_handles(hip: Hip, streams: tuple[int, int]) -> None:
    graph = c_void_p()
    hip.call("hipGraphCreate", byref(graph), 0)
    run = c_void_p()
    hip.call("hipGraphInstantiateWithFlags", byref(run), graph, c_ulonglong(1))
    hip.call("hipGraphLaunch", run, c_void_p(streams[0]))  # empty, and no error
    refused(hip, 801, "hipGraphInstantiateWithFlags", byref(run), graph, c_ulonglong(4))
    refused(hip, 1, "hipGraphInstantiateWithFlags", byref(run), graph, c_ulonglong(64))
    refused(hip, 1, "hipGraphCreate", byref(graph), 1)
    hip.call("hipGraphDestroy", graph)
    refused(hip, 1, "hipGraphDestroy", graph)
    refused(hip, 1, "hipGraphInstantiate", byref(run), graph, None, None, c_size_t(0))


def test_graph_with_an_unloaded_module(
    hip: Hip, streams: tuple[int, int], assemble: Assemble, data: int
) -> None:
    module = hip.load_module(assemble(sim_kernels.add()))
    begin(hip, streams[0])
    add(hip, hip.function(module, "add_step"), data, 1, streams[0])
    graph = end(hip, streams[0])
    hip.unload_module(module)
    hip.call("hipGraphLaunch", instantiate(hip, graph), c_void_p(streams[0]))
    assert "module was unloaded" in refused(hip, 719, "hipStreamSynchronize", c_void_p(streams[0]))


def test_graph_with_freed_memory(hip: Hip, streams: tuple[int, int]) -> None:
    pointer = hip.malloc(256)
    begin(hip, streams[0])
    hip.call("hipMemsetAsync", c_void_p(pointer), 1, c_size_t(256), c_void_p(streams[0]))
    graph = end(hip, streams[0])
    hip.free(pointer)
    hip.call("hipGraphLaunch", instantiate(hip, graph), c_void_p(streams[0]))
    assert "memory that is gone" in refused(hip, 700, "hipStreamSynchronize", c_void_p(streams[0]))


# ---- capture rules -----------------------------------------------------------------------------


def test_fork_and_join(hip: Hip, streams: tuple[int, int], function: int, data: int) -> None:
    main, side = streams
    fork, join = event(hip), event(hip)
    begin(hip, main)
    add(hip, function, data, 1, main)
    hip.call("hipEventRecord", fork, c_void_p(main))
    hip.call("hipStreamWaitEvent", c_void_p(side), fork, 0)
    assert status(hip, side) == ACTIVE
    add(hip, function, data, 2, side)
    hip.call("hipEventRecord", join, c_void_p(side))
    hip.call("hipStreamWaitEvent", c_void_p(main), join, 0)
    state, number, graph = c_int(), c_ulonglong(), c_void_p()
    dependencies, count = c_void_p(), c_size_t()
    hip.call("hipStreamGetCaptureInfo_v2", c_void_p(main), byref(state), byref(number),
             byref(graph), byref(dependencies), byref(count))
    assert state.value == ACTIVE and number.value > 0 and count.value == 2
    nodes = c_size_t()
    hip.call("hipGraphGetNodes", graph, None, byref(nodes))
    assert nodes.value == 2
    hip.call("hipGraphLaunch", instantiate(hip, end(hip, main)), c_void_p(main))
    assert status(hip, side) == NONE
    assert value(hip, data) == 3


def test_unjoined(hip: Hip, streams: tuple[int, int], function: int, data: int) -> None:
    main, side = streams
    fork = event(hip)
    begin(hip, main)
    hip.call("hipEventRecord", fork, c_void_p(main))
    hip.call("hipStreamWaitEvent", c_void_p(side), fork, 0)
    add(hip, function, data, 2, side)
    refused(hip, 903, "hipStreamEndCapture", c_void_p(side), byref(c_void_p()))
    graph = c_void_p(1)
    refused(hip, 904, "hipStreamEndCapture", c_void_p(main), byref(graph))
    assert graph.value is None
    assert status(hip, main) == status(hip, side) == NONE


def test_merge_and_isolation(hip: Hip, streams: tuple[int, int]) -> None:
    main, side = streams
    outside, inside = event(hip), event(hip)
    hip.call("hipEventRecord", outside, c_void_p(main))
    begin(hip, main)
    refused(hip, 905, "hipStreamWaitEvent", c_void_p(main), outside, 0)
    refused(hip, 901, "hipStreamEndCapture", c_void_p(main), byref(c_void_p()))
    begin(hip, main)
    begin(hip, side)
    hip.call("hipEventRecord", inside, c_void_p(main))
    refused(hip, 902, "hipStreamWaitEvent", c_void_p(side), inside, 0)
    assert status(hip, main) == status(hip, side) == INVALIDATED


@pytest.mark.parametrize("mode", [GLOBAL, THREAD_LOCAL, RELAXED])
@pytest.mark.parametrize(
    "call", ["hipMemcpy", "hipMemset", "hipDeviceSynchronize", "hipMemcpyDtoD"]
)
def test_synchronous_calls_spoil_every_capture(
    hip: Hip, streams: tuple[int, int], function: int, data: int, mode: int, call: str
) -> None:
    arguments: dict[str, tuple[object, ...]] = {
        "hipMemcpy": (c_void_p(data), c_void_p(data), c_size_t(4), D2D),
        "hipMemset": (c_void_p(data), 0, c_size_t(4)),
        "hipDeviceSynchronize": (),
        "hipMemcpyDtoD": (c_void_p(data), c_void_p(data), c_size_t(4)),
    }
    begin(hip, streams[0], mode)
    assert call in refused(hip, 900, call, *arguments[call])
    assert status(hip, streams[0]) == INVALIDATED
    with pytest.raises(HipError) as caught:
        add(hip, function, data, 1, streams[0])
    assert caught.value.code == 901
    graph = c_void_p(1)
    refused(hip, 901, "hipStreamEndCapture", c_void_p(streams[0]), byref(graph))
    assert graph.value is None and status(hip, streams[0]) == NONE
    hip.call(call, *arguments[call])  # afterwards all is well


@pytest.mark.parametrize("call", ["hipMalloc", "hipFree", "hipHostMalloc", "hipModuleLoad"])
def test_allocating_calls_need_the_relaxed_mode(
    hip: Hip, streams: tuple[int, int], assemble: Assemble, call: str
) -> None:
    path = str(assemble(sim_kernels.add())).encode()

    def arguments() -> tuple[object, ...]:
        return {
            "hipMalloc": (byref(c_void_p()), c_size_t(64)),
            "hipFree": (None,),
            "hipHostMalloc": (byref(c_void_p()), c_size_t(64), 0),
            "hipModuleLoad": (byref(c_void_p()), path),
        }[call]

    for mode in (GLOBAL, THREAD_LOCAL):
        begin(hip, streams[0], mode)
        assert "relaxed" in refused(hip, 900, call, *arguments())
        refused(hip, 901, "hipStreamEndCapture", c_void_p(streams[0]), byref(c_void_p()))
    begin(hip, streams[0], RELAXED)
    hip.call(call, *arguments())
    end(hip, streams[0])

    begin(hip, streams[0], GLOBAL)
    mode_before = c_int(RELAXED)
    hip.call("hipThreadExchangeStreamCaptureMode", byref(mode_before))
    assert mode_before.value == GLOBAL
    hip.call(call, *arguments())
    hip.call("hipThreadExchangeStreamCaptureMode", byref(mode_before))
    assert mode_before.value == RELAXED
    end(hip, streams[0])


def test_waiting_spoils_a_capture(hip: Hip, streams: tuple[int, int]) -> None:
    main, side = streams
    for call, stream, mode in (
        ("hipStreamSynchronize", main, RELAXED),
        ("hipStreamQuery", main, THREAD_LOCAL),
        ("hipStreamSynchronize", side, GLOBAL),
        ("hipStreamQuery", side, GLOBAL),
    ):
        begin(hip, main, mode)
        refused(hip, 900, call, c_void_p(stream))
        refused(hip, 901, "hipStreamEndCapture", c_void_p(main), byref(c_void_p()))
    begin(hip, main, RELAXED)
    hip.call("hipStreamSynchronize", c_void_p(side))
    end(hip, main)
    begin(hip, main)
    hip.call("hipStreamSynchronize", None)  # the null stream has nothing of the capture
    refused(hip, 900, "hipStreamDestroy", c_void_p(main))


@pytest.mark.parametrize("call", ["hipEventSynchronize", "hipEventQuery"])
def test_captured_event(hip: Hip, streams: tuple[int, int], call: str) -> None:
    mark = event(hip)
    begin(hip, streams[0])
    hip.call("hipEventRecord", mark, c_void_p(streams[0]))
    refused(hip, 907, call, mark)
    refused(hip, 901, "hipStreamEndCapture", c_void_p(streams[0]), byref(c_void_p()))
    hip.call(call, mark)


def test_null_stream(hip: Hip, streams: tuple[int, int], function: int, data: int) -> None:
    for handle in (0, 1):
        refused(hip, 900, "hipStreamBeginCapture", c_void_p(handle), GLOBAL)
    begin(hip, streams[0])
    with pytest.raises(HipError) as caught:
        add(hip, function, data, 1, 0)
    assert caught.value.code == 906
    refused(hip, 906, "hipStreamIsCapturing", None, byref(c_int()))
    refused(hip, 901, "hipStreamEndCapture", c_void_p(streams[0]), byref(c_void_p()))
    begin(hip, streams[0], THREAD_LOCAL)
    add(hip, function, data, 1, 0)
    assert status(hip, 0) == NONE
    end(hip, streams[0])
    assert value(hip, data) == 1


def test_begin_and_end_out_of_order(hip: Hip, streams: tuple[int, int]) -> None:
    stream = c_void_p(streams[0])
    refused(hip, 401, "hipStreamEndCapture", stream, byref(c_void_p()))
    refused(hip, 1, "hipStreamBeginCapture", stream, 3)
    begin(hip, streams[0])
    refused(hip, 401, "hipStreamBeginCapture", stream, GLOBAL)
    refused(hip, 1, "hipStreamEndCapture", stream, None)
    end(hip, streams[0])


def empty_graph(hip: Hip) -> c_void_p:
    graph = c_void_p()
    hip.call("hipGraphCreate", byref(graph), 0)
    return instantiate(hip, graph.value or 0)


@pytest.mark.parametrize("mode, code", [(GLOBAL, 908), (THREAD_LOCAL, 908), (RELAXED, 0)])
def test_end_from_another_thread(
    hip: Hip, streams: tuple[int, int], mode: int, code: int
) -> None:
    begin(hip, streams[0], mode)
    assert in_a_thread(hip.library.hipStreamEndCapture, c_void_p(streams[0]),
                       byref(c_void_p())) == code


def test_other_threads(hip: Hip, streams: tuple[int, int]) -> None:
    """A global capture forbids other threads to allocate; a thread-local one does not."""
    begin(hip, streams[0], THREAD_LOCAL)
    assert in_a_thread(hip.library.hipMalloc, byref(c_void_p()), c_size_t(64)) == 0
    end(hip, streams[0])
    begin(hip, streams[0], GLOBAL)
    assert in_a_thread(hip.library.hipMalloc, byref(c_void_p()), c_size_t(64)) == 900
    assert status(hip, streams[0]) == INVALIDATED


def in_a_thread(function: Callable[..., int], *args: object) -> int:
    answers: list[int] = []
    thread = threading.Thread(target=lambda: answers.append(function(*args)))
    thread.start()
    thread.join()
    return answers[0]
