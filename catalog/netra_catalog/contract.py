"""The contract language: one-line expressions over the arguments of an op.

    names       the op's arguments, arch, cu_count, phase, graph
    of tensors  .shape[i] .dtype .stride(i) .layout .ndim .max_byte_offset .extent
    operators   + - * // % ** (constant exponent)   == != < <= > >=   in   and or not
    functions   ceildiv aligned contiguous disjoint is_pow2 min max

A tensor by itself is its address: `dst == src`, `aligned(x, 16)`.  A scalar of
kind f32 is the float32 that the kernel gets, and a constant compared with it is
rounded to float32 first.  What expr.py computes and when it gives up (overflow,
division by zero, an unknown layout) is stated there.  In a launch, `workspace`
is an address as well, and an integer may be added to an address.
"""

from __future__ import annotations

from dataclasses import dataclass

from netra_catalog.env import Env, Overflow, Undefined
from netra_catalog.expr import Const, Load, Node, Value, loads
from netra_catalog.parser import Reader, english
from netra_catalog.scope import ContractError, Place, Scope, int_scope, scope

__all__ = [
    "ContractError", "Env", "Expr", "Load", "Overflow", "Place", "Predicate", "Scope",
    "Undefined", "int_scope", "parse", "predicate", "scope",
]


@dataclass(frozen=True)
class Expr:
    """A parsed expression and the text it came from."""

    text: str
    node: Node
    place: Place

    @property
    def type(self) -> str:
        return self.node.type

    @property
    def constant(self) -> int | float | str | None:
        return self.node.constant if isinstance(self.node, Const) else None

    def value(self, env: Env) -> Value:
        return self.node.value(env)

    def inputs(self) -> tuple[Load, ...]:
        return tuple(loads(self.node))

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Predicate:
    """One line of a contract."""

    id: str
    expr: Expr

    @property
    def text(self) -> str:
        return self.expr.text


def parse(text: str, names: Scope, place: Place, want: str = "bool") -> Expr:
    """Parses one expression of type `want`: bool, int, or any."""
    reader = Reader(text, names, place)
    node = reader.parse()
    if want not in ("any", node.type):
        reader.fail(0, f"this is {english(node.type)}, want {english(want)}")
    return Expr(text, node, place)


def predicate(id: str, text: str, names: Scope, place: Place) -> Predicate:
    """Parses one predicate; one that says nothing about the call is an error."""
    expr = parse(text, names, place)
    if not expr.inputs():
        raise ContractError(f"{id}: says nothing about the call", where=str(place))
    return Predicate(id, expr)
