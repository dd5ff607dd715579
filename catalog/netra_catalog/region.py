"""What a contract admits, as a union of boxes.

A box gives each input the set that it may lie in, ties inputs that must be equal, and keeps what
it cannot express as literals: expressions with the truth that they must have.  Two literals that
contradict each other make a box empty.  `true_when` follows the evaluator to the letter: an
operand that is not evaluated cannot overflow, one that overflows makes the predicate false.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from netra_catalog import intsets
from netra_catalog.dtypes import DTYPES, itemsize
from netra_catalog.expr import (
    Apply,
    Binary,
    Compare,
    Const,
    Load,
    Logic,
    Member,
    Node,
    Unary,
    loads,
)
from netra_catalog.intsets import ALL, FITS, NONE, POWERS, Ints, Undecided, key_of
from netra_catalog.op import GRAPHS, PHASES, Op
from netra_catalog.paths import ARCHES
from netra_catalog.tactic import Tactic

_MAX_BOXES = 512
_MIRROR = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_SCALARS = {"u32": (0, 2**32 - 1), "i32": (-(2**31), 2**31 - 1), "i64": (-(2**63), 2**63 - 1)}
_FLOATS = ("f32", "f64", "float")


@dataclass(frozen=True)
class Names:
    """Some names, or all but some."""

    names: frozenset[str]
    negated: bool = False

    def __bool__(self) -> bool:
        return self.negated or bool(self.names)

    def __contains__(self, name: str) -> bool:
        return (name in self.names) != self.negated

    def __and__(self, other: Names) -> Names:
        if self.negated and other.negated:
            return Names(self.names | other.names, True)
        if self.negated:
            return Names(other.names - self.names)
        return Names(self.names - other.names if other.negated else self.names & other.names)


Domain = Ints | Names


@dataclass(frozen=True)
class Box:
    sets: Mapping[Load, Domain] = field(default_factory=dict)
    equal: frozenset[tuple[Load, Load]] = frozenset()
    literals: frozenset[tuple[Node, bool]] = frozenset()

    def __and__(self, other: Box) -> Box | None:
        """None when it is plainly empty."""
        for node, truth in other.literals:
            if (node, not truth) in self.literals:
                return None
        sets = dict(self.sets)
        for load, domain in other.sets.items():
            mine = sets.get(load)
            both = domain if mine is None else mine & domain  # type: ignore[operator]
            if not both:
                return None
            sets[load] = both
        return Box(sets, self.equal | other.equal, self.literals | other.literals)


Region = tuple[Box, ...]
EVERYTHING: Region = (Box(),)


INF = key_of(float("inf"))
NAN = INF + 1


def meet(a: Region, b: Region) -> Region:
    found = tuple(box for x in a for y in b if (box := x & y) is not None)
    if len(found) > _MAX_BOXES:
        raise Undecided("a contract has too many alternatives")
    return found


def true_when(node: Node, truth: bool = True) -> Region:
    """Where the expression is evaluated without an error and has this truth."""
    if isinstance(node, Unary) and node.op == "not":
        return true_when(node.operand, not truth)
    if isinstance(node, Logic):
        if (node.op == "and") == truth:  # all of them
            found = EVERYTHING
            for item in node.items:
                found = meet(found, true_when(item, truth))
            return found
        regions: list[Box] = []
        before = EVERYTHING
        for item in node.items:
            regions += meet(before, true_when(item, truth))
            before = meet(before, true_when(item, not truth))
        return tuple(regions)
    atom = _atom(node, truth)
    return ((atom,) if atom is not None else ())


def _atom(node: Node, truth: bool) -> Box | None:
    inputs = list(loads(node))
    try:
        if isinstance(node, Compare):
            op = node.op if truth else _OPPOSITE[node.op]
            if op == "==" and isinstance(node.left, Load) and isinstance(node.right, Load):
                if node.left == node.right and node.left.type not in _FLOATS:
                    return Box()
                if node.left.type in ("int", "str"):
                    return Box(equal=frozenset(((node.left, node.right),)))
            elif len(inputs) == 1 and inputs[0].type != "tensor":
                return _one(inputs[0], _compared(node, truth))
        elif isinstance(node, Member) and len(inputs) == 1:
            values = [item.constant for item in node.items]
            inside = node.negated != truth
            if inputs[0].type == "str":
                names = frozenset(str(v) for v in values)
                return _one(inputs[0], Names(names, not inside))
            wanted = Ints.of(int(v) for v in values)
            return _one(inputs[0], _where(node.item, wanted if inside else ALL - wanted))
        elif isinstance(node, Apply) and len(inputs) == 1:
            found = _applied(node, truth)
            if found is not None:
                return _one(inputs[0], found)
    except Undecided:
        pass
    return Box(literals=frozenset(((node, truth),)))


def _one(load: Load, domain: Domain) -> Box | None:
    return Box({load: domain}) if domain else None


def _compared(node: Compare, truth: bool) -> Domain:
    left, right, op = node.left, node.right, node.op
    if isinstance(left, Const):
        left, right, op = right, left, _MIRROR[op]
    if not isinstance(right, Const):
        raise Undecided("an input on both sides")
    value = right.constant
    if isinstance(value, str):
        return Names(frozenset((value,)), (op == "==") != truth)
    if left.type in _FLOATS:
        if not isinstance(left, Load):
            raise Undecided("arithmetic on floats")
        holds = NONE if value != value else _interval(op, key_of(float(value)), INF)
        if op == "!=":
            holds = holds | Ints.of((NAN,))
        return holds if truth else Ints.between(-INF, NAN) - holds
    assert isinstance(value, int)
    return _where(left, _interval(op if truth else _OPPOSITE[op], value, intsets.FAR))


def _interval(op: str, value: int, end: int) -> Ints:
    if op in ("==", "!="):
        return Ints.of((value,)) if op == "==" else Ints.between(-end, end) - Ints.of((value,))
    if op in ("<", "<="):
        return Ints.between(-end, value - (op == "<"))
    return Ints.between(value + (op == ">"), end)


def _applied(node: Apply, truth: bool) -> Ints | None:
    first = node.args[0]
    if node.function == "is_pow2":
        return _where(first, POWERS if truth else ALL - POWERS)
    if node.function == "aligned" and isinstance(node.args[1], Const):
        by = node.args[1].constant
        assert isinstance(by, int)
        multiples = intsets.remainders(Ints.of((0,)), by)
        return _where(first, multiples if truth else ALL - multiples)
    return None


def _where(node: Node, wanted: Ints) -> Ints:
    """The values of the only input of `node` for which it lies in `wanted`."""
    if isinstance(node, Load):
        return wanted
    if isinstance(node, Const):
        return ALL if node.constant in wanted else NONE  # type: ignore[operator]
    wanted = wanted & FITS
    if isinstance(node, Unary):
        return _where(node.operand, intsets.negated(wanted))
    if isinstance(node, Binary):
        left, right = node.left, node.right
        if isinstance(right, Const):
            by = right.constant
            assert isinstance(by, int)
            if node.op in "+-":
                return _where(left, intsets.shifted(wanted, by if node.op == "+" else -by))
            if node.op == "*":
                if by == 0:
                    return _where(left, ALL) if 0 in wanted else NONE
                return _where(left, intsets.divided(wanted, by))
            if node.op == "//":
                return _where(left, intsets.multiplied(wanted, by))
            if node.op == "%":
                return _where(left, intsets.remainders(wanted, by))
        elif isinstance(left, Const):
            by = left.constant
            assert isinstance(by, int)
            if node.op == "+":
                return _where(right, intsets.shifted(wanted, by))
            if node.op == "-":
                return _where(right, intsets.negated(intsets.shifted(wanted, by)))
            if node.op == "*" and by != 0:
                return _where(right, intsets.divided(wanted, by))
    if isinstance(node, Apply) and len(node.args) == 2:
        first, second = node.args
        if node.function == "ceildiv" and isinstance(second, Const):
            by = second.constant
            assert isinstance(by, int)
            return _where(first, intsets.rounded_up(wanted, by))
        if node.function in ("min", "max"):
            if isinstance(first, Const):
                first, second = second, first
            if isinstance(second, Const):
                bound = second.constant
                assert isinstance(bound, int)
                low = node.function == "max"
                beyond = Ints.between(-intsets.FAR, bound) if low else Ints.between(
                    bound, intsets.FAR
                )
                inside = wanted - beyond
                return _where(first, inside | beyond if bound in wanted else inside)
    raise Undecided("an expression that is not solved")


# Whole contracts


def domain_of(load: Load, op: Op) -> Domain:
    """Everything that an input can be."""
    closed = {"phase": PHASES, "graph": GRAPHS, "arch": ARCHES}
    if load.name in closed:
        return Names(frozenset(closed[load.name]))
    if load.field == "dtype":
        return Names(frozenset(DTYPES))
    if load.type == "str":
        return Names(frozenset(("", "unknown")), True)
    if load.type in _FLOATS:
        return Ints.between(-INF, NAN)
    if load.field == "shape":
        return Ints.between(0, 2**63 - 1)
    if load.field == "max_byte_offset":
        return Ints.between(-1, 2**64 - 1)
    if load.field == "ndim":
        arg = op.arg(load.name)
        return Ints.of((len(getattr(arg, "dims", ())),))
    if load.type == "tensor" or load.field == "extent":
        return Ints.between(0, 2**64 - 1)
    kind = getattr(op.arg(load.name), "kind", "")
    return Ints.between(*_SCALARS.get(kind, (-(2**63), 2**64 - 1)))


def region(tactic: Tactic) -> Region:
    """What a contract admits; inputs that no predicate reads are left out."""
    found = EVERYTHING
    for predicate in tactic.contract.values():
        found = meet(found, true_when(predicate.expr.node))
    on_target = Box({Load("str", "arch"): Names(frozenset((tactic.arch,)))})
    solved = (solve(box, tactic.definition) for box in meet(found, (on_target,)))
    return tuple(box for box in solved if box is not None)


def leader(box: Box, load: Load) -> Load:
    """The first of the inputs that must equal this one."""
    group = {load}
    while True:
        more = {x for pair in box.equal if group & set(pair) for x in pair} - group
        if not more:
            return min(group, key=lambda x: x.text)
        group |= more


def solve(box: Box, op: Op) -> Box | None:
    """The box with every set narrowed by the domains, by what must be equal and by what a dense
    tensor's extents say of its bytes; None when nothing is left."""
    sets: dict[Load, Domain] = {}
    inputs = {*box.sets, *(x for pair in box.equal for x in pair)}
    for arg in op.tensors:
        inputs |= {Load("int", arg.name, "shape", i) for i in range(len(arg.dims))}
        inputs |= {Load("str", arg.name, "dtype"), Load("int", arg.name, "max_byte_offset"),
                   Load("int", arg.name, "ndim")}
    for load in inputs:
        top = leader(box, load)
        domain = domain_of(load, op)
        mine = box.sets.get(load)
        for other in (mine, sets.get(top)):
            if other is not None:
                domain = domain & other  # type: ignore[operator]
        if not domain:
            return None
        sets[top] = domain
    for _ in range(3):
        for arg in op.tensors:
            if not _dense(sets, box, op, arg.name):
                return None
    return Box(sets, box.equal, box.literals)


