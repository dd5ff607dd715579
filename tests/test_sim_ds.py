"""DS: LDS loads and stores, transpose reads, the cross-lane operations, and faults."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import lanes as machine
import memory as reference
import numpy as np
import pytest
from lanes import IDS, LDS_BYTES, TARGETS, Bench, Case, State

Benches = dict[tuple[str, int], Bench]

# part -> (gfx950, gfx1151) after ds_
LOADS = {
    "u8": ("read_u8", "load_u8"),
    "i8": ("read_i8", "load_i8"),
    "u16": ("read_u16", "load_u16"),
    "i16": ("read_i16", "load_i16"),
    "b32": ("read_b32", "load_b32"),
    "b64": ("read_b64", "load_b64"),
    "b96": ("read_b96", "load_b96"),
    "b128": ("read_b128", "load_b128"),
    "d16_u8": ("read_u8_d16", "load_u8_d16"),
    "d16_hi_u8": ("read_u8_d16_hi", "load_u8_d16_hi"),
    "d16_i8": ("read_i8_d16", "load_i8_d16"),
    "d16_hi_i8": ("read_i8_d16_hi", "load_i8_d16_hi"),
    "d16_b16": ("read_u16_d16", "load_u16_d16"),
    "d16_hi_b16": ("read_u16_d16_hi", "load_u16_d16_hi"),
}
STORES = {
    "u8": ("write_b8", "store_b8"),
    "d16_hi_u8": ("write_b8_d16_hi", "store_b8_d16_hi"),
    "u16": ("write_b16", "store_b16"),
    "d16_hi_b16": ("write_b16_d16_hi", "store_b16_d16_hi"),
    "b32": ("write_b32", "store_b32"),
    "b64": ("write_b64", "store_b64"),
    "b96": ("write_b96", "store_b96"),
    "b128": ("write_b128", "store_b128"),
}


@pytest.fixture(scope="module")
def benches(assemble, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Benches]:
    with machine.benches(assemble, tmp_path_factory.mktemp("ds")) as found:
        yield found


@pytest.fixture(params=TARGETS, ids=IDS)
def bench(request: pytest.FixtureRequest, benches: Benches) -> Bench:
    return benches[request.param]


def registers(first: int, count: int) -> str:
    return f"v{first}" if count == 1 else f"v[{first}:{first + count - 1}]"


def test_loads_and_stores(bench: Bench) -> None:
    """At any byte; the sum of VGPR and offset wraps at 32 bits; a D16 load keeps the other half."""
    rng = np.random.default_rng(30)
    cases = []
    for part in LOADS:
        for offset in (0, 1, 96):
            before = State.drawn(bench.lanes, rng)
            places = rng.integers(0, LDS_BYTES - reference.size(part) + 1, bench.lanes)
            before.v[4] = [int(p) - offset & reference.M32 for p in places]
            dst = int(rng.choice([4, 12]))
            want = before.copy()
            for lane in before.active():
                lds = reference.Memory(0, before.lds)
                reference.load_lane(want, lds, part, dst, lane, int(places[lane]), True)
            name = LOADS[part][bench.gfx11]
            text = f"ds_{name} {registers(dst, reference.dwords(part))}, v4 offset:{offset}"
            cases.append(Case(text, before, want))
    for part in STORES:
        for offset in (0, 3):
            before = State.drawn(bench.lanes, rng)
            before.v[4] = [31 * lane + 5 - offset & reference.M32 for lane in range(bench.lanes)]
            want = before.copy()
            for lane in before.active():
                reference.store_lane(
                    before, reference.Memory(0, want.lds), part, 8, lane, 31 * lane + 5
                )
            name = STORES[part][bench.gfx11]
            text = f"ds_{name} v4, {registers(8, reference.dwords(part))} offset:{offset}"
            cases.append(Case(text, before, want))
    before = State.drawn(bench.lanes, rng)
    before.v[4] = 2000 - 65535 & reference.M32
    want = before.copy()
    for lane in before.active():
        want.v[12][lane] = reference.Memory(0, before.lds).read(2000, 4)
    cases.append(Case(f"ds_{LOADS['b32'][bench.gfx11]} v12, v4 offset:65535", before, want))
    bench.check(cases)


TWO = {  # (32-bit load, store, exchange) stems; then st64
    False: (("read2", "write2", "wrxchg2"), ("read2st64", "write2st64", "wrxchg2st64")),
    True: (
        ("load_2addr", "store_2addr", "storexchg_2addr"),
        ("load_2addr_stride64", "store_2addr_stride64", "storexchg_2addr_stride64"),
    ),
}


def test_two_addresses(bench: Bench) -> None:
    rng = np.random.default_rng(31)
    cases = []
    for st64 in (0, 1):
        for bits in (32, 64):
            words, scale = bits // 32, bits // 8 * (64 if st64 else 1)
            # The last pair of equal offsets is one access with the first data.
            for pair in ((0, 1), (3, 2), (0, LDS_BYTES // 2 // scale), (1, 1)):
                for kind, stem in zip(
                    ("load", "store", "exchange"), TWO[bench.gfx11][st64], strict=True
                ):
                    if kind == "exchange" and pair[0] == pair[1]:
                        continue
                    before = State.drawn(bench.lanes, rng)
                    start = [2 * words * 4 * lane % (LDS_BYTES // 4) for lane in range(bench.lanes)]
                    if not st64:
                        pair = tuple(p if p < 4 else 120 for p in pair)
                    start = [
                        s % max(8, LDS_BYTES - scale * max(pair) - bits // 8) & ~7 for s in start
                    ]
                    if st64 or max(pair) > 3:
                        start = [bits // 8 * lane % 256 for lane in range(bench.lanes)]
                    before.v[4] = start
                    want = before.copy()
                    lds = reference.Memory(0, want.lds)
                    for lane in before.active():
                        for e in (0, 1):
                            at = start[lane] + scale * pair[e]
                            old = lds.read(at, bits // 8)
                            if kind != "store":
                                for k in range(words):
                                    want.v[20 + e * words + k][lane] = old >> 32 * k & reference.M32
                            if kind != "load" and not (e == 1 and pair[0] == pair[1]):
                                fresh = sum(
                                    int(before.v[8 + 4 * e + k][lane]) << 32 * k
                                    for k in range(words)
                                )
                                lds.write(at, bits // 8, fresh)
                    data = f"{registers(8, words)}, {registers(12, words)}"
                    out = registers(20, 2 * words)
                    ops = {
                        "load": f"{out}, v4",
                        "store": f"v4, {data}",
                        "exchange": f"{out}, v4, {data}",
                    }[kind]
                    name = f"ds_{stem}{'_rtn' if kind == 'exchange' else ''}_b{bits}"
                    cases.append(
                        Case(f"{name} {ops} offset0:{pair[0]} offset1:{pair[1]}", before, want)
                    )
    bench.check(cases)


def swizzle_source(offset: int, lane: int) -> int:
    """By the guide's pseudocode."""
    if offset >= 0xE000:
        mask = offset & 0x1F
        j = int(f"{lane & 31:05b}"[::-1], 2) >> bin(mask).count("1")
        return j | lane & mask | lane & 32
    if offset >= 0xC000:
        mask, rotate = offset & 0x1F, offset >> 5 & 0x1F
        turned = lane - rotate if offset & 0x400 else lane + rotate
        return (lane & mask | turned & ~mask) & 31 | lane & 32
    if offset & 0x8000:
        return lane & ~3 | offset >> 2 * (lane & 3) & 3
    return (lane & 31 & offset & 0x1F | offset >> 5 & 0x1F) ^ offset >> 10 & 0x1F | lane & 32


