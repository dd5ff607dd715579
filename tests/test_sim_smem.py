"""SMEM: scalar loads, buffer loads, gfx950's stores and scratch forms, clocks and cache control."""

from __future__ import annotations

from collections.abc import Iterator

import lanes as machine
import memory as reference
import numpy as np
import pytest
from lanes import IDS, TARGETS, Bench, Case, State

Benches = dict[tuple[str, int], Bench]
SIZE = 4096
WIDTHS = {
    1: ("dword", "b32"),
    2: ("dwordx2", "b64"),
    4: ("dwordx4", "b128"),
    8: ("dwordx8", "b256"),
    16: ("dwordx16", "b512"),
}


@pytest.fixture(scope="module")
def benches(assemble, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Benches]:
    with machine.benches(assemble, tmp_path_factory.mktemp("smem")) as found:
        yield found


@pytest.fixture(params=TARGETS, ids=IDS)
def bench(request: pytest.FixtureRequest, benches: Benches) -> Bench:
    return benches[request.param]


def sgprs(first: int, count: int) -> str:
    return f"s{first}" if count == 1 else f"s[{first}:{first + count - 1}]"


def start(bench: Bench, rng: np.random.Generator) -> State:
    """Scalar accesses do not look at EXEC."""
    before = State.random(bench.lanes, rng)
    before.exec = int(rng.integers(0, 4))
    return before


# (text of the offset, offset register, its value, immediate); s30 and m0 hold the registers.
def offset_forms(bench: Bench) -> list[tuple[str, int, int]]:
    forms = [
        ("0x0", 0, 0),
        ("0x7c", 0, 0x7C),
        ("-0x40", 0, -0x40),
        ("s30", 200, 0),
        ("m0", 64, 0),
        ("s30 offset:0x10", 200, 16),
        ("s30 offset:-0x8" if bench.gfx11 else "s30 offset:0x8", 200, -8 if bench.gfx11 else 8),
        ("0x6", 0, 6),
    ]
    return forms + ([("null", 0, 0)] if bench.gfx11 else [])


def address(bench: Bench, base: int, register: int, immediate: int, scale: int = 1) -> int:
    """gfx950 drops the low bits of each part, gfx1151 those of the sum."""
    if bench.gfx11:
        return base + register + immediate & ~3
    return (base & ~3) + (register & ~3) * scale + (immediate & ~3)


@pytest.mark.parametrize("misaligned", [0, 1, 3])
def test_loads(bench: Bench, misaligned: int) -> None:
    rng = np.random.default_rng(60)
    data = rng.integers(0, 256, SIZE, np.uint8)
    memory = reference.Memory(bench.buffer(data.tobytes()), data)
    cases = []
    for count, names in WIDTHS.items():
        for text, register, immediate in offset_forms(bench):
            before = start(bench, rng)
            base = memory.base + 512 + misaligned
            before.set_s(44, base, 2)
            before.set_s(30, register + misaligned)
            before.m0 = register
            value = register + (misaligned if "s30" in text else 0)
            at = address(bench, base, value, immediate)
            want = before.copy()
            # The destination may hold the offset: that is read first.
            first = 16 if count > 4 else 28 if count > 1 else 30
            want.set_s(first, memory.read(at, 4 * count), count)
            name = f"s_load_{names[bench.gfx11]}"
            cases.append(Case(f"{name} {sgprs(first, count)}, s[44:45], {text}", before, want))
    before = start(bench, rng)
    before.set_s(44, memory.base, 2)
    want = before.copy()
    want.vcc = memory.read(memory.base + 8, 8)
    name = f"s_load_{WIDTHS[2][bench.gfx11]}"
    cases.append(Case(f"{name} vcc, s[44:45], 0x8", before, want))
    bench.check(cases)


def test_addresses_past_four_gigabytes(bench: Bench) -> None:
    """The offset register is unsigned and the sum has 64 bits."""
    bench.select()
    base = bench.hip.malloc((4 << 30) + 64)
    bench.hip.upload(base + 0xFFFFFFFC + 8, (0xC0FFEE).to_bytes(4, "little"))
    before = State.random(bench.lanes, np.random.default_rng(61))
    before.set_s(44, base, 2)
    before.set_s(30, 0xFFFFFFFC)
    want = before.copy()
    want.set_s(16, 0xC0FFEE)
    name = WIDTHS[1][bench.gfx11]
    bench.check([Case(f"s_load_{name} s16, s[44:45], s30 offset:0x8", before, want)])
    bench.hip.free(base)


def test_buffer_loads(bench: Bench) -> None:
    """The range is stride * records bytes (records without a stride); dwords outside read 0."""
    rng = np.random.default_rng(62)
    data = rng.integers(0, 256, SIZE, np.uint8)
    memory = reference.Memory(bench.buffer(data.tobytes()), data)
    cases = []
    for count, names in WIDTHS.items():
        for stride, records in ((0, 300), (12, 25), (0, 0), (0, 0xFFFFFFFF), (0x3FFF, 2), (0, 33)):
            for text, register, immediate in offset_forms(bench):
                if immediate < 0:
                    continue
                before = start(bench, rng)
                before.set_s(
                    44, reference.descriptor(memory.base + 16, stride, records, bench.gfx11), 4
                )
                before.set_s(30, register + 60)
                before.m0 = register
                value = register + (60 if "s30" in text else 0)
                offset = address(bench, 0, value, immediate)
                want = before.copy()
                for k in range(count):
                    inside = offset + 4 * k + 4 <= (stride or 1) * records
                    read = memory.read(memory.base + 16 + offset + 4 * k, 4) if inside else 0
                    want.set_s(16 + k, read)
                name = f"s_buffer_load_{names[bench.gfx11]}"
                cases.append(
                    Case(
                        f"{name} {sgprs(16, count)}, s[44:47], {text}",
                        before,
                        want,
                        f"{name} {text} stride {stride} records {records}",
                    )
                )
    bench.check(cases)


