"""FLAT, GLOBAL and SCRATCH: loads, stores, address forms and faults, against Python integers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import lanes as machine
import memory as reference
import numpy as np
import pytest
from lanes import IDS, TARGETS, Bench, Case, Scene, State

Benches = dict[tuple[str, int], Bench]
ROOM = 24  # bytes that a lane of a storing case has for itself


@pytest.fixture(scope="module")
def benches(assemble, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Benches]:
    with machine.benches(assemble, tmp_path_factory.mktemp("flat")) as found:
        yield found


@pytest.fixture(params=TARGETS, ids=IDS)
def bench(request: pytest.FixtureRequest, benches: Benches) -> Bench:
    return benches[request.param]


def name(bench: Bench, names: tuple[str, str]) -> str:
    return names[bench.gfx11]


def address_forms(
    bench: Bench, scene: Scene, cls: str, state: State, places: list[int], offset: int, form: str
) -> tuple[str, str]:
    """Puts the addresses into registers; the text of the address operands, before and after data.
    A place is a byte of the test's memory, or of scratch."""
    rng = scene.rng
    if cls == "scratch":
        if form in ("v", "vs"):
            start = 64 if form == "vs" else 0
            state.v[4] = [p - offset - start & reference.M32 for p in places]
            state.set_s(24, start)
            return "v4", "s24" if form == "vs" else "off"
        state.set_s(24, places[0] - offset)
        return "off", "s24" if form == "s" else "off"
    if form == "saddr":
        unsigned = [int(rng.integers(0, 64))] * len(places)
        start = scene.base - offset - unsigned[0]
        state.set_s(24, start, 2)
        state.v[4] = [p + u for p, u in zip(places, unsigned, strict=True)]
        return "v4", "s[24:25]"
    state.set_v64(4, [scene.base + p - offset for p in places])
    return "v[4:5]", "off" if cls == "global" else ""


FORMS = {
    "global": [
        ("vaddr", 0),
        ("vaddr", 4095),
        ("vaddr", -4096),
        ("saddr", 0),
        ("saddr", 100),
        ("saddr", -7),
    ],
    "flat": [("vaddr", 0), ("vaddr", 4095)],
    "scratch": [("v", 0), ("v", 7), ("v", -5), ("vs", 3), ("s", 8), ("off", 12)],
}
CACHE = {False: ("", " sc0", " sc0 sc1 nt", " nt"), True: ("", " glc", " glc slc dlc", " slc")}


def places_for(scene: Scene, cls: str, form: str, part: str, lanes: int, store: bool) -> list[int]:
    """A byte for each lane, aligned to nothing.  Stores never overlap, not even between cases."""
    count = reference.size(part)
    if cls == "scratch":
        if form in ("s", "off"):
            return [12 if form == "off" else int(scene.rng.integers(16, 200))] * lanes
        return [int(x) for x in scene.rng.integers(0, machine.SCRATCH_BYTES - count, lanes)]
    if not store:
        return [int(x) for x in scene.rng.integers(0, len(scene.data) - count + 1, lanes)]
    within = scene.rng.integers(0, ROOM - count + 1, lanes)
    return [(len(scene.cases) * lanes + lane) * ROOM + int(x) for lane, x in enumerate(within)]


def transfer_case(
    scene: Scene, cls: str, part: str, form: str, offset: int, store: bool, cache: str
) -> None:
    bench = scene.bench
    before = scene.state()
    places = places_for(scene, cls, form, part, bench.lanes, store)
    if cls == "scratch" and form == "off":
        offset = places[0]
    vaddr, saddr = address_forms(bench, scene, cls, before, places, offset, form)
    suffix = name(bench, (reference.STORES if store else reference.LOADS)[part])
    # The data registers of a load may hold its address.
    data = 12 if store else [12, 4][int(scene.rng.integers(2))]
    count = reference.dwords(part)
    registers = f"v{data}" if count == 1 else f"v[{data}:{data + count - 1}]"
    operands = [vaddr, registers] if store else [registers, vaddr]
    operands += [saddr] if saddr else []
    kind = "store" if store else "load"
    text = f"{cls}_{kind}_{suffix} {', '.join(operands)} offset:{offset}{cache}"
    want = before.copy()
    for lane in before.active():
        if cls == "scratch":
            memory, at = reference.Memory(0, want.scratch[lane]), places[lane]
        else:
            memory, at = scene.memory, scene.base + places[lane]
        if store:
            reference.store_lane(before, memory, part, data, lane, at)
        else:
            reference.load_lane(want, memory, part, data, lane, at, keep=bench.gfx11)
    scene.cases.append(Case(text, before, want))


