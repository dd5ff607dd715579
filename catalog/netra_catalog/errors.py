"""Errors that users see: one class for each exit code of the command line.

A message says what is wrong, where (file:line), and what to do next.  None of
them is ever shown as a traceback; click prints them as `Error: ...`.
"""

from __future__ import annotations

from collections.abc import Iterable

import click


class NetraError(click.ClickException):
    """A mismatch, a finding, or a broken file of the repository."""

    exit_code = 1

    def __init__(self, message: str, *, where: str = "", hint: str = "") -> None:
        text = f"{where}: {message}" if where else message
        super().__init__(f"{text}\n  {hint}" if hint else text)


class UsageError(NetraError):
    """The command line, or the arguments of a call, make no sense."""

    exit_code = 2


class NoTacticError(NetraError):
    """No tactic accepts the call, and the caller asked for one."""

    exit_code = 3


class ToolError(NetraError):
    """A tool, a built file or a device is missing."""

    exit_code = 4


def closest(word: str, valid: Iterable[str]) -> str | None:
    """The valid name that was probably meant; None when none is close."""
    import difflib

    close = difflib.get_close_matches(word, sorted(set(valid)), n=1, cutoff=0.5)
    return close[0] if close else None


def nearest(word: str, valid: Iterable[str]) -> str:
    """` (did you mean 'x'?)`, or the list of valid names when none is close."""
    names = sorted(set(valid))
    meant = closest(word, names)
    if meant is not None:
        return f" (did you mean '{meant}'?)"
    if not names:
        return ""
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f" (valid: {shown})"
