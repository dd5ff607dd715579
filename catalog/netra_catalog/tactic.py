"""A tactic: one implementation of an op on one target, as its YAML states it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from netra_catalog.format import KIND_BYTES

if TYPE_CHECKING:
    from netra_catalog.contract import Expr, Predicate
    from netra_catalog.op import Op



@dataclass(frozen=True)
class KernelArg:
    """One field of the kernarg block.  Without `value` it is the op's argument
    of the same name."""

    name: str
    kind: str
    offset: int
    value: Expr | None = None

    @property
    def size(self) -> int:
        return KIND_BYTES[self.kind]


@dataclass(frozen=True)
class Launch:
    kernel: str
    grid: tuple[Expr, Expr, Expr]
    block: tuple[Expr, Expr, Expr]
    lds: Expr
    args: tuple[KernelArg, ...]

    @property
    def kernarg_size(self) -> int:
        """What covers the arguments, rounded up to 8."""
        end = max((arg.offset + arg.size for arg in self.args), default=0)
        return -(-end // 8) * 8


@dataclass(frozen=True)
class Workspace:
    bytes: Expr
    zeroed_by: str


@dataclass(frozen=True)
class Effects:
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    commits: tuple[str, ...]


@dataclass(frozen=True)
class ExactCheck:
    """A second comparison, against `exact`, when `deployed` decides."""

    metric: str
    value: int | float


@dataclass(frozen=True)
class Numerics:
    """`relative` is the part of a bound that grows with the value: value + relative * |want|."""

    decides: str
    metric: str
    value: int | float
    matrix_model: str
    exact: ExactCheck | None = None
    relative: float = 0.0

    @property
    def allowed(self) -> str:
        """What the metric lets pass, as text."""
        more = f" + {self.relative:g} * |want|" if self.relative else ""
        return f"{self.metric} {self.value}{more}"


@dataclass(frozen=True)
class Tactic:
    """`lines` has the line of every key, by its dotted path: `launches[0].grid`."""

    id: str
    arch: str
    stem: str
    op: str
    definition: Op
    oracle_name: str
    variant: str
    rank: int
    contract: Mapping[str, Predicate]
    launches: tuple[Launch, ...]
    resources: Mapping[str, Mapping[str, int]]
    workspace: Workspace
    effects: Effects
    numerics: Numerics
    fallback: Mapping[str, str]
    hold: str | None
    maturity: str
    evidence: Sequence[str] | None
    contract_sha256: str
    path: Path
    lines: Mapping[str, int]

    @property
    def kernels(self) -> tuple[str, ...]:
        """Each launched kernel once, in the order of the first launch."""
        return tuple(dict.fromkeys(launch.kernel for launch in self.launches))

    @property
    def root(self) -> Path:
        """The checkout that the YAML lies in."""
        return self.path.parent.parent.parent

    def where(self, key: str) -> str:
        """file:line of a key, or of the nearest one above it."""
        from netra_catalog.paths import display

        while key and key not in self.lines:
            cut = max(key.rfind("."), key.rfind("["))
            key = key[: max(cut, 0)]
        return f"{display(self.path)}:{self.lines.get(key, 1)}"