@pytest.mark.parametrize("cls", ["global", "flat", "scratch"])
def test_loads(bench: Bench, cls: str) -> None:
    scene = Scene(bench, 1)
    for part in reference.LOADS:
        for k, (form, offset) in enumerate(FORMS[cls]):
            transfer_case(scene, cls, part, form, offset, False, CACHE[bench.gfx11][k % 4])
    scene.check()


@pytest.mark.parametrize("cls", ["global", "flat", "scratch"])
def test_stores(bench: Bench, cls: str) -> None:
    scene = Scene(
        bench, np.random.default_rng(2), ROOM * 64 * len(reference.STORES) * len(FORMS[cls])
    )
    for part in reference.STORES:
        for k, (form, offset) in enumerate(FORMS[cls]):
            transfer_case(scene, cls, part, form, offset, True, CACHE[bench.gfx11][k % 4])
    scene.check()


def test_store_then_load_through_every_form(bench: Bench) -> None:
    """Stores of all forms at places that do not overlap."""
    scene = Scene(bench, 3, 1 << 15)
    room = len(scene.data) // (len(FORMS["global"]) + len(FORMS["flat"]))
    at = 0
    for cls in ("global", "flat"):
        for form, offset in FORMS[cls]:
            before = scene.state()
            places = [at + lane * (room // bench.lanes) for lane in range(bench.lanes)]
            vaddr, saddr = address_forms(bench, scene, cls, before, places, offset, form)
            tail = f", {saddr}" if saddr else ""
            text = f"{cls}_store_dwordx4 {vaddr}, v[8:11]{tail} offset:{offset}\n"
            text += (
                f"s_waitcnt vmcnt(0)\n{cls}_load_dwordx3 v[20:22], {vaddr}{tail} offset:{offset}"
            )
            want = before.copy()
            for lane in before.active():
                reference.store_lane(
                    before, scene.memory, "b128", 8, lane, scene.base + places[lane]
                )
                for k in range(3):
                    want.v[20 + k][lane] = before.v[8 + k][lane]
            scene.cases.append(Case(text, before, want))
            at += room
    scene.check()


def test_flat_reaches_lds_and_scratch(bench: Bench) -> None:
    """Lanes of one access may differ in the memory that their address selects."""
    scene = Scene(bench, 4)
    for part in ("b32", "u8", "d16_hi_b16", "b128"):
        for store in (False, True):
            before = scene.state()
            where = scene.rng.integers(0, 3, bench.lanes)
            first = len(scene.cases) << 10
            places = [16 * lane + (first if where[lane] == 0 else 0) for lane in range(bench.lanes)]
            places = [p % 240 if where[lane] == 2 else p for lane, p in enumerate(places)]
            bases = [scene.base, 1 << 48, 2 << 48]
            before.set_v64(4, [bases[where[k]] + places[k] - 9 for k in range(bench.lanes)])
            suffix = name(bench, (reference.STORES if store else reference.LOADS)[part])
            count = reference.dwords(part)
            data = "v12" if count == 1 else f"v[12:{11 + count}]"
            operands = f"v[4:5], {data}" if store else f"{data}, v[4:5]"
            want = before.copy()
            for lane in before.active():
                memory = [
                    scene.memory,
                    reference.Memory(scene.base, want.lds),
                    reference.Memory(scene.base, want.scratch[lane]),
                ][where[lane]]
                if store:
                    reference.store_lane(before, memory, part, 12, lane, scene.base + places[lane])
                else:
                    reference.load_lane(
                        want, memory, part, 12, lane, scene.base + places[lane], keep=bench.gfx11
                    )
            scene.cases.append(
                Case(
                    f"flat_{'store' if store else 'load'}_{suffix} {operands} offset:9",
                    before,
                    want,
                )
            )
    scene.check()


def test_apertures_by_their_registers(bench: Bench) -> None:
    scene = Scene(bench, 5)
    before = scene.state()
    before.v[4] = [4 * k for k in range(bench.lanes)]
    text = """
        s_mov_b64 s[16:17], src_shared_base
        s_mov_b64 s[18:19], src_private_base
        v_mov_b32 v5, s17
        flat_load_dword v12, v[4:5]
        v_mov_b32 v6, 8
        v_mov_b32 v7, s19
        flat_load_dword v13, v[6:7]"""
    want = before.copy()
    want.set_s(16, 1 << 48, 2)
    want.set_s(18, 2 << 48, 2)
    for lane in before.active():
        want.v[5][lane], want.v[6][lane], want.v[7][lane] = 1 << 16, 8, 2 << 16
        want.v[12][lane] = before.lds.view(np.uint32)[lane]
        want.v[13][lane] = before.scratch[lane].view(np.uint32)[2]
    scene.cases.append(Case(text, before, want))
    scene.check()


def test_addresses_carry_past_four_gigabytes(bench: Bench) -> None:
    """vaddr32 is unsigned and the sum has 64 bits; the pages in between cost nothing."""
    size = (9 << 30) + 64
    bench.select()
    base = bench.hip.malloc(size)
    rng = np.random.default_rng(6)
    cases = []
    for place, form in (
        (0x80000000, "saddr"),
        (0xFFFFFFFC, "saddr"),
        (0x1_0000_0010, "vaddr"),
        (0xFFFFFFFC + 4095, "saddr"),
        (9 << 30, "vaddr"),
    ):
        value = int(rng.integers(1 << 32))
        bench.hip.upload(base + place, value.to_bytes(4, "little"))
        before = State.random(bench.lanes, rng)
        offset = 4095 if place == 0xFFFFFFFC + 4095 else 0
        if form == "saddr":
            before.set_s(24, base, 2)
            before.v[4] = place - offset
            text = f"global_load_dword v12, v4, s[24:25] offset:{offset}"
        else:
            before.set_v64(4, [base + place] * bench.lanes)
            text = "global_load_dword v12, v[4:5], off"
        want = before.copy()
        want.v[12] = value
        cases.append(Case(text, before, want))
    bench.check(cases)
    bench.hip.free(base)


def test_addtid(benches: Benches) -> None:
    for lanes in (32, 64):
        bench = benches["gfx1151", lanes]
        scene = Scene(bench, 7)
        for text, at in (
            ("global_load_addtid_b32 v12, s[24:25] offset:40", 40),
            ("global_store_addtid_b32 v12, s[24:25] offset:-16", -16),
        ):
            before = scene.state()
            before.set_s(24, scene.base + 512, 2)
            want = before.copy()
            for lane in before.active():
                place = scene.base + 512 + at + 4 * lane
                if "load" in text:
                    reference.load_lane(want, scene.memory, "b32", 12, lane, place, True)
                else:
                    reference.store_lane(before, scene.memory, "b32", 12, lane, place)
            scene.cases.append(Case(text, before, want))
        scene.check()


def test_accumulators_are_data_registers(benches: Benches) -> None:
    bench = benches["gfx950", 64]
    scene = Scene(bench, 8)
    before = scene.state()
    before.set_v64(4, [scene.base + 16 * k for k in range(64)])
    text = """
        global_load_dwordx4 a[4:7], v[4:5], off
        s_waitcnt vmcnt(0)
        v_accvgpr_read_b32 v12, a4
        v_accvgpr_read_b32 v13, a7
        global_store_dwordx2 v[4:5], a[6:7], off offset:4096-4
        s_waitcnt vmcnt(0)
        global_atomic_add a2, v[4:5], a5, off offset:8 sc0
        s_waitcnt vmcnt(0)
        v_accvgpr_read_b32 v14, a2"""
    want = before.copy()
    for lane in before.active():
        place = scene.base + 16 * lane
        words = [scene.memory.read(place + 4 * k, 4) for k in range(4)]
        want.v[12][lane], want.v[13][lane], want.v[14][lane] = words[0], words[3], words[2]
        scene.memory.write(place + 4092, 8, words[2] | words[3] << 32)
        scene.memory.write(place + 8, 4, words[2] + words[1])
    scene.cases.append(Case(text, before, want))
    scene.check()


def test_d16_loads_can_keep_the_other_half(assemble, tmp_path: Path) -> None:
    with machine.benches(assemble, tmp_path, "d16_vmem=preserve") as found:
        scene = Scene(found["gfx950", 64], 9)
        for suffix, part in (("short_d16", "d16_b16"), ("ubyte_d16_hi", "d16_hi_u8")):
            before = scene.state()
            before.set_v64(4, [scene.base + k for k in range(64)])
            want = before.copy()
            for lane in before.active():
                reference.load_lane(want, scene.memory, part, 12, lane, scene.base + lane, True)
            scene.cases.append(Case(f"global_load_{suffix} v12, v[4:5], off", before, want))
        scene.check()


def test_faults(bench: Bench) -> None:
    scene = Scene(bench, 10, 64)
    rows = []
    for text, place, code, words in (
        ("global_load_dword v12, v[4:5], off", 61, 700, ["4 bytes", "lane 3", "hipMalloc"]),
        ("global_load_dword v12, v[4:5], off", -1, 700, ["1 byte before"]),
        ("global_load_ubyte v12, v[4:5], off", 64, 700, ["1 bytes", "0 bytes past the end"]),
        ("global_load_dwordx4 v[12:15], v[4:5], off", 49, 700, ["16 bytes"]),
        ("global_store_byte v[4:5], v12, off offset:4095", 64 - 4095, 700, ["1 bytes"]),
        ("global_atomic_add v[4:5], v12, off", 2, 700, ["misaligned atomic"]),
        ("flat_atomic_add v[4:5], v12", (1 << 48) + 2 - scene.base, 700, ["misaligned LDS atomic"]),
        ("flat_atomic_add_x2 v[4:5], v[12:13]", (2 << 48) - scene.base, 719, ["scratch", "64-bit"]),
        ("flat_load_dword v12, v[4:5]", (1 << 48) + machine.LDS_BYTES - scene.base, 700, ["LDS"]),
        (
            "flat_load_dword v12, v[4:5]",
            (2 << 48) + machine.SCRATCH_BYTES - scene.base,
            700,
            ["scratch"],
        ),
        ("global_load_dword v12, v[4:5], off", (1 << 48) - scene.base, 700, ["out-of-bounds"]),
        ("flat_load_dword v12, v[4:5]", -scene.base, 700, ["out-of-bounds"]),
        ("scratch_load_dword v12, off, s24", 0, 700, ["scratch"]),
    ):
        before = scene.state()
        before.exec = 1 << 3 | 1 << 7
        before.set_v64(4, [scene.base + place] * bench.lanes)
        before.set_s(24, -4)
        if bench.gfx11:
            text = text.replace("_add_x2", "_add_u64").replace("_add v", "_add_u32 v")
        rows.append((Case(text, before), code, words))
    for (case, code, words), (got, message) in zip(
        rows, bench.faults([r[0] for r in rows]), strict=True
    ):
        assert got == code, f"{case.lines}: {got} {message}"
        assert all(word in message for word in [*words, case.lines.split("_")[0]]), (
            f"{case.lines}: {message}"
        )


def test_lanes_that_are_off_reach_nothing(bench: Bench) -> None:
    rng = np.random.default_rng(11)
    cases = []
    for text in (
        "global_load_dword v12, v[4:5], off",
        "flat_store_dword v[4:5], v12",
        "scratch_load_dword v12, v4, off",
    ):
        before = State.random(bench.lanes, rng)
        before.exec = 0
        cases.append(Case(text, before, before.copy()))
    bench.check(cases)


def test_kernel_arguments_are_read_only(bench: Bench) -> None:
    before = State.random(bench.lanes, np.random.default_rng(12))
    before.v[4] = 0
    case = Case("global_store_dword v4, v12, s[0:1]", before)
    ((code, message),) = bench.faults([case])
    assert code == 700 and "read-only memory: write" in message, message
