"""MUBUF: addresses, range checks and swizzle of buffer descriptors, and both kinds of LDS DMA."""

from __future__ import annotations

from collections.abc import Iterator

import lanes as machine
import memory as reference
import numpy as np
import pytest
from lanes import IDS, TARGETS, Bench, Case, Scene, State

Benches = dict[tuple[str, int], Bench]
SIZE = 1 << 15
START = 4096  # of the buffer, in its memory


@pytest.fixture(scope="module")
def benches(assemble, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Benches]:
    with machine.benches(assemble, tmp_path_factory.mktemp("mubuf")) as found:
        yield found


@pytest.fixture(params=TARGETS, ids=IDS)
def bench(request: pytest.FixtureRequest, benches: Benches) -> Bench:
    return benches[request.param]


class Buffers(Scene):
    def __init__(self, bench: Bench, seed: int) -> None:
        super().__init__(bench, seed, SIZE)

    def access(
        self,
        part: str,
        kind: str,
        *,
        stride: int = 0,
        records: int = 64,
        offen: bool = False,
        idxen: bool = False,
        imm: int = 0,
        soffset: str | int = 0,
        offsets: list[int] | None = None,
        indices: list[int] | None = None,
        start: int = START,
        **fields: int,
    ) -> None:
        """A load or a store ("load", "store", "lds") whose descriptor is in s[20:23]."""
        bench, lanes = self.bench, self.bench.lanes
        before = self.state()
        v = reference.descriptor(self.base + start, stride, records, bench.gfx11, **fields)
        before.set_s(20, v, 4)
        offsets = [o & reference.M32 for o in offsets or [0] * lanes] if offen else [0] * lanes
        indices = indices or [0] * lanes if idxen else [0] * lanes
        registers = ([indices] if idxen else []) + ([offsets] if offen else [])
        for k, values in enumerate(registers):
            before.v[4 + k] = values
        before.m0 = 8
        before.set_s(28, 20)
        sum_offset = {"s28": 20, "m0": 8, "null": 0}.get(str(soffset), soffset)
        vaddr = ("off", "v4", "v[4:5]")[len(registers)]
        mode = f"{' idxen' if idxen else ''}{' offen' if offen else ''} offset:{imm}"
        count = reference.dwords(part)
        data = "v12" if count == 1 else f"v[12:{11 + count}]"
        if kind == "lds":
            text = f"buffer_load_{reference.LOADS[part][0]} {vaddr}, s[20:23], {soffset}{mode} lds"
        else:
            suffix = (reference.LOADS if kind == "load" else reference.STORES)[part][bench.gfx11]
            text = f"buffer_{kind}_{suffix} {data}, {vaddr}, s[20:23], {soffset}{mode}"
        want = before.copy()
        element = min(4, reference.size(part))
        for lane in before.active():
            for k in range(count):
                address = reference.buffer_element(
                    v,
                    bench.gfx11,
                    lane=lane,
                    idxen=idxen,
                    index=indices[lane],
                    offset=offsets[lane] + imm,
                    soffset=int(sum_offset),
                    at=4 * k,
                    count=element,
                )
                if kind == "store":
                    if address is not None:
                        value = int(before.v[12 + k][lane]) >> (
                            16 if reference.PARTS[part][2] else 0
                        )
                        self.memory.write(address, element, value)
                    continue
                raw = 0 if address is None else self.memory.read(address, element)
                if kind == "lds":
                    stride_lds = 16 if count >= 3 else 4
                    value = reference.extended(part, raw, 0, False) if element < 4 else raw
                    lds = reference.Memory(0, want.lds)
                    lds.write(8 + imm + lane * stride_lds + 4 * k, 4, value)
                elif element < 4:
                    old = int(before.v[12][lane])
                    want.v[12][lane] = reference.extended(part, raw, old, bench.gfx11)
                else:
                    want.v[12 + k][lane] = raw
        self.cases.append(
            Case(text, before, want, f"{text}  stride {stride}, records {records}, {fields}")
        )


def soffsets(bench: Bench) -> list[str | int]:
    return [0, "s28", "m0", 64, "null" if bench.gfx11 else 1]


