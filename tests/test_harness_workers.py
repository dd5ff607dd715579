"""A worker that crashes or hangs fails its own job, says so, and is replaced."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest
from netra_harness import workers
from netra_harness.workers import Job


@pytest.fixture
def job(tmp_path: Path) -> Any:
    """job("name", ...): a job that calls a function of this file's little module."""
    (tmp_path / "deeds.py").write_text(
        textwrap.dedent(
            """
            import ctypes, os, signal, sys, time

            def echo(job):
                return {"value": job["value"], "pid": os.getpid(),
                        "blas": os.environ["OPENBLAS_NUM_THREADS"],
                        "devices": os.environ.get("NETRA_SIM_DEVICES")}

            def segfault(job):
                ctypes.string_at(0)

            def leave(job):
                print("leaving now", file=sys.stderr)
                os._exit(3)

            def hang(job):
                time.sleep(600)

            def stubborn(job):
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                libc = ctypes.PyDLL(None)
                libc.sleep(600)  # holds the GIL

            def fail(job):
                raise ValueError("no such thing")

            def nan(job):
                return float("nan")

            def chatter(job):
                os.write(1, b"{\\"ok\\": 13}\\n")
                print("x" * 100000)
                return {"value": "fine"}

            def fault(job):
                return {"pid": os.getpid(), "device": {"lost": True}}
            """
        )
    )

    def make(name: str, seconds: float = 30, environment: Any = None, **body: Any) -> Job:
        body |= {"do": "call", "function": f"deeds:{name}", "sys_path": [str(tmp_path)]}
        return Job(body, environment or {}, seconds)

    return make


def by_name(outcomes: Any) -> dict[str, Any]:
    return {outcome.job.body["function"].split(":")[1]: outcome for outcome in outcomes}


def test_jobs_are_answered_in_other_processes(job: Any) -> None:
    outcomes = list(workers.run([job("echo", value=i) for i in range(20)], 2))
    assert sorted(o.answer["value"] for o in outcomes) == list(range(20))
    pids = {o.answer["pid"] for o in outcomes}
    assert len(pids) <= 2 and os.getpid() not in pids
    assert {o.answer["blas"] for o in outcomes} == {"1"}


def test_a_crash_fails_that_job_alone(job: Any) -> None:
    jobs = [job("echo", value=1), job("segfault"), job("leave"), job("echo", value=2)]
    outcomes = list(workers.run(jobs, 1))
    assert [o.kind for o in outcomes] == ["ok", "crash", "crash", "ok"]
    assert "SIGSEGV" in outcomes[1].text and "string_at" in outcomes[1].text
    assert "exit code 3" in outcomes[2].text and "leaving now" in outcomes[2].text
    assert outcomes[0].answer["pid"] != outcomes[3].answer["pid"]


@pytest.mark.parametrize("name", ["hang", "stubborn"])
def test_a_hang_is_stopped_at_its_limit(job: Any, name: str) -> None:
    start = time.monotonic()
    first, second = workers.run([job(name, seconds=1.5), job("echo", value=5)], 1)
    assert first.kind == "hang" and "limit of 1.5 s" in first.text
    assert second.kind == "ok" and second.answer["value"] == 5
    assert time.monotonic() - start < 20


def test_an_exception_keeps_the_worker(job: Any) -> None:
    first, second, third, fourth = workers.run(
        [job("echo", value=1), job("fail"), job("nan"), job("echo", value=2)], 1
    )
    assert second.kind == "error" and second.text == "ValueError: no such thing"
    assert "deeds.py:" in second.where and "Traceback" in second.answer
    assert third.kind == "error" and "JSON" in third.text
    assert first.answer["pid"] == fourth.answer["pid"]


def test_what_a_library_prints_is_no_answer(job: Any) -> None:
    (outcome,) = workers.run([job("chatter")])
    assert outcome.kind == "ok" and outcome.answer == {"value": "fine"}


def test_a_lost_device_replaces_the_worker(job: Any) -> None:
    first, second = workers.run([job("fault"), job("echo", value=1)], 1)
    assert first.kind == "ok" and first.answer["pid"] != second.answer["pid"]


def test_each_target_gets_a_worker_of_its_own(job: Any) -> None:
    jobs = [
        job("echo", value=i, environment={"NETRA_SIM_DEVICES": arch})
        for i, arch in enumerate(["gfx950", "gfx950", "gfx1151"])
    ]
    outcomes = list(workers.run(jobs, 1))
    assert [o.answer["devices"] for o in outcomes] == ["gfx950", "gfx950", "gfx1151"]
    assert outcomes[0].answer["pid"] == outcomes[1].answer["pid"] != outcomes[2].answer["pid"]


def test_leaving_early_ends_the_workers(job: Any) -> None:
    running = workers.run([job("echo", value=1), job("hang", seconds=300)], 2)
    pid = next(iter(running)).answer["pid"]
    running.close()
    assert gone(pid)


def test_no_jobs_no_outcomes() -> None:
    assert list(workers.run([])) == []


def test_a_busy_worker_without_parent_ends(tmp_path: Path, job: Any) -> None:
    """Whatever ended the parent: nobody is left to stop the worker at its limit."""
    script = tmp_path / "parent.py"
    script.write_text(
        "import json, sys\n"
        "from netra_harness.workers import Job, Worker\n"
        "worker = Worker({})\n"
        "print(worker.pid, flush=True)\n"
        "worker.ask(Job(json.loads(sys.argv[1]), {}, 300))\n"
    )
    parent = subprocess.Popen(
        [sys.executable, str(script), json.dumps(job("hang").body)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    time.sleep(1)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    assert gone(pid)


def gone(pid: int, seconds: float = 20) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":  # nobody collected it
            return True
        time.sleep(0.05)
    return False
