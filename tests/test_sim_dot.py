"""Float dot products of two halves: every form that LLVM spells, against adders in exact integers.

A form's text says what its sources become; the sum is that of tests/reference/matrices.py (what was
measured of RDNA3, exact and CDNA3's), or a chain of fused multiply-adds in exact fractions.
"""

from __future__ import annotations

import math
import random
import re
import struct
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import driven
import pytest
import sim_kernels
import sim_rows
import softfloat
from matrices import exact, flushed, gfx11_dot2, number, tr_fdpa
from netra_sim.hip import Hip
from sim_rows import IDS, TARGETS, THREADS
from softfloat import DOWN, NEAREST, UP, ZERO, Mode

ARCHES = ("gfx950", "gfx1151")
ROUNDS = 16  # launches of a kernel with all forms, THREADS cases each
# None of them may matter, but for what clamp makes of a NaN, and FP16_OVFL.
MODES = (Mode(), Mode(UP, ZERO, 0, 0, ieee=False), Mode(DOWN, UP, 1, 2, ovfl=True),
         Mode(ZERO, DOWN, 2, 3, dx10=False), Mode(NEAREST, NEAREST, 0, 0, ovfl=True))


@dataclass(frozen=True)
class Form:
    """One spelling; `partner` is what DPP flips in the lane of S0."""

    text: str
    partner: int = 0
    given: dict[int, int] = field(default_factory=dict)  # registers of sources that are constants
    other: str = ""  # another spelling of it

    @property
    def name(self) -> str:
        return self.text.replace("v_dual_", "v_").split()[0].replace("_e64", "").replace("_dpp", "")

    def bits(self, modifier: str, default: int = 0) -> int:
        found = re.search(rf"{modifier}:\[([01,]+)\]", self.text)
        if not found:
            return default
        return sum(int(x) << k for k, x in enumerate(found[1].split(",")))


ODD, BACK = " quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf", " dpp8:[7,6,5,4,3,2,1,0]"
SIGNS = (" neg_lo:[1,0,0] neg_hi:[0,1,0]", " op_sel:[1,0,0] op_sel_hi:[0,1,1]",
         " op_sel:[1,1,0] op_sel_hi:[0,0,1] neg_lo:[0,1,0] neg_hi:[1,1,0]", " clamp",
         " neg_lo:[1,1,0] clamp")
PACKED = [
    Form(f"v_dot2_f32_{kind} v8, v2, v4, v6{tail}")
    for kind in ("f16", "bf16")
    for tail in ("", " neg_lo:[0,0,1]", " neg_lo:[1,0,1] neg_hi:[0,1,1]", *SIGNS)
] + [
    Form("v_dot2_f32_f16 v8, v2, 1.0, v6", given={1: 0x3C00}),
    Form("v_dot2_f32_f16 v8, v2, v4, 1.0", given={2: 0x3F800000}),
    Form("v_dot2_f32_bf16 v8, v2, v4, -4.0", given={2: 0xC0800000}),
]
FORMS = {
    "gfx950": [
        *PACKED,
        *(Form(f"v_dot2c_f32_{kind} v8, {rest}", partner, given)
          for kind in ("f16", "bf16")
          for rest, partner, given in (("v2, v4", 0, {}), ("v2, v4" + ODD, 1, {}),
                                       ("0x3e00c100, v4", 0, {0: 0x3E00C100}))),
        Form("v_dot2c_f32_f16_e64 v8, v2, v4"),
        *(Form(f"v_dot2c_f32_bf16_e64 v8, {rest}")
          for rest in ("v2, v4", "-v2, v4", "v2, |v4|", "-v2, -|v4|", "|v2|, -v4 clamp",
                       "v2, v4 clamp")),
    ],
    "gfx1151": [
        *PACKED,
        *(Form(f"v_dot2_f32_{kind}_e64_dpp v8, v2, v4, v6{tail}", partner)
          for kind in ("f16", "bf16")
          for tail, partner in ((ODD, 1), (BACK, 7), (" neg_lo:[1,0,0] neg_hi:[1,1,0]" + ODD, 1))),
        *(Form(f"v_dot2acc_f32_f16 v8, {rest}", partner, given)
          for rest, partner, given in (("v2, v4", 0, {}), ("v2, v4" + ODD, 1, {}),
                                       ("v2, v4" + BACK, 7, {}),
                                       ("0x3e00c100, v4", 0, {0: 0x3E00C100}))),
        Form("v_dual_dot2acc_f32_f16 v8, v2, v4 :: v_dual_mov_b32 v9, v3"),
        Form("v_dual_dot2acc_f32_bf16 v8, v2, v4 :: v_dual_mov_b32 v9, v3"),
        *(Form(f"v_dot2_{kind}_{kind}{suffix} {d}, v2, v4, {c}{tail}", partner,
               other=f"v_dot2_{kind}_{kind}{suffix} v8, v2, v4, v6{sel}{tail}")
          for kind in ("f16", "bf16")
          for suffix, d, c, sel, tail, partner in (
              ("", "v8.l", "v6.l", "", "", 0), ("", "v8.h", "v6.l", " op_sel:[0,0,0,1]", "", 0),
              ("", "v8.l", "v6.h", " op_sel:[0,0,1,0]", "", 0),
              ("", "v8.h", "v6.h", " op_sel:[0,0,1,1]", "", 0),
              ("_e64_dpp", "v8.l", "v6.l", "", ODD, 1), ("_e64_dpp", "v8.l", "v6.l", "", BACK, 7),
          )),
    ],
}  # fmt: skip


