"""The one-hot probes of every matrix instruction, on the simulator."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sim_kernels
from netra_harness.probes import matrix_layouts as layouts
from netra_harness.probes import runner
from netra_harness.probes.matrix_layouts import Shape
from netra_sim.hip import Hip

DEVICES = ("gfx950", "gfx1151")
GROUPS = (("gfx950", 64), ("gfx1151", 32), ("gfx1151", 64))


@pytest.fixture(scope="module")
def hip(sim_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hip]:
    folder = tmp_path_factory.mktemp("sim")
    with sim_kernels.private_simulator(sim_library, folder, ",".join(DEVICES)) as opened:
        yield opened


def of(arch: str, lanes: int) -> list[Shape]:
    return [s for s in layouts.shapes() if (s.arch, s.lanes) == (arch, lanes)]


@pytest.mark.parametrize(("arch", "lanes"), GROUPS)
def test_every_element_lies_where_it_is_published(
    arch: str, lanes: int, hip: Hip, tmp_path: Path
) -> None:
    hip.call("hipSetDevice", DEVICES.index(arch))
    shapes = of(arch, lanes)
    module = hip.load_module(runner.assemble(shapes, tmp_path))
    differences, count = [], 0
    for n, s in enumerate(shapes):
        steps = layouts.steps(s)
        found = runner.run(hip, hip.function(module, f"k{n}"), s, steps)
        differences += [found.text] if found else []
        count += len(steps)
    assert not differences, "\n".join(differences)
    print(f"\nprobes {arch}, {lanes} lanes: {count} steps of {len(shapes)} instructions")


def test_all_matrix_instructions_are_probed() -> None:
    import netra_sim

    probed = {s.name for s in layouts.shapes()}
    known = {r["name"] for r in netra_sim.rows() if r["class"] in ("mfma", "wmma")}
    assert probed == known


@pytest.mark.parametrize(
    "name", ["v_mfma_f32_16x16x128_f8f6f4", "v_smfmac_f32_16x16x64_f16", "v_wmma_f32_16x16x16_f16"]
)
def test_a_wrong_layout_is_noticed(
    name: str, hip: Hip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mistakes that are made: one run of k in eight registers; rows of C one after another."""
    s = next(s for s in layouts.shapes() if s.name == name)
    hip.call("hipSetDevice", DEVICES.index(s.arch))
    function = hip.function(hip.load_module(runner.assemble([s], tmp_path)), "k0")

    def one_run(s: Shape, kind: str, count: int, block: int, row: int, k: int) -> tuple[int, int]:
        group, element = divmod(k, s.blocks * s.m * count // s.lanes)
        return (group * s.blocks + block) * s.m + row, element

    right = layouts.place
    if s.kind == "wmma":
        monkeypatch.setattr(layouts, "result",
                            lambda s, v, lane: (0, v + lane // 16 * 8, lane % 16))
    else:  # of B alone: the same mistake in A and B would multiply the same pairs
        monkeypatch.setattr(layouts, "place", lambda s, kind, count, block, row, k: (
            one_run if count == s.k and _is_b[0] else right)(s, kind, count, block, row, k))
    _is_b = [False]
    original = layouts._set

    def mark(s: Shape, words: object, first: int, *rest: object) -> None:
        _is_b[0] = first == layouts.B
        original(s, words, first, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(layouts, "_set", mark)
    assert runner.run(hip, function, s, layouts.steps(s)) is not None


@pytest.mark.parametrize("m", [16, 32])
@pytest.mark.parametrize(("a", "b"), [("fp8", "fp8"), ("fp8", "bf8"), ("bf8", "bf8")])
def test_scales_show_a_mistake_that_a_and_b_share(
    m: int, a: str, b: str, hip: Hip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One run of k in the eight registers of both 8-bit operands: their products stay the same."""
    hip.call("hipSetDevice", 0)
    chosen = [s for s in of("gfx950", 64) if "f8f6f4" in s.name and (s.m, s.a, s.b) == (m, a, b)]
    assert [s.kind for s in chosen] == ["dense", "scaled"]
    module = hip.load_module(runner.assemble(chosen, tmp_path))

    def one_run(s: Shape, kind: str, count: int, block: int, row: int, k: int) -> tuple[int, int]:
        group, element = divmod(k, s.m * count // s.lanes)
        return group * s.m + row, element

    monkeypatch.setattr(layouts, "place", one_run)
    found = [runner.run(hip, hip.function(module, f"k{n}"), s, layouts.steps(s))
             for n, s in enumerate(chosen)]  # fmt: skip
    assert found[0] is None  # nothing can show it without scales
    assert found[1] is not None
