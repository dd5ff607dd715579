"""Runs the probes of a target, each in a process that may die, and compares two such runs.

The file of a run is one JSON document with a digest of itself: results/probes/ is where those of
real devices are kept.
"""

from __future__ import annotations

import fnmatch
import hashlib
import json
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from netra_catalog import load, load_one, oracle, result
from netra_catalog.whole_file import write_whole

from netra_harness import record, workers
from netra_harness.case import DEFAULT_SEED
from netra_harness.device import Device
from netra_harness.errors import NetraError, UsageError
from netra_harness.probes import programs
from netra_harness.probes.items import Item, items
from netra_harness.results import CaseResult

SCHEMA = 1
LIMIT = 60.0  # seconds that one item may take
SHOWN = 3  # differing words of an item that are shown


def names(arch: str, pattern: str = "*") -> list[str]:
    """The items of a target that a PATTERN selects: probes, then the quick cases of tactics."""
    every = [item.name for item in items(arch)]
    for tactic in load("*", arch):
        if tactic.maturity not in ("rejected", "quarantined"):
            cases = oracle(tactic).cases("quick", tactic.variant)
            every += [f"case/{tactic.stem}/{case.name}" for case in cases]
    return [name for name in every if fnmatch.fnmatchcase(name, pattern)]


def run(
    arch: str,
    device: str,
    wanted: list[str],
    seed: int = DEFAULT_SEED,
    limit: float = LIMIT,
    heard: Callable[[dict[str, Any]], None] = lambda entry: None,
) -> dict[str, Any]:
    """The document of a run; a probe that hangs or kills its process is one entry that says so."""
    jobs = [_job(arch, device, name, seed, limit) for name in wanted]
    found: dict[str, dict[str, Any]] = {}
    facts: dict[str, Any] = {}
    for outcome in workers.run(jobs, 1 if device == "hip" else None):
        entry = _entry(outcome)
        facts = facts or entry.pop("device", {})
        entry.pop("device", None)
        found[entry["name"]] = entry
        heard(entry)
    document: dict[str, Any] = {
        "schema": SCHEMA, "kind": "probe", "arch": arch, "device": facts, "seed": seed,
        "recorded": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "host": record.host(),
        "toolchain": record.toolchain(),
        "harness": {"version": record.version(), "sha256": record.harness_sha256()},
        "items": [found[name] for name in wanted],
    }  # fmt: skip
    return {**document, "digest": result.digest(document)}


def write(path: Path, document: Mapping[str, Any]) -> None:
    """The file, whole or not at all; an item a line."""
    write_whole(path, result.render(document), durable=True)


def read(path: Path) -> dict[str, Any]:
    """A file of a run; UsageError for anything else, or one that was edited."""
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    if not isinstance(document, dict) or document.get("kind") != "probe":
        raise UsageError(f"{path} is no file of netra-harness probe")
    if document.get("schema") != SCHEMA:
        raise UsageError(f"{path} has schema {document.get('schema')}, this reads {SCHEMA}")
    if document.get("digest") != result.digest(document):
        raise NetraError("is damaged: its digest is not that of its contents", where=str(path))
    return document


@dataclass(frozen=True)
class Difference:
    """An item whose answers differ; `texts` show the first words that do."""

    name: str
    count: int
    total: int
    texts: tuple[str, ...]


def compare(theirs: Mapping[str, Any], ours: Mapping[str, Any]) -> list[Difference]:
    """Where a run differs from another of the same target: the first is named `theirs`."""
    if theirs["arch"] != ours["arch"]:
        raise UsageError(f"one run is of {theirs['arch']}, the other of {ours['arch']}")
    mine = {entry["name"]: entry for entry in ours["items"]}
    labels = {item.name: item for item in items(str(theirs["arch"]))}
    out = []
    for entry in theirs["items"]:
        other = mine.get(entry["name"])
        if other is not None:
            found = _difference(entry, other, labels.get(entry["name"]))
            out += [found] if found else []
    return out


