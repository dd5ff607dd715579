"""Maturity follows from result files, and no byte of one can change unseen."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from harness_root import ROOT, SmallRoot, runner
from netra_catalog import evidence, load, result
from netra_catalog.build import build
from netra_catalog.cli import main as catalog
from netra_catalog.compiled import read as read_compiled
from netra_catalog.errors import NetraError
from netra_catalog.promote import edited
from netra_harness.cli import main as harness

GAIN = "gfx950/gain_right"
Run = Callable[..., Any]


@pytest.fixture(scope="module")
def recorded(
    tmp_path_factory: pytest.TempPathFactory, llvm_bin: Path, sim_library: Path
) -> Path:
    """A checkout with one tactic whose simulated evidence is whole."""
    root = SmallRoot(tmp_path_factory.mktemp("recorded"), llvm_bin)
    root.add("gfx950", "gain_right", yaml=lambda text: text.replace("sgpr: 12", "sgpr: 18"))
    built = root.path / "build" / f"{GAIN}.co"
    manifest = {GAIN: hashlib.sha256(built.read_bytes()).hexdigest()}
    (root.path / "build" / "objects.json").write_text(json.dumps(manifest))
    (root.path / "tools").symlink_to(ROOT / "tools")  # mutants are assembled
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NETRA_ROOT", str(root.path))
        patch.chdir(root.path)
        for words in (["validate", GAIN, "--full", "--device", "sim"], ["mutate", GAIN]):
            done = runner().invoke(harness, [*words, "--record", "--json"])
            assert done.exit_code == 0, done.output
            assert all(Path(path).is_file() for path in json.loads(done.stdout)["recorded"])
    return root.path


@pytest.fixture
def root(recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it to spoil; the current folder."""
    copy = tmp_path / "checkout"
    shutil.copytree(recorded, copy, symlinks=True)
    monkeypatch.setenv("NETRA_ROOT", str(copy))
    monkeypatch.chdir(copy)
    return copy


def run(*words: str, code: int = 0, command: Any = catalog) -> Any:
    done = runner().invoke(command, list(words))
    assert done.exit_code == code, done.output
    return done


def document(*words: str, code: int = 0) -> Any:
    return json.loads(run(*words, "--json", code=code).stdout)


def results(root: Path) -> list[Path]:
    return sorted((root / "results" / GAIN).glob("*.json"))


def test_a_promotion_writes_what_the_evidence_gives(root: Path) -> None:
    before = (root / "catalog" / f"{GAIN}.yaml").read_text()
    check = run("check", code=1).output
    assert f"evidence of {GAIN} gives simulated, not experiment" in check
    assert f"run: netra-harness revalidate {GAIN}" in check
    form = document("promote", GAIN)
    assert (form["was"], form["maturity"], form["changed"]) == ("experiment", "simulated", True)
    assert sorted(form["evidence"]) == [path.stem for path in results(root)]
    # What is missing is told with a command, rung by rung.
    assert [m["rung"] for m in form["missing"]] == [r.name for r in evidence.LADDER[3:]]
    assert all(m["command"].startswith(f"netra-harness {w} {GAIN}") and "--record" in m["command"]
               for m, w in zip(form["missing"], ["validate"] * 2 + ["bench"] * 4, strict=True))
    after = (root / "catalog" / f"{GAIN}.yaml").read_text()
    assert after.startswith(before.rstrip("\n")) and "maturity: simulated\n" in after
    run("check")
    assert document("promote", GAIN)["changed"] is False
    assert [t.maturity for t in load(root=root)] == ["simulated"]


def test_the_results_say_all_that_the_design_asks(root: Path) -> None:
    found = {r.kind: r for r in map(result.read, results(root))}
    assert sorted(found) == ["mutate", "oracle", "sanitize"]
    oracle = found["oracle"].data
    assert oracle["verdict"] == "pass" and oracle["seed"] == 20260
    assert set(oracle["hashes"]) == {
        "kernels", "objects", "contract", "oracle", "captures", "semantics",
    }
    device = oracle["device"]
    assert device["kind"] == "sim" and device["arch"] == "gfx950" and device["wave_size"] == 64
    assert device["matrix_model"] == "none" and device["schedule_seeds"] == [20260]
    assert device["cu_count"] == 256 and device["driver"] > 0 and device["name"]
    assert "clang" in oracle["toolchain"] and oracle["host"]["cpu"] and oracle["harness"]["sha256"]
    cases = {case["case"]: case for case in oracle["details"]["cases"]}
    worst = cases["n300"]["worst"]["dst vs deployed"]
    assert worst == {"metric": "bitwise", "value": 0}
    assert oracle["details"]["replays"] >= evidence.REPLAYS
    words = oracle["rerun"].split()
    assert words[0] == "netra-harness" and run(*words[1:], command=harness)