def _wide(half: int, kind: str) -> int:
    """A half as f32 bits."""
    if kind == "bf16":
        return half << 16
    if half & 0x7C00 == 0x7C00:
        return (half & 0x8000) << 16 | 0x7F800000 | (half & 0x3FF) << 13
    bits: int = struct.unpack("<I", struct.pack("<f", number(half, "f16")))[0]
    return bits


def _step(a: int, b: int, c: int) -> int:
    """A fused multiply-add; the NaN is the first of a, b and c, and an invalid one otherwise."""
    for x in (a, b, c):
        if softfloat.is_nan(x, "f32"):
            return x | 0x400000
    return softfloat.fma(a, b, c, "f32", Mode())


def _bits(x: float) -> int:
    bits: int = struct.unpack("<I", struct.pack("<f", x))[0]
    return 0xFFC00000 if math.isnan(x) else bits


def total(
    model: str, arch: str, kind: str, out: str, a: list[int], b: list[int], c: int, mode: Mode
) -> int:
    """The sum of a[k] b[k] and c, in the format `out`."""
    if model == "gfx11_dot2":
        x, y = ([number(h, kind) for h in v] for v in (a, b))
        return gfx11_dot2(x, y, c, out, kind == "bf16", mode.ovfl)
    if kind == "bf16" or arch == "gfx950":
        smallest = 0x80 if kind == "bf16" else 0x400
        a, b = ([h & 0x8000 if h & 0x7FFF < smallest else h for h in v] for v in (a, b))
    c = c & 0x80000000 if c & 0x7FFFFFFF < 0x800000 else c
    if model == "fma_chain":
        found = c
        for x, y in zip(a, b, strict=True):
            found = _step(_wide(x, kind), _wide(y, kind), found)
    else:
        factors = [[number(h, kind) for h in v] for v in (a, b)]
        acc = number(c, "f32")
        found = _bits(float(exact(*factors, acc) if model == "exact"
                            else tr_fdpa(*factors, acc, False)))
    if softfloat.is_nan(found, "f32"):
        return found
    return _bits(flushed(number(found, "f32"), -126))


def expected(form: Form, model: str, arch: str, mode: Mode, s: list[int], old: int) -> int:
    """v8 afterwards, for registers v2, v4, v6 and the old v8."""
    kind = form.name.rpartition("_")[2]
    out = form.name.split("_")[2]
    s = [form.given.get(k, x) for k, x in enumerate(s)]
    packed = out == "f32" and form.name.startswith("v_dot2_")
    lo = form.bits("op_sel") if packed else 0
    hi = form.bits("op_sel_hi", 7) if packed else 7
    neg_lo, neg_hi = form.bits("neg_lo"), form.bits("neg_hi")
    if "dot2c" in form.name:  # the two fields of VOP3 print as neg and abs
        for k in (0, 1):
            neg_lo |= bool(re.search(rf"-\|?v{2 * k + 2}\b", form.text)) << k
            neg_hi |= f"|v{2 * k + 2}|" in form.text and 1 << k
    factors = [[(s[k] >> 16 * (lo >> k & 1) & 0xFFFF) ^ (neg_lo >> k & 1) << 15,
                (s[k] >> 16 * (hi >> k & 1) & 0xFFFF) ^ (neg_hi >> k & 1) << 15] for k in (0, 1)]
    c = s[2] if form.name.startswith("v_dot2_") else old
    if out != "f32":
        c = c >> 16 * ("v6.h" in form.text) & 0xFFFF
    elif form.name == "v_dot2_f32_f16":  # that of bf16 has no sign for its addend
        c ^= (neg_lo >> 2 & 1) << 31
    found = total(model, arch, kind, out, *factors, c, mode)
    if " clamp" in form.text:
        value = number(found, "f32")
        if math.isnan(value):
            found = 0 if mode.dx10 else found
        else:
            found = _bits(min(max(value, 0.0), 1.0) if value > 0 else 0.0)
    if out == "f32":
        return found
    return (old & 0xFFFF) | found << 16 if "v8.h" in form.text else (old & 0xFFFF0000) | found


