"""Device memory that nobody has written: found where it is used, whatever way it took there."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from pathlib import Path

import check_programs
import pytest
from check_programs import BYTES, case
from netra_sim.hip import Hip
from sim_kernels import private_simulator

START, END = 4096, 8192  # the bytes of the memory that are undefined

# s[4:5] is the memory, v1 = 4 * lane, v16 and v17 are 0. (instructions, what the error names)
ROWS: list[tuple[str, str]] = [
    ("load v20 v1 4096;add 21 20 16", "v20"),
    ("load v20 v1 0;add 21 20 16", ""),
    ("load v20 v1 4096;nothing", ""),  # a load alone is no use
    ("load v20 v1 4092;add 21 20 16", "v20"),  # lane 0 reads defined bytes, the others do not
    ("load v20 v1 4096;v_mov_b32 v21, v20;add 22 21 16", "v21"),
    ("load v20 v1 4096;v_and_b32 v20, 0, v20;add 21 20 16", ""),
    ("load v20 v1 4096;v_readfirstlane_b32 s20, v20;nothing;s_cmp_eq_u32 s20, 0", ""),
    ("load v20 v1 4096;v_readfirstlane_b32 s20, v20;nothing;s_cmp_eq_u32 s20, 0;"
     "s_cbranch_scc1 .Lx;.Lx:", "scc"),
    ("load v20 v1 4096;global v20 4", "v20"),  # as an address
    # Written by the kernel itself, bytes of it and all of it.
    ("store v1 v16 4096;load v20 v1 4096;add 21 20 16", ""),
    ("short v1 v16 4100;load v20 v1 4100;v_and_b32 v20, 0xffff, v20;add 21 20 16", ""),
    ("short v1 v16 4608;load v20 v1 4608;v_lshrrev_b32 v20, 16, v20;global v20 4", "v20"),
    # Through LDS and back through memory.
    ("load v20 v1 5120;lds v1 v20;ldsload v21 v1;add 22 21 16", "v21"),
    ("load v20 v1 5120;store v1 v20 256;load v22 v1 256;add 23 22 16", "v22"),
    # Scalar loads.
    ("sload s20 6144;s_add_u32 s21, s20, 1", "s20"),
    ("sload s20 64;s_add_u32 s21, s20, 1", ""),
    ("sload2 8188;s_add_u32 s22, s20, 1", "s20"),  # the second dword is defined
    ("sload2 8188;s_add_u32 s22, s21, 1", ""),
    # An atomic needs what is there.
    ("atomic v16 v17 7168", "memory"),
    ("atomic v16 v17 512", ""),
]
SHORT = {
    "gfx950": {
        "load": "global_load_dword {0}, {1}, s[6:7] offset:{2}\ns_waitcnt vmcnt(0)",
        "store": "global_store_dword {0}, {1}, s[6:7] offset:{2}\ns_waitcnt vmcnt(0)",
        "short": "global_store_short {0}, {1}, s[6:7] offset:{2}\ns_waitcnt vmcnt(0)",
        "global": "global_load_dword v21, {0}, s[4:5] offset:{1}\ns_waitcnt vmcnt(0)",
        "lds": "ds_write_b32 {0}, {1}\ns_waitcnt lgkmcnt(0)",
        "ldsload": "ds_read_b32 {0}, {1}\ns_waitcnt lgkmcnt(0)",
        "sload": "s_load_dword {0}, s[4:5], {1}\ns_waitcnt lgkmcnt(0)",
        "sload2": "s_load_dwordx2 s[20:21], s[4:5], {0}\ns_waitcnt lgkmcnt(0)",
        "atomic": "global_atomic_add {0}, {1}, s[6:7] offset:{2}\ns_waitcnt vmcnt(0)",
        "add": "v_add_u32 v{0}, v{1}, v{2}", "nothing": "s_nop 0",
    },
    "gfx1151": {
        "load": "global_load_b32 {0}, {1}, s[6:7] offset:{2}\ns_waitcnt vmcnt(0)",
        "store": "global_store_b32 {0}, {1}, s[6:7] offset:{2}\ns_waitcnt_vscnt null, 0",
        "short": "global_store_b16 {0}, {1}, s[6:7] offset:{2}\ns_waitcnt_vscnt null, 0",
        "global": "global_load_b32 v21, {0}, s[4:5] offset:{1}\ns_waitcnt vmcnt(0)",
        "lds": "ds_store_b32 {0}, {1}\ns_waitcnt lgkmcnt(0)",
        "ldsload": "ds_load_b32 {0}, {1}\ns_waitcnt lgkmcnt(0)",
        "sload": "s_load_b32 {0}, s[4:5], {1}\ns_waitcnt lgkmcnt(0)",
        "sload2": "s_load_b64 s[20:21], s[4:5], {0}\ns_waitcnt lgkmcnt(0)",
        "atomic": "global_atomic_add_u32 {0}, {1}, s[6:7] offset:{2}\ns_waitcnt_vscnt null, 0",
        "add": "v_add_nc_u32 v{0}, v{1}, v{2}", "nothing": "s_nop 0",
    },
}  # fmt: skip


def lines(arch: str, text: str) -> str:
    """s[6:7] lies 4096 bytes up, since offsets reach less far than that."""
    out = ["s_nop 4", "s_add_u32 s6, s4, 4096", "s_addc_u32 s7, s5, 0"]
    for part in text.split(";"):
        words = part.split()
        form = SHORT[arch].get(words[0])
        if form is None:
            out.append(part.strip())
            continue
        args = list(words[1:])
        if "s[6:7]" in form:
            args[-1] = str(int(args[-1]) - 4096)
        out.append(form.format(*args))
    return "\n".join(out)


@pytest.fixture(params=["gfx950", "gfx1151"])
def machine(
    request: pytest.FixtureRequest, sim_library: Path, tmp_path: Path
) -> Iterator[tuple[Hip, str]]:
    with private_simulator(sim_library, tmp_path, request.param) as hip:
        yield hip, request.param


def test_memory_that_nobody_has_written(
    machine: tuple[Hip, str], assemble: Callable[..., Path]
) -> None:
    """Every row by itself: a kernel that writes to the memory would spoil the next one."""
    hip, arch = machine
    for text, name in ROWS:
        one = case("case", lines(arch, text))
        told = check_programs.run(hip, assemble, arch, [one], undefined=(START, END))
        assert not told.fault or name, text
        found = [f for f in told.by_case["case"]
                 if (f["kind"], f["severity"]) == ("init", "error")]  # fmt: skip
        shown = [f["register"] or f["text"].split()[0] for f in found]
        assert shown == ([name] if name else []), text


def test_where_it_came_from(machine: tuple[Hip, str], assemble: Callable[..., Path]) -> None:
    hip, arch = machine
    text = lines(arch, "load v20 v1 4096;add 21 20 16")
    told = check_programs.run(hip, assemble, arch, [case("c", text)], undefined=(START, END))
    (found,) = [f for f in told.by_case["c"] if f["kind"] == "init"]
    assert "what the first instruction put there was not defined" in found["text"]
    assert found["other"]["text"].startswith("global_load")


def test_copies_hand_it_on(machine: tuple[Hip, str], assemble: Callable[..., Path]) -> None:
    """hipMemcpy from undefined memory defines nothing; from the host, and hipMemset, do."""
    hip, arch = machine
    hip.call("netraSimReset")
    hip.sanitize()
    text = lines(arch, "load v20 v1 0;add 21 20 16")
    source, _ = check_programs.source(arch, [case("c", text.replace("s[6:7] offset:-4096",
                                                                    "s[4:5]"))])
    module = hip.load_module(assemble(source, arch))
    threads = 64 if arch == "gfx950" else 32

    def found(pointer: int) -> list[str]:
        hip.call("netraSimForgetFindings")
        hip.launch(hip.function(module, "k"), (1, 1, 1), (threads, 1, 1),
                   pointer.to_bytes(8, "little"))
        hip.synchronize()
        return [f["register"] for f in hip.findings() if f["kind"] == "init"]

    fresh, other = hip.malloc(BYTES), hip.malloc(BYTES)
    try:
        assert found(fresh) == ["v20"]
        hip.fill(other, 0, BYTES)
        assert found(other) == []
        hip.call("hipMemcpy", ctypes.c_void_p(other), ctypes.c_void_p(fresh),
                 ctypes.c_size_t(BYTES), 3)
        assert found(other) == ["v20"]
        host = (ctypes.c_char * BYTES)()
        hip.call("hipMemcpy", ctypes.c_void_p(other), host, ctypes.c_size_t(BYTES), 1)
        assert found(other) == []
        # A launch that nobody watches may have written anything.
        hip.sanitize(False)
        assert found(fresh) == []
        hip.sanitize()
        assert found(fresh) == []
    finally:
        hip.sanitize(False)
        hip.free(fresh)
        hip.free(other)
        hip.unload_module(module)
