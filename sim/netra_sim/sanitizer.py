"""What the sanitizer found, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Finding = dict[str, Any]


def errors(found: Sequence[Finding]) -> list[Finding]:
    """Those that make a kernel wrong; the others are warnings."""
    return [one for one in found if one["severity"] == "error"]


def text(found: Finding) -> str:
    """Several lines: what is wrong, both instructions, the cure, and how sure the rule is."""
    lines = [f"{found['severity']} {found['kind']} {found['rule']}: {found['text']}"]
    lines.append(f"  at    {_party(found['at'])}")
    if found["other"]:
        lines.append(f"  after {_party(found['other'])}")
    if found["mend"]:
        lines.append(f"  mend  {found['mend']}")
    where = f"kernel {found['kernel']}"
    if found["wave"] is not None:  # None: about the code alone
        where += f", wave {found['wave']} of workgroup {tuple(found['workgroup'])}"
    if found["lane"] is not None:
        where += f", lane {found['lane']}"
    if found["address"] is not None:
        where += f", address {found['address']:#x}"
    times = found["count"]
    where += f", {times} times" if times > 1 else ""
    lines.append(f"  {where}; rule: {found['certainty']}")
    return "\n".join(lines)


def place(found: Finding) -> str:
    """The .s line of a finding, or else its place in the kernel."""
    at = found["at"]
    return str(at["line"] or at["place"])


def _party(party: dict[str, str]) -> str:
    return f"{party['line'] or party['place']}: {party['text']}"


def summary(found: Sequence[Finding]) -> str:
    """"2 errors, 1 warning"; "" when there is nothing."""
    wrong = len(errors(found))
    counts = [(wrong, "error"), (len(found) - wrong, "warning")]
    return ", ".join(f"{n} {what}{'s' if n != 1 else ''}" for n, what in counts if n)

