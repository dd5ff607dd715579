"""What scalar instructions make of terms."""

from __future__ import annotations

import re
from collections.abc import Callable

from netra_harness.mutation.operands import Parsed
from netra_harness.mutation.state import State, Unprovable
from netra_harness.mutation.terms import ALL

QUIET = re.compile(
    r"s_(nop|waitcnt\w*|delay_alu|sleep|setprio|clause|inst_prefetch|set_inst_prefetch\w*"
    r"|code_end|wait_event)|v_nop"
)
_NO_SCC = re.compile(
    r"s_(mov|movk|cmov|cmovk|cselect|brev|ff0|ff1|flbit|ctz|clz|cls|bitset0|bitset1|sext|mul_i32"
    r"|mul_hi|mulk|pack|bfm|bitreplicate)\w*"
)
_READS_SCC = re.compile(r"s_(addc|subb|cselect|cmov|cmovk|cbranch_scc)\w*")
_BEYOND = re.compile(
    r"s_(set_gpr|movrel|send|trap|sethalt|setpc|setvskip|setkill|swappc|call|getpc|mem|icache|atomic"
    r"|store|scratch|rfe|wake|ttrace|dcache|wqm|quadmask|bitreplicate)\w*"
)
_KEEPS = re.compile(r"s_(addk|mulk|cmovk|cmov|bitset[01])_\w+")  # D is a source too
_BITWISE = re.compile(r"s_(and|or|xor|andn2|orn2|and_not1|or_not1|not|nand|nor|xnor)_b(32|64)")
_SAVE = re.compile(r"s_(and|or|xor|andn2|and_not1)_saveexec_b(32|64)")
_COMPARE = re.compile(r"s_cmpk?_(eq|lg|gt|ge|lt|le)_([iu])32")


def scalar(state: State, parsed: Parsed) -> None:
    """One instruction of the scalar unit that is no branch and no load."""
    name, ops, t = parsed.mnemonic, parsed.operands, state.terms
    if _COMPARE.fullmatch(name):
        left, right = (state.words(op)[0] for op in ops)
        state.scc = _compared(state, name, left, right)
        return
    if name.startswith(("s_cmp", "s_bitcmp")):
        state.scc = t.make(name, *[w for op in ops for w in state.words(op)])
        return
    if name.startswith("s_setreg"):
        state.mode = t.make(name, ops[0].text, *state.words(ops[1]), state.mode)
        return
    if name.startswith("s_getreg"):
        state.set_words(ops[0], [t.make(name, ops[1].text, state.mode)])
        return
    save = _SAVE.fullmatch(name)
    if save:
        before = state.halves(state.active)
        count = len(before)
        other = state.bits(state.words(ops[1], count))
        state.active = _bitwise(state, save[1], other, state.active)
        state.set_words(ops[0], before)
        state.scc = t.make("nonzero", *state.halves(state.active))
        return
    if not ops or _BEYOND.fullmatch(name) or any(op.file in "va" for op in ops):
        raise Unprovable(name)
    target = ops[0]
    if _BITWISE.fullmatch(name) and _masks(state, parsed):
        return
    simple = _SIMPLE.get(name)
    sources = ops if _KEEPS.fullmatch(name) else ops[1:]
    words = [w for op in sources for w in state.words(op, _width(name, op.count, op.file))]
    if name.startswith("s_cselect") and target.count == 1:
        state.set_words(target, [t.choose(state.scc, words[0], words[1])])
        return
    if simple and target.count == 1:
        result = [simple(state, words)]
    elif name == "s_mov_b64":
        result = words
    else:
        given = [*words, state.scc] if _READS_SCC.match(name) else words
        result = [t.make(name, i, *given) for i in range(target.count)]
    if not _NO_SCC.fullmatch(name):
        # An instruction that is not known to leave SCC alone, or to set it anew, mixes both.
        old = [] if _SETS_SCC.match(name) and not _READS_SCC.match(name) else [state.scc]
        state.scc = t.make("scc", name, *words, *old)
    state.set_words(target, result)


_SETS_SCC = re.compile(
    r"s_(add|sub|and|or|xor|andn2|orn2|nand|nor|xnor|not|min|max|lshl|lshr|ashr|bfe|abs|lshl\d_add"
    r"|addc|subb|addk|bcnt1)_\w+"
)


