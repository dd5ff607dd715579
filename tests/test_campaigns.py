"""The campaigns: a sample of each on the simulator, and that they notice what is wrong."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from campaigns import compiler, core, csmith, ctorture, settled, vectors
from campaigns.packages import ensure
from netra_catalog.errors import NetraError, ToolError

Runner = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def campaign(repo_root: Path, sim_library: Path, llvm_bin: Path) -> Runner:
    """campaign("ctorture", "--count", "3"): the command, run to its end."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(repo_root / "tools" / "campaign.py"), *arguments],
            env={**os.environ, "NETRA_LLVM_BIN": str(llvm_bin)},
            capture_output=True,
            text=True,
        )

    return run


def installed(packages: tuple[str, ...], find: Callable[[], Path | None]) -> None:
    """Skips where Debian's packages cannot be had."""
    try:
        ensure(packages, find, "the campaign")
    except ToolError as error:
        pytest.skip(error.message)


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    assert done.stdout, done.stderr
    return done.stdout.splitlines()[-1]


# ---- the samples -----------------------------------------------------------------------------


def test_ctorture_sample(campaign: Runner) -> None:
    installed(ctorture.PACKAGES, ctorture._tarball)
    # Watched: what a compiler writes has every wait and nop that is needed.
    done = campaign("ctorture", "--count", "100", "--seed", "7", "--check")
    assert last_line(done) == "ctorture: 100 passed, 0 failed of 100", done.stdout
    assert done.returncode == 0


def test_a_crash_of_the_compiler_is_told_from_a_refusal() -> None:
    with pytest.raises(compiler.CompilerCrashed):
        compiler.run(["sh", "-c", "kill -SEGV $$"])
    with pytest.raises(compiler.CompilerCrashed):
        compiler.run(["sh", "-c", "echo 'PLEASE submit a bug report to us' >&2; exit 139"])
    with pytest.raises(compiler.CompileFailed) as refused:
        compiler.run(["sh", "-c", "echo 'error: no such thing' >&2; exit 1"])
    assert not isinstance(refused.value, compiler.CompilerCrashed)


def test_wait_states_agree_with_llvm(campaign: Runner) -> None:
    done = campaign("hazard-fuzz", "--count", "300", "--seed", "5")
    assert last_line(done) == "hazard-fuzz: 300 passed, 0 failed of 300", done.stdout


def test_csmith_sample(campaign: Runner) -> None:
    installed(csmith.PACKAGES, csmith._csmith)
    done = campaign("csmith", "--count", "12", "--seed", "7")
    assert last_line(done) == "csmith: 12 passed, 0 failed of 12", done.stdout
    assert done.returncode == 0


# ---- vectors ---------------------------------------------------------------------------------

# s[0:1] points to the buffer's address; one dword for each of four lanes, none of them touched.
RDNA3 = """
        s_load_b64      s[4:5], s[0:1], null
        v_lshlrev_b32   v1, 2, v0
        v_mul_u32_u24   v2, v0, v0
        s_waitcnt       lgkmcnt(0)
        global_store_b32 v1, v2, s[4:5]
        s_endpgm
"""
CDNA = """
        s_load_dwordx2  s[4:5], s[0:1], 0x0
        v_mov_b32       v1, 0
        v_mov_b32       v2, 42
        s_waitcnt       lgkmcnt(0)
        global_store_dword v1, v2, s[4:5]
        s_endpgm
"""
FAULTS = """
        v_mov_b32       v0, 0
        v_mov_b32       v1, 0
        global_store_b32 v[0:1], v0, off
        s_endpgm
"""


