"""Traces: which instructions a launch executed, with the names of its register map."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import sim_kernels

Assemble = Callable[..., Path]

pytestmark = pytest.mark.usefixtures("sim_library")

NAMES = """
        .equiv  sKarg, 0
        .equiv  sData, 4
        .equiv  sStep, 6
        .equiv  vOff, 1
        .equiv  vX, 2
"""
PLACE = re.compile(r"(workgroup .* wave \d+) add_step\+0x([0-9a-f]+) (\S+\.s:\d+): (.*)")


def run_cli(*args: object) -> subprocess.CompletedProcess[str]:
    """In a process of its own: the simulator's devices are chosen once per process."""
    code = "from netra_sim.cli import main; main(prog_name='netra-sim')"
    return subprocess.run([sys.executable, "-c", code, *map(str, args)], capture_output=True,
                          text=True, timeout=120,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})


def run_add(assemble: Assemble, arch: str, *args: object, dwords: int = 128,
            text: str = "") -> subprocess.CompletedProcess[str]:
    path = assemble(text or NAMES + sim_kernels.add(arch), arch)
    return run_cli("run", path, "add_step", "--block", 64, "--arg", f"data=u32[{dwords}]",
                   "--arg", "step=1:u32", *args)


EXPECTED = {
    "gfx950": [
        "s_load_dwordx2 s[sData:sData+1], s[sKarg:sKarg+1], 0x0",
        "s_load_dword s[sStep], s[sKarg:sKarg+1], 0x8",
        "v_lshl_add_u32 v[vOff], s[sKarg+2], 6, v0",
        "v_lshlrev_b32_e32 v[vOff], 2, v[vOff]",
        "s_waitcnt lgkmcnt(0)",
        "global_load_dword v[vX], v[vOff], s[sData:sData+1]",
        "s_waitcnt vmcnt(0)",
        "v_add_u32_e32 v[vX], s[sStep], v[vX]",
        "global_store_dword v[vOff], v[vX], s[sData:sData+1]",
        "s_endpgm",
    ],
    "gfx1151": [
        "s_load_b64 s[sData:sData+1], s[sKarg:sKarg+1], null",
        "s_load_b32 s[sStep], s[sKarg:sKarg+1], 0x8",
        "v_lshl_add_u32 v[vOff], s[sKarg+2], 6, v0",
        "v_lshlrev_b32_e32 v[vOff], 2, v[vOff]",
        "s_waitcnt lgkmcnt(0)",
        "global_load_b32 v[vX], v[vOff], s[sData:sData+1]",
        "s_waitcnt vmcnt(0)",
        "v_add_nc_u32_e32 v[vX], s[sStep], v[vX]",
        "global_store_b32 v[vOff], v[vX], s[sData:sData+1]",
        "s_endpgm",
    ],
}


@pytest.mark.parametrize("arch", ["gfx950", "gfx1151"])
def test_every_instruction_of_every_wave(assemble: Assemble, arch: str) -> None:
    done = run_add(assemble, arch, "--grid", 2, "--trace")
    assert done.returncode == 0, done.stderr
    waves: dict[str, list[str]] = {}
    lines: dict[int, int] = {}
    for row in done.stderr.splitlines():
        found = PLACE.fullmatch(row)
        assert found, row
        waves.setdefault(found[1], []).append(found[4])
        lines[int(found[2], 16)] = int(found[3].rpartition(":")[2])
    per_group = 1 if arch == "gfx950" else 2
    assert sorted(waves) == [f"workgroup {g},0,0 wave {w}" for g in range(2)
                             for w in range(per_group)]
    assert all(texts == EXPECTED[arch] for texts in waves.values()), waves
    assert sorted(lines) == sorted(lines, key=lines.__getitem__) and len(lines) == 10
    assert lines[0] > 1  # of the .s file
    assert "trace" not in done.stdout


