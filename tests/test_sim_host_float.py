"""The caller's floating-point mode is its own: it changes no result, and is left as it was."""

from __future__ import annotations

import ctypes
import platform
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sim_kernels

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="sets MXCSR")

PLAIN, FLUSH_AND_UP = 0x1F80, 0x1F80 | 0x8040 | 0x4000  # FTZ, DAZ, rounding up
# Denormal f32 and f16 operands, an FP8 denormal, a sum that rounds, a matrix of them all.
BODY = """
        s_load_dwordx2  s[4:5], s[0:1], 0x0
        v_lshlrev_b32   v1, 2, v0
        v_mov_b32       v2, 0x00400001
        v_mov_b32       v3, 0x00010001
        v_mov_b32       v4, 0x01010101
        v_mov_b32       v5, 0x3f800000
        v_mov_b32       v6, 0x33800001
        s_waitcnt       lgkmcnt(0)
        v_add_f32       v10, v2, v2
        v_cvt_f32_f16   v11, v3
        v_cvt_f32_fp8   v12, v4
        v_add_f32       v13, v5, v6
        v_mul_f32       v14, v5, v2
        v_mov_b32       v16, 0
        v_mov_b32       v17, v2
        v_mov_b32       v18, v6
        v_mov_b32       v19, v5
        s_nop           1
        v_mfma_f32_16x16x32_fp8_fp8 v[16:19], v[4:5], v[4:5], v[16:19]
        v_mov_b32       v20, v3
        v_mov_b32       v21, v3
        s_nop           15
        v_mfma_f32_4x4x4_16b_f16 v[20:23], v[20:21], v[20:21], v[16:19]
        s_nop           15
        v_rcp_f32       v24, v6
        v_exp_f32       v25, v6
""" + "".join(
    f"        global_store_dword v1, v{r}, s[4:5] offset:{256 * k}\n"
    for k, r in enumerate((*range(10, 15), *range(16, 26)))
) + "        s_endpgm\n"


@pytest.fixture(scope="module")
def mxcsr(c_compiler: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The register of this thread: `get()` and `set(bits)`."""
    folder = tmp_path_factory.mktemp("mxcsr")
    source = folder / "mxcsr.c"
    source.write_text("unsigned get(void) { return __builtin_ia32_stmxcsr(); }\n"
                      "void set(unsigned x) { __builtin_ia32_ldmxcsr(x); }\n")  # fmt: skip
    library = folder / "mxcsr.so"
    subprocess.run([c_compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    opened = ctypes.CDLL(str(library))
    before = opened.get()
    yield opened
    opened.set(before)


@pytest.mark.parametrize("seeded", (False, True))
def test_results_do_not_hang_on_the_callers_mode(
    seeded: bool, mxcsr: Any, sim_library: Path, assemble: Callable[..., Path], tmp_path: Path
) -> None:
    args = (("out", 0, 8, sim_kernels.POINTER),)
    source = sim_kernels.kernel("k", BODY, args, 8).replace("next_free_vgpr 8", "next_free_vgpr 32")
    source = source.replace("accum_offset 8", "accum_offset 32")
    source = source.replace(".vgpr_count: 8", ".vgpr_count: 32")
    size = 15 * 256
    with sim_kernels.private_simulator(sim_library, tmp_path, "gfx950") as hip:
        function = hip.function(hip.load_module(assemble(source, "gfx950")), "k")
        out = hip.malloc(size)
        if seeded:
            hip.call("netraSimSetSeed", ctypes.c_uint64(1), ctypes.c_int(1))
        got = {}
        for mode in (PLAIN, FLUSH_AND_UP):
            mxcsr.set(mode)
            try:
                hip.launch(function, (1, 1, 1), (64, 1, 1), struct.pack("<Q", out))
                hip.synchronize()
                left = mxcsr.get()
            finally:
                mxcsr.set(PLAIN)
            assert left & 0xFFC0 == mode & 0xFFC0
            got[mode] = np.frombuffer(hip.download(out, size), np.uint32)
    assert np.array_equal(got[PLAIN], got[FLUSH_AND_UP])
    assert got[PLAIN][128] == 0x3B000000  # FP8's smallest, 2^-9