def get(box: Box, load: Load, op: Op) -> Domain:
    return box.sets.get(leader(box, load), domain_of(load, op))


def _dense(sets: dict[Load, Domain], box: Box, op: Op, name: str) -> bool:
    tensor = Load("tensor", name)
    if (Apply("bool", "contiguous", (tensor,)), True) not in box.literals:
        return True
    arg = op.arg(name)
    count = len(getattr(arg, "dims", ()))
    shape = [leader(box, Load("int", name, "shape", i)) for i in range(count)]
    dtypes = sets[leader(box, Load("str", name, "dtype"))]
    assert isinstance(dtypes, Names)
    sizes = [itemsize(d) for d in dtypes.names]
    reach = leader(box, Load("int", name, "max_byte_offset"))
    offsets = sets[reach]
    lows = [int(getattr(sets[d], "low", 0)) for d in shape]
    highs = [int(getattr(sets[d], "high", 0)) for d in shape]
    assert isinstance(offsets, Ints)
    low, high = min(sizes), max(sizes)
    for n in lows:
        low *= n
    for n in highs:
        high *= n
    offsets = offsets & Ints.between(low - 1, high - 1)
    if not offsets:
        return False
    sets[reach] = offsets
    for i, d in enumerate(shape):
        rest = min(sizes)
        for j, n in enumerate(lows):
            rest *= n if j != i else 1
        if rest:
            extents = sets[d]
            assert isinstance(extents, Ints)
            extents = extents & Ints.between(0, (offsets.high + 1) // rest)
            if not extents:
                return False
            sets[d] = extents
    return True


def bounds(node: Node, box: Box, op: Op) -> tuple[int, int]:
    """An interval that holds every value of an integer expression over the box."""
    if isinstance(node, Const):
        assert isinstance(node.constant, int)
        return node.constant, node.constant
    if isinstance(node, Load):
        domain = get(box, node, op)
        assert isinstance(domain, Ints)
        return domain.low, domain.high
    if isinstance(node, Unary):
        low, high = bounds(node.operand, box, op)
        return -high, -low
    if isinstance(node, Binary):
        (a, b), (c, d) = bounds(node.left, box, op), bounds(node.right, box, op)
        if node.op in "+-":
            return (a + c, b + d) if node.op == "+" else (a - d, b - c)
        if node.op == "*":
            corners = (a * c, a * d, b * c, b * d)
            return min(corners), max(corners)
        if node.op == "**" and a >= 0 and d <= 127:
            return a**c, b**d
        if c > 0 and node.op == "//":
            return min(a // c, a // d), max(b // c, b // d)
        if c > 0 and node.op == "%":
            return (a, b) if a >= 0 and b < c else (0, d - 1)
    if isinstance(node, Apply):
        parts = [bounds(arg, box, op) for arg in node.args]
        if node.function in ("min", "max"):
            pick = min if node.function == "min" else max
            return pick(p[0] for p in parts), pick(p[1] for p in parts)
        (a, b), (c, d) = parts
        if node.function == "ceildiv" and c > 0:
            return min(-(-a // c), -(-a // d)), max(-(-b // c), -(-b // d))
    raise Undecided("an expression without known bounds")

