"""Typed buffer accesses: every format, MTBUF and MUBUF, D16, DST_SEL, ranges; what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import formats
import lanes as machine
import memory as reference
import numpy as np
import pytest
from formats import KINDS, LAYOUTS
from lanes import IDS, TARGETS, Bench, Case, Scene
from memory import F16, F32, M32

Benches = dict[tuple[str, int], Bench]
NAMES = ("x", "xy", "xyz", "xyzw")
START = 256


@pytest.fixture(scope="module")
def benches(
    assemble: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Benches]:
    with machine.benches(assemble, tmp_path_factory.mktemp("formats")) as found:
        yield found


@pytest.fixture(params=TARGETS, ids=IDS)
def bench(request: pytest.FixtureRequest, benches: Benches) -> Bench:
    return benches[request.param]


def available(bench: Bench) -> list[tuple[str, str]]:
    if bench.gfx11:
        return formats.of_gfx1151()[1:]
    return [(n, k) for n in LAYOUTS for k in KINDS if formats.exists(n, k)]


def size(layout: str) -> int:
    return sum(LAYOUTS[layout]) // 8


def descriptor(
    bench: Bench, base: int, stride: int, records: int, layout: str, kind: str, select: int = 0xFAC
) -> int:
    """With a format and DST_SEL; the default is X, Y, Z, W."""
    v = reference.descriptor(base, stride, records, bench.gfx11, data_format=0, oob=3)
    v &= ~(0x7FFFF << 96)
    if bench.gfx11:
        code = formats.of_gfx1151().index((layout, kind))
    else:
        code = KINDS.index(kind) | list(LAYOUTS).index(layout) << 3
    return v | (select | code << 12) << 96


def spelling(bench: Bench, verb: str, typed: bool, n: int, d16: bool, high: bool) -> str:
    name = f"{'t' * typed}buffer_{verb}"
    part = "_d16_hi" if high else "_d16" if d16 else ""
    first, second = (part, "_format") if bench.gfx11 else ("_format", part)
    return f"{name}{first}{second}_{NAMES[n - 1]}"


def told(bench: Bench, typed: bool, layout: str, kind: str) -> str:
    if not typed:
        return ""
    if bench.gfx11:
        return f" format:[BUF_FMT_{layout}_{kind}]"
    return f" format:[BUF_DATA_FORMAT_{layout},BUF_NUM_FORMAT_{kind}]"


def has_answer(layout: str, kind: str, d16: bool) -> bool:
    """D16 of what does not fit in 16 bits is refused."""
    return not d16 or (max(LAYOUTS[layout]) <= 16 and ("SCALED" not in kind
                                                     or max(LAYOUTS[layout]) <= 11))


def shapes(layout: str, kind: str) -> list[tuple[int, bool, bool]]:
    """Components, D16, D16_HI."""
    found = [(n, False, False) for n in (1, 2, 3, 4)]
    if has_answer(layout, kind, True):
        found += [(n, True, False) for n in (1, 2, 3, 4)] + [(1, True, True)]
    return found


def merged(values: list[int], old: list[int], d16: bool, high: bool, keep: bool) -> list[int]:
    """Registers after a load of these components."""
    if not d16:
        return values
    old = [o if keep else 0 for o in old]
    if high:
        return [old[0] & 0xFFFF | values[0] << 16]
    made = []
    for k in range(0, len(values), 2):
        upper = values[k + 1] << 16 if k + 1 < len(values) else old[k // 2] & 0xFFFF0000
        made.append(values[k] | upper)
    return made


def unpacked(element: int, layout: str) -> list[int]:
    found, at = [], 0
    for width in LAYOUTS[layout]:
        found.append(element >> at & (1 << width) - 1)
        at += width
    return found


@pytest.mark.parametrize("typed", [False, True], ids=["mubuf", "mtbuf"])
def test_loads(bench: Bench, typed: bool) -> None:
    """Random elements and offsets; some lie outside, and count as zeros."""
    scene = Scene(bench, 70, 4096)
    scene.data[::7] = 0xFF
    bench.hip.upload(scene.base, scene.data.tobytes())
    for layout, kind in available(bench):
        widths, bytes_ = LAYOUTS[layout], size(layout)
        every = shapes(layout, kind)
        for pick in scene.rng.permutation(len(every))[:4]:
            n, d16, high = every[pick]
            if typed and high:
                continue
            before = scene.state()
            select = 0xFAC if typed else int("".join(
                oct(int(s))[2:] for s in scene.rng.choice([0, 1, 4, 5, 6, 7], 4)), 8)
            records = 1500
            # The descriptor's own format is not looked at by MTBUF.
            own = ("8", "UINT") if typed else (layout, kind)
            v = descriptor(bench, scene.base + START, 0, records, *own, select)
            before.set_s(20, v, 4)
            offsets = [int(x) for x in scene.rng.integers(0, records + 40, bench.lanes)]
            before.v[4] = offsets
            before.set_s(28, 12)
            count = (n + 1) // 2 if d16 else n
            one = 1 if kind in ("UINT", "SINT") else 0x3C00 if d16 else 0x3F800000
            want = before.copy()
            for lane in before.active():
                at = offsets[lane] + 8 + 12
                inside = at + bytes_ <= records
                element = scene.memory.read(scene.base + START + at, bytes_) if inside else 0
                parts = [formats.loaded(x, w, kind, d16)
                         for x, w in zip(unpacked(element, layout), widths, strict=True)]
                parts += [0, 0, 0, one][len(parts):]
                values = []
                for k in range(n):
                    code = 4 + k if typed else select >> 3 * k & 7
                    values.append(parts[code - 4] if code >= 4 else one * code)
                old = [int(before.v[12 + k][lane]) for k in range(count)]
                for k, x in enumerate(merged(values, old, d16, high, bench.gfx11)):
                    want.v[12 + k][lane] = x
            data = "v12" if count == 1 else f"v[12:{11 + count}]"
            text = (f"{spelling(bench, 'load', typed, n, d16, high)} {data}, v4, s[20:23], s28"
                    f"{told(bench, typed, layout, kind)} offen offset:8")
            scene.cases.append(Case(text, before, want, f"{text} {layout} {kind} {select:o}"))
    scene.check()


def storable(rng: np.random.Generator, width: int, kind: str, d16: bool) -> int:
    """A register's value that the format takes without a question."""
    if kind in ("UINT", "SINT"):
        bits = min(width, 16 if d16 else 32)
        x = int(rng.integers(0, 1 << bits))
        if kind == "SINT":
            x = formats.signed(x, bits)
        return x & (0xFFFF if d16 else M32)
    f = F16 if d16 else F32
    if kind == "FLOAT":
        if width == 32:
            return int(rng.integers(0, 1 << (16 if d16 else 32)))
        x = int(rng.integers(0, 1 << width))
        half = x if width == 16 else formats.small(x, width)
        if F16.nan(half):
            half = 0x7C00 if width < 16 else half | 0x200
        return half if d16 else formats.f16_as_f32(half)
    if "SCALED" in kind:
        low = -(1 << width - 1) if kind[0] == "S" else 0
        x = int(rng.integers(low, low + (1 << min(width, 11))))
        return formats.encoded(x, d16)
    edges = [0, f.sign, formats.encoded(1, d16), formats.encoded(0.5, d16),
             f.sign | formats.encoded(0.5, d16), f.infinity, f.infinity | f.sign,
             f.infinity | f.quiet, 1]
    if rng.integers(4) == 0:
        return int(edges[rng.integers(len(edges))])
    return formats.encoded(int(rng.integers(-3000, 3000)) / 2048, d16)


