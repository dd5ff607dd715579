"""Each error code of the HIP surface, asked for outside a capture and inside one.

The rows are the table in docs/hip-surface.md. "Inside" means: while the stream that the call names
(or, where it names none, another stream of the same thread) is being captured in global mode.
"""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Callable, Iterator
from ctypes import addressof, byref, c_char_p, c_int, c_size_t, c_void_p, create_string_buffer
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from netra_sim.hip import Hip

sys.path.insert(0, str(Path(__file__).resolve().parent / "fixtures"))

import sim_kernels  # noqa: E402
from sim_graphs import Fill, instantiated, node  # noqa: E402

Assemble = Callable[..., Path]
STATES = {0: "over", 1: "goes on", 2: "spoilt"}


@dataclass
class Scene:
    """What the rows act on: a stream, perhaps capturing, and things that exist."""

    hip: Hip
    stream: c_void_p
    function: int
    data: int
    other_arch: bytes
    folder: Path

    def launch(self, *, grid: int = 1, block: int = 64, lds: int = 0, extra: bytes | None = None,
               function: int | None = None) -> tuple[Any, ...]:  # fmt: skip
        raw = struct.pack("<QI4x", self.data, 1) if extra is None else extra
        self.kept = create_string_buffer(raw, len(raw)), c_size_t(len(raw))
        words = (1, addressof(self.kept[0]), 2, addressof(self.kept[1]), 3)
        self.words = (c_void_p * 5)(*words)
        handle = c_void_p(self.function if function is None else function)
        return ("hipModuleLaunchKernel", handle, grid, 1, 1, block, 1, 1, lds, self.stream, None,
                self.words)  # fmt: skip


Call = Callable[[Scene], tuple[Any, ...]]


@dataclass(frozen=True)
class Row:
    """`inside` is the code while capturing, `after` what the capture is then."""

    outside: int
    inside: int
    after: int
    what: str
    call: Call


def _destroyed_event(scene: Scene) -> c_void_p:
    event = c_void_p()
    scene.hip.call("hipEventCreate", byref(event))
    scene.hip.call("hipEventDestroy", event)
    return event


def _captured_event(scene: Scene) -> c_void_p:
    event = c_void_p()
    scene.hip.call("hipEventCreate", byref(event))
    scene.hip.call("hipEventRecord", event, scene.stream)
    return event


def _write(scene: Scene, name: str, data: bytes) -> c_char_p:
    path = scene.folder / name
    path.write_bytes(data)
    return c_char_p(str(path).encode())


def _lost_module(scene: Scene) -> tuple[Any, ...]:
    return ("hipModuleGetFunction", byref(c_void_p()), c_void_p(8), b"add_step")