def drawn(rng: random.Random, name: str) -> tuple[int, int, int, int]:
    """Edges, everyday numbers, any bits; and addends that take a product away again."""
    kind, out = name.rpartition("_")[2], name.split("_")[2]

    def half(of: str) -> int:
        return sim_rows.draw("f32", rng) >> 16 if of == "bf16" else sim_rows.draw("f16", rng)

    a, b = ([half(kind), half(kind)] for _ in "ab")
    if out != "f32":
        c = half(out) | half(out) << 16
    else:
        c = sim_rows.draw("f32", rng)
        product = number(a[0], kind) * number(b[0], kind)
        if rng.random() < 0.25 and abs(product) < 2.0**127:
            c = _bits(-product) + rng.choice((0, 0, 1)) & 0xFFFFFFFF
    old = c if out == "f32" else rng.getrandbits(32)
    return a[0] | a[1] << 16, b[0] | b[1] << 16, c, old


def run(
    hip: Hip, assemble: Callable[..., Path], llvm: Path, arch: str, lanes: int, model: str,
    forms: list[Form], rounds: int,
) -> Counter[str]:
    """Cases by instruction. LLVM has op_sel on gfx1151 only, and VOPD in wave32 only."""
    hip.call("hipSetDevice", ARCHES.index(arch))
    forms = [f for f in forms if not (arch == "gfx950" and "op_sel" in f.text)
             and not (lanes == 64 and "v_dual" in f.text)]
    texts = sim_rows.spellable(
        arch, llvm, [(f.text, f.other) if f.other else (f.text,) for f in forms], lanes)
    assert all(texts), [f.text for f, t in zip(forms, texts, strict=True) if not t]
    driven.note(arch, "\n".join(texts))
    # Its row runs as half of a VOPD only.
    driven.DRIVEN[arch] |= {(f.name, False, False) for f in forms}
    source = sim_rows.kernel(arch, texts, [False] * len(texts), lanes)
    function = hip.function(hip.load_module(assemble(source, arch, lanes)), "k")
    rng, wrong, count = random.Random(f"{arch} {lanes} {model}"), [], Counter[str]()
    for turn in range(rounds):
        mode = MODES[turn % len(MODES)]
        values = [[drawn(rng, f.name) for _ in range(THREADS)] for f in forms]
        got = sim_rows.run(hip, function, values, mode=mode.bits(), exec_mask=(1 << lanes) - 1,
                           carry=0, lanes=lanes)
        for form, given, outcomes in zip(forms, values, got, strict=True):
            for t in range(THREADS):
                s = [given[t ^ form.partner][0], *given[t][1:3]]
                want = expected(form, model, arch, mode, s, given[t][3])
                count[form.name] += 1
                if outcomes[t].low != want:
                    wrong.append(f"{form.text}, mode {turn % len(MODES)}: {[hex(x) for x in s]}, "
                                 f"old {given[t][3]:#x}: got {outcomes[t].low:#x}, want {want:#x}")
                    break
    assert not wrong, "\n".join([f"{len(wrong)} differ under {model}", *wrong[:20]])
    return count


@pytest.fixture(scope="module")
def hip(sim_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hip]:
    folder = tmp_path_factory.mktemp("sim")
    with sim_kernels.private_simulator(sim_library, folder, ",".join(ARCHES)) as hip:
        yield hip


@pytest.mark.parametrize("arch, lanes", TARGETS, ids=IDS)
def test_forms(
    arch: str, lanes: int, hip: Hip, llvm_bin: Path, assemble: Callable[..., Path]
) -> None:
    model = "fma_chain" if arch == "gfx950" else "gfx11_dot2"
    rounds = ROUNDS if lanes == sim_rows.LANES[arch] else 5
    count = run(hip, assemble, llvm_bin, arch, lanes, model, FORMS[arch], rounds)
    assert rounds < ROUNDS or min(count.values()) >= 2000
    print(f"\n{arch} wave{lanes}, {model}: {dict(count)} cases")


@pytest.mark.parametrize("model", ["tr_fdpa", "exact"])
def test_other_models(
    model: str, sim_library: Path, tmp_path: Path, llvm_bin: Path, assemble: Callable[..., Path]
) -> None:
    with sim_kernels.private_simulator(sim_library, tmp_path, ",".join(ARCHES),
                                       NETRA_SIM_MATRIX_MODEL=model) as hip:
        for arch in ARCHES:
            count = run(hip, assemble, llvm_bin, arch, sim_rows.LANES[arch], model, PACKED, 2)
            print(f"\n{arch}, {model}: {dict(count)} cases")


def test_signs_of_packed_halves_under_dpp_are_refused(
    hip: Hip, assemble: Callable[..., Path]
) -> None:
    hip.call("hipSetDevice", 0)
    source = sim_rows.kernel("gfx950", ["v_dot2c_f32_bf16 v8, -v2, v4" + ODD], [False])
    function = hip.function(hip.load_module(assemble(source, "gfx950")), "k")
    with pytest.raises(Exception, match="LaunchFailure|NotSupported"):
        sim_rows.run(hip, function, [[(0, 0, 0, 0)] * THREADS], mode=0, exec_mask=1, carry=0,
                     lanes=64)
    assert "neg and abs do to packed halves under DPP" in hip.last_fault()
    hip.library.netraSimReset()
