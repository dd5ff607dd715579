"""Graphs made by hand, and host functions: eager, captured, and as nodes."""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable, Iterator
from ctypes import byref, c_size_t, c_uint, c_void_p
from pathlib import Path

import pytest
from netra_sim.hip import Hip

sys.path.insert(0, str(Path(__file__).resolve().parent / "fixtures"))

import sim_kernels  # noqa: E402
from sim_graphs import HOST_FUNCTION, Fill, Host, Params, kinds, node, refused  # noqa: E402

Assemble = Callable[..., Path]
INVALID_VALUE = 1
KERNEL, MEMCPY, MEMSET, HOST, EMPTY = 0, 1, 2, 3, 5
D2D = 3


@pytest.fixture(scope="module")
def hip(sim_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hip]:
    folder = tmp_path_factory.mktemp("sim")
    with sim_kernels.private_simulator(sim_library, folder, "gfx950") as hip:
        yield hip


@pytest.fixture
def graph(hip: Hip) -> Iterator[c_void_p]:
    made = c_void_p()
    hip.call("hipGraphCreate", byref(made), 0)
    yield made
    hip.call("hipGraphDestroy", made)


def run(hip: Hip, graph: c_void_p, times: int = 1) -> None:
    made = c_void_p()
    hip.call("hipGraphInstantiate", byref(made), graph, None, None, c_size_t(0))
    for _ in range(times):
        hip.call("hipGraphLaunch", made, None)
    hip.synchronize()
    hip.call("hipGraphExecDestroy", made)


def depend(hip: Hip, graph: c_void_p, first: c_void_p, then: c_void_p) -> None:
    hip.call("hipGraphAddDependencies", graph, (c_void_p * 1)(first), (c_void_p * 1)(then),
             c_size_t(1))


def test_nodes_of_every_kind(hip: Hip, assemble: Assemble, graph: c_void_p) -> None:
    """memset -> kernel -> copy -> host, each made before the ones it depends on."""
    function = hip.function(hip.load_module(assemble(sim_kernels.add())), "add_step")
    data, copy = hip.malloc(256), hip.malloc(256)
    pointer, step = c_void_p(data), c_uint(7)
    params = Params((64, 1, 1), None, function, (1, 1, 1), None, 0)
    values = (c_void_p * 2)(ctypes.addressof(pointer), ctypes.addressof(step))
    params.params = ctypes.addressof(values)
    seen: list[int] = []
    called = HOST_FUNCTION(lambda value: seen.append(ctypes.cast(copy, ctypes.POINTER(c_uint))[63]
                                                     + (value or 0)))
    fourth = node(hip, "hipGraphAddHostNode", graph, [], byref(Host(called, 1000)))
    third = node(hip, "hipGraphAddMemcpyNode1D", graph, [], c_void_p(copy), c_void_p(data),
                 c_size_t(256), D2D)
    between = node(hip, "hipGraphAddEmptyNode", graph, [third])
    second = node(hip, "hipGraphAddKernelNode", graph, [], byref(params))
    first = node(hip, "hipGraphAddMemsetNode", graph, [], byref(Fill(data, 4, 1, 0, 5, 64)))
    for before, after in ((first, second), (second, third), (between, fourth)):
        depend(hip, graph, before, after)
    assert kinds(hip, [first, second, third, fourth, between]) == [
        MEMSET, KERNEL, MEMCPY, HOST, EMPTY]
    run(hip, graph, times=2)
    assert struct.unpack("<64I", hip.download(copy, 256)) == (12,) * 64
    assert seen == [1012, 1012]


