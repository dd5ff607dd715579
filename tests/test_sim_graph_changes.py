"""Graphs that are cloned, taken apart, nested and changed after they were made."""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable, Iterator
from ctypes import byref, c_int, c_size_t, c_uint, c_void_p
from pathlib import Path

import pytest
from netra_sim.hip import Hip

sys.path.insert(0, str(Path(__file__).resolve().parent / "fixtures"))

import sim_kernels  # noqa: E402
from sim_graphs import (  # noqa: E402
    HOST_FUNCTION,
    Fill,
    Host,
    Params,
    instantiated,
    kinds,
    listed,
    node,
    refused,
)

Assemble = Callable[..., Path]
INVALID_VALUE, UPDATE_FAILURE, NOT_SUPPORTED = 1, 910, 801
KERNEL, MEMCPY, MEMSET, HOST, GRAPH, EMPTY, WAIT, RECORD, ALLOC, FREE = *range(8), 10, 11
D2D, H2D = 3, 1
SUCCESS, TOPOLOGY, TYPE, PARAMETERS, UNSUPPORTED = 0, 2, 3, 5, 6


@pytest.fixture(scope="module")
def hip(sim_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hip]:
    folder = tmp_path_factory.mktemp("sim")
    with sim_kernels.private_simulator(sim_library, folder, "gfx950") as hip:
        yield hip


@pytest.fixture
def new_graph(hip: Hip) -> Iterator[Callable[[], c_void_p]]:
    made: list[c_void_p] = []

    def make() -> c_void_p:
        graph = c_void_p()
        hip.call("hipGraphCreate", byref(graph), 0)
        made.append(graph)
        return graph

    yield make
    for graph in made:
        hip.call("hipGraphDestroy", graph)


@pytest.fixture
def data(hip: Hip) -> Iterator[int]:
    pointer = hip.malloc(64)
    hip.upload(pointer, bytes(64))
    yield pointer
    hip.free(pointer)


def fill(hip: Hip, graph: c_void_p, where: int, value: int, after: list[c_void_p] | None = None,
         words: int = 1) -> c_void_p:  # fmt: skip
    return node(hip, "hipGraphAddMemsetNode", graph, after or [],
                byref(Fill(where, 4, 1, 0, value, words)))  # fmt: skip


def words(hip: Hip, pointer: int, count: int = 4) -> list[int]:
    return list(struct.unpack(f"<{count}I", hip.download(pointer, 4 * count)))


def launch(hip: Hip, executable: c_void_p) -> None:
    hip.call("hipGraphLaunch", executable, None)
    hip.synchronize()


# ---- looking at graphs, and taking them apart --------------------------------------------------


def test_roots_edges_and_neighbours(hip: Hip, new_graph, data: int) -> None:
    graph = new_graph()
    a, b = fill(hip, graph, data, 1), fill(hip, graph, data + 4, 2)
    c = fill(hip, graph, data + 8, 3, [a, b])
    assert listed(hip, "hipGraphGetNodes", graph) == [a.value, b.value, c.value]
    assert listed(hip, "hipGraphGetRootNodes", graph) == [a.value, b.value]
    assert listed(hip, "hipGraphNodeGetDependencies", c) == [a.value, b.value]
    assert listed(hip, "hipGraphNodeGetDependentNodes", a) == [c.value]
    assert listed(hip, "hipGraphNodeGetDependentNodes", c) == []
    count = c_size_t(3)
    first, then = (c_void_p * 3)(), (c_void_p * 3)()
    hip.call("hipGraphGetEdges", graph, first, then, byref(count))
    assert (count.value, list(first), list(then)) == (
        2, [a.value, b.value, None], [c.value, c.value, None])  # fmt: skip
    hip.call("hipGraphGetEdges", graph, None, None, byref(count))
    assert count.value == 2
    refused(hip, INVALID_VALUE, "hipGraphGetEdges", graph, first, None, byref(count))
    for function in ("hipGraphGetNodes", "hipGraphGetRootNodes"):
        refused(hip, INVALID_VALUE, function, graph, None, None)
        refused(hip, INVALID_VALUE, function, c_void_p(8), None, byref(count))
    for function in ("hipGraphNodeGetDependencies", "hipGraphNodeGetDependentNodes"):
        refused(hip, INVALID_VALUE, function, a, None, None)
        refused(hip, INVALID_VALUE, function, c_void_p(8), None, byref(count))


