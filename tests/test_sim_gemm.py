"""Blocked bf16 products compiled by clang, on both targets: whole tiles through LDS and matrices.

Exact on small integers, whatever the adder; within the bound of one rounding a term otherwise. Any
schedule gives the same bits, and the watched run has nothing to say. gfx950's own FP8 product is
the catalog's gemm_fp8_bf16; here FP8 is widened on the way in, as gfx1151 has to do it.
"""

from __future__ import annotations

import ctypes
import json
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import sim_kernels
from netra_sim.hip import Hip

PROGRAM = Path(__file__).resolve().parent / "programs" / "gemm_bf16.c"
WAVE = {"gfx950": 64, "gfx1151": 32}
SIZES = ((128, 128, 256), (64, 192, 320))  # M, N, K
BF16, FP8 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn


@pytest.fixture(scope="module")
def hip(sim_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hip]:
    folder = tmp_path_factory.mktemp("sim")
    with sim_kernels.private_simulator(sim_library, folder, ",".join(WAVE)) as opened:
        yield opened


def compiled(llvm: Path, folder: Path, arch: str, fp8: bool) -> Path:
    out = folder / f"gemm-{arch}-{fp8}.co"
    subprocess.run(
        [llvm / "clang", "--target=amdgcn-amd-amdhsa", f"-mcpu={arch}", "-nogpulib", "-O2",
         "-ffreestanding", "-fuse-ld=lld", f"-DWAVE={WAVE[arch]}", *(["-DFP8_B"] if fp8 else []),
         "-o", out, PROGRAM],
        check=True,
    )  # fmt: skip
    return out


def multiply(hip: Hip, function: int, arch: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    (m, k), n = a.shape, len(b)
    buffers = [hip.malloc(x) for x in (a.nbytes, b.nbytes, 4 * m * n)]
    try:
        hip.upload(buffers[0], a.tobytes())
        hip.upload(buffers[1], b.tobytes())
        hip.fill(buffers[2], 0xA5, 4 * m * n)
        hip.launch(function, (n // 64, m // 64, 1), (4 * WAVE[arch], 1, 1),
                   struct.pack("<QQQII", *buffers, n, k))  # fmt: skip
        hip.synchronize()
        return np.frombuffer(hip.download(buffers[2], 4 * m * n), np.float32).reshape(m, n)
    finally:
        for pointer in buffers:
            hip.free(pointer)


def findings(hip: Hip) -> list[dict[str, Any]]:
    text = ctypes.c_void_p()
    hip.call("netraSimFindings", ctypes.byref(text))
    found: list[dict[str, Any]] = json.loads(ctypes.string_at(text.value or 0))
    hip.library.netraSimFree(text)
    return found


@pytest.mark.parametrize("fp8", (False, True), ids=("bf16", "fp8 widened"))
@pytest.mark.parametrize("arch", WAVE)
def test_product(arch: str, fp8: bool, hip: Hip, llvm_bin: Path, tmp_path: Path) -> None:
    hip.call("hipSetDevice", list(WAVE).index(arch))
    function = hip.function(hip.load_module(compiled(llvm_bin, tmp_path, arch, fp8)), "gemm")
    rng = np.random.default_rng(64)
    elements = 0
    for m, n, k in SIZES:
        kind = FP8 if fp8 else BF16
        # One sign only: gfx1151's measured step is inexact where terms oppose each other.
        a, b = (rng.integers(0, 8, (rows, k)).astype(np.float32) for rows in (m, n))
        got = multiply(hip, function, arch, a.astype(BF16), b.astype(kind))
        assert np.array_equal(got, a @ b.T)

        a, b = (rng.standard_normal((rows, k), dtype=np.float32) for rows in (m, n))
        a, b = a.astype(BF16), b.astype(kind)
        hip.library.netraSimSetChecked(1)
        try:
            got = multiply(hip, function, arch, a, b)
            # clang adds registers that nothing wrote where it drops the high half of the sum.
            found = [f for f in findings(hip) if f["kind"] != "init"]
            assert found == [], json.dumps(found, indent=1)
        finally:
            hip.library.netraSimSetChecked(0)
        wide, other = a.astype(np.float64), b.astype(np.float64)
        # Every step may lose one unit of 2^-23 of the largest sum of magnitudes so far.
        bound = (k + 2) * 2.0**-23 * (np.abs(wide) @ np.abs(other).T)
        assert (np.abs(got - wide @ other.T) <= bound).all()
        for seed in (1, 2, 3):
            hip.call("netraSimSetSeed", ctypes.c_uint64(seed), ctypes.c_int(1))
            again = multiply(hip, function, arch, a, b)
            hip.call("netraSimSetSeed", ctypes.c_uint64(0), ctypes.c_int(0))
            assert np.array_equal(again.view(np.uint32), got.view(np.uint32)), seed
        elements += 2 * m * n
    print(f"\ngemm {arch}{' fp8' if fp8 else ''}: {elements} elements of {len(SIZES)} shapes")
