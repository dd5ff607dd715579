"""Every conversion of gfx950 to and from FP8, BF8, FP6, BF6 and FP4, against reference/narrow.py.

Sources of at most 16 bits: all codes. f32: every number of the target format, every point half way
between two, their neighbours, specials, denormals and random ones. `pytest -s` prints how many
values were compared; NETRA_TEST_SCALE=300 makes the random ones millions.
"""

from __future__ import annotations

import itertools
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import driven
import narrow
import numpy as np
import pytest
from narrow import FORMATS
from narrow_programs import (
    BLOCK,
    ENTRY,
    KERNEL,
    MODES,
    TAIL,
    U32,
    Conversion,
    dwords,
    expected,
    forms,
    given,
    kernel,
    module,
    parse,
    rows,
    run,
    same,
    text,
)  # fmt: skip
from netra_sim.hip import Hip, HipError


def test_the_list_is_what_the_assembler_knows(llvm_bin: Path) -> None:
    """Every spelling of a narrow conversion that LLVM accepts for gfx950 has a row."""
    kinds = [f"{p}{a}_{b}" for a, b in itertools.permutations(FORMATS, 2)
             for p in ("", "pk_", "sr_", "sr_pk_", "pk32_", "sr_pk32_", "2xpk16_", "pk8_", "pk16_",
                       "sr_pk8_", "sr_pk16_")]  # fmt: skip
    names = [f"v_cvt_{s}{k}" for s in ("", "scalef32_") for k in kinds]
    names = [n for n in names if parse(n)] + ["v_cvt_pk_f32_fp8", "v_cvt_pk_f32_bf8"]
    source = "\n".join(f"{n} v0" for n in names) + "\n"
    done = subprocess.run(
        [str(llvm_bin / "llvm-mc"), "-triple=amdgcn-amd-amdhsa", "-mcpu=gfx950", "-filetype=null"],
        input=source, capture_output=True, text=True, check=False,
    )
    unknown = {
        int(n) for n, why in re.findall(r"<stdin>:(\d+):\d+: error: (.*)", done.stderr)
        if "not supported on this GPU" in why or "invalid instruction" in why
    }
    known = {n for i, n in enumerate(names, 1) if i not in unknown}
    assert len(known) > 55
    assert known == {c.name for c in rows()}


@pytest.fixture(scope="module")
def compared() -> Any:
    counts: dict[str, int] = {}
    yield counts
    print(f"\nnarrow: {sum(counts.values())} values of {len(counts)} instructions")


@pytest.fixture(scope="module")
def functions(
    assemble: Callable[..., Path], sim_library: Path, tmp_path_factory: pytest.TempPathFactory
) -> Any:
    """Each conversion in each of its forms: the handle of its kernel."""
    listed = [(c, form) for c in rows() for form in forms(c)]
    kernels = [kernel(n, c, text(c, f[0])) for n, (c, f) in enumerate(listed)]
    path = assemble(module(kernels), "gfx950")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NETRA_SIM_DEVICES", "gfx950")
        hip = Hip(sim_library)
        handle = hip.load_module(path)
        yield hip, {(c.name, f[0]): hip.function(handle, f"k{n}")
                    for n, (c, f) in enumerate(listed)}  # fmt: skip


@pytest.mark.parametrize("group", ("sr", "pk32", "scalef32", "plain"))
def test_conversions(group: str, functions: Any, compared: dict[str, int]) -> None:
    hip, handles = functions
    rng = np.random.default_rng(20261)
    tried = 0
    for c in rows():
        if _group(c) != group:
            continue
        for number, (form, source_at, at) in enumerate(forms(c)):
            driven.note("gfx950", text(c, form))
            for mode in MODES if number == 0 else (MODES[number % 4],):
                g = given(c, source_at, rng)
                got = run(hip, handles[c.name, form], g.words, dwords(c.out_bits), mode)
                want = expected(c, g, at, mode)
                for k, (a, b) in enumerate(zip(got, want, strict=True)):
                    bad = np.flatnonzero(~same(c, a, b))
                    if len(bad):
                        lane = bad[0]
                        shown = [hex(w[lane]) for w in g.words]
                        pytest.fail(
                            f"{text(c, form)} under MODE {mode:#x}: dword {k} of {len(bad)} lanes "
                            f"differs; {shown} gives {a[lane]:#x}, want {b[lane]:#x}"
                        )
                compared[c.name] = compared.get(c.name, 0) + g.codes.size
                tried += 1
    assert tried


def _group(c: Conversion) -> str:
    if c.random:
        return "sr"
    return "pk32" if c.count == 32 else "scalef32" if c.scale else "plain"


def test_464_rounds_to_448() -> None:
    """The tie above the largest E4M3 number goes to the even code; one step more overflows."""
    codes = np.array([464.0, np.nextafter(np.float32(464), np.float32(500))], np.float32)
    out = narrow.convert("f32", "fp8", codes.view(np.uint32), None, None, ovfl=False,
                         keep_in=True, keep_out=True)  # fmt: skip
    assert out.tolist() == [0x7E, 0x7F]


