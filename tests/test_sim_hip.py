"""The simulator's HIP functions through their C ABI: devices, memory, modules, launches, faults."""

from __future__ import annotations

import ctypes
import os
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_void_p
from pathlib import Path

import pytest
import sim_kernels
from netra_sim.hip import Hip, HipError
from sim_kernels import POINTER, VALUE

Assemble = Callable[..., Path]

INVALID_VALUE, OUT_OF_MEMORY, INVALID_CONFIGURATION = 1, 2, 9
NO_DEVICE, INVALID_DEVICE = 100, 101
INVALID_IMAGE, NO_BINARY, INVALID_KERNEL_FILE = 200, 209, 218
FILE_NOT_FOUND, INVALID_HANDLE, NOT_FOUND = 301, 400, 500
ILLEGAL_ADDRESS, CONTEXT_DESTROYED, LAUNCH_FAILURE, NOT_SUPPORTED = 700, 709, 719, 801
H2H, H2D, D2H, D2D, DEFAULT = 0, 1, 2, 3, 4


@pytest.fixture(scope="module")
def hip(sim_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hip]:
    """Device 0 is a gfx950, device 1 a gfx1151."""
    folder = tmp_path_factory.mktemp("sim")
    with sim_kernels.private_simulator(sim_library, folder, "gfx950,gfx1151", shared=False) as hip:
        yield hip


@pytest.fixture(autouse=True)
def clean(hip: Hip) -> Iterator[None]:
    yield
    hip.call("netraSimReset")
    hip.call("hipSetDevice", 0)
    hip.library.hipGetLastError()


def refused(hip: Hip, code: int, function: str, *args: object) -> str:
    """The call fails with the code; returns the simulator's sentence."""
    with pytest.raises(HipError) as caught:
        hip.call(function, *args)
    assert caught.value.code == code, str(caught.value)
    return caught.value.detail


def load(hip: Hip, path: Path, name: str) -> int:
    return hip.function(hip.load_module(path), name)


def words(data: bytes) -> list[int]:
    return list(struct.unpack(f"<{len(data) // 4}I", data))


# ---- devices -----------------------------------------------------------------------------------


def attribute(hip: Hip, number: int, device: int) -> int:
    value = c_int()
    hip.call("hipDeviceGetAttribute", byref(value), number, device)
    return value.value


def test_devices(hip: Hip) -> None:
    count = c_int()
    hip.call("hipInit", 0)
    hip.call("hipGetDeviceCount", byref(count))
    assert count.value == 2
    hip.call("hipSetDevice", 1)
    hip.call("hipGetDevice", byref(count))
    assert count.value == 1
    name = ctypes.create_string_buffer(64)
    hip.call("hipDeviceGetName", name, 64, 1)
    assert name.value == b"Netra simulator (gfx1151)"
    hip.call("hipDeviceGetName", name, 6, 0)
    assert name.value == b"Netra"
    assert refused(hip, INVALID_DEVICE, "hipSetDevice", 2)
    refused(hip, INVALID_VALUE, "hipInit", 1)
    version = c_int()
    hip.call("hipRuntimeGetVersion", byref(version))
    assert version.value // 10_000_000 == 7
    hip.call("hipDriverGetVersion", byref(version))


@pytest.mark.parametrize(
    "symbol, size, fields",
    [
        ("hipGetDevicePropertiesR0600", 1472,
         {"lds": 296, "warp": 308, "threads": 320, "major": 360, "cus": 388, "arch": 1160}),
        ("hipGetDeviceProperties", 792,
         {"lds": 264, "warp": 276, "threads": 280, "major": 328, "cus": 336, "arch": 396}),
    ],
)
def test_property_layouts(hip: Hip, symbol: str, size: int, fields: dict[str, int]) -> None:
    def number(data: bytes, field: str) -> int:
        return int(struct.unpack_from("<i", data, fields[field])[0])

    for device, arch, warp, lds, major in (
        (0, b"gfx950:sramecc+:xnack-", 64, 163840, 9),
        (1, b"gfx1151", 32, 65536, 11),
    ):
        data = ctypes.create_string_buffer(b"\x5a" * 4096, 4096)
        hip.call(symbol, data, device)
        raw = data.raw
        assert raw[fields["arch"] :].split(b"\0")[0] == arch
        assert number(raw, "warp") == warp == attribute(hip, 87, device)
        assert number(raw, "lds") == lds == attribute(hip, 74, device)
        assert number(raw, "major") == major
        assert number(raw, "threads") == 1024
        assert number(raw, "cus") == attribute(hip, 63, device)
        assert set(raw[size:]) == {0x5A}, "wrote past the structure"
    refused(hip, INVALID_DEVICE, symbol, ctypes.create_string_buffer(4096), 2)
    refused(hip, INVALID_VALUE, symbol, None, 0)


