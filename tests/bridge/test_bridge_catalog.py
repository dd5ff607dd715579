"""The catalog reader of the bridge, held against the Python one on the same bytes."""

from __future__ import annotations

import math
import random
import struct
import subprocess
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest
from compiled_face import (
    ARG_NAMES,
    ARGUMENT,
    CATALOG,
    FILE,
    KERNARG,
    LAUNCH,
    Decision,
    Native,
    Refused,
    Toy,
    resealed,
    toy_writer,
)  # fmt: skip
from expressions import FORMS, floats, inputs, numbers, predicates
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from netra_catalog.call import Call, Tensor
from netra_catalog.compiled import CompiledCatalog, CompiledTactic
from netra_catalog.contract import ContractError
from netra_catalog.dispatch import Match, admitted, match, plan, workspace_bytes
from netra_catalog.dtypes import DTYPES
from netra_catalog.errors import NetraError, UsageError
from netra_catalog.format import HEADER, SECTION, SECTIONS
from toy_contract import TRUE, call

WORKSPACE = 0x7F00_0000_0000
ROOT = Path(__file__).resolve().parents[2]
Open = Callable[..., tuple[Native, CompiledCatalog]]


@pytest.fixture
def opened(bridge_library: Path, tmp_path: Path) -> Open:
    """opened(image, simulated=True): the same bytes, read in C and in Python."""

    def read(image: bytes, simulated: bool = True) -> tuple[Native, CompiledCatalog]:
        path = tmp_path / "catalog.bin"
        path.write_bytes(image)
        return Native(bridge_library, path, simulated), CompiledCatalog(image)

    return read


def decided(tactics: list[CompiledTactic], asked: Call) -> Decision | type[NetraError]:
    """What the Python evaluator says, as the C one would."""
    try:
        found = match(tactics, asked)  # type: ignore[arg-type]
    except NetraError:
        return NetraError
    if isinstance(found, Match):
        return Decision(True, found.tactic.id, "", len(found.tactic.contract))
    return Decision(False, found.tactic.id if found.tactic else "", found.predicate_id, 0)


def agree(native: Native, python: CompiledCatalog, asked: Call, workspace: int) -> str:
    """Holds C and Python equal on one call: what takes it, what it launches.  Says what came."""
    tactics = admitted(python.tactics(asked.op), simulated=True)  # type: ignore[arg-type]
    want = decided(tactics, asked)  # type: ignore[arg-type]
    names = [arg.name for arg in python.op(python.ops.index(asked.op)).args]
    given = native.call(asked, names)
    if want is NetraError:
        with pytest.raises(Refused, match="equal rank") as refused:
            native.decide(given)
        assert refused.value.status == CATALOG
        return "ambiguous"
    got = native.decide(given)
    assert isinstance(want, Decision)
    assert (got.taken, got.tactic, got.reason) == (want.taken, want.tactic, want.reason)
    if not got.taken:
        return got.reason
    assert got.passed == want.passed
    tactic = next(t for t in tactics if t.id == got.tactic)
    number = native.tactic(got.tactic)
    size = outcome(lambda: workspace_bytes(tactic, asked))
    assert outcome(lambda: native.workspace(number, given)) == size
    wanted = outcome(lambda: [
        (p.kernel, p.grid, p.block, p.lds, p.kernarg) for p in plan(tactic, asked, workspace)
    ])
    count = native.describe(number).launches
    assert outcome(
        lambda: [native.plan(number, i, given, workspace) for i in range(count)]
    ) == wanted
    return wanted if isinstance(wanted, str) else "planned"


def outcome(action: Callable[[], object]) -> object:
    """The result, or the kind of the refusal: "usage", "refused"."""
    try:
        return action()
    except UsageError:
        return "usage"
    except NetraError:
        return "refused"
    except Refused as error:
        assert error.status in (ARGUMENT, LAUNCH, KERNARG), error
        return "usage" if error.status == ARGUMENT else "refused"


# Random contracts, random calls

extents = st.sampled_from([0, 1, 2, 3, 16, 256, 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1])
steps = st.sampled_from([0, 1, 2, 16, 256, -1, -256, 2**31, 2**62, 2**63 - 1, -(2**63)])
layouts = st.sampled_from([None, "unknown", "row_major", "shuffled", "of nobody", "of no one"])
addresses = st.sampled_from([0, 1, 0x1000, 0x1010, 0x1008, 0x2000, 2**63, 2**64 - 1])


