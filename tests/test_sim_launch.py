"""How a wave starts (user and system SGPRs, preloaded and hidden arguments), and what the loader
unpacks and refuses."""

from __future__ import annotations

import ctypes
import hashlib
import itertools
import struct
import sys
import zlib
from collections.abc import Callable, Iterator
from ctypes import byref, c_size_t, c_void_p
from pathlib import Path

import pytest
from netra_sim.hip import Hip, HipError

sys.path.insert(0, str(Path(__file__).resolve().parent / "fixtures"))

import sim_kernels  # noqa: E402
from sim_kernels import POINTER, VALUE  # noqa: E402

Assemble = Callable[..., Path]

INVALID_IMAGE, INVALID_KERNEL_FILE = 200, 218
DEVICES = {"gfx950": 0, "gfx1151": 1}
SHOWN = 24  # SGPRs that the kernel below writes


@pytest.fixture(scope="module")
def hip(sim_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hip]:
    folder = tmp_path_factory.mktemp("sim")
    with sim_kernels.private_simulator(sim_library, folder, ",".join(DEVICES)) as hip:
        yield hip


@pytest.fixture(autouse=True)
def clean(hip: Hip) -> Iterator[None]:
    yield
    hip.call("netraSimReset")
    hip.call("hipSetDevice", 0)


def show(arch: str, kernarg: int, directives: str) -> str:
    """Each wave takes a number from out[0] and writes its first SGPRs behind it; `kernarg` is
    where the kernarg pointer is."""
    nine = arch == "gfx950"
    exec_, add, sc0 = (("s_mov_b64 exec, 1", "global_atomic_add", "sc0") if nine else
                       ("s_mov_b32 exec_lo, 1", "global_atomic_add_u32", "glc"))
    load, store = (("s_load_dwordx2", "global_store_dword") if nine else
                   ("s_load_b64", "global_store_b32"))
    lines = [
        f"{load} s[60:61], s[{kernarg}:{kernarg + 1}], 0x0", "v_mov_b32 v5, 0", "v_mov_b32 v1, 1",
        exec_, "s_waitcnt lgkmcnt(0)", f"{add} v3, v5, v1, s[60:61] {sc0}", "s_waitcnt vmcnt(0)",
        "v_lshlrev_b32 v3, 7, v3",
    ]
    for j in range(SHOWN):
        lines += [f"v_mov_b32 v4, s{j}", f"{store} v3, v4, s[60:61] offset:{128 + 4 * j}"]
    text = sim_kernels.kernel("show", "\n".join([*lines, "s_endpgm"]), (("out", 0, 8, POINTER),),
                              8, arch)
    return (text.replace(".amdhsa_next_free_sgpr 16", ".amdhsa_next_free_sgpr 64")
            .replace(".amdhsa_system_sgpr_workgroup_id_x 1", directives))


def waves(hip: Hip, path: Path, arch: str, grid: tuple[int, int, int], block: int
          ) -> list[tuple[int, ...]]:
    """The SGPRs of each wave."""
    hip.call("hipSetDevice", DEVICES[arch])
    function = hip.function(hip.load_module(path), "show")
    out = hip.malloc(1 << 16)
    hip.launch(function, grid, (block, 1, 1), struct.pack("<Q", out))
    hip.synchronize()
    raw = hip.download(out, 1 << 16)
    count, = struct.unpack_from("<I", raw)
    return [struct.unpack_from(f"<{SHOWN}I", raw, 128 + 128 * k) for k in range(count)]


USER = (("dispatch_ptr", 2), ("queue_ptr", 2), ("kernarg_segment_ptr", 2), ("dispatch_id", 2),
        ("private_segment_size", 1))
CHOICES = [tuple(c) for c in itertools.product((0, 1), repeat=4)]