def test_attributes(hip: Hip) -> None:
    assert attribute(hip, 10020, 0) == 0x75A0  # PciChipId
    assert attribute(hip, 63, 1) * 2 == attribute(hip, 10015, 1)  # workgroup processors
    assert attribute(hip, 84, 0) == 2**31 - 1  # more memory than an int holds
    assert "attribute 5000" in refused(
        hip, INVALID_VALUE, "hipDeviceGetAttribute", byref(c_int()), 5000, 0
    )


@pytest.mark.parametrize("devices, count", [("gfx950", 1), ("", 1), (" gfx1151 , gfx950 ", 2)])
def test_device_list(sim_library: Path, devices: str, count: int) -> None:
    done = in_a_process(sim_library, devices, "print(lib.hipInit(0), count())")
    assert done.stdout.split() == ["0", str(count)], done.stderr


@pytest.mark.parametrize("devices", ["gfx90a", "gfx950,gfx1", "gfx950,", "sim"])
def test_unknown_device(sim_library: Path, devices: str) -> None:
    done = in_a_process(sim_library, devices, "print(lib.hipInit(0), count())")
    assert done.stdout.split() == [str(NO_DEVICE), "0"]
    assert "unknown device" in done.stderr and "gfx950 and gfx1151" in done.stderr
    assert done.returncode == 0


def in_a_process(library: Path, devices: str, code: str) -> subprocess.CompletedProcess[str]:
    script = f"""
import ctypes
lib = ctypes.CDLL({str(library)!r})
def count():
    n = ctypes.c_int(-1)
    lib.hipGetDeviceCount(ctypes.byref(n))
    return n.value
{code}
"""
    environment = {**os.environ, "NETRA_SIM_DEVICES": devices}
    return subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=60
    )


# ---- errors ------------------------------------------------------------------------------------


def test_error_names(hip: Hip) -> None:
    text = hip.library.hipGetErrorString
    text.restype = c_char_p
    assert hip.error_name(0) == "hipSuccess"
    assert hip.error_name(209) == "hipErrorNoBinaryForGpu"
    assert hip.error_name(901) == "hipErrorStreamCaptureInvalidated"
    assert hip.error_name(12345) == "hipErrorUnknown"
    assert text(700) == b"an illegal memory access was encountered"


def test_last_error(hip: Hip) -> None:
    refused(hip, INVALID_DEVICE, "hipSetDevice", 9)
    hip.call("hipSetDevice", 0)  # a success does not clear it
    assert hip.library.hipPeekAtLastError() == INVALID_DEVICE
    assert hip.library.hipGetLastError() == INVALID_DEVICE
    assert hip.library.hipGetLastError() == 0


# ---- memory ------------------------------------------------------------------------------------


def test_memory_is_zero_and_high(hip: Hip) -> None:
    pointer = hip.malloc(1000)
    assert pointer > 2**32
    assert hip.download(pointer, 1000) == bytes(1000)
    hip.free(pointer)


def test_copies(hip: Hip) -> None:
    a, b = hip.malloc(64), hip.malloc(64)
    data = bytes(range(64))
    hip.call("hipMemcpyHtoD", c_void_p(a), data, c_size_t(64))
    hip.call("hipMemcpyDtoD", c_void_p(b), c_void_p(a), c_size_t(64))
    out = ctypes.create_string_buffer(64)
    hip.call("hipMemcpyDtoH", out, c_void_p(b), c_size_t(64))
    assert out.raw == data
    hip.call("hipMemcpyAsync", c_void_p(b), c_void_p(a + 1), c_size_t(8), DEFAULT, None)
    assert hip.download(b, 9) == data[1:9] + data[8:9]
    hip.call("hipMemcpy", out, data[::-1], c_size_t(64), H2H)
    assert out.raw == data[::-1]
    hip.call("hipMemcpy", None, None, c_size_t(0), H2D)
    for function, args in (
        ("hipMemcpyHtoDAsync", (c_void_p(a), data[::-1])),
        ("hipMemcpyDtoDAsync", (c_void_p(b), c_void_p(a))),
        ("hipMemcpyDtoHAsync", (out, c_void_p(b))),
    ):
        hip.call(function, *args, c_size_t(64), None)
    assert out.raw == data[::-1]


