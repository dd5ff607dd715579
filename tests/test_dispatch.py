"""Dispatch: the first false predicate, who is reported on a miss, kernarg bytes."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest
from netra_catalog import (
    Call,
    Match,
    Miss,
    NetraError,
    Tactic,
    Tensor,
    UsageError,
    admitted,
    evaluate,
    explain,
    load,
    match,
    plan,
    workspace_bytes,
)

HERE = Path(__file__).resolve().parent
TOY = HERE / "catalog_root"
SRC, DST, TOTAL, SPACE = 0x7F0000001000, 0x7F1000000000, 0x7F2000000000, 0x7F3000000000


@pytest.fixture(scope="module")
def tactic() -> Tactic:
    return load("toy_f32", root=TOY)[0]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return Path(shutil.copytree(TOY, tmp_path / "root"))


def call(rows: int = 3, n: int = 516, **changed: object) -> Call:
    args: dict[str, object] = {
        "src": Tensor.dense(SRC, "f32", (rows, n)),
        "dst": Tensor.dense(DST, "f32", (rows, n)),
        "total": Tensor.dense(TOTAL, "f32", (rows, -(-n // 256))),
        "alpha": 2.5,
    }
    fields: dict[str, object] = {
        "op": "toy.scale", "arch": "gfx950", "phase": "decode", "graph": "eager", "cu_count": 256,
    }  # fmt: skip
    for name, value in changed.items():
        (fields if name in fields else args)[name] = value
    kept = {name: value for name, value in args.items() if value is not None}
    return Call(args=kept, **fields)  # type: ignore[arg-type]


def variant(root: Path, name: str, *changes: tuple[str, str]) -> Tactic:
    folder = root / "catalog" / "gfx950"
    text = (TOY / "catalog" / "gfx950" / "toy_f32.yaml").read_text()
    for find, put in changes:
        assert find in text
        text = text.replace(find, put, 1)
    (folder / f"{name}.yaml").write_text(text)
    return load(name, root=root)[0]


# evaluate


def test_a_complete_match(tactic: Tactic) -> None:
    assert evaluate(tactic, call()) is None
    assert match([tactic], call()) == Match(tactic)


@pytest.mark.parametrize(
    ("changed", "id"),
    [
        ({"op": "toy.other"}, "op"),
        ({"arch": "gfx1151"}, "arch"),
        ({"arch": "gfx950:sramecc+"}, "arch"),
        ({"src": None}, "args"),
        ({"alpha": None}, "args"),
        ({"src": 7}, "args"),
        ({"alpha": Tensor.dense(0, "f32", (1,))}, "args"),
        ({"flags": 2**32}, "args"),
        ({"flags": 1.5}, "args"),
        ({"beta": 1.0}, "args"),
        # A rank that the contract does not name is caught all the same.
        ({"src": Tensor.dense(SRC, "f32", (3, 516, 1))}, "args"),
        ({"src": Tensor.dense(SRC, "f32", (3,))}, "n"),
        ({"src": Tensor(SRC, "f32", (3, 516), (516, 1), 3 * 516 * 4 - 1)}, "args"),
        ({"src": Tensor(SRC, "f32", (3, 516), (516, 1), 3 * 516 * 4 + 1)}, None),
        ({"src": Tensor.dense(SRC, "bf16", (3, 516))}, "src-dtype"),
        ({"src": Tensor.dense(SRC + 4, "f32", (3, 516))}, "src-dense"),
        ({"src": Tensor(SRC, "f32", (3, 516), (1, 3), 9999)}, "src-dense"),
        ({"dst": Tensor.dense(SRC, "f32", (3, 516))}, None),
        ({"dst": Tensor.dense(SRC + 16, "f32", (3, 516))}, "apart"),
        ({"dst": Tensor.dense(DST, "f32", (4, 516))}, "dst-shape"),
        ({"phase": "prefill"}, "phase"),
        ({"phase": "verify"}, "phase"),
        ({"rows": 0}, "rows"),
        ({"rows": 1}, None),
        ({"rows": 4096}, None),
        ({"rows": 4097}, "rows"),
        ({"n": 0}, "n"),
    ],
)
def test_the_first_false_predicate(
    tactic: Tactic, changed: dict[str, object], id: str | None
) -> None:
    assert evaluate(tactic, call(**changed)) == id  # type: ignore[arg-type]


def test_overflow_has_its_own_id(root: Path) -> None:
    tactic = variant(
        root, "big", ("rows: 1 <= src.shape[0] <= 4096", "rows: flags ** 4 >= 0"),
    )  # fmt: skip
    assert evaluate(tactic, call(flags=2**31)) is None
    assert evaluate(tactic, call(flags=2**32 - 1)) == "overflow"
    failure = explain(tactic, call(flags=2**32 - 1))
    assert failure is not None
    assert failure.text.startswith("overflow: rows: flags ** 4 >= 0: the result has more than 128")
    # `not` does not turn an overflow into a match.
    tactic = variant(
        root, "big", ("rows: 1 <= src.shape[0] <= 4096", "rows: not flags ** 4 < 0"),
    )  # fmt: skip
    assert evaluate(tactic, call(flags=2**32 - 1)) == "overflow"


def test_an_unknown_layout_declines(root: Path) -> None:
    tagged = 'phase: phase == "decode" and src.layout != "x"'
    tactic = variant(root, "tagged", ('phase: phase == "decode"', tagged))
    assert evaluate(tactic, call()) == "phase"
    assert evaluate(tactic, call(src=Tensor.dense(SRC, "f32", (3, 516), "y"))) is None


def test_a_rank_that_the_contract_names(root: Path) -> None:
    tactic = variant(root, "ranked", ('src.dtype == "f32"', 'src.dtype == "f32" and src.ndim == 2'))
    assert evaluate(tactic, call()) is None
    assert evaluate(tactic, call(src=Tensor.dense(SRC, "f32", (3, 516, 1)))) == "src-dtype"


def test_a_default_stands_in_for_a_scalar(tactic: Tactic, root: Path) -> None:
    assert evaluate(tactic, call()) is None
    picky = variant(root, "picky", ("apart: ", "flags: flags == 5\n  apart: "))
    assert evaluate(picky, call()) is None
    assert evaluate(picky, call(flags=6)) == "flags"


# match


def test_a_miss_names_the_tactic_that_came_furthest(root: Path, tactic: Tactic) -> None:
    early = variant(root, "a_early", ('src.dtype == "f32"', 'src.dtype == "bf16"'))
    late = variant(root, "z_late", ('phase == "decode"', 'phase == "prefill"'))
    missed = match([early, tactic, late], call(rows=5000))
    assert isinstance(missed, Miss)
    assert missed.tactic is not None
    # toy_f32 and z_late both fail at `rows`: the first id is reported.
    assert (missed.tactic.id, missed.predicate_id) == ("gfx950/toy_f32", "rows")
    assert missed.text == (
        "gfx950/toy_f32: rows: 1 <= src.shape[0] <= 4096 is false (src.shape[0]=5000)"
    )
    missed = match([early, late], call())
    assert isinstance(missed, Miss) and missed.tactic is not None
    assert (missed.tactic.id, missed.predicate_id) == ("gfx950/z_late", "phase")
    missed = match([late, tactic, early], call(arch="gfx1151"))
    assert isinstance(missed, Miss) and missed.tactic is not None
    assert (missed.tactic.id, missed.predicate_id) == ("gfx950/a_early", "arch")


def test_ties_do_not_depend_on_order_or_rank(root: Path, tactic: Tactic) -> None:
    first = variant(root, "a_same", ("op: toy", "rank: 9\nop: toy"))
    for tactics in ([first, tactic], [tactic, first]):
        missed = match(tactics, call(rows=0))
        assert isinstance(missed, Miss) and missed.tactic == first


def test_an_op_without_tactics(tactic: Tactic) -> None:
    missed = match([tactic], call(op="toy.other"))
    assert missed == Miss(None, "op", "no tactic implements toy.other")


def test_rank_decides_between_two_that_match(root: Path, tactic: Tactic) -> None:
    second = variant(root, "a_second", ("op: toy", "rank: 1\nop: toy"))
    assert match([second, tactic], call()) == Match(tactic)
    equal = variant(root, "b_equal")
    with pytest.raises(NetraError, match=r"b_equal and gfx950/toy_f32 both take toy.scale"):
        match([tactic, equal], call())


def test_admission(root: Path, tactic: Tactic) -> None:
    held = variant(root, "held", ("op: toy", "hold: why not\nop: toy"))
    bad = variant(root, "bad", ("op: toy", "maturity: quarantined\nop: toy"))
    good = variant(root, "good", ("op: toy", "maturity: accepted\nop: toy"))
    every = [tactic, held, bad, good]

    def who(simulated: bool, **environ: str) -> list[str]:
        return [t.stem for t in admitted(every, simulated=simulated, environ=environ)]

    assert who(True) == ["toy_f32", "good"]
    assert who(True, NETRA_ENABLE="held,bad") == ["toy_f32", "held", "good"]
    assert who(False) == ["good"]
    assert who(False, NETRA_ADMIT="gfx950/toy*") == ["toy_f32", "good"]
    assert who(False, NETRA_ADMIT="*") == ["toy_f32", "good"]
    assert who(False, NETRA_ADMIT="*", NETRA_ENABLE="*") == ["toy_f32", "held", "good"]


# plan


def test_kernargs_to_the_byte(tactic: Tactic) -> None:
    first, second = plan(tactic, call(), SPACE)
    assert (first.kernel, first.grid, first.block, first.lds) == (
        "toy_f32_stage1", (3, 3, 1), (64, 1, 1), 0,
    )  # fmt: skip
    # A gap of 4 bytes after alpha and the rounding up to 8 at the end are zero.
    want = struct.pack("<QQQfxxxxIxxxx", DST, SRC, SPACE + 256, 2.5, 516)
    assert first.kernarg == want and len(want) == 40
    assert (second.grid, second.block, second.lds) == ((1, 3, 1), (64, 2, 1), 12)
    want = struct.pack("<QQQIxxxxqdfxxxx", TOTAL, SPACE, 0, 5, -2, 2.5, 0.5)
    assert second.kernarg == want and len(want) == 56


def test_scalars_that_are_given(tactic: Tactic) -> None:
    second = plan(tactic, call(flags=2**32 - 1, alpha=0.1), SPACE)[1]
    assert second.kernarg[24:28] == b"\xff\xff\xff\xff"
    # An f32 scalar is rounded once, also where the kernel takes a double.
    rounded = struct.unpack("<f", struct.pack("<f", 0.1))[0]
    assert struct.unpack_from("<d", second.kernarg, 40)[0] == rounded
    assert plan(tactic, call(alpha=0.1), SPACE)[0].kernarg[24:28] == struct.pack("<f", 0.1)


def test_workspace(tactic: Tactic) -> None:
    assert workspace_bytes(tactic, call()) == 256 + 4 * 3 * 3
    assert workspace_bytes(tactic, call(rows=4096, n=4)) == 256 + 4 * 4096
    with pytest.raises(UsageError, match="gfx950/toy_f32 needs a workspace of 292 bytes"):
        plan(tactic, call())


@pytest.mark.parametrize(
    ("find", "put", "message"),
    [
        ('"src.shape[0]", "ceil', '"src.shape[0] - 3", "ceil', r"grid\[0\] = .* is 0, want"),
        ('[1, "src.shape[0]", 1]', "[1, 65536, 1]", r"launches\[1\].grid\[1\] = 65536 is 65536"),
        ("block: [64, 1, 1]", "block: [1024, 2, 1]", "beyond what HIP launches"),
        ("block: [64, 1, 1]", "block: [1025, 1, 1]", r"block\[0\] = 1025 is 1025, want 1..1024"),
        ("lds: 0", "lds: 163841", "lds = 163841 is 163841, want 0..163840"),
        ("lds: 0", '"lds": 1 // (src.shape[0] - 3)', r"launches\[0\].lds: // by zero"),
        ('value: "src.shape[1]"', 'value: "src.shape[1] - 600"', "n = -84 does not fit u32"),
        ("value: workspace + 256", "value: workspace - 2**62", "partial = .* does not fit ptr"),
    ],
)
def test_what_a_launch_may_not_be(root: Path, find: str, put: str, message: str) -> None:
    tactic = variant(root, "odd", (find, put))
    assert evaluate(tactic, call()) is None
    with pytest.raises(NetraError, match=message) as caught:
        plan(tactic, call(), SPACE)
    assert "odd.yaml:" in caught.value.message
