"""The C ABI of the bridge: binding, refusals, launches."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

HEADER = Path(__file__).resolve().parents[2] / "bridges" / "hip" / "netra_bridge.h"

Run = Callable[..., str]


# ---- the header ------------------------------------------------------------------------------


@pytest.mark.parametrize("standard", ["c99", "c17", "c++11", "c++20"])
def test_header_compiles_alone(standard: str, c_compiler: str, cxx_compiler: str) -> None:
    compiler = cxx_compiler if standard.startswith("c++") else c_compiler
    language = "c++" if standard.startswith("c++") else "c"
    subprocess.run(
        [compiler, f"-std={standard}", "-pedantic", "-Wall", "-Wextra", "-Werror", "-x", language]
        + ["-fsyntax-only", str(HEADER)],
        check=True,
    )


def test_every_declared_function_is_exported_and_nothing_else(
    bridge_library: Path, llvm_bin: Path
) -> None:
    text = HEADER.read_text()
    names = re.findall(r"^NETRA_API [^(]*?(netra_\w+)\(", text, re.M)
    assert len(names) >= 14
    library = ctypes.CDLL(str(bridge_library))
    for name in names:
        assert getattr(library, name)
    listed = subprocess.run(
        [str(llvm_bin / "llvm-nm"), "-D", "--defined-only", "-j", str(bridge_library)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert sorted(listed.stdout.split()) == sorted(names)


# ---- which HIP library -----------------------------------------------------------------------


def test_the_mapped_library_is_bound(run: Run, stub: Callable[..., Path]) -> None:
    """torch's, for example, whatever NETRA_HIP_LIBRARY says."""
    run(
        """
        mapped = ctypes.CDLL(one)
        assert Device(0, None).hip_library == one
        """,
        one=stub(), env={"NETRA_HIP_LIBRARY": "/nowhere/libamdhip64.so"},
    )  # fmt: skip


def test_two_mapped_libraries_are_refused_by_name(run: Run, stub: Callable[..., Path]) -> None:
    run(
        """
        maps = [ctypes.CDLL(one), ctypes.CDLL(two)]
        refused(abi.LIBRARY, lambda: Device(0, None), one, two, "709")
        """,
        one=stub(), two=stub(folder="two"),
    )  # fmt: skip


def test_a_second_library_mapped_later_is_noticed(run: Run, stub: Callable[..., Path]) -> None:
    run(
        """
        Device(0, one)
        mapped = ctypes.CDLL(two)
        refused(abi.LIBRARY, lambda: Device(0, None), one, two)
        """,
        one=stub(), two=stub(folder="two"),
    )  # fmt: skip


def test_two_names_of_one_library_are_one(
    run: Run, stub: Callable[..., Path], tmp_path: Path
) -> None:
    link = tmp_path / "libamdhip64.so"
    link.symlink_to(stub())
    run("Device(0, one); Device(0, link); Device(0, None)", one=stub(), link=link)


def test_asking_for_another_than_the_mapped_one(run: Run, stub: Callable[..., Path]) -> None:
    run(
        """
        mapped = ctypes.CDLL(one)
        refused(abi.LIBRARY, lambda: Device(0, two), one, two)
        """,
        one=stub(), two=stub(folder="two"),
    )  # fmt: skip


def test_the_variable_is_used_when_nothing_is_mapped(
    run: Run, stub: Callable[..., Path], tmp_path: Path
) -> None:
    spaced = tmp_path / "with spaces" / "libamdhip64.so.7"
    spaced.parent.mkdir()
    shutil.copy(stub(), spaced)
    run(
        "assert Device(0, None).hip_library == path",
        path=spaced, env={"NETRA_HIP_LIBRARY": str(spaced)},
    )  # fmt: skip


def test_the_argument_wins_over_the_variable(run: Run, stub: Callable[..., Path]) -> None:
    run(
        "assert Device(0, one).hip_library == one",
        one=stub(), env={"NETRA_HIP_LIBRARY": "/nowhere.so"},
    )  # fmt: skip


