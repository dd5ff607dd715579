"""What vector instructions make of terms, lane by lane."""

from __future__ import annotations

import re
from collections.abc import Callable

from netra_harness.mutation.operands import Operand, Parsed, dpp_source, dpp_written
from netra_harness.mutation.state import Lanes, State, Unprovable
from netra_harness.mutation.terms import ALL, Terms

_WHOLE = re.compile(r"v_(cvt_pk_bf16_f32|dot2_f32_bf16|cvt_f32_bf16|\w+_[bfui](32|64))")
_PARTIAL = re.compile(r"v_\w*(fp8|bf8|fp4|fp6|bf6|f16|i16|u16|b16|i8|u8|mac|movrel|cvt_sr|_pack_)")
_INTO_OWN = re.compile(r"v_(pk_)?(fmac|mac)_\w+|v_dot\d+c_\w+")
_CARRIES = re.compile(
    r"v_(add|sub|subrev)_co_u32|v_(addc|subb|subbrev)_co_u32|v_(add|sub|subrev)_co_ci_u32"
    r"|v_div_scale_f(32|64)|v_mad_[ui]64_[ui]32"
)
_MASK_LAST = re.compile(r"v_cndmask_\w+|v_(addc|subb|subbrev)_co_u32|v_\w+_co_ci_u32")
_COMMUTES = re.compile(
    r"v_(add|mul|max|min|and|or|xor)_(f32|f64|u32|i32|b32|nc_u32)|v_mul_(lo|hi)_u32"
    r"|v_mul_u32_u24|v_pk_(add|mul)_f32|v_fma_f(32|64)"
)
_MATRIX = re.compile(r"v_(s?mfmac?|s?wmmac?)\w*")
_NARROW = ("64", "16")  # instructions whose constants are not plain 32-bit patterns


def vector(state: State, parsed: Parsed) -> None:
    """One instruction of the vector unit."""
    name, ops = parsed.mnemonic, parsed.operands
    if _MATRIX.match(name):
        return _matrix(state, parsed)
    special = _SPECIAL.get(name)
    if special:
        return special(state, parsed)
    beyond = ("v_permlane", "v_readlane", "v_swap", "v_movrel", "v_interp", "v_dual")
    if name.startswith(beyond):
        raise Unprovable(name)
    if name.startswith("v_cmp"):
        return _compare(state, parsed)
    if not ops or ops[0].file not in "va":
        raise Unprovable(name)
    rows, written = _sources(state, parsed)
    for i, row in enumerate(_results(state, parsed, rows)):
        state.write(ops[0].file, ops[0].first + i, row, written)


