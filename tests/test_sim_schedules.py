"""netra-sim run --schedules: outputs that depend on the order of workgroups and waves."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import check_programs
import pytest
from check_programs import case
from harness_root import SmallRoot
from netra_harness.validate import Settings, validate
from netra_sim import schedules
from spelling import BOTH
from spoils import SCALES_DST, STORE, change

LAST_WINS = "v_mov_b32 v21, 0\nv_mov_b32 v22, s2\n{} v21, v22, s[4:5] offset:64"


@pytest.mark.parametrize("arch", BOTH)
@pytest.mark.parametrize(("what", "code"), [("store", 1), ("add", 0)])
def test_outputs_of_several_schedules(
    arch: str,
    what: str,
    code: int,
    assemble: Callable[..., Path],
    hip_env: Callable[..., dict[str, str]],
) -> None:
    old = arch == "gfx950"
    store = "global_store_dword" if old else "global_store_b32"
    add = "global_atomic_add" if old else "global_atomic_add_u32"
    one = case("case", LAST_WINS.format(store if what == "store" else add))
    text, _ = check_programs.source(arch, [one])
    lanes = 64 if old else 32
    done = subprocess.run(
        [Path(sys.executable).parent / "netra-sim", "run", str(assemble(text, arch)), "k",
         "--grid", "12", "--block", str(lanes),
         "--arg", "data=u32[16384]", "--schedules", "6"],
        env=hip_env(arch), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == code, done.stdout
    assert ("error order D order: data depends on the schedule" in done.stdout) == bool(code)
    assert ("data[16]" in done.stdout) == bool(code)


def test_the_first_element_that_differs_is_named() -> None:
    found = schedules.difference("k", (1, 3), "y", bytes(16), bytes(9) + b"\1" + bytes(6), 4)
    assert found and found["count"] == 1
    assert "first y[2]: 0x00000000 under seed 1, 0x00000100 under 3" in found["text"]
    assert schedules.difference("k", (1, 3), "y", bytes(16), bytes(16), 4) is None


@pytest.mark.parametrize("arch", BOTH)
def test_the_harness_compares_schedules(
    arch: str,
    tmp_path: Path,
    llvm_bin: Path,
    sim_library: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every workgroup spoils element 0 before it stores its own: right if the first is last."""

    def spoil(text: str) -> str:
        store = f"        {STORE[arch]} {SCALES_DST}"
        extra = store.replace("v[vOff]", "v[vIdx]")
        return change(text, store, f"        v_mov_b32       v[vIdx], 0\n{extra}\n{store}")

    root = SmallRoot(tmp_path, llvm_bin)
    root.add(arch, "right")
    root.add(arch, "ordered", spoil)
    monkeypatch.setenv("NETRA_ROOT", str(root.path))
    case = "n300"

    def run(stem: str, seed: int, schedules: int) -> list[str]:
        settings = Settings(
            f"{arch}/{stem}", device="sim", seed=seed, case=case, sanitize=False,
            schedules=schedules,
        )  # fmt: skip
        (tactic,) = validate(settings).tactics
        (result,) = tactic.results  # a replay that differs is the same fault
        return [failure.kind for failure in result.failures if failure.kind != "replay"]

    assert run("right", 1, 4) == []
    lucky = next(seed for seed in range(1, 30) if run("ordered", seed, 1) == [])
    assert run("ordered", lucky, 12) == ["order"]
