"""Every way to write a narrow conversion that LLVM accepts: exact, or refused with its reason.

Forms: each op_sel, neg and abs of each operand, clamp, omod, scalar registers, inline constants and
literals, SDWA. LLVM says which of them exist; a rule per kind says what each must do.
"""

from __future__ import annotations

import itertools
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from narrow import FORMATS, NARROW
from narrow_programs import (
    BLOCK,
    FACTOR,
    OLD,
    RANDOM,
    S0,
    S1,
    U32,
    Conversion,
    Given,
    dwords,
    expected,
    given,
    kernel,
    module,
    register,
    rows,
    run,
    same,
)  # fmt: skip
from netra_sim.hip import Hip, HipError

MODULE = 60  # kernels of one module: a launch costs by the size of its module
MODE = 0x1F0  # denormals kept, DX10_CLAMP on: clamp makes a NaN 0, omod is ignored
SCALAR = 0x3F9E0419  # what s11 holds
SIGN = np.uint32(0x80000000)
INLINE = {"1.0": 0x3F800000, "-4.0": 0xC0800000, "3": 3, "-1": 0xFFFFFFFF}


@dataclass(frozen=True)
class Form:
    """One spelling. `sees` makes of the registers what the instruction gets; `why` is a
    pattern of the refusal."""

    kind: str
    line: str
    why: str = ""
    source_at: int = 0
    at: int = 0
    sees: Callable[[Given], Given] = lambda g: g
    clamp: bool = False


def _operands(c: Conversion) -> list[str]:
    width = dwords(c.in_bits)
    out = [register(S0, width)] + ([register(S1, width)] if c.two else [])
    return out + ([f"v{RANDOM}"] if c.random else []) + ([f"v{FACTOR}"] if c.scale else [])


def _line(c: Conversion, operands: list[str], tail: str = "", suffix: str = "") -> str:
    return f"{c.name}{suffix} {register(OLD, dwords(c.out_bits))}, {', '.join(operands)}{tail}"


def _role(c: Conversion, k: int) -> str:
    if k < 1 + c.two:
        return "value"
    return "random" if c.random and k == 1 + c.two else "scale"


def _valued(c: Conversion, k: int, change: Callable[[U32], U32]) -> Callable[[Given], Given]:
    """The given values with operand k's changed."""

    def sees(g: Given) -> Given:
        role = _role(c, k)
        if role == "random" and g.random is not None:
            return replace(g, random=change(g.random))
        if role == "scale" and g.scale is not None:
            return replace(g, scale=change(g.scale))
        codes = g.codes.copy()
        part = slice(k, None, 2) if c.two else slice(None)
        codes[part] = change(codes[part])
        return replace(g, codes=codes)

    return sees


def _constant(word: int) -> Callable[[U32], U32]:
    return lambda x: np.full_like(x, word)


def _worth(c: Conversion, word: int) -> Callable[[Given], Given]:
    """Values that all come from one 32-bit word."""

    def sees(g: Given) -> Given:
        bits = FORMATS[c.source].bits
        column = [word >> (bits * k) & ((1 << bits) - 1) for k in range(len(g.codes))]
        codes = np.repeat(np.array(column, np.uint32)[:, None], g.codes.shape[1], 1)
        return replace(g, codes=codes)

    return sees


def _selections(c: Conversion) -> Iterator[Form]:
    operands = _operands(c)
    four = len(operands) == 3 or c.out_bits == 8
    for bits in itertools.product((0, 1), repeat=4 if four else 3):
        word = sum(b << k for k, b in enumerate(bits if four else (*bits[:2], 0, bits[2])))
        to = {16: 8, 8: 12}.get(c.out_bits, 0)
        from_ = {16: 1, 8: 3}.get(c.in_bits, 0) if c.source in NARROW else 0
        yield Form(
            "op_sel", _line(c, operands, f" op_sel:[{','.join(map(str, bits))}]"),
            "op_sel" if word & ~(to | from_) else "",
            (word & from_) * c.in_bits,
            {16: word >> 3, 8: word >> 2}.get(c.out_bits, 0) * c.out_bits,
        )  # fmt: skip


def _signs(c: Conversion) -> Iterator[Form]:
    changes: dict[str, Callable[[U32], U32]] = {
        "-{}": lambda x: x ^ SIGN, "|{}|": lambda x: x & ~SIGN, "-|{}|": lambda x: x | SIGN,
    }  # fmt: skip
    operands = _operands(c)
    for k, (how, change) in itertools.product(range(len(operands)), changes.items()):
        changed = [how.format(o) if j == k else o for j, o in enumerate(operands)]
        single = c.source == "f32" and c.in_bits == 32
        why = "" if _role(c, k) == "scale" or (
            _role(c, k) == "value" and single) else "packed values|takes no neg or abs"
        for suffix in ("", "_e64"):
            yield Form("sign", _line(c, changed, suffix=suffix), why,
                       sees=_valued(c, k, change))  # fmt: skip


def _results(c: Conversion) -> Iterator[Form]:
    single = c.target == "f32" and c.count == 1
    for word in ("clamp", "mul:2", "div:2"):
        why = "" if single else "clamp" if word == "clamp" else "omod"
        for suffix in ("", "_e64", "_sdwa"):
            yield Form("result", _line(c, _operands(c), " " + word, suffix), why,
                       clamp=word == "clamp")  # fmt: skip