def test_dependencies_and_nodes_go_away(hip: Hip, new_graph, data: int) -> None:
    graph = new_graph()
    a = fill(hip, graph, data, 1)
    b = fill(hip, graph, data, 2, [a])
    one, two = (c_void_p * 1)(a), (c_void_p * 1)(b)
    hip.call("hipGraphRemoveDependencies", graph, one, two, c_size_t(1))
    assert listed(hip, "hipGraphGetRootNodes", graph) == [a.value, b.value]
    told = refused(hip, INVALID_VALUE, "hipGraphRemoveDependencies", graph, one, two, c_size_t(1))
    assert told == "dependency 0 does not exist"
    hip.call("hipGraphAddDependencies", graph, one, two, c_size_t(1))
    executable = instantiated(hip, graph)
    hip.call("hipGraphDestroyNode", a)
    assert listed(hip, "hipGraphNodeGetDependencies", b) == []
    refused(hip, INVALID_VALUE, "hipGraphDestroyNode", a)
    launch(hip, executable)  # keeps what it was made of
    assert words(hip, data)[0] == 2
    hip.call("hipGraphExecDestroy", executable)


def test_a_drawing(hip: Hip, new_graph, data: int, tmp_path: Path) -> None:
    graph, path = new_graph(), tmp_path / "graph.dot"
    a = fill(hip, graph, data, 1)
    node(hip, "hipGraphAddMemcpyNode1D", graph, [a], c_void_p(data + 32), c_void_p(data),
         c_size_t(16), D2D)  # fmt: skip
    hip.call("hipGraphDebugDotPrint", graph, str(path).encode(), 0)
    text = path.read_text()
    assert text.startswith("digraph") and "node_0 -> node_1" in text and "16 bytes" in text
    refused(hip, INVALID_VALUE, "hipGraphDebugDotPrint", graph, b"/nowhere/graph.dot", 0)
    refused(hip, INVALID_VALUE, "hipGraphDebugDotPrint", graph, None, 0)
    assert list(tmp_path.iterdir()) == [path]


# ---- clones and children -----------------------------------------------------------------------


def test_a_clone_is_its_own_graph(hip: Hip, new_graph, data: int) -> None:
    graph, inner = new_graph(), new_graph()
    fill(hip, inner, data + 4, 9)
    a = fill(hip, graph, data, 1)
    child = node(hip, "hipGraphAddChildGraphNode", graph, [a], inner)
    copy, twin = c_void_p(), c_void_p()
    hip.call("hipGraphClone", byref(copy), graph)
    hip.call("hipGraphNodeFindInClone", byref(twin), a, copy)
    assert twin.value not in (None, a.value)
    hip.call("hipGraphMemsetNodeSetParams", twin, byref(Fill(data, 4, 1, 0, 7, 1)))
    seen = Fill()
    hip.call("hipGraphMemsetNodeGetParams", a, byref(seen))
    assert (seen.value, seen.width, seen.height, seen.dst) == (1, 1, 1, data)
    assert kinds(hip, listed(hip, "hipGraphGetNodes", copy)) == [MEMSET, GRAPH]
    executable = instantiated(hip, copy)
    launch(hip, executable)
    assert words(hip, data)[:2] == [7, 9]
    told = refused(hip, INVALID_VALUE, "hipGraphNodeFindInClone", byref(twin), a, graph)
    assert "not made by hipGraphClone" in told
    hip.call("hipGraphDestroyNode", child)
    refused(hip, INVALID_VALUE, "hipGraphNodeFindInClone", byref(twin), c_void_p(8), copy)
    refused(hip, INVALID_VALUE, "hipGraphClone", byref(copy), c_void_p(8))
    refused(hip, INVALID_VALUE, "hipGraphClone", None, graph)
    hip.call("hipGraphExecDestroy", executable)
    hip.call("hipGraphDestroy", copy)