def _sources(state: State, parsed: Parsed) -> tuple[list[Lanes], Lanes]:
    """The source registers, DPP and masks applied, and the lanes that are written."""
    name = parsed.mnemonic
    given = list(parsed.operands[1:])
    if _CARRIES.fullmatch(name):
        given.pop(0)
    masks: list[Lanes] = []
    if _MASK_LAST.fullmatch(name):
        masks.append(_mask(state, given.pop()))
    if name.startswith("v_div_fmas"):
        masks.append(_mask(state, Operand("s", 106, state.width // 32, text="vcc")))
    rows: list[Lanes] = []
    written = state.active
    for number, operand in enumerate(given):
        part = _source(state, name, operand)
        if number == 0 and dpp_source(parsed, 0) != "":
            part, written = _moved(state, parsed, part)
        rows += part
    rows += masks
    if _INTO_OWN.fullmatch(name) or not _writes_whole(parsed):
        first = parsed.operands[0]
        rows += [state.lanes(first.file, first.first + i) for i in range(first.count)]
    return rows, written


def _source(state: State, name: str, operand: Operand) -> list[Lanes]:
    if operand.file in ("const", "text") and any(n in name for n in _NARROW):
        return [(state.terms.make("text", operand.text, 0),) * state.width]
    return state.source(operand)


def _writes_whole(parsed: Parsed) -> bool:
    name = parsed.mnemonic
    if parsed.modifier("dst_sel") or (parsed.modifier("op_sel") and not name.startswith("v_pk")):
        return False
    return bool(_WHOLE.fullmatch(name)) and (
        not _PARTIAL.fullmatch(name + "_") and not _PARTIAL.match(name)
        or name in ("v_cvt_pk_bf16_f32", "v_dot2_f32_bf16")
    )


def _moved(state: State, parsed: Parsed, rows: list[Lanes]) -> tuple[list[Lanes], Lanes]:
    """Source 0 by DPP. A lane that reads nothing, or an inactive lane, is not written, or reads 0
    with bound_ctrl."""
    t = state.terms
    active = [t.value(bit) for bit in state.active]
    if None in active or parsed.modifier("fi"):
        raise Unprovable("DPP beside lanes that may be inactive")
    zero = any(m.startswith("bound_ctrl") for m in parsed.modifiers)
    written: list[int] = []
    moved: list[list[int]] = [[] for _ in rows]
    for lane in range(state.width):
        there = dpp_source(parsed, lane)
        if there == "?":
            raise Unprovable("DPP over the whole wave")
        reads = isinstance(there, int) and active[there] == 1
        allowed = active[lane] == 1 and dpp_written(parsed, lane) and (reads or zero)
        written.append(t.const(int(allowed)))
        for row, made in zip(rows, moved, strict=True):
            made.append(row[there] if isinstance(there, int) and reads else t.const(0))
    return [tuple(row) for row in moved], tuple(written)


def _mask(state: State, operand: Operand) -> Lanes:
    return state.bits(state.words(operand, state.width // 32))


def _results(state: State, parsed: Parsed, rows: list[Lanes]) -> list[Lanes]:
    t, name, ops = state.terms, parsed.mnemonic, parsed.operands
    plain = [m for m in parsed.modifiers if not _moves_lanes(m)]
    simple = _SIMPLE.get(name) if not plain and ops[0].count == 1 else None
    if simple and not any(op.signs for op in ops):
        return [tuple(simple(t, list(xs)) for xs in zip(*rows, strict=True))]
    if name == "v_cvt_pk_bf16_f32" and not plain:
        halves = [[t.make(name, x) for x in row] for row in rows[:2]]
        return [tuple(t.make("pack", lo, hi) for lo, hi in zip(*halves, strict=True))]
    key = (name, *plain, state.mode)
    results = []
    wide = {len(_source(state, name, op)) for op in ops[1:]}
    swaps = bool(_COMMUTES.fullmatch(name)) and not plain and len(wide) == 1
    for i in range(ops[0].count):
        row = []
        for xs in zip(*rows, strict=True):
            row.append(t.make(*key, i, *(_sorted(list(xs)) if swaps else xs)))
        results.append(tuple(row))
    if _CARRIES.fullmatch(name):
        carry = tuple(t.make(*key, "carry", *xs) for xs in zip(*rows, strict=True))
        state.set_words(ops[1], state.halves(_under(state, carry)))
    return results


def _sorted(xs: list[int]) -> list[int]:
    """The two factors, or terms, each of one register or of a pair; an addend stays behind."""
    if len(xs) in (2, 3):
        return [*sorted(xs[:2]), *xs[2:]]
    half = 2  # pairs
    first, second = sorted((xs[:half], xs[half : 2 * half]))
    return [*first, *second, *xs[2 * half :]]


def _moves_lanes(modifier: str) -> bool:
    return modifier.startswith(
        ("quad_perm", "row_", "bank_mask", "bound_ctrl", "dpp8", "wave_", "fi:")
    )


def _under(state: State, bits: Lanes) -> Lanes:
    """A mask that a vector instruction writes: 0 for inactive lanes."""
    return tuple(map(state.terms.both, state.active, bits))


def _compare(state: State, parsed: Parsed) -> None:
    t, name = state.terms, parsed.mnemonic
    exec_only = name.startswith("v_cmpx")
    given = parsed.operands
    if not exec_only or given[0].file == "s" and len(given) == 3:
        target: Operand | None = given[0]
        given = given[1:]
    else:
        target = None
    rows = [row for op in given for row in _source(state, name, op)]
    plain = name.replace("v_cmpx", "v_cmp")
    key = (plain, *parsed.modifiers, state.mode)
    bits = _under(
        state, tuple(_truth(t, plain, t.make(*key, *xs), xs) for xs in zip(*rows, strict=True))
    )
    if exec_only:
        state.active = bits
    if target is not None:
        state.set_words(target, state.halves(bits))


_INTEGERS = re.compile(r"v_cmp_(eq|ne|lt|le|gt|ge)_u32")


def _truth(t: Terms, name: str, term: int, xs: tuple[int, ...]) -> int:
    """Decided where both sides are numbers."""
    found = _INTEGERS.fullmatch(name)
    if found is None or len(xs) != 2:
        return term
    a, b = t.value(xs[0]), t.value(xs[1])
    if a is None or b is None:
        return term
    truth = {"eq": a == b, "ne": a != b, "gt": a > b, "ge": a >= b, "lt": a < b, "le": a <= b}
    return t.const(int(truth[found[1]]))


# ---- instructions across lanes ---------------------------------------------------------------


# Rows of A and columns of B lie in lanes with the same number modulo 16 or 32; element i of lane l
# is row 4 (l / 16) + i, or 8 (i / 4) + 4 (l / 32) + i % 4, of column l % 16 or l % 32 (gfx950).
_BLOCK = re.compile(
    r"v_mfma_f32_(16x16|32x32)x\d+_(f8f6f4|f16|bf16|fp8_fp8|fp8_bf8|bf8_fp8|bf8_bf8)"
)


def _matrix(state: State, parsed: Parsed) -> None:
    """An element depends on a row of A, a column of B and its addend, where the layout is known;
    else on every lane of all three."""
    t, target, name = state.terms, parsed.operands[0], parsed.mnemonic
    if not state.everywhere:
        raise Unprovable(name)
    given = [_source(state, name, op) for op in parsed.operands[1:]]
    if "mac" in name:
        rows = [state.lanes(target.file, target.first + i) for i in range(target.count)]
        given.append(rows)
    block = _BLOCK.fullmatch(name)
    key = (name, *parsed.modifiers, state.mode)
    if block and len(given) == 3 and state.width == 64:
        made = _elements(state, key, given, int(block[1][:2]), target.count)
    else:
        whole = t.make(*key, *[t.make(*row) for rows in given for row in rows])
        made = [
            tuple(t.make("element", whole, i, lane) for lane in range(state.width))
            for i in range(target.count)
        ]
    for i, row in enumerate(made):
        state.vector[target.file, target.first + i] = row


def _elements(
    state: State, key: tuple[object, ...], given: list[list[Lanes]], side: int, count: int
) -> list[Lanes]:
    t = state.terms
    factors = [
        [t.make(*[row[lane] for row in rows for lane in range(n, 64, side)]) for n in range(side)]
        for rows in given[:2]
    ]
    addend = given[2] if len(given[2]) == count else given[2] * count
    made = []
    for i in range(count):
        lanes = []
        for lane in range(64):
            row = 4 * (lane // 16) + i if side == 16 else 8 * (i // 4) + 4 * (lane // 32) + i % 4
            lanes.append(
                t.make(*key, factors[0][row], factors[1][lane % side], addend[i][lane])
            )
        made.append(tuple(lanes))
    return made


def _readfirstlane(state: State, parsed: Parsed) -> None:
    target, source = parsed.operands
    row = state.source(source)[0]
    for bit, value in zip(state.active, row, strict=True):
        known = state.terms.value(bit)
        if known == 1:
            return state.set_words(target, [value])
        if known is None:
            break
    live = {x for b, x in zip(state.active, row, strict=True) if state.terms.value(b) != 0}
    if len(live) != 1 or not any(state.terms.value(b) for b in state.active):
        raise Unprovable("v_readfirstlane of one lane or another")
    state.set_words(target, [live.pop()])


def _readlane(state: State, parsed: Parsed) -> None:
    target, source, lane = parsed.operands
    chosen = state.words(lane)[0]
    number = state.terms.value(chosen)
    row = state.lanes(source.file, source.first)  # EXEC does not matter
    if number is None:
        state.set_words(target, [state.terms.make("v_readlane_b32", chosen, *row)])
    else:
        state.set_words(target, [row[number % state.width]])


def _writelane(state: State, parsed: Parsed) -> None:
    target, source, lane = parsed.operands
    number = state.terms.value(state.words(lane)[0])
    if number is None:
        raise Unprovable("v_writelane to a computed lane")
    row = list(state.lanes(target.file, target.first))
    row[number % state.width] = state.words(source)[0]
    state.vector[target.file, target.first] = tuple(row)


def _permlane(other_row: int) -> Callable[[State, Parsed], None]:
    def made(state: State, parsed: Parsed) -> None:
        target, source, low, high = parsed.operands
        picks = [state.terms.value(state.words(op)[0]) for op in (low, high)]
        if picks[0] is None or picks[1] is None or not state.everywhere or parsed.modifiers:
            raise Unprovable("v_permlane by computed lanes")
        select = picks[1] << 32 | picks[0]
        row = state.source(source)[0]
        state.write(target.file, target.first, tuple(
            row[(lane & ~15 ^ other_row) | (select >> 4 * (lane & 15) & 15)]
            for lane in range(state.width)
        ))  # fmt: skip

    return made


def _swapped(step: int) -> Callable[[State, Parsed], None]:
    """Odd rows (of `step` lanes) of the first change places with even rows of the second."""

    def made(state: State, parsed: Parsed) -> None:
        if not state.everywhere or parsed.modifiers:
            raise Unprovable(parsed.mnemonic)
        one, two = parsed.operands
        first, second = list(state.source(one)[0]), list(state.source(two)[0])
        for lane in range(state.width):
            if not lane & step:
                first[lane + step], second[lane] = second[lane], first[lane + step]
        state.vector[one.file, one.first] = tuple(first)
        state.vector[two.file, two.first] = tuple(second)

    return made


_SPECIAL: dict[str, Callable[[State, Parsed], None]] = {
    "v_readfirstlane_b32": _readfirstlane,
    "v_readlane_b32": _readlane,
    "v_writelane_b32": _writelane,
    "v_permlane16_b32": _permlane(0),
    "v_permlanex16_b32": _permlane(16),
    "v_permlane16_swap_b32": _swapped(16),
    "v_permlane32_swap_b32": _swapped(32),
}


# ---- lane by lane ----------------------------------------------------------------------------


def _shift(t: Terms, value: int, count: int, left: bool) -> int:
    known = t.value(count)
    if known is None:
        return t.make("shift", left, value, count)
    return (t.left if left else t.right)(value, known & 31)


def _subtract(t: Terms, a: int, b: int) -> int:
    known = t.value(b)
    return t.make("minus", a, b) if known is None else t.add(a, t.const(-known))


def _field(t: Terms, xs: list[int]) -> int:
    offset, width = t.value(xs[1]), t.value(xs[2])
    if offset is None or width is None:
        return t.make("v_bfe_u32", *xs)
    return t.masked(t.right(xs[0], offset & 31), (1 << (width & 31)) - 1)


def _insert(t: Terms, xs: list[int]) -> int:
    """Bits of the second source where the first has ones, else of the third."""
    mask = t.value(xs[0])
    if mask is None:
        return t.make("v_bfi_b32", *xs)
    return t.either(t.masked(xs[1], mask), t.masked(xs[2], ALL & ~mask))


def _perm(t: Terms, xs: list[int]) -> int:
    """Bytes of the second source are 0..3, of the first 4..7; further numbers are constants."""
    select = t.value(xs[2])
    if select is None:
        return t.make("v_perm_b32", *xs)
    picks = [select >> 8 * i & 0xFF for i in range(4)]
    needs = [0, 0]
    for pick in picks:
        if pick < 8:
            needs[pick < 4] |= 0xFF << 8 * (pick & 3)
        elif pick < 12:  # the sign of a half
            needs = [ALL, ALL]
    return t.make("v_perm_b32", t.masked(xs[0], needs[0]), t.masked(xs[1], needs[1]), select)


_SIMPLE: dict[str, Callable[[Terms, list[int]], int]] = {
    "v_mov_b32": lambda t, x: x[0],
    "v_accvgpr_read_b32": lambda t, x: x[0],
    "v_accvgpr_write_b32": lambda t, x: x[0],
    "v_cndmask_b32": lambda t, x: t.choose(x[2], x[1], x[0]),
    "v_and_b32": lambda t, x: t.both(x[0], x[1]),
    "v_or_b32": lambda t, x: t.either(x[0], x[1]),
    "v_xor_b32": lambda t, x: t.differ(x[0], x[1]),
    "v_not_b32": lambda t, x: t.differ(x[0], t.const(ALL)),
    "v_and_or_b32": lambda t, x: t.either(t.both(x[0], x[1]), x[2]),
    "v_or3_b32": lambda t, x: t.either(t.either(x[0], x[1]), x[2]),
    "v_add_u32": lambda t, x: t.add(x[0], x[1]),
    "v_add_nc_u32": lambda t, x: t.add(x[0], x[1]),
    "v_add3_u32": lambda t, x: t.add(*x),
    "v_sub_u32": lambda t, x: _subtract(t, x[0], x[1]),
    "v_sub_nc_u32": lambda t, x: _subtract(t, x[0], x[1]),
    "v_subrev_u32": lambda t, x: _subtract(t, x[1], x[0]),
    "v_subrev_nc_u32": lambda t, x: _subtract(t, x[1], x[0]),
    "v_mul_lo_u32": lambda t, x: t.multiply(x[0], x[1]),
    "v_lshlrev_b32": lambda t, x: _shift(t, x[1], x[0], True),
    "v_lshrrev_b32": lambda t, x: _shift(t, x[1], x[0], False),
    "v_lshl_add_u32": lambda t, x: t.add(_shift(t, x[0], x[1], True), x[2]),
    "v_add_lshl_u32": lambda t, x: _shift(t, t.add(x[0], x[1]), x[2], True),
    "v_lshl_or_b32": lambda t, x: t.either(_shift(t, x[0], x[1], True), x[2]),
    "v_bfe_u32": _field,
    "v_bfi_b32": _insert,
    "v_perm_b32": _perm,
}
