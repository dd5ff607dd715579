"""What does not depend on the data: counted promises, settings that are refused, the host's code.

The matrix adders are compared with the exact integers of tests/reference/matrices.py.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import sim_kernels
from matrices import exact, fma_chain, tr_fdpa
from matrix_programs import ROWS, A, B, C, code_object, run
from netra_sim.hip import Hip

F16 = "v_mfma_f32_16x16x16_f16 v[26:29], v[8:9], v[16:17], v[26:29]"
FP8 = "v_mfma_f32_16x16x32_fp8_fp8 v[26:29], v[8:9], v[16:17], v[26:29]"
DOT2 = "v_dot2_f32_f16 v26, v8, v16, v26"
EXP = "v_exp_f32 v26, v8"
I8 = "v_mfma_i32_16x16x32_i8 v[26:29], v[8:9], v[16:17], v[26:29]"
LINES = [F16, FP8, DOT2, EXP, I8]


def _results(
    library: Path, folder: Path, code: Path, rows: np.ndarray, **variables: str
) -> tuple[list[np.ndarray], list[dict[str, int]]]:
    """(D, counters) of every line, on a simulator with those variables."""
    folder.mkdir()
    with sim_kernels.private_simulator(library, folder, "gfx950", **variables) as hip:
        module = hip.load_module(code)
        found, counted = [], []
        for n in range(len(LINES)):
            found.append(run(hip, hip.function(module, f"k{n}"), rows, 64))
            counted.append(_counters(hip))
    return found, counted


def _counters(hip: Hip) -> dict[str, int]:
    text = ctypes.c_void_p()
    hip.call("netraSimCounters", ctypes.byref(text))
    counters: dict[str, int] = json.loads(ctypes.string_at(text.value or 0))
    hip.library.netraSimFree(text)
    return counters


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    """Random bits: NaNs, infinities, denormals of every format among them."""
    rng = np.random.default_rng(31)
    return rng.integers(0, 1 << 32, (ROWS, 64), np.uint64).astype(np.uint32)


@pytest.fixture(scope="module")
def code(assemble: Callable[..., Path]) -> Path:
    return assemble(code_object("gfx950", 64, LINES))


@pytest.mark.parametrize(("name", "value", "words"), [
    ("NETRA_SIM_MATRIX_MODEL", "fast", "none of fma_chain, tr_fdpa, gfx11_dot2, exact"),
    ("NETRA_SIM_SWITCHES", "d16=zero", "no switch is called 'd16'"),
    ("NETRA_SIM_SWITCHES", "d16_vmem=one", "d16_vmem is zero or preserve, not 'one'"),
    ("NETRA_SIM_HOST", "v4", "'v4' is neither base nor v3"),
])
def test_unknown_settings_fail_every_launch(
    sim_library: Path, tmp_path: Path, code: Path, rows: np.ndarray, name: str, value: str,
    words: str,
) -> None:
    with sim_kernels.private_simulator(sim_library, tmp_path, "gfx950", **{name: value}) as hip:
        function = hip.function(hip.load_module(code), "k0")
        for _ in range(2):
            with pytest.raises(Exception, match="LaunchFailure"):
                run(hip, function, rows, 64)
            assert name in hip.last_fault() and words in hip.last_fault()
            hip.library.netraSimReset()


@pytest.mark.parametrize(("model", "expected"),
                         [("fma_chain", -0.875), ("tr_fdpa", -0.5), ("exact", -0.875)])
def test_models(
    sim_library: Path, tmp_path: Path, code: Path, model: str, expected: float
) -> None:
    """F16 against exact integers on random and special factors, and the vector that tells the
    CDNA generations apart, in row 0."""
    rng = np.random.default_rng(3)
    a, b = (rng.integers(0, 1 << 16, (16, 16)).astype(np.uint16).view(np.float16) for _ in "ab")
    a[8:], b[8:] = rng.normal(size=(8, 16)), rng.normal(size=(8, 16))
    c = rng.normal(size=(16, 16)).astype(np.float32)
    a[0], b[0] = 0, 0
    a[0, :4], b[0, :4], c[0, 0] = [-(2.0**13), -0.5, -0.25, -0.125], [2.0**10, 1, 1, 1], 2.0**23
    data = np.zeros((ROWS, 64), np.uint32)
    lane = np.arange(64)
    for at, x in ((A, a), (B, b)):
        for v in range(2):
            k = 4 * (lane // 16) + 2 * v
            halves = np.stack([x[lane % 16, k], x[lane % 16, k + 1]], axis=1)
            data[at + v] = np.ascontiguousarray(halves).view(np.uint32)[:, 0]
    for v in range(4):
        data[C + v] = c[4 * (lane // 16) + v, lane % 16].view(np.uint32)
    found, _ = _results(sim_library, tmp_path / "m", code, data, NETRA_SIM_MATRIX_MODEL=model)
    checked = 0
    for v in range(4):
        got = found[0][v].view(np.float32)
        for n in range(64):
            i, j = 4 * (n // 16) + v, n % 16
            x, y = [float(z) for z in a[i]], [float(z) for z in b[j]]
            want = {"fma_chain": fma_chain, "exact": exact,
                    "tr_fdpa": lambda p, q, r: tr_fdpa(p, q, r, False)}[model](x, y, float(c[i, j]))
            same = np.isnan(got[n]) if np.isnan(want) else got[n] == want
            assert same, f"{model} {i},{j}: {got[n]!r}, expected {want!r}"
            checked += 1
            if np.all(np.isfinite(x + y)) and i >= 8 and j >= 8:
                # Each product and the accumulator lose less than 2^-24 of the largest term.
                terms = [p * q for p, q in zip(x, y, strict=True)]
                largest = max(abs(float(c[i, j])), *(abs(t) for t in terms), abs(float(want)))
                bound = 2 * 10 * 2.0 ** (np.ceil(np.log2(largest)) + 2 - 24)
                assert abs(float(got[n]) - (sum(terms) + float(c[i, j]))) <= bound
    assert found[0][0].view(np.float32)[0] == np.float32(expected)
    print(f"{model}: {checked} elements against exact integers")