def test_accumulators_and_tuples(assemble: Assemble) -> None:
    body = ["v_accvgpr_write_b32 a5, v3", "v_mov_b32 v7, v3", "v_pk_mul_f32 v[4:5], v[4:5], v[6:7]",
            "s_mov_b64 s[8:9], exec", "v_mov_b32 v3, 0xa5", "s_endpgm"]
    text = (".equiv aAcc, 2\n.equiv vLow, 3\n.equiv vPair, 4\n.equiv sMask, 9\n.equiv vNot, 200\n"
            + sim_kernels.kernel("add_step", "\n".join(body), sim_kernels.ADD_ARGS, 16)
            ).replace("next_free_vgpr 8", "next_free_vgpr 16")  # fmt: skip
    done = run_add(assemble, "gfx950", "--grid", 1, "--trace", text=text)
    assert done.returncode == 0, done.stderr
    assert [row.rpartition(": ")[2] for row in done.stderr.splitlines()] == [
        "v_accvgpr_write_b32 a[aAcc+3], v[vLow]",
        "v_mov_b32_e32 v[vPair+3], v[vLow]",
        "v_pk_mul_f32 v[vPair:vPair+1], v[vPair:vPair+1], v[vPair+2:vPair+3]",
        "s_mov_b64 s[8:9], exec",
        "v_mov_b32_e32 v[vLow], 0xa5",
        "s_endpgm",
    ]


def test_the_limit_is_told(assemble: Assemble, tmp_path: Path) -> None:
    trace = tmp_path / "trace.txt"
    done = run_add(assemble, "gfx950", "--grid", 2, "--trace-file", trace, "--trace-limit", 3)
    assert done.returncode == 0 and not done.stderr
    rows = trace.read_text().splitlines()
    assert len(rows) == 4 and rows[3] == "... 17 more instructions; the limit is 3"
    assert [p.name for p in tmp_path.iterdir()] == ["trace.txt"]
    again = run_add(assemble, "gfx950", "--grid", 2, "--trace-file", trace, "--trace-limit", 20)
    assert again.returncode == 0 and len(trace.read_text().splitlines()) == 20


def test_a_fault_is_the_last_line(assemble: Assemble) -> None:
    done = run_add(assemble, "gfx950", "--grid", 1, "--trace", "--counters", dwords=63)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    rows = [row for row in done.stderr.splitlines() if PLACE.fullmatch(row)]
    assert len(rows) == 6 and rows[-1].endswith(EXPECTED["gfx950"][5])
    assert re.search(r"^  instructions +6$", done.stderr, re.M)
    assert done.stderr.index(rows[-1]) < done.stderr.index("\nError: ")


def test_a_trace_that_cannot_be_written(assemble: Assemble, tmp_path: Path) -> None:
    done = run_add(assemble, "gfx950", "--grid", 1, "--trace-file", tmp_path)
    assert done.returncode == 2 and f"{tmp_path}: Is a directory" in done.stderr
    done = run_add(assemble, "gfx950", "--grid", 1, "--trace", "--trace-limit", 0)
    assert done.returncode == 2 and "--trace-limit" in done.stderr


def test_counters_on_the_command_line(assemble: Assemble) -> None:
    done = run_add(assemble, "gfx950", "--grid", 2, "--counters")
    assert done.returncode == 0, done.stderr
    shown = dict(re.split(r"  +", row.strip(), maxsplit=1)
                 for row in done.stdout.splitlines() if row.startswith("  "))
    assert shown["instructions"] == "20" and shown["results"].startswith("20 exact")
    assert shown["global read"] == "512 bytes, 4 lines of 128 bytes, 4 line requests"
    assert shown["barriers"] == "0, reached by 0 waves"
    done = run_add(assemble, "gfx950", "--grid", 2, "--counters", "--json", "--trace")
    document = json.loads(done.stdout)
    assert document["counters"]["memory.global.write_lines"] == 4
    assert document["counters"]["occupancy.waves_per_simd"] == 8
    assert len(done.stderr.splitlines()) == 1 + 20