def test_rocm_is_found_by_its_path(run: Run, stub: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "rocm" / "lib").mkdir(parents=True)
    shutil.copy(stub(), tmp_path / "rocm" / "lib" / "libamdhip64.so.7")
    run(
        "assert Device(0, None).hip_library == path + '/lib/libamdhip64.so.7'",
        path=tmp_path / "rocm",
        env={"ROCM_PATH": str(tmp_path / "rocm"), "NETRA_HIP_LIBRARY": ""},
    )


def test_a_library_that_cannot_be_used(run: Run, stub: Callable[..., Path], tmp_path: Path) -> None:
    run(
        """
        refused(abi.LIBRARY, lambda: Device(0, "/nowhere/libamdhip64.so"), "/nowhere/libamdhip64")
        os.environ["NETRA_HIP_LIBRARY"] = "/nowhere/else.so"
        refused(abi.LIBRARY, lambda: Device(0, None), "/nowhere/else.so", "NETRA_HIP_LIBRARY")
        text = write("text.so", b"no library")
        refused(abi.LIBRARY, lambda: Device(0, str(text)), "text.so")
        refused(abi.LIBRARY, lambda: Device(0, less), less, "hipStreamIsCapturing")
        """,
        less=stub("-DNO_SYMBOL"),
    )


def test_old_properties(run: Run, stub: Callable[..., Path]) -> None:
    """A library that has no R0600 has the old structure; one that has both exports the old one
    under the plain name."""
    script = """
    device = Device(0, one)
    assert (device.arch, device.cu_count, device.warp_size) == ("gfx950", 256, 64), vars(device)
    assert device.features == "gfx950:sramecc+:xnack-"
    """
    run(script, one=stub("-DOLD"))
    run(script, one=stub())


def test_devices_that_are_not_there(run: Run, stub: Callable[..., Path]) -> None:
    run(
        """
        refused(abi.DEVICE, lambda: Device(1, one), "no device 1", one)
        refused(abi.DEVICE, lambda: Device(-1, one), "no device -1")
        os.environ["STUB_ARCH"] = "NVIDIA"
        refused(abi.DEVICE, lambda: Device(0, one), "NVIDIA")
        """,
        one=stub(),
    )


# ---- code objects ----------------------------------------------------------------------------


def test_files_that_are_no_code_object(run: Run, stub: Callable[..., Path]) -> None:
    run(
        """
        device = Device(0, one)
        def load(data):
            path = write("bad.co", data)
            return lambda: device.load(path, None, "gfx950", 0)
        good = stage2.read_bytes()
        refused(abi.FILE, lambda: device.load(tmp / "absent.co", None, "gfx950", 0), "absent.co",
                "make")
        refused(abi.FILE, lambda: device.load(tmp, None, "gfx950", 0), "regular file")
        refused(abi.IMAGE, load(b""), "empty")
        refused(abi.IMAGE, load(b"<!DOCTYPE html><html>404</html>"), "web page")
        refused(abi.IMAGE, load(b"version https://git-lfs.github.com/spec/v1\\n"), "LFS")
        refused(abi.IMAGE, load(b"__CLANG_OFFLOAD_BUNDLE__xxxx"), "bundle")
        refused(abi.IMAGE, load(b"not a code object"), "no ELF")
        refused(abi.IMAGE, load(good[:2]), "truncated")
        refused(abi.IMAGE, load(good[:40]), "truncated")
        refused(abi.IMAGE, load(good[:-1]), "truncated", str(len(good) - 1))
        refused(abi.IMAGE, load(Path(one).read_bytes()), "machine 62")
        refused(abi.IMAGE, load(good[:8] + b"\\x07" + good[9:]), "version 9")
        refused(abi.IMAGE, load(good[:16] + b"\\x01" + good[17:]), "not linked")
        refused(abi.IMAGE, load(good.replace(b"--gfx950", b"--gfx942")), "gfx950", "gfx942")
        refused(abi.IMAGE, load(good.replace(b"AMDGPU\\0", b"NVIDIA\\0")), "no AMDGPU metadata")
        """,
        one=stub(),
    )