def test_swizzle(bench: Bench) -> None:
    """As a number and in words; a source lane that is off gives 0."""
    rng = np.random.default_rng(32)
    patterns: list[tuple[str, int]] = [
        ("swizzle(QUAD_PERM, 3, 1, 0, 2)", 0x8000 | 3 | 1 << 2 | 2 << 6),
        ('swizzle(BITMASK_PERM, "01pip")', 0b00111 | 0b01000 << 5 | 0b00010 << 10),
        ("swizzle(BROADCAST, 8, 5)", 0x18 | 5 << 5),
        ("swizzle(SWAP, 16)", 0x401F),
        ("swizzle(REVERSE, 4)", 0x1F | 3 << 10),
        ("swizzle(ROTATE, 0, 5)", 0xC000 | 5 << 5),
        ("swizzle(ROTATE, 1, 3)", 0xC400 | 3 << 5),
        ("swizzle(FFT, 3)", 0xE003),
    ]
    numbers = [
        0,
        0x1F,
        0x041F,
        0x7FFF,
        0x80E4,
        0x801B,
        0xC021,
        0xC7FF,
        0xC03C,
        0xE000,
        0xE01F,
        0xE01E,
        0xE00B,
    ]
    patterns += [(str(n), n) for n in numbers + [int(x) for x in rng.integers(0, 0x8000, 6)]]
    cases = []
    for text, offset in patterns:
        before = State.drawn(bench.lanes, rng)
        want = before.copy()
        for lane in before.active():
            j = swizzle_source(offset, lane)
            want.v[12][lane] = before.v[8][j] if before.exec >> j & 1 else 0
        cases.append(Case(f"ds_swizzle_b32 v12, v8 offset:{text}", before, want))
    bench.check(cases)


