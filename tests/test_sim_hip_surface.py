"""Every HIP function that the simulator exports is named by a test; the small ones by these."""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Iterator
from ctypes import byref, c_int, c_size_t, c_ubyte, c_ulonglong, c_ushort, c_void_p
from pathlib import Path

import pytest
from netra_sim.hip import Hip, HipError

sys.path.insert(0, str(Path(__file__).resolve().parent / "fixtures"))

import sim_kernels  # noqa: E402


def test_every_export_has_a_test(repo_root: Path) -> None:
    exported = set(re.findall(r"^\s+(hip\w+);", (repo_root / "sim/core/hip.map").read_text(),
                              re.MULTILINE))
    assert len(exported) > 90
    sources = [*repo_root.glob("tests/test_sim*.py"), *repo_root.glob("tests/programs/*.c"),
               repo_root / "sim/netra_sim/hip.py"]
    named = set(re.findall(r"\bhip\w+", "\n".join(path.read_text() for path in sources)))
    assert exported <= named, f"no test names {sorted(exported - named)}"


@pytest.fixture(scope="module")
def hip(sim_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hip]:
    folder = tmp_path_factory.mktemp("sim")
    with sim_kernels.private_simulator(sim_library, folder, "gfx950,gfx1151") as hip:
        yield hip


def code(hip: Hip, function: str, *args: object) -> int:
    with pytest.raises(HipError) as caught:
        hip.call(function, *args)
    return caught.value.code


def test_devices(hip: Hip) -> None:
    device, size = c_int(-1), c_size_t()
    hip.call("hipDeviceGet", byref(device), 1)
    assert device.value == 1
    assert code(hip, "hipDeviceGet", byref(device), 2) == 101
    assert code(hip, "hipDeviceGet", None, 0) == 1
    hip.call("hipDeviceTotalMem", byref(size), 1)
    assert size.value == 96 << 30
    assert code(hip, "hipDeviceTotalMem", byref(size), 2) == 101
    old, same = (ctypes.create_string_buffer(792) for _ in range(2))
    hip.call("hipGetDevicePropertiesR0000", old, 1)
    hip.call("hipGetDeviceProperties", same, 1)
    assert old.raw == same.raw and old.raw[396:403] == b"gfx1151"


def test_gfx1151_counts_workgroup_processors(hip: Hip) -> None:
    value = c_int()
    for device, processors, units in ((0, 256, 256), (1, 20, 40)):
        for attribute, expected in ((63, processors), (10015, units)):
            hip.call("hipDeviceGetAttribute", byref(value), attribute, device)
            assert value.value == expected


def test_host_memory_and_narrow_fills(hip: Hip) -> None:
    host, device = c_void_p(), c_void_p()
    hip.call("hipHostMalloc", byref(host), c_size_t(16), 0)
    hip.call("hipHostGetDevicePointer", byref(device), host, 0)
    assert device.value == host.value
    assert code(hip, "hipHostGetDevicePointer", byref(device), None, 0) == 1
    hip.call("hipMemsetD16", host, c_ushort(0x0102), c_size_t(4))
    hip.call("hipMemsetD8", host, c_ubyte(9), c_size_t(3))
    assert ctypes.string_at(host.value or 0, 10) == b"\t\t\t\1\2\1\2\1\0\0"
    assert code(hip, "hipMemsetD16", host, c_ushort(0), c_size_t(9)) == 1
    assert code(hip, "hipMemsetD8", host, c_ubyte(0), c_size_t(17)) == 1
    hip.call("hipHostFree", host)


def test_capture_info(hip: Hip) -> None:
    stream, graph, status, number = c_void_p(), c_void_p(), c_int(-1), c_ulonglong()
    hip.call("hipStreamCreate", byref(stream))
    assert code(hip, "hipStreamCreate", None) == 1
    hip.call("hipStreamGetCaptureInfo", stream, byref(status), byref(number))
    assert (status.value, number.value) == (0, 0)
    hip.call("hipStreamBeginCapture", stream, 2)
    hip.call("hipStreamGetCaptureInfo", stream, byref(status), byref(number))
    assert status.value == 1 and number.value > 0
    hip.call("hipStreamEndCapture", stream, byref(graph))
    assert code(hip, "hipStreamGetCaptureInfo", stream, None, None) == 1
    hip.call("hipStreamDestroy", stream)