ROWS = (
    Row(1, 1, 1, "`hipModuleLaunchKernel` of an empty grid", lambda s: s.launch(grid=0)),
    Row(1, 1, 1, "`hipModuleLaunchKernel` with an argument buffer that is too short",
        lambda s: s.launch(extra=bytes(8))),
    Row(1, 1, 1, "`hipModuleLaunchKernel` with more LDS than a workgroup has",
        lambda s: s.launch(lds=1 << 18)),
    Row(1, 1, 1, "`hipMemcpyAsync` past the end of an allocation",
        lambda s: ("hipMemcpyAsync", c_void_p(s.data), c_void_p(s.data), c_size_t(257), 3,
                   s.stream)),
    Row(1, 1, 1, "`hipMemsetAsync` of memory that HIP does not know",
        lambda s: ("hipMemsetAsync", c_void_p(4096), 0, c_size_t(4), s.stream)),
    Row(1, 1, 1, "`hipFreeAsync` of what is no allocation",
        lambda s: ("hipFreeAsync", c_void_p(s.data + 4), s.stream)),
    Row(2, 2, 1, "`hipMallocAsync` of more than the device has",
        lambda s: ("hipMallocAsync", byref(c_void_p()), c_size_t(1 << 60), s.stream)),
    Row(2, 900, 2, "`hipMalloc` of more than the device has",
        lambda s: ("hipMalloc", byref(c_void_p()), c_size_t(1 << 60))),
    Row(9, 9, 1, "`hipModuleLaunchKernel` of an empty block", lambda s: s.launch(block=0)),
    Row(9, 9, 1, "`hipModuleLaunchKernel` of more than 2^32 - 1 work-items",
        lambda s: s.launch(grid=1 << 30, block=64)),
    Row(21, 21, 1, "`hipMemcpyAsync` in a direction that does not exist",
        lambda s: ("hipMemcpyAsync", c_void_p(s.data), c_void_p(s.data), c_size_t(4), 9,
                   s.stream)),
    Row(98, 98, 1, "`hipFuncGetAttribute` of a function whose module is gone",
        lambda s: ("hipFuncGetAttribute", byref(c_int()), 0, c_void_p(8))),
    Row(101, 101, 1, "`hipSetDevice` of a device that does not exist",
        lambda s: ("hipSetDevice", 7)),
    Row(101, 101, 1, "`hipGetDevicePropertiesR0600` of a device that does not exist",
        lambda s: ("hipGetDevicePropertiesR0600", create_string_buffer(4096), 7)),
    Row(200, 900, 2, "`hipModuleLoadData` of something that is no code object",
        lambda s: ("hipModuleLoadData", byref(c_void_p()), c_char_p(bytes(64)))),
    Row(200, 900, 2, "`hipModuleLoad` of a file that is no code object",
        lambda s: ("hipModuleLoad", byref(c_void_p()), _write(s, "x.co", b"text"))),
    Row(209, 900, 2, "`hipModuleLoadData` of a code object for another target",
        lambda s: ("hipModuleLoadData", byref(c_void_p()), c_char_p(s.other_arch))),
    Row(301, 301, 1, "`hipModuleLoad` of a file that does not exist",
        lambda s: ("hipModuleLoad", byref(c_void_p()), b"/nowhere.co")),
    Row(400, 400, 1, "`hipModuleLaunchKernel` of a handle that is no function",
        lambda s: s.launch(function=8)),
    Row(400, 400, 1, "`hipModuleGetFunction` of a handle that is no module", _lost_module),
    Row(400, 400, 1, "`hipEventRecord` of an event that was destroyed",
        lambda s: ("hipEventRecord", _destroyed_event(s), s.stream)),
    Row(401, 401, 1, "`hipStreamBeginCapture` twice; `hipStreamEndCapture` without one",
        lambda s: ("hipStreamEndCapture", s.stream, byref(c_void_p())) if not _capturing(s)
        else ("hipStreamBeginCapture", s.stream, 0)),
    Row(500, 500, 1, "`hipMemGetAddressRange` of an address in no allocation",
        lambda s: ("hipMemGetAddressRange", byref(c_void_p()), None, c_void_p(4096))),
    Row(709, 709, 1, "`hipMemsetAsync` on a handle that is no stream of this library",
        lambda s: ("hipMemsetAsync", c_void_p(s.data), 0, c_size_t(4), c_void_p(64))),
    Row(712, 900, 2, "`hipHostRegister` of memory that HIP knows",
        lambda s: ("hipHostRegister", c_void_p(s.data), c_size_t(4), 0)),
    Row(713, 900, 2, "`hipHostUnregister` of memory that was not registered",
        lambda s: ("hipHostUnregister", c_void_p(4096))),
    Row(719, 719, 1, "`hipModuleLaunchKernel` of more work-items than the kernel's maximum",
        lambda s: s.launch(block=1025)),
    Row(720, 720, 1, "`hipModuleLaunchCooperativeKernel` of more workgroups than fit at once",
        lambda s: ("hipModuleLaunchCooperativeKernel", c_void_p(s.function), 1 << 20, 1, 1, 64, 1,
                   1, 0, s.stream, None)),
    Row(801, 801, 1, "`hipEventCreateWithFlags` for other processes",
        lambda s: ("hipEventCreateWithFlags", byref(c_void_p()), 6)),
    Row(0, 900, 2, "`hipMalloc`",
        lambda s: ("hipMalloc", byref(c_void_p()), c_size_t(4))),
    Row(0, 900, 2, "`hipHostMalloc`",
        lambda s: ("hipHostMalloc", byref(c_void_p()), c_size_t(4), 0)),
    Row(0, 900, 2, "`hipMemcpy`, like every copy or fill that is not asynchronous",
        lambda s: ("hipMemcpy", c_void_p(s.data), c_void_p(s.data + 64), c_size_t(4), 3)),
    Row(0, 900, 2, "`hipMemset`",
        lambda s: ("hipMemset", c_void_p(s.data), 0, c_size_t(4))),
    Row(0, 900, 2, "`hipDeviceSynchronize`", lambda s: ("hipDeviceSynchronize",)),
    Row(0, 900, 2, "`hipStreamSynchronize`", lambda s: ("hipStreamSynchronize", s.stream)),
    Row(0, 900, 2, "`hipStreamQuery`", lambda s: ("hipStreamQuery", s.stream)),
    Row(0, 906, 2, "`hipMemsetAsync` on the null stream",
        lambda s: ("hipMemsetAsync", c_void_p(s.data), 0, c_size_t(4), None)),
    Row(0, 907, 2, "`hipEventSynchronize` of an event that was recorded in the capture",
        lambda s: ("hipEventSynchronize", _captured_event(s))),
    Row(0, 907, 2, "`hipEventQuery` of such an event",
        lambda s: ("hipEventQuery", _captured_event(s))),
)  # fmt: skip