def test_permutes(bench: Bench) -> None:
    """gfx950 permutes 64 lanes, gfx1151 each half of 32.  The highest lane wins a push."""
    rng = np.random.default_rng(33)
    group = 32 if bench.gfx11 else 64
    cases = []
    for offset in (0, 4, 8, 65532):
        for dst in (12, 4, 8):
            for push in (False, True):
                before = State.drawn(bench.lanes, rng)
                before.v[4] = (
                    rng.integers(0, 1 << 32, bench.lanes)
                    if offset
                    else rng.integers(0, 80, bench.lanes)
                )
                want = before.copy()
                picked = [(int(a) + offset >> 2) % group for a in before.v[4]]
                tmp = [0] * bench.lanes
                for lane in range(bench.lanes):
                    half = lane // group * group
                    if push and before.exec >> lane & 1:
                        tmp[half + picked[lane]] = int(before.v[8][lane])
                    if not push and before.exec >> (half + picked[lane]) & 1:
                        tmp[lane] = int(before.v[8][half + picked[lane]])
                for lane in before.active():
                    want.v[dst][lane] = tmp[lane]
                name = "ds_permute_b32" if push else "ds_bpermute_b32"
                cases.append(Case(f"{name} v{dst}, v4, v8 offset:{offset}", before, want))
    bench.check(cases)


