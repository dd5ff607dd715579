"""The typed tree of a contract expression, and what it means.

    integers    exact in 128 bits with a sign; a result outside raises Overflow
    // and %    round towards minus infinity, as in Python
    and, or     stop at the first operand that decides
    layout      an unknown tag makes the whole predicate false (Undefined)
    x // 0      makes the whole predicate false (Undefined)

Every node is one of nine small classes, so that a compiler to another form has
nine cases.  A chained comparison has become `and`, constants are folded, a
negative shape index counts from the front.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from netra_catalog.call import Tensor
from netra_catalog.env import Env, Overflow, Undefined, to_f32

__all__ = [
    "Apply", "Binary", "Compare", "Const", "Env", "Load", "Logic", "Member", "Node", "Overflow",
    "Unary", "Undefined", "Value", "arithmetic", "loads", "negate", "nodes", "to_f32",
]

Value = int | float | str | bool | Tensor
INT128_MIN, INT128_MAX = -(2**127), 2**127 - 1
INT64_MIN, UINT64_MAX = -(2**63), 2**64 - 1


@dataclass(frozen=True)
class Node:
    """`type` is int, bool, str, f32, f64, float, tensor, ptr or tuple."""

    type: str

    def value(self, env: Env) -> Value:
        raise NotImplementedError

    def parts(self) -> tuple[Node, ...]:
        return ()


@dataclass(frozen=True)
class Const(Node):
    constant: int | float | str

    def value(self, env: Env) -> Value:
        return self.constant


@dataclass(frozen=True)
class Load(Node):
    """An input.  `field` is "" for a scalar, a tensor or a signature name."""

    name: str
    field: str = ""
    index: int = 0

    @property
    def text(self) -> str:
        if self.field == "shape":
            return f"{self.name}.shape[{self.index}]"
        if self.field == "stride":
            return f"{self.name}.stride({self.index})"
        return f"{self.name}.{self.field}" if self.field else self.name

    def value(self, env: Env) -> Value:
        if self.name == "cu_count":
            return _input(env.call.cu_count)
        if self.name in ("arch", "phase", "graph"):
            text: str = getattr(env.call, self.name)
            return text
        if self.name == "workspace":
            return env.workspace
        given = env.call.args.get(self.name)
        if given is None:
            if self.name not in env.defaults:
                raise Undefined(f"{self.name} is missing")
            given = env.defaults[self.name]
        if isinstance(given, Tensor):
            return _tensor_field(given, self.field, self.index) if self.field else given
        if self.type == "f32":
            return to_f32(float(given))
        return float(given) if self.type == "f64" else _input(given)


def _input(given: int | float) -> int:
    value = int(given)  # a NumPy integer would wrap around without a word
    if not INT64_MIN <= value <= UINT64_MAX:
        raise Overflow(f"{value} is no 64-bit integer")
    return value


def _tensor_field(tensor: Tensor, field: str, index: int) -> Value:
    if field in ("shape", "stride"):
        items = tensor.shape if field == "shape" else tensor.strides
        if not 0 <= index < len(items):
            raise Undefined(f"there is no dimension {index}")
        return _input(items[index])
    if field == "ndim":
        return len(tensor.shape)
    if field == "layout":
        if not tensor.layout or tensor.layout == "unknown":
            raise Undefined("the layout is unknown")
        return tensor.layout
    if field == "dtype":
        return tensor.dtype
    return _input(tensor.max_byte_offset if field == "max_byte_offset" else tensor.extent)


@dataclass(frozen=True)
class Unary(Node):
    """`-` or `not`."""

    op: str
    operand: Node

    def value(self, env: Env) -> Value:
        value = self.operand.value(env)
        if self.op == "not":
            return not value
        assert isinstance(value, (int, float))
        return negate(value)

    def parts(self) -> tuple[Node, ...]:
        return (self.operand,)


@dataclass(frozen=True)
class Binary(Node):
    """+ - * // % ** on integers; + and - also on a pointer and an integer."""

    op: str
    left: Node
    right: Node

    def value(self, env: Env) -> Value:
        left, right = self.left.value(env), self.right.value(env)
        if isinstance(left, Tensor):
            left = left.ptr
        if isinstance(right, Tensor):
            right = right.ptr
        assert isinstance(left, int) and isinstance(right, int)
        return arithmetic(self.op, left, right)

    def parts(self) -> tuple[Node, ...]:
        return (self.left, self.right)


