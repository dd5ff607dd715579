"""The process that runs cases: one JSON job a line on stdin, one JSON answer a line back.

Whatever a kernel, a driver or the simulator does to this process, the parent sees it end and
starts another. Answers go to a pipe of their own, so a library that prints disturbs nothing.

    python -m netra_harness.worker FD PARENT
"""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

Job = dict[str, Any]
Answer = dict[str, Any]


def run(job: Job) -> Answer:
    """One case of one tactic."""
    from netra_catalog import load_one, oracle

    from netra_harness.results import CaseResult
    from netra_harness.run import Options, run_case

    device = _device(job["device"], job["arch"])
    tactic = load_one(Path(job["path"]))
    module = oracle(tactic)
    cases = {case.name: case for case in module.cases(job["case_set"], tactic.variant)}
    if job["case"] not in cases:
        text = f"case {job['case']} is not in the set {job['case_set']}"
        return CaseResult.failed(tactic.id, job["case"], job["seed"], "error", text).json()
    options = Options(job["seed"], replays=_replays(job, module, tactic.variant),
                      bands=job.get("bands", False),
                      sanitize=job.get("sanitize", True),
                      schedules=job.get("schedules", 1))  # fmt: skip
    result = run_case(tactic, module, cases[job["case"]], device, options)
    return result.json()


def _replays(job: Job, module: Any, variant: str) -> int:
    """In the full set the quick cases are replayed as often as evidence wants, since what a
    launch leaves behind does not hang on the number of rows; the others a few times."""
    from netra_harness.run import FULL_REPLAYS, MANY_REPLAYS, QUICK_REPLAYS

    if job["case_set"] == "quick":
        return QUICK_REPLAYS
    quick = {case.name for case in module.cases("quick", variant)}
    return MANY_REPLAYS if job["case"] in quick else FULL_REPLAYS


def mutant(job: Job) -> Answer:
    """One mutant of a kernel, with the cases of the set `mutation`."""
    from netra_harness.mutation.trial import run_mutant

    return dict(run_mutant(job, _device(job["device"], job["arch"]), job["seed"]))


def bench(job: Job) -> Answer:
    """Times one case of one tactic or, `other` being given, of two by turns."""
    from netra_harness.bench import measure

    return measure(job, _device(job["device"], job["arch"]))


def probe(job: Job) -> Answer:
    """One item of the probe pack."""
    from netra_harness.probes.pack import probe

    return probe(job, _device(job["device"], job["arch"]))


def gpus(_job: Job) -> Answer:
    """Architectures of the GPUs that are present."""
    from netra_harness.device import gpu_arches

    return {"arches": gpu_arches()}


def call(job: Job) -> Answer:
    """A function of the tests: `module:name`, called with the job."""
    import importlib

    module, _, name = str(job["function"]).partition(":")
    sys.path[:0] = job.get("sys_path", [])
    answer: Answer = getattr(importlib.import_module(module), name)(job)
    return answer


_DO: dict[str, Callable[[Job], Answer]] = {
    "run": run, "mutant": mutant, "bench": bench, "probe": probe, "gpus": gpus, "call": call,
}
_devices: dict[tuple[str, str], Any] = {}


def _device(kind: str, arch: str) -> Any:
    from netra_harness.device import Device

    if (kind, arch) not in _devices:
        _devices[kind, arch] = Device.open(kind, arch)
    return _devices[kind, arch]


def _end_with(parent: int) -> None:
    """Ends this process soon after its parent, in the middle of a job too."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def main() -> None:
    """Answers jobs until stdin ends."""
    faulthandler.enable(all_threads=False)
    threading.Thread(target=_end_with, args=(int(sys.argv[2]),), daemon=True).start()
    answers = os.fdopen(int(sys.argv[1]), "w", encoding="utf-8")
    for line in sys.stdin:
        job = json.loads(line)
        # For an orphan that holds Python's lock; a parent that lives stops it sooner.
        faulthandler.dump_traceback_later(job["seconds"] + 15, exit=True)
        try:
            text = json.dumps({"ok": _DO[job["do"]](job)}, allow_nan=False)
        except click.ClickException as error:
            text = json.dumps({"error": error.message, "exit_code": error.exit_code})
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            text = json.dumps({
                "error": f"{type(error).__name__}: {error}",
                "where": f"{frame.filename}:{frame.lineno}",
                "trace": traceback.format_exc(),
            })  # fmt: skip
        faulthandler.cancel_dump_traceback_later()
        answers.write(text + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