@st.composite
def tensors(draw: st.DrawFn) -> Tensor:
    dtype, ptr, layout = draw(st.sampled_from(DTYPES)), draw(addresses), draw(layouts)
    rank = draw(st.sampled_from([2, 2, 2, 1, 0, 3, 5]))
    shape = tuple(draw(st.lists(extents, min_size=rank, max_size=rank)))
    if draw(st.booleans()):
        made = Tensor.dense(ptr, dtype, shape)
        strides = tuple(min(s, 2**63 - 1) for s in made.strides)
    else:
        strides = tuple(draw(st.lists(steps, min_size=rank, max_size=rank)))
    reach = Tensor(ptr, dtype, shape, strides, 0).max_byte_offset + 1
    extent = max(0, reach + draw(st.sampled_from([0, 0, 0, 1, -1, 4096])))
    if draw(st.integers(0, 19)) == 0 and shape:
        shape = (-1, *shape[1:])
    return Tensor(ptr, dtype, shape, strides, min(extent, 2**64 - 1), layout)


small = st.sampled_from([
    "1", "a", "k", "ceildiv(a, k)", "x.shape[0]", "max(1, a % 8)", "out.shape[1]", "2**31 - 1",
    "65535", "65536", "a // k", "b", "1024",
])  # fmt: skip
contracts = st.lists(
    st.one_of(predicates, st.sampled_from([*FORMS, *TRUE])), min_size=0, max_size=3
)
arguments = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["u64", "i64", "u32", "i32", "f32", "f64"]), numbers),
        st.tuples(st.sampled_from(["f32", "f64"]), st.sampled_from(["eps", "wide"])),
        st.tuples(st.sampled_from(["ptr", "u64"]),
                  st.sampled_from(["workspace + a", "x", "out", "x + 16", "workspace"])),
        # The whole of a value, in two parts.
        numbers.map(lambda text: ("u64", f"({text}) % 2**64")),
        numbers.map(lambda text: ("i64", f"({text}) // 2**64")),
    ),
    max_size=4,
)  # fmt: skip
toys = st.builds(
    Toy,
    contract=contracts.map(lambda texts: {f"p{i}": text for i, text in enumerate(texts)}),
    rank=st.sampled_from([0, 0, 1]), arch=st.sampled_from(["gfx950", "gfx950", "gfx1151"]),
    workspace=st.sampled_from(["0", "a * 4", "k * 2**40 * a", "a // k"]),
    grid=st.tuples(small, small, small), block=st.tuples(small, st.just("1"), small),
    lds=st.sampled_from(["0", "a * 16", "k", "65536", "163840"]), args=arguments,
)  # fmt: skip
calls = st.builds(
    call,
    x=st.one_of(tensors(), tensors(), st.none()), out=tensors(),
    a=st.one_of(inputs, st.integers(1, 9), st.just(2.0)), b=inputs,
    k=st.one_of(st.integers(0, 9), st.sampled_from([2**31, 2**32 - 1, 2**32, -1])),
    eps=st.one_of(floats, st.floats(), st.integers(-(2**63), 2**64 - 1)),
    wide=st.one_of(floats, st.floats(), st.none()),
    cu_count=st.sampled_from([256, 304, 0, -1, 2**31, 2**63 - 1]),
    phase=st.sampled_from(["decode", "prefill", "of nobody"]),
    graph=st.sampled_from(["eager", "capture", "piecewise"]),
)  # fmt: skip


def present(asked: Call) -> Call:
    """None stands for an argument that is not given."""
    args = {name: value for name, value in asked.args.items() if value is not None}
    return Call(asked.op, asked.arch, asked.phase, asked.graph, asked.cu_count, args)


def writer_of(toys: dict[str, Toy]) -> bytes:
    try:
        return toy_writer(toys).image()
    except ContractError:
        assume(False)  # a constant that can never be right is refused before any call
        raise


@settings(max_examples=200, deadline=None,
          suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    st.dictionaries(st.sampled_from("abc"), toys, min_size=1, max_size=3),
    st.lists(calls, min_size=1, max_size=6), st.sampled_from([0, WORKSPACE]),
)  # fmt: skip
def test_c_and_python_agree(
    opened: Open, toys: dict[str, Toy], asked: list[Call], workspace: int
) -> None:
    native, python = opened(writer_of(toys))
    for one in asked:
        agree(native, python, present(one), workspace)


