"""From the text of a contract expression to its typed tree.

Python's own parser reads the text.  Whatever it accepts and the language does
not list (contract.py) ends in `fail`, which knows the column.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable
from typing import NoReturn

from netra_catalog.dtypes import DTYPES
from netra_catalog.errors import nearest
from netra_catalog.expr import (
    INT128_MAX,
    Apply,
    Binary,
    Compare,
    Const,
    Load,
    Logic,
    Member,
    Node,
    Overflow,
    Unary,
    arithmetic,
    negate,
    to_f32,
)
from netra_catalog.op import FUNCTIONS, ScalarArg, TensorArg
from netra_catalog.scope import ContractError, Place, Scope

MAX_LENGTH = 500
_MAX_DEPTH = 48
_FLOATS = ("f32", "f64", "float")
_NUMBERS = ("int", *_FLOATS)
_FIELDS = ("shape", "dtype", "stride", "layout", "ndim", "rank", "max_byte_offset", "extent")

_BINARY: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
}
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}
_ARGUMENTS: dict[str, tuple[tuple[str, ...], ...]] = {
    "ceildiv": (("int",), ("int",)),
    "aligned": (("tensor", "int"), ("int",)),
    "contiguous": (("tensor",),),
    "disjoint": (("tensor",), ("tensor",)),
    "is_pow2": (("int",),),
}


def english(kind: str) -> str:
    return {
        "int": "an integer", "bool": "true or false", "str": "a name", "tensor": "a tensor",
        "f32": "a float", "f64": "a float", "float": "a float", "ptr": "a pointer",
    }.get(kind, kind)


class Reader:
    """Checks Python's tree node by node and builds ours."""

    def __init__(self, text: str, names: Scope, place: Place) -> None:
        self.text, self.names, self.place = text, names, place
        self.depth = 0

    def fail(self, at: int | ast.AST, message: str) -> NoReturn:
        offset = at if isinstance(at, int) else getattr(at, "col_offset", 0)
        label = f"{self.place.label}: " if self.place.label else ""
        where = f"{self.place}:{self.place.column + offset}"
        shown = self.text.replace("\n", " ").expandtabs(1)
        raise ContractError(f"{label}{message}", where=where, hint=f"{shown}\n  {'':>{offset}}^")

    def parse(self) -> Node:
        text = self.text
        if len(text) > MAX_LENGTH:
            self.fail(0, f"longer than {MAX_LENGTH} characters")
        odd = next((i for i, c in enumerate(text) if not " " <= c <= "~"), None)
        if odd is not None:
            self.fail(odd, f"character {text[odd]!r} is not allowed")
        if text != text.strip() or not text:
            self.fail(0, "empty, or spaces at an end")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(text, mode="eval")
        except SyntaxError as error:
            offset = min(error.offset - 1 if error.offset else len(text), len(text))
            self.fail(offset, f"not an expression: {error.msg}")
        except (ValueError, RecursionError, MemoryError) as error:
            self.fail(0, f"not an expression: {error}")
        return self.node(tree.body)

    def node(self, tree: ast.expr) -> Node:
        handler: Callable[..., Node] | None = getattr(
            self, f"_{type(tree).__name__.lower()}", None
        )
        if handler is None:
            self.fail(tree, f"{type(tree).__name__} is not part of the language")
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            self.fail(tree, f"nested deeper than {_MAX_DEPTH}")
        node = handler(tree)
        self.depth -= 1
        return node

    # Leaves

    def _constant(self, tree: ast.Constant) -> Node:
        value = tree.value
        if isinstance(value, bool) or not isinstance(value, (int, float, str)):
            self.fail(tree, f"{value!r} is not part of the language")
        if isinstance(value, int) and value > INT128_MAX:
            self.fail(tree, "the number has more than 128 bits")
        if isinstance(value, float) and abs(value) == float("inf"):
            self.fail(tree, "the number is too large for a float")
        kind = {int: "int", float: "float", str: "str"}[type(value)]
        return Const(kind, value)

    def _name(self, tree: ast.Name) -> Node:
        found = self.names.names.get(tree.id)
        if isinstance(found, TensorArg):
            return Load("tensor", tree.id)
        if isinstance(found, ScalarArg):
            return Load(found.kind if found.kind in ("f32", "f64") else "int", tree.id)
        if found is not None:
            return Load(found, tree.id)
        if tree.id in FUNCTIONS:
            self.fail(tree, f"{tree.id} is a function: {tree.id}(...)")
        if tree.id == "workspace":
            self.fail(tree, "the workspace has no address here, only in a launch's value")
        dims = [
            f"{arg.name}.shape[{arg.dims.index(tree.id)}]"
            for arg in self.names.names.values()
            if isinstance(arg, TensorArg) and tree.id in arg.dims
        ]
        close = f" (write {dims[0]})" if dims else nearest(tree.id, self.names.names)
        self.fail(tree, f"unknown name '{tree.id}'{close}")

    def _attribute(self, tree: ast.Attribute) -> Node:
        arg = self._tensor(tree.value, f".{tree.attr}")
        column = tree.value.end_col_offset or 0
        if tree.attr not in _FIELDS:
            self.fail(column, f"a tensor has no '.{tree.attr}'{nearest(tree.attr, _FIELDS)}")
        if tree.attr in ("shape", "stride"):
            form = ".shape[i]" if tree.attr == "shape" else ".stride(i)"
            self.fail(column, f"write {form} with a constant i")
        kind = "str" if tree.attr in ("dtype", "layout") else "int"
        return Load(kind, arg.name, "ndim" if tree.attr == "rank" else tree.attr)

    def _subscript(self, tree: ast.Subscript) -> Node:
        owner = tree.value
        if not (isinstance(owner, ast.Attribute) and owner.attr == "shape"):
            if isinstance(owner, ast.Attribute):
                self._attribute(owner)
            self.fail(tree, "only .shape takes [i]")
        assert isinstance(owner, ast.Attribute)
        arg = self._tensor(owner.value, ".shape")
        return Load("int", arg.name, "shape", self._dimension(arg, tree.slice))

    def _tensor(self, tree: ast.expr, what: str) -> TensorArg:
        if not isinstance(tree, ast.Name):
            self.fail(tree, f"{what} needs the name of a tensor before it")
        self._name(tree)
        arg = self.names.names[tree.id]
        if not isinstance(arg, TensorArg):
            self.fail(tree, f"'{tree.id}' is no tensor and has no {what}")
        return arg

    def _dimension(self, arg: TensorArg, tree: ast.expr) -> int:
        index = self.node(tree)
        value = index.constant if isinstance(index, Const) else None
        if not isinstance(value, int):
            self.fail(tree, "the index must be a constant integer")
        count = len(arg.dims)
        if not -count <= value < count:
            self.fail(tree, f"{arg.name} has {count} dimensions, {value} is not one of them")
        return value % count

    # Arithmetic

    def _unaryop(self, tree: ast.UnaryOp) -> Node:
        operand = self.node(tree.operand)
        if isinstance(tree.op, ast.Not):
            self._need(tree.operand, operand, ("bool",), "not")
            return Unary("bool", "not", operand)
        if not isinstance(tree.op, ast.USub):
            self.fail(tree, "only - and not may stand before a value")
        self._need(tree.operand, operand, ("int", "float"), "-")
        if isinstance(operand, Const) and not isinstance(operand.constant, str):
            return Const(operand.type, negate(operand.constant))
        return Unary("int", "-", operand)

    def _binop(self, tree: ast.BinOp) -> Node:
        op = _BINARY.get(type(tree.op))
        if op is None:
            hint = " (write // for division)" if isinstance(tree.op, ast.Div) else ""
            self.fail(tree, f"{type(tree.op).__name__} is not part of the language{hint}")
        left, right = self.node(tree.left), self.node(tree.right)
        pointers = [n.type in ("ptr", "tensor") for n in (left, right)]
        kind = "int"
        if "workspace" in self.names.names and any(pointers) and op in "+-":
            if all(pointers) or (op == "-" and pointers[1]):
                self.fail(tree, "a pointer may be moved by an integer, nothing else")
            kind = "ptr"
        allowed = ("int", "ptr", "tensor") if kind == "ptr" else ("int",)
        self._need(tree.left, left, allowed, op)
        self._need(tree.right, right, allowed, op)
        if op == "**" and not (
            isinstance(right, Const) and isinstance(right.constant, int) and right.constant >= 0
        ):
            self.fail(tree.right, "the exponent must be a constant, 0 or more")
        if op in ("//", "%") and isinstance(right, Const) and right.constant == 0:
            self.fail(tree.right, "division by zero")
        if isinstance(left, Const) and isinstance(right, Const):
            assert isinstance(left.constant, int) and isinstance(right.constant, int)
            try:
                return Const("int", arithmetic(op, left.constant, right.constant))
            except Overflow:
                self.fail(tree, "the number has more than 128 bits")
        return Binary(kind, op, left, right)

    # Truth

    def _compare(self, tree: ast.Compare) -> Node:
        parts: list[Node] = []
        left, left_tree = self.node(tree.left), tree.left
        for operator, right_tree in zip(tree.ops, tree.comparators, strict=True):
            if isinstance(operator, (ast.In, ast.NotIn)):
                if len(tree.ops) > 1:
                    self.fail(right_tree, "`in` cannot be part of a chain: join with and")
                return self._member(left, tree.left, right_tree, isinstance(operator, ast.NotIn))
            right = self.node(right_tree)
            op = _COMPARE.get(type(operator))
            if op is None:
                self.fail(left_tree, "write == or !=, not `is`")
            parts.append(self._pair(op, left, left_tree, right, right_tree))
            left, left_tree = right, right_tree
        return parts[0] if len(parts) == 1 else Logic("bool", "and", tuple(parts))

    def _pair(
        self, op: str, left: Node, left_tree: ast.expr, right: Node, right_tree: ast.expr
    ) -> Node:
        for node, tree in ((left, left_tree), (right, right_tree)):
            self._need(tree, node, (*_NUMBERS, "str", "tensor"), op)
        both_numbers = left.type in _NUMBERS and right.type in _NUMBERS
        if not both_numbers and left.type != right.type:
            self.fail(
                right_tree, f"compares {english(left.type)} with {english(right.type)}"
            )
        if not both_numbers and op not in ("==", "!="):
            self.fail(left_tree, f"{english(left.type)} has no order, only == and !=")
        if left.type == "str":
            self._in_domain(left, right, right_tree)
            self._in_domain(right, left, left_tree)
        left, right = self._same(left, right, left_tree), self._same(right, left, right_tree)
        return Compare("bool", op, left, right)

    def _same(self, node: Node, other: Node, tree: ast.expr) -> Node:
        """A constant that is compared with a float takes the float's type."""
        if other.type not in _FLOATS or node.type in ("f32", "f64"):
            return node
        if not (isinstance(node, Const) and isinstance(node.constant, (int, float))):
            self.fail(tree, "an integer is compared with a float: only a constant may be")
        if abs(node.constant) > 2**53 and isinstance(node.constant, int):
            self.fail(tree, "the number is not exact as a float")
        value = float(node.constant)
        kind = other.type if other.type != "float" else "f64"
        return Const(kind, to_f32(value) if kind == "f32" else value)

    def _member(self, item: Node, tree: ast.expr, items: ast.expr, negated: bool) -> Node:
        self._need(tree, item, ("int", "str"), "in")
        if not isinstance(items, (ast.Tuple, ast.List)) or not items.elts:
            self.fail(items, "`in` wants constants in parentheses: x in (1, 2)")
        constants: list[Const] = []
        for element in items.elts:
            node = self.node(element)
            if not isinstance(node, Const) or node.type != item.type:
                self.fail(element, f"want a constant that is {english(item.type)}")
            self._in_domain(item, node, element)
            constants.append(node)
        return Member("bool", item, tuple(constants), negated)

    def _in_domain(self, node: Node, other: Node, tree: ast.expr) -> None:
        """A name that the input can never be is a typing mistake."""
        if not (isinstance(node, Load) and isinstance(other, Const)):
            return
        domain = self.names.domains.get(node.name, ())
        if node.field == "dtype":
            arg = self.names.names[node.name]
            assert isinstance(arg, TensorArg)
            domain = arg.dtypes
            if other.constant in DTYPES and other.constant not in domain:
                allowed = ", ".join(domain)
                self.fail(tree, f"the op allows {node.text} {allowed}, not {other.constant}")
        if domain and other.constant not in domain:
            close = nearest(str(other.constant), domain)
            self.fail(tree, f"{node.text} is never '{other.constant}'{close}")

    def _boolop(self, tree: ast.BoolOp) -> Node:
        op = "and" if isinstance(tree.op, ast.And) else "or"
        items = tuple(self.node(item) for item in tree.values)
        for node, item in zip(items, tree.values, strict=True):
            self._need(item, node, ("bool",), op)
        return Logic("bool", op, items)

    def _need(self, tree: ast.expr, node: Node, allowed: tuple[str, ...], what: str) -> None:
        if node.type not in allowed:
            self.fail(tree, f"{what} does not take {english(node.type)}")

    # Functions

    def _call(self, tree: ast.Call) -> Node:
        if isinstance(tree.func, ast.Attribute):
            return self._stride(tree, tree.func)
        if not isinstance(tree.func, ast.Name):
            self.fail(tree, "only a function of the language can be called")
        name = tree.func.id
        if name not in FUNCTIONS:
            self.fail(tree, f"unknown function '{name}'{nearest(name, FUNCTIONS)}")
        if tree.keywords or any(isinstance(arg, ast.Starred) for arg in tree.args):
            self.fail(tree, f"{name} takes plain arguments only")
        args = tuple(self.node(arg) for arg in tree.args)
        wanted = _ARGUMENTS.get(name)
        count = len(wanted) if wanted else max(2, len(args))
        if len(args) != count:
            self.fail(tree, f"{name} takes {count} arguments, not {len(args)}")
        for index, node in enumerate(args):
            self._need(tree.args[index], node, wanted[index] if wanted else ("int",), name)
        if name in ("ceildiv", "aligned") and isinstance(args[1], Const):
            if not isinstance(args[1].constant, int) or args[1].constant < 1:
                self.fail(tree.args[1], f"{name} by {args[1].constant}")
        kind = "int" if name in ("ceildiv", "min", "max") else "bool"
        return Apply(kind, name, args)

    def _stride(self, tree: ast.Call, func: ast.Attribute) -> Node:
        if func.attr != "stride":
            self._attribute(func)
            self.fail(tree, f".{func.attr} is not called")
        arg = self._tensor(func.value, ".stride")
        if len(tree.args) != 1 or tree.keywords:
            self.fail(tree, "write .stride(i) with one constant i")
        return Load("int", arg.name, "stride", self._dimension(arg, tree.args[0]))