def test_no_damage_is_a_crash(run: Run, stub: Callable[..., Path]) -> None:
    """Cut at every 37th byte, and with random bytes changed: refused or loaded, never a crash."""
    run(
        """
        import random
        device = Device(0, one)
        good = stage2.read_bytes()
        def attempt(data):
            try:
                device.load(write("bad.co", data), None, "gfx950", 0)
            except NetraError:
                return False
            return True
        for cut in range(0, len(good), 37):
            assert not attempt(good[:cut]), cut
        dice = random.Random(7)
        for round in range(1500):
            data = bytearray(good)
            for _ in range(dice.choice((1, 1, 2, 8))):
                data[dice.randrange(len(data))] = dice.choice((0, 1, 128, 255, dice.randrange(256)))
            attempt(bytes(data))
        """,
        one=stub(),
    )


def test_the_hash_decides(run: Run, stub: Callable[..., Path]) -> None:
    run(
        """
        import hashlib
        device = Device(0, one)
        good = stage2.read_bytes()
        digest = hashlib.sha256(good).hexdigest()
        assert device.load(stage2, digest, "gfx950", 0)[1] == digest
        assert device.load(stage2, digest.upper(), "gfx950", 0)[1] == digest
        for wrong in ("0" * 64, digest[:-1], digest + "0", ""):
            if wrong:
                refused(abi.HASH, lambda: device.load(stage2, wrong, "gfx950", 0), digest, wrong)
        changed = bytearray(good)
        changed[damage.descriptor_offset(good, "argmax_f32_stage2") + 20] ^= 1
        refused(abi.HASH, lambda: device.load(write("x.co", bytes(changed)), digest, "gfx950", 0),
                "SHA-256")
        for tail in range(130):  # every position in the hash's block; ELF ignores a tail
            longer = good + b"\\xa5" * tail
            loaded = device.load(write("x.co", longer), None, "gfx950", 0)[1]
            assert loaded == hashlib.sha256(longer).hexdigest(), tail
        """,
        one=stub(),
    )


def test_the_target_decides(run: Run, stub: Callable[..., Path]) -> None:
    run(
        """
        device = Device(0, one)
        assert device.arch == "gfx1151"
        refused(abi.ARCH, lambda: device.load(stage2, None, "gfx1151", 0), "gfx950", "gfx1151")
        refused(abi.ARCH, lambda: device.load(stage2, None, "gfx950", 0), "gfx950", "gfx1151")
        """,
        one=stub(), env={"STUB_ARCH": "gfx1151"},
    )  # fmt: skip
    run(
        "refused(abi.ARCH, lambda: Device(0, one).load(stage2, None, 'gfx950', 0), 'gfx9500')",
        one=stub(), env={"STUB_ARCH": "gfx9500:sramecc+"},
    )  # fmt: skip


KERNEL = """
        .text
        .globl  k
        .p2align 8
        .type   k, @function
k:      s_endpgm
        .size   k, .-k
        .rodata
        .p2align 6
        .amdhsa_kernel k
          .amdhsa_next_free_vgpr 8
          .amdhsa_next_free_sgpr 8
          .amdhsa_accum_offset 8
          .amdhsa_kernarg_size {descriptor}
          {directive}
        .end_amdhsa_kernel
        .amdgpu_metadata
amdhsa.version: [1, 2]
amdhsa.kernels:
  - .name: k
    .symbol: k.kd
    .kernarg_segment_size: {metadata}
    .kernarg_segment_align: 8
    .group_segment_fixed_size: {lds}
    .private_segment_fixed_size: 0
    .wavefront_size: {wave}
    .max_flat_workgroup_size: 256
    .sgpr_count: 8
    .vgpr_count: 8
    .args: {args}
        .end_amdgpu_metadata
"""
ARGS = (
    "[{.name: a, .offset: 0, .size: 8, .value_kind: global_buffer}, "
    "{.name: n, .offset: 8, .size: 4, .value_kind: by_value}]"
)


