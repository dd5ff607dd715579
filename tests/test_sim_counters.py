"""What a launch counts when it is asked to: kernels whose traffic can be counted by hand."""

from __future__ import annotations

import ctypes
import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sim_kernels
from netra_sim.hip import Hip
from sim_kernels import POINTER
from spelling import BOTH

Assemble = Callable[..., Path]
Counters = dict[str, int]
BYTES, LDS = 65536, 32768
ARGS = (("data", 0, 8, POINTER),)

# v1 = data[lane]: the address that the instruction under test uses.
START = {
    "gfx950": ["s_load_dwordx2 s[4:5], s[0:1], 0x0", "v_lshlrev_b32 v1, 2, v0",
               "s_waitcnt lgkmcnt(0)", "global_load_dword v1, v1, s[4:5]", "s_waitcnt vmcnt(0)"],
    "gfx1151": ["s_load_b64 s[4:5], s[0:1], 0x0", "v_lshlrev_b32 v1, 2, v0",
                "s_waitcnt lgkmcnt(0)", "global_load_b32 v1, v1, s[4:5]", "s_waitcnt vmcnt(0)"],
}  # fmt: skip
LANES = {"gfx950": 64, "gfx1151": 32}


@pytest.fixture(scope="module")
def hip(sim_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hip]:
    folder = tmp_path_factory.mktemp("counters")
    with sim_kernels.private_simulator(sim_library, folder, ",".join(BOTH)) as found:
        found.call("netraSimSetCounting", ctypes.c_int(1))
        yield found
        found.call("netraSimSetCounting", ctypes.c_int(0))
        found.call("hipSetDevice", 0)


def counted(hip: Hip) -> Counters:
    text = ctypes.c_void_p()
    hip.call("netraSimCounters", ctypes.byref(text))
    try:
        return dict(json.loads(ctypes.string_at(text.value or 0)))
    finally:
        hip.library.netraSimFree(text)


def run(
    hip: Hip, image: Path, arch: str, *, name: str = "k", data: bytes = b"", rest: bytes = b"",
    grid: int = 1, block: int = 0, lds: int = 0,
) -> Counters:  # fmt: skip
    """One launch over 64 KiB that start with `data`; its counters."""
    hip.call("hipSetDevice", BOTH.index(arch))
    buffer = hip.malloc(BYTES)
    module = hip.load_module(image)
    try:
        hip.upload(buffer, data.ljust(BYTES, b"\0"))
        hip.launch(hip.function(module, name), (grid, 1, 1), (block or LANES[arch], 1, 1),
                   struct.pack("<Q", buffer) + rest, lds=lds)
        hip.synchronize()
        return counted(hip)
    finally:
        hip.unload_module(module)
        hip.free(buffer)


def at_addresses(
    hip: Hip, assemble: Assemble, arch: str, line: str, address: Callable[[int], int],
    cu_mode: bool = True,
) -> Counters:  # fmt: skip
    """One wave whose lanes use `address` in v1 of `line`."""
    body = "\n".join([*START[arch], line, "s_waitcnt vmcnt(0) lgkmcnt(0)", "s_endpgm"])
    text = sim_kernels.kernel("k", body, ARGS, 8, arch, lds=LDS)
    if arch == "gfx1151":
        mode = f".amdhsa_workgroup_processor_mode {int(not cu_mode)}"
        text = text.replace(".amdhsa_next_free_sgpr", f"{mode}\n          .amdhsa_next_free_sgpr")
    data = struct.pack(f"<{LANES[arch]}I", *map(address, range(LANES[arch])))
    return run(hip, assemble(text, arch), arch, data=data)


# ---- LDS banks: (target, instruction, address by lane, phases, conflicts) ----------------------