@dataclass(frozen=True)
class Compare(Node):
    """== != < <= > >= on two numbers; == and != also on names and tensors."""

    op: str
    left: Node
    right: Node

    def value(self, env: Env) -> Value:
        left, right = self.left.value(env), self.right.value(env)
        if isinstance(left, Tensor) and isinstance(right, Tensor):
            left, right = left.ptr, right.ptr
        return _COMPARE[self.op](left, right)

    def parts(self) -> tuple[Node, ...]:
        return (self.left, self.right)


@dataclass(frozen=True)
class Member(Node):
    """item in (constants), or not in."""

    item: Node
    items: tuple[Const, ...]
    negated: bool

    def value(self, env: Env) -> Value:
        value = self.item.value(env)
        return any(value == item.constant for item in self.items) != self.negated

    def parts(self) -> tuple[Node, ...]:
        return (self.item, *self.items)


@dataclass(frozen=True)
class Logic(Node):
    """`and` or `or`, left to right, no further than needed."""

    op: str
    items: tuple[Node, ...]

    def value(self, env: Env) -> Value:
        stop = self.op == "or"
        for item in self.items:
            if bool(item.value(env)) is stop:
                return stop
        return not stop

    def parts(self) -> tuple[Node, ...]:
        return self.items


@dataclass(frozen=True)
class Apply(Node):
    """One of the functions of op.FUNCTIONS."""

    function: str
    args: tuple[Node, ...]

    def value(self, env: Env) -> Value:
        return apply(self.function, [arg.value(env) for arg in self.args])

    def parts(self) -> tuple[Node, ...]:
        return self.args


_COMPARE: dict[str, Callable[[Value, Value], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,  # type: ignore[operator]
    "<=": lambda a, b: a <= b,  # type: ignore[operator]
    ">": lambda a, b: a > b,  # type: ignore[operator]
    ">=": lambda a, b: a >= b,  # type: ignore[operator]
}


def fits(value: int) -> int:
    if not INT128_MIN <= value <= INT128_MAX:
        raise Overflow("the result has more than 128 bits")
    return value


def negate(value: int | float) -> int | float:
    return fits(-value) if isinstance(value, int) else -value


def arithmetic(op: str, left: int, right: int) -> int:
    if op == "+":
        return fits(left + right)
    if op == "-":
        return fits(left - right)
    if op == "*":
        return fits(left * right)
    if op == "**":
        # Each base beyond -1..1 leaves 128 bits long before an exponent of 128.
        if abs(left) > 1 and right > 127:
            raise Overflow("the result has more than 128 bits")
        return fits(left**right)
    if right == 0:
        raise Undefined(f"{op} by zero")
    return fits(left // right if op == "//" else left % right)


def apply(function: str, args: list[Value]) -> Value:
    first = args[0]
    if isinstance(first, Tensor):
        if function == "contiguous":
            return first.contiguous
        if function == "disjoint":
            assert isinstance(args[1], Tensor)
            return first.disjoint(args[1])
        first = first.ptr
    numbers = [first, *args[1:]]
    ints = [number for number in numbers if isinstance(number, int)]
    assert len(ints) == len(numbers)
    if function == "min":
        return min(ints)
    if function == "max":
        return max(ints)
    if function == "is_pow2":
        return ints[0] > 0 and ints[0] & (ints[0] - 1) == 0
    if ints[1] == 0:
        raise Undefined(f"{function} by zero")
    if function == "aligned":
        return ints[0] % ints[1] == 0
    return fits(-(-ints[0] // ints[1]))  # ceildiv


def nodes(node: Node) -> Iterator[Node]:
    """Every node of the tree, left to right."""
    stack = [node]
    while stack:
        here = stack.pop()
        yield here
        stack.extend(reversed(here.parts()))


def loads(node: Node) -> Iterator[Load]:
    """Every input that the tree reads, left to right, each once."""
    seen: set[Load] = set()
    for here in nodes(node):
        if isinstance(here, Load) and here not in seen:
            seen.add(here)
            yield here