def kernel(**given: object) -> str:
    values = {"descriptor": 16, "metadata": 16, "lds": 0, "wave": 64, "args": ARGS, "directive": ""}
    return KERNEL.format(**{**values, **given})


Assemble = Callable[..., Path]


@pytest.mark.parametrize(
    "changes, status, words",
    [
        ({"descriptor": 8}, "KERNARG", ("kernarg size is 8", "16 in the metadata")),
        ({"metadata": 24}, "KERNARG", ("kernarg size is 16", "24 in the metadata")),
        ({"descriptor": 12, "metadata": 12}, "KERNARG", ("12 bytes", "multiple of 8")),
        ({"args": "[]"}, "KERNARG", ("no .args",)),
        ({"descriptor": 8, "metadata": 8}, "KERNARG", ("argument n ends at 12",)),
        ({"lds": 64}, "IMAGE", ("LDS size is 0", "64 in the metadata")),
        ({"directive": ".amdhsa_group_segment_fixed_size 64"}, "IMAGE", ("LDS size is 64",)),
        ({"directive": ".amdhsa_private_segment_fixed_size 64"}, "IMAGE", ("scratch size is 64",)),
        ({"wave": 32}, "IMAGE", ("wave size is 64", "32 in the metadata")),
        (
            {"args": ARGS[:-1] + ", {.name: h, .offset: 12, .size: 4, "
                     ".value_kind: hidden_block_count_x}]"},
            "KERNARG",
            ("hidden_block_count_x", "offset 12"),
        ),
        (
            {"args": ARGS.replace(".offset: 8", ".offset: 4")},
            "KERNARG",
            ("argument n at offset 4", "overlaps"),
        ),
    ],
)  # fmt: skip
def test_descriptor_and_metadata_must_agree(
    changes: dict[str, object], status: str, words: tuple[str, ...],
    run: Run, stub: Callable[..., Path], assemble: Assemble,
) -> None:  # fmt: skip
    """What the assembler lets through, and eager launches would not show."""
    path = assemble(kernel(**changes))
    run(
        """
        device = Device(0, one)
        refused(getattr(abi, status), lambda: device.load(Path(path), None, "gfx950", 0), *words)
        """,
        one=stub(), path=path, status=status, words=("kernel k", *words),
    )  # fmt: skip


def test_features_that_an_object_insists_on(
    run: Run, stub: Callable[..., Path], assemble: Assemble
) -> None:
    script = """
    device = Device(0, one)
    device.load(Path(plain), None, "gfx950", 0)
    if fits:
        device.load(Path(strict), None, "gfx950", 0)
    else:
        refused(abi.ARCH, lambda: device.load(Path(strict), None, "gfx950", 0), "xnack-", "xnack+")
    """
    plain, strict = assemble(kernel()), assemble(kernel(), arch="gfx950:xnack-")
    for device, fits in (("gfx950:sramecc+:xnack-", True), ("gfx950:sramecc+:xnack+", False)):
        run(script, one=stub(), plain=plain, strict=strict, fits=fits, env={"STUB_ARCH": device})


def test_kernels_are_found_by_name_and_map(run: Run, stub: Callable[..., Path]) -> None:
    run(
        """
        device = Device(0, one)
        loaded, _ = device.load(stage2, None, "gfx950", 0)
        name, both = "argmax_f32_stage2", [(0, 8), (8, 8)]
        assert device.kernel(loaded, name, 16, both)
        refused(abi.SYMBOL, lambda: device.kernel(loaded, "argmax", 16, both), "argmax", name)
        refused(abi.SYMBOL, lambda: device.kernel(loaded, name + ".kd", 16, both), name)
        refused(abi.KERNARG, lambda: device.kernel(loaded, name, 8, both), "16 bytes", "passes 8")
        refused(abi.KERNARG, lambda: device.kernel(loaded, name, 24, both), "16 bytes", "passes 24")
        refused(abi.KERNARG, lambda: device.kernel(loaded, name, 8, both[:1]),
                "2 arguments", "passes 1", "offset 8")
        refused(abi.KERNARG, lambda: device.kernel(loaded, name, 24, [*both, (16, 4)]),
                "2 arguments", "passes 3", "offset 16")
        refused(abi.KERNARG, lambda: device.kernel(loaded, name, 16, [(0, 8), (12, 4)]),
                "partial", "offset 8", "offset 12")
        """,
        one=stub(),
    )