# Codes whose rows need more than one call, or cannot be had: code -> where, or why not.
ELSEWHERE = {
    100: "no device: tests/test_sim_hip.py",
    218: "ROCm returns 200 for every damaged file",
    302: "a shared object that lacks a symbol: only its fat binaries have those, which are refused",
    303: "likewise",
    600: "work is done when its call returns, so nothing is ever not ready",
    700: "a kernel's bad address: tests/test_sim_hip.py",
    701: "a block that exceeds the registers does not load here",
    900: "above", 901: "tests/test_sim_hip_capture.py", 902: "tests/test_sim_hip_capture.py",
    903: "tests/test_sim_hip_capture.py", 904: "tests/test_sim_hip_capture.py",
    905: "tests/test_sim_hip_capture.py", 906: "above", 907: "above",
    908: "tests/test_sim_hip_capture.py", 910: "tests/test_sim_graph_changes.py",
}  # fmt: skip


def _status(scene: Scene) -> int:
    status = c_int(-1)
    scene.hip.call("hipStreamIsCapturing", scene.stream, byref(status))
    return status.value


def _capturing(scene: Scene) -> bool:
    return _status(scene) != 0


@pytest.fixture(scope="module")
def hip(sim_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hip]:
    folder = tmp_path_factory.mktemp("sim")
    with sim_kernels.private_simulator(sim_library, folder, "gfx950", shared=False) as hip:
        yield hip


@pytest.fixture(scope="module")
def scene(hip: Hip, assemble: Assemble, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    function = hip.function(hip.load_module(assemble(sim_kernels.add())), "add_step")
    other = assemble(sim_kernels.add("gfx1151"), "gfx1151").read_bytes()
    stream = c_void_p()
    hip.call("hipStreamCreate", byref(stream))
    return Scene(hip, stream, function, hip.malloc(256), other, tmp_path_factory.mktemp("files"))


def code_of(scene: Scene, call: Call) -> int:
    function, *args = call(scene)
    return int(getattr(scene.hip.library, function)(*args))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: re.sub(r"[^\w]+", "-", row.what).strip("-"))
def test_outside_and_inside_a_capture(scene: Scene, row: Row) -> None:
    assert code_of(scene, row.call) == row.outside
    scene.hip.call("hipStreamBeginCapture", scene.stream, 0)
    try:
        assert code_of(scene, row.call) == row.inside
        assert _status(scene) == row.after
    finally:
        graph = c_void_p()
        ended = scene.hip.library.hipStreamEndCapture(scene.stream, byref(graph))
    assert ended == (901 if row.after == 2 else 0)
    scene.hip.call("hipDeviceSynchronize")  # a call that was refused has done nothing


def test_a_spoilt_capture_takes_no_more_work(scene: Scene) -> None:
    scene.hip.call("hipStreamBeginCapture", scene.stream, 0)
    assert code_of(scene, lambda s: ("hipMalloc", byref(c_void_p()), c_size_t(4))) == 900
    assert code_of(scene, lambda s: s.launch()) == 901
    assert scene.hip.library.hipStreamEndCapture(scene.stream, byref(c_void_p())) == 901