# (source lane, source element) of element n of lane a, as the table of AMD's guide has it: one
# closed form an instruction, where the simulator has one rule for all.
TRANSPOSED: dict[str, tuple[int, Callable[[int, int], tuple[int, int]]]] = {
    "b64_tr_b16": (16, lambda a, n: ((a & ~15) + (a & 15) // 4 + 4 * n, a & 3)),
    "b64_tr_b8": (8, lambda a, n: ((a & ~15) + (a & 15) // 8 + 2 * n, a & 7)),
    "b64_tr_b4": (4, lambda a, n: ((a & ~15) + n, a & 15)),
    "b96_tr_b6": (6, lambda a, n: ((a & ~15) + n, a & 15)),
}


def test_transpose_reads(benches: Benches) -> None:
    bench = benches["gfx950", 64]
    rng = np.random.default_rng(34)
    cases = []
    for name, (bits, source) in TRANSPOSED.items():
        count = 12 if bits == 6 else 8
        for offset in (0, 48):
            before = State.random(64, rng)
            places = rng.integers(0, 150, 64) * count if bits != 6 else rng.integers(0, 400, 64) * 4
            before.v[4] = [int(p) - offset & reference.M32 for p in places]
            lds = reference.Memory(0, before.lds)
            fetched = [lds.read(int(p), count) for p in places]
            want = before.copy()
            for lane in range(64):
                value = 0
                for n in range(8 * count // bits):
                    s, element = source(lane, n)
                    value |= (fetched[s] >> bits * element & (1 << bits) - 1) << bits * n
                for k in range(count // 4):
                    want.v[12 + k][lane] = value >> 32 * k & reference.M32
            cases.append(
                Case(
                    f"ds_read_{name} {registers(12, count // 4)}, v4 offset:{offset}", before, want
                )
            )
    bench.check(cases)
    before = State.random(64, rng)
    before.v[4] = 0
    before.exec = 1
    odd = before.copy()
    odd.exec, odd.v = (1 << 64) - 1, np.full_like(odd.v, 4)
    found = bench.faults([Case("ds_read_b64_tr_b16 v[12:13], v4", s) for s in (before, odd)])
    assert found[0][0] == 719 and "every lane active" in found[0][1]
    assert found[1][0] == 700 and "misaligned LDS" in found[1][1]


def test_addtid(bench: Bench) -> None:
    """M0[15:0] + offset + 4 * lane; no address register."""
    rng = np.random.default_rng(35)
    cases = []
    for load in (True, False):
        before = State.drawn(bench.lanes, rng)
        before.m0 = 0xFFFF0040
        want = before.copy()
        lds = reference.Memory(0, want.lds)
        for lane in before.active():
            at = 0x40 + 12 + 4 * lane
            if load:
                want.v[12][lane] = lds.read(at, 4)
            else:
                lds.write(at, 4, int(before.v[12][lane]))
        name = (
            ("load" if bench.gfx11 else "read") if load else ("store" if bench.gfx11 else "write")
        )
        cases.append(Case(f"ds_{name}_addtid_b32 v12 offset:12", before, want))
    bench.check(cases)


def test_conditional_exchange(bench: Bench) -> None:
    """Each dword whose bit 31 is set is exchanged for the other 31 bits; the address is a multiple
    of 8 below 64 KiB."""
    rng = np.random.default_rng(36)
    before = State.drawn(bench.lanes, rng)
    before.v[4] = [8 * lane + (1 << 16) + lane % 8 for lane in range(bench.lanes)]
    want = before.copy()
    lds = reference.Memory(0, want.lds)
    for lane in before.active():
        for k in (0, 1):
            at, data = 8 * lane + 16 + 4 * k, int(before.v[8 + k][lane])
            want.v[12 + k][lane] = lds.read(at, 4)
            if data >> 31:
                lds.write(at, 4, data & 0x7FFFFFFF)
    bench.check([Case("ds_condxchg32_rtn_b64 v[12:13], v4, v[8:9] offset:16", before, want)])


def test_out_of_lds_is_a_fault(bench: Bench) -> None:
    """Hardware reads 0 and drops the write in silence; here the lane is named."""
    rng = np.random.default_rng(37)
    load, store = ("load", "store") if bench.gfx11 else ("read", "write")
    two = "load_2addr" if bench.gfx11 else "read2"
    rows = [
        (f"ds_{load}_b32 v12, v4", LDS_BYTES - 3),
        (f"ds_{load}_b128 v[12:15], v4", LDS_BYTES - 12),
        (f"ds_{store}_b8 v4, v12", LDS_BYTES),
        (f"ds_{store}_b64 v4, v[12:13] offset:8", LDS_BYTES - 8),
        (f"ds_{two}_b32 v[12:13], v4 offset0:0 offset1:2", LDS_BYTES - 8),
        ("ds_add_u32 v4, v12", LDS_BYTES),
        (f"ds_{load}_u8 v12, v4", 1 << 31),
        ("ds_add_u32 v4, v12", 2),
        ("ds_add_rtn_u64 v[12:13], v4, v[8:9]", 12),
        ("ds_append v12 offset:4096", 0),
    ]
    cases = []
    for text, address in rows:
        before = State.random(bench.lanes, rng)
        before.exec, before.v[4] = 1 << 9, address
        cases.append(Case(text, before))
    for case, (code, message) in zip(cases, bench.faults(cases), strict=True):
        assert code == 700 and "LDS" in message and "lane 9" in message, f"{case.lines}: {message}"


def test_lanes_that_are_off_reach_nothing(bench: Bench) -> None:
    rng = np.random.default_rng(38)
    cases = []
    for text in (
        "ds_add_rtn_u32 v12, v4, v8",
        "ds_bpermute_b32 v12, v4, v8",
        "ds_swizzle_b32 v12, v4 offset:31",
        "ds_nop",
        "ds_min_f64 v4, v[8:9]",
    ):
        before = State.random(bench.lanes, rng)
        before.exec = 0
        cases.append(Case(text, before, before.copy()))
    bench.check(cases)
