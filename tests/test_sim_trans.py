"""The transcendental unit, sampled more densely than the other rows: f32 is correctly rounded.

Every f32 argument of rsq (all mantissas of two binades), exp2 and log2 was walked once against long
double; the two arguments of exp2 that need more than double are among the samples here.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import pytest
import sim_kernels
import sim_rows
import trans
from netra_sim.hip import Hip
from sim_rows import LANES, THREADS
from softfloat import Mode, encode

ARCHES = ("gfx950", "gfx1151")
FUNCTIONS = ("rcp", "sqrt", "rsq", "exp", "log", "sin", "cos")
REPEATS = 8
EDGES = (
    0, 1, 0x007FFFFF, 0x00800000, 0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x7F7FFFFF, 0x7F800000,
    0x7F800001, 0x7FC12345, 0x7E800000, 0x7E800001, 0x33800000, 0x337FFFFF, 0x3E800000, 0x3F000000,
    0x3F400000, 0x4B000000, 0x4AFFFFFF, 0x42FE0000, 0x42FC0000, 0x42FC0001, 0x43000000, 0x42FFFFFF,
    0x3B429D37, 0x3CF3A937,  # exp2 of the first, and of minus the second: hard to round
)


@pytest.fixture(scope="module")
def hip(sim_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hip]:
    folder = tmp_path_factory.mktemp("sim")
    with sim_kernels.private_simulator(sim_library, folder, ",".join(ARCHES)) as hip:
        yield hip


def arguments(name: str) -> list[int]:
    rng = random.Random(name)
    made = [e | sign << 31 for e in EDGES for sign in (0, 1)]
    while len(made) < REPEATS * THREADS:
        size = Fraction(rng.getrandbits(24), 1 << 17) if name in ("exp", "sin", "cos") else \
            Fraction(rng.getrandbits(24) + 1) * Fraction(2) ** rng.randrange(-60, 60)
        sign = rng.getrandbits(1) if name in ("exp", "sin", "cos", "rcp") else 0
        made.append(encode(size, "f32") | sign << 31)
    return made


@pytest.mark.parametrize("arch", ARCHES)
def test_functions(arch: str, hip: Hip, assemble: Callable[..., Path]) -> None:
    hip.call("hipSetDevice", ARCHES.index(arch))
    texts = [f"v_{name}_f32_e32 v8, v2" for name in FUNCTIONS for _ in range(REPEATS)]
    source = sim_rows.kernel(arch, texts, [False] * len(texts))
    function = hip.function(hip.load_module(assemble(source, arch)), "k")
    given = {name: arguments(name) for name in FUNCTIONS}
    values = [[(x, 0, 0, 0) for x in given[name][k * THREADS : (k + 1) * THREADS]]
              for name in FUNCTIONS for k in range(REPEATS)]
    # The unit ignores MODE: rounding up and keeping denormals changes nothing.
    mode = Mode(round32=1, round64=1)
    got = sim_rows.run(hip, function, values, mode=mode.bits(), exec_mask=(1 << LANES[arch]) - 1,
                       carry=0, lanes=LANES[arch])
    wrong = []
    for n, name in enumerate(FUNCTIONS):
        row = trans.ROWS[f"v_{name}_f32"]
        outcomes = [o.low for k in range(REPEATS) for o in got[n * REPEATS + k]]
        wrong += [f"{name}({x:#x}): got {have:#x}, want {row(Mode(), x):#x}"
                  for x, have in zip(given[name], outcomes, strict=False) if have != row(Mode(), x)]
    assert not wrong, "\n".join(wrong[:20])