def test_every_byte_of_a_result_is_guarded(root: Path) -> None:
    """A flipped bit anywhere is noticed by whoever reads the file."""
    smallest = min(results(root), key=lambda path: path.stat().st_size)
    for path in results(root):
        whole = path.read_bytes()
        result.read(path)
        for place in range(0, len(whole), 1 if path == smallest else 29):
            spoilt = bytearray(whole)
            spoilt[place] ^= 1 << place % 8
            path.write_bytes(spoilt)
            with pytest.raises(NetraError):
                result.read(path)
        for cut in (b"", whole[:-1], whole + b"\n", whole[: len(whole) // 2]):
            path.write_bytes(cut)
            with pytest.raises(NetraError):
                result.read(path)
        path.write_bytes(whole)


def test_a_damaged_result_demotes_and_is_named(root: Path) -> None:
    document("promote", GAIN)
    path = next(p for p in results(root) if p.stem.startswith("mutate"))
    path.write_bytes(path.read_bytes().replace(b'"share": 1.0', b'"share": 1.1'))
    text = run("check", code=1).output
    assert f"results/{GAIN}/{path.name}: is damaged" in text
    assert f"evidence of {GAIN} gives experiment, not simulated" in text
    form = document("promote", GAIN)
    assert form["maturity"] == "experiment" and form["changed"]
    text = (root / "catalog" / f"{GAIN}.yaml").read_text()
    assert "maturity" not in text and "evidence" not in text


def test_a_result_cannot_be_made_up(root: Path) -> None:
    """With a new digest it has another name, and a place that is not its tactic's is no place."""
    path = next(p for p in results(root) if p.stem.startswith("oracle"))
    data = json.loads(path.read_text())
    data["device"]["kind"] = "hip"
    path.write_bytes(result.render(data))
    with pytest.raises(NetraError, match=rf"belongs at results/{GAIN}/oracle-"):
        result.read(path)
    with pytest.raises(NetraError, match="verdict: 'perhaps' is not one of"):
        result.write(root, {**data, "verdict": "perhaps"})


CHANGES = {
    "kernels": ("asm/gfx950/gain_right.s", "v_mul_f32", "v_add_f32"),
    "contract": (f"catalog/{GAIN}.yaml", "op: test", "rank: 3\nop: test"),
    "oracle": ("harness/netra_harness/oracles/gain.py", "One multiplication", "A product"),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_what_moves_a_hash_makes_evidence_stale(
    kind: str, root: Path, llvm_bin: Path
) -> None:
    document("promote", GAIN)
    name, old, new = CHANGES[kind]
    text = (root / name).read_text()
    assert old in text
    (root / name).write_text(text.replace(old, new))
    if kind == "kernels":
        import assemble

        assemble.assemble(Path(name), Path(f"build/{GAIN}.co"), "gfx950", llvm_bin,
                          include=[Path("asm/include")])
    tactic = load(root=root)[0]
    assert tactic.maturity == "simulated" and evidence.effective(tactic) == "experiment"
    problems = evidence.problems(tactic)
    assert len(problems) == 1
    assert f"evidence of {GAIN} is stale: {kind}" in problems[0]
    # The compiled catalog, which is what a server reads, has the lesser one at once.
    build(root)
    compiled = read_compiled(root / "build" / "catalog.bin", root)
    assert [t.maturity for t in compiled.tactics("test.gain")] == ["experiment"]
    form = document("promote", GAIN)
    assert form["maturity"] == "experiment"
    assert {m["rung"]: m["why"] for m in form["missing"]}["mutants"].endswith("changed")
    if kind != "kernels":
        (root / name).write_text(text)
        assert document("promote", GAIN)["maturity"] == "simulated"


def test_simulated_evidence_never_lifts_higher(root: Path) -> None:
    """Every kind recorded on the simulator, all passed: still `simulated`."""
    form = json.loads(next(p for p in results(root) if p.stem.startswith("oracle")).read_text())
    details = {
        "case_set": "full", "case": None, "eager": True, "replays": 1000, "scope": "operation",
        "cache": "flushed", "load": 1, "first_call": 1, "restricted": False,
    }
    for kind in ("timing", "toggle", "order", "invariants"):
        result.write(root, {**form, "kind": kind, "details": details})
    assert document("promote", GAIN)["maturity"] == "simulated"
    # From a GPU the same would count: the ladder itself goes to the top.
    gpu = {**form["device"], "kind": "hip"}
    for kind in ("oracle", "timing", "invariants", "toggle", "order"):
        scope = "system" if kind == "toggle" else "operation"
        more = {**details, "scope": scope, "replay": 1}
        result.write(root, {**form, "kind": kind, "device": gpu, "details": more})
        maturity = document("promote", GAIN)["maturity"]
        want = {"oracle": "verified", "order": "accepted"}.get(kind, "verified")
        assert maturity == want, kind
    run("check")
    # One failure with the same hashes, and the rung is gone.
    result.write(root, {**form, "device": gpu, "verdict": "fail", "details": details})
    assert document("promote", GAIN)["maturity"] == "simulated"


def test_a_quick_run_is_recorded_and_not_enough(root: Path) -> None:
    for path in results(root):
        path.unlink()
    run("validate", GAIN, "--device", "sim", "--record", command=harness)
    for path in results(root):
        if path.stem.startswith("sanitize"):
            path.unlink()
    run("sanitize", GAIN, "--full", "--case", "n64", "--record", command=harness)
    form = document("promote", GAIN)
    assert form["maturity"] == "experiment"
    why = {m["rung"]: m["why"] for m in form["missing"]}
    assert why["oracle on the simulator"].endswith("is not enough: it takes the full case set")
    assert "is not enough" in why["sanitizer"] and why["mutants"] == "nothing is recorded"


def test_a_rejection_holds_until_the_candidate_changes(root: Path) -> None:
    document("promote", GAIN)
    lacking = run("reject", GAIN, "--reason", "slower than the other", code=1).output
    assert "no result shows" in lacking
    unknown = run("reject", GAIN, "--reason", "x", "--evidence", "oracle-1", code=2).output
    assert "has no result oracle-1" in unknown
    id = results(root)[0].stem
    form = document("reject", GAIN, "--reason", "slower than the other", "--evidence", id)
    assert form["maturity"] == "rejected" and form["reason"] == "slower than the other"
    assert form["evidence"] == [next(p.stem for p in results(root) if "rejected" in p.name), id]
    run("check")
    tactic = load(root=root)[0]
    assert tactic.maturity == evidence.effective(tactic) == "rejected"
    assert "slower than the other" in run("promote", GAIN).output  # it stays
    why = run("why", "test.gain", "n=1", "gain=1", "arch=gfx950", code=3).output
    assert "would take it, but it is rejected" in why
    # The oracle may change: the candidate has not.
    oracle = root / "harness/netra_harness/oracles/gain.py"
    oracle.write_text(oracle.read_text().replace("One multiplication", "A product"))
    assert evidence.effective(load(root=root)[0]) == "rejected"
    yaml = root / "catalog" / f"{GAIN}.yaml"
    yaml.write_text(yaml.read_text() + "rank: 3\n")
    assert evidence.effective(load(root=root)[0]) == "experiment"


def test_a_quarantine_needs_a_failure_or_a_name(root: Path) -> None:
    run("quarantine", GAIN, "--reason", " ", code=2)
    form = json.loads(results(root)[0].read_text())
    failed = result.write(root, {**form, "verdict": "fail"})
    text = run("quarantine", GAIN, "--reason", "hangs the queue").output
    assert f"{GAIN}: experiment -> quarantined" in text and f"by {failed.id}" in text
    run("check")


@pytest.mark.parametrize(("text", "want"), [
    ("op: x\n# end\n", "op: x\n# end\n\nM\nE\n"),
    ("op: x", "op: x\n\nM\nE\n"),
    ("op: x\n\nmaturity: experiment # c\n\n# on b\nb: 1\n", "op: x\n\nM\nE\n\n# on b\nb: 1\n"),
    ("maturity: rejected\nevidence: [a-1,\n  b-2]\nop: x\n", "M\nE\nop: x\n"),
    ("evidence:\n  - a-1\n\n  - b-2\nop: x\n# z\nmaturity: verified\n", "M\nE\nop: x\n# z\n"),
])
def test_an_edit_leaves_the_rest_alone(text: str, want: str) -> None:
    path = Path("x.yaml")
    block = ("maturity: simulated", "evidence: [oracle-1, sanitize-2]")
    want = want.replace("M\nE", "\n".join(block))
    after = edited(text, path, "simulated", ["oracle-1", "sanitize-2"])
    assert after == want
    assert edited(after, path, "simulated", ["oracle-1", "sanitize-2"]) == after
    gone = edited(after, path, "experiment", [])
    assert "maturity" not in gone and "evidence" not in gone and "op: x" in gone
    many = [f"oracle-{n}" for n in range(7)]
    assert edited(after, path, "accepted", many).count("oracle-") == 7


def test_a_library_of_other_sources_records_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    core = root / "sim" / "core"
    core.mkdir(parents=True)
    (core / "ds.cc").write_text("int x;  // not what the library was made of\n")
    before = results(root)
    text = run("validate", GAIN, "--device", "sim", "--record", code=4, command=harness).output
    assert "was built from other sources" in text and "make sim" in text
    assert results(root) == before


def test_revalidate_records_what_a_change_made_stale(root: Path, llvm_bin: Path) -> None:
    import assemble

    def build_anew() -> None:
        assemble.assemble(source, Path(f"build/{GAIN}.co"), "gfx950", llvm_bin,
                          include=[Path("asm/include")])

    source = Path("asm/gfx950/gain_right.s")
    right = source.read_text()
    words = ("revalidate", GAIN, "--json")
    first = json.loads(run(*words, command=harness).stdout)["tactics"][0]
    assert first["todo"] == first["recorded"] == [] and first["maturity"] == "simulated"
    run("promote", GAIN)

    quick = json.loads(run(*words, "--no-run", command=harness).stdout)["tactics"][0]
    assert (quick["was"], quick["maturity"], quick["recorded"]) == ("simulated", "simulated", [])

    # Another encoding of the same kernel: what was recorded is stale, and passes again.
    source.write_text(right.replace("v_mul_f32 ", "v_mul_f32_e64 "))
    build_anew()
    dry = run("revalidate", "--dry-run", command=harness).output
    assert f"{GAIN}: oracle, sanitize, mutate" in dry and "kernels.gain_right changed" in dry
    again = json.loads(run(*words, "--prune", command=harness).stdout)["tactics"][0]
    assert (again["was"], again["maturity"]) == ("simulated", "simulated")
    assert len(again["recorded"]) == 3 and not again["verdicts"] and len(again["pruned"]) == 3
    assert evidence.problems(load(root=root)[0]) == []
    assert sorted(p.stem for p in results(root)) == sorted(again["recorded"])

    # A wrong one: it says which verdict moved, demotes, and the file stays.
    source.write_text(right.replace("v_mul_f32", "v_add_f32"))
    build_anew()
    bad = json.loads(run(*words, "--prune", command=harness, code=1).stdout)["tactics"][0]
    assert (bad["was"], bad["maturity"]) == ("simulated", "experiment")
    assert bad["verdicts"] == ["oracle: pass -> fail"]
    assert "no mutants were tried" in bad["errors"][0]
    assert evidence.problems(load(root=root)[0]) == []
    failed = [r for r in map(result.read, results(root)) if r.verdict == "fail"]
    assert [r.kind for r in failed] == ["oracle"]
    case = failed[0].details["cases"][0]
    assert not case["passed"] and "dst differs from" in case["failures"][0]["text"]
    worst = case["worst"]["dst vs deployed"]
    assert worst["value"] > 0 and worst["got"] != worst["want"] and "(0x" in worst["want"]


def test_runs_of_a_server_are_recorded(root: Path) -> None:
    """The three results of a toggle, from one file; the hashes are those of the built kernel."""
    built = load(root=root)[0]
    from netra_catalog.hashes import of_tactic

    runs = []
    for pair in range(6):
        for place, arm in enumerate(("off", "on") if pair % 2 else ("on", "off")):
            runs.append({
                "arm": arm, "process": f"{pair} {place}", "throughput": 110 if arm == "on" else 100,
                "requests": 4, "completed": 4, "errors": 0, "output_tokens": 9,
                "expected_tokens": 9,
                "artefacts": of_tactic(built)["objects"] if arm == "on" else {},
            })
    device = {"arch": "gfx950", "name": "a GPU", "cu_count": 256, "wave_size": 64}
    Path("runs.json").write_text(json.dumps(
        {"device": device, "server": "one", "workload": "two", "runs": runs}
    ))
    text = run("bench", GAIN, "--system", "runs.json", "--record", command=harness).output
    assert "system, ratio 0.9091" in text and text.count("recorded results/") == 3
    form = document("promote", GAIN)
    assert {h["rung"] for h in form["held"]} >= {"toggle", "order reversal", "invariants"}
    assert form["maturity"] == "simulated"  # the rungs below are missing


def test_the_form_of_a_file_is_fixed(tmp_path: Path) -> None:
    """Files of the past must stay readable: this one's bytes are written out here."""
    document = {"kind": "x", "details": {"cases": [{"b": 1, "a": [1, 2]}], "empty": []}, "seed": 7}
    digest = "6d2b3e0c"
    text = result.render(document).decode()
    assert re.sub(r'"digest": "[0-9a-f]{64}"', f'"digest": "{digest}"', text) == (
        '{"details": {"cases": [\n  {"a": [1, 2], "b": 1}],\n "empty": []},\n'
        f' "digest": "{digest}",\n "kind": "x",\n "seed": 7}}\n'
    )
