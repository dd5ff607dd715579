"""What a run of one case says, in a form that crosses processes as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from netra_sim import sanitizer

# Kinds of failure. `gone` ones say that the process or its device cannot go on.
KINDS = (
    "mismatch",  # an output differs from an oracle or a capture
    "unwritten",  # an output byte was never stored
    "outside",  # something was stored outside an array, or over an input
    "order",  # an output depends on the schedule of waves and workgroups
    "replay",  # a replay differs from the eager launch
    "fault",  # the device stopped the kernel
    "finding",  # the sanitizer reports an error
    "contract",  # the contract does not admit the case
    "capture",  # a stale or damaged capture
    "error",  # the oracle or the harness itself failed
    "crash",  # the worker process died
    "hang",  # the worker did not answer in time
)


@dataclass(frozen=True)
class Failure:
    """One thing wrong. `arm` is which launch of the case, `where` what is known of the place."""

    kind: str
    text: str
    arm: str = ""
    where: str = ""
    comparison: dict[str, Any] | None = None


@dataclass
class CaseResult:
    """The verdict on one case of one tactic; `worst` has the largest error per output."""

    tactic: str
    case: str
    seed: int
    failures: list[Failure] = field(default_factory=list)
    arms: list[str] = field(default_factory=list)
    against: list[str] = field(default_factory=list)
    worst: dict[str, dict[str, Any]] = field(default_factory=dict)
    device: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)  # of the sanitizer
    seconds: float = 0.0
    launch_seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Something ran and was compared, and nothing failed."""
        return not self.failures and bool(self.arms) and bool(self.against)

    def note_findings(self, found: list[sanitizer.Finding]) -> None:
        """What the sanitizer found: errors are failures and come first, warnings are kept."""
        arm = self.arms[-1] if self.arms else "set-up"
        self.failures[:0] = [
            Failure("finding", sanitizer.text(one), arm, sanitizer.place(one))
            for one in sanitizer.errors(found)
        ]
        self.warnings += [sanitizer.text(one) for one in found if one["severity"] == "warning"]

    def json(self) -> dict[str, Any]:
        return {**asdict(self), "passed": self.passed}

    @classmethod
    def from_json(cls, form: dict[str, Any]) -> CaseResult:
        fields = {k: v for k, v in form.items() if k != "passed"}
        fields["failures"] = [Failure(**failure) for failure in fields["failures"]]
        return cls(**fields)

    @classmethod
    def failed(
        cls, tactic: str, case: str, seed: int, kind: str, text: str, where: str = ""
    ) -> CaseResult:
        """A case that came to nothing, for one reason."""
        return cls(tactic, case, seed, [Failure(kind, text, where=where)])
