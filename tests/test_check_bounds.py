"""Accesses that miss what was meant: those that hardware lets pass are findings, the others stop
the kernel with a text that says what is near."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import check_programs
import pytest
from check_programs import case
from netra_sim.hip import Hip
from sim_kernels import private_simulator


@pytest.fixture(params=["gfx950", "gfx1151"])
def machine(
    request: pytest.FixtureRequest, sim_library: Path, tmp_path: Path
) -> Iterator[tuple[Hip, str]]:
    with private_simulator(sim_library, tmp_path, request.param) as hip:
        yield hip, request.param


# s[4:5] and v[2:3] are 65536 bytes of memory, s[8:11] its descriptor, v1 = 4 * lane; LDS has 32768
# bytes. (name, instructions, rule, severity, words of the finding)
FOUND = [
    ("a load past the descriptor", "v_mov_b32 v20, 0x10000\nBLOAD v21, v20, s[8:11], 0 offen",
     "E range", "warning", "4 bytes lie outside the range"),
    ("the last dword of a wide load", "v_mov_b32 v20, 0xfff8\nBLOAD4 v[24:27], v20, s[8:11], 0 "
     "offen", "E range", "warning", "0 is read in silence"),
    ("a store past the descriptor", "v_mov_b32 v20, 0x10000\nBSTORE v1, v20, s[8:11], 0 offen",
     "E range", "warning", "the store is dropped in silence"),
    ("a scalar load past the descriptor", "s_mov_b32 s20, 0x10000\nSBLOAD s21, s[8:11], s20",
     "E range", "warning", "4 bytes lie outside"),
    ("offsets that wrap", "v_mov_b32 v20, 0xfffffffc\nBLOAD v21, v20, s[8:11], 0 offen offset:8",
     "E wrap", "error", "wrap to 0x4"),
    ("a scalar address with low bits", "s_mov_b32 s20, 6\nSLOAD s21, s[4:5], s20",
     "E align", "error", "drops the two low bits"),
    ("a dword across dwords", "v_mov_b32 v20, 2\nGLOAD v21, v20, s[4:5]",
     "E align", "warning", "no multiple of 4"),
    ("a half across bytes", "v_mov_b32 v20, 3\nGSHORT v20, v1, s[4:5]",
     "E align", "warning", "no multiple of 2"),
    ("LDS across dwords", "v_mov_b32 v20, 2\nDSREAD2 v[22:23], v20",
     "E align", "warning", "8 bytes at an address that is no multiple of 4"),
]  # fmt: skip
SILENT = [
    ("inside the descriptor", "v_mov_b32 v20, 0xfffc\nBLOAD v21, v20, s[8:11], 0 offen"),
    ("a byte anywhere", "v_mov_b32 v20, 3\nGBYTE v20, v1, s[4:5]"),
    ("a half on a half", "v_mov_b32 v20, 2\nGSHORT v20, v16, s[4:5]"),
    ("aligned", "GLOAD v21, v1, s[4:5]\nSLOAD s21, s[4:5], 0x8"),
    ("wide on dwords", "GLOAD4 v[24:27], v1, s[4:5]"),
]
# (name, instructions, words of what the kernel is stopped with)
STOPPED = [
    ("global", "v_mov_b32 v20, 0x10000\nGLOAD v21, v20, s[4:5]",
     "out-of-bounds access of 4 bytes at", "0 bytes past the end of hipMalloc"),
    ("partly", "v_mov_b32 v20, 0xfffe\nGLOAD v21, v20, s[4:5]", "at byte 65534 of hipMalloc", ""),
    ("negative", "v_mov_b32 v20, -4\nGLOAD v21, v20, s[4:5]", "out-of-bounds",
     "a negative one lies 4 GiB further up"),
    ("between allocations", "v_mov_b32 v20, 0x80000\nGLOAD v21, v20, s[4:5]",
     "out-of-bounds", "past the end of hipMalloc"),
    ("lds", "v_mov_b32 v20, 0x8000\nDSREAD v21, v20", "LDS access of 4 bytes at 0x8000",
     "the workgroup has 32768 bytes of LDS"),
    ("scratch", "v_mov_b32 v20, 64\nSCRATCH v21, v20, off", "scratch access of 4 bytes at 0x40",
     "a lane has 64 bytes of scratch"),
    ("kernarg", "SLOAD s21, s[0:1], 0x8", "out-of-bounds access of 4 bytes",
     "0 bytes past the end of kernarg"),
]  # fmt: skip
FORMS = {
    "gfx950": {
        "SBLOAD": "s_buffer_load_dword", "BLOAD4": "buffer_load_dwordx4",
        "BLOAD": "buffer_load_dword", "BSTORE": "buffer_store_dword", "SLOAD": "s_load_dword",
        "GLOAD4": "global_load_dwordx4", "GLOAD": "global_load_dword",
        "GSHORT": "global_store_short", "GBYTE": "global_store_byte", "DSREAD2": "ds_read_b64",
        "DSREAD": "ds_read_b32", "SCRATCH": "scratch_load_dword",
    },
    "gfx1151": {
        "SBLOAD": "s_buffer_load_b32", "BLOAD4": "buffer_load_b128", "BLOAD": "buffer_load_b32",
        "BSTORE": "buffer_store_b32", "SLOAD": "s_load_b32", "GLOAD4": "global_load_b128",
        "GLOAD": "global_load_b32", "GSHORT": "global_store_b16", "GBYTE": "global_store_b8",
        "DSREAD2": "ds_load_b64", "DSREAD": "ds_load_b32", "SCRATCH": "scratch_load_b32",
    },
}  # fmt: skip


def spelled(arch: str, text: str) -> str:
    """One active lane, so that addresses that all lanes share are no other finding."""
    for ours, theirs in FORMS[arch].items():
        text = text.replace(f"{ours} ", f"{theirs} ")
    one = "s_mov_b64 exec, 1" if arch == "gfx950" else "s_mov_b32 exec_lo, 1"
    return f"{one}\ns_nop 4\n{text}"


def test_what_passes_in_silence(machine: tuple[Hip, str], assemble: Callable[..., Path]) -> None:
    hip, arch = machine
    cases = [case(name, spelled(arch, text)) for name, text, *_ in FOUND]
    cases += [case(name, spelled(arch, text)) for name, text in SILENT]
    told = check_programs.run(hip, assemble, arch, cases)
    assert not told.fault
    for name, _, rule, severity, words in FOUND:
        found = [f for f in told.by_case[name] if f["kind"] == "bounds" and f["rule"] == rule]
        assert [f["severity"] for f in found] == [severity], name
        assert words in found[0]["text"] and found[0]["mend"] and found[0]["address"] is not None
    for name, _ in SILENT:
        assert not [f for f in told.by_case[name] if f["kind"] == "bounds"], name


@pytest.mark.parametrize("name, text, first, second", STOPPED, ids=[row[0] for row in STOPPED])
def test_what_stops_the_kernel(
    machine: tuple[Hip, str], assemble: Callable[..., Path], name: str, text: str, first: str,
    second: str,
) -> None:
    hip, arch = machine
    told = check_programs.run(
        hip, assemble, arch, [case("case", spelled(arch, text))], scratch=64
    )
    assert first in told.fault and second in told.fault
    assert "by lane 0" in told.fault and ".s:" in told.fault


@pytest.mark.parametrize("machine", ["gfx950"], indirect=True)
def test_a_transpose_load_needs_every_lane(
    machine: tuple[Hip, str], assemble: Callable[..., Path]
) -> None:
    hip, arch = machine
    for lines, words in [
        ("s_mov_b64 exec, 1\nds_read_b64_tr_b16 v[22:23], v1", "EXEC has inactive lanes"),
        ("v_mov_b32 v20, 4\nds_read_b64_tr_b16 v[22:23], v20", "misaligned LDS"),
    ]:
        told = check_programs.run(hip, assemble, arch, [case("case", lines)])
        assert words in told.fault
