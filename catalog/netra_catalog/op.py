"""What an op is: its arguments and what it promises, apart from any kernel.

An oracle module (harness/netra_harness/oracles/<op>.py) holds one `OP`.  Write
it as a literal: names, numbers, strings and tuples only.  The catalog then
reads it without importing NumPy.
"""

from __future__ import annotations

import keyword
from dataclasses import dataclass

from netra_catalog.dtypes import DTYPES

SIGNATURE = ("arch", "cu_count", "phase", "graph")
GRAPHS = ("eager", "capture", "piecewise")
PHASES = ("decode", "verify", "draft_extend", "prefill")
FUNCTIONS = ("ceildiv", "aligned", "contiguous", "disjoint", "is_pow2", "min", "max")
RESERVED = frozenset((*SIGNATURE, *FUNCTIONS, "workspace"))

SCALAR_KINDS = ("u32", "i32", "i64", "f32", "f64")
ROLES = ("in", "out", "inout")


@dataclass(frozen=True)
class TensorArg:
    """A tensor.  `dims` name or fix its extents; equal names mean equal extents."""

    name: str
    dtypes: tuple[str, ...]
    dims: tuple[str | int, ...]
    role: str
    layout: str = "row_major"
    doc: str = ""

    def __post_init__(self) -> None:
        _check_name(self.name)
        if self.role not in ROLES:
            raise ValueError(f"{self.name}: role is '{self.role}', want one of {', '.join(ROLES)}")
        if not self.dtypes or isinstance(self.dtypes, str):
            raise ValueError(f"{self.name}: dtypes is a tuple of at least one name")
        for dtype in self.dtypes:
            if dtype not in DTYPES:
                raise ValueError(f"{self.name}: unknown dtype '{dtype}'")
        if isinstance(self.dims, str):
            raise ValueError(f"{self.name}: dims is a tuple")


@dataclass(frozen=True)
class ScalarArg:
    """A number passed by value."""

    name: str
    kind: str
    default: int | float | None = None
    doc: str = ""

    def __post_init__(self) -> None:
        _check_name(self.name)
        if self.kind not in SCALAR_KINDS:
            raise ValueError(
                f"{self.name}: kind is '{self.kind}', want one of {', '.join(SCALAR_KINDS)}"
            )


@dataclass(frozen=True)
class Op:
    """An operation.  The last strings say in words what it does in the odd cases."""

    name: str
    args: tuple[TensorArg | ScalarArg, ...]
    phases: tuple[str, ...]
    nan: str
    ties: str
    padding: str
    sentinels: str
    empty: str
    doc: str

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for arg in self.args:
            if arg.name in seen:
                raise ValueError(f"op {self.name}: two arguments are named '{arg.name}'")
            seen.add(arg.name)
        if not self.phases or isinstance(self.phases, str):
            raise ValueError(f"op {self.name}: phases is a tuple of at least one name")
        for phase in self.phases:
            if phase not in PHASES:
                raise ValueError(
                    f"op {self.name}: unknown phase '{phase}', want {', '.join(PHASES)}"
                )

    def arg(self, name: str) -> TensorArg | ScalarArg | None:
        return next((arg for arg in self.args if arg.name == name), None)

    @property
    def tensors(self) -> tuple[TensorArg, ...]:
        return tuple(arg for arg in self.args if isinstance(arg, TensorArg))

    @property
    def scalars(self) -> tuple[ScalarArg, ...]:
        return tuple(arg for arg in self.args if isinstance(arg, ScalarArg))


def _check_name(name: str) -> None:
    if not name.isidentifier() or keyword.iskeyword(name):
        raise ValueError(f"argument '{name}' is not a name that an expression can use")
    if name in RESERVED:
        raise ValueError(f"argument '{name}' has a name that contracts reserve")