@pytest.mark.parametrize(
    "arch, chosen",
    [("gfx950", c) for c in CHOICES] + [("gfx1151", c) for c in (CHOICES[0], CHOICES[-1])],
)
def test_user_sgprs(hip: Hip, assemble: Assemble, arch: str, chosen: tuple[int, ...]) -> None:
    """Each combination that both targets have, in AMDGPUUsage's order; workgroup id x follows."""
    on = dict(zip([name for name, _ in USER if name != "kernarg_segment_ptr"], chosen, strict=True))
    on["kernarg_segment_ptr"] = 1
    at, places = 0, {}
    for name, dwords in USER:
        if on[name]:
            places[name] = at
            at += dwords
    directives = "\n".join(f".amdhsa_user_sgpr_{name} 1" for name, bit in on.items()
                           if bit and name != "kernarg_segment_ptr")
    directives += "\n.amdhsa_system_sgpr_workgroup_id_x 1"
    text = show(arch, places["kernarg_segment_ptr"], directives)
    text = text.replace(".amdhsa_group_segment_fixed_size 0", ".amdhsa_group_segment_fixed_size 0\n"
                        ".amdhsa_private_segment_fixed_size 48")
    text = text.replace(".private_segment_fixed_size: 0", ".private_segment_fixed_size: 48")
    found = waves(hip, assemble(text, arch), arch, (3, 1, 1), 64)
    assert sorted({wave[at] for wave in found}) == [0, 1, 2]
    for wave in found:
        def pointer(name: str, wave: tuple[int, ...] = wave) -> int:
            return wave[places[name]] | wave[places[name] + 1] << 32

        if on["dispatch_ptr"]:
            assert pointer("dispatch_ptr") > 2**32 and pointer("dispatch_ptr") % 64 == 0
        if on["dispatch_id"]:
            assert pointer("dispatch_id") == 1
        if on["queue_ptr"]:
            assert pointer("queue_ptr") > 2**32
        assert pointer("kernarg_segment_ptr") > 2**32
        if on["private_segment_size"]:
            assert wave[places["private_segment_size"]] == 48


@pytest.mark.parametrize("arch", DEVICES)
@pytest.mark.parametrize("enabled", list(itertools.product((0, 1), repeat=3)))
def test_workgroup_ids(
    hip: Hip, assemble: Assemble, arch: str, enabled: tuple[int, int, int]
) -> None:
    directives = "\n".join(f".amdhsa_system_sgpr_workgroup_id_{axis} {bit}"
                           for axis, bit in zip("xyz", enabled, strict=True))
    found = waves(hip, assemble(show(arch, 0, directives), arch), arch, (2, 3, 4),
                     64 if arch == "gfx950" else 32)
    axes = [extent for extent, bit in zip((2, 3, 4), enabled, strict=True) if bit]
    seen = sorted(wave[2 : 2 + len(axes)] for wave in found)
    every = itertools.product(range(2), range(3), range(4))
    assert seen == sorted(tuple(i for i, bit in zip(ids, enabled, strict=True) if bit)
                          for ids in every)


# The prologue ends the wave, so anything stored proves that it was skipped.
_PRELOAD = """
        s_endpgm
        .fill 63, 4, 0xbf800000
        v_mov_b32       v1, 0
        v_mov_b32       v2, s%(value)d
        global_store_dword v1, v2, s[2:3]
        s_endpgm
"""


@pytest.mark.parametrize("length, value, expected", [(3, 4, 77), (4, 5, 88)])
def test_preload_skips_the_prologue(
    hip: Hip, assemble: Assemble, length: int, value: int, expected: int
) -> None:
    args = (("out", 0, 8, POINTER), ("first", 8, 4, VALUE), ("second", 12, 4, VALUE))
    text = preloading(sim_kernels.kernel("early", _PRELOAD % {"value": value}, args, 16), length)
    function = hip.function(hip.load_module(assemble(text)), "early")
    out = hip.malloc(4)
    hip.launch(function, (1, 1, 1), (1, 1, 1), struct.pack("<QII", out, 77, 88))
    hip.synchronize()
    assert struct.unpack("<I", hip.download(out, 4)) == (expected,)


def preloading(text: str, length: int) -> str:
    return text.replace(".amdhsa_user_sgpr_kernarg_segment_ptr 1",
                        ".amdhsa_user_sgpr_kernarg_segment_ptr 1\n"
                        f".amdhsa_user_sgpr_kernarg_preload_length {length}")


def refused(hip: Hip, code: int, path: Path) -> str:
    with pytest.raises(HipError) as caught:
        hip.call("hipModuleLoad", byref(c_void_p()), str(path).encode())
    assert caught.value.code == code, str(caught.value)
    return caught.value.detail


@pytest.mark.parametrize(
    "kernarg, preload, text",
    [(8, 3, "preloads up to byte 12 of a kernarg segment of 8"),
     (16, 2 | 3 << 7, "preloads up to byte 20 of a kernarg segment of 16"),
     (64, 15, "asks for 17 user SGPRs; there are 16")],
)
def test_preload_that_cannot_be(
    hip: Hip, assemble: Assemble, tmp_path: Path, kernarg: int, preload: int, text: str
) -> None:
    """The assembler refuses these, so the descriptor's bytes are changed."""
    image = bytearray(assemble(sim_kernels.kernel("early", "s_endpgm", (("out", 0, 8, POINTER),),
                                                  kernarg)).read_bytes())
    at = next(n for n in range(0, len(image), 64)
              if image[n : n + 16] == struct.pack("<IIII", 0, 0, kernarg, 0))
    struct.pack_into("<H", image, at + 58, preload)
    path = tmp_path / "early.co"
    path.write_bytes(image)
    assert text in refused(hip, INVALID_KERNEL_FILE, path)