KNOWN: list[tuple[str, str, Callable[[int], int], int, int]] = [
    ("gfx950", "ds_read_b32 v2, v1", lambda lane: 4 * lane, 1, 0),
    ("gfx950", "ds_read_b32 v2, v1", lambda lane: 4 * (lane % 32) + 8192, 1, 0),  # two a dword
    ("gfx950", "ds_read_b32 v2, v1", lambda lane: 8 * lane, 1, 1),  # even banks, twice each
    ("gfx950", "ds_read_b32 v2, v1", lambda lane: 256 * lane, 1, 63),  # one bank
    ("gfx950", "ds_read_b32 v2, v1", lambda lane: 64, 1, 0),  # broadcast
    ("gfx950", "ds_read_b32 v2, v1", lambda lane: 256 * (lane % 5), 1, 4),
    ("gfx950", "ds_read_b64 v[2:3], v1", lambda lane: 8 * lane, 2, 0),
    ("gfx950", "ds_read_b64 v[2:3], v1", lambda lane: 256 * lane, 2, 62),
    ("gfx950", "ds_read_b128 v[4:7], v1", lambda lane: 16 * lane, 4, 0),
    # Lanes 12 and 20 are in one phase, 4 and 12 are not.
    ("gfx950", "ds_read_b128 v[4:7], v1", lambda lane: 256 * (lane in (12, 20)), 4, 1),
    ("gfx950", "ds_read_b128 v[4:7], v1", lambda lane: 256 * (lane in (4, 12)), 4, 2),
    ("gfx950", "ds_read_b128 v[4:7], v1", lambda lane: 256 * (lane in (20, 59)), 4, 2),
    ("gfx1151", "ds_load_b32 v2, v1", lambda lane: 4 * lane, 1, 0),
    ("gfx1151", "ds_load_b32 v2, v1", lambda lane: 8 * lane, 1, 1),
    ("gfx1151", "ds_load_b32 v2, v1", lambda lane: 128 * lane, 1, 31),
    ("gfx1151", "ds_load_b32 v2, v1", lambda lane: 12, 1, 0),
]
ASSUMED: list[tuple[str, str, Callable[[int], int], int, int]] = [
    ("gfx950", "ds_write_b32 v1, v2", lambda lane: 8 * lane, 1, 1),
    ("gfx950", "ds_write_b128 v1, v[4:7]", lambda lane: 16 * lane, 4, 0),
    ("gfx950", "ds_read_b96 v[4:6], v1", lambda lane: 16 * lane, 4, 0),
    ("gfx950", "ds_read_u8 v2, v1", lambda lane: lane, 1, 0),
    ("gfx950", "ds_read2_b32 v[2:3], v1 offset1:64", lambda lane: 4 * lane, 2, 0),
    ("gfx950", "ds_read2_b32 v[2:3], v1 offset1:64", lambda lane: 8 * lane, 2, 2),
    ("gfx950", "ds_add_u32 v1, v2", lambda lane: 256 * (lane % 2), 1, 1),
    ("gfx1151", "ds_load_b64 v[2:3], v1", lambda lane: 128 * lane, 2, 30),
    ("gfx1151", "ds_load_b128 v[4:7], v1", lambda lane: 16 * lane, 4, 0),
    ("gfx1151", "ds_store_b32 v1, v2", lambda lane: 128 * lane, 1, 31),
]


@pytest.mark.parametrize("known", [True, False], ids=["known", "assumed"])
def test_lds_conflicts(hip: Hip, assemble: Assemble, known: bool) -> None:
    wrong = []
    for arch, line, address, phases, conflicts in KNOWN if known else ASSUMED:
        got = at_addresses(hip, assemble, arch, line, address)
        own, other = ("", "assumed_") if known else ("assumed_", "")
        shown = [got[f"lds_model.{kind}{what}"] for kind in (own, other)
                 for what in ("phases", "conflicts")]  # fmt: skip
        if shown != [phases, conflicts, 0, 0]:
            wrong.append(f"{arch} {line}: {shown}, expected {[phases, conflicts, 0, 0]}")
    assert not wrong, "\n".join(wrong)


