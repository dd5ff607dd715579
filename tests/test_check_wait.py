"""Wait counters: what a wait proves, and what a premature access is told and gets."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import check_programs
import pytest
from check_programs import Told, case
from netra_sim.hip import Hip
from sim_kernels import private_simulator
from spelling import BOTH, spell

GARBAGE = 0xFFF0DEAD

# (targets, instructions, rules of the errors; the wait that is asked for)
RAW, WAW = "C.4 RAW", "C.4 WAW"
ROWS: list[tuple[tuple[str, ...], str, set[str], str]] = [
    (BOTH, "load 200; use 200", {RAW}, "vmcnt(0)"),
    (BOTH, "load 200; vm 0; use 200", set(), ""),
    (BOTH, "load 200; vm 63; use 200", {RAW}, "vmcnt(0)"),  # all ones: no wait
    (BOTH, "load 200; lgkm 0; use 200", {RAW}, "vmcnt(0)"),  # the wrong counter
    (BOTH, "vm 0; load 200; use 200", {RAW}, "vmcnt(0)"),  # too early
    (BOTH, "load 200; load 201; load 202; vm 2; use 200", set(), ""),
    (BOTH, "load 200; load 201; load 202; vm 3; use 200", {RAW}, "vmcnt(2) or lower"),
    (BOTH, "load 200; load 201; load 202; vm 2; use 201", {RAW}, "vmcnt(1) or lower"),
    (BOTH, "load 200; buffer 201; vm 1; use 200", set(), ""),
    (("gfx950",), "load 200; store 16; vm 1; use 200", set(), ""),
    (("gfx1151",), "load 200; store 16; vm 1; use 200", {RAW}, "vmcnt(0)"),
    (("gfx1151",), "load 200; store 16; vs 0; use 200", {RAW}, "vmcnt(0)"),
    (("gfx950",), "load 200; atomic; vm 1; use 200", set(), ""),
    (("gfx1151",), "load 200; atomic; vm 1; use 200", {RAW}, "vmcnt(0)"),
    (BOTH, "fetch 200; use 200", {RAW}, "vmcnt(0)"),
    (BOTH, "fetch 200; vm 0; use 200", set(), ""),
    (BOTH, "load 200; set 200", {WAW}, "vmcnt(0)"),
    (BOTH, "load 200; load 200", set(), ""),
    (BOTH, "ds 200; load 200", {WAW}, "lgkmcnt(0)"),
    (BOTH, "load 200; ds 200", {WAW}, "vmcnt(0)"),
    (BOTH, "store 16; set 16", set(), ""),
    (BOTH, "store 16; load 16", set(), ""),
    (BOTH, "dswrite 16; set 16", set(), ""),
    (BOTH, "ds 200; ds 201; ds 202; lgkm 2; use 200", set(), ""),
    (BOTH, "ds 200; ds 201; ds 202; lgkm 3; use 200", {RAW}, "lgkmcnt(2) or lower"),
    (BOTH, "permute 200; use 200", {RAW}, "lgkmcnt(0)"),
    (BOTH, "ds 200; scalar 20; lgkm 1; use 200", {RAW}, "lgkmcnt(0)"),
    (BOTH, "ds 200; scalar 20; lgkm 0; use 200", set(), ""),
    (BOTH, "ds 200; ds 201; scalar 20; lgkm 1; use 200", set(), ""),
    (BOTH, "scalar 20; suse 20", {RAW}, "lgkmcnt(0)"),
    (BOTH, "scalar 20; ds 200; lgkm 1; suse 20", {RAW}, "lgkmcnt(0)"),
    (BOTH, "scalar 20; scalar 21; lgkm 1; suse 20", {RAW}, "lgkmcnt(0)"),
    (BOTH, "scalar 20; scalar 21; lgkm 0; suse 20", set(), ""),
    (BOTH, "scalar 20; sset 20", {WAW}, "lgkmcnt(0)"),
    (BOTH, "scalar 20; scalar 20", {WAW}, "lgkmcnt(0)"),
    (("gfx950",), "clock 20; suse 20", {RAW}, "lgkmcnt(0)"),
    (("gfx950",), "clock 20; lgkm 0; suse 21", set(), ""),
    (BOTH, "flat 200; use 200", {RAW}, "vmcnt(0) and lgkmcnt(0)"),
    (BOTH, "flat 200; vm 0; use 200", set(), ""),  # it went to memory: only a warning
    (BOTH, "flat 200; lgkm 0; use 200", {RAW}, "vmcnt(0)"),
    (BOTH, "flat 200; vm 0; lgkm 0; use 200", set(), ""),
    (("gfx950",), "load 200; flat 201; vm 1; use 200", {RAW}, "vmcnt(0)"),
    (("gfx1151",), "load 200; flat 201; vm 1; use 200", set(), ""),
    (BOTH, "flat 200; ds 201; lgkm 0; use 201", set(), ""),
    (("gfx950",), "flat 200; ds 201; lgkm 1; use 201", {RAW}, "lgkmcnt(0)"),
    (BOTH, "message; ds 200; lgkm 1; use 200", {RAW}, "lgkmcnt(0)"),
    (("gfx950",), "dma; ds 200; lgkm 0", {"C.4 LDS DMA"}, "vmcnt(0)"),
    (("gfx950",), "dma; vm 0; ds 200", set(), ""),
    (("gfx950",), "dma; load 201; vm 1; ds 200", set(), ""),
    (("gfx950",), "dma; load 201; vm 2; ds 200", {"C.4 LDS DMA"}, "vmcnt(1) or lower"),
    (("gfx950",), "dma; dswrite 16", {"C.4 LDS DMA"}, "vmcnt(0)"),
    (("gfx950",), "dma; dma", set(), ""),
    (("gfx950",), "load 200; wb; vm 0; use 200", set(), ""),
    (BOTH, "dslo 200; dshi 200", set(), ""),
    (BOTH, "dslo 200; dshi 200; lgkm 1; use 200", {RAW}, "lgkmcnt(0)"),
    (BOTH, "load 200; store 200", {RAW}, "vmcnt(0)"),
]  # fmt: skip


@pytest.fixture(scope="module")
def hip(sim_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hip]:
    folder = tmp_path_factory.mktemp("checks")
    with private_simulator(sim_library, folder, "gfx950,gfx1151") as found:
        yield found


@pytest.fixture(params=BOTH)
def arch(request: pytest.FixtureRequest, hip: Hip) -> Iterator[str]:
    hip.call("hipSetDevice", BOTH.index(request.param))
    yield request.param
    hip.call("hipSetDevice", 0)


def wait_errors(told: Told, name: str) -> list[check_programs.Finding]:
    return [f for f in told.by_case[name] if f["kind"] == "wait" and f["severity"] == "error"]


def test_what_a_wait_proves(arch: str, hip: Hip, assemble: Callable[..., Path]) -> None:
    chosen = [row for row in ROWS if arch in row[0]]
    cases = [case(text, *spell(arch, text)) for _, text, _, _ in chosen]
    told = check_programs.run(hip, assemble, arch, cases)
    assert not told.fault
    for _, text, rules, wait in chosen:
        found = wait_errors(told, text)
        assert {f["rule"] for f in found} == rules, text
        for one in found:
            assert one["mend"] == f"needs {wait} before this line", text


def test_a_full_counter_is_a_wait(arch: str, hip: Hip, assemble: Callable[..., Path]) -> None:
    most = {"gfx950": (63, 15), "gfx1151": (63, 63)}[arch]
    cases = []
    for counter, (kind, n) in enumerate(zip(("load", "ds"), most, strict=True)):
        for more in (n - 1, n):
            text = ";".join([f"{kind} 200", *[f"{kind} 201"] * more, "use 200"])
            cases.append(case(f"{counter} {more - n}", *spell(arch, text)))
    told = check_programs.run(hip, assemble, arch, cases)
    for counter in (0, 1):
        assert {f["rule"] for f in wait_errors(told, f"{counter} -1")} == {RAW}
        assert wait_errors(told, f"{counter} 0") == []


def test_only_lanes_and_halves_that_are_loaded_count(
    arch: str, hip: Hip, assemble: Callable[..., Path]
) -> None:
    mov = "s_mov_b64 exec" if arch == "gfx950" else "s_mov_b32 exec_lo"
    load = spell(arch, "load 200")[0]
    half = spell(arch, "dslo 200")[0]
    cases = [
        case("other lanes", f"{mov}, 0xff", load, f"{mov}, 0xff00", "v_mov_b32 v210, v200"),
        case("one lane", f"{mov}, 0xff", load, f"{mov}, 0xff80", "v_mov_b32 v210, v200"),
        case("another lane is named", f"{mov}, 0xff", load, "v_readlane_b32 s20, v200, 8"),
        case("a lane is named", f"{mov}, 0xff", load, "v_readlane_b32 s20, v200, 7"),
        case("other half", half, "v_pk_add_u16 v210, v200, v200 op_sel:[1,1] op_sel_hi:[1,1]"),
        case("the half", half, "v_pk_add_u16 v210, v200, v200 op_sel:[1,0] op_sel_hi:[1,1]"),
    ]
    told = check_programs.run(hip, assemble, arch, cases)
    wrong = {name for name in told.by_case if wait_errors(told, name)}
    assert wrong == {"one lane", "a lane is named", "the half"}
    assert wait_errors(told, "one lane")[0]["lane"] == 7


def test_a_premature_read_gets_garbage(arch: str, hip: Hip, assemble: Callable[..., Path]) -> None:
    store = spell(arch, "store 210")[0].replace("v[2:3], v210, off", "v1, v210, s[4:5]")
    cases = [
        case("early", *spell(arch, "load 200; use 200; vm 0; use 200"),
             *spell(arch, "load 201; use 201"), f"{store} offset:256"),
        case("in time", *spell(arch, "load 200; vm 0; use 200"), f"{store} offset:512"),
        # The load's data arrives after the constant that was put there too early.
        case("late data", *spell(arch, "load 200; set 200; vm 0"), "v_mov_b32 v210, v200",
             f"{store} offset:768"),
    ]  # fmt: skip
    told = check_programs.run(hip, assemble, arch, cases)
    words = struct.unpack("<4096I", told.output[:16384])
    assert (words[64], words[128], words[192]) == (GARBAGE, 0, 0)


def test_the_finding_says_what_the_last_wait_had_to_do_with_it(
    arch: str, hip: Hip, assemble: Callable[..., Path]
) -> None:
    words = {
        "load 200; lgkm 0; use 200": "is for another counter",
        "load 200; vm 1; use 200": "allows too many",
        "scalar 20; ds 200; lgkm 1; suse 20": "only 0 proves it",
    }
    told = check_programs.run(hip, assemble, arch, [case(t, *spell(arch, t)) for t in words])
    for text, part in words.items():
        (found,) = wait_errors(told, text)
        assert part in found["text"]
        assert found["other"]["text"].split()[0] == spell(arch, text)[0].split()[0]


def test_flat_wants_both_counters(arch: str, hip: Hip, assemble: Callable[..., Path]) -> None:
    """Whoever knows which memory it is may wait for that; the other counter is then a warning."""
    to_lds = ("s_mov_b64 s[20:21], src_shared_base", "v_mov_b32 v5, s21", "v_mov_b32 v4, v1")
    lds = spell(arch, "flat 200")[0].replace("v[2:3]", "v[4:5]")
    ways = {
        "memory, vm": (spell(arch, "flat 200; vm 0; use 200"), set(), {"C.4 FLAT"}),
        "memory, lgkm": (spell(arch, "flat 200; lgkm 0; use 200"), {RAW}, set()),
        "LDS, lgkm": (
            [*to_lds, "s_nop 4", lds, *spell(arch, "lgkm 0; use 200")],
            set(),
            {"C.4 FLAT"},
        ),
        "LDS, vm": ([*to_lds, "s_nop 4", lds, *spell(arch, "vm 0; use 200")], {RAW}, set()),
        "both": (spell(arch, "flat 200; vm 0; lgkm 0; use 200"), set(), set()),
    }
    told = check_programs.run(hip, assemble, arch, [case(n, *w[0]) for n, w in ways.items()])
    for name, (_, errors, warnings) in ways.items():
        assert told.rules(name) == errors, name
        assert told.rules(name, "warning") == warnings, name


def test_a_wait_for_nothing_is_a_warning(
    arch: str, hip: Hip, assemble: Callable[..., Path]
) -> None:
    cases = [
        case("idle", *spell(arch, "vm 0")),
        case("two loads, two allowed", *spell(arch, "load 200; load 201; vm 2")),
        case("used", *spell(arch, "load 200; vm 0; use 200")),
    ]
    told = check_programs.run(hip, assemble, arch, cases)
    idle = {name: told.rules(name, "warning") for name in told.by_case}
    assert idle == {"idle": {"C.4 idle"}, "two loads, two allowed": {"C.4 idle"}, "used": set()}


EARLY = {
    "another wait follows": ("load 200; vm 0; load 201; vm 0; use 200; use 201", True),
    "nobody uses it": ("load 200; vm 0", True),
    "the use comes between": ("load 200; vm 0; use 200; load 201; vm 0; use 201", False),
    "the other waits for younger ones": (
        "load 200; vm 0; load 201; load 202; vm 2; use 200; vm 0; use 201; use 202", True,
    ),
    "the other does not wait for it": (
        "load 200; vm 0; load 201; vm 2; use 200; vm 0; use 201", False,
    ),
    "another counter": ("load 200; vm 0; ds 201; lgkm 0; use 200; use 201", False),
}  # fmt: skip


def test_a_wait_long_before_its_use_is_a_warning(
    arch: str, hip: Hip, assemble: Callable[..., Path]
) -> None:
    cases = [case(name, *spell(arch, text)) for name, (text, _) in EARLY.items()]
    cases.append(case("written over", *spell(arch, "load 200; vm 0"), "v_mov_b32 v200, 0"))
    told = check_programs.run(hip, assemble, arch, cases)
    early = {name: "C.4 early" in told.rules(name, "warning") for name in told.by_case}
    assert not early.pop("written over")
    assert early == {name: wanted for name, (_, wanted) in EARLY.items()}


# Two waves: the first half of the workgroup writes LDS, the other reads it behind the barrier.
BARRIER = """
v_mov_b32 v20, 7
v_lshlrev_b32 v21, 2, v0
v_cmp_gt_u32 vcc{lo}, {lanes}, v0
s_cbranch_vccz .Lskip{n}
{write}
{wait}
.Lskip{n}:
s_barrier
v_and_b32 v22, {mask}, v21
{read}
s_waitcnt lgkmcnt(0)
s_barrier
"""


def test_a_barrier_does_not_complete_lds_writes(
    arch: str, hip: Hip, assemble: Callable[..., Path]
) -> None:
    lanes = 64 if arch == "gfx950" else 32
    read = spell(arch, "ds 200")[0].replace("v1", "v22")
    write = spell(arch, "dswrite 20")[0].replace("v1", "v21")
    forms = [("no wait", write, "s_nop 0"), ("wait", write, "s_waitcnt lgkmcnt(0)")]
    if arch == "gfx950":
        dma = "global_load_lds_dword v[2:3], off"
        forms += [
            ("dma", dma, "s_waitcnt lgkmcnt(0)"),
            ("dma waited for", dma, "s_waitcnt vmcnt(0)"),
        ]
    cases = [
        case(name, BARRIER.format(n=k, lanes=lanes, mask=4 * lanes - 1, write=text, wait=wait,
                                  read=read, lo="" if arch == "gfx950" else "_lo"))
        for k, (name, text, wait) in enumerate(forms)
    ]  # fmt: skip
    told = check_programs.run(hip, assemble, arch, cases, threads=2 * lanes)
    assert not told.fault
    wrong = {name: {f["rule"] for f in wait_errors(told, name)} for name in told.by_case}
    bad = {"C.4 LDS barrier"}
    assert wrong["no wait"] == bad and wrong["wait"] == set()
    # The wave that loaded reads its own bytes too early as well.
    assert (
        wrong.get("dma", bad) - {"C.4 LDS DMA"} == bad
        and wrong.get("dma waited for", set()) == set()
    )
