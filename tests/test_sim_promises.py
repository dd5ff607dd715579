"""What a run says of its numbers: instructions that are exact, within one ulp, or of a model."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable
from pathlib import Path

import netra_sim
import pytest
import sim_kernels

BODY = """
        v_mov_b32       v1, 1.0
        v_mov_b32       v2, 1.0
        v_exp_f32       v3, v1
        v_rcp_f32       v3, v1
        v_rcp_f64       v[4:5], v[4:5]
        v_mfma_f32_4x4x4_16b_f16 v[4:7], v[0:1], v[2:3], v[4:7]
        v_mfma_i32_4x4x4_16b_i8 v[4:7], v0, v1, v[4:7]
        v_mad_f16       v1, v2, v2, v2
        v_dot2_f32_f16  v1, v2, v2, v1
        v_dot4_i32_i8   v1, v2, v2, v1
        v_cvt_sr_f16_f32 v1, v2, v2
        v_cvt_sr_fp8_f32 v1, v2, v2
        s_endpgm
"""


def test_a_launch_counts_them(
    sim_library: Path, assemble: Callable[..., Path], tmp_path: Path
) -> None:
    with sim_kernels.private_simulator(sim_library, tmp_path, "gfx950") as hip:
        module = hip.load_module(assemble(sim_kernels.kernel("k", BODY, (), 8), "gfx950"))
        hip.launch(hip.function(module, "k"), (3, 1, 1), (64, 1, 1), bytes(8))
        hip.synchronize()
        text = ctypes.c_void_p()
        hip.call("netraSimCounters", ctypes.byref(text))
        counters = json.loads(ctypes.string_at(text.value or 0))
    assert counters["numerics.model"] == 3 * 4
    assert counters["numerics.within_1_ulp"] == 3 * 3
    assert counters["instructions"] == 3 * 13
    kinds = ("exact", "within_1_ulp", "model")
    assert sum(counters[f"numerics.{kind}"] for kind in kinds) == counters["instructions"]


@pytest.mark.parametrize(
    "promise, names",
    [
        ("within_1_ulp", ("v_exp_f32", "v_sin_f16", "v_rsq_f64", "v_sqrt_f32")),
        ("model", ("v_mfma_f32_16x16x32_fp8_fp8", "v_smfmac_f32_16x16x32_f16", "v_mac_f16",
                   "v_wmma_f32_16x16x16_bf16", "v_dot2_bf16_bf16", "v_mfma_f64_16x16x4_f64")),
        ("exact", ("v_fma_f32", "v_wmma_i32_16x16x16_iu8", "v_cvt_pk_fp8_f32", "s_add_u32",
                   "v_smfmac_i32_16x16x64_i8", "global_atomic_add_f32", "v_div_fixup_f64")),
    ],
)  # fmt: skip
def test_rows(promise: str, names: tuple[str, ...]) -> None:
    of = {row["name"]: row["promise"] for row in netra_sim.rows()}
    assert {name: of[name] for name in names} == dict.fromkeys(names, promise)