def test_a_child_graph_is_a_copy_that_can_be_changed(hip: Hip, new_graph, data: int) -> None:
    graph, inner, own, other = new_graph(), new_graph(), c_void_p(), new_graph()
    fill(hip, inner, data, 1)
    child = node(hip, "hipGraphAddChildGraphNode", graph, [], inner)
    fill(hip, inner, data + 4, 2)  # after the copy
    hip.call("hipGraphChildGraphNodeGetGraph", child, byref(own))
    assert own.value != inner.value and len(listed(hip, "hipGraphGetNodes", own)) == 1
    executable = instantiated(hip, graph)
    launch(hip, executable)
    assert words(hip, data)[:2] == [1, 0]
    fill(hip, other, data + 8, 5)
    hip.call("hipGraphExecChildGraphNodeSetParams", executable, child, other)
    launch(hip, executable)
    assert words(hip, data)[:3] == [1, 0, 5]
    told = refused(hip, INVALID_VALUE, "hipGraphExecChildGraphNodeSetParams", executable, child,
                   inner)  # fmt: skip
    assert "1 nodes, the new one 2" in told
    refused(hip, INVALID_VALUE, "hipGraphChildGraphNodeGetGraph", executable, byref(own))
    refused(hip, INVALID_VALUE, "hipGraphDestroy", own)  # the node's, not the caller's
    out = c_void_p()
    refused(hip, INVALID_VALUE, "hipGraphAddChildGraphNode", byref(out), graph, None, c_size_t(0),
            c_void_p(8))  # fmt: skip
    hip.call("hipGraphExecDestroy", executable)


def test_a_graph_launched_into_a_capture_becomes_a_child(hip: Hip, new_graph, data: int) -> None:
    graph, outer, stream = new_graph(), c_void_p(), c_void_p()
    a = fill(hip, graph, data, 1)
    fill(hip, graph, data, 4, [a])
    executable = instantiated(hip, graph)
    hip.call("hipStreamCreate", byref(stream))
    hip.call("hipStreamBeginCapture", stream, 0)
    hip.call("hipGraphLaunch", executable, stream)
    hip.call("hipMemsetD32Async", c_void_p(data + 4), 6, c_size_t(1), stream)
    hip.call("hipStreamEndCapture", stream, byref(outer))
    assert kinds(hip, listed(hip, "hipGraphGetNodes", outer)) == [GRAPH, MEMSET]
    hip.call("hipGraphExecDestroy", executable)
    executable = instantiated(hip, outer)
    assert words(hip, data)[:2] == [0, 0]
    launch(hip, executable)
    assert words(hip, data)[:2] == [4, 6]
    hip.call("hipGraphExecDestroy", executable)
    hip.call("hipGraphDestroy", outer)
    hip.call("hipStreamDestroy", stream)


# ---- changing what nodes do --------------------------------------------------------------------


def test_rows_of_a_fill(hip: Hip, new_graph, data: int) -> None:
    graph = new_graph()
    node(hip, "hipGraphAddMemsetNode", graph, [], byref(Fill(data, 2, 3, 16, 7, 2)))
    executable = instantiated(hip, graph)
    launch(hip, executable)
    assert words(hip, data, 12) == [0x70007, 0, 0, 0] * 3
    hip.call("hipGraphExecDestroy", executable)