def test_hidden_addresses(hip: Hip, assemble: Assemble) -> None:
    args = (("out", 0, 8, POINTER), ("", 8, 4, "hidden_private_base"),
            ("", 12, 4, "hidden_shared_base"), ("", 16, 8, "hidden_queue_ptr"),
            ("", 24, 8, "hidden_hostcall_buffer"), ("", 32, 8, "hidden_multigrid_sync_arg"),
            ("", 40, 8, "hidden_heap_v1"))
    function = hip.function(hip.load_module(assemble(sim_kernels.echo(args, 48))), "echo")
    out = hip.malloc(48)
    hip.launch(function, (1, 1, 1), (64, 1, 1), struct.pack("<Q", out))
    hip.synchronize()
    _, private, shared, queue, *nulls = struct.unpack("<QIIQQQQ", hip.download(out, 48))
    assert (private, shared, nulls) == (0x20000, 0x10000, [0, 0, 0])
    assert queue > 2**32


# ---- compressed bundles ------------------------------------------------------------------------


def bundle(assemble: Assemble) -> bytes:
    """Both targets' add_step, as clang-offload-bundler lays them out."""
    head, body = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<Q", 2), b""
    for arch in DEVICES:
        content = assemble(sim_kernels.add(arch), arch).read_bytes()
        name = f"hipv4-amdgcn-amd-amdhsa--{arch}".encode()
        head += struct.pack("<QQQ", 4096 + len(body), len(content), len(name)) + name
        body += content
    return head.ljust(4096, b"\0") + body


def zstd(data: bytes) -> bytes:
    library = ctypes.CDLL("libzstd.so.1")
    for name in ("ZSTD_compress", "ZSTD_compressBound"):
        getattr(library, name).restype = c_size_t
    room = library.ZSTD_compressBound(c_size_t(len(data)))
    out = ctypes.create_string_buffer(room)
    size = library.ZSTD_compress(out, c_size_t(room), data, c_size_t(len(data)), 3)
    return out.raw[:size]


PACK = {0: zlib.compress, 1: zstd}


def compressed(data: bytes, version: int, method: int, unpacked: int | None = None) -> bytes:
    stream = PACK[method](data) if method in PACK else data
    sizes = {1: "<I", 2: "<II", 3: "<QQ"}[version]
    total = 8 + struct.calcsize(sizes) + 8 + len(stream)
    length = len(data) if unpacked is None else unpacked
    fields = (length,) if version == 1 else (total, length)
    digest = hashlib.md5(data, usedforsecurity=False).digest()[:8]
    return (b"CCOB" + struct.pack("<HH", version, method) + struct.pack(sizes, *fields) + digest
            + stream)


@pytest.mark.parametrize("method", PACK, ids=["zlib", "zstd"])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_compressed_bundle(
    hip: Hip, assemble: Assemble, tmp_path: Path, version: int, method: int
) -> None:
    image = compressed(bundle(assemble), version, method)
    path = tmp_path / "bundle.co"
    path.write_bytes(image)
    for device in DEVICES.values():
        hip.call("hipSetDevice", device)
        modules = [hip.load_module(path)]
        if version > 1:  # from memory the header has to tell the length
            modules.append(hip._handle("hipModuleLoadData", image))
        for module in modules:
            data = hip.malloc(256)
            hip.launch(hip.function(module, "add_step"), (1, 1, 1), (64, 1, 1),
                       struct.pack("<QI4x", data, 3))
            assert hip.download(data, 256)[:4] == b"\3\0\0\0"


def test_damaged_compressed_bundle(hip: Hip, assemble: Assemble, tmp_path: Path) -> None:
    data, path = bundle(assemble), tmp_path / "bundle.co"
    good = compressed(data, 2, 0)
    for image, text in (
        (good[:-1], "truncated"),
        (good[:20], "header is not whole"),
        (good[:40] + bytes([good[40] ^ 255]) + good[41:], "zlib"),
        (compressed(data, 2, 0, len(data) + 1), "damaged"),
        (compressed(data, 2, 1, len(data) + 1), "shorter than its header says"),
        (compressed(data, 2, 1, len(data) - 1), "zstd"),
        (compressed(data, 2, 7), "method 7"),
        (compressed(data, 3, 0, 2**40), "at most"),
        (b"CCOB\x09\0" + good[6:], "version 9"),
        (compressed(b"no bundle", 2, 0), "holds no offload bundle"),
    ):
        path.write_bytes(image)
        assert text in refused(hip, INVALID_IMAGE, path), text
    one = ctypes.create_string_buffer(compressed(data, 1, 0))
    with pytest.raises(HipError, match="does not say how long"):
        hip.call("hipModuleLoadData", byref(c_void_p()), one)
