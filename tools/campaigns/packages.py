"""Debian packages that a campaign needs beyond the set-up; installed as root, named otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import system_packages
from netra_catalog.errors import ToolError


def ensure(packages: Sequence[str], find: Callable[[], Path | None], what: str) -> Path:
    """What `find` finds, after installing `packages` if it found nothing.

    Raises ToolError with the command to type when they cannot be installed here.
    """
    found = find()
    if found is not None:
        return found
    apt = system_packages.Apt()
    command = f"sudo apt-get install --no-install-recommends {' '.join(packages)}"
    if not apt.can_install():
        raise ToolError(f"{what} is missing, and only root can install it", hint=f"type: {command}")
    if not all(apt.offers(package) for package in packages):
        apt.update()
    absent = [package for package in packages if not apt.offers(package)]
    if absent:
        raise ToolError(
            f"{what} is missing and apt offers no {', '.join(absent)} here",
            hint="Debian 12 has it; other systems may have another version of it",
        )
    try:
        apt.install(packages)
    except system_packages.InstallFailed as error:
        raise ToolError(str(error)) from None
    found = find()
    if found is None:
        raise ToolError(f"{what} is missing even after: {command}")
    return found
