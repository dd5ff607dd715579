"""Mutants: what is made of an instruction, which waits may go, and what a run counts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import Result
from harness_root import SmallRoot, runner
from netra_catalog import select
from netra_harness.cli import main
from netra_harness.errors import NetraError
from netra_harness.mutation import assembly, campaign, decoded, source, table, waits
from netra_harness.mutation.operators import mutants

ROOT = Path(__file__).resolve().parents[1]
KERNELS = sorted(ROOT.glob("asm/gfx*/*.s"))
SOME = [p for p in KERNELS if p.stem in ("silu_mul_bf16", "smallm_router_bf16", "gemm_fp8_bf16")]
WAVES = {"gfx950": 64, "gfx1151": 32}


@pytest.mark.parametrize("path", KERNELS, ids=[f"{p.parent.name}/{p.stem}" for p in KERNELS])
def test_an_instruction_is_written_as_it_was_read(path: Path) -> None:
    lines = [line.text for line in source.whole(path, ROOT / "asm" / "include")]
    found = list(source.instructions("\n".join(lines)))
    assert len(found) > 20
    for insn in found:
        assert insn.text().split() == lines[insn.line - 1].split()


@pytest.mark.parametrize(
    "line, operands, modifiers",
    [
        ("        s_endpgm", (), ""),
        ("        s_waitcnt       vmcnt(0) lgkmcnt(0)", ("vmcnt(0)",), " lgkmcnt(0)"),
        ("        global_load_dword v[vX], v[vOff], s[sA:sA+1] offset:16 sc0  // why",
         ("v[vX]", "v[vOff]", "s[sA:sA+1]"), " offset:16 sc0"),
        ("        v_max3_f32      v[vA], |v[vY+2]|, -v1, s3",
         ("v[vA]", "|v[vY+2]|", "-v1", "s3"), ""),
        ("        v_mov_b32_dpp   v0, v1 quad_perm:[1,0,3,2] row_mask:0xf",
         ("v0", "v1"), " quad_perm:[1,0,3,2] row_mask:0xf"),
    ],
)  # fmt: skip
def test_operands(line: str, operands: tuple[str, ...], modifiers: str) -> None:
    insn = source.parse(1, line)
    assert insn is not None
    assert (insn.operands, insn.modifiers) == (operands, modifiers)


def _program(*texts: str) -> decoded.Program:
    """One instruction each 8 bytes; `@N` after a branch is the index it goes to."""
    rows = ["0000000000001000 <k>:"]
    for i, text in enumerate(texts):
        code, _, target = text.partition("@")
        to = f" <k+{int(target) * 8:#x}>" if target else ""
        rows.append(f"\t{code.strip()}    // {0x1000 + 8 * i:012X}: 00000000{to}")
    return decoded.program("\n".join(rows), "k")


LOAD, USE = "global_load_dword v1, v0, s[4:5]", "v_add_f32_e32 v2, v1, v1"


@pytest.mark.parametrize(
    "name, texts, at, needless",
    [
        ("needed", (LOAD, "s_waitcnt vmcnt(0)", USE), 1, False),
        ("twice", (LOAD, "s_waitcnt vmcnt(0)", "s_waitcnt vmcnt(0)", USE), 1, True),
        ("nothing outstanding", ("v_mov_b32_e32 v1, 0", "s_waitcnt vmcnt(0)", USE), 1, True),
        ("overwritten early",
         (LOAD, "s_waitcnt vmcnt(0)", "v_mov_b32_e32 v1, 0"), 1, False),
        ("needed round the loop",
         ("s_waitcnt vmcnt(0)", USE, LOAD, "s_cbranch_scc1 0 @0"), 0, False),
        ("a younger load covers it",
         (LOAD, LOAD.replace("v1", "v3"), "s_waitcnt vmcnt(1)", "s_waitcnt vmcnt(0)", USE),
         2, True),
        ("scalar loads come in any order",
         ("s_load_dword s0, s[4:5], 0x0", "s_load_dword s1, s[4:5], 0x4", "s_waitcnt lgkmcnt(0)",
          "s_add_u32 s2, s0, 1"), 2, False),
        ("a store that a barrier publishes",
         ("ds_write_b32 v0, v1", "s_waitcnt lgkmcnt(0)", "s_barrier"), 1, False),
        ("a store that nobody waits for", ("global_store_dword v0, v1, s[4:5]",
                                            "s_waitcnt vmcnt(0)"), 1, True),
    ],
)  # fmt: skip
def test_needless_waits(name: str, texts: tuple[str, ...], at: int, needless: bool) -> None:
    assert _needless("gfx950", texts, at) is needless


def _needless(arch: str, texts: tuple[str, ...], at: int, instead: str = "") -> bool:
    """Is the program the same with `instead` at the index `at`, or without that instruction?"""
    other = [*texts[:at], *([instead] if instead else []), *texts[at + 1 :]]
    return bool(waits.needless(_program(*texts, "s_endpgm"), _program(*other, "s_endpgm"), arch))


def test_counts_that_still_cover_the_load() -> None:
    texts = (LOAD, "ds_read_b32 v4, v0", "s_waitcnt vmcnt(0) lgkmcnt(0)", USE)
    assert _needless("gfx950", texts, 2, "s_waitcnt vmcnt(0) lgkmcnt(1)")
    assert not _needless("gfx950", texts, 2, "s_waitcnt vmcnt(1) lgkmcnt(0)")


def test_included_code_is_part_of_the_kernel(tmp_path: Path) -> None:
    """A file of macros stays included; `places` lead back to where a line stands."""
    (tmp_path / "body.inc").write_text("// two\n        v_mov_b32 v1, 0\n        s_nop 1\n")
    (tmp_path / "macros.inc").write_text(".macro m\n        s_nop 1\n.endm\n")
    kernel = tmp_path / "k.s"
    text = '#include "macros.inc"\n        s_nop 0\n        #include "body.inc"\n        s_nop 2\n'
    kernel.write_text(text)
    lines = source.whole(kernel, tmp_path)
    assert [line.text.strip() for line in lines] == [
        '#include "macros.inc"', "s_nop 0", "// two", "v_mov_b32 v1, 0", "s_nop 1", "s_nop 2"
    ]  # fmt: skip
    assert [(line.path.name, line.number) for line in lines[3:]] == [
        ("body.inc", 2), ("body.inc", 3), ("k.s", 4)
    ]  # fmt: skip


DMA = "global_load_lds_dword v0, s[4:5]"


@pytest.mark.parametrize(
    "name, texts, at, needless",
    [
        ("a scalar load may pass a barrier",
         ("s_load_dword s0, s[4:5], 0x0", "s_waitcnt lgkmcnt(0)", "s_barrier",
          "s_waitcnt lgkmcnt(0)", "s_add_u32 s1, s0, 1"), 1, True),
        ("not one of LDS",
         ("ds_read_b32 v1, v0", "s_waitcnt lgkmcnt(0)", "s_barrier", "s_waitcnt lgkmcnt(0)", USE),
         1, False),
        ("loads into LDS are left alone",
         (DMA, "s_load_dword s0, s[4:5], 0x0", "s_waitcnt lgkmcnt(0)", "s_waitcnt lgkmcnt(0)",
          "s_add_u32 s1, s0, 1", "ds_read_b32 v2, v0"), 2, True),
        ("and not proved", (DMA, "s_waitcnt vmcnt(0)", "ds_read_b32 v2, v0"), 1, False),
    ],
)  # fmt: skip
def test_waits_at_barriers_and_for_lds(
    name: str, texts: tuple[str, ...], at: int, needless: bool
) -> None:
    assert _needless("gfx950", texts, at) is needless


def test_other_instructions_are_not_waits() -> None:
    texts = (LOAD, "s_waitcnt vmcnt(0)", USE)
    assert not _needless("gfx950", texts, 2, "v_add_f32_e32 v3, v1, v1")


def test_stores_have_their_own_counter_on_gfx1151() -> None:
    store = "global_store_b32 v0, v1, s[4:5]"
    assert not _needless("gfx1151", (store, "s_waitcnt_vscnt null, 0x0", "s_barrier"), 1)


def test_unknown_paths_prove_nothing() -> None:
    assert not _needless("gfx950", (LOAD, "s_waitcnt vmcnt(0)", "s_setpc_b64 s[0:1]"), 1)


@pytest.mark.parametrize("path", SOME, ids=[f"{p.parent.name}/{p.stem}" for p in SOME])
def test_every_instruction_has_its_own_line(path: Path) -> None:
    """Those of repetitions and macros too: the line holds the same mnemonic, or calls a macro of
    an included file."""
    text = path.read_text()
    lines = text.splitlines()
    program = assembly.decode(text, path.parent.name, path.stem, WAVES[path.parent.name])
    by_line = {insn.line: insn.mnemonic for insn in source.instructions(text)}
    ends = [insn for insn in program.code if insn.mnemonic == "s_endpgm"]
    others = [insn for insn in program.code if insn.mnemonic != "s_endpgm"]
    assert len(ends) >= 1 and len(others) > 20
    for insn in others:
        if insn.line not in by_line:
            assert re.match(r" +[a-z]\w+ ", lines[insn.line - 1])
            continue
        assert re.sub(r"_(e32|e64|dpp|sdwa)$", "", by_line[insn.line]) == insn.mnemonic


def test_uses_that_come_too_early() -> None:
    """In a repetition the wait moves within it; a wait that nothing needs has no such mutant."""
    kernel = campaign.load("gfx950", "argmax_f32_stage1")
    made = {m.line: m.after for m in mutants(kernel) if m.operator == "use-early"}
    lines = {m.line: kernel.text[m.line - 1].split() for m in mutants(kernel)}
    waiting = [n for n, words in lines.items() if words[:1] == ["s_waitcnt"]]
    assert sorted(made) == sorted(waiting) and len(made) == 2
    for line, after in made.items():
        user = kernel.text[int(after.split()[-1]) - 1].split()[0]
        assert user == {"lgkmcnt(0)": "s_add_u32", "vmcnt(7-g)": "v_maximum3_f32"}[lines[line][1]]


TABLE = ROOT / "docs" / "mutation.md"


def test_the_kill_table_names_every_tactic() -> None:
    """`netra-harness mutate TACTIC --table docs/mutation.md` writes a row; a tactic without one is
    named as not run yet."""
    rows = table.rows_of(TABLE.read_text())
    waiting = table.not_run(TABLE.read_text())
    assert set(rows) | waiting == {t.id for t in select("*")} and not set(rows) & waiting
    assert len(rows) >= 25
    for name, line in rows.items():
        counts = table.counts_of(line)
        assert sum(map(sum, counts.values())) > 15, name
        made = table.row({"tactic": name, "operators": {
            operator: dict(zip(("killed", "equivalent", "survived"), one, strict=True))
            for operator, one in counts.items()
        }})  # fmt: skip
        assert made == line, "its shares do not follow from its counts"


def test_rows_are_written_and_others_kept(tmp_path: Path) -> None:
    path = tmp_path / "doc.md"
    path.write_text(f"before\n{table.BEGIN}\n{table.END}\nafter\n")
    one = {"tactic": "gfx950/one", "operators": {
        "wait-drop": {"killed": 3, "equivalent": 1, "survived": 0},
        "constant": {"killed": 19, "equivalent": 0, "survived": 1},
    }}  # fmt: skip
    other = {"tactic": "gfx950/other", "operators": {
        "wait-drop": {"killed": 0, "equivalent": 4, "survived": 0},
    }}  # fmt: skip
    table.merge(path, [one, other], {"gfx950/one", "gfx950/other"})
    text = path.read_text()
    assert text.startswith("before\n") and text.endswith("\nafter\n")
    assert "| gfx950/one | 3/1/0 |" in text and "| 19/0/1 | 100% | 95.6% |" in text
    assert "| wait-drop | 3 | 5 | 0 | 62.5% |" in text
    one["operators"]["wait-drop"]["killed"] = 4  # type: ignore[index]
    table.merge(path, [one], {"gfx950/one", "gfx950/new"})
    assert set(table.rows_of(path.read_text())) == {"gfx950/one"}
    assert table.not_run(path.read_text()) == {"gfx950/new"}
    assert "| gfx950/one | 4/1/0 |" in path.read_text()
    path.write_text("no table")
    with pytest.raises(NetraError, match="no place for the table"):
        table.merge(path, [one], set())


@pytest.fixture
def mutate(
    tmp_path: Path, llvm_bin: Path, sim_library: Path, monkeypatch: pytest.MonkeyPatch
) -> Result:
    """The fixture kernel of both targets, with one wait more than it needs on gfx950."""
    root = SmallRoot(tmp_path, llvm_bin)
    (tmp_path / "tools").symlink_to(ROOT / "tools")
    wait = "        s_waitcnt       lgkmcnt(0)\n"
    root.add("gfx950", "gain_f32", lambda text: text.replace(wait, wait + wait, 1))
    root.add("gfx1151", "gain_f32")
    monkeypatch.setenv("NETRA_ROOT", str(tmp_path))
    monkeypatch.setenv("NETRA_SIM_LIBRARY", str(sim_library))
    return runner().invoke(main, ["mutate", "--json"])


def test_a_run_counts_every_mutant(mutate: Result) -> None:
    form = json.loads(mutate.stdout)
    by_arch = {t["tactic"].split("/")[0]: t for t in form["tactics"]}
    assert set(by_arch) == {"gfx950", "gfx1151"}
    for report in by_arch.values():
        counts = report["operators"]
        assert counts["tail-off-by-one"] == {"killed": 1, "equivalent": 0, "survived": 0}
        assert counts["constant"]["killed"] >= 2
        survived = sum(c["survived"] for c in counts.values())
        assert survived == len(report["survivors"])
        assert all(s["line"] and s["before"] != s["after"] for s in report["survivors"])
        assert all(s["place"].endswith(f".s:{s['line']}") for s in report["survivors"])
    twice = by_arch["gfx950"]["operators"]["wait-drop"]["equivalent"]
    assert twice == 2, "either of two equal waits can go"
    assert by_arch["gfx1151"]["operators"]["wait-drop"]["equivalent"] == 0
    assert mutate.exit_code == (0 if all(t["passed"] for t in form["tactics"]) else 1)