def test_raw_loads(bench: Bench) -> None:
    """Offsets from VGPR, instruction and SOFFSET; per dword what does not fit reads 0."""
    scene = Buffers(bench, 40)
    lanes = bench.lanes
    for part in reference.LOADS:
        for k, soffset in enumerate(soffsets(bench)):
            offsets = [int(x) for x in scene.rng.integers(0, 400, lanes)]
            offsets[3], offsets[4] = -4 & reference.M32, 0xFFFFFFF0
            imm = (0, 16, 255)[k % 3]
            scene.access(
                part, "load", records=300 + k, offen=True, imm=imm, soffset=soffset, offsets=offsets
            )
        scene.access(part, "load", records=40, imm=4 * int(scene.rng.integers(0, 9)), soffset="s28")
        scene.access(part, "load", records=0)
    scene.check()


def test_structured_loads(bench: Bench) -> None:
    """gfx950: the index alone decides; gfx1151: OOB_SELECT 0 to 3."""
    scene = Buffers(bench, 41)
    lanes = bench.lanes
    for part in ("b32", "b96", "u8", "d16_hi_b16", "b128"):
        for oob in range(4):
            for stride in (0, 12, 36):
                indices = [int(x) for x in scene.rng.integers(0, 40, lanes)]
                offsets = [int(x) for x in scene.rng.integers(0, 40, lanes)]
                for offen in (False, True):
                    scene.access(
                        part,
                        "load",
                        stride=stride,
                        records=30,
                        idxen=True,
                        offen=offen,
                        imm=4,
                        soffset="s28",
                        indices=indices,
                        offsets=offsets,
                        oob=oob,
                    )
    # Whatever the rule, an unbound descriptor reads 0 on gfx1151, and one without records does.
    if bench.gfx11:
        scene.access("b32", "load", records=64, oob=2, resource=1)
    scene.access("b64", "load", stride=8, records=0, idxen=True, oob=2)
    scene.check()


def test_swizzled_and_add_tid_loads(bench: Bench) -> None:
    scene = Buffers(bench, 42)
    lanes = bench.lanes
    indices = [int(x) for x in scene.rng.integers(0, 20, lanes)]
    offsets = [int(x) for x in scene.rng.integers(0, 12, lanes)]
    for swizzle in (0, 1, 3) if bench.gfx11 else (0, 1):
        for index_stride in range(4):
            for idxen in (False, True):
                for add_tid in (False, True):
                    for oob in (1, 3) if bench.gfx11 else (3,):
                        scene.access(
                            "b64",
                            "load",
                            stride=32,
                            records=100 if idxen or oob == 1 else 4096,
                            idxen=idxen,
                            offen=True,
                            indices=indices,
                            offsets=offsets,
                            oob=oob,
                            soffset="s28" if index_stride % 2 else 3,
                            swizzle=swizzle,
                            index_stride=index_stride,
                            add_tid=add_tid,
                            data_format=0,
                        )
    scene.check()