def test_template_and_executable_change_apart(hip: Hip, new_graph, data: int) -> None:
    graph = new_graph()
    a = fill(hip, graph, data, 1)
    b = node(hip, "hipGraphAddMemcpyNode1D", graph, [a], c_void_p(data + 32), c_void_p(data),
             c_size_t(4), D2D)  # fmt: skip
    seen: list[int] = []
    first, second = HOST_FUNCTION(lambda v: seen.append(v or 0)), HOST_FUNCTION(
        lambda v: seen.append(-(v or 0)))  # fmt: skip
    c = node(hip, "hipGraphAddHostNode", graph, [b], byref(Host(first, 5)))
    executable = instantiated(hip, graph)
    hip.call("hipGraphExecMemsetNodeSetParams", executable, a, byref(Fill(data, 4, 1, 0, 8, 1)))
    hip.call("hipGraphExecMemcpyNodeSetParams1D", executable, b, c_void_p(data + 36),
             c_void_p(data), c_size_t(4), D2D)  # fmt: skip
    hip.call("hipGraphExecHostNodeSetParams", executable, c, byref(Host(second, 6)))
    launch(hip, executable)
    assert words(hip, data, 10)[8:] == [0, 8] and seen == [-6]
    now = Host()
    hip.call("hipGraphHostNodeGetParams", c, byref(now))
    assert now.data == 5
    hip.call("hipGraphMemcpyNodeSetParams1D", b, c_void_p(data + 40), c_void_p(data), c_size_t(4),
             D2D)  # fmt: skip
    hip.call("hipGraphHostNodeSetParams", c, byref(Host(second, 7)))
    hip.call("hipGraphExecDestroy", executable)
    executable = instantiated(hip, graph)
    launch(hip, executable)
    assert words(hip, data, 11)[8:] == [0, 8, 1] and seen == [-6, -7]
    wrong = byref(Fill(data, 4, 1, 0, 0, 17))
    for function, *args in (
        ("hipGraphExecMemsetNodeSetParams", executable, a, wrong),
        ("hipGraphExecMemsetNodeSetParams", executable, b, byref(Fill(data, 4, 1, 0, 8, 1))),
        ("hipGraphExecMemsetNodeSetParams", c_void_p(8), a, byref(Fill(data, 4, 1, 0, 8, 1))),
        ("hipGraphMemsetNodeSetParams", a, wrong),
        ("hipGraphMemsetNodeSetParams", a, None),
        ("hipGraphMemsetNodeGetParams", b, byref(Fill())),
        ("hipGraphMemsetNodeGetParams", a, None),
        ("hipGraphHostNodeGetParams", a, byref(now)),
        ("hipGraphHostNodeSetParams", c, None),
        ("hipGraphExecHostNodeSetParams", executable, a, byref(Host(second, 7))),
        ("hipGraphMemcpyNodeSetParams1D", b, c_void_p(data), c_void_p(data), c_size_t(0), D2D),
        ("hipGraphExecMemcpyNodeSetParams1D", executable, a, c_void_p(data), c_void_p(data),
         c_size_t(4), D2D),
    ):  # fmt: skip
        refused(hip, INVALID_VALUE, str(function), *args)
    hip.call("hipGraphExecDestroy", executable)


def test_nodes_are_switched_off(hip: Hip, new_graph, data: int) -> None:
    graph, enabled = new_graph(), c_uint(9)
    a = fill(hip, graph, data, 1)
    empty = node(hip, "hipGraphAddEmptyNode", graph, [a])
    executable = instantiated(hip, graph)
    hip.call("hipGraphNodeSetEnabled", executable, a, 0)
    hip.call("hipGraphNodeGetEnabled", executable, a, byref(enabled))
    launch(hip, executable)
    assert (enabled.value, words(hip, data)[0]) == (0, 0)
    hip.call("hipGraphNodeSetEnabled", executable, a, 1)
    launch(hip, executable)
    assert words(hip, data)[0] == 1
    refused(hip, INVALID_VALUE, "hipGraphNodeSetEnabled", executable, empty, 0)
    refused(hip, INVALID_VALUE, "hipGraphNodeGetEnabled", executable, a, None)
    refused(hip, INVALID_VALUE, "hipGraphNodeGetEnabled", c_void_p(8), a, byref(enabled))
    hip.call("hipGraphExecDestroy", executable)


def test_event_nodes(hip: Hip, new_graph) -> None:
    graph, events, found = new_graph(), [c_void_p(), c_void_p()], c_void_p()
    for event in events:
        hip.call("hipEventCreate", byref(event))
    record = node(hip, "hipGraphAddEventRecordNode", graph, [], events[0])
    wait = node(hip, "hipGraphAddEventWaitNode", graph, [record], events[0])
    assert kinds(hip, [record, wait]) == [RECORD, WAIT]
    for kind, one in (("EventRecord", record), ("EventWait", wait)):
        hip.call(f"hipGraph{kind}NodeGetEvent", one, byref(found))
        assert found.value == events[0].value
        hip.call(f"hipGraph{kind}NodeSetEvent", one, events[1])
        hip.call(f"hipGraph{kind}NodeGetEvent", one, byref(found))
        assert found.value == events[1].value
    executable = instantiated(hip, graph)
    hip.call("hipGraphExecEventRecordNodeSetEvent", executable, record, events[0])
    hip.call("hipGraphExecEventWaitNodeSetEvent", executable, wait, events[0])
    ms = ctypes.c_float()
    refused(hip, 400, "hipEventElapsedTime", byref(ms), events[0], events[0])
    launch(hip, executable)
    hip.call("hipEventElapsedTime", byref(ms), events[0], events[0])
    assert ms.value == 0
    out, none = c_void_p(), c_void_p(8)
    for function, *args in (
        ("hipGraphAddEventRecordNode", byref(out), graph, None, c_size_t(0), none),
        ("hipGraphAddEventWaitNode", byref(out), graph, None, c_size_t(0), none),
        ("hipGraphEventRecordNodeGetEvent", wait, byref(found)),
        ("hipGraphEventWaitNodeGetEvent", wait, None),
        ("hipGraphEventRecordNodeSetEvent", record, none),
        ("hipGraphEventWaitNodeSetEvent", record, events[0]),
        ("hipGraphExecEventRecordNodeSetEvent", executable, wait, events[0]),
        ("hipGraphExecEventWaitNodeSetEvent", executable, none, events[0]),
    ):
        refused(hip, INVALID_VALUE, str(function), *args)
    hip.call("hipGraphExecDestroy", executable)
    for event in events:
        hip.call("hipEventDestroy", event)


