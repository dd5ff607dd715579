"""Where results go that are not plain VGPRs or SGPRs: VCC, EXEC, trap registers, kept halves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import lanes as machine
import numpy as np
import pytest
from lanes import IDS, TARGETS, Bench, Case, State

Benches = dict[tuple[str, int], Bench]


@pytest.fixture(scope="module")
def benches(
    assemble: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Benches]:
    with machine.benches(assemble, tmp_path_factory.mktemp("state")) as found:
        yield found


@pytest.fixture(params=TARGETS, ids=IDS)
def bench(request: pytest.FixtureRequest, benches: Benches) -> Bench:
    return benches[request.param]


def start(bench: Bench, seed: int) -> State:
    return State.random(bench.lanes, np.random.default_rng(seed))


def test_vcc_is_a_destination_of_scalar_loads(bench: Bench) -> None:
    words = np.array([0x01234567, 0x89ABCDEF], np.uint32)
    data = bench.buffer(words.tobytes())
    before = start(bench, 1)
    before.set_s(16, data, 2)
    want = before.copy()
    want.vcc = 0x89ABCDEF01234567
    load = "s_load_b64" if bench.gfx11 else "s_load_dwordx2"
    bench.check([Case(f"{load} vcc, s[16:17], 0x0", before, want)])


def test_trap_temporaries_read_zero_and_drop_writes(bench: Bench) -> None:
    before = start(bench, 2)
    want = before.copy()
    want.set_s(20, 0)
    bench.check([Case("s_mov_b32 ttmp3, s21\n s_mov_b32 s20, ttmp3", before, want)])


def test_cmpx_class_writes_exec_and_on_gfx950_its_mask(bench: Bench) -> None:
    before = start(bench, 3)
    before.v[1] = 0x3F800000  # 1.0: positive normal, class bit 8
    before.v[1][::3] = 0x7FC00000
    bits = sum(1 << lane for lane in range(bench.lanes) if lane % 3)
    want = before.copy()
    want.exec = bits
    line = "v_cmpx_class_f32_e64 s[20:21], v1, s22"
    if bench.gfx11:
        line = "v_cmpx_class_f32_e64 v1, s22"
    else:
        want.set_s(20, bits, 2)
    for state in (before, want):
        state.set_s(22, 1 << 8)
    bench.check([Case(line, before, want)])


def test_fp8_conversion_keeps_the_other_half(benches: Benches) -> None:
    bench = benches["gfx950", 64]
    cases = []
    for high in (False, True):
        before = start(bench, 4)
        # 1.0 -> 0x38; 464 is the tie between 448 and what would be 480, and goes to 448 = 0x7e.
        before.v[1], before.v[2] = 0x3F800000, 0x43E80000
        want = before.copy()
        keep = want.v[3] & (0xFFFF if high else 0xFFFF0000)
        want.v[3] = keep | 0x7E38 << (16 if high else 0)
        line = "v_cvt_pk_fp8_f32 v3, v1, v2" + (" op_sel:[0,0,1]" if high else "")
        cases.append(Case(line, before, want))
    bench.check(cases)
