"""Runs the programs of catalog.bin on one call: docs/catalog-format.md, line by line.

This is written apart from the tree of expr.py, so that the two can be held against each other.
What it cannot run ends in NetraError: an unknown opcode, an index beyond a table, an empty or
overfull stack.  Jumps go forward only, so that every program ends.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from netra_catalog.env import Env, Overflow, Undefined
from netra_catalog.errors import NetraError

if TYPE_CHECKING:
    from netra_catalog.call import Tensor

_LOW, _HIGH = -(1 << 127), (1 << 127) - 1
_STACK = 64


class Machine:
    """`slots` are the op's arguments: (name, kind), kind 0 for a tensor, else 1 + scalar kind."""

    def __init__(
        self, code: bytes, constants: bytes, word: Callable[[int], str],
        slots: Sequence[tuple[str, int]],
    ) -> None:
        self.code, self.constants, self.word, self.slots = code, constants, word, slots
        self.words: dict[str, int] = {}

    def instruction(self, at: int) -> tuple[int, int, int, int]:
        try:
            found: tuple[int, int, int, int] = struct.unpack_from("<BBHI", self.code, at * 8)
        except struct.error:
            raise _broken(f"instruction {at} lies beyond the code") from None
        return found

    def run(self, start: int, env: Env) -> Any:
        """The value of a program: an int (true is 1, a word is its text) or a float."""
        stack: list[Any] = []
        at = start
        while True:
            code, argument, index, operand = self.instruction(at)
            at += 1
            try:
                if code == 0:
                    (value,) = stack
                    return value
                if code in (60, 61):
                    if operand < 1:
                        raise _broken(f"the jump at instruction {at - 1} does not go forward")
                    if bool(stack[-1]) is (code == 61):
                        at += operand - 1
                    else:
                        stack.pop()
                elif code < 20 or code in (53, 54):
                    stack.append(self._load(code, argument, index, operand, env))
                elif code == 62:
                    stack[-1] = self._among(stack[-1], index, operand)
                else:
                    right = stack.pop()
                    if code in (26, 50, 52):
                        stack.append(_one(code, right))
                    else:
                        stack.append(_two(code, stack.pop(), right))
            except (IndexError, KeyError, ValueError, TypeError, AttributeError):
                raise _broken(f"instruction {at - 1} (opcode {code}) cannot run") from None
            if len(stack) > _STACK:
                raise _broken(f"the program at {start} needs more than {_STACK} stack entries")

    def _constant(self, index: int) -> bytes:
        raw = self.constants[index * 16 : index * 16 + 16]
        if len(raw) != 16:
            raise _broken(f"constant {index} lies beyond the constants")
        return raw

    def _among(self, value: Any, count: int, first: int) -> int:
        for i in range(first, first + count):
            number = int.from_bytes(self._constant(i), "little", signed=True)
            if value == (self.word(number) if isinstance(value, str) else number):
                return 1
        return 0

    def _load(self, code: int, argument: int, index: int, operand: int, env: Env) -> Any:
        if code == 1:
            return int.from_bytes(self._constant(operand), "little", signed=True)
        if code == 2:
            return self.word(operand)
        if code == 3:
            return struct.unpack("<d", self._constant(operand)[:8])[0]
        call = env.call
        if code == 14:
            if index == 3:
                return _int64(call.cu_count)
            return (call.arch, call.phase, call.graph)[index]
        if code == 15:
            return env.workspace
        name, kind = self.slots[argument]
        value: Any = call.args.get(name, env.defaults.get(name))
        if value is None:
            raise Undefined(f"{name} is missing")
        if code == 4:
            return _int64(value)
        if code == 5:
            return _single(float(value)) if kind == 4 else float(value)
        if code == 54:
            other: Any = call.args[self.slots[index][0]]
            return int(_apart(value, other))
        return _tensor(code, value, index)


def _tensor(code: int, t: Tensor, index: int) -> Any:
    if code == 6:
        return t.ptr
    if code in (7, 8):
        items = t.shape if code == 7 else t.strides
        if index >= len(items):
            raise Undefined(f"there is no dimension {index}")
        return _int64(items[index])
    if code == 9:
        return len(t.shape)
    if code == 10:
        return t.dtype
    if code == 11:
        if t.layout in (None, "", "unknown"):
            raise Undefined("the layout is unknown")
        return t.layout
    if code == 12:
        return _int64(_reach(t)[1])
    if code == 13:
        return _int64(t.extent)
    if code == 53:
        step = 1
        if 0 in t.shape:
            return 1
        for extent, stride in zip(t.shape[::-1], t.strides[::-1], strict=True):
            if extent != 1 and stride != step:
                return 0
            step *= extent
        return 1
    raise ValueError(code)


def _reach(t: Tensor) -> tuple[int, int]:
    """The offsets of the first and the last byte; (0, -1) for an empty tensor."""
    from netra_catalog.dtypes import itemsize

    if 0 in t.shape:
        return 0, -1
    low = high = 0
    for extent, stride in zip(t.shape, t.strides, strict=True):
        step = (extent - 1) * stride
        low, high = (low + step, high) if step < 0 else (low, high + step)
    size = itemsize(t.dtype)
    return low * size, (high + 1) * size - 1


def _apart(a: Tensor, b: Tensor) -> bool:
    if 0 in a.shape or 0 in b.shape:
        return True
    (a0, a1), (b0, b1) = _reach(a), _reach(b)
    return a.ptr + a1 < b.ptr + b0 or b.ptr + b1 < a.ptr + a0


def _one(code: int, value: Any) -> int:
    if code == 26:
        return _int128(-value)
    if code == 50:
        return int(not value)
    return int(value > 0 and value & (value - 1) == 0)


def _two(code: int, a: Any, b: Any) -> int:
    if 30 <= code <= 35 or 40 <= code <= 45:
        which = code % 10
        return int((a == b, a != b)[which] if which < 2 else
                   (a < b, a <= b, a > b, a >= b)[which - 2])
    if code in (27, 28):
        return min(a, b) if code == 27 else max(a, b)  # type: ignore[no-any-return]
    if code == 25:
        if abs(a) > 1 and b > 127:
            raise Overflow("the result has more than 128 bits")
        return _int128(a**b)
    if code in (20, 21, 22):
        return _int128(a + b if code == 20 else a - b if code == 21 else a * b)
    if code not in (23, 24, 29, 51):
        raise ValueError(code)
    if b == 0:
        raise Undefined("division by zero")
    if code == 51:
        return int(a % b == 0)
    return _int128(a // b if code == 23 else a % b if code == 24 else -(-a // b))


def _int64(value: Any) -> int:
    number = int(value)
    if not -(1 << 63) <= number < 1 << 64:
        raise Overflow(f"{number} is no 64-bit integer")
    return number


def _int128(value: int) -> int:
    if not _LOW <= value <= _HIGH:
        raise Overflow("the result has more than 128 bits")
    return value


def _single(value: float) -> float:
    try:
        found: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        found = float("inf") if value > 0 else float("-inf")
    return found


def _broken(message: str) -> NetraError:
    return NetraError(f"catalog.bin: {message}", hint="build it again: netra-catalog build")
