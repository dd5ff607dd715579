"""Required wait states: each row of the table, failing one below its figure and passing at it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import check_programs
import pytest
from check_programs import Case, case
from hazard_rows import REFUSED, STORE, XDL, XDL_A, Row, mm, rows
from netra_sim.hip import Hip
from sim_kernels import private_simulator


def nops(n: int) -> list[str]:
    """`n` wait states."""
    return [f"s_nop {min(n - k, 16) - 1}" for k in range(0, n, 16)]


def sweep(
    row: int, rule: str, producer: str, consumer: str, error: int, warn: int
) -> Iterator[tuple[Case, str]]:
    """Cases across both figures, each with what must be said: "error", "warning" or ""."""
    for n in sorted({0, max(error - 1, 0), error, max(warn - 1, 0), warn, warn + 1}):
        expected = "error" if n < error else "warning" if n < warn else ""
        yield (
            case(f"{row} {rule} {n}: {producer} -> {consumer}", producer, *nops(n), consumer),
            expected,
        )


@pytest.fixture(scope="module")
def hip(sim_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hip]:
    with private_simulator(
        sim_library, tmp_path_factory.mktemp("checks"), "gfx950,gfx1151"
    ) as found:
        yield found


@pytest.fixture(scope="module")
def told(hip: Hip, assemble: Callable[..., Path]) -> check_programs.Told:
    cases = [one for k, row in enumerate(rows()) for one, _ in sweep(k, *row)]
    found = check_programs.run(hip, assemble, "gfx950", cases, scratch=64)
    assert not found.fault
    return found


def verdict(told: check_programs.Told, name: str, rule: str) -> str:
    """The worst that was said under this rule; another rule is an answer to another question."""
    found = {
        f["severity"]
        for f in told.by_case[name]
        if f["kind"] == "wait_states" and f["rule"] == rule
    }
    return "error" if "error" in found else "warning" if found else ""


def test_every_row_changes_its_verdict_at_its_figure(told: check_programs.Told) -> None:
    wrong = []
    for k, row in enumerate(rows()):
        for one, expected in sweep(k, *row):
            got = verdict(told, one.name, row[0])
            if got != expected:
                wrong.append(f"{one.name}: {got or 'nothing'}, expected {expected or 'nothing'}")
    assert not wrong, "\n".join(wrong)


def test_what_needs_nothing_is_not_talked_about(told: check_programs.Told) -> None:
    wrong = []
    for k, (rule, producer, consumer, error, warn) in enumerate(rows()):
        for one, expected in sweep(k, rule, producer, consumer, error, warn):
            others = [f["rule"] for f in told.by_case[one.name] if f["kind"] == "wait_states"]
            if not expected and others and rule in ("none", "M25", "M17", "M11"):
                wrong.append(f"{one.name}: {others}")
    assert not wrong, "\n".join(wrong)


def test_every_row_of_the_table_is_swept(repo_root: Path) -> None:
    text = (repo_root / "sim/core/check/hazard_table.h").read_text()
    table = {line.split('"')[1] for line in text.splitlines() if line.startswith('    {"')}
    swept = {row[0] for row in [*rows(), *REFUSED] if row[4]}
    # Those of gfx1151 have a test of their own.
    assert table - swept == {"R1", "R2"}


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: f"{row[0]}")
def test_an_instruction_that_faults_is_checked_first(
    row: Row, hip: Hip, assemble: Callable[..., Path]
) -> None:
    for one, expected in sweep(0, *row):
        told = check_programs.run(hip, assemble, "gfx950", [one])
        assert verdict(told, one.name, row[0]) == expected, one.name


def test_the_finding_names_both_sides_and_the_cure(told: check_programs.Told) -> None:
    k, row = next((k, row) for k, row in enumerate(rows()) if row[0] == "M1")
    name = f"{k} M1 4: {row[1]} -> {row[2]}"
    (found,) = [f for f in told.by_case[name] if f["rule"] == "M1"]
    assert found["kernel"] == "k" and found["register"] == "v32"
    assert found["at"]["text"].startswith("v_mov_b32_e32 v200, v32")
    assert found["other"]["text"].startswith("v_mfma_f32_4x4x4")
    assert found["mend"] == "1 more wait state between the two: s_nop 0"
    assert found["certainty"] == "ISA + compiler"
    assert found["wave"] == 0 and found["workgroup"] == [0, 0, 0]


def test_other_instructions_count_one_each(hip: Hip, assemble: Callable[..., Path]) -> None:
    filler = [
        "s_waitcnt vmcnt(0)",
        "v_mov_b32 v210, v211",
        XDL_A.replace("v[32:33]", "v[64:65]"),
        "s_mov_b32 s30, 0",
        "s_nop 2",
    ]
    enough = case("seven and a store", mm(XDL[4]), *filler, "v_nop", STORE)
    short = case("one less", mm(XDL[4]), *filler, STORE)
    told = check_programs.run(hip, assemble, "gfx950", [enough, short])
    assert told.rules("seven and a store") == set()
    assert told.rules("one less") == {"M2"}


WMMA = "v_wmma_f32_16x16x16_f16 v[32:39], v[64:71], v[80:87], v[32:39]"
WMMA_A = "v_wmma_f32_16x16x16_f16 v[96:103], v[32:39], v[80:87], v[96:103]"
PERMLANE = "v_permlane16_b32 v200, v201, s16, s17"
GFX1151 = [
    ("R1", WMMA, [], WMMA_A, True),
    ("R1", WMMA, ["s_nop 7"], WMMA_A, True),
    ("R1", WMMA, ["v_nop"], WMMA_A, False),
    ("R1", WMMA, ["v_mov_b32 v200, 0"], WMMA_A, False),
    ("R1", WMMA, [], "v_wmma_f32_16x16x16_f16 v[96:103], v[64:71], v[80:87], v[32:39]", False),
    ("R1", WMMA, [], "v_mov_b32 v200, v32", False),
    ("R2", "v_cmpx_eq_u32 v0, v0", [], PERMLANE, True),
    ("R2", "v_cmpx_eq_u32 v0, v0", ["v_nop"], PERMLANE, True),
    ("R2", "v_cmpx_eq_u32 v0, v0", ["s_nop 7"], PERMLANE, True),
    ("R2", "v_cmpx_eq_u32 v0, v0", ["v_mov_b32 v202, 0"], PERMLANE, False),
    ("R2", "v_cmpx_eq_u32 v0, v0", [], "v_permlanex16_b32 v200, v201, s16, s17", True),
    ("R2", "s_mov_b32 exec_lo, -1", [], PERMLANE, False),
    ("none", "v_rcp_f32 v32, v16", [], "v_mov_b32 v200, v32", False),
    ("none", "v_readfirstlane_b32 s20, v16", [], "v_mov_b32 v200, s20", False),
]


def test_gfx1151_wants_a_valu_instruction_between(hip: Hip, assemble: Callable[..., Path]) -> None:
    hip.call("hipSetDevice", 1)
    try:
        cases = [
            case(f"{k}", producer, *between, consumer)
            for k, (_, producer, between, consumer, _) in enumerate(GFX1151)
        ]
        told = check_programs.run(hip, assemble, "gfx1151", cases)
        assert not told.fault
        for k, (rule, *_, wrong) in enumerate(GFX1151):
            found = [f["rule"] for f in told.by_case[f"{k}"] if f["kind"] == "wait_states"]
            assert found == ([rule] if wrong else []), GFX1151[k]
    finally:
        hip.call("hipSetDevice", 0)