def _width(name: str, count: int, file: str) -> int | None:
    """A constant of a 64-bit move or operation has two words."""
    return 2 if file in ("const", "text") and name.endswith(("_b64", "_u64", "_i64")) else None


def _compared(state: State, name: str, left: int, right: int) -> int:
    t = state.terms
    found = _COMPARE.fullmatch(name)
    a, b = t.value(left), t.value(right)
    if found is None or a is None or b is None or name.startswith("s_cmpk"):
        return t.make("compare", name.replace("cmpk", "cmp"), left, right)
    if found[2] == "i":
        a, b = a - (a >> 31 << 32), b - (b >> 31 << 32)
    truth = {"eq": a == b, "lg": a != b, "gt": a > b, "ge": a >= b, "lt": a < b, "le": a <= b}
    return t.const(int(truth[found[1]]))


def _bitwise(state: State, name: str, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    t = state.terms
    one = t.const(1)
    if name in ("andn2", "and_not1", "orn2", "or_not1"):
        second = tuple(t.differ(one, y) for y in b)
        return _bitwise(state, name[:3].rstrip("n_"), a, second)
    if name.startswith("n") or name == "xnor":
        inner = {"nand": "and", "nor": "or", "xnor": "xor"}[name]
        return tuple(t.differ(one, x) for x in _bitwise(state, inner, a, b))
    make: Callable[[int, int], int] = {"and": t.both, "or": t.either, "xor": t.differ}[name]
    return tuple(map(make, a, b))


def _masks(state: State, parsed: Parsed) -> bool:
    """Lane by lane, where every operand is a mask of lanes; False where it is a number."""
    t, name = state.terms, parsed.mnemonic
    count = state.width // 32
    if not name.endswith(f"b{state.width}"):
        return False
    sides = [state.words(op, count) for op in parsed.operands[1:]]
    if not all(t.key(w)[0] in ("mask", "const") for words in sides for w in words):
        return False
    if all(t.key(w)[0] == "const" for words in sides for w in words) and count == 1:
        return False
    bits = [state.bits(words) for words in sides]
    operation = name[2:].rsplit("_b", 1)[0]
    if operation == "not":
        made = tuple(t.differ(t.const(1), x) for x in bits[0])
    else:
        made = _bitwise(state, operation, bits[0], bits[1])
    words = state.halves(made)
    state.set_words(parsed.operands[0], words)
    state.scc = t.make("nonzero", *words)
    return True


def _reverse(value: int) -> int:
    return int(f"{value:032b}"[::-1], 2)


def _brev(state: State, words: list[int]) -> int:
    t = state.terms
    known = t.value(words[0])
    return t.make("brev", words[0]) if known is None else t.const(_reverse(known))


def _shift(left: bool) -> Callable[[State, list[int]], int]:
    def made(state: State, words: list[int]) -> int:
        t = state.terms
        count = t.value(words[1])
        if count is None:
            return t.make("shift", left, *words)
        return (t.left if left else t.right)(words[0], count & 31)

    return made


def _minus(state: State, words: list[int]) -> int:
    t = state.terms
    known = t.value(words[1])
    return t.make("minus", *words) if known is None else t.add(words[0], t.const(-known))


def _constant16(state: State, words: list[int]) -> int:
    known = state.terms.value(words[0])
    if known is None:
        raise Unprovable("s_movk_i32")
    return state.terms.const((known & 0xFFFF) - (known >> 15 & 1) * 0x10000)


def _add16(state: State, words: list[int]) -> int:
    return state.terms.add(words[0], _constant16(state, words[1:]))


_SIMPLE: dict[str, Callable[[State, list[int]], int]] = {
    "s_mov_b32": lambda s, w: w[0],
    "s_movk_i32": _constant16,
    "s_addk_i32": _add16,
    "s_add_u32": lambda s, w: s.terms.add(*w),
    "s_add_i32": lambda s, w: s.terms.add(*w),
    "s_sub_u32": _minus,
    "s_sub_i32": _minus,
    "s_mul_i32": lambda s, w: s.terms.multiply(*w),
    "s_and_b32": lambda s, w: s.terms.both(*w),
    "s_or_b32": lambda s, w: s.terms.either(*w),
    "s_xor_b32": lambda s, w: s.terms.differ(*w),
    "s_not_b32": lambda s, w: s.terms.differ(w[0], s.terms.const(ALL)),
    "s_lshl_b32": _shift(left=True),
    "s_lshr_b32": _shift(left=False),
    "s_brev_b32": _brev,
}