@pytest.mark.parametrize("typed", [False, True], ids=["mubuf", "mtbuf"])
def test_stores(bench: Bench, typed: bool) -> None:
    """Elements of all formats, side by side; what does not fit the range is dropped whole."""
    pairs = available(bench)
    room = 1200
    scene = Scene(bench, 71, START + room * 2 * len(pairs))
    turn = 0
    for layout, kind in pairs:
        widths, bytes_ = LAYOUTS[layout], size(layout)
        every = [s for s in shapes(layout, kind) if s[0] >= len(widths)]
        for pick in scene.rng.permutation(len(every))[:2]:
            n, d16, high = every[pick]
            if typed and high:
                n, d16, high = every[0]
            place = START + room * turn
            turn += 1
            before = scene.state()
            records = bench.lanes * bytes_ - 1
            v = descriptor(bench, scene.base + place, 0, records, layout, kind)
            before.set_s(20, v, 4)
            before.v[4] = [bytes_ * lane for lane in range(bench.lanes)]
            count = (n + 1) // 2 if d16 else n
            for lane in range(bench.lanes):
                values = [storable(scene.rng, w, kind, d16) for w in widths]
                for k, x in enumerate(values):
                    if d16:
                        shift = 16 if high or k % 2 else 0
                        keep = int(before.v[12 + k // 2][lane]) & ~(0xFFFF << shift)
                        before.v[12 + k // 2][lane] = keep | x << shift
                    else:
                        before.v[12 + k][lane] = x
                element, at = 0, 0
                for x, w in zip(values, widths, strict=True):
                    element |= formats.stored(x, w, kind, d16) << at
                    at += w
                if before.exec >> lane & 1 and bytes_ * (lane + 1) <= records:
                    scene.memory.write(scene.base + place + bytes_ * lane, bytes_, element)
            data = "v12" if count == 1 else f"v[12:{11 + count}]"
            text = (f"{spelling(bench, 'store', typed, n, d16, high)} {data}, v4, s[20:23], 0"
                    f"{told(bench, typed, layout, kind)} offen")
            scene.cases.append(Case(text, before, before.copy(), f"{text} {layout} {kind}"))
    scene.check()


def test_indices_and_swizzle(bench: Bench) -> None:
    """A wide element lies in pieces where the buffer is swizzled."""
    scene = Scene(bench, 72, 1 << 14)
    indices = [int(x) for x in scene.rng.integers(0, 60, bench.lanes)]
    for swizzle in (0, 1):
        for add_tid in (False, True):
            before = scene.state()
            v = descriptor(bench, scene.base, 32, 50, "32_32", "UINT")
            v |= (swizzle << 62 if bench.gfx11 else swizzle << 63) | add_tid << 119
            before.set_s(20, v, 4)
            before.v[4] = indices
            want = before.copy()
            # Typed: the format is no part of the stride, which stays 32 under ADD_TID.
            plain = v if bench.gfx11 else v & ~(0xF << 111)
            for lane in before.active():
                for k in (0, 1):
                    address = reference.buffer_element(
                        plain, bench.gfx11, lane=lane, idxen=True, index=indices[lane], offset=4,
                        soffset=0, at=4 * k, count=8 - 4 * k)
                    want.v[12 + k][lane] = scene.memory.read(address, 4) if address else 0
            text = "buffer_load_format_xy v[12:13], v4, s[20:23], 0 idxen offset:4"
            scene.cases.append(Case(text, before, want, f"{text} swizzle {swizzle} {add_tid}"))
    scene.check()


def test_refusals(bench: Bench) -> None:
    """What no source says is a fault with the reason."""
    base = bench.buffer(bytes(256))
    x = spelling(bench, "load", False, 1, True, False)
    rows = [
        ("buffer_load_format_x v12, off, s[20:23], 0", ("INVALID", "UNORM", 0xFAC), "not one that"),
        ("buffer_load_format_x v12, off, s[20:23], 0", ("8", "UNORM", 2), "reserved value"),
        ("buffer_store_format_x v12, off, s[20:23], 0", ("8", "UNORM", 5), "DST_SEL other"),
        ("buffer_store_format_x v12, off, s[20:23], 0", ("8_8", "UINT", 0xFAC), "does not have"),
        ("buffer_store_format_x v12, off, s[20:23], 0", ("8", "UINT", 0xFAC), "an integer becomes"),
        ("buffer_store_format_x v13, off, s[20:23], 0", ("16", "FLOAT", 0xFAC), "is rounded"),
        (f"{x} v12, off, s[20:23], 0", ("32", "UINT", 0xFAC), "is rounded"),
    ]
    cases = []
    for text, how, _ in rows:
        before = machine.State.random(bench.lanes, np.random.default_rng(73))
        before.set_s(20, descriptor(bench, base, 0, 256, *how), 4)
        before.v[12], before.v[13] = 256, 0x3F800001
        cases.append(Case(text, before))
    for (text, _, why), (code, said) in zip(rows, bench.faults(cases), strict=True):
        assert code == 719 and why in said, f"{text}: {said}"