# ---- hipGraphExecUpdate ------------------------------------------------------------------------


def update(hip: Hip, executable: c_void_p, graph: c_void_p) -> tuple[int, int | None, str]:
    """(result, node, text) of an update that is refused."""
    at, result = c_void_p(), c_int(-1)
    told = refused(hip, UPDATE_FAILURE, "hipGraphExecUpdate", executable, graph, byref(at),
                   byref(result))  # fmt: skip
    return result.value, at.value, told


def test_update_takes_new_parameters(hip: Hip, assemble: Assemble, new_graph, data: int) -> None:
    function = hip.function(hip.load_module(assemble(sim_kernels.add())), "add_step")

    def build(value: int, step: int) -> c_void_p:
        graph = new_graph()
        a = fill(hip, graph, data, value, words=16)
        pointer, number = c_void_p(data), c_uint(step)
        values = (c_void_p * 2)(ctypes.addressof(pointer), ctypes.addressof(number))
        params = Params((16, 1, 1), None, function, (1, 1, 1), ctypes.addressof(values), 0)
        node(hip, "hipGraphAddKernelNode", graph, [a], byref(params))
        return graph

    executable = instantiated(hip, build(1, 10))
    launch(hip, executable)
    assert words(hip, data) == [11] * 4
    at, result = c_void_p(8), c_int(-1)
    hip.call("hipGraphExecUpdate", executable, build(2, 20), byref(at), byref(result))
    assert (at.value, result.value) == (None, SUCCESS)
    launch(hip, executable)
    assert words(hip, data) == [22] * 4
    hip.call("hipGraphExecDestroy", executable)


def test_update_refuses_another_shape_and_changes_nothing(hip: Hip, new_graph, data: int) -> None:
    graph = new_graph()
    a = fill(hip, graph, data, 1)
    fill(hip, graph, data + 4, 2, [a])
    executable = instantiated(hip, graph)

    more, other_kind, loose = new_graph(), new_graph(), new_graph()
    x = fill(hip, more, data, 5)
    fill(hip, more, data, 6, [x])
    fill(hip, more, data, 7, [x])
    assert update(hip, executable, more) == (
        TOPOLOGY, None, "the executable graph has 2 nodes, the new one 3")  # fmt: skip
    x = fill(hip, other_kind, data, 5)
    y = node(hip, "hipGraphAddEmptyNode", other_kind, [x])
    assert update(hip, executable, other_kind) == (TYPE, y.value, "node 1 is of another kind")
    fill(hip, loose, data, 5)
    y = fill(hip, loose, data, 6)
    assert update(hip, executable, loose) == (TOPOLOGY, y.value, "node 1 has other dependencies")
    launch(hip, executable)
    assert words(hip, data)[:2] == [1, 2]
    at, result = c_void_p(), c_int()
    refused(hip, INVALID_VALUE, "hipGraphExecUpdate", executable, graph, None, byref(result))
    refused(hip, INVALID_VALUE, "hipGraphExecUpdate", c_void_p(8), graph, byref(at), byref(result))
    refused(hip, INVALID_VALUE, "hipGraphExecUpdate", executable, c_void_p(8), byref(at),
            byref(result))  # fmt: skip
    hip.call("hipGraphExecDestroy", executable)


