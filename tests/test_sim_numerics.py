"""Settings of the simulator that are no setting: every launch fails and says which are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import sim_kernels
from matrix_programs import ROWS, code_object, run

F16 = "v_mfma_f32_16x16x16_f16 v[26:29], v[8:9], v[16:17], v[26:29]"


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    """Random bits: NaNs, infinities, denormals of every format among them."""
    rng = np.random.default_rng(31)
    return rng.integers(0, 1 << 32, (ROWS, 64), np.uint64).astype(np.uint32)


@pytest.fixture(scope="module")
def code(assemble: Callable[..., Path]) -> Path:
    return assemble(code_object("gfx950", 64, [F16]))


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