def test_lds_of_workgroup_processors_is_assumed(hip: Hip, assemble: Assemble) -> None:
    got = at_addresses(hip, assemble, "gfx1151", "ds_load_b32 v2, v1", lambda lane: 8 * lane, False)
    assert (got["lds_model.phases"], got["lds_model.assumed_conflicts"]) == (0, 1)


def test_permutes_ask_no_bank(hip: Hip, assemble: Assemble) -> None:
    got = at_addresses(hip, assemble, "gfx950", "ds_bpermute_b32 v2, v1, v1", lambda lane: 0)
    assert got["lds_model.phases"] == got["lds_model.assumed_phases"] == 0
    assert got["memory.lds.read_bytes"] == 0


# ---- memory ------------------------------------------------------------------------------------


def memory(counters: Counters, path: str) -> list[int]:
    """bytes, lines and line requests, read and then written"""
    kinds = ("bytes", "lines", "line_requests")
    return [counters[f"memory.{path}.{way}_{kind}"] for way in ("read", "write") for kind in kinds]


@pytest.mark.parametrize("arch", BOTH)
def test_lines_of_a_kernel(hip: Hip, assemble: Assemble, arch: str) -> None:
    """add_step: 64 dwords a workgroup, read and written once; three workgroups side by side."""
    image, block = assemble(sim_kernels.add(arch), arch), 64
    got = run(hip, image, arch, name="add_step", rest=struct.pack("<II", 7, 0), grid=3, block=block)
    waves = 3 * block // LANES[arch]
    requests = 3 * 256 // 128
    assert memory(got, "global") == [768, 6, requests, 768, 6, requests]
    # Two scalar loads a wave, of 8 and 4 bytes, from the same line.
    assert memory(got, "scalar") == [12 * waves, 1, 2 * waves, 0, 0, 0]
    assert not any(got[f"memory.{path}.{way}_bytes"]
                   for path in ("lds", "scratch") for way in ("read", "write"))  # fmt: skip
    assert got["instructions"] == 10 * waves and got["waves"] == waves


@pytest.mark.parametrize(
    ("line", "address", "read", "lines", "requests"),
    [
        # Behind the read of the addresses: 256 bytes in the first two lines.
        ("global_load_dword v2, v1, s[4:5]", lambda lane: 128 * lane, 256 + 256, 64, 2 + 64),
        ("global_load_dword v2, v1, s[4:5]", lambda lane: 0, 256 + 256, 2, 2 + 1),
        ("global_load_dword v2, v1, s[4:5]", lambda lane: 4 * (63 - lane), 256 + 256, 2, 2 + 2),
        # Each lane across the end of a line.
        ("global_load_dwordx2 v[2:3], v1, s[4:5]", lambda lane: 128 * lane + 124,
         256 + 512, 65, 2 + 65),
        ("global_load_ubyte v2, v1, s[4:5]", lambda lane: 1024 + lane, 256 + 64, 3, 2 + 1),
    ],
)  # fmt: skip
def test_lines_of_a_load(
    hip: Hip, assemble: Assemble, line: str, address: Callable[[int], int], read: int, lines: int,
    requests: int,
) -> None:  # fmt: skip
    got = at_addresses(hip, assemble, "gfx950", line, address)
    assert memory(got, "global") == [read, lines, requests, 0, 0, 0]


def test_atomics_read_and_write(hip: Hip, assemble: Assemble) -> None:
    line = "global_atomic_add v1, v2, s[4:5]"
    got = at_addresses(hip, assemble, "gfx950", line, lambda lane: 512)
    assert memory(got, "global") == [256 + 256, 3, 2 + 1, 256, 1, 1]
    got = at_addresses(hip, assemble, "gfx950", "ds_add_u32 v1, v2", lambda lane: 4 * lane)
    assert [got["memory.lds.read_bytes"], got["memory.lds.write_bytes"]] == [256, 256]


