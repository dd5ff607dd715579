"""Atomics of every memory class: arithmetic, returned values, NaN, denormals and collisions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import lanes as machine
import memory as reference
import numpy as np
import pytest
from lanes import IDS, TARGETS, Bench, Case, State

Benches = dict[tuple[str, int], Bench]

# operation -> suffixes after global_atomic_ and buffer_atomic_: gfx950 32 and 64 bits, gfx1151 too.
L2: dict[str, tuple[str, str, str, str]] = {
    "swap": ("swap", "swap_x2", "swap_b32", "swap_b64"),
    "cmpswap": ("cmpswap", "cmpswap_x2", "cmpswap_b32", "cmpswap_b64"),
    "add": ("add", "add_x2", "add_u32", "add_u64"),
    "sub": ("sub", "sub_x2", "sub_u32", "sub_u64"),
    "csub": ("", "", "csub_u32", ""),
    "smin": ("smin", "smin_x2", "min_i32", "min_i64"),
    "umin": ("umin", "umin_x2", "min_u32", "min_u64"),
    "smax": ("smax", "smax_x2", "max_i32", "max_i64"),
    "umax": ("umax", "umax_x2", "max_u32", "max_u64"),
    "and": ("and", "and_x2", "and_b32", "and_b64"),
    "or": ("or", "or_x2", "or_b32", "or_b64"),
    "xor": ("xor", "xor_x2", "xor_b32", "xor_b64"),
    "inc": ("inc", "inc_x2", "inc_u32", "inc_u64"),
    "dec": ("dec", "dec_x2", "dec_u32", "dec_u64"),
    "add_f32": ("add_f32", "", "add_f32", ""),
    "add_f64": ("", "add_f64", "", ""),
    "min_f32": ("", "", "min_f32", ""),
    "max_f32": ("", "", "max_f32", ""),
    "min_f64": ("", "min_f64", "", ""),
    "max_f64": ("", "max_f64", "", ""),
    "pk_add_f16": ("pk_add_f16", "", "", ""),
    "pk_add_bf16": ("pk_add_bf16", "", "", ""),
    "fcmpswap": ("", "", "cmpswap_f32", ""),
}
# operation -> mnemonic: {rtn} is _rtn or nothing, {cmp} and {xchg} differ by target.
DS: dict[str, str] = {
    **{op: f"ds_{op}{{rtn}}_u{{bits}}" for op in ("add", "sub", "rsub", "inc", "dec")},
    **{op: f"ds_{op}{{rtn}}_b{{bits}}" for op in ("and", "or", "xor", "mskor")},
    **{op: f"ds_{op[1:]}{{rtn}}_i{{bits}}" for op in ("smin", "smax")},
    **{op: f"ds_{op[1:]}{{rtn}}_u{{bits}}" for op in ("umin", "umax")},
    **{op: f"ds_{op[:3]}{{rtn}}_f{{bits}}" for op in ("min_f", "max_f")},
    "cmpswap": "ds_{cmp}{rtn}_b{bits}",
    "fcmpswap": "ds_{cmp}{rtn}_f{bits}",
    "swap": "ds_{xchg}_rtn_b{bits}",
    "wrap": "ds_wrap_rtn_b32",
    **{f"add_{kind}": f"ds_add{{rtn}}_{kind}" for kind in ("f32", "f64")},
    **{f"pk_add_{kind}": f"ds_pk_add{{rtn}}_{kind}" for kind in ("f16", "bf16")},
}
ONLY_GFX950 = {"add_f64", "pk_add_f16", "pk_add_bf16"}
TWO = {"cmpswap", "fcmpswap", "mskor", "wrap"}


@pytest.fixture(scope="module")
def benches(assemble, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Benches]:
    with machine.benches(assemble, tmp_path_factory.mktemp("atomics")) as found:
        yield found


@pytest.fixture(params=TARGETS, ids=IDS)
def bench(request: pytest.FixtureRequest, benches: Benches) -> Bench:
    return benches[request.param]


def operands(
    op: str, bits: int, lanes: int, rng: np.random.Generator
) -> list[tuple[int, int, int]]:
    """(memory, data, comparand) of each lane: edges against edges, comparands that often match."""
    pool = reference.interesting(bits, "_f" in op or op.startswith("f"), rng, 8)
    if op.startswith("pk_add"):
        f = reference.F16 if op.endswith("f16") and "bf" not in op else reference.BF16
        halves = [
            0,
            f.sign,
            f.infinity,
            f.infinity | f.sign,
            f.infinity | 1,
            f.infinity - 1,
            1,
            f.fraction,
            f.bias << f.mantissa,
            f.bias << f.mantissa | f.sign,
            f.fraction + 1,
        ]
        pool = [int(rng.choice(halves)) | int(rng.choice(halves)) << 16 for _ in range(24)]
        pool += [int(x) for x in rng.integers(0, 1 << 32, 24)]
    rows = []
    for _ in range(lanes):
        m, d = (pool[int(k)] for k in rng.integers(0, len(pool), 2))
        c = m if rng.integers(3) else pool[int(rng.integers(len(pool)))]
        if op == "fcmpswap" and rng.integers(4) == 0:
            m, c = rng.permutation(np.array([0, 1 << (bits - 1)], np.uint64))
        rows.append((int(m), int(d), int(c)))
    return rows


def place(state: State, register: int, values: list[int], bits: int) -> None:
    if bits == 64:
        state.set_v64(register, values)
    else:
        state.v[register] = values


def old_values(want: State, register: int, rows: list[tuple[int, int, int]], bits: int) -> None:
    for lane in want.active():
        for k in range(bits // 32):
            want.v[register + k][lane] = rows[lane][0] >> 32 * k & reference.M32


class Cells:
    """Device memory with a cell of 16 bytes for each lane of each case."""

    def __init__(self, bench: Bench, cases: int) -> None:
        self.bench, self.data = bench, np.zeros(cases * bench.lanes * 16, np.uint8)
        self.address = bench.buffer(self.data.tobytes())
        self.want = reference.Memory(self.address, self.data.copy())
        self.start = reference.Memory(self.address, self.data)
        self.used = 0

    def claim(self) -> list[int]:
        self.used += 1
        first = self.address + (self.used - 1) * self.bench.lanes * 16
        return [first + 16 * lane for lane in range(self.bench.lanes)]

    def check(self, cases: list[Case]) -> None:
        self.bench.hip.upload(self.address, self.data.tobytes())
        self.bench.check(cases)
        got = self.bench.hip.download(self.address, len(self.data))
        wrong = np.flatnonzero(np.frombuffer(got, np.uint8) != self.want.data)
        assert not len(wrong), f"{cases[wrong[0] // 16 // self.bench.lanes].lines}: memory is wrong"


def l2_case(
    bench: Bench,
    cells: Cells,
    cls: str,
    op: str,
    bits: int,
    returns: bool,
    rng: np.random.Generator,
    flush: bool = False,
) -> Case:
    suffix = L2[op][2 * bench.gfx11 + bits // 64]
    words = bits // 32
    rows = operands(op, bits, bench.lanes, rng)
    before = State.drawn(bench.lanes, rng)
    place(before, 8, [d for _, d, _ in rows], bits)
    compares = op in TWO
    if compares:
        place(before, 8 + words, [c for _, _, c in rows], bits)
    last = 8 + words * (1 + compares) - 1
    data = "v8" if last == 8 else f"v[8:{last}]"
    addresses = cells.claim()
    out = "v20" if words == 1 else "v[20:21]"
    cache = (" glc" if bench.gfx11 else " sc0") if returns else ""
    if cls == "buffer":
        base = addresses[0]
        before.s[:4] = [
            x & reference.M32 for x in (base, base >> 32, bench.lanes * 16 + 8, 0x31004000)
        ]
        before.v[4] = [a - base for a in addresses]
        text = f"buffer_atomic_{suffix} {data}, v4, s[16:19], 0 offen{cache}"
        result = 8
    else:
        offset = 8 if cls == "global" else 4
        before.set_v64(4, [a - offset for a in addresses])
        text = f"{cls}_atomic_{suffix} " + (f"{out}, " if returns else "")
        text += (
            f"v[4:5], {data}" + (", off" if cls == "global" else "") + f" offset:{offset}{cache}"
        )
        result = 20
    want = before.copy()
    for lane, (m, d, c) in enumerate(rows):
        cells.start.write(addresses[lane], bits // 8, m)
        fresh = reference.atomic(op, bits, m, d, c, flush) if before.exec >> lane & 1 else m
        cells.want.write(addresses[lane], bits // 8, fresh)
    if returns:
        old_values(want, result, rows, bits)
    return Case(text, before, want)


def l2_table(bench: Bench, cls: str) -> list[tuple[str, int]]:
    return [
        (op, bits)
        for op in L2
        for bits in (32, 64)
        if L2[op][2 * bench.gfx11 + bits // 64] and not (cls == "flat" and op == "csub")
    ]


@pytest.mark.parametrize("cls", ["global", "flat", "buffer"])
def test_l2(bench: Bench, cls: str) -> None:
    rng = np.random.default_rng(20)
    table = [
        (op, bits, returns)
        for op, bits in l2_table(bench, cls)
        for returns in (False, True)
        for _ in range(3 if "_f" in op or op.startswith("pk") else 1)
        if returns or op != "csub"
    ]
    cells = Cells(bench, len(table))
    cells.check([l2_case(bench, cells, cls, *row, rng) for row in table])


def test_l2_add_f32_can_flush(assemble, tmp_path: Path) -> None:
    with machine.benches(assemble, tmp_path, "l2_add_f32=flush") as found:
        rng = np.random.default_rng(21)
        for target, flush in (("gfx950", True), ("gfx1151", False)):
            bench = found[target, 64]
            cells = Cells(bench, 4)
            cells.check(
                [
                    l2_case(bench, cells, cls, "add_f32", 32, False, rng, flush)
                    for cls in ("global", "buffer", "global", "flat")
                ]
            )


def ds_case(
    bench: Bench,
    op: str,
    bits: int,
    returns: bool,
    rng: np.random.Generator,
    flush: bool | None = None,
) -> Case:
    """`flush` sets MODE.denorm of every width; None leaves the kernel's, which keeps them."""
    kind = op[:5] if op in ("min_f", "max_f") else op
    named = f"{kind}{bits}" if kind in ("min_f", "max_f") else kind
    words = {
        "cmp": "cmpstore" if bench.gfx11 else "cmpst",
        "xchg": "storexchg" if bench.gfx11 else "wrxchg",
    }
    text = DS[kind].format(rtn="_rtn" if returns else "", bits=bits, **words)
    rows = operands(named, bits, bench.lanes, rng)
    before = State.drawn(bench.lanes, rng)
    first, second = (8, 12)
    # Only ds_cmpst has the comparand first.
    if op in ("cmpswap", "fcmpswap") and not bench.gfx11:
        first, second = second, first
    place(before, first, [d for _, d, _ in rows], bits)
    place(before, second, [c for _, _, c in rows], bits)
    offset = int(rng.integers(0, 8)) * 8
    order = [int(x) for x in rng.permutation(bench.lanes)]
    before.v[4] = [16 * k + 64 - offset for k in order]
    registers = ["v8", "v12"] if bits == 32 else ["v[8:9]", "v[12:13]"]
    ops = (["v20" if bits == 32 else "v[20:21]"] if returns else []) + ["v4", registers[0]]
    ops += registers[1:] if op in TWO else []
    want = before.copy()
    lds, start = reference.Memory(0, want.lds), reference.Memory(0, before.lds)
    for lane, (m, d, c) in enumerate(rows):
        at = 16 * order[lane] + 64
        start.write(at, bits // 8, m)
        fresh = reference.atomic(named, bits, m, d, c, bool(flush) and named != "add_f64")
        lds.write(at, bits // 8, fresh if before.exec >> lane & 1 else m)
    if returns:
        old_values(want, 20, rows, bits)
    setreg = (
        ""
        if flush is None
        else f"s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 4), {0 if flush else 15}\n"
    )
    return Case(f"{setreg}{text} {', '.join(ops)} offset:{offset}", before, want)


def ds_table(bench: Bench) -> list[tuple[str, int]]:
    rows = []
    for op in DS:
        widths = (
            [32] if "32" in op or "16" in op or op == "wrap" else [64] if "64" in op else [32, 64]
        )
        if not (bench.gfx11 and op in ONLY_GFX950):
            rows += [(op, bits) for bits in widths]
    return rows


def test_lds(bench: Bench) -> None:
    rng = np.random.default_rng(22)
    cases = []
    for op, bits in ds_table(bench):
        for returns in (False, True) if "{rtn}" in DS[op] else (True,):
            for _ in range(3 if "f" in op else 1):
                cases.append(ds_case(bench, op, bits, returns, rng))
    bench.check(cases)


def test_lds_floats_follow_the_denormal_mode(bench: Bench) -> None:
    rng = np.random.default_rng(23)
    bench.check(
        [
            ds_case(bench, op, bits, True, rng, flush)
            for op, bits in ds_table(bench)
            if "f" in op
            for flush in (True, False)
        ]
    )


def test_lanes_that_collide_are_served_in_ascending_order(bench: Bench) -> None:
    rng = np.random.default_rng(24)
    base = bench.buffer((1000).to_bytes(8, "little"))
    add, lds_add = (
        ("global_atomic_add_u32", "glc") if bench.gfx11 else ("global_atomic_add", "sc0"),
        "ds_add_rtn_u32",
    )
    before = State.drawn(bench.lanes, rng)
    before.set_s(24, base, 2)
    before.v[4] = 0
    want = before.copy()
    total, lds = 1000, reference.Memory(0, want.lds)
    for lane in before.active():
        want.v[20][lane], want.v[21][lane] = total & reference.M32, lds.read(0, 4)
        total += int(before.v[8][lane])
        lds.write(0, 4, lds.read(0, 4) + int(before.v[8][lane]))
    case = Case(f"{add[0]} v20, v4, v8, s[24:25] {add[1]}\n{lds_add} v21, v4, v8", before, want)
    bench.check([case])
    assert int.from_bytes(bench.hip.download(base, 8), "little") == total & reference.M32


def test_workgroups_that_collide_lose_nothing(bench: Bench) -> None:
    """256 workgroups on the host's threads: one counter, one wave each."""
    rng = np.random.default_rng(25)
    base = bench.buffer(bytes(8))
    text = "global_atomic_add_u64" if bench.gfx11 else "global_atomic_add_x2"
    before = State.random(bench.lanes, rng)
    before.set_s(24, base, 2)
    before.v[4] = 0
    before.set_v64(8, [(1 << 33) + 1] * bench.lanes)
    case = Case(f"{text} v4, v[8:9], s[24:25]", before, before.copy())
    bench.check([case] * 256)
    want = 256 * bench.lanes * ((1 << 33) + 1)
    assert int.from_bytes(bench.hip.download(base, 8), "little") == want


def test_scalar_atomics(benches: Benches) -> None:
    """gfx950: one operation a wave, whatever EXEC is; glc returns the old value."""
    bench = benches["gfx950", 64]
    rng = np.random.default_rng(26)
    names = [op for op in L2 if L2[op][0] and "_f" not in op and not op.startswith("pk")]
    table = [
        (op, bits, glc, buffer)
        for op in names
        for bits in (32, 64)
        for glc in (0, 1)
        for buffer in (0, 1)
    ]
    cells = Cells(bench, len(table))
    cases = []
    for op, bits, glc, buffer in table:
        m, d, c = operands(op, bits, 1, rng)[0]
        address = cells.claim()[0]
        words = bits // 32
        before = State.random(64, rng)
        before.exec = 0
        before.set_s(24, d | c << bits, 2 * words)
        before.set_s(20, address - 16, 2)
        before.set_s(22, 64)
        last = 24 + words * (1 + (op == "cmpswap")) - 1
        text = f"s_{'buffer_' if buffer else ''}atomic_{L2[op][words - 1]} "
        text += f"s{24}" if last == 24 else f"s[24:{last}]"
        text += f", s[20:{23 if buffer else 21}], 0x10{' glc' if glc else ''}"
        want = before.copy()
        if glc:
            want.set_s(24, m, words)
        cells.start.write(address, bits // 8, m)
        cells.want.write(address, bits // 8, reference.atomic(op, bits, m, d, c))
        cases.append(Case(text, before, want))
    cells.check(cases)


@pytest.mark.parametrize("switch", ["", "ds_append=m0"])
def test_append_and_consume(assemble, tmp_path: Path, switch: str) -> None:
    """One counter, moved by the number of active lanes; each of these gets the old value."""
    with machine.benches(assemble, tmp_path, switch) as found:
        for bench in found.values():
            rng = np.random.default_rng(27)
            cases = []
            for name, sign in (("ds_append", 1), ("ds_consume", -1)):
                for exec_mask in (0, 1 << 5, (1 << bench.lanes) - 1, 0b1011):
                    before = State.random(bench.lanes, rng)
                    before.exec, before.m0 = exec_mask, 0xABCD0020
                    want = before.copy()
                    at = 40 + (0x20 if switch else 0)
                    lds = reference.Memory(0, want.lds)
                    old = lds.read(at, 4)
                    lds.write(at, 4, old + sign * bin(exec_mask).count("1"))
                    for lane in before.active():
                        want.v[20][lane] = old
                    cases.append(Case(f"{name} v20 offset:40", before, want))
            bench.check(cases)