def test_update_looks_into_children_and_at_directions(hip: Hip, new_graph, data: int) -> None:
    host = ctypes.create_string_buffer(4)

    def build(kind: int, value: int) -> c_void_p:
        graph, inner = new_graph(), new_graph()
        source = data + 4 if kind == D2D else ctypes.addressof(host)
        node(hip, "hipGraphAddMemcpyNode1D", inner, [], c_void_p(data), c_void_p(source),
             c_size_t(4), kind)  # fmt: skip
        child = node(hip, "hipGraphAddChildGraphNode", graph, [], inner)
        fill(hip, graph, data + 8, value, [child])
        return graph

    executable = instantiated(hip, build(D2D, 3))
    at, result = c_void_p(), c_int()
    hip.call("hipGraphExecUpdate", executable, build(D2D, 4), byref(at), byref(result))
    launch(hip, executable)
    assert words(hip, data)[2] == 4
    result_code, where, text = update(hip, executable, build(H2D, 5))
    assert result_code == PARAMETERS and where is not None
    assert text == "node 0, a child graph: node 0 copies in another direction"
    hip.call("hipGraphExecDestroy", executable)


# ---- memory that belongs to graphs ---------------------------------------------------------------


def test_memory_of_a_capture_lives_as_long_as_its_graphs(hip: Hip, new_graph) -> None:
    stream, graph, pointer, at = c_void_p(), c_void_p(), c_void_p(), c_void_p()
    hip.call("hipStreamCreate", byref(stream))
    hip.call("hipStreamBeginCapture", stream, 0)
    hip.call("hipMallocAsync", byref(pointer), c_size_t(64), stream)
    hip.call("hipMemsetD32Async", pointer, 77, c_size_t(16), stream)
    hip.call("hipFreeAsync", pointer, stream)
    told = refused(hip, INVALID_VALUE, "hipFreeAsync", pointer, stream)
    assert "frees hipMallocAsync" in told and told.endswith("already")
    hip.call("hipStreamEndCapture", stream, byref(graph))
    assert kinds(hip, listed(hip, "hipGraphGetNodes", graph)) == [ALLOC, MEMSET, FREE]
    refused(hip, NOT_SUPPORTED, "hipGraphClone", byref(c_void_p()), graph)
    executable = instantiated(hip, graph)
    result = c_int()
    assert update(hip, executable, graph)[0] == UNSUPPORTED
    hip.call("hipGraphDestroy", graph)
    launch(hip, executable)
    launch(hip, executable)
    assert words(hip, pointer.value or 0) == [77] * 4
    del result, at
    hip.call("hipGraphExecDestroy", executable)
    refused(hip, 500, "hipMemGetAddressRange", byref(c_void_p()), None, pointer)
    hip.call("hipStreamDestroy", stream)


def test_memory_in_the_order_of_a_stream(hip: Hip) -> None:
    stream, pointer, before, after, total = (
        c_void_p(), c_void_p(), c_size_t(), c_size_t(), c_size_t())  # fmt: skip
    hip.call("hipStreamCreate", byref(stream))
    hip.call("hipMemGetInfo", byref(before), byref(total))
    hip.call("hipMallocAsync", byref(pointer), c_size_t(4096), stream)
    hip.call("hipMemGetInfo", byref(after), byref(total))
    assert before.value - after.value == 4096
    hip.call("hipMemsetD32Async", pointer, 5, c_size_t(4), stream)
    assert words(hip, pointer.value or 0) == [5] * 4
    hip.call("hipFreeAsync", pointer, stream)
    hip.call("hipMemGetInfo", byref(after), byref(total))
    assert before.value == after.value
    refused(hip, INVALID_VALUE, "hipFreeAsync", pointer, stream)
    hip.call("hipFreeAsync", None, stream)
    hip.call("hipMallocAsync", byref(pointer), c_size_t(0), stream)
    assert pointer.value is None
    refused(hip, INVALID_VALUE, "hipMallocAsync", None, c_size_t(4), stream)
    refused(hip, 2, "hipMallocAsync", byref(pointer), c_size_t(1 << 60), stream)
    hip.call("hipStreamDestroy", stream)
    refused(hip, 709, "hipMallocAsync", byref(pointer), c_size_t(4), stream)
