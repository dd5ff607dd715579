"""What memory instructions make of terms. A value that is loaded is a term of its address and of
all that was stored before; what is asked for and what is stored are events."""

from __future__ import annotations

import re

from netra_harness.mutation.operands import Operand, Parsed
from netra_harness.mutation.state import Lanes, State, Unprovable

_LOAD = re.compile(r"(global|buffer|flat|scratch)_load_\w+")
_STORE = re.compile(r"(global|buffer|flat|scratch)_store_\w+")
_SHARED_LOAD = re.compile(r"ds_(read|load)2?(st64)?_[bui]\d+\w*")
_SHARED_STORE = re.compile(r"ds_(write|store)2?(st64)?_b\d+\w*")
_HALF = re.compile(r"_d16|_b8_|_b16_d16")
_NARROW = {
    "short": 0xFFFF, "b16": 0xFFFF, "byte": 0xFF, "b8": 0xFF, "short_d16_hi": 0xFFFF0000,
    "d16_hi_b16": 0xFFFF0000, "byte_d16_hi": 0x00FF0000, "d16_hi_b8": 0x00FF0000,
}  # fmt: skip
_SHARED_ATOMIC = re.compile(r"ds_((add|sub|min|max|inc|dec)_[uif]|(and|or|xor)_b)\d+")
_ATOMIC = re.compile(r"(global|flat|buffer)_atomic_\w+")
_CACHE = re.compile(r"buffer_(inv|wbl2|gl\d_inv)|s_dcache_\w+|s_icache_\w+")


def memory(state: State, parsed: Parsed) -> bool:
    """Is this a memory instruction?  Then it is carried out."""
    name = parsed.mnemonic
    if _CACHE.fullmatch(name):
        state.memory = state.event(name, *parsed.modifiers, state.memory)
    elif name.startswith(("s_load_", "s_buffer_load_")):
        _scalar_load(state, parsed)
    elif "lds" in parsed.modifiers or "_lds_" in name:
        raise Unprovable(f"{name} into LDS")
    elif _LOAD.fullmatch(name):
        _load(state, parsed, state.memory)
    elif _STORE.fullmatch(name):
        state.memory = _store(state, parsed, _data_at(name), state.memory)
    elif _ATOMIC.fullmatch(name):
        _atomic(state, parsed)
    elif _SHARED_LOAD.fullmatch(name) and "_tr_" not in name:
        _load(state, parsed, state.lds)
    elif _SHARED_ATOMIC.fullmatch(name):
        state.lds = state.event("atomic", *_each(state, parsed, list(parsed.operands)), state.lds)
    elif name == "ds_bpermute_b32":
        _bpermute(state, parsed)
    elif _SHARED_STORE.fullmatch(name):
        state.lds = _store(state, parsed, 1, state.lds)
    elif name.startswith(("global_", "buffer_", "flat_", "scratch_", "ds_")):
        raise Unprovable(name)
    else:
        return False
    return True


def _data_at(name: str) -> int:
    """Which operand a store takes its data from."""
    return 0 if name.startswith("buffer_") else 1


def _scalar_load(state: State, parsed: Parsed) -> None:
    t = state.terms
    target, *rest = parsed.operands
    address = [w for op in rest for w in state.words(op)]
    # Constants are those of the dispatch: no kernel writes what it reads so.
    whole = state.event("scalar load", parsed.mnemonic, *parsed.modifiers, *address)
    state.set_words(target, [t.make("word", whole, i) for i in range(target.count)])


def _addresses(state: State, given: list[Operand]) -> list[Lanes]:
    rows: list[Lanes] = []
    for operand in given:
        if operand.text != "off":
            rows += state.source(operand)
    return rows or [(state.terms.const(0),) * state.width]


def _load(state: State, parsed: Parsed, before: int) -> None:
    """A row that is in part kept depends on what was there."""
    t, name = state.terms, parsed.mnemonic
    target, *rest = parsed.operands
    rows = _addresses(state, rest)
    shape = (name, *rest_text(rest), *parsed.modifiers)
    asked = [
        t.make(*shape, before, *xs) if t.value(bit) else t.make(*shape, before, "if", bit, *xs)
        for bit, *xs in zip(state.active, *rows, strict=True)
        if t.value(bit) != 0
    ]
    state.event("load", *sorted(set(asked)))
    for i in range(target.count):
        old = state.lanes(target.file, target.first + i)
        made = []
        for lane, xs in enumerate(zip(*rows, strict=True)):
            kept = [old[lane]] if _HALF.search(name) else []
            made.append(t.make(*shape, before, i, *xs, *kept))
        state.write(target.file, target.first + i, tuple(made))


def _store(state: State, parsed: Parsed, data_at: int, before: int) -> int:
    """Lanes in order, since the last of two that meet may win; equal ones are one."""
    t = state.terms
    rest = list(parsed.operands)
    data = [rest.pop(data_at)]
    if parsed.mnemonic.startswith("ds_") and len(rest) > 1:
        data.append(rest.pop())  # the second of ds_write2
    mask = _NARROW.get(parsed.mnemonic.split("_store_")[-1].split("_write_")[-1])
    rows = _addresses(state, rest)
    stored = [row for op in data for row in state.source(op)]
    if mask is not None:
        stored = [tuple(t.masked(x, mask) for x in row) for row in stored]
    lanes: dict[tuple[int, ...], None] = {}
    for key in zip(state.active, *rows, *stored, strict=True):
        if t.value(key[0]) != 0:
            lanes.pop(key, None)
            lanes[key] = None
    shape = (parsed.mnemonic, *rest_text(rest), *parsed.modifiers)
    return state.event("store", *shape, before, *[t.make("lane", *k) for k in lanes])


def _atomic(state: State, parsed: Parsed) -> None:
    """Every lane that is active counts; what it returns depends on the lane as on all others."""
    t = state.terms
    rest = list(parsed.operands)
    returns = "sc0" in parsed.modifiers or "glc" in parsed.modifiers
    if parsed.mnemonic.startswith("buffer_"):
        raise Unprovable(parsed.mnemonic)
    target = rest.pop(0) if returns else None
    asked = _each(state, parsed, rest)
    one = len(asked) == 2  # a single lane: its result is the same in whichever
    state.memory = state.event("atomic", *asked, state.memory)
    if target is None:
        return
    for i in range(target.count):
        made = tuple(
            t.make("returned", state.memory, i, 0 if one else lane) for lane in range(state.width)
        )
        state.write(target.file, target.first + i, made)


def _each(state: State, parsed: Parsed, operands: list[Operand]) -> tuple[object, ...]:
    """The instruction, and what each active lane gives it."""
    t = state.terms
    lanes = [
        t.make("lane", *key)
        for key in zip(state.active, *_addresses(state, operands), strict=True)
        if t.value(key[0]) != 0
    ]
    return (" ".join((parsed.mnemonic, *rest_text(operands), *parsed.modifiers)), *lanes)


def _bpermute(state: State, parsed: Parsed) -> None:
    """A lane may read any other that is active."""
    t = state.terms
    target, address, data = parsed.operands
    row = t.make("row", *state.active, *state.lanes(data.file, data.first))
    shape = (parsed.mnemonic, *parsed.modifiers)
    made = tuple(t.make(*shape, row, at) for at in state.source(address)[0])
    state.write(target.file, target.first, made)


def rest_text(given: list[Operand]) -> tuple[str, ...]:
    """What tells forms of one mnemonic apart: the kinds of their operands."""
    return tuple(f"{op.file}{op.count}" if op.text != "off" else "off" for op in given)
