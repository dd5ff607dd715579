"""Operands of a decoded instruction, and the lanes that DPP reads from."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

from netra_harness.mutation.decoded import Decoded

_REGISTER = re.compile(r"(?P<file>[sva])(?:(?P<one>\d+)|\[(?P<low>\d+):(?P<high>\d+)\])")
_NAMED = {
    "vcc": ("s", 106, 2), "vcc_lo": ("s", 106, 1), "vcc_hi": ("s", 107, 1), "m0": ("s", 124, 1),
    "exec": ("exec", 0, 2), "exec_lo": ("exec", 0, 1), "exec_hi": ("exec", 1, 1),
}  # fmt: skip
_INTEGER = re.compile(r"-?(0x[0-9a-f]+|\d+)")
_SIGNS = re.compile(r"(?P<minus>-?)(?P<bar>\||abs\()?(?P<name>.*?)(?P<close>[|)])?")


@dataclass(frozen=True)
class Operand:
    """`file` "s", "v", "a", "exec", "const" or "text"; `signs` holds - and | of a float."""

    file: str
    first: int
    count: int
    signs: str = ""
    text: str = ""


@dataclass(frozen=True)
class Parsed:
    """Operands in order, and the modifiers behind the last."""

    mnemonic: str
    operands: tuple[Operand, ...]
    modifiers: tuple[str, ...]

    def modifier(self, name: str) -> str | None:
        """The text behind `name:`; None where it is absent."""
        for one in self.modifiers:
            if one.startswith(f"{name}:"):
                return one.partition(":")[2]
        return None


def parse(insn: Decoded) -> Parsed:
    """The instruction in parts; what is no register and no number is kept as text."""
    pieces = list(insn.operands)
    modifiers: list[str] = []
    if pieces:
        last, *modifiers = re.split(r"\s+(?![^\[]*\])", pieces[-1])
        pieces[-1] = last
        if re.match(r"\w+:", last) or last in ("gds", "lds"):  # only modifiers
            modifiers.insert(0, pieces.pop())
    return Parsed(insn.mnemonic, tuple(map(operand, pieces)), tuple(modifiers))


def operand(text: str) -> Operand:
    named = _NAMED.get(text)
    if named:
        return Operand(*named, text=text)
    if _INTEGER.fullmatch(text):
        return Operand("const", int(text, 0) & 0xFFFFFFFF, 1, text=text)
    signs = _SIGNS.fullmatch(text)
    name = signs["name"] if signs else text
    found = _REGISTER.fullmatch(name)
    if found:
        low = int(found["one"] or found["low"])
        high = int(found["one"] or found["high"])
        marks = (signs["minus"] + ("|" if signs["bar"] else "")) if signs else ""
        return Operand(found["file"], low, high - low + 1, marks, text)
    return Operand("text", 0, 1, text=text)


def float_bits(text: str) -> int | None:
    """The f32 of an inline constant such as 1.0."""
    try:
        return int(struct.unpack("<I", struct.pack("<f", float(text)))[0])
    except ValueError:
        return None


_ROW = {
    "row_shl": lambda i, n: i + n, "row_shr": lambda i, n: i - n,
    "row_ror": lambda i, n: (i - n) % 16, "row_xmask": lambda i, n: i ^ n,
    "row_share": lambda i, n: n, "row_newbcast": lambda i, n: n,
}  # fmt: skip


def dpp_source(parsed: Parsed, lane: int) -> int | None | str:
    """The lane that this one reads; None where there is none, "" without DPP, "?" unknown."""
    row, at = lane & ~15, lane & 15
    for one in parsed.modifiers:
        name, _, value = one.partition(":")
        if name in ("quad_perm", "dpp8"):
            picks = [int(x) for x in value.strip("[]").split(",")]
            return lane - lane % len(picks) + picks[lane % len(picks)]
        if name in _ROW:
            there = _ROW[name](at, int(value, 0))
            return row + there if 0 <= there < 16 else None
        if name == "row_mirror":
            return row + 15 - at
        if name == "row_half_mirror":
            return lane ^ 7
        if name == "row_bcast":
            step = int(value)  # 15: the last lane of the row before; 31: of the half before
            if step == 15:
                return row - 1 if row else None
            return 31 if lane >= 32 else None
        if name.startswith("wave_"):
            return "?"
    return ""


def dpp_written(parsed: Parsed, lane: int) -> bool:
    """Do DPP's masks let this lane write?"""
    rows = int(parsed.modifier("row_mask") or "0xf", 0)
    banks = int(parsed.modifier("bank_mask") or "0xf", 0)
    return bool(rows >> (lane >> 4) & 1 and banks >> (lane >> 2 & 3) & 1)
