"""Loading: the YAML reader, the schema, what a tactic holds, its hash, the real catalog."""

from __future__ import annotations

import copy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from netra_catalog import NetraError, ToolError, UsageError, load, load_one, oracle, paths, select
from netra_catalog.checks import check
from netra_catalog.dtypes import DTYPES, itemsize, numpy_dtype
from netra_catalog.load import tactic_files
from netra_catalog.op import Op, ScalarArg, TensorArg
from netra_catalog.schema import problems, schema
from netra_catalog.yaml_loader import Document, load_yaml

HERE = Path(__file__).resolve().parent
TOY = HERE / "catalog_root"
ROOT = HERE.parent


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A copy of the toy catalog, to be spoilt."""
    return Path(shutil.copytree(TOY, tmp_path / "root"))


def written(tmp_path: Path, text: str) -> Document:
    path = tmp_path / "x.yaml"
    path.write_text(text, encoding="utf-8")
    return load_yaml(path)


# The YAML reader


def test_plain_scalars_are_strings_except_integers(tmp_path: Path) -> None:
    text = (
        "a: yes\nb: null\nc: 1.0\nd: 1_000\ne: 017\nf: 2026-01-02\ng: ~\nh: 1e3\ni: -12\n"
        "j: 0x1F\nk: '7'\nl: +3\nm: true\nn: 0b11\no: .inf\np: 0\nq:\nr: 12:30\n"
    )
    assert written(tmp_path, text).data == {
        "a": "yes", "b": "null", "c": "1.0", "d": "1_000", "e": "017", "f": "2026-01-02",
        "g": "~", "h": "1e3", "i": -12, "j": 31, "k": "7", "l": 3, "m": "true", "n": "0b11",
        "o": ".inf", "p": 0, "q": "", "r": "12:30",
    }  # fmt: skip


def test_lines_of_keys_and_values(tmp_path: Path) -> None:
    document = written(tmp_path, "# one\na:\n  - {b: 1,\n     c: 2}\nd: x\n")
    assert document.mark(("a", 0, "c"), key=True).line == 4
    assert document.mark(("a", 0, "b")).column == 9
    assert document.mark(("d",)).line == 5
    # What does not exist has the line of its nearest parent.
    assert document.mark(("a", 0, "c", "none")).line == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", "x.yaml:3: key 'a' occurs twice: first in line 1, again in line 3"),
        ("a:\n  b: 1\n  b: 2\n", "x.yaml:3: key 'a.b' occurs twice: first in line 2"),
        ("a: &x 1\nb: 2\n", "x.yaml:1: anchors and aliases"),
        ("a: 1\nb: *x\n", "x.yaml:2: anchors and aliases"),
        ("a: !!python/object:os.system 1\n", "x.yaml:1: tag"),
        ("a: {<<: 1}\n", "x.yaml:1: merge keys"),
        ("a: 1\n---\nb: 1\n", "x.yaml:2: a second document"),
        ("- 1\n", "x.yaml:1: a tactic is a mapping"),
        ("", "x.yaml:1: is empty"),
        ("# only a comment\n", "x.yaml:1: is empty"),
        ("a: 1\nb: [1\nc: 2\n", "x.yaml:3: not YAML"),
        ("a: 1\n\tb: 2\n", "x.yaml:2: not YAML"),
        ("a: x: y\n", "x.yaml:1: not YAML: mapping values are not allowed"),
        ("a: 1\nb: \x00\n", "x.yaml:2: not YAML"),
        ("? [a]\n: 1\n", "x.yaml:1: a key must be a plain word"),
        ("a: " + "9" * 50 + "\n", "x.yaml:1: integer of 50 digits"),
        ("a: " + "[" * 40 + "]" * 40 + "\n", "nested deeper"),
        ("a: " + "x" * 70000, "longer than"),
    ],
)
def test_bad_yaml(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(NetraError) as caught:
        written(tmp_path, text)
    assert message in caught.value.message


def test_bytes_that_are_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(NetraError, match=r"x.yaml:2: byte 8 is not UTF-8"):
        load_yaml(tmp_path / "x.yaml")


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="ab:-[]{}'\"|>#&*!?,%@`0x1 \n\t", max_size=40) | st.text(max_size=30))
def test_any_text_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("fuzz") / "x.yaml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        load_yaml(path)
    except NetraError as error:
        assert "x.yaml:" in error.message


# The schema


def test_schema_is_a_valid_json_schema() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(schema())


def spoilt(data: Any, draw: Any) -> Any:
    """The document with one thing in it changed, removed, added or replaced."""
    data = copy.deepcopy(data)
    spots: list[tuple[Any, Any]] = []

    def collect(node: Any) -> None:
        items = node.items() if isinstance(node, dict) else enumerate(node)
        for key, value in items:
            spots.append((node, key))
            if isinstance(value, (dict, list)):
                collect(value)

    collect(data)
    holder, key = draw(st.sampled_from(spots))
    what = draw(st.sampled_from(["remove", "replace", "add"]))
    odd = draw(st.sampled_from(
        [0, -1, 5, 10**9, "", "x", "none", "A B", "toy_2", "1.5", [], ["x"], {}, {"x": 1}]
    ))  # fmt: skip
    if what == "remove":
        del holder[key]
    elif what == "replace":
        holder[key] = odd
    elif isinstance(holder, dict):
        holder[draw(st.sampled_from(["hold", "rank", "opp", "value", "Z-z", "evidence"]))] = odd
    else:
        holder.append(odd)
    return data


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_our_reading_of_the_schema_is_jsonschemas(data: Any) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    good = load_yaml(TOY / "catalog" / "gfx950" / "toy_f32.yaml")
    changed = spoilt(good.data, data.draw)
    theirs = jsonschema.Draft202012Validator(schema()).is_valid(changed)
    ours = problems(Document(good.path, changed, good.lines, good.keys, good.values))
    assert theirs == (not ours), ours


# Tactics


def test_a_tactic_holds_what_its_file_says() -> None:
    tactic = load_one(TOY / "catalog" / "gfx950" / "toy_f32.yaml")
    assert (tactic.id, tactic.arch, tactic.stem, tactic.op) == (
        "gfx950/toy_f32", "gfx950", "toy_f32", "toy.scale",
    )  # fmt: skip
    assert (tactic.oracle_name, tactic.variant, tactic.rank) == ("toy", "plain", 0)
    assert tactic.maturity == "experiment" and tactic.hold is None
    assert list(tactic.contract)[:3] == ["src-dtype", "rows", "n"]
    assert tactic.contract["rows"].text == "1 <= src.shape[0] <= 4096"
    assert tactic.kernels == ("toy_f32_stage1", "toy_f32_stage2")
    assert [launch.kernarg_size for launch in tactic.launches] == [40, 56]
    assert tactic.resources["toy_f32_stage1"]["vgpr"] == 4
    assert tactic.numerics.metric == "ulp" and tactic.numerics.value == 1
    assert tactic.numerics.exact is not None and tactic.numerics.exact.value == 1e-3
    assert tactic.effects.commits == ()
    assert tactic.fallback == {"sglang": "torch.mul"}
    assert tactic.lines["contract.rows"] == 5
    assert tactic.where("launches[0].args[1].value").endswith("toy_f32.yaml:23")
    assert tactic.definition.arg("flags") == ScalarArg("flags", "u32", default=5)


def test_patterns() -> None:
    def ids(pattern: str, arch: str | None = None) -> list[str]:
        return [tactic.id for tactic in load(pattern, arch, TOY)]

    assert ids("*") == ids("toy*") == ids("gfx950/*") == ids("*/toy_f32") == ["gfx950/toy_f32"]
    assert ids("gfx1151/*") == ids("*", "gfx1151") == ids("toy") == []
    with pytest.raises(UsageError, match=r"no tactic matches 'toyf32' \(did you mean 'toy_f32'"):
        select("toyf32", root=TOY)
    with pytest.raises(UsageError, match=r"unknown arch 'gfx115' \(did you mean 'gfx1151'"):
        load("*", "gfx115", TOY)


def test_a_pattern_reads_no_other_file(root: Path) -> None:
    (root / "catalog" / "gfx950" / "broken.yaml").write_text("op: [\n")
    assert [tactic.stem for tactic in load("toy*", root=root)] == ["toy_f32"]
    with pytest.raises(NetraError, match=r"broken.yaml:2: not YAML"):
        load(root=root)


def test_the_hash_covers_what_decides(root: Path) -> None:
    path = root / "catalog" / "gfx950" / "toy_f32.yaml"
    text = path.read_text()

    def hashed(changed: str) -> str:
        path.write_text(changed)
        return load_one(path).contract_sha256

    first = hashed(text)
    assert first == load_one(TOY / "catalog" / "gfx950" / "toy_f32.yaml").contract_sha256
    # What does not matter: comments, quoting, order of keys, what the catalog writes.
    assert hashed("# a comment\n" + text) == first
    turned = text.replace("{name: toy, variant: plain}", "{variant: 'plain', name: toy}")
    assert turned != text and hashed(turned) == first
    assert hashed(text + "rank: 0\n") == first
    assert hashed(text.replace("lds: 0\n    args", "lds: '0'\n    args")) == first
    written = "hold: reason\nmaturity: simulated\nevidence: [oracle-0123456789ab]\n"
    assert hashed(text + written) == first
    # What does: every other key, and the order of the predicates.
    lines = text.splitlines()
    lines[4], lines[5] = lines[5], lines[4]
    changes = [
        text.replace("4096", "4095"),
        text + "rank: 1\n",
        text.replace("offset: 48", "offset: 52"),
        text.replace("torch.mul", "torch.add"),
        text.replace("metric: ulp, value: 1", "metric: ulp, value: 2"),
        "\n".join(lines),
    ]
    hashes = [hashed(changed) for changed in changes]
    assert len({first, *hashes}) == len(changes) + 1


def test_an_oracle_is_read_without_being_imported(root: Path) -> None:
    path = root / "harness" / "netra_harness" / "oracles" / "toy.py"
    path.write_text(path.read_text() + "\nraise RuntimeError('imported')\n")
    tactic = load(root=root)[0]
    with pytest.raises(NetraError, match=r"toy.py:1: cannot be imported: RuntimeError: imported"):
        oracle(tactic)


def test_an_op_that_is_not_a_literal_is_imported(root: Path) -> None:
    path = root / "harness" / "netra_harness" / "oracles" / "toy.py"
    text = path.read_text().replace('("f32", "bf16")', "FLOATS")
    path.write_text(text.replace("OP = ", 'FLOATS = ("f32", "bf16")\nOP: Op = '))
    tactic = load(root=root)[0]
    assert tactic.definition.tensors[0].dtypes == ("f32", "bf16")
    assert oracle(tactic).OP == tactic.definition


@pytest.mark.parametrize(
    ("find", "put", "message"),
    [
        ("OP = Op", "OTHER = Op", "toy.py:1: defines no OP"),
        ('"inx"', "", ""),
        ('("rows", "n"), "in"', '("rows", "n"), "inn"', "toy.py:6: OP: src: role is 'inn'"),
        ('"bf16"', '"bf61"', "toy.py:6: OP: src: unknown dtype 'bf61'"),
        ('ScalarArg("alpha", "f32")', 'ScalarArg("alpha", "f31")', "toy.py:6: OP: alpha: kind is"),
        ('"alpha"', '"src"', "two arguments are named 'src'"),
        ('"alpha"', '"in"', "argument 'in' is not a name that an expression can use"),
        ('"alpha"', '"graph"', "argument 'graph' has a name that contracts reserve"),
        ('"prefill"', '"prefil"', "unknown phase 'prefil'"),
        ("OP = Op(", "OP = Op((", "toy.py:"),
        ("doc=", "docs=", "toy.py:6: OP: "),
    ],
)
def test_bad_ops(root: Path, find: str, put: str, message: str) -> None:
    path = root / "harness" / "netra_harness" / "oracles" / "toy.py"
    path.write_text(path.read_text().replace(find, put))
    if not message:
        assert load(root=root)
        return
    with pytest.raises(NetraError) as caught:
        load(root=root)
    assert message in caught.value.message


def test_dtypes() -> None:
    sizes = {"f64": 8, "f32": 4, "bf16": 2, "f8e4m3fn": 1, "bool": 1}
    assert {name: itemsize(name) for name in sizes} == sizes
    for name in DTYPES:
        assert numpy_dtype(name).itemsize == itemsize(name)
    assert len({numpy_dtype(name) for name in DTYPES}) == len(DTYPES)
    with pytest.raises(UsageError, match=r"unknown dtype 'fp32' \(did you mean 'f32'"):
        itemsize("fp32")


# Paths


def test_root_and_llvm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NETRA_ROOT", raising=False)
    assert paths.repo_root() == ROOT
    assert paths.code_object("gfx950", "k") == ROOT / "build" / "gfx950" / "k.co"
    monkeypatch.setenv("NETRA_ROOT", str(tmp_path))
    with pytest.raises(ToolError, match="no catalog/ and asm/"):
        paths.repo_root()
    monkeypatch.setenv("NETRA_ROOT", str(TOY))
    assert paths.catalog_dir() == TOY / "catalog"
    monkeypatch.setenv("NETRA_LLVM_BIN", str(tmp_path))
    with pytest.raises(ToolError, match=r"\(from NETRA_LLVM_BIN\) has no clang"):
        paths.llvm_bin()
    for tool in ("clang", "ld.lld", "llvm-objdump"):
        (tmp_path / tool).write_text("#!/bin/sh\necho LLVM version 19.1.7\n")
        (tmp_path / tool).chmod(0o755)
    with pytest.raises(ToolError, match="is LLVM 19; 20 or later is needed"):
        paths.llvm_bin()
    (tmp_path / "llvm-objdump").write_text("#!/bin/sh\necho LLVM version 22.1.8\n")
    assert paths.llvm_bin() == tmp_path
    monkeypatch.delenv("NETRA_LLVM_BIN")
    with pytest.raises(ToolError, match="no LLVM has been chosen"):
        paths.llvm_bin()
    monkeypatch.setattr(paths, "build_dir", lambda: tmp_path)
    (tmp_path / "llvm.txt").write_text(f"{tmp_path}\n")
    assert paths.llvm_bin() == tmp_path


# The check


def test_check_of_a_sound_catalog() -> None:
    report = check(TOY)
    assert (report.tactics, report.kernels, report.errors) == (1, 2, ())


def test_check_finds_what_is_wrong_around_the_files(root: Path) -> None:
    asm = root / "asm" / "gfx950"
    (asm / "toy_f32_stage2.s").rename(asm / "toy_f32_stag2.s")
    folder = root / "catalog" / "gfx950"
    (folder / "late.yml").write_text("op: x.y\n")
    text = (folder / "toy_f32.yaml").read_text()
    (folder / "toy_copy.yaml").write_text(text)
    (folder / "toy_long.yaml").write_text(text + "rank: 1\n" + "#\n" * 100)
    (folder / "toy_mute.yaml").write_text(text.replace('  src-dtype: src.dtype == "f32"\n', ""))
    (folder / "toy_bad.yaml").write_text(text.replace("launches:", "lunches:"))
    report = check(root)
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    errors = "\n".join(report.errors)
    assert "toy_bad.yaml:16: unknown key 'lunches' (did you mean 'launches'?)" in errors
    assert "toy_f32_stage2.s does not exist (did you mean 'toy_f32_stag2'?)" in errors
    assert "toy_long.yaml:121: " in errors
    assert "toy_mute.yaml:3: no predicate states src.dtype" in errors
    assert "toy_f32.yaml:3: the contract is that of gfx950/toy_copy (" in errors
    assert "toy_copy.yaml:3), at the same rank: toy.scale arch=gfx950" in errors
    assert "late.yml: is not read: name it late.yaml" in errors
    assert before == {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    (folder / "toy_bad.yaml").unlink()
    (folder / "toy_mute.yaml").unlink()
    assert any("toy_f32_stag2.s:1: no launch" in error for error in check(root).errors)


# The real catalog


@pytest.mark.parametrize("path", tactic_files(root=ROOT), ids=lambda path: path.stem)
def test_a_real_tactic_loads(path: Path) -> None:
    tactic = load_one(path)
    module = oracle(tactic)
    assert module.OP == tactic.definition
    assert len(tactic.contract_sha256) == 64


def test_the_real_catalog_is_sound() -> None:
    report = check(ROOT)
    assert report.tactics > 0
    assert not report.errors, "\n".join(report.errors)


def test_importing_the_catalog_is_light() -> None:
    code = (
        "import sys, netra_catalog, netra_catalog.cli, netra_catalog.ask, netra_catalog.checks\n"
        "netra_catalog.load()\n"
        "heavy = {'numpy', 'ml_dtypes', 'jsonschema', 'rich', 'torch'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=_environment())


def _environment() -> dict[str, str]:
    folders = [ROOT / name for name in ("catalog", "harness", "sim", "bridges")]
    return {"PYTHONPATH": ":".join(map(str, folders)), "PATH": "/usr/bin:/bin"}


def test_op_arguments_are_checked() -> None:
    with pytest.raises(ValueError, match="dtypes is a tuple"):
        TensorArg("x", "f32", ("n",), "in")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="phases is a tuple"):
        Op("a.b", (), "decode", "", "", "", "", "", "")  # type: ignore[arg-type]
