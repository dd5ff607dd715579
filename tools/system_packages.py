"""apt, as far as the set-up needs it: what is offered, may it be installed here, install it."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

LOCK = Path(__file__).resolve().parents[1] / "build" / ".apt.lock"


class InstallFailed(Exception):
    """apt-get was run and failed; the text holds its last lines and the command."""


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """`make -j` may want two installations at once; apt does not."""
    LOCK.parent.mkdir(exist_ok=True)
    with LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _environment() -> dict[str, str]:
    return {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"}


class Apt:
    """The machine's apt, or the absence of one (then nothing is offered)."""

    def offers(self, package: str) -> bool:
        """True if apt's lists have an installable version of `package`."""
        if shutil.which("apt-cache") is None:
            return False
        done = subprocess.run(
            ["apt-cache", "policy", package], capture_output=True, text=True, env=_environment()
        )
        versions = [
            li.split(":", 1)[1].strip() for li in done.stdout.splitlines() if "Candidate:" in li
        ]
        return any(version != "(none)" for version in versions)

    def can_install(self) -> bool:
        """True as root on a machine that has apt-get."""
        return os.geteuid() == 0 and shutil.which("apt-get") is not None

    def update(self) -> None:
        """Refresh apt's lists.  A failure shows later, as packages that are not offered."""
        print("set-up: apt-get update", file=sys.stderr, flush=True)
        with _one_at_a_time():
            subprocess.run(
                ["apt-get", "update", "-qq"], env=_environment(), stdout=subprocess.DEVNULL
            )

    def install(self, packages: Sequence[str]) -> None:
        """Install `packages` without their recommendations."""
        command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages]
        print(f"set-up: {' '.join(command)}", file=sys.stderr, flush=True)
        with _one_at_a_time():
            done = subprocess.run(
                command,
                env=_environment(),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        if done.returncode != 0:
            last = "\n".join(f"  {line}" for line in done.stdout.strip().splitlines()[-5:])
            raise InstallFailed(f"{' '.join(command)} failed:\n{last}")