@settings(max_examples=200, deadline=None,
          suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(numbers, min_size=1, max_size=8), st.lists(st.tuples(inputs, inputs), max_size=6))
@example(["a * a * a", "a * a * 2"], [(2**63 - 1, 0)])
@example(["-(a * a * 2 // a) * a", "-2**127 // b", "ceildiv(-2**127, b)", "-2**127 % b"],
         [(-(2**63), -1), (1, 1), (1, 0)])
def test_numbers_agree_to_the_last_bit(
    opened: Open, texts: list[str], values: list[tuple[int, int]]
) -> None:
    """Each expression is two arguments of a launch that every call of the right form takes."""
    for text in texts:
        parts = [("u64", f"({text}) % 2**64"), ("i64", f"({text}) // 2**64")]
        native, python = opened(writer_of({"toy": Toy({}, args=parts)}))
        for a, b in values:
            assert agree(native, python, call(a=a, b=b), 0) in ("planned", "refused", "args")


def test_every_form_is_true_in_c(opened: Open) -> None:
    native, python = opened(toy_writer({"toy": Toy({f"p{i}": t for i, t in enumerate(TRUE)})})
                            .image())
    assert agree(native, python, call(), 0) == "planned"


@pytest.mark.parametrize(
    ("contract", "changed", "reason"),
    [
        ({"big": "a * a * a * 8 < 1"}, {"a": 2**62}, "overflow"),
        ({"big": "a * a * 2 < 2**125"}, {"a": 2**62}, "big"),
        ({"nan": "eps == eps"}, {"eps": math.nan}, "nan"),
        ({"other": "not (eps < 0)"}, {"eps": math.nan}, ""),
        ({"zero": "a // k == 1"}, {"k": 0}, "zero"),
        ({"zero": "not (a // k == 1)"}, {"k": 0}, "zero"),
        ({"tag": 'x.layout != "shuffled"'}, {}, "tag"),
        ({"never": "a > 0"}, {"a": 2**63}, "args"),
        ({"never": "k > 0"}, {"k": 2**32}, "args"),
        ({"never": "a > 0"}, {"a": 1.0}, "args"),
        ({"x": "contiguous(x)"}, {"x": Tensor(0, "f32", (0, 2**31), (7, 7), 0)}, ""),
        ({"x": "contiguous(x)"}, {"x": Tensor(0, "f32", (2, 4), (4, 1), 31)}, "args"),
        ({"x": "x.max_byte_offset < 2**31"},
         {"x": Tensor(0, "u8", (2, 2**31), (2**31, 1), 2**32)}, "x"),
        ({"x": "a == 7"}, {"x": Tensor(0, "f32", (8,), (1,), 32)}, "args"),
        ({}, {"arch": "gfx1151"}, "arch"),
        ({}, {"arch": "gfx9"}, "arch"),
    ],
)  # fmt: skip
def test_the_reason_of_a_miss(
    opened: Open, contract: dict[str, str], changed: dict[str, object], reason: str
) -> None:
    native, python = opened(toy_writer({"toy": Toy(contract)}).image())
    assert agree(native, python, call(**changed), 0) == (reason or "planned")


def test_two_foreign_layouts_are_two(opened: Open) -> None:
    native, _ = opened(toy_writer({"toy": Toy({})}).image())
    assert native.name("of nobody") != native.name("of no one")
    assert native.name("of nobody") == native.name("of nobody") >= 2**63
    assert native.name("gfx950") < 2**32 and native.name("") == native.name(None) == 0


def test_the_nearest_tactic_is_reported(opened: Open) -> None:
    near = Toy({"one": "a == 7", "two": "b == -3", "three": "k == 5"})
    far = Toy({"one": "a == 8"})
    native, python = opened(toy_writer({"b": near, "a": far, "c": near}).image())
    assert agree(native, python, call(), 0) == "three"
    assert native.decide(native.call(call(), ARG_NAMES)) == Decision(
        False, "gfx950/b", "three", 2
    )


