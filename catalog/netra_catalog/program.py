"""Contract expressions as flat programs: the instructions of catalog.bin.

An instruction is 8 bytes: opcode u8, argument u8, index u16, operand u32 (docs/catalog-format.md
says what each does).  Values live on a stack of at most MAX_STACK entries; jumps go forward only,
so that every program ends.  `compile_node` makes a program from a tree of expr.py.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from enum import IntEnum

from netra_catalog.errors import NetraError
from netra_catalog.expr import Apply, Binary, Compare, Const, Load, Logic, Member, Node, Unary
from netra_catalog.format import SIGNATURE

MAX_STACK = 64

Instruction = tuple[int, int, int, int]


class Code(IntEnum):
    END = 0
    INT = 1
    WORD = 2
    FLOAT = 3
    SCALAR = 4
    REAL = 5
    POINTER = 6
    SHAPE = 7
    STRIDE = 8
    NDIM = 9
    DTYPE = 10
    LAYOUT = 11
    REACH = 12
    EXTENT = 13
    SIGNATURE = 14
    WORKSPACE = 15
    ADD = 20
    SUB = 21
    MUL = 22
    DIV = 23
    MOD = 24
    POW = 25
    NEG = 26
    MIN = 27
    MAX = 28
    CEILDIV = 29
    EQ = 30
    NE = 31
    LT = 32
    LE = 33
    GT = 34
    GE = 35
    FEQ = 40
    FNE = 41
    FLT = 42
    FLE = 43
    FGT = 44
    FGE = 45
    NOT = 50
    ALIGNED = 51
    POW2 = 52
    CONTIGUOUS = 53
    DISJOINT = 54
    AND = 60
    OR = 61
    IN = 62


_ARITHMETIC = {"+": Code.ADD, "-": Code.SUB, "*": Code.MUL, "//": Code.DIV, "%": Code.MOD,
               "**": Code.POW}
_COMPARE = {"==": 0, "!=": 1, "<": 2, "<=": 3, ">": 4, ">=": 5}
_FIELDS = {"shape": Code.SHAPE, "stride": Code.STRIDE, "ndim": Code.NDIM, "dtype": Code.DTYPE,
           "layout": Code.LAYOUT, "max_byte_offset": Code.REACH, "extent": Code.EXTENT}
_FUNCTIONS = {"min": Code.MIN, "max": Code.MAX, "ceildiv": Code.CEILDIV,
              "aligned": Code.ALIGNED, "is_pow2": Code.POW2}
FLOATS = ("f32", "f64", "float")

# What an instruction takes from the stack and puts there.
_GROWTH = {
    **dict.fromkeys(range(Code.INT, Code.WORKSPACE + 1), 1),
    **dict.fromkeys(range(Code.ADD, Code.POW + 1), -1), Code.NEG: 0,
    **dict.fromkeys(range(Code.MIN, Code.CEILDIV + 1), -1),
    **dict.fromkeys(range(Code.EQ, Code.FGE + 1), -1),
    Code.NOT: 0, Code.ALIGNED: -1, Code.POW2: 0, Code.CONTIGUOUS: 1, Code.DISJOINT: 1,
    Code.AND: -1, Code.OR: -1, Code.IN: 0, Code.END: 0,
}


class Pools:
    """The constants that programs share; each value is kept once."""

    def __init__(self) -> None:
        self.constants: list[bytes] = []
        self._runs: dict[tuple[bytes, ...], int] = {}

    def run(self, values: list[int]) -> int:
        """The index of the first of these integers, which stand one after the other."""
        return self._put(tuple(v.to_bytes(16, "little", signed=True) for v in values))

    def real(self, value: float) -> int:
        return self._put((struct.pack("<dQ", value, 0),))

    def _put(self, run: tuple[bytes, ...]) -> int:
        if run not in self._runs:
            self._runs[run] = len(self.constants)
            self.constants += run
        return self._runs[run]


def compile_node(
    node: Node, slots: Mapping[str, int], pools: Pools, word: Callable[[str], int]
) -> tuple[Instruction, ...]:
    """The program of a tree; `slots` numbers the op's arguments, `word` interns a name."""
    writer = _Writer(slots, pools, word)
    writer.node(node)
    writer.emit(Code.END)
    if writer.deepest > MAX_STACK or len(writer.code) > 0xFFFF:
        raise NetraError(
            f"an expression needs {writer.deepest} stack entries and {len(writer.code)} "
            f"instructions; catalog.bin allows {MAX_STACK} and 65535",
            hint="split the predicate into several",
        )
    return tuple(writer.code)


