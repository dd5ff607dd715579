"""What an instruction of catalog.bin reads, in the words of the contract language."""

from __future__ import annotations

from collections.abc import Sequence

from netra_catalog.expr import Load
from netra_catalog.format import SIGNATURE
from netra_catalog.op import SCALAR_KINDS
from netra_catalog.program import Code

_FIELDS = {Code.SHAPE: "shape", Code.STRIDE: "stride", Code.NDIM: "ndim", Code.DTYPE: "dtype",
           Code.LAYOUT: "layout", Code.REACH: "max_byte_offset", Code.EXTENT: "extent"}


def inputs_of(
    instruction: tuple[int, int, int, int], slots: Sequence[tuple[str, int]]
) -> list[Load]:
    code, argument, index, _ = instruction
    if code == Code.SIGNATURE:
        return [Load("int" if index == 3 else "str", SIGNATURE[index])]
    if code == Code.WORKSPACE:
        return [Load("ptr", "workspace")]
    if code in _FIELDS:
        type = "str" if code in (Code.DTYPE, Code.LAYOUT) else "int"
        return [Load(type, slots[argument][0], _FIELDS[Code(code)], index)]
    if code in (Code.POINTER, Code.CONTIGUOUS):
        return [Load("tensor", slots[argument][0])]
    if code == Code.DISJOINT:
        return [Load("tensor", slots[argument][0]), Load("tensor", slots[index][0])]
    if code in (Code.SCALAR, Code.REAL):
        kind = SCALAR_KINDS[slots[argument][1] - 1]
        return [Load(kind if code == Code.REAL else "int", slots[argument][0])]
    return []