def test_dependencies(hip: Hip, graph: c_void_p) -> None:
    a = node(hip, "hipGraphAddEmptyNode", graph, [])
    b = node(hip, "hipGraphAddEmptyNode", graph, [a])
    c = node(hip, "hipGraphAddEmptyNode", graph, [b])

    def wrong(*pairs: tuple[c_void_p, c_void_p]) -> str:
        n = len(pairs)
        return refused(hip, INVALID_VALUE, "hipGraphAddDependencies", graph,
                       (c_void_p * n)(*[p[0] for p in pairs]),
                       (c_void_p * n)(*[p[1] for p in pairs]), c_size_t(n))

    assert wrong((c, a)) == "dependency 0 closes a cycle"
    assert wrong((a, a)) == "dependency 0 closes a cycle"
    assert wrong((a, c), (a, b)) == "dependency 1 exists"
    depend(hip, graph, a, c)  # the failing call above has left nothing behind
    assert "not of this graph" in wrong((a, c_void_p(8)))
    out = c_void_p()
    one = (c_void_p * 2)(a, a)
    assert "twice" in refused(hip, INVALID_VALUE, "hipGraphAddEmptyNode", byref(out), graph, one,
                              c_size_t(2))
    refused(hip, INVALID_VALUE, "hipGraphAddEmptyNode", byref(out), graph, None, c_size_t(1))
    refused(hip, INVALID_VALUE, "hipGraphAddEmptyNode", byref(out), c_void_p(8), None, c_size_t(0))
    run(hip, graph)


def test_node_errors(hip: Hip, graph: c_void_p) -> None:
    out, data = c_void_p(), hip.malloc(64)
    whole = (c_void_p(data), c_void_p(data))
    rest = (byref(out), graph, None, c_size_t(0))
    for code, function, *args in (
        (INVALID_VALUE, "hipGraphAddKernelNode", None),
        (INVALID_VALUE, "hipGraphAddHostNode", None),
        (INVALID_VALUE, "hipGraphAddHostNode", byref(Host())),
        (INVALID_VALUE, "hipGraphAddMemsetNode", None),
        (INVALID_VALUE, "hipGraphAddMemsetNode", byref(Fill(data, 3, 1, 0, 0, 4))),
        (INVALID_VALUE, "hipGraphAddMemsetNode", byref(Fill(data, 4, 1, 0, 0, 17))),
        (INVALID_VALUE, "hipGraphAddMemsetNode", byref(Fill(data, 4, 0, 0, 0, 4))),
        (INVALID_VALUE, "hipGraphAddMemsetNode", byref(Fill(data, 4, 2, 12, 0, 4))),
        (INVALID_VALUE, "hipGraphAddMemsetNode", byref(Fill(data, 4, 2, 18, 0, 4))),
        (INVALID_VALUE, "hipGraphAddMemsetNode", byref(Fill(data, 1, 3, 32, 0, 4))),
        (INVALID_VALUE, "hipGraphAddMemcpyNode1D", *whole, c_size_t(0), D2D),
        (INVALID_VALUE, "hipGraphAddMemcpyNode1D", *whole, c_size_t(65), D2D),
        (21, "hipGraphAddMemcpyNode1D", *whole, c_size_t(4), 9),
    ):
        assert refused(hip, int(code), str(function), *rest, *args)
    hip.free(data)


def test_host_function(hip: Hip) -> None:
    """At once outside a capture, at each replay within one; it may even use HIP."""
    data, seen = hip.malloc(4), []

    def look(value: int | None) -> None:
        seen.append((value, hip.download(data, 4)))

    called = HOST_FUNCTION(look)
    stream, graph = c_void_p(), c_void_p()
    hip.call("hipStreamCreateWithFlags", byref(stream), 1)
    hip.call("hipMemsetAsync", c_void_p(data), 1, c_size_t(4), stream)
    hip.call("hipLaunchHostFunc", stream, called, c_void_p(5))
    assert seen == [(5, b"\1\1\1\1")]
    hip.call("hipStreamBeginCapture", stream, 0)
    hip.call("hipMemsetAsync", c_void_p(data), 2, c_size_t(4), stream)
    hip.call("hipLaunchHostFunc", stream, called, c_void_p(6))
    hip.call("hipStreamEndCapture", stream, byref(graph))
    assert len(seen) == 1
    run(hip, graph)
    assert seen[1:] == [(6, b"\2\2\2\2")]
    refused(hip, INVALID_VALUE, "hipLaunchHostFunc", stream, None, None)
    hip.call("hipStreamDestroy", stream)
    refused(hip, 709, "hipLaunchHostFunc", stream, called, None)