def test_stores(benches: Benches) -> None:
    """gfx950 only.  s_scratch_* counts its offset register in 64 bytes."""
    bench = benches["gfx950", 64]
    rng = np.random.default_rng(63)
    room = 1024
    data = rng.integers(0, 256, 30 * room, np.uint8)
    memory = reference.Memory(bench.buffer(data.tobytes()), data)
    cases = []
    for kind, scale in (("", 1), ("scratch_", 64), ("buffer_", 1)):
        for count in (1, 2, 4):
            for text, register, immediate in (("0x14", 0, 20), ("m0", 9, 0), ("0x3e0", 0, 0x3E0)):
                before = start(bench, rng)
                base = memory.base + len(cases) * room
                before.set_s(44, base | 0x3EC << 64, 3)
                before.m0 = register
                want = before.copy()
                at = address(bench, base, register, immediate, scale)
                for k in range(count):
                    if kind != "buffer_" or at + 4 * k + 4 <= base + 0x3EC:
                        memory.write(at + 4 * k, 4, int(before.s[k]))
                if kind == "buffer_":
                    before.set_s(45, base >> 32 & 0xFFFF)
                    want.set_s(45, base >> 32 & 0xFFFF)
                text = (
                    f"s_{kind}store_{WIDTHS[count][0]} {sgprs(16, count)}, "
                    f"{'s[44:47]' if kind == 'buffer_' else 's[44:45]'}, {text}"
                )
                cases.append(Case(text, before, want))
    bench.check(cases)
    assert bench.hip.download(memory.base, len(data)) == data.tobytes()
    loads = []
    for count in (1, 2, 4):
        before = start(bench, rng)
        before.set_s(44, memory.base + 1, 2)
        before.set_s(30, 5)
        want = before.copy()
        want.set_s(16, memory.read(memory.base + 4 * 64 + 8, 4 * count), count)
        loads.append(
            Case(
                f"s_scratch_load_{WIDTHS[count][0]} {sgprs(16, count)}, s[44:45], s30 offset:0x8",
                before,
                want,
            )
        )
    bench.check(loads)


def test_clocks_move_on(benches: Benches) -> None:
    bench = benches["gfx950", 64]
    before = State.random(64, np.random.default_rng(64))
    (after,) = bench.run(
        [
            Case(
                """
        s_memtime s[16:17]
        s_memtime s[18:19]
        s_waitcnt lgkmcnt(0)
        s_nop 0
        s_memrealtime s[20:21]
        s_memtime s[22:23]
        s_memrealtime s[24:25]""",
                before,
            )
        ]
    )
    first, second, real, third, later = (
        int(after.s[k]) | int(after.s[k + 1]) << 32 for k in range(0, 10, 2)
    )
    assert first < second < third < 1 << 40 and real < later < third


def test_cache_control_changes_nothing(bench: Bench) -> None:
    names = (
        ["s_dcache_inv", "s_gl1_inv"]
        if bench.gfx11
        else ["s_dcache_inv", "s_dcache_wb", "s_dcache_inv_vol", "s_dcache_wb_vol"]
    )
    names += ["s_atc_probe 5, s[44:45], 0x0", "s_atc_probe_buffer 5, s[44:47], 0x0"]
    before = State.random(bench.lanes, np.random.default_rng(65))
    bench.check([Case(name, before, before.copy()) for name in names])


def test_faults(bench: Bench) -> None:
    rng = np.random.default_rng(66)
    base = bench.buffer(bytes(64))
    two, four = (WIDTHS[n][bench.gfx11] for n in (2, 4))
    rows = [
        (f"s_load_{two} s[16:17], s[44:45], 0x3c", "out-of-bounds"),
        (f"s_load_{two} s[16:17], s[44:45], -0x4", "4 bytes before"),
        (f"s_buffer_load_{four} s[16:19], s[44:47], 0x38", "0 bytes past the end"),
    ]
    if not bench.gfx11:
        rows += [
            ("s_store_dword s16, s[0:1], 0x0", "read-only memory: write"),
            ("s_atomic_add_x2 s[16:17], s[44:45], 0x4", "misaligned atomic"),
            ("s_scratch_store_dword s16, s[44:45], m0", "out-of-bounds"),
        ]
    cases = []
    for text, _ in rows:
        before = State.random(bench.lanes, rng)
        before.set_s(44, reference.descriptor(base, 0, 4096, bench.gfx11), 4)
        before.m0 = 4
        cases.append(Case(text, before))
    for (text, words), (code, message) in zip(rows, bench.faults(cases), strict=True):
        assert code == 700 and words in message, f"{text}: {code} {message}"