def test_everything_is_touched_at_load(run: Run, stub: Callable[..., Path]) -> None:
    run(
        """
        device, stub = Device(0, one), Stub(one)
        stub.calls()
        device.load(stage2, None, "gfx950", 0)
        calls = stub.calls()
        assert calls == ["hipGetDevice", "hipModuleLoadData", "hipModuleGetFunction",
                         "hipFuncGetAttribute"], calls
        """,
        one=stub(),
    )


def test_nothing_is_loaded_while_capturing(run: Run, stub: Callable[..., Path]) -> None:
    run(
        """
        device, stub = Device(0, one), Stub(one)
        stub.lib.stubCapturing(1)
        stub.calls()
        refused(abi.CAPTURE, lambda: device.load(stage2, None, "gfx950", 0x5000), "captured")
        assert "hipModuleLoadData" not in stub.calls()
        """,
        one=stub(),
    )


# ---- launches --------------------------------------------------------------------------------

LAUNCHER = """
device, stub = Device(0, one), Stub(one)
loaded, _ = device.load(stage2, None, "gfx950", 0)
k = device.kernel(loaded, "argmax_f32_stage2", 16, [(0, 8), (8, 8)])
stub.calls()
args = struct.pack("<QQ", 0x1122334455667788, 0x99aabbccddeeff00)
def launch(grid=(1, 5, 1), block=(64, 1, 1), lds=0, args=args, stream=0x5000):
    device.launch(k, grid, block, lds, args, stream)
"""


def test_a_launch_is_one_hip_call_with_the_exact_bytes(
    run: Run, stub: Callable[..., Path]
) -> None:
    run(
        LAUNCHER + """
launch(lds=512)
assert stub.calls() == ["hipGetDevice", "hipModuleLaunchKernel"]
got = stub.launch()
assert (list(got.grid), list(got.block), got.lds) == ([1, 5, 1], [64, 1, 1], 512)
assert (got.stream, got.params, got.size) == (0x5000, None, 16)
assert bytes(got.kernarg[:16]) == args
launch(stream=0)
assert stub.launch().stream is None
""",
        one=stub(),
    )


def test_a_kernel_without_arguments(
    run: Run, stub: Callable[..., Path], assemble: Assemble
) -> None:
    run(
        """
        device, stub = Device(0, one), Stub(one)
        loaded, _ = device.load(Path(path), None, "gfx950", 0)
        device.launch(device.kernel(loaded, "k", 0, []), (1, 1, 1), (64, 1, 1), 0, b"", 0)
        assert stub.launch().size == 0 and stub.launch().params is None
        """,
        one=stub(), path=assemble(kernel(descriptor=0, metadata=0, args="[]")),
    )  # fmt: skip


def test_launches_that_are_refused_before_hip(run: Run, stub: Callable[..., Path]) -> None:
    run(
        LAUNCHER + """
name = "argmax_f32_stage2"
refused(abi.KERNARG, lambda: launch(args=args[:8]), name, "16 bytes", "passes 8")
refused(abi.KERNARG, lambda: launch(args=args + b"x" * 8), name, "passes 24")
refused(abi.LAUNCH, lambda: launch(grid=(1, 0, 1)), name, "(1, 0, 1)")
refused(abi.LAUNCH, lambda: launch(block=(64, 1, 0)), name)
refused(abi.LAUNCH, lambda: launch(block=(65, 1, 1)), name, "maximum workgroup of 64")
refused(abi.LAUNCH, lambda: launch(block=(2**31, 2**31, 8)), name)
refused(abi.LAUNCH, lambda: launch(grid=(2**26, 1, 1)), name, "limits")
refused(abi.LAUNCH, lambda: launch(grid=(1, 65536, 1)), name, "limits")
refused(abi.LAUNCH, lambda: launch(lds=163841), name, "163841 bytes of LDS", "163840")
assert stub.calls() == []
launch(lds=163840)
""",
        one=stub(),
    )