def test_add_tid_widens_the_stride_on_gfx950(benches: Benches) -> None:
    """The data format's four bits are stride[17:14] there: lanes are then 16 KiB apart or more."""
    bench = benches["gfx950", 64]
    data = np.random.default_rng(43).integers(0, 1 << 32, 0x4010 * 16, np.uint32)
    base = bench.buffer(data.tobytes())
    before = State.random(64, np.random.default_rng(44))
    before.set_s(20, reference.descriptor(base, 0x10, 0, False, add_tid=True, data_format=1), 4)
    want = before.copy()
    want.v[12] = data[[0x4010 // 4 * lane for lane in range(64)]]
    bench.check([Case("buffer_load_dword v12, off, s[20:23], 0", before, want)])
    bench.hip.free(base)


def test_stores(bench: Bench) -> None:
    """A dword that does not fit is dropped, and only that."""
    scene = Buffers(bench, 45)
    lanes, room = bench.lanes, 20
    for k, part in enumerate(reference.STORES):
        # Each case has memory of its own, since workgroups run in any order.
        scene.access(
            part,
            "store",
            records=lanes * room - 50 + k,
            offen=True,
            imm=3,
            soffset="s28",
            offsets=[lane * room for lane in range(lanes)],
            start=2 * k * 1536,
        )
        scene.access(
            part,
            "store",
            stride=room,
            records=lanes - 5,
            idxen=True,
            oob=0,
            indices=list(range(lanes)),
            imm=room - 8,
            start=(2 * k + 1) * 1536,
        )
    scene.check()


def test_atomics_are_all_or_nothing(bench: Bench) -> None:
    rng = np.random.default_rng(46)
    data = rng.integers(0, 256, 1024, np.uint8)
    base = bench.buffer(data.tobytes())
    before = State.random(bench.lanes, rng)
    before.set_s(20, reference.descriptor(base, 0, 68, bench.gfx11), 4)
    before.v[4] = [8 * lane for lane in range(bench.lanes)]
    want = before.copy()
    memory = reference.Memory(base, data)
    for lane in range(bench.lanes):
        old = memory.read(base + 8 * lane, 8) if 8 * lane + 8 <= 68 else 0
        want.v[12][lane], want.v[13][lane] = old & reference.M32, old >> 32
        if 8 * lane + 8 <= 68:
            memory.write(
                base + 8 * lane, 8, int(before.v[12][lane]) | int(before.v[13][lane]) << 32
            )
    name, glc = ("swap_b64", "glc") if bench.gfx11 else ("swap_x2", "sc0")
    bench.check([Case(f"buffer_atomic_{name} v[12:13], v4, s[20:23], 0 offen {glc}", before, want)])
    assert bench.hip.download(base, 1024) == data.tobytes()


def test_addresses_past_four_gigabytes(bench: Bench) -> None:
    """index * stride and the offsets add up in 64 bits."""
    bench.select()
    base = bench.hip.malloc((5 << 30) + 64)
    place = 0x4000 * 0x3FFC + 0xFFFFFF00  # index, then the offset
    bench.hip.upload(base + place + 20, bytes(range(16)))
    before = State.random(bench.lanes, np.random.default_rng(47))
    before.set_s(20, reference.descriptor(base, 0x3FFC, 0x4001, bench.gfx11, oob=1), 4)
    before.set_s(28, 20)
    before.v[4], before.v[5] = 0x4000, 0xFFFFFF00
    want = before.copy()
    for k in range(4):
        want.v[12 + k] = int.from_bytes(bytes(range(4 * k, 4 * k + 4)), "little")
    name = "b128" if bench.gfx11 else "dwordx4"
    text = f"buffer_load_{name} v[12:15], v[4:5], s[20:23], s28 idxen offen"
    bench.check([Case(text, before, want)])
    bench.hip.free(base)


def test_lds_dma(benches: Benches) -> None:
    """M0 and the instruction's offset count in LDS too; lanes that are off leave a hole; a source
    that is out of range writes 0."""
    scene = Buffers(benches["gfx950", 64], 48)
    for part in ("u8", "i8", "u16", "i16", "b32", "b96", "b128"):
        for imm in (0, 64):
            offsets = [int(x) for x in scene.rng.integers(0, 400, 64)]
            scene.access(
                part, "lds", records=300, offen=True, imm=imm, soffset="s28", offsets=offsets
            )
        scene.access(part, "lds", stride=16, records=40, idxen=True, imm=8, indices=list(range(64)))
    scene.check()


def test_global_lds_dma(benches: Benches) -> None:
    """LDS byte = M0[17:2] * 4 + offset + lane * S."""
    bench = benches["gfx950", 64]
    scene = Buffers(bench, 49)
    parts = {
        "u8": "ubyte",
        "i8": "sbyte",
        "u16": "ushort",
        "i16": "sshort",
        "b32": "dword",
        "b96": "dwordx3",
        "b128": "dwordx4",
    }
    for part, suffix in parts.items():
        for form, offset in (("vaddr", 0), ("saddr", 40), ("vaddr", -8)):
            before = scene.state()
            before.m0 = 0xFFFC0013
            places = [int(x) for x in scene.rng.integers(8, SIZE - 64, 64)]
            if form == "saddr":
                before.set_s(24, scene.base, 2)
                before.v[4] = places
                operands = "v4, s[24:25]"
            else:
                before.set_v64(4, [scene.base + p for p in places])
                operands = "v[4:5], off"
            want = before.copy()
            lds = reference.Memory(0, want.lds)
            for lane in before.active():
                to = 0x10 + offset + lane * (16 if reference.dwords(part) >= 3 else 4)
                raw = scene.memory.read(scene.base + places[lane] + offset, reference.size(part))
                if reference.size(part) < 4:
                    raw = reference.extended(part, raw, 0, False)
                lds.write(to, max(4, reference.size(part)), raw)
            scene.cases.append(
                Case(f"global_load_lds_{suffix} {operands} offset:{offset}", before, want)
            )
    for part, suffix in list(parts.items())[:5]:
        before = scene.state()
        before.m0, before.v[4] = 64, 100
        want = before.copy()
        for lane in before.active():
            raw = reference.Memory(0, before.scratch[lane]).read(120, reference.size(part))
            if reference.size(part) < 4:
                raw = reference.extended(part, raw, 0, False)
            reference.Memory(0, want.lds).write(84 + 4 * lane, 4, raw)
        text = f"scratch_load_lds_{suffix} v4, off offset:20"
        scene.cases.append(Case(text, before, want))
    scene.check()


def test_faults_and_refusals(bench: Bench) -> None:
    """In range by the descriptor, yet outside every region; and what is left out, by name."""
    rng = np.random.default_rng(50)
    base = bench.buffer(bytes(64))
    word = "b32" if bench.gfx11 else "dword"
    add = "add_u32" if bench.gfx11 else "add"
    rows = [
        (f"buffer_load_{word} v12, v4, s[20:23], 0 offen", 700, "out-of-bounds access of 4 bytes"),
        (
            f"buffer_store_{word} v12, v4, s[20:23], 0 offen",
            700,
            "0 bytes past the end of hipMalloc",
        ),
        (f"buffer_atomic_{add} v12, off, s[20:23], 0 offset:2", 700, "misaligned atomic"),
    ]
    if bench.gfx11:
        rows += [
            ("buffer_load_b32 v[12:13], off, s[20:23], 0 tfe", 719, "modifier tfe"),
            (
                "image_load v12, v[4:5], s[16:23] dmask:0x1 dim:SQ_RSRC_IMG_2D",
                719,
                "images are not",
            ),
            ("ds_bvh_stack_rtn_b32 v12, v4, v5, v[16:19]", 719, "ray tracing"),
            ("ds_gws_barrier v4 gds", 719, "global wave sync"),
            ("ds_add_u32 v4, v5 gds", 719, "modifier gds"),
        ]
    else:
        rows += [
            ("ds_gws_init v4 gds", 719, "global wave sync"),
            ("s_dcache_discard s[24:25], 0x0", 719, "scalar cache"),
            ("buffer_load_dword off, s[24:27], 0 lds", 700, "LDS access of 4 bytes"),
        ]
    cases = []
    for text, _, _ in rows:
        before = State.random(bench.lanes, rng)
        before.set_s(20, reference.descriptor(base, 0, 4096, bench.gfx11), 4)
        before.set_s(24, reference.descriptor(base, 0, 64, bench.gfx11), 4)
        before.exec, before.v[4], before.m0 = 2, 64, machine.LDS_BYTES - 4
        cases.append(Case(text, before))
    for (text, code, words), (got, message) in zip(rows, bench.faults(cases), strict=True):
        assert got == code and words in message, f"{text}: {got} {message}"


def test_cache_control_changes_nothing(bench: Bench) -> None:
    names = (
        ["buffer_gl0_inv", "buffer_gl1_inv"]
        if bench.gfx11
        else ["buffer_inv sc0 sc1", "buffer_wbl2 sc1", "buffer_inv"]
    )
    before = State.random(bench.lanes, np.random.default_rng(51))
    bench.check([Case(name, before, before.copy()) for name in names])