def test_inactive_lanes_move_nothing(hip: Hip, assemble: Assemble) -> None:
    line = "s_mov_b64 exec, 0xff\nglobal_store_dword v1, v2, s[4:5]"
    got = at_addresses(hip, assemble, "gfx950", line, lambda lane: 4 * lane + 1024)
    assert memory(got, "global") == [256, 2, 2, 32, 1, 1]


# ---- passes, barriers, occupancy ---------------------------------------------------------------


def test_mfma_passes(hip: Hip, assemble: Assemble) -> None:
    lines = ["v_mfma_f32_4x4x4_16b_f16 v[0:3], v[16:17], v[18:19], v[0:3]",
             "v_mfma_f32_16x16x32_f16 v[0:3], v[16:19], v[20:23], v[0:3]",
             "v_mfma_f32_16x16x4_f32 v[0:3], v16, v17, v[0:3]",
             "v_mfma_f32_32x32x16_f16 v[0:15], v[16:19], v[20:23], v[0:15]",
             "v_mfma_f32_32x32x16_f16 v[0:15], v[16:19], v[20:23], v[0:15]"]  # fmt: skip
    text = sim_kernels.kernel("k", "\n".join([*lines, "s_endpgm"]), ARGS, 8)
    text = text.replace("next_free_vgpr 8", "next_free_vgpr 64").replace("accum_offset 8",
                                                                         "accum_offset 64")
    got = run(hip, assemble(text), "gfx950", block=128)
    assert got["mfma.passes"] == 2 * (2 + 4 + 8 + 8 + 8)
    assert got["instructions.mfma"] == 2 * 5
    assert got["occupancy.limit.vgprs"] == 8


@pytest.mark.parametrize("arch", BOTH)
def test_barriers(hip: Hip, assemble: Assemble, arch: str) -> None:
    text = sim_kernels.kernel("k", "s_barrier\ns_nop 0\ns_barrier\ns_endpgm", ARGS, 8, arch)
    got = run(hip, assemble(text, arch), arch, grid=3, block=2 * LANES[arch])
    assert (got["barriers"], got["barriers.arrivals"]) == (3 * 2, 3 * 2 * 2)
    assert got["mfma.passes"] == 0


@pytest.mark.parametrize(
    ("arch", "static", "dynamic", "waves", "limits"),
    [
        ("gfx950", 0, 0, 8, {"slots": 8, "vgprs": 64, "sgprs": 25}),
        ("gfx950", 0, 81920, 2, {"slots": 8, "vgprs": 64, "sgprs": 25, "lds": 2}),
        ("gfx950", 20480, 20480, 4, {"slots": 8, "vgprs": 64, "sgprs": 25, "lds": 4}),
        ("gfx1151", 0, 0, 16, {"slots": 16, "vgprs": 64}),
        ("gfx1151", 16384, 16384, 8, {"slots": 16, "vgprs": 64, "lds": 8}),
    ],
)
def test_occupancy(
    hip: Hip, assemble: Assemble, arch: str, static: int, dynamic: int, waves: int,
    limits: dict[str, int],
) -> None:  # fmt: skip
    text = sim_kernels.kernel("k", "s_endpgm", ARGS, 8, arch, lds=static)
    got = run(hip, assemble(text, arch), arch, block=256, lds=dynamic)
    assert got["occupancy.waves_per_simd"] == waves
    found = {name.rpartition(".")[2]: n for name, n in got.items()
             if name.startswith("occupancy.limit.")}  # fmt: skip
    assert found == limits


def test_counting_is_off_until_asked_for(hip: Hip, assemble: Assemble) -> None:
    text = sim_kernels.kernel("k", "s_barrier\ns_endpgm", ARGS, 8)
    more = run(hip, assemble(text), "gfx950")
    hip.call("netraSimSetCounting", ctypes.c_int(0))
    try:
        plain = run(hip, assemble(text), "gfx950")
    finally:
        hip.call("netraSimSetCounting", ctypes.c_int(1))
    assert "barriers" in more and "barriers" not in plain
    assert plain == {name: more[name] for name in plain}