@pytest.fixture
def record(llvm_bin: Path, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """record(source, "rdna3", after): a record of the instructions in `source`."""

    def make(source: str, arch: str, after: list[int], lanes: int = 1) -> dict[str, Any]:
        target = vectors.TARGETS.get(arch, "gfx1151")
        assembled = subprocess.run(
            [str(llvm_bin / "llvm-mc"), "--arch=amdgcn", f"--mcpu={target}", "--show-encoding"],
            input=source, capture_output=True, text=True, check=True,
        )  # fmt: skip
        code = "".join(re.findall(r"encoding: \[([0-9a-fx,]+)\]", assembled.stdout))
        return {
            "test": "written here", "arch": arch, "block": [lanes, 1, 1], "rsrc2": 0x19C,
            "scratch": 0, "before_zero": True,
            "code": code.replace("0x", "").replace(",", ""),
            "after": b"".join(value.to_bytes(4, "little") for value in after).hex(),
        }  # fmt: skip

    return make


def write(path: Path, *records: dict[str, Any]) -> str:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return str(path)


def test_vectors_run_on_their_target(
    campaign: Runner, record: Callable[..., Any], tmp_path: Path
) -> None:
    file = write(
        tmp_path / "good.jsonl",
        record(RDNA3, "rdna3", [0, 1, 4, 9, 0], lanes=4),
        record(CDNA, "cdna", [42, 0]),
        record(RDNA3, "rdna4", [0]),
    )
    done = campaign("vectors", "--file", file)
    assert "not run: 1 records for other targets" in done.stdout
    assert "gfx950: 1 passed, 0 failed of 1" in done.stdout
    assert last_line(done) == "vectors: 2 passed, 0 failed of 2", done.stdout
    assert done.returncode == 0


def test_vectors_tell_what_differs(
    campaign: Runner, record: Callable[..., Any], tmp_path: Path
) -> None:
    file = write(
        tmp_path / "bad.jsonl",
        record(RDNA3, "rdna3", [0, 1, 5, 9], lanes=4),
        record(RDNA3, "rdna3", [0, 1, 4, 9], lanes=4),
        record(FAULTS, "rdna3", [0]),
    )
    done = campaign("vectors", "--file", file)
    assert "FAIL gfx1151 1 written here: out[2] is 0x00000004, recorded 0x00000005" in done.stdout
    assert re.search(r"FAIL gfx1151 3 written here: .*\n.*pc 0x", done.stdout), done.stdout
    assert f"rerun: make vectors VECTORS={file} ARGS=1\n" in done.stdout
    assert last_line(done) == "vectors: 1 passed, 2 failed of 3"
    assert done.returncode == 1
    only = campaign("vectors", "--file", file, "2")
    assert last_line(only) == "vectors: 1 passed, 0 failed of 1"


def test_a_word_is_named_by_what_it_holds() -> None:
    size = 16 * 4 * 32 + 76
    names = [vectors.label(offset, 32, size) for offset in (0, 4, 128, 2048, 2112, 2116, 2120)]
    assert names == ["v0[0]", "v0[1]", "v1[0]", "s0", "vcc", "scc", "exec"]
    assert vectors.label(8, 1, 2124) == "v2"
    assert vectors.label(8, 1, 16) == "out[2]"


def test_a_damaged_record_is_named_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "broken.jsonl"
    path.write_text('\n{"code": "00"}\n')
    with pytest.raises(NetraError, match=r"broken\.jsonl:2: no record"):
        vectors.read(path)


def test_settled_covers_no_more_than_it_says() -> None:
    entry = settled.Settled("Test::.*", r"v\d+", 1, 2, "because")
    assert entry.covers("a/b.py::Test::c", "v3", 1, 2)
    assert not entry.covers("a/b.py::Test::c", "s3", 1, 2)
    assert not entry.covers("a/b.py::Test::c", "v3", 1, 3)
    assert not entry.covers("a/b.py::Other::c", "v3", 1, 2)


def test_a_rewrite_changes_its_own_program_only() -> None:
    rewrite = settled.REWRITES[0]
    code = b"".join(word.to_bytes(4, "little") for word in (*rewrite.old, 7)).hex()
    words = [*rewrite.new, 7]
    changed = vectors.code({"test": "a.py::TestCDNASDWA::b", "code": code})
    assert changed == b"".join(word.to_bytes(4, "little") for word in words)
    assert vectors.code({"test": "a.py::TestRDNA::b", "code": code}).hex() == code


# ---- what they share -------------------------------------------------------------------------


def test_a_sample_is_decided_by_its_seed() -> None:
    names = [f"p{number}" for number in range(50)]
    first = core.choose(names, core.Options(count=5, seed=3))
    assert first == core.choose(names, core.Options(count=5, seed=3))
    assert first == sorted(first, key=names.index) and len(first) == 5
    assert first != core.choose(names, core.Options(count=5, seed=4))
    assert core.choose(names, core.Options(count=50)) == names == core.choose(names, core.Options())


def test_failures_of_one_kind_have_one_reason() -> None:
    texts = {
        core.reason(f"record_{n}: instruction 's_x' is not implemented for gfx950: s_x s{n}\n at")
        for n in (1, 2)
    }
    assert texts == {"instruction 's_x' is not implemented for gfx950"}


def test_the_list_is_in_order_and_has_no_doubles() -> None:
    names = ctorture.programs()
    assert names == sorted(set(names)) and len(names) > 1300


def test_an_unknown_program_has_a_suggestion(campaign: Runner) -> None:
    done = campaign("ctorture", "switch-7")
    assert done.returncode == 2
    assert "no program 'switch-7' (did you mean 'switch-1'?)" in done.stderr