def test_fills(hip: Hip) -> None:
    pointer = hip.malloc(16)
    hip.call("hipMemset", c_void_p(pointer), 0x1FF, c_size_t(16))
    assert hip.download(pointer, 16) == b"\xff" * 16
    hip.call("hipMemsetD32", c_void_p(pointer + 4), 0x01020304, c_size_t(2))
    assert hip.download(pointer, 16) == b"\xff" * 4 + b"\x04\x03\x02\x01" * 2 + b"\xff" * 4
    hip.call("hipMemsetD16Async", c_void_p(pointer), 0x0506, c_size_t(1), None)
    hip.call("hipMemsetD8Async", c_void_p(pointer + 2), 7, c_size_t(1), None)
    assert hip.download(pointer, 4) == b"\x06\x05\x07\xff"
    assert "not aligned" in refused(
        hip, INVALID_VALUE, "hipMemsetD32", c_void_p(pointer + 2), 0, c_size_t(1)
    )
    assert "past the end" in refused(
        hip, INVALID_VALUE, "hipMemset", c_void_p(pointer), 0, c_size_t(17)
    )


def test_host_pointer_where_a_device_pointer_is_due(hip: Hip) -> None:
    device, host = hip.malloc(8), ctypes.create_string_buffer(8)
    for args in (
        (host, host, c_size_t(8), H2D),
        (host, host, c_size_t(8), D2H),
        (c_void_p(device), host, c_size_t(8), D2D),
        (host, c_void_p(device), c_size_t(8), D2D),
    ):
        assert "is a host pointer" in refused(hip, INVALID_VALUE, "hipMemcpy", *args)
    assert "is a host pointer" in refused(hip, INVALID_VALUE, "hipMemset", host, 0, c_size_t(8))
    refused(hip, 21, "hipMemcpy", c_void_p(device), host, c_size_t(8), 9)


def test_bounds_of_copies(hip: Hip) -> None:
    pointer, host = hip.malloc(100), ctypes.create_string_buffer(200)
    text = refused(hip, INVALID_VALUE, "hipMemcpy", host, c_void_p(pointer), c_size_t(101), D2H)
    assert "101 bytes" in text and "hipMalloc#" in text and "(100 bytes)" in text
    refused(hip, INVALID_VALUE, "hipMemcpy", c_void_p(pointer + 99), host, c_size_t(2), H2D)
    refused(hip, INVALID_VALUE, "hipMemcpy", host, c_void_p(pointer), c_size_t(2**64 - 1), D2H)
    text = refused(hip, INVALID_VALUE, "hipMemcpy", host, c_void_p(pointer + 4096), c_size_t(1), 4)
    assert "past the end of hipMalloc#" in text


def test_frees(hip: Hip) -> None:
    pointer = hip.malloc(100)
    text = refused(hip, INVALID_VALUE, "hipFree", c_void_p(pointer + 4))
    assert "at byte 4 of hipMalloc#" in text
    refused(hip, INVALID_VALUE, "hipHostFree", c_void_p(pointer))
    hip.free(pointer)
    refused(hip, INVALID_VALUE, "hipFree", c_void_p(pointer))
    hip.call("hipFree", None)
    out = c_void_p(1)
    hip.call("hipMalloc", byref(out), c_size_t(0))
    assert out.value is None
    host = ctypes.create_string_buffer(8)
    refused(hip, INVALID_VALUE, "hipFree", host)
    text = refused(hip, INVALID_VALUE, "hipMemcpy", host, c_void_p(pointer), c_size_t(8), D2H)
    assert "no live allocation" in text


