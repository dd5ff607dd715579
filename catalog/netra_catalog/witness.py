"""Finds a call in a box: the counter-example that a message shows.

Candidates are built from the ends of each input's set, then from a fixed random sequence; a call
counts only when the evaluator itself says so.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from netra_catalog.call import Call, Tensor, dense_strides
from netra_catalog.expr import Apply, Compare, Env, Load, Node, Overflow, Undefined
from netra_catalog.intsets import Ints, float_of, key_of
from netra_catalog.op import Op, TensorArg
from netra_catalog.region import NAN, Box, Names, get, leader

_AREA = 1 << 40
_TRIES = 120
_CU_COUNT = {"gfx950": 256, "gfx1151": 40}


def witness(op: Op, box: Box, arch: str, accept: Callable[[Call], bool]) -> Call | None:
    """A call of the box that `accept` takes; None when none was found, which proves nothing."""
    for call in candidates(op, box, arch):
        if accept(call):
            return call
    return None


def candidates(op: Op, box: Box, arch: str) -> Iterator[Call]:
    rng = random.Random(20260)
    for number in range(_TRIES):
        call = _Maker(op, box, arch, number, rng).call()
        if call is not None:
            yield call


class _Maker:
    def __init__(self, op: Op, box: Box, arch: str, number: int, rng: random.Random) -> None:
        self.op, self.box, self.arch, self.number, self.rng = op, box, arch, number, rng
        self.chosen: dict[Load, int] = {}

    def call(self) -> Call | None:
        args: dict[str, Tensor | int | float] = {}
        shapes = {arg.name: self._shape(arg) for arg in self.op.tensors}
        for scalar in self.op.scalars:
            kind = scalar.kind if scalar.kind in ("f32", "f64") else "int"
            load = Load(kind, scalar.name)
            if kind == "int":
                prefer = 1 if scalar.default is None else int(scalar.default)
                args[scalar.name] = self._number(load, prefer)
            else:
                args[scalar.name] = self._real(load, scalar.default)
        count = self._number(Load("int", "cu_count"), _CU_COUNT.get(self.arch, 1))
        words = {
            key: self._word(Load("str", key), prefer)
            for key, prefer in (("phase", self.op.phases[0]), ("graph", "eager"))
        }
        for step in range(3):  # a second and third time, for what follows from what follows
            for index, arg in enumerate(self.op.tensors):
                args[arg.name] = self._tensor(arg, shapes[arg.name], index, args)
            call = Call(self.op.name, self.arch, words["phase"], words["graph"], count, args)
            if not self._settle(call, shapes) or step == 2:
                return call
        return None

    def _pick(self, values: list[int]) -> int:
        if self.number == 0:
            return values[0]
        if self.number == 1:
            return max(values)
        return self.rng.choice(values)

    def _number(self, load: Load, prefer: int) -> int:
        top = leader(self.box, load)
        if top not in self.chosen:
            domain = get(self.box, load, self.op)
            assert isinstance(domain, Ints)
            free = top not in self.box.sets
            if free:
                values = [prefer]
            else:
                values = domain.samples(8)
                if prefer in domain:
                    values.insert(0, prefer)
            self.chosen[top] = self._pick(values)
        return self.chosen[top]

    def _real(self, load: Load, default: int | float | None) -> float:
        domain = get(self.box, load, self.op)
        assert isinstance(domain, Ints)
        value = 1.0 if default is None else float(default)
        if key_of(value) in domain and self.number % 3 != 2:
            return value
        key = self._pick(domain.samples(8))
        return float("nan") if key == NAN else float_of(key)

    def _word(self, load: Load, prefer: str) -> str:
        domain = get(self.box, load, self.op)
        assert isinstance(domain, Names)
        if prefer in domain:
            return prefer
        return min(domain.names) if not domain.negated else f"{prefer}_other"

    def _shape(self, arg: TensorArg) -> list[int]:
        return [
            self._number(Load("int", arg.name, "shape", i), dim if isinstance(dim, int) else 1)
            if leader(self.box, Load("int", arg.name, "shape", i)) in self.chosen
            or isinstance(dim, int)
            else self._extent(arg, i)
            for i, dim in enumerate(arg.dims)
        ]

    def _extent(self, arg: TensorArg, index: int) -> int:
        """Extents are small unless the box says otherwise: an upper end may be 2^63."""
        load = Load("int", arg.name, "shape", index)
        top = leader(self.box, load)
        domain = get(self.box, load, self.op)
        assert isinstance(domain, Ints)
        values = domain.samples(8)
        if 1 in domain:
            values.insert(0, 1)
        if self.number % 2 == 0:
            values = [n for n in values if n < 1 << 40] or values
        self.chosen[top] = self._pick(values)
        return self.chosen[top]

    def _literal(self, node: Node) -> bool | None:
        for truth in (True, False):
            if (node, truth) in self.box.literals:
                return truth
        return None

    def _tensor(
        self, arg: TensorArg, shape: list[int], index: int, args: dict[str, Tensor | int | float]
    ) -> Tensor:
        dtype = self._word(Load("str", arg.name, "dtype"), arg.dtypes[0])
        strides = list(dense_strides(tuple(shape)))
        me = Load("tensor", arg.name)
        if self._literal(Apply("bool", "contiguous", (me,))) is False:
            strides = [2 * s for s in strides]
        for i in range(len(shape)):
            load = Load("int", arg.name, "stride", i)
            domain = get(self.box, load, self.op)
            assert isinstance(domain, Ints)
            dense = self.number % 2 == 0 and strides[i] in domain
            if leader(self.box, load) in self.box.sets and not dense:
                strides[i] = self._number(load, strides[i])
        layout = Load("str", arg.name, "layout")
        tag = arg.layout
        if leader(self.box, layout) in self.box.sets:
            tag = self._word(layout, arg.layout)
        ptr = self._address(me, index, args)
        made = Tensor(ptr, dtype, tuple(shape), tuple(strides), 0, tag)
        extent = max(0, made.max_byte_offset + 1)
        room = get(self.box, Load("int", arg.name, "extent"), self.op)
        if isinstance(room, Ints) and extent not in room:
            extent = next((n for n in room.samples(8) if n >= extent), extent)
        return Tensor(ptr, dtype, tuple(shape), tuple(strides), extent, tag)

    def _address(self, me: Load, index: int, args: dict[str, Tensor | int | float]) -> int:
        for node, truth in self.box.literals:
            names = [x.name for x in _tensors(node)]
            if len(names) != 2 or me.name not in names or names[0] == names[1]:
                continue
            other = args.get(names[names[0] == me.name])
            same = isinstance(node, Compare) and (node.op == "==") == truth
            touching = isinstance(node, Apply) and node.function == "disjoint" and not truth
            if isinstance(other, Tensor) and (same or touching):
                return other.ptr
        start = (index + 1) * _AREA
        domain = get(self.box, me, self.op)
        assert isinstance(domain, Ints)
        found = [n for p in domain.pieces if (n := p.first(start)) is not None]
        return min(found) if found else domain.low

    def _settle(self, call: Call, shapes: dict[str, list[int]]) -> bool:
        """Gives an extent what an equation, or a lower bound, says; true when something changed."""
        defaults = {a.name: a.default for a in self.op.scalars if a.default is not None}
        changed = False
        for node, truth in self.box.literals:
            if not isinstance(node, Compare):
                continue
            least = node.op == ">=" and truth
            if not least and (node.op == "==") != truth:
                continue
            sides = [(node.left, node.right), (node.right, node.left)]
            for load, expr in sides[:1] if least else sides:
                if not isinstance(load, Load) or load.field != "shape" or isinstance(expr, Load):
                    continue
                try:
                    value = expr.value(Env(call, defaults))
                except (Overflow, Undefined):
                    break
                domain = get(self.box, load, self.op)
                assert isinstance(domain, Ints) and isinstance(value, int)
                now = shapes[load.name][load.index]
                if value in domain and (now < value if least else now != value):
                    for arg in self.op.tensors:
                        for i in range(len(arg.dims)):
                            mine = Load("int", arg.name, "shape", i)
                            if leader(self.box, mine) == leader(self.box, load):
                                shapes[arg.name][i] = value
                    changed = True
                break
        return changed


def _tensors(node: Node) -> list[Load]:
    if isinstance(node, Compare):
        parts = [node.left, node.right]
    else:
        parts = list(node.parts())
    return [p for p in parts if isinstance(p, Load) and p.type == "tensor"]
