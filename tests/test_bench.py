"""Comparisons are paired and order-reversed, and say so when they show nothing."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness_root import runner
from netra_harness import paired, system
from netra_harness.cli import main
from netra_harness.errors import NetraError, UsageError

KEPT, REREAD = "gfx950/add_rmsnorm_bf16_n2048", "gfx950/add_rmsnorm_bf16_n2048_reread"


def pairs(ratio: float, noise: float, n: int = 20, first: float = 1.0, seed: int = 1) -> list[Any]:
    """Pairs of that ratio; whoever comes first takes `first` times as long."""
    rng = np.random.default_rng(seed)
    out = []
    for i in range(n):
        a, b = np.exp(noise * rng.standard_normal(2))
        order = "AB" if i % 2 == 0 else "BA"
        a, b = (a * first, b) if order == "AB" else (a, b * first)
        out.append((float(a), float(ratio * b), order))
    return out


def test_a_difference_is_shown_when_there_is_one() -> None:
    assert paired.judge(pairs(0.8, 0.02)).verdict == "faster"
    assert paired.judge(pairs(1.2, 0.02)).verdict == "slower"
    found = paired.judge(pairs(0.8, 0.02))
    assert found.low < 0.8 < found.high and abs(found.ratio - 0.8) < 0.02
    assert found.pairs == 20 and found.level >= 0.95


def test_no_difference_is_said_to_be_none() -> None:
    shown = sum(
        paired.judge(pairs(1.0, 0.05, seed=seed)).verdict != "no difference shown"
        for seed in range(400)
    )
    assert shown <= 0.05 * 400 + 9  # the level, and twice its own spread
    assert paired.judge([(1.0, 1.0, o) for o in ("AB", "BA") * 5]).verdict == "no difference shown"


def test_an_effect_of_the_order_is_no_effect_of_the_candidate() -> None:
    """The first of a pair is 30 % slower: one order alone would show a clear winner."""
    verdict = paired.judge(pairs(1.0, 0.001, first=1.3))
    assert verdict.by_order["AB"] < 0.8 and verdict.by_order["BA"] > 1.2
    assert verdict.verdict == "no difference shown"
    # Two thirds of the pairs in one order: the interval may leave 1, the orders still disagree.
    biased = [p for p in pairs(1.0, 0.001, n=60, first=1.3) if p[2] == "AB"]
    biased += [p for p in pairs(1.0, 0.001, n=8, first=1.3) if p[2] == "BA"]
    skewed = paired.judge(biased)
    assert skewed.high < 1 and skewed.verdict == "no difference shown"


@pytest.mark.parametrize("n", [6, 7, 10, 20, 51])
def test_the_interval_covers_what_it_says(n: int) -> None:
    """Its coverage is that of the order statistics, against brute force over all signs."""
    low, high, level = paired.interval([float(i) for i in range(n)])
    k = int(low)
    assert high == n - 1 - k
    # P(at least k + 1 of n below the median, and at least k + 1 above)
    exact = sum(math.comb(n, i) for i in range(k + 1, n - k)) / 2**n
    assert level == pytest.approx(exact) and level >= 0.95
    wider = sum(math.comb(n, i) for i in range(k + 2, n - k - 1)) / 2**n
    assert wider < 0.95  # the next narrower one would not do


@pytest.mark.parametrize(("data", "text"), [
    (pairs(1, 0.1, n=5), "5 pairs are too few"),
    ([(1.0, 1.0, "AB")] * 8, "never reversed"),
    ([(0.0, 1.0, "AB"), *pairs(1, 0.1)], "zero, negative"),
    ([(1.0, math.inf, "AB"), *pairs(1, 0.1)], "not finite"),
])
def test_what_cannot_be_judged_is_not(data: list[Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        paired.judge(data)


def bench(*words: str, code: int = 0) -> Any:
    done = runner().invoke(main, ["bench", *words])
    assert done.exit_code == code, done.output
    return done


@pytest.fixture
def here(repo_root: Path, sim_library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repo_root)
    monkeypatch.delenv("NETRA_ROOT", raising=False)


def test_the_simulator_compares_counters_and_never_gpu_time(here: None) -> None:
    """The rejected schedule reads x and residual twice: 2 rows of 2048 bf16 each, once more."""
    form = json.loads(bench(REREAD, "--compare", KEPT, "--device", "sim", "--pairs", "6",
                            "--case", "random-2-eps-0.5", "--json").stdout)
    assert form["scope"] == "operation" and form["clock"] == "host seconds of the simulator"
    assert form["differing"]["memory.global.read_bytes"] == [24576, 24576 + 2 * 2 * 2048 * 2]
    assert form["kind"] == "counters" and form["verdict"] == "fail"
    assert {"AB", "BA"} == {order for _, _, order in form["samples"]}
    text = bench(KEPT, "--compare", KEPT, "--device", "sim", "--pairs", "6").stdout
    assert "operation, host seconds of the simulator" in text and "bytes moved" in text
    assert " -> " not in text.split("bytes moved")[0]  # a tactic counts what it counts
    assert "µs" not in text and " us" not in text


def test_phases_are_apart(here: None) -> None:
    form = json.loads(bench(KEPT, "--device", "sim", "--pairs", "6", "--json").stdout)
    assert form["load"] > 0 and form["first_call"] > 0 and form["cache"] == "not modelled"
    for arm in ("eager", "replay"):
        assert 0 < form[arm]["median"] <= form[arm]["p90"] and form[arm]["calls"] == 6
    assert form["counters"]["memory.global.read_bytes"] > 0


@pytest.mark.parametrize(("words", "text"), [
    ((KEPT, "--compare", "gfx950/argmax_f32"), "compare two tactics of one op"),
    ((KEPT, "--case", "random-2-eps"), "did you mean"),
    (("add_rmsnorm*",), "name exactly one"),
    ((KEPT, "--system", "/nowhere.json"), "cannot be read"),
])
def test_a_wrong_question_is_told(here: None, words: tuple[str, ...], text: str) -> None:
    assert text in bench(*words, code=2).output


def server_run(arm: str, number: int, throughput: float, **more: Any) -> dict[str, Any]:
    return {
        "arm": arm, "process": f"pid {number}", "throughput": throughput, "requests": 8,
        "completed": 8, "errors": 0, "output_tokens": 64, "expected_tokens": 64,
        "artefacts": {"k": "a" * 64} if arm == "on" else {}, **more,
    }  # fmt: skip


def server_runs(gain: float = 1.1) -> dict[str, Any]:
    runs = []
    for pair in range(6):
        arms = ("off", "on") if pair % 2 == 0 else ("on", "off")
        runs += [
            server_run(arm, 2 * pair + i, 100 * (gain if arm == "on" else 1) + pair)
            for i, arm in enumerate(arms)
        ]
    return {"device": {"arch": "gfx950"}, "server": "x", "workload": "y", "runs": runs}


def test_runs_of_a_server_give_three_results() -> None:
    objects = {"k": "a" * 64}
    good = system.judge(server_runs(), objects)
    assert {kind: r["verdict"] for kind, r in good.items()} == {
        "toggle": "pass", "order": "pass", "invariants": "pass",
    }
    assert good["toggle"]["details"]["scope"] == "system"
    assert system.judge(server_runs(0.9), objects)["toggle"]["verdict"] == "slower"
    none = system.judge(server_runs(1.0), objects)
    assert none["toggle"]["verdict"] == "no difference shown"


@pytest.mark.parametrize(("number", "change", "text"), [
    (0, {"completed": 7}, r"runs\[0\]: 7 of 8 requests"),
    (1, {"output_tokens": 63}, r"runs\[1\]: 63 tokens, not 64"),
    (1, {"artefacts": {"k": "b" * 64}}, r"runs\[1\]: k had SHA-256 b"),
    (0, {"artefacts": {"k": "a" * 64}}, "though its tactic was off"),
    (3, {"process": "pid 0"}, "share a process"),
])
def test_an_invariant_that_breaks_fails(number: int, change: dict[str, Any], text: str) -> None:
    data = server_runs()
    data["runs"][number].update(change)
    found = system.judge(data, {"k": "a" * 64})["invariants"]
    assert found["verdict"] == "fail" and len(found["details"]["broken"]) == 1
    import re

    assert re.search(text, found["details"]["broken"][0])


def test_runs_that_make_no_pairs_are_refused(tmp_path: Path) -> None:
    data = server_runs()
    with pytest.raises(NetraError, match="make no pairs"):
        system.judge({**data, "runs": data["runs"][:-1]}, {})
    with pytest.raises(NetraError, match="the same arm"):
        system.judge({**data, "runs": data["runs"][:1] * 12}, {})
    with pytest.raises(NetraError, match="too few"):
        system.judge({**data, "runs": data["runs"][:6]}, {})
    path = tmp_path / "runs.json"
    path.write_text(json.dumps({**data, "runs": [{"arm": "on"}]}))
    with pytest.raises(UsageError, match=r"runs\[0\].process is missing"):
        system.read(path)