def _difference(
    a: Mapping[str, Any], b: Mapping[str, Any], item: Item | None
) -> Difference | None:
    name = str(a["name"])
    if a["verdict"] != b["verdict"]:
        text = f"{a['verdict']}, where the other is {b['verdict']}: {a['text'] or b['text']}"
        return Difference(name, 1, 1, (text,))
    if a["sha256"] == b["sha256"]:
        return None
    x, y = _words(a), _words(b)
    if not len(x) or len(x) != len(y):
        text = f"answers of {len(x)} and {len(y)} words, with other digests"
        return Difference(name, 1, 1, (text,))
    wrong = np.flatnonzero(x != y)
    texts = tuple(
        f"{item.label(int(i)) if item else f'word {i}'}: {int(x[i]):#010x}, "
        f"the other has {int(y[i]):#010x}"
        for i in wrong[:SHOWN]
    )
    return Difference(name, len(wrong), len(x), texts)


def _words(entry: Mapping[str, Any]) -> programs.U32:
    return np.frombuffer(bytes.fromhex(entry["words"]), "<u4")


def _job(arch: str, device: str, name: str, seed: int, limit: float) -> workers.Job:
    environment = {}
    if device == "sim":
        environment = {
            "NETRA_SIM_DEVICES": arch, "NETRA_SIM_SECONDS": str(max(1, int(0.75 * limit))),
        }
    body = {"do": "probe", "arch": arch, "device": device, "name": name, "seed": seed}
    return workers.Job(body, environment, limit)


def _entry(outcome: workers.Outcome) -> dict[str, Any]:
    if outcome.kind == "ok":
        return dict(outcome.answer)
    return {
        "name": outcome.job.body["name"], "verdict": outcome.kind, "text": outcome.text,
        "words": "", "sha256": "", "seconds": 0.0,
    }  # fmt: skip


# ---- in the worker ---------------------------------------------------------------------------


@lru_cache(maxsize=2)
def _items(arch: str) -> dict[str, Item]:
    return {item.name: item for item in items(arch)}


def probe(job: Mapping[str, Any], device: Device) -> dict[str, Any]:
    """The entry of one item."""
    start = time.perf_counter()
    name = str(job["name"])
    if name.startswith("case/"):
        entry = _case(job, device)
    else:
        entry = _program(_items(device.arch)[name], device)
    return {
        "name": name, **entry, "seconds": round(time.perf_counter() - start, 4),
        "device": dict(device.facts),
    }  # fmt: skip


def _program(item: Item, device: Device) -> dict[str, Any]:
    device.hip.watch(False)
    with tempfile.TemporaryDirectory(prefix="netra-probe-") as folder:
        built = programs.assemble([item.program], Path(folder))
        module = device.hip.load_module(built)
    try:
        function = device.hip.function(module, item.program.symbol)
        got = item.answer(programs.run(device.hip, function, item.program, item.words))
    finally:
        device.hip.unload_module(module)
    raw = np.asarray(got, "<u4").tobytes()
    # Words of a layout are many and all right, or wrong as a whole: their digest is enough.
    kept = "" if item.shape is not None and not item.labels else raw.hex()
    return {"verdict": "ok", "text": "", "words": kept, "sha256": hashlib.sha256(raw).hexdigest()}


def _case(job: Mapping[str, Any], device: Device) -> dict[str, Any]:
    """A quick case of a tactic, eager and replayed; its answer is how far it is from the oracle."""
    from netra_catalog import paths

    from netra_harness.run import Options, run_case

    _, stem, case_name = str(job["name"]).split("/", 2)
    tactic = load_one(paths.catalog_dir() / device.arch / f"{stem}.yaml")
    module = oracle(tactic)
    case = {c.name: c for c in module.cases("quick", tactic.variant)}[case_name]
    ran: CaseResult = run_case(tactic, module, case, device, Options(job["seed"], sanitize=False))
    text = "" if ran.passed else "; ".join(f.text.splitlines()[0] for f in ran.failures)
    said = json.dumps({k: v["value"] for k, v in sorted(ran.worst.items())})
    return {
        "verdict": "ok" if ran.passed else "failed", "text": text, "words": "",
        "sha256": hashlib.sha256(said.encode()).hexdigest(), "arms": ran.arms,
        "worst": json.loads(said),
    }  # fmt: skip