def test_admission(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    tactics = {
        "fresh": Toy({}, rank=1), "good": Toy({}, rank=2, maturity="accepted"),
        "bad": Toy({}, maturity="rejected"), "worse": Toy({}, maturity="quarantined"),
        "later": Toy({}, rank=3, maturity="accepted", hold="not yet"),
    }  # fmt: skip
    image = toy_writer(tactics).image()
    for simulated in (True, False):
        for variables in (
            {}, {"NETRA_ADMIT": "gfx950/f*"}, {"NETRA_ADMIT": "nothing, fres?"},
            {"NETRA_ADMIT": "fresh/x gfx1151/*"}, {"NETRA_ENABLE": "*"},
            {"NETRA_ENABLE": "la[!a]er", "NETRA_ADMIT": "*"},
        ):  # fmt: skip
            with monkeypatch.context() as patch:
                for name in ("NETRA_ADMIT", "NETRA_ENABLE"):
                    patch.delenv(name, raising=False)
                for name, value in variables.items():
                    patch.setenv(name, value)
                native, python = opened(image, simulated)
                every = python.tactics()
                want = {t.id for t in admitted(every, simulated=simulated)}  # type: ignore
                infos = [native.describe(i) for i in range(len(every))]
                assert {i.id.decode() for i in infos if i.admitted} == want


# The real catalog


def test_the_real_catalog(bridge_library: Path) -> None:
    """Calls that real contracts take, and the same calls with one thing changed."""
    from netra_catalog import load
    from netra_catalog.region import region
    from netra_catalog.witness import candidates

    path = ROOT / "build" / "catalog.bin"
    if not path.exists():
        pytest.fail("build/catalog.bin is missing; type: make catalog", pytrace=False)
    native, python = Native(bridge_library, path), CompiledCatalog(path.read_bytes())
    rng = random.Random(7)
    planned: set[str] = set()
    for tactic in load():
        for box in region(tactic):
            found = candidates(tactic.definition, box, tactic.arch)
            for number, asked in enumerate(filter(statable, islice(found, 2000))):
                if number >= (6 if tactic.id in planned else 24):
                    break
                if agree(native, python, asked, WORKSPACE) == "planned":
                    planned.add(tactic.id)
                for _ in range(6):
                    agree(native, python, changed(asked, rng), WORKSPACE)
    assert planned >= {t.id for t in load() if not t.hold and t.maturity != "rejected"}


def statable(asked: Call) -> bool:
    """Shapes, strides and CUs are 64-bit numbers with a sign in C, bytes of storage without one."""
    tensors = [value for value in asked.args.values() if isinstance(value, Tensor)]
    numbers = [asked.cu_count]
    for tensor in tensors:
        numbers += [*tensor.shape, *tensor.strides]
    fit = all(-(2**63) <= number < 2**63 for number in numbers)
    return fit and all(tensor.extent < 2**64 for tensor in tensors)


def changed(asked: Call, rng: random.Random) -> Call:
    args = dict(asked.args)
    name = rng.choice([*args, "phase", "graph"])
    phase, graph = asked.phase, asked.graph
    edges = (0, 1, 2**31 - 1, 2**31, 2**63 - 1)
    if name == "phase":
        phase = rng.choice(["decode", "prefill", "verify", "of nobody"])
    elif name == "graph":
        graph = rng.choice(["eager", "capture", "piecewise"])
    elif isinstance(old := args[name], Tensor):
        shape, strides = list(old.shape), list(old.strides)
        if shape:
            rng.choice([shape, strides])[rng.randrange(len(shape))] = rng.choice(edges)
        args[name] = Tensor(
            old.ptr + rng.choice([0, 4, 16]), rng.choice([old.dtype, *DTYPES]), tuple(shape),
            tuple(strides), min(2**64 - 1, old.extent + rng.choice([0, 2**62, 2**64])),
            rng.choice([old.layout, None, "row_major"]),
        )  # fmt: skip
    else:
        args[name] = rng.choice([*edges, -1, 2**63, math.nan, 1e-6, math.inf])
    return Call(asked.op, asked.arch, phase, graph, asked.cu_count, args)


# Damage

TOYS = {
    "one": Toy({f"p{i}": text for i, text in enumerate(TRUE[:24])}, workspace="a * 4",
               args=[("ptr", "workspace"), ("f32", "eps"), ("i64", "a ** 3 // b")]),
    "two": Toy({f"p{i}": text for i, text in enumerate(TRUE[24:])}, rank=1),
}  # fmt: skip


def refused(opened: Open, image: bytes, status: int, *words: str) -> None:
    with pytest.raises(Refused) as error:
        opened(image)
    assert error.value.status == status, error.value
    for word in ("catalog.bin", *words):
        assert word in error.value.text, error.value


def test_files_that_are_no_catalog(
    opened: Open, bridge_library: Path, tmp_path: Path
) -> None:
    with pytest.raises(Refused, match="make catalog") as error:
        Native(bridge_library, tmp_path / "absent.bin")
    assert error.value.status == FILE
    with pytest.raises(Refused, match="not a regular file"):
        Native(bridge_library, tmp_path)
    good = toy_writer(TOYS).image()
    refused(opened, b"", CATALOG, "no compiled catalog")
    refused(opened, b"NETRACAT", CATALOG, "no compiled catalog")
    refused(opened, b"#!/bin/sh\n" * 100, CATALOG, "no compiled catalog")
    refused(opened, good[:8] + struct.pack("<I", 2) + good[12:], CATALOG, "version 2, want 1")
    refused(opened, good + b"\0", CATALOG, "bytes and has")
    refused(opened, resealed(good[: HEADER.size + 16]), CATALOG, "section table")
    opened(good)


def test_text_that_is_not_utf8_is_refused(opened: Open) -> None:
    good = toy_writer({"toy": Toy({}, hold="a hold of some length")}).image()
    at = good.index(b"a hold of")
    for text in ("\u00e9", "\u0800", "\uffff", "\U00010000", "\U0010ffff"):
        raw = text.encode()
        opened(resealed(good[:at] + raw + good[at + len(raw) :]))
    for raw in (b"\x80", b"\xc0\x80", b"\xc1\xbf", b"\xe0\x80\x80", b"\xed\xa0\x80", b"\xc3(",
                b"\xf0\x80\x80\x80", b"\xf4\x90\x80\x80", b"\xf8\x88\x80\x80", b"\xff"):
        refused(opened, resealed(good[:at] + raw + good[at + len(raw) :]), CATALOG, "not UTF-8")
    end = at + len("a hold of some length") - 1
    refused(opened, resealed(good[:end] + b"\xe2" + good[end + 1 :]), CATALOG, "not UTF-8")
    refused(opened, resealed(good[:at] + b"\0" + good[at + 1 :]), CATALOG, "zero byte")


def test_each_cut_and_each_flipped_byte_is_refused(opened: Open) -> None:
    good = toy_writer(TOYS).image()
    rng = random.Random(3)
    for size in [*range(0, 260, 13), *(rng.randrange(len(good)) for _ in range(150))]:
        refused(opened, good[:size], CATALOG)
    for at in [*range(HEADER.size), *(rng.randrange(len(good)) for _ in range(300))]:
        flipped = bytearray(good)
        flipped[at] ^= 1 << rng.randrange(8)
        refused(opened, bytes(flipped), CATALOG)


def test_an_index_out_of_range_is_refused_in_every_field(opened: Open) -> None:
    """Each u32 of the first record of each section set to what no table has."""
    free = {
        "op_args:8",  # the default of an argument without one
        # Numbers that lead nowhere: lines, resources, hashes, and what is kept at zero.
        "predicates:3", "launches:11", "args:4", *(f"tactics:{i}" for i in (27, 28, 31)),
        *(f"tactics:{i}" for i in range(32, 48)), *(f"kernels:{i}" for i in range(2, 28)),
        *(f"constants:{i}" for i in range(4)),
    }  # fmt: skip
    good = toy_writer(TOYS).image()
    accepted = set()
    for number, (name, (_, record)) in enumerate(SECTIONS.items()):
        _, offset, rows, _ = SECTION.unpack_from(good, HEADER.size + 16 * number)
        for field in range(record.size // 4 if rows and name not in ("text", "code") else 0):
            spoilt = bytearray(good)
            struct.pack_into("<I", spoilt, offset + 4 * field, 0xFFFF_FFF0)
            try:
                opened(resealed(bytes(spoilt)))
            except Refused as error:
                assert error.status == CATALOG, error
            else:
                accepted.add(f"{name}:{field}")
    assert accepted - free == set()


def test_programs_that_cannot_run_are_refused(opened: Open) -> None:
    code = struct.Struct("<BBHI")
    good = toy_writer({"toy": Toy({"one": "a == 7 and b > -9"})}).image()
    _, offset, rows, _ = SECTION.unpack_from(good, HEADER.size + 16 * 3)
    programs = [good[offset + 8 * i : offset + 8 * i + 8] for i in range(rows)]
    start = programs.index(code.pack(4, 4, 0, 0))
    assert [p[0] for p in programs[start : start + 8]] == [4, 1, 30, 60, 4, 1, 34, 0]
    for place, instruction, words in [
        (0, (0, 0, 0, 0), "end with one value"), (0, (99, 0, 0, 0), "no such opcode"),
        (0, (16, 0, 0, 0), "no such opcode"), (0, (4, 200, 0, 0), "no such argument"),
        (0, (4, 0, 0, 0), "another kind"), (0, (4, 2, 0, 0), "another kind"),
        (0, (5, 4, 0, 0), "another kind"), (0, (6, 4, 0, 0), "another kind"),
        (0, (54, 0, 4, 0), "another kind"), (0, (10, 0, 0, 0), "another type"),
        (0, (14, 0, 4, 0), "signature"), (0, (3, 0, 0, 0), "another type"),
        (0, (20, 0, 0, 0), "stack is empty"), (0, (60, 0, 0, 1), "no truth value"),
        (1, (1, 0, 0, 2**31), "constant lies beyond"), (1, (2, 0, 0, 9999), "name lies beyond"),
        (1, (25, 0, 0, 0), "exponent"), (2, (25, 0, 0, 2), ""),
        (1, (62, 0, 2, 2**32 - 1), "constants lie beyond"),
        # The program goes on: AND, SCALAR b, INT, GT, END.
        (3, (60, 0, 0, 0), "forward"), (3, (60, 0, 0, 2**31), "forward"),
        (3, (60, 0, 0, 5), "beyond the end"), (3, (60, 0, 0, 3), "another stack"),
        (3, (60, 0, 0, 2), ""), (3, (61, 0, 0, 4), ""), (3, (60, 0, 0, 1), "another stack"),
    ]:  # fmt: skip
        spoilt = bytearray(good)
        code.pack_into(spoilt, offset + 8 * (start + place), *instruction)
        try:
            opened(resealed(bytes(spoilt)))
        except Refused as error:
            assert error.status == CATALOG and words in error.text, (instruction, error)
        else:
            assert not words, f"{instruction} was accepted"


def test_spoilt_catalogs_never_crash(opened: Open) -> None:
    """Random bytes changed under a right checksum: refused, or read and run without harm."""
    good = toy_writer(TOYS).image()
    rng = random.Random(11)
    read = 0
    for _ in range(1500):
        spoilt = bytearray(good)
        for _ in range(rng.choice([1, 1, 2, 8])):
            at = rng.randrange(HEADER.size, len(spoilt))
            spoilt[at] = rng.choice([0, 1, 255, rng.randrange(256)])
        image = resealed(bytes(spoilt))
        try:
            native, _ = opened_native(opened, image)
            given = native.call(call(), ARG_NAMES)
            decision = native.decide(given)
            if decision.taken:
                native.plan(native.tactic(decision.tactic), 0, given, WORKSPACE, 1 << 16)
            read += 1
        except Refused as error:
            assert error.status < 0 and error.text
    assert read > 50  # the rest of the path was walked too


def opened_native(opened: Open, image: bytes) -> tuple[Native, object]:
    try:
        return opened(image)
    except NetraError as error:
        raise Refused(CATALOG, str(error)) from None


# From C


def test_a_c_program_decides_without_allocating(
    bridge_library: Path, c_compiler: str, tmp_path: Path
) -> None:
    """Compiled against the header alone; it counts what malloc and its kin are asked for."""
    catalog = tmp_path / "catalog.bin"
    catalog.write_bytes(toy_writer({"toy": TOYS["one"]}).image())
    program = tmp_path / "decide"
    subprocess.run(
        [c_compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'bridges' / 'hip'}",
         str(Path(__file__).with_name("decide.c")), "-o", str(program), str(bridge_library),
         f"-Wl,-rpath,{bridge_library.parent}"],
        check=True,
    )  # fmt: skip
    done = subprocess.run([str(program), str(catalog)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    taken, missed, opening, deciding = map(int, done.stdout.split())
    assert (taken, missed, deciding) == (10000, 10000, 0)
    assert opening > 0  # the counter counts
