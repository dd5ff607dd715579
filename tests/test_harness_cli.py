"""netra-harness as people and scripts use it: text, JSON, exit codes."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from harness_root import SmallRoot, runner
from netra_harness.cli import main
from spoils import SPOILT, change


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory, llvm_bin: Path, sim_library: Path) -> Path:
    """Two right tactics, a wrong one, and a rejected one."""
    root = SmallRoot(tmp_path_factory.mktemp("checkout"), llvm_bin)
    root.add("gfx950", "gain_right")
    root.add("gfx1151", "gain_right")
    root.add("gfx950", "gain_wrong", partial(SPOILT["one_wrong"].edit, arch="gfx950"))
    root.add("gfx950", "gain_rejected", yaml=lambda text: text + "maturity: rejected\n")
    return root.path


@pytest.fixture
def harness(checkout: Path, monkeypatch: Any) -> Any:
    """harness("validate", ...): runs the command in the small checkout."""
    monkeypatch.setenv("NETRA_ROOT", str(checkout))
    monkeypatch.chdir(checkout)

    def run(*words: str) -> Any:
        return runner().invoke(main, list(words))

    return run


def test_list(harness: Any) -> None:
    result = harness("list", "--json")
    assert result.exit_code == 0
    tactics = json.loads(result.stdout)["tactics"]
    assert [t["tactic"] for t in tactics] == [
        "gfx1151/gain_right", "gfx950/gain_rejected", "gfx950/gain_right", "gfx950/gain_wrong",
    ]  # fmt: skip
    assert tactics[1] == {
        "tactic": "gfx950/gain_rejected", "arch": "gfx950", "op": "test.gain",
        "maturity": "rejected", "hold": None, "kernels": ["gain_rejected"],
    }  # fmt: skip
    plain = harness("list", "gain_r*", "--arch", "gfx1151").stdout
    assert plain == "gfx1151/gain_right  test.gain  experiment  gain_right\n"


def test_a_passing_run_ends_with_seed_and_verdict(harness: Any) -> None:
    result = harness("validate", "gain_right", "--device", "sim", "--seed", "7", "-v")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[-2] == "seed 7"
    assert re.fullmatch(
        r"passed: 2 tactics, 6 cases on the simulator in [\d.]+ s", lines[-1]
    )
    (header,) = [line for line in lines if line.startswith("tactic ")]
    assert header.split("  ")[0] == "tactic" and header.endswith("seconds")
    rows = lines[lines.index(header) + 1 : -2]
    assert [row.split()[:3] for row in rows] == [
        ["gain_right", "gfx1151", "3"], ["gain_right", "gfx950", "3"],
    ]  # fmt: skip
    assert "deployed 0 (bitwise), exact 0.5 ulp" in rows[0]
    assert sum(line.startswith("ok    gfx950/gain_right n") for line in lines) == 3


def test_a_failing_run_shows_the_element_and_how_to_rerun(harness: Any) -> None:
    result = harness("validate", "gfx950/gain_*", "--device", "sim")
    assert result.exit_code == 1
    assert "FAIL  gfx950/gain_wrong, case n100" in result.stdout
    assert "  dst differs from deployed in 1 of 100 elements\n" in result.stdout
    assert re.search(r"first at dst\[37\]: got [\d.]+ \(0x\w+\), want [\d.]+ \(0x", result.stdout)
    assert "where: stored by asm/gfx950/gain_wrong.s" in result.stdout
    assert "FAILED: 2 of 6 cases, in 1 of 2 tactics" in result.stdout
    command = re.search(r"rerun: (.*--case n100.*)", result.stdout)
    assert command is not None
    again = harness(*shlex.split(command[1])[1:])
    assert again.exit_code == 1 and "FAILED: 1 of 1 cases" in again.stdout
    wrong = re.search(r"first at.*", again.stdout)
    assert wrong is not None and wrong[0] in result.stdout  # the same seed, the same numbers


def test_json_alone_on_stdout_and_the_seed_on_stderr(harness: Any) -> None:
    result = harness("validate", "gain_right", "--device", "sim", "--json")
    document = json.loads(result.stdout)
    assert result.exit_code == 0 and result.stderr == "seed 20260\n"
    assert (document["device"], document["arch"], document["seed"], document["passed"]) == (
        "sim", "gfx1151,gfx950", 20260, True,
    )  # fmt: skip
    entry = document["tactics"][1]
    wanted = {"tactic", "arch", "op", "cases", "passed", "failed", "findings", "kernel_sha256",
              "seconds"}  # fmt: skip
    assert wanted <= entry.keys()
    assert (entry["cases"], entry["passed"], entry["failed"], entry["findings"]) == (3, 3, 0, [])


def test_json_of_a_failure(harness: Any) -> None:
    result = harness("validate", "gain_wrong", "--device", "sim", "--json", "--case", "n100")
    document = json.loads(result.stdout)
    assert result.exit_code == 1 and document["passed"] is False
    assert result.stderr.startswith("seed 20260\nFAIL  gfx950/gain_wrong, case n100\n")
    (finding,) = document["tactics"][0]["findings"]
    assert (finding["case"], finding["kind"], finding["launch"]) == ("n100", "mismatch", "eager")


def test_rejected_tactics_run_only_when_asked(harness: Any) -> None:
    result = harness("validate", "gain_rejected", "--device", "sim")
    assert result.exit_code == 2 and "--all" in result.stderr
    result = harness("validate", "gain_rejected", "--device", "sim", "--all", "--json")
    assert result.exit_code == 0 and json.loads(result.stdout)["passed"] is True


def test_full_runs_the_full_set(harness: Any) -> None:
    result = harness("validate", "gfx950/gain_right", "--device", "sim", "--full", "--json")
    assert result.exit_code == 0 and json.loads(result.stdout)["tactics"][0]["cases"] == 9


def test_a_random_seed_is_printed(harness: Any) -> None:
    words = ("validate", "gain_right", "--device", "sim", "--case", "n1", "--seed", "random")
    seeds = {harness(*words).stdout.splitlines()[-2] for _ in range(2)}
    assert len(seeds) == 2 and all(re.fullmatch(r"seed \d+", seed) for seed in seeds)


@pytest.mark.parametrize(
    "words, code, said",
    [
        (("validate", "gian_right"), 2, "no tactic matches 'gian_right'"),
        (("list", "nothing*"), 2, "no tactic matches 'nothing*'"),
        (("validate", "gain_right", "--case", "n10"), 2, "no case is called 'n10'"),
        (("validate", "--seed", "seven"), 2, "'seven' is neither a number nor 'random'"),
        (("validate", "--seed", "-1"), 2, "outside 0..2^64-1"),
        (("validate", "--arch", "gfx942"), 2, "gfx942"),
        (("validate", "--device", "cuda"), 2, "cuda"),
        (("validate", "gain_right", "--device", "hip"), 4, ""),
    ],
)
def test_usage_errors(harness: Any, words: tuple[str, ...], code: int, said: str) -> None:
    result = harness(*words)
    assert result.exit_code == code, result.output
    assert said in result.stderr and "Traceback" not in result.stdout + result.stderr


@pytest.mark.parametrize("damage", ["missing", "empty", "html", "truncated", "other-arch"])
def test_a_bad_code_object_is_an_error_before_anything_runs(
    harness: Any, checkout: Path, tmp_path: Path, damage: str, monkeypatch: Any
) -> None:
    root = tmp_path / "root"
    shutil.copytree(checkout, root, symlinks=True)
    monkeypatch.setenv("NETRA_ROOT", str(root))
    path = root / "build/gfx950/gain_right.co"
    raw = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        other = root / "build/gfx1151/gain_right.co"
        path.write_bytes(
            {"empty": b"", "html": b"<html>404</html>", "truncated": raw[: len(raw) // 2],
             "other-arch": other.read_bytes()}[damage]
        )  # fmt: skip
    result = harness("validate", "gfx950/gain_right", "--device", "sim")
    assert result.exit_code == (4 if damage == "missing" else 1), result.output
    said = result.stdout + result.stderr
    assert "gain_right" in said and "Traceback" not in said
    if damage == "missing":
        assert "run `make gfx950`" in result.stderr


def test_no_simulator_says_how_to_build_it(
    harness: Any, checkout: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    root = tmp_path / "root"
    shutil.copytree(checkout, root, symlinks=True)
    (root / "build/sim").unlink()
    monkeypatch.setenv("NETRA_ROOT", str(root))
    result = harness("validate", "gain_right", "--device", "sim")
    assert result.exit_code == 4 and "make sim" in result.stderr


def test_an_oracle_that_fails_names_its_line(
    harness: Any, checkout: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    root = tmp_path / "root"
    shutil.copytree(checkout, root, symlinks=True)
    oracle = root / "harness/netra_harness/oracles/gain.py"
    oracle.write_text(
        change(oracle.read_text(), "src * np.float32(gain)", "src @ np.float32(gain)")
    )
    monkeypatch.setenv("NETRA_ROOT", str(root))
    result = harness("validate", "gfx950/gain_right", "--device", "sim", "--case", "n1")
    assert result.exit_code == 1 and "ValueError" in result.output
    assert re.search(r"where: .*oracles/gain\.py:\d+", result.output)


# ---- captures in a run -------------------------------------------------------------------------


@pytest.fixture
def captured(harness: Any, checkout: Path, tmp_path: Path, monkeypatch: Any) -> Any:
    """captured(answer): a checkout whose op is captured from a reference that answers so."""
    root = tmp_path / "root"
    shutil.copytree(checkout, root, symlinks=True)
    monkeypatch.setenv("NETRA_ROOT", str(root))
    monkeypatch.chdir(root)
    references = tmp_path / "references"
    references.mkdir()
    monkeypatch.syspath_prepend(str(references))

    def make(answer: str, name: str) -> Path:
        (references / f"{name}.py").write_text(
            f"import numpy\n\ndef ask(variant, src, gain):\n    return {{'dst': {answer}}}\n"
        )
        harness("capture", "test.gain", "--variant", "plain", "--from", f"{name}:ask")
        (path,) = (root / "harness/captures/test.gain").iterdir()
        return path

    return make


@pytest.mark.parametrize("seed", ["20260", "8"])
def test_a_capture_is_compared_whatever_the_seed(harness: Any, captured: Any, seed: str) -> None:
    captured("src * numpy.float32(gain)", "right_reference")
    result = harness("validate", "gfx950/gain_right", "--device", "sim", "--seed", seed, "-v")
    assert result.exit_code == 0, result.output
    assert "right_reference.ask" in result.stdout.splitlines()[-3]
    again = "eager (inputs of right_reference.ask" in result.stdout
    assert again == (seed == "8")


@pytest.mark.parametrize("seed", ["20260", "8"])
def test_a_kernel_that_differs_from_a_capture_fails(
    harness: Any, captured: Any, seed: str
) -> None:
    captured("src * numpy.float32(gain) + (src > 1.5)", "wrong_reference")
    result = harness("validate", "gfx950/gain_right", "--device", "sim", "--seed", seed)
    assert result.exit_code == 1
    assert re.search(r"dst differs from wrong_reference\.ask \S* ?in \d+ of 100", result.stdout)


def test_a_stale_capture_says_how_to_make_it_anew(
    harness: Any, captured: Any, tmp_path: Path
) -> None:
    captured("src * numpy.float32(gain)", "stale_reference")
    oracle = tmp_path / "root/harness/netra_harness/oracles/gain.py"
    oracle.write_text(change(oracle.read_text(), "+ 1, \"gain\"", "+ 2, \"gain\""))
    words = ("validate", "gfx950/gain_right", "--device", "sim", "--case", "n100")
    result = harness(*words)
    assert result.exit_code == 1
    assert "the capture is stale for case n100" in result.stdout
    again = "re-capture with: netra-harness capture test.gain --from stale_reference:ask"
    assert again in result.stdout
    assert harness(*words, "--seed", "8").exit_code == 0  # so small an input is stored itself


def test_a_damaged_capture_is_a_failure_not_a_pass(harness: Any, captured: Any) -> None:
    path = captured("src * numpy.float32(gain)", "damaged_reference")
    path.write_bytes(path.read_bytes()[:-9])
    result = harness("validate", "gfx950/gain_right", "--device", "sim", "--case", "n1")
    assert result.exit_code == 1 and "is no safetensors file" in result.stdout