def test_a_failed_launch_names_the_kernel(run: Run, stub: Callable[..., Path]) -> None:
    run(
        LAUNCHER + """
os.environ["STUB_FAIL"] = "hipModuleLaunchKernel=719"
refused(abi.HIP, launch, "argmax_f32_stage2", "hipModuleLaunchKernel", "719", "earlier")
assert library().netra_last_hip_error() == 719
assert stub.lib.stubPending() == 0, "the error was left for somebody else to find"
os.environ["STUB_FAIL"] = "hipModuleLaunchKernel=709"
refused(abi.HIP, launch, "709", "another copy of libamdhip64")
stub.lib.stubCapturing(1)
refused(abi.CAPTURE, launch, "argmax_f32_stage2", "capture is void")
stub.lib.stubCapturing(0)
del os.environ["STUB_FAIL"]
launch()
""",
        one=stub(),
    )


@pytest.mark.parametrize(
    "call, status",
    [
        ("hipInit", "HIP"),
        ("hipGetDeviceCount", "DEVICE"),
        ("hipGetDevicePropertiesR0600", "HIP"),
        ("hipGetDevice", "HIP"),
        ("hipModuleLoadData", "HIP"),
        ("hipModuleGetFunction", "HIP"),
        ("hipFuncGetAttribute", "HIP"),
    ],
)
def test_every_hip_failure_is_reported(
    call: str, status: str, run: Run, stub: Callable[..., Path]
) -> None:
    run(
        """
        probe = Stub(one)
        def work():
            device = Device(0, one)
            device.load(stage2, None, "gfx950", 0)
        os.environ["STUB_FAIL"] = f"{call}=101"
        refused(getattr(abi, status), work, call.removesuffix("R0600"), "101", "as the test asked")
        assert probe.lib.stubPending() == 0
        calls = probe.calls()
        if "hipModuleLoadData" in calls and call != "hipModuleLoadData":
            assert calls[-1] == "hipModuleUnload", calls
        del os.environ["STUB_FAIL"]
        work()
        """,
        one=stub(), call=call, status=status,
    )  # fmt: skip


def test_pointers(run: Run, stub: Callable[..., Path]) -> None:
    script = """
    device, stub = Device(0, one), Stub(one)
    here = ctypes.create_string_buffer(64)
    unknown = device.pointer(ctypes.addressof(here))
    assert (unknown.memory, unknown.device, unknown.base) == (abi.UNKNOWN, -1, 0)
    assert device.pointer(0).memory == abi.UNKNOWN
    assert stub.lib.stubPending() == 0
    there = ctypes.c_void_p()
    stub.lib.hipMalloc(ctypes.byref(there), ctypes.c_size_t(1000))
    known = device.pointer(there.value + 8)
    assert (known.memory, known.device) == (abi.ON_DEVICE, 0)
    assert (known.base, known.size) == (there.value, 1000)
    """
    run(script, one=stub())
    run(script, one=stub("-DOLD"))


def test_arguments_that_are_null(run: Run) -> None:
    run(
        """
        lib = library()
        null, out = None, ctypes.c_void_p()
        assert lib.netra_open(None, 0, None) == abi.ARGUMENT
        assert lib.netra_device(None, None) == abi.ARGUMENT
        assert lib.netra_load(None, None, None) == abi.ARGUMENT
        assert lib.netra_find_kernel(None, None, 0, None, 0, None) == abi.ARGUMENT
        assert lib.netra_capture_status(None, None, None) == abi.ARGUMENT
        assert lib.netra_pointer(None, None, None) == abi.ARGUMENT
        lib.netra_launch.argtypes = None
        assert lib.netra_launch(None, None, None, 0, None, 0, None) == abi.ARGUMENT
        assert lib.netra_close(None) == 0 and lib.netra_unload(None) == 0
        assert lib.netra_object_sha256(None) == b""
        assert b"null" in lib.netra_last_error()
        assert lib.netra_status_name(abi.HASH) == b"NETRA_ERROR_HASH"
        assert lib.netra_status_name(5).startswith(b"unknown")
        """
    )


