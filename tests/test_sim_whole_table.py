"""No row of the table of semantics is without a test.

The modules below drive rows through assembled text and note which; this one is collected after them
(files run in the order of their names) and asks what is left.  In a run that leaves one of them
out, or a part of it, nothing is asked.
"""

from __future__ import annotations

import netra_sim
import pytest
from driven import DRIVEN, key_of

MODULES = {
    f"test_sim_{name}"
    for name in ("atomics", "dot", "ds", "flat", "formats", "lanes", "modifiers", "mubuf", "narrow",
                 "salu", "smem", "sopp", "state", "valu")
}
NOTED = ("sop1", "sop2", "sopc", "sopk", "sopp", "smem", "ds", "flat", "global", "scratch", "mubuf",
         "mtbuf", "vop1", "vop2", "vop3", "vop3p", "vopc", "vopd")
# MFMA and WMMA walk over tables of shapes of their own: test_sim_matrix.py.
OTHERS = {"mfma", "wmma"}
# Always a fault: test_sim_sopp.py.
FAULTS = {"s_code_end"}


@pytest.mark.parametrize("arch", ["gfx950", "gfx1151"])
def test_every_row_was_driven(arch: str, request: pytest.FixtureRequest) -> None:
    options = request.config.option
    whole = not (options.keyword or options.markexpr or getattr(options, "lf", False)
                 or any("::" in a for a in request.config.args))
    collected = {item.module.__name__ for item in request.session.items}
    if not whole or not MODULES <= {name.rpartition(".")[2] for name in collected}:
        pytest.skip("needs all of " + ", ".join(sorted(MODULES)))
    rows = [r for r in netra_sim.rows() if arch in r["archs"]]
    assert {r["class"] for r in rows} <= set(NOTED) | OTHERS
    left = sorted({
        r["name"] + " returning" * r["returns"] + " lds" * r["lds"] for r in rows
        if r["class"] in NOTED and key_of(r) not in DRIVEN[arch]
        and r["name"] not in FAULTS
    })
    assert not left, f"{arch}: rows that no test drives: {', '.join(left)}"
