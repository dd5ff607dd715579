"""What an expression may name, and where it stands in a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from netra_catalog.errors import NetraError
from netra_catalog.op import GRAPHS, Op, ScalarArg, TensorArg
from netra_catalog.paths import ARCHES


class ContractError(NetraError):
    """An expression that the language does not allow."""


@dataclass(frozen=True)
class Place:
    """Where an expression stands: the column is that of its first character."""

    file: str = "<expression>"
    line: int = 1
    column: int = 1
    label: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Scope:
    """The names that an expression may use; a str is the type of a plain value.
    `domains` lists what a name can be, where that is a closed list."""

    names: Mapping[str, TensorArg | ScalarArg | str]
    domains: Mapping[str, tuple[str, ...]]


def scope(op: Op, workspace: bool = False) -> Scope:
    """Everything that a tactic of this op may name."""
    names: dict[str, TensorArg | ScalarArg | str] = {arg.name: arg for arg in op.args}
    names |= {"arch": "str", "cu_count": "int", "phase": "str", "graph": "str"}
    if workspace:
        names["workspace"] = "ptr"
    return Scope(names, {"arch": ARCHES, "phase": op.phases, "graph": GRAPHS})


def int_scope(names: Iterable[str]) -> Scope:
    """Plain integers, for the dimensions of an op."""
    return Scope({name: "int" for name in names}, {})