def test_errors_belong_to_their_thread(run: Run) -> None:
    run(
        """
        import threading
        lib = library()
        lib.netra_open(None, 0, None)
        seen = []
        thread = threading.Thread(target=lambda: seen.append(lib.netra_last_error()))
        thread.start(); thread.join()
        assert seen == [b""] and lib.netra_last_error() != b""
        """
    )


def test_closing_unloads(run: Run, stub: Callable[..., Path]) -> None:
    run(
        """
        device, stub = Device(0, one), Stub(one)
        for _ in range(3):
            device.load(stage2, None, "gfx950", 0)
        loaded, _ = device.load(stage2, None, "gfx950", 0)
        stub.calls()
        lib = library()
        lib.netra_unload.argtypes = lib.netra_close.argtypes = [ctypes.c_void_p]
        assert lib.netra_unload(loaded) == 0
        assert stub.calls().count("hipModuleUnload") == 1
        assert lib.netra_close(device._handle) == 0
        assert stub.calls().count("hipModuleUnload") == 3
        """,
        one=stub(),
    )


# ---- on the simulator ------------------------------------------------------------------------


def test_streams_capture_and_replay_on_the_simulator(run: Run, sim_library: Path) -> None:
    """Both stages of argmax through the C ABI, on a stream of their own."""
    run(
        """
        device = Device(0, sim)
        hip = ctypes.CDLL(device.hip_library)
        N = 248320
        def checked(code):
            assert code == 0, code
        def malloc(size):
            pointer = ctypes.c_void_p()
            checked(hip.hipMalloc(ctypes.byref(pointer), ctypes.c_size_t(size)))
            return pointer
        logits, partial, out = malloc(2 * N * 4), malloc(2 * 128 * 8), malloc(2 * 8)
        stream = ctypes.c_void_p()
        checked(hip.hipStreamCreateWithFlags(ctypes.byref(stream), 1))
        kernels = []
        for stage in (1, 2):
            name = f"argmax_f32_stage{stage}"
            path = stage2.with_name(name + ".co")
            loaded, _ = device.load(path, None, "gfx950", stream.value)
            kernels.append(device.kernel(loaded, name, 16, [(0, 8), (8, 8)]))
        def launch():
            device.launch(kernels[0], (128, 2, 1), (64, 1, 1), 0,
                          struct.pack("<QQ", partial.value, logits.value), stream.value)
            device.launch(kernels[1], (1, 2, 1), (64, 1, 1), 0,
                          struct.pack("<QQ", out.value, partial.value), stream.value)
        def fill(*columns):
            row = bytearray(2 * N * 4)
            for i, column in enumerate(columns):
                struct.pack_into("<f", row, 4 * (i * N + column), 1.0)
            checked(hip.hipMemcpy(logits, bytes(row), ctypes.c_size_t(len(row)), 1))
        def result():
            checked(hip.hipStreamSynchronize(stream))
            host = (ctypes.c_int64 * 2)()
            checked(hip.hipMemcpy(host, out, ctypes.c_size_t(16), 2))
            return list(host)

        fill(5, N - 1)
        assert not device.capturing(stream.value)
        launch()
        assert result() == [5, N - 1]

        graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
        checked(hip.hipStreamBeginCapture(stream, 1))
        assert device.capturing(stream.value) and not device.capturing(0)
        refused(abi.CAPTURE, lambda: device.load(stage2, None, "gfx950", stream.value), "captured")
        launch()
        checked(hip.hipStreamEndCapture(stream, ctypes.byref(graph)))
        checked(hip.hipGraphInstantiate(ctypes.byref(executable), graph, None, None, 0))
        for columns in ([0, 1], [N - 2, 1939]):
            fill(*columns)
            checked(hip.hipGraphLaunch(executable, stream))
            assert result() == columns
        """,
        sim=sim_library,
    )