def test_out_of_memory(hip: Hip) -> None:
    free, total = c_size_t(), c_size_t()
    hip.call("hipMemGetInfo", byref(free), byref(total))
    before = free.value
    big = hip.malloc(before // 2)  # reserved, not touched
    hip.call("hipMemGetInfo", byref(free), byref(total))
    assert free.value == before - before // 2 and total.value >= before
    for size in (before, 2**63, 2**64 - 1):
        refused(hip, OUT_OF_MEMORY, "hipMalloc", byref(c_void_p()), c_size_t(size))
    hip.free(big)
    hip.call("hipMemGetInfo", byref(free), byref(total))
    assert free.value == before


def test_pointer_questions(hip: Hip) -> None:
    pointer, host = hip.malloc(4096), c_void_p()
    hip.call("hipHostMalloc", byref(host), c_size_t(64), 0)
    ctypes.memmove(host.value or 0, b"abc", 3)
    attributes = ctypes.create_string_buffer(32)

    def fields() -> tuple[int, ...]:
        return struct.unpack_from("<iiQQ", attributes.raw)

    hip.call("hipPointerGetAttributes", attributes, c_void_p(pointer + 8))
    assert fields() == (2, 0, pointer + 8, 0)
    hip.call("hipPointerGetAttributes", attributes, host)
    assert fields() == (1, 0, host.value, host.value)
    hip.call("hipPointerGetAttributes", attributes, ctypes.create_string_buffer(4))
    assert fields()[0] == 0
    refused(hip, INVALID_VALUE, "hipPointerGetAttributes", attributes, None)

    out = c_size_t()
    for number, expected in ((11, pointer), (12, 4096), (3, pointer + 8)):
        hip.call("hipPointerGetAttribute", byref(out), number, c_void_p(pointer + 8))
        assert out.value == expected
    kind = c_uint()
    hip.call("hipPointerGetAttribute", byref(kind), 2, c_void_p(pointer))
    assert kind.value == 2
    refused(hip, INVALID_VALUE, "hipPointerGetAttribute", byref(out), 4, c_void_p(pointer))
    hip.call("hipPointerGetAttribute", byref(out), 4, host)
    assert out.value == host.value

    base, size = c_void_p(), c_size_t()
    hip.call("hipMemGetAddressRange", byref(base), byref(size), c_void_p(pointer + 4095))
    assert (base.value, size.value) == (pointer, 4096)
    refused(hip, NOT_FOUND, "hipMemGetAddressRange", byref(base), byref(size),
            c_void_p(pointer + 4096))
    hip.call("hipHostFree", host)


# ---- modules -----------------------------------------------------------------------------------


def test_module(hip: Hip, assemble: Assemble) -> None:
    table = "        .data\n        .globl table\n        .type table,@object\n        .p2align 3\n"
    table += "table:  .quad add_step, table\n        .size table, 16\n"
    module = hip.load_module(assemble(sim_kernels.add(extra_text=table)))
    function = hip.function(module, "add_step")
    count = c_uint()
    hip.call("hipModuleGetFunctionCount", byref(count), c_void_p(module))
    assert count.value == 1
    text = refused(hip, NOT_FOUND, "hipModuleGetFunction", byref(c_void_p()), c_void_p(module),
                   b"add_stop")
    assert "no kernel add_stop; it has add_step" in text

    address, size = c_void_p(), c_size_t()
    hip.call("hipModuleGetGlobal", byref(address), byref(size), c_void_p(module), b"table")
    assert size.value == 16
    code, itself = struct.unpack("<QQ", hip.download(address.value or 0, 16))  # relocated
    assert itself == address.value and code != 0
    refused(hip, NOT_FOUND, "hipModuleGetGlobal", byref(address), byref(size), c_void_p(module),
            b"add_step")

    value = c_int()
    for number, expected in ((0, 1024), (1, 0), (3, 0), (4, 8), (8, 163840)):
        hip.call("hipFuncGetAttribute", byref(value), number, c_void_p(function))
        assert value.value == expected
    hip.unload_module(module)
    refused(hip, INVALID_HANDLE, "hipModuleUnload", c_void_p(module))
    refused(hip, 98, "hipFuncGetAttribute", byref(value), 0, c_void_p(function))
    refused(hip, INVALID_HANDLE, "hipModuleLaunchKernel", c_void_p(function), *[1] * 6, 0, None,
            None, None)


def test_module_from_memory(hip: Hip, assemble: Assemble) -> None:
    image = assemble(sim_kernels.add()).read_bytes()
    module = c_void_p()
    hip.call("hipModuleLoadDataEx", byref(module), image, 0, None, None)
    assert hip.function(module.value or 0, "add_step")
    hip.unload_module(module.value or 0)
    for wrong in (b"", b"\x7fELF", image[:200], b"<html>" + bytes(100)):
        padded = ctypes.create_string_buffer(wrong, len(wrong) + 4096)
        refused(hip, INVALID_IMAGE, "hipModuleLoadData", byref(module), padded)
    refused(hip, INVALID_VALUE, "hipModuleLoadData", byref(module), None)


def test_truncated_image_at_the_end_of_memory(hip: Hip, assemble: Assemble) -> None:
    """The headers promise more than can be read: an error, not a crash."""
    import mmap

    image = assemble(sim_kernels.add()).read_bytes()
    pages = mmap.mmap(-1, 2 * mmap.PAGESIZE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    libc = ctypes.CDLL(None)
    assert libc.mprotect(c_void_p(start + mmap.PAGESIZE), c_size_t(mmap.PAGESIZE), 0) == 0
    cut = image[: min(len(image) - 1, 512)]
    where = start + mmap.PAGESIZE - len(cut)
    ctypes.memmove(where, cut, len(cut))
    text = refused(hip, INVALID_IMAGE, "hipModuleLoadData", byref(c_void_p()), c_void_p(where))
    assert "truncated" in text
    libc.mprotect(c_void_p(start + mmap.PAGESIZE), c_size_t(mmap.PAGESIZE), 3)


def test_module_file_errors(hip: Hip, tmp_path: Path) -> None:
    for path in (tmp_path / "absent.co", tmp_path):
        refused(hip, FILE_NOT_FOUND, "hipModuleLoad", byref(c_void_p()), str(path).encode())
    for content, words_of in ((b"", "empty"), (b"<!DOCTYPE html><p>404", "HTML"),
                              (b"hello", "not an ELF")):
        path = tmp_path / "bad.co"
        path.write_bytes(content)
        text = refused(hip, INVALID_IMAGE, "hipModuleLoad", byref(c_void_p()), str(path).encode())
        assert words_of in text and str(path) in text


def test_object_of_another_target(hip: Hip, assemble: Assemble) -> None:
    path = str(assemble(sim_kernels.add())).encode()
    hip.call("hipSetDevice", 1)
    text = refused(hip, NO_BINARY, "hipModuleLoad", byref(c_void_p()), path)
    assert "object gfx950, device gfx1151" in text


def test_kernarg_sizes_that_disagree(hip: Hip, assemble: Assemble) -> None:
    path = str(assemble(sim_kernels.add(metadata_kernarg=24))).encode()
    text = refused(hip, INVALID_KERNEL_FILE, "hipModuleLoad", byref(c_void_p()), path)
    assert "add_step: the metadata says kernarg size 24, the kernel descriptor says 16" in text


def test_offload_bundle(hip: Hip, assemble: Assemble, llvm_bin: Path, tmp_path: Path) -> None:
    objects = {arch: assemble(sim_kernels.add(arch), arch) for arch in ("gfx950", "gfx1151")}
    bundle = bytearray(b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", 3))
    entries = [("host-x86_64-unknown-linux-gnu--", b"")]
    entries += [(f"hipv4-amdgcn-amd-amdhsa--{arch}:xnack-", path.read_bytes())
                for arch, path in objects.items()]
    offset = 4096
    body = b""
    for name, content in entries:
        bundle += struct.pack("<QQQ", offset + len(body), len(content), len(name)) + name.encode()
        body += content
    image = bytes(bundle.ljust(offset, b"\0") + body)
    for device in (0, 1):
        hip.call("hipSetDevice", device)
        module = c_void_p()
        hip.call("hipModuleLoadData", byref(module), image)
        run_add(hip, hip.function(module.value or 0, "add_step"))
    path = tmp_path / "bundle.co"
    path.write_bytes(image[:-1])
    text = refused(hip, INVALID_IMAGE, "hipModuleLoad", byref(c_void_p()), str(path).encode())
    assert "truncated" in text
    path.write_bytes(b"CCOB" + bytes(60))
    text = refused(hip, INVALID_IMAGE, "hipModuleLoad", byref(c_void_p()), str(path).encode())
    assert "compressed" in text
    path.write_bytes(image.replace(b"gfx1151:", b"gfx1150:"))
    text = refused(hip, NO_BINARY, "hipModuleLoad", byref(c_void_p()), str(path).encode())
    assert "gfx1151" in text and "gfx950, gfx1150" in text


# ---- launches ----------------------------------------------------------------------------------


def run_add(hip: Hip, function: int, groups: int = 3) -> None:
    pointer = hip.malloc(256 * groups)
    hip.upload(pointer, struct.pack(f"<{64 * groups}I", *range(64 * groups)))
    hip.launch(function, (groups, 1, 1), (64, 1, 1), struct.pack("<QI4x", pointer, 1000))
    hip.synchronize()
    assert words(hip.download(pointer, 256 * groups)) == [n + 1000 for n in range(64 * groups)]
    hip.free(pointer)


@pytest.mark.parametrize("device, arch", [(0, "gfx950"), (1, "gfx1151")])
def test_launch(hip: Hip, assemble: Assemble, device: int, arch: str) -> None:
    hip.call("hipSetDevice", device)
    run_add(hip, load(hip, assemble(sim_kernels.add(arch), arch), "add_step"))


HIDDEN = (
    ("out", 0, 8, POINTER), ("byte", 8, 1, VALUE), ("half", 10, 2, VALUE), ("word", 12, 4, VALUE),
    ("", 16, 4, "hidden_block_count_x"), ("", 20, 4, "hidden_block_count_y"),
    ("", 24, 4, "hidden_block_count_z"), ("", 28, 2, "hidden_group_size_x"),
    ("", 30, 2, "hidden_group_size_y"), ("", 32, 2, "hidden_group_size_z"),
    ("", 34, 2, "hidden_remainder_x"), ("", 36, 2, "hidden_remainder_y"),
    ("", 38, 2, "hidden_remainder_z"), ("", 56, 8, "hidden_global_offset_x"),
    ("", 64, 8, "hidden_global_offset_y"), ("", 72, 8, "hidden_global_offset_z"),
    ("", 80, 2, "hidden_grid_dims"), ("", 88, 8, "hidden_printf_buffer"),
    ("", 136, 4, "hidden_dynamic_lds_size"),
)


@pytest.mark.parametrize("form", ["params", "extra"])
@pytest.mark.parametrize("device, arch", [(0, "gfx950"), (1, "gfx1151")])
def test_arguments(hip: Hip, assemble: Assemble, device: int, arch: str, form: str) -> None:
    """Explicit and hidden arguments arrive at their offsets; what none covers is poison."""
    hip.call("hipSetDevice", device)
    size = 144
    function = load(hip, assemble(sim_kernels.echo(HIDDEN, size, arch), arch), "echo")
    out = hip.malloc(size)
    values = [c_void_p(out), ctypes.c_uint8(0x11), ctypes.c_uint16(0x2233), c_uint(0x44556677)]
    dims = [c_uint(n) for n in (1, 2, 3, 64, 1, 1, 512)]
    if form == "params":
        params = (c_void_p * 4)(*[ctypes.addressof(v) for v in values])
        hip.call("hipModuleLaunchKernel", c_void_p(function), *dims, None, params, None)
    else:
        data = struct.pack("<QBxHI", out, 0x11, 0x2233, 0x44556677)
        hip.launch(function, (1, 2, 3), (64, 1, 1), data, lds=512)
    got = hip.download(out, size)
    assert got[:16] == struct.pack("<QB", out, 0x11) + b"\xa5" + struct.pack("<HI", 0x2233,
                                                                             0x44556677)
    assert struct.unpack_from("<3I6H", got, 16) == (1, 2, 3, 64, 1, 1, 0, 0, 0)
    assert got[40:56] == b"\xa5" * 16
    assert struct.unpack_from("<3QH", got, 56) == (0, 0, 0, 3)
    assert struct.unpack_from("<Q", got, 88) == (0,)
    assert struct.unpack_from("<I", got, 136) == (512,)


def test_code_object_version_4(hip: Hip, assemble: Assemble) -> None:
    args = (("out", 0, 8, POINTER), ("", 8, 8, "hidden_global_offset_x"))
    text = sim_kernels.echo(args, 16, version=4).replace("amdhsa.version: [1, 2]",
                                                         "amdhsa.version: [1, 1]")
    function = load(hip, assemble(text), "echo")
    out = hip.malloc(16)
    hip.launch(function, (1, 1, 1), (64, 1, 1), struct.pack("<Q", out))
    assert hip.download(out, 16) == struct.pack("<QQ", out, 0)


def test_argument_forms(hip: Hip, assemble: Assemble) -> None:
    function = c_void_p(load(hip, assemble(sim_kernels.add()), "add_step"))
    dims = [c_uint(n) for n in (1, 1, 1, 64, 1, 1, 0)]
    data, size = ctypes.create_string_buffer(16), c_size_t(16)
    params = (c_void_p * 2)(ctypes.addressof(data), ctypes.addressof(data))

    def extra(*items: int | None) -> ctypes.Array[c_void_p]:
        return (c_void_p * 5)(*items)

    def wrong(*forms: object) -> str:
        return refused(hip, INVALID_VALUE, "hipModuleLaunchKernel", function, *dims, None, *forms)

    good = extra(1, ctypes.addressof(data), 2, ctypes.addressof(size), 3)
    assert "both given" in wrong(params, good)
    assert "takes 2 arguments, and none" in wrong(None, None)
    assert "is null" in wrong((c_void_p * 2)(ctypes.addressof(data), None), None)
    assert "extra is not" in wrong(None, extra(2, ctypes.addressof(size), 1, 0, 3))
    assert "buffer is null" in wrong(None, extra(1, None, 2, ctypes.addressof(size), 3))
    size.value = 11
    assert "step ends at byte 12 and the argument buffer has 11" in wrong(None, good)


@pytest.mark.parametrize(
    "grid, block, lds, code, text",
    [
        ((0, 1, 1), (64, 1, 1), 0, INVALID_VALUE, "grid 0 x 1 x 1 is empty"),
        ((1, 1, 1), (64, 0, 1), 0, INVALID_CONFIGURATION, "block 64 x 0 x 1 is empty"),
        ((2**31, 1, 1), (1, 1, 1), 0, INVALID_CONFIGURATION, "larger than"),
        ((1, 65537, 1), (1, 1, 1), 0, INVALID_CONFIGURATION, "larger than"),
        ((1, 1, 65537), (1, 1, 1), 0, INVALID_CONFIGURATION, "larger than"),
        ((2**26, 1, 1), (64, 1, 1), 0, INVALID_CONFIGURATION, "larger than"),
        ((1, 1, 1), (257, 1, 1), 0, LAUNCH_FAILURE, "maximum of 256"),
        ((1, 1, 1), (2**31, 2**31, 4), 0, LAUNCH_FAILURE, "maximum of 256"),
        ((1, 1, 1), (64, 1, 1), 163840, INVALID_VALUE, "of a workgroup"),
        ((1, 1, 1), (64, 1, 1), 163841, INVALID_VALUE, "of a workgroup"),
    ],
)
def test_launch_limits(
    hip: Hip, assemble: Assemble, grid: tuple[int, ...], block: tuple[int, ...], lds: int,
    code: int, text: str,
) -> None:
    function = load(hip, assemble(sim_kernels.add(max_workgroup=256, lds=16)), "add_step")
    with pytest.raises(HipError) as caught:
        hip.launch(function, grid, block, bytes(16), lds=lds)
    assert caught.value.code == code and text in caught.value.detail
    hip.synchronize()  # a refused launch is no fault


def test_ext_launch_counts_work_items(hip: Hip, assemble: Assemble) -> None:
    function = c_void_p(load(hip, assemble(sim_kernels.add()), "add_step"))
    pointer = hip.malloc(512)
    start, stop = c_void_p(), c_void_p()
    hip.call("hipEventCreate", byref(start))
    hip.call("hipEventCreate", byref(stop))
    values = (c_void_p(pointer), c_uint(5))
    params = (c_void_p * 2)(*[ctypes.addressof(v) for v in values])
    shape = [c_uint(n) for n in (128, 1, 1, 64, 1, 1)]
    hip.call("hipExtModuleLaunchKernel", function, *shape, c_size_t(0), None, params, None, start,
             stop, c_uint(0))
    assert words(hip.download(pointer, 512)) == [5] * 128
    gone = ctypes.c_float(-1)
    hip.call("hipEventElapsedTime", byref(gone), start, stop)
    assert gone.value >= 0
    shape[0] = c_uint(100)
    refused(hip, INVALID_CONFIGURATION, "hipExtModuleLaunchKernel", function, *shape, c_size_t(0),
            None, params, None, None, None, c_uint(0))


def test_another_devices_stream(hip: Hip, assemble: Assemble) -> None:
    function = load(hip, assemble(sim_kernels.add()), "add_step")
    hip.call("hipSetDevice", 1)
    with pytest.raises(HipError) as caught:
        hip.launch(function, (1, 1, 1), (64, 1, 1), bytes(16))
    assert caught.value.code == INVALID_HANDLE and "another device" in caught.value.detail


# ---- faults ------------------------------------------------------------------------------------


def test_out_of_bounds_is_sticky(hip: Hip, assemble: Assemble) -> None:
    function = load(hip, assemble(sim_kernels.add()), "add_step")
    pointer = hip.malloc(252)  # one element short
    arguments = struct.pack("<QI4x", pointer, 1)
    hip.launch(function, (1, 1, 1), (64, 1, 1), arguments)  # the launch itself succeeds
    hip.launch(function, (1, 1, 1), (64, 1, 1), arguments)  # and the host does not know yet
    text = refused(hip, ILLEGAL_ADDRESS, "hipDeviceSynchronize")
    assert "add_step" in text and "hipMalloc#" in text and text == hip.last_fault()
    host = ctypes.create_string_buffer(252)
    refused(hip, ILLEGAL_ADDRESS, "hipMemcpy", host, c_void_p(pointer), c_size_t(252), D2H)
    refused(hip, ILLEGAL_ADDRESS, "hipStreamSynchronize", None)
    with pytest.raises(HipError) as caught:
        hip.launch(function, (1, 1, 1), (64, 1, 1), arguments)
    assert caught.value.code == ILLEGAL_ADDRESS

    hip.call("hipSetDevice", 1)
    hip.synchronize()  # another device is well
    hip.call("hipSetDevice", 0)
    hip.call("netraSimReset")
    assert hip.last_fault() == ""
    hip.synchronize()
    hip.free(pointer)
    run_add(hip, function)


def test_freed_memory_faults(hip: Hip, assemble: Assemble) -> None:
    function = load(hip, assemble(sim_kernels.add()), "add_step")
    pointer = hip.malloc(256)
    hip.free(pointer)
    hip.launch(function, (1, 1, 1), (64, 1, 1), struct.pack("<QI4x", pointer, 1))
    refused(hip, ILLEGAL_ADDRESS, "hipDeviceSynchronize")


def test_truncated_pointer_faults(hip: Hip, assemble: Assemble) -> None:
    function = load(hip, assemble(sim_kernels.add()), "add_step")
    pointer = hip.malloc(256)
    hip.launch(function, (1, 1, 1), (64, 1, 1), struct.pack("<QI4x", pointer & 0xFFFFFFFF, 1))
    refused(hip, ILLEGAL_ADDRESS, "hipDeviceSynchronize")


def test_counters_and_seed(hip: Hip, assemble: Assemble) -> None:
    function = load(hip, assemble(sim_kernels.add()), "add_step")
    hip.call("netraSimSetSeed", ctypes.c_uint64(7), 1)
    run_add(hip, function)
    hip.call("netraSimSetSeed", ctypes.c_uint64(0), 0)
    text = c_void_p()
    hip.call("netraSimCounters", byref(text))
    assert b'"instructions":30' in ctypes.string_at(text.value or 0)  # 3 waves of 10
    hip.library.netraSimFree(text)


# ---- what the simulator does not do ------------------------------------------------------------


def test_compiled_in_kernels_are_refused(sim_library: Path) -> None:
    done = in_a_process(
        sim_library, "gfx950",
        "lib.__getattr__('__hipRegisterFatBinary')(None)\n"
        "print(lib.hipLaunchKernel(None, 1, 1, 1, 1, 1, 1, None, 0, None))",
    )
    assert done.stdout.split() == [str(NOT_SUPPORTED)]
    assert done.stderr.count("hipModuleLoad") == 2 and done.stderr.count("\n") == 1


def test_log(sim_library: Path) -> None:
    code = "import os; lib.hipSetDevice(7)"
    os.environ["NETRA_SIM_LOG"] = "1"
    try:
        done = in_a_process(sim_library, "gfx950", code)
    finally:
        del os.environ["NETRA_SIM_LOG"]
    assert done.stderr == (
        "netra: hipSetDevice: hipErrorInvalidDevice (101): device 7 does not exist\n"
    )