# ---- modifiers, and what is refused ------------------------------------------------------------

_LANE = """.amdgcn_target "amdgcn-amd-amdhsa--gfx950"
.text
""" + KERNEL.replace("{loads}", "        global_load_dword v8, v2, s[4:5]").replace(
    "{stores}", "        global_store_dword v1, v80, s[6:7]"
)


def one(assemble: Callable[..., Path], hip: Hip, line: str, words: U32, mode: int = 0xF0) -> U32:
    """v80 after the instruction, for v8 = words and v60, v61 = 1.0."""
    ones = "v_mov_b32 v60, 1.0\n        v_mov_b32 v61, 1.0\n        v_mov_b32 v80, 0\n        "
    source = _LANE.format(n=0, text=ones + line) + TAIL.format(n=0)
    metadata = "\n.amdgpu_metadata\n---\namdhsa.version: [1, 2]\namdhsa.kernels:\n"
    source += f"{metadata}{ENTRY.format(n=0)}...\n.end_amdgpu_metadata\n"
    handle = hip.load_module(assemble(source, "gfx950"))
    padded = np.resize(words, BLOCK)
    return run(hip, hip.function(handle, "k0"), [padded], 1, mode)[0][: len(words)]


@pytest.fixture
def hip(sim_library: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("NETRA_SIM_DEVICES", "gfx950")
    opened = Hip(sim_library)
    yield opened
    opened.library.netraSimReset()


F32 = np.array([1.3, -1.3, 100.0, -0.01, 3.0, 0.26], np.float32)


@pytest.mark.parametrize(
    "line, change",
    [
        ("v_cvt_pk_fp8_f32 v80, -v8, v60", lambda x: -x),
        ("v_cvt_pk_fp8_f32 v80, |v8|, v60", np.abs),
        ("v_cvt_pk_bf8_f32 v80, -|v8|, v60", lambda x: -np.abs(x)),
        ("v_cvt_scalef32_pk_fp8_f32 v80, -v8, v60, v61", lambda x: -x),
        ("v_cvt_scalef32_pk_bf8_f32 v80, |v8|, v60, -v61", np.abs),
    ],
)
def test_signs_of_a_source(
    assemble: Callable[..., Path], hip: Hip, line: str, change: Callable[[Any], Any]
) -> None:
    target = "bf8" if "bf8" in line else "fp8"
    got = one(assemble, hip, line, F32.view(np.uint32)) & 0xFF
    want = narrow.convert("f32", target, change(F32).view(np.uint32), None, None, ovfl=False,
                          keep_in=True, keep_out=True)  # fmt: skip
    assert got.tolist() == want.tolist()


@pytest.mark.parametrize("name", ("fp8", "bf8"))
def test_widening_takes_clamp_omod_and_dpp(
    assemble: Callable[..., Path], hip: Hip, name: str
) -> None:
    """omod acts with IEEE off and output denormals flushed; clamp turns a NaN into 0."""
    codes = np.arange(256, dtype=np.uint32)
    exact = narrow.decode(name, codes).astype(np.float32)
    with np.errstate(invalid="ignore"):
        clamped = np.where(np.isnan(exact), 0, np.clip(exact, 0, 1)).astype(np.float32)
    got = one(assemble, hip, f"v_cvt_f32_{name}_e64 v80, v8 clamp", codes, 0x1F0)
    assert np.array_equal(got.view(np.float32), clamped)
    got = one(assemble, hip, f"v_cvt_f32_{name}_e64 v80, v8 mul:2", codes, 0xC0).view(np.float32)
    assert np.array_equal(got, exact * 2, equal_nan=True)
    line = f"v_cvt_f32_{name}_dpp v80, v8 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf"
    got = one(assemble, hip, line, codes).view(np.float32)
    assert np.array_equal(got, exact[np.arange(256) ^ 1], equal_nan=True)


@pytest.mark.parametrize(
    "line, why",
    [
        ("v_cvt_scalef32_pk_fp8_f16 v80, -v8, v60", "packed values"),
        ("v_cvt_scalef32_pk_fp8_bf16 v80, |v8|, v60", "packed values"),
        ("v_cvt_scalef32_pk_fp4_f16 v80, 1.0, v60", "inline constant"),
        ("v_cvt_scalef32_pk_fp8_f32 v80, v8, v60, v61 op_sel:[1,0,0,0]", "op_sel names a part"),
        ("v_cvt_pk_f32_fp8_e64 v[80:81], v8 clamp", "clamp"),
        ("v_cvt_pk_f32_bf8_e64 v[80:81], v8 mul:2", "omod"),
    ],
)
def test_refused(assemble: Callable[..., Path], hip: Hip, line: str, why: str) -> None:
    with pytest.raises(HipError):
        one(assemble, hip, line, F32.view(np.uint32))
    assert why in hip.last_fault()
    assert line.split()[0].removesuffix("_e64") in hip.last_fault()