class _Writer:
    def __init__(
        self, slots: Mapping[str, int], pools: Pools, word: Callable[[str], int]
    ) -> None:
        self.slots, self.pools, self.word = slots, pools, word
        self.code: list[Instruction] = []
        self.depth = self.deepest = 0

    def emit(self, code: int, argument: int = 0, index: int = 0, operand: int = 0) -> None:
        self.code.append((int(code), argument, index, operand))
        self.depth += _GROWTH[code]
        self.deepest = max(self.deepest, self.depth)

    def node(self, node: Node) -> None:
        getattr(self, f"_{type(node).__name__.lower()}")(node)

    def _const(self, node: Const) -> None:
        value = node.constant
        if isinstance(value, str):
            self.emit(Code.WORD, operand=self.word(value))
        elif node.type in FLOATS or isinstance(value, float):
            self.emit(Code.FLOAT, operand=self.pools.real(float(value)))
        else:
            self.emit(Code.INT, operand=self.pools.run([value]))

    def _load(self, node: Load) -> None:
        if node.field:
            self.emit(_FIELDS[node.field], self.slots[node.name], node.index)
        elif node.name in self.slots:
            kinds = {"tensor": Code.POINTER, "f32": Code.REAL, "f64": Code.REAL}
            self.emit(kinds.get(node.type, Code.SCALAR), self.slots[node.name])
        elif node.name == "workspace":
            self.emit(Code.WORKSPACE)
        else:
            self.emit(Code.SIGNATURE, index=SIGNATURE.index(node.name))

    def _unary(self, node: Unary) -> None:
        self.node(node.operand)
        self.emit(Code.NOT if node.op == "not" else Code.NEG)

    def _binary(self, node: Binary) -> None:
        self.node(node.left)
        self.node(node.right)
        self.emit(_ARITHMETIC[node.op])

    def _compare(self, node: Compare) -> None:
        self.node(node.left)
        self.node(node.right)
        real = node.left.type in FLOATS or node.right.type in FLOATS
        self.emit((Code.FEQ if real else Code.EQ) + _COMPARE[node.op])

    def _member(self, node: Member) -> None:
        self.node(node.item)
        values = [
            self.word(item.constant) if isinstance(item.constant, str) else int(item.constant)
            for item in node.items
        ]
        self.emit(Code.IN, index=len(values), operand=self.pools.run(values))
        if node.negated:
            self.emit(Code.NOT)

    def _logic(self, node: Logic) -> None:
        jumps: list[int] = []
        self.node(node.items[0])
        for item in node.items[1:]:
            jumps.append(len(self.code))
            self.emit(Code.AND if node.op == "and" else Code.OR)
            self.node(item)
        for at in jumps:
            self.code[at] = (*self.code[at][:3], len(self.code) - at)

    def _apply(self, node: Apply) -> None:
        slots = [self.slots[arg.name] if isinstance(arg, Load) and arg.type == "tensor" else -1
                 for arg in node.args]
        if node.function == "contiguous":
            self.emit(Code.CONTIGUOUS, slots[0])
        elif node.function == "disjoint":
            self.emit(Code.DISJOINT, slots[0], slots[1])
        else:
            code = _FUNCTIONS[node.function]
            self.node(node.args[0])
            if code == Code.POW2:
                self.emit(code)
            for arg in node.args[1:]:
                self.node(arg)
                self.emit(code)
