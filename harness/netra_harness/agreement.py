"""How far a capture and our two oracles agree: counted element by element."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netra_harness import captures, registry
from netra_harness.captures import CapturedCase
from netra_harness.case import Case
from netra_harness.compare import Comparison, compare
from netra_harness.errors import UsageError

Array = NDArray[Any]


@dataclass(frozen=True)
class Answer:
    """One output of a real implementation, and how near `deployed` must come to it."""

    array: Array
    metric: str = "bitwise"
    value: Any = 0


@dataclass
class Counts:
    """Elements that differ.  `beyond` decides whether a capture and `deployed` agree; the others
    tell how often the two are bit for bit the same, and how often each is the correctly rounded
    value of `exact`."""

    elements: int = 0
    beyond: int = 0
    differ: int = 0
    exact: int = 0
    pair: int = 0
    texts: list[str] = field(default_factory=list)

    def json(self) -> dict[str, Any]:
        return {
            "elements": self.elements, "deployed_beyond_metric": self.beyond,
            "deployed_not_bitwise": self.differ, "exact_not_rounded": self.exact,
            "deployed_not_exact": self.pair, "differences": self.texts,
        }  # fmt: skip


def count(
    oracle: ModuleType,
    variant: str,
    case: str,
    args: Mapping[str, Any],
    answers: Mapping[str, Answer],
    label: str,
    counts: Counts,
) -> None:
    """Adds one case to `counts`; a difference beyond the metric leaves a text."""
    deployed, exact = (
        {k: np.asarray(v) for k, v in getattr(oracle, kind)(variant, **copies(args)).items()}
        for kind in ("deployed", "exact")
    )
    for name, answer in answers.items():
        got = answer.array
        counts.elements += got.size
        verdict = compare(
            name, got, deployed[name], answer.metric, answer.value, "the deployed oracle"
        )
        counts.beyond += missed(verdict)
        if not verdict.passed:
            counts.texts.append(f"{case}: {label}'s {verdict.text()}")
        counts.differ += missed(compare(name, got, deployed[name]))
        counts.exact += missed(_rounded(name, got, exact[name]))
        counts.pair += missed(_rounded(name, deployed[name], exact[name]))


def recount(captured: list[CapturedCase]) -> Counts:
    """The counts of a capture with the oracles as they are now.

    Raises CaptureError when an oracle no longer makes the inputs that were captured.
    """
    counts = Counts()
    for one in captured:
        _, oracle = registry.find(one.op)
        args = one.regenerate(oracle, case_of(oracle, one))
        answers = {
            name: Answer(record.stored, record.metric, record.value)
            for name, record in one.outputs.items()
            if record.stored is not None
        }
        count(oracle, one.variant, one.case, args, answers, one.label, counts)
    return counts


BEGIN, END = "<!-- agreement: begin -->", "<!-- agreement: end -->"


def table() -> str:
    """Every capture of the checkout as a row of a Markdown table."""
    lines = [
        "| op | variant | captured from | on | elements | `deployed`: beyond metric |"
        " not bitwise | `exact`: not rounded to it | the two oracles differ |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for path in captures.files():
        loaded = captures.load(path)
        first, counts = loaded[0], recount(loaded)
        lines.append(
            f"| `{first.op}` | `{first.variant}` | {first.label} | {first.device} | "
            f"{counts.elements} | {counts.beyond} | {_share(counts.differ, counts.elements)} | "
            f"{_share(counts.exact, counts.elements)} | {_share(counts.pair, counts.elements)} |"
        )
    return "\n".join(lines) + "\n"


def table_in(page: str) -> str:
    """The table of a page, as `write_table` put it there; ValueError if a mark is missing."""
    return page[page.index(BEGIN) + len(BEGIN) : page.index(END)].strip() + "\n"


def write_table(path: Path, made: str) -> None:
    """Replaces what is between the marks; the page is old or new, never half of each.

    Raises UsageError when the page cannot be read or has no marks.
    """
    try:
        page = path.read_text()
        old = page[page.index(BEGIN) : page.index(END)]
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{path} has no table to replace ({error})",
            hint=f"it needs the lines {BEGIN} and {END}",
        ) from None
    temporary = path.with_name(f".{path.name}.new")
    temporary.write_text(page.replace(old, f"{BEGIN}\n{made}"))
    os.replace(temporary, path)


def _share(count: int, of: int) -> str:
    return "0" if not count else f"{count} ({100 * count / of:.2g} %)"


def case_of(oracle: ModuleType, one: CapturedCase) -> Case:
    """The oracle's case of that name; CaptureError if it has none any more."""
    for case_set in ("quick", "full"):
        for case in oracle.cases(case_set, one.variant):
            if case.name == one.case:
                found: Case = case
                return found
    raise one.stale("a case that the oracle no longer has")


def copies(args: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments that may be written to."""
    return {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in args.items()}


def missed(verdict: Comparison) -> int:
    """Elements that are not as they should be; all of them where nothing could be compared."""
    return verdict.total if verdict.error else verdict.count


def _rounded(name: str, got: Array, exact: Array) -> Comparison:
    """Is `got` the exact value, correctly rounded to its type?"""
    if exact.dtype == got.dtype:
        return compare(name, got, exact)
    return compare(name, got, exact, "ulp", 0.5)