def test_the_page_has_every_row(repo_root: Path) -> None:
    page = (repo_root / "docs/hip-surface.md").read_text()
    for row in ROWS:
        wanted = f"| {row.outside} | {row.inside} | {STATES[row.after]} | {row.what} |"
        assert wanted in page, f"docs/hip-surface.md lacks: {wanted}"
    listed = {int(n) for n in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)}
    assert {row.outside for row in ROWS} | set(ELSEWHERE) <= listed


# ---- registered memory, occupancy, cooperative launches ------------------------------------------


def test_registered_memory_is_reached_by_kernels(scene: Scene) -> None:
    hip = scene.hip
    array = create_string_buffer(256)
    hip.call("hipHostRegister", array, c_size_t(256), 0)
    device, attributes = c_void_p(), create_string_buffer(32)
    hip.call("hipHostGetDevicePointer", byref(device), array, 0)
    assert device.value == addressof(array)
    hip.call("hipPointerGetAttributes", attributes, array)
    assert struct.unpack_from("<i", attributes.raw)[0] == 1  # host
    function, *args = scene.launch(extra=struct.pack("<QI4x", addressof(array), 3))
    hip.call(function, *args)
    hip.call("hipDeviceSynchronize")
    assert set(struct.unpack("<64I", array.raw)) == {3}
    assert hip.library.hipHostRegister(array, c_size_t(4), 0) == 712
    assert hip.library.hipHostFree(array) == 1
    hip.call("hipHostUnregister", array)
    assert hip.library.hipHostUnregister(array) == 713
    assert hip.library.hipHostRegister(None, c_size_t(4), 0) == 1


def test_occupancy(scene: Scene) -> None:
    hip, function = scene.hip, c_void_p(scene.function)
    blocks, grid, block = c_int(-1), c_int(-1), c_int(-1)
    ask = "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor"
    with_flags = "hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags"
    for size, lds, want in ((64, 0, 32), (64, 16 << 10, 9), (64, 160 << 10, 1), (64, 1 << 18, 0),
                            (1025, 0, 0)):  # fmt: skip
        hip.call(ask, byref(blocks), function, size, c_size_t(lds))
        assert blocks.value == want, (size, lds)
        hip.call(with_flags, byref(blocks), function, size, c_size_t(lds), 1)
        assert blocks.value == want
    for name, more in (("hipModuleOccupancyMaxPotentialBlockSize", ()),
                       ("hipModuleOccupancyMaxPotentialBlockSizeWithFlags", (0,))):  # fmt: skip
        hip.call(name, byref(grid), byref(block), function, c_size_t(0), 0, *more)
        assert (grid.value, block.value) == (2 * 256, 1024)  # of equals the largest
    assert hip.library.hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
        byref(blocks), c_void_p(8), 64, c_size_t(0)) == 98  # fmt: skip
    assert getattr(hip.library, ask)(None, function, 64, c_size_t(0)) == 1
    assert getattr(hip.library, ask)(byref(blocks), function, 0, c_size_t(0)) == 1
    assert getattr(hip.library, with_flags)(
        byref(blocks), function, 64, c_size_t(0), 2) == 1  # fmt: skip


def test_a_cooperative_launch_that_fits(scene: Scene) -> None:
    hip = scene.hip
    hip.upload(scene.data, bytes(256))
    pointer, step = c_void_p(scene.data), c_int(4)
    values = (c_void_p * 2)(addressof(pointer), addressof(step))
    hip.call("hipModuleLaunchCooperativeKernel", c_void_p(scene.function), 1, 1, 1, 64, 1, 1, 0,
             scene.stream, values)  # fmt: skip
    assert set(struct.unpack("<64I", hip.download(scene.data, 256))) == {4}


def test_a_graph_whose_memory_is_gone_faults(scene: Scene) -> None:
    hip, graph = scene.hip, c_void_p()
    lost = hip.malloc(64)
    hip.call("hipGraphCreate", byref(graph), 0)
    node(hip, "hipGraphAddMemsetNode", graph, [], byref(Fill(lost, 4, 1, 0, 1, 16)))
    executable = instantiated(hip, graph)
    hip.free(lost)
    hip.call("hipGraphLaunch", executable, None)
    assert hip.library.hipDeviceSynchronize() == 700
    hip.call("netraSimReset")
    hip.call("hipGraphExecDestroy", executable)
    hip.call("hipGraphDestroy", graph)