def _sources(c: Conversion) -> Iterator[Form]:
    operands = _operands(c)
    words = {"s11": SCALAR, **INLINE, "0x3f9e0438": 0x3F9E0438}
    for k, (name, word) in itertools.product(range(len(operands)), words.items()):
        changed = [name if j == k else o for j, o in enumerate(operands)]
        value = _role(c, k) == "value"
        raw = c.source == "f32" or (not c.scale and c.target == "f32") or name[0] in "s0"
        sees = _worth(c, word) if value and not c.two else _valued(
            c, k, _constant(word))
        if value and c.in_bits > 32:
            continue  # wider than one register: refused or not by LLVM
        yield Form("source", _line(c, changed), "" if raw or not value else "inline constant",
                   sees=sees)  # fmt: skip


def _sdwa(c: Conversion) -> Iterator[Form]:
    places = {**{f"BYTE_{b}": (8 * b, 8) for b in range(4)}, "WORD_0": (0, 16), "WORD_1": (16, 16),
              "DWORD": (0, 32)}  # fmt: skip
    for place, (at, width) in places.items():
        sees: Callable[[Given], Given] = lambda g: g  # noqa: E731
        if width < c.in_bits:  # the element past the selected byte is 0
            sees = _valued(c, 0, lambda x: x * np.array([[1], [0]], np.uint32))
        for tail in ("", " clamp"):
            yield Form("sdwa", _line(c, _operands(c), f"{tail} src0_sel:{place}", "_sdwa"),
                       "clamp" if tail and c.count == 2 else "", at, sees=sees,
                       clamp=bool(tail))  # fmt: skip
    for operand in ("s11", "sext(v8)", "-v8", "|v8|"):
        yield Form("sdwa", _line(c, [operand], " src0_sel:DWORD", "_sdwa"),
                   "" if operand == "s11" else "SDWA", sees=_worth(c, SCALAR))  # fmt: skip


def _forms(c: Conversion) -> Iterator[Form]:
    for made in (_selections, _signs, _results, _sources):
        yield from made(c)
    if c.source in NARROW and not c.scale:
        yield from _sdwa(c)


def _accepted(llvm_bin: Path, lines: list[str]) -> list[bool]:
    done = subprocess.run(
        [str(llvm_bin / "llvm-mc"), "-triple=amdgcn-amd-amdhsa", "-mcpu=gfx950", "-filetype=null"],
        input="\n".join(lines) + "\n", capture_output=True, text=True, check=False,
    )  # fmt: skip
    bad = {int(n) for n in re.findall(r"<stdin>:(\d+):\d+: error", done.stderr)}
    return [n not in bad for n in range(1, len(lines) + 1)]


def _clamped(words: list[U32]) -> list[U32]:
    x = words[0].view(np.float32)
    with np.errstate(invalid="ignore"):
        return [np.where(x > 0, np.minimum(x, 1), 0).astype(np.float32).view(np.uint32)]


def _first(g: Given) -> Given:
    cut = slice(0, BLOCK)
    return Given([w[cut] for w in g.words], g.codes[:, cut],
                 None if g.random is None else g.random[cut],
                 None if g.scale is None else g.scale[cut], [w[cut] for w in g.old])  # fmt: skip


def _difference(hip: Hip, function: int, c: Conversion, form: Form, g: Given) -> str:
    """What is wrong with a form; empty when nothing is."""
    name = c.name
    try:
        got = run(hip, function, g.words, dwords(c.out_bits), MODE)
    except HipError:
        fault = hip.last_fault()
        hip.library.netraSimReset()
        if form.why and re.search(form.why, fault) and name in fault:
            return ""
        return f"{form.line}: {fault}, want {form.why or 'a result'}"
    if form.why:
        return f"{form.line}: executed, want a refusal that says {form.why}"
    want = expected(c, form.sees(g), form.at, MODE)
    want = _clamped(want) if form.clamp else want
    for a, b in zip(got, want, strict=True):
        bad = np.flatnonzero(~same(c, a, b))
        if len(bad):
            lane = bad[0]
            shown = [hex(w[lane]) for w in g.words]
            return f"{form.line}: {shown} gives {a[lane]:#x}, want {b[lane]:#x}"
    return ""


@pytest.fixture
def hip(sim_library: Path, monkeypatch: pytest.MonkeyPatch) -> Hip:
    monkeypatch.setenv("NETRA_SIM_DEVICES", "gfx950")
    return Hip(sim_library)


def test_each_accepted_form_is_exact_or_refused(
    llvm_bin: Path, assemble: Callable[..., Path], hip: Hip
) -> None:
    every = [(c, form) for c in rows() for form in _forms(c)]
    accepted = _accepted(llvm_bin, [f.line for _, f in every])
    kept = [f for f, ok in zip(every, accepted, strict=True) if ok]
    rng = np.random.default_rng(20262)
    wrong, counts = [], Counter[str]()
    for at in range(0, len(kept), MODULE):
        part = kept[at : at + MODULE]
        lines = [f"s_mov_b32 s11, {SCALAR:#x}\n        {form.line}" for _, form in part]
        pairs = enumerate(zip(part, lines, strict=True))
        kernels = [kernel(n, c, line) for n, ((c, _), line) in pairs]
        handle = hip.load_module(assemble(module(kernels), "gfx950"))
        for n, (c, form) in enumerate(part):
            g = _first(given(c, form.source_at, rng))
            wrong.append(_difference(hip, hip.function(handle, f"k{n}"), c, form, g))
            counts[f"{form.kind} {'refused' if form.why else 'exact'}"] += 1
        hip.unload_module(handle)
    wrong = [w for w in wrong if w]
    assert not wrong, f"{len(wrong)} of {len(kept)} forms:\n" + "\n".join(wrong[:40])
    assert {c.name for c, _ in kept} == {c.name for c in rows()}
    print(f"\nnarrow forms: {len(kept)} of {len(rows())} instructions, {len(every)} tried; "
          + ", ".join(f"{k} {v}" for k, v in sorted(counts.items())))  # fmt: skip
