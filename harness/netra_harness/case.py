"""One thing to try: a name, the parameters its oracle reads, and how the call is made."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

GRAPHS = ("eager", "capture")
PHASES = ("decode", "verify", "draft_extend", "prefill")

DEFAULT_SEED = 20260


@dataclass(frozen=True)
class Case:
    """`graph="eager"` runs once; `"capture"` also records the launches and replays them.

    Names are unique within a case set and can be pasted after `--case`.
    """

    name: str
    params: Mapping[str, Any] = field(default_factory=dict)
    graph: str = "eager"
    phase: str = "decode"

    def __post_init__(self) -> None:
        if not self.name or not self.name.isprintable() or " " in self.name:
            raise ValueError(f"case name {self.name!r}: printable and without blanks, please")
        if self.graph not in GRAPHS:
            raise ValueError(f"case {self.name}: graph {self.graph!r} is none of {GRAPHS}")
        if self.phase not in PHASES:
            raise ValueError(f"case {self.name}: phase {self.phase!r} is none of {PHASES}")


def case_rng(seed: int, op: str, case: str, draw: int = 0) -> np.random.Generator:
    """The generator of one case's inputs.

    It depends on the op, not on the tactic, so both targets and the captures see the same data;
    and on the case's name, so a case run alone gets what it got among the others.
    """
    digest = hashlib.sha256(f"{op}\0{case}".encode()).digest()
    return np.random.default_rng([seed, int.from_bytes(digest[:8], "little"), draw])
