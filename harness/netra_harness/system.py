"""Runs of a full server with one tactic on and off, as evidence: toggle, order, invariants.

The file is JSON, written by whoever ran the server (docs/evidence.md):

    {"device": {"arch", "name", "cu_count", "wave_size", "driver", "runtime"}, "server": TEXT,
     "workload": TEXT, "runs": [{"arm": "on"|"off", "process": TEXT, "throughput": NUMBER,
       "requests", "completed", "errors", "output_tokens", "expected_tokens": INTEGERS,
       "artefacts": {kernel: co_sha256, of what the live process had loaded}}, ...]}

The runs stand in the order in which they ran; each two in turn are a pair, one of each arm.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from netra_harness import paired
from netra_harness.errors import NetraError, UsageError

_RUN = {
    "arm": str, "process": str, "throughput": (int, float), "requests": int, "completed": int,
    "errors": int, "output_tokens": int, "expected_tokens": int, "artefacts": dict,
}  # fmt: skip


def read(path: Path) -> dict[str, Any]:
    """The file; UsageError for one that is not as above."""
    try:
        data: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    for key in ("device", "server", "workload", "runs"):
        if not isinstance(data, dict) or not data.get(key):
            raise UsageError(f"{path}: '{key}' is missing")
    for number, run in enumerate(data["runs"]):
        for key, kind in _RUN.items():
            if not isinstance(run.get(key), kind):  # type: ignore[arg-type]
                raise UsageError(f"{path}: runs[{number}].{key} is missing or of another type")
        if run["arm"] not in ("on", "off"):
            raise UsageError(f"{path}: runs[{number}].arm is 'on' or 'off'")
    return data


def pairs(runs: list[Mapping[str, Any]]) -> list[tuple[float, float, str]]:
    """(seconds a token without, with, order) of each pair; B is the arm with the tactic on."""
    out = []
    if len(runs) % 2:
        raise NetraError(f"{len(runs)} runs make no pairs")
    for first, second in zip(runs[0::2], runs[1::2], strict=True):
        if first["arm"] == second["arm"]:
            raise NetraError("two runs in turn have the same arm: a pair has one of each")
        off, on = (first, second) if first["arm"] == "off" else (second, first)
        order = "AB" if first is off else "BA"
        out.append((1 / off["throughput"], 1 / on["throughput"], order))
    return out


def broken(runs: list[Mapping[str, Any]], objects: Mapping[str, str]) -> list[str]:
    """Which invariants do not hold; `objects` are the code objects of the tactic as built."""
    out = []
    for number, run in enumerate(runs):
        where = f"runs[{number}]"
        if run["completed"] != run["requests"] or run["errors"]:
            out.append(f"{where}: {run['completed']} of {run['requests']} requests completed, "
                       f"{run['errors']} errors")
        if run["output_tokens"] != run["expected_tokens"]:
            out.append(f"{where}: {run['output_tokens']} tokens, not {run['expected_tokens']}")
        for name, sha256 in objects.items():
            loaded = run["artefacts"].get(name)
            if run["arm"] == "on" and loaded != sha256:
                out.append(f"{where}: {name} had SHA-256 {loaded}, the built one has {sha256}")
            if run["arm"] == "off" and loaded is not None:
                out.append(f"{where}: {name} was loaded though its tactic was off")
    if len({run["process"] for run in runs}) != len(runs):
        out.append("two runs share a process")
    return out


def judge(data: Mapping[str, Any], objects: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """kind -> {verdict, details} of the three results that such runs give."""
    runs = list(data["runs"])
    try:
        time = paired.judge(pairs(runs))
    except ValueError as error:
        raise NetraError(str(error)) from None
    common = {"scope": "system", "server": data["server"], "workload": data["workload"]}
    sides = list(time.by_order.values())
    agree = all(r < 1 for r in sides) or all(r > 1 for r in sides)
    wrong = broken(runs, objects)
    passed = "pass" if time.verdict == "faster" else time.verdict
    return {
        "toggle": {"verdict": passed, "details": {**common, "time": time.json(), "runs": runs}},
        "order": {
            "verdict": "pass" if agree else "fail",
            "details": {**common, "by_order": time.by_order},
        },
        "invariants": {
            "verdict": "fail" if wrong else "pass",
            "details": {**common, "broken": wrong, "runs_checked": len(runs)},
        },
    }
