"""A process that is killed at any point leaves every file old or new, never half.

Each child runs the real command and kills itself (SIGKILL) at a random one of the file events of
the folder that it writes to: opening, renaming, changing the mode. KILLS=30 for the campaign.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from harness_root import SmallRoot, runner
from netra_catalog import evidence, load, result
from netra_catalog.cli import main as catalog
from netra_harness import captures
from netra_harness.cli import main as harness

KILLS = int(os.environ.get("KILLS", "9"))
GAIN = "gfx950/gain_right"
REFERENCE = '''
def gain(variant, src, gain):
    return {"dst": src * __import__("numpy").float32(gain)}
'''


@pytest.fixture
def root(
    tmp_path: Path, llvm_bin: Path, sim_library: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    (tmp_path / "checkout").mkdir()
    small = SmallRoot(tmp_path / "checkout", llvm_bin)
    small.add("gfx950", "gain_right")
    monkeypatch.setenv("NETRA_ROOT", str(small.path))
    monkeypatch.chdir(small.path)
    (small.path / "power_cut_reference.py").write_text(REFERENCE)
    monkeypatch.syspath_prepend(str(small.path))
    return small.path


def killed_in(folder: str, at: int, command: Any, *words: str) -> bool:
    """Runs a command in a child that dies at event number `at` of a folder; did it?"""
    pid = os.fork()
    if pid == 0:
        seen = 0

        def hook(event: str, args: tuple[Any, ...]) -> None:
            nonlocal seen
            if event in ("open", "os.rename", "os.chmod", "os.remove") and any(
                folder in str(arg) for arg in args
            ):
                seen += 1
                if seen == at:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hook)
        try:
            runner().invoke(command, list(words))
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(pid, 0)[1])


def whole(root: Path) -> None:
    """Every result reads, and every capture."""
    _, errors = result.read_all(root, GAIN)
    assert not errors
    for path in (root / "harness/captures/test.gain").glob("*.safetensors"):
        assert captures.load(path)


def campaign(
    root: Path, folder: str, events: int, command: Any, words: tuple[str, ...],
    check: Callable[[], None],
) -> None:
    rng = random.Random(20260)
    deaths = 0
    for _ in range(-(-KILLS // 3)):
        deaths += killed_in(folder, rng.randint(1, events), command, *words)
        whole(root)
        check()
    assert deaths, "no child reached the event that it was to die at"
    done = runner().invoke(command, list(words))  # and what remains does not disturb the next one
    assert done.exit_code == 0, done.output
    whole(root)


def test_validate_record(root: Path) -> None:
    words = ("validate", GAIN, "--device", "sim", "--case", "n1", "--record")
    campaign(root, f"results/{GAIN}", 6, harness, words, lambda: None)
    assert len(result.read_all(root, GAIN)[0]) >= 2


def test_capture(root: Path) -> None:
    words = ("capture", "test.gain", "--from", "power_cut_reference:gain", "--variant", "plain")
    campaign(root, "harness/captures/test.gain", 3, harness, words, lambda: None)
    assert list((root / "harness/captures/test.gain").glob("*.safetensors"))


def test_promote(root: Path) -> None:
    done = runner().invoke(harness, ["validate", GAIN, "--full", "--device", "sim", "--record"])
    assert done.exit_code == 0, done.output
    form = json.loads(next((root / "results" / GAIN).glob("oracle*.json")).read_text())
    result.write(root, {**form, "kind": "mutate", "details": {"restricted": False}})
    yaml = root / "catalog" / f"{GAIN}.yaml"
    old = yaml.read_bytes()
    new: set[bytes] = set()

    def check() -> None:
        if yaml.read_bytes() != old:
            new.add(yaml.read_bytes())
            assert load(root=root)[0].maturity == "simulated"
            yaml.write_bytes(old)

    campaign(root, "catalog/gfx950", 8, catalog, ("promote", GAIN), check)
    assert len(new | {yaml.read_bytes()}) == 1
    assert evidence.problems(load(root=root)[0]) == []
