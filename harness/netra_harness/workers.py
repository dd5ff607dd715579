"""Worker processes: a job that crashes or hangs ends its worker, never the run.

Each worker serves one environment (the simulator's devices differ by target) with BLAS kept to
one thread, since the cores are shared out by running several workers.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from netra_harness.errors import WorkerError

_ONE_THREAD = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS", "BLIS_NUM_THREADS",
)  # fmt: skip
_SHOWN_LINES = 6


@dataclass(frozen=True)
class Job:
    """`body` goes to the worker; `environment` is what the worker must have been started with."""

    body: Mapping[str, Any]
    environment: Mapping[str, str]
    seconds: float


@dataclass(frozen=True)
class Outcome:
    """`kind`: "ok" with the answer, or "error", "crash", "hang" with a text."""

    job: Job
    kind: str
    answer: Any = None
    text: str = ""
    where: str = ""
    exit_code: int = 1


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Worker:
    """One process; `ask` gives it a job and waits for the answer."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = dict(environment)
        # Read with pread only: the worker writes through the same file offset.
        self._said: IO[bytes] = tempfile.TemporaryFile(buffering=0)
        reader, writer = os.pipe()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "netra_harness.worker", str(writer), str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=self._said,
                stderr=self._said,
                pass_fds=[writer],
                env=_environment(environment),
                start_new_session=True,
            )
        except OSError as error:
            os.close(reader)
            raise WorkerError(f"{sys.executable} could not be started: {error}") from None
        finally:
            os.close(writer)
        self._answers = reader
        self._buffer = b""

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, job: Job) -> Outcome:
        """After any kind but "ok" and "error" the worker is of no further use."""
        mark = os.fstat(self._said.fileno()).st_size
        deadline = time.monotonic() + job.seconds
        try:
            assert self._process.stdin is not None
            body = {**job.body, "seconds": job.seconds}
            self._process.stdin.write(json.dumps(body).encode() + b"\n")
            self._process.stdin.flush()
            line = self._line(deadline)
        except (BrokenPipeError, EOFError):
            return Outcome(job, "crash", text=self._ending(mark))
        except TimeoutError:
            self.stop()
            text = f"no answer within its limit of {job.seconds:g} s; the worker was stopped"
            return Outcome(job, "hang", text=text)
        try:
            answer = json.loads(line)
        except ValueError:
            self.stop()
            return Outcome(job, "crash", text=f"the worker answered {line[:80]!r}")
        if "ok" in answer:
            return Outcome(job, "ok", answer["ok"])
        return Outcome(
            job, "error", answer.get("trace"), answer["error"], answer.get("where", ""),
            answer.get("exit_code", 1),
        )

    def _line(self, deadline: float) -> bytes:
        while b"\n" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._answers], [], [], left)[0]:
                raise TimeoutError
            data = os.read(self._answers, 1 << 16)
            if not data:
                raise EOFError
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line

    def _ending(self, mark: int) -> str:
        """How the process ended and the last it said."""
        try:
            code = self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.stop()
            code = self._process.returncode
        if code < 0:
            try:
                how = f"was ended by {signal.Signals(-code).name}"
            except ValueError:
                how = f"was ended by signal {-code}"
        else:
            how = f"ended with exit code {code}"
        said = os.pread(self._said.fileno(), 20000, mark).decode(errors="replace").splitlines()
        lines = [line for line in said if line.strip()][:_SHOWN_LINES]
        return "\n  ".join([f"the worker {how}", *lines])

    def kill(self) -> None:
        """Ends the process and what it started."""
        if self._process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def stop(self) -> None:
        """Ends it and gives everything back; may be called again."""
        self.kill()
        self._process.wait()
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        if self._answers >= 0:
            os.close(self._answers)
            self._answers = -1
        self._said.close()


def run(jobs: Sequence[Job], workers: int | None = None) -> Iterator[Outcome]:
    """Runs the jobs, yields each outcome as it comes; closing the iterator ends the workers."""
    todo: queue.SimpleQueue[Job] = queue.SimpleQueue()
    for job in jobs:
        todo.put(job)
    done: queue.SimpleQueue[Outcome | BaseException] = queue.SimpleQueue()
    stopping = threading.Event()
    count = max(1, min(workers or cores(), len(jobs)))
    live: list[Worker | None] = [None] * count
    threads = [
        threading.Thread(target=_serve, args=(todo, done, stopping, live, i), daemon=True)
        for i in range(count)
    ]
    for thread in threads:
        thread.start()
    try:
        for _ in range(len(jobs)):
            outcome = done.get()
            if isinstance(outcome, BaseException):
                raise outcome
            yield outcome
    finally:
        stopping.set()
        for worker in list(live):
            if worker is not None:
                worker.kill()
        for thread in threads:
            thread.join(timeout=10)


def _serve(
    todo: queue.SimpleQueue[Job],
    done: queue.SimpleQueue[Outcome | BaseException],
    stopping: threading.Event,
    live: list[Worker | None],
    index: int,
) -> None:
    worker: Worker | None = None
    try:
        while not stopping.is_set():
            try:
                job = todo.get_nowait()
            except queue.Empty:
                return
            if worker is not None and worker.environment != dict(job.environment):
                worker.stop()
                worker = None
            if worker is None:
                worker = live[index] = Worker(job.environment)
            outcome = worker.ask(job)
            if outcome.kind in ("crash", "hang") or _lost(outcome):
                worker.stop()
                worker = live[index] = None
            done.put(outcome)
    except BaseException as error:
        done.put(error)
    finally:
        live[index] = None
        if worker is not None:
            worker.stop()


def _lost(outcome: Outcome) -> bool:
    """After a fault the HIP context of a process is good for nothing, on a GPU."""
    answer = outcome.answer if outcome.kind == "ok" else None
    return isinstance(answer, dict) and bool(answer.get("device", {}).get("lost"))


def _environment(extra: Mapping[str, str]) -> dict[str, str]:
    """This process's environment, one thread for BLAS, and the packages of this process."""
    environment = {**os.environ, **dict.fromkeys(_ONE_THREAD, "1"), **extra}
    ours = [entry for entry in sys.path if entry and any(Path(entry).glob("netra_*/__init__.py"))]
    given = environment.get("PYTHONPATH", "").split(os.pathsep)
    packages = dict.fromkeys(entry for entry in [*ours, *given] if entry)
    environment["PYTHONPATH"] = os.pathsep.join(packages)
    return environment
