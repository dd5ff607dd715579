"""netra-catalog as a user meets it: output, exit codes, and what a bad file says."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from netra_catalog.cli import main

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    copied = Path(shutil.copytree(HERE / "catalog_root", tmp_path / "root"))
    monkeypatch.setenv("NETRA_ROOT", str(copied))
    monkeypatch.chdir(copied)
    for name in ("NETRA_ENABLE", "NETRA_ADMIT"):
        monkeypatch.delenv(name, raising=False)
    return copied


def run(*words: str) -> Result:
    result = CliRunner().invoke(main, words)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    return result


def document(*words: str, code: int = 0) -> Any:
    result = run(*words, "--json")
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


YAML = "catalog/gfx950/toy_f32.yaml"


def change(root: Path, find: str, put: str) -> None:
    path = root / YAML
    text = path.read_text()
    assert find in text, find
    path.write_text(text.replace(find, put, 1))


# Bad files: each message begins with file:line and names the mend.

BAD = [
    ("contract:", "contact:", 3, "unknown key 'contact' (did you mean 'contract'?)"),
    ("kernel: toy_f32_stage1", "kernal: toy_f32_stage1", 17,
     "launches[0]: unknown key 'kernal' (did you mean 'kernel'?)"),
    ("vgpr: 4", "vgprs: 4", 40,
     "resources.toy_f32_stage1: unknown key 'vgprs' (did you mean 'vgpr'?)"),
    ("  rows: 1 <=", "  n: 1 <=", 6,
     "key 'contract.n' occurs twice: first in line 5, again in line 6"),
    ("fallback:", "op: toy.x\nfallback:", 47, "key 'op' occurs twice: first in line 1"),
    ("op: toy.scale\n", "", 1, "required key 'op' is missing"),
    ("{name: toy, variant: plain}", "{name: toy}", 2, "oracle: required key 'variant' is missing"),
    ("block: [64, 1, 1]", "block: 64", 19, "launches[0].block: want a list, got 64"),
    ("vgpr: 4", "vgpr: four", 40, "resources.toy_f32_stage1.vgpr: want an integer, got 'four'"),
    ("vgpr: 4", "vgpr: 4.0", 40, "resources.toy_f32_stage1.vgpr: want an integer, got '4.0'"),
    ("vgpr: 4", "vgpr: 513", 40, "resources.toy_f32_stage1.vgpr: 513 is outside 0..512"),
    ("name: toy,", "name: toys,", 2, "unknown oracle 'toys' (did you mean 'toy'?)"),
    ("op: toy.scale", "op: toy.scales", 1, "the oracle 'toy' defines 'toy.scale'"),
    ("op: toy.scale", "op: toyscale", 1, "op: 'toyscale' does not have the form"),
    ('grid: ["src.shape[0]", "ceildiv(src.shape[1], 256)", 1]', "grid: [ceildiv(4, 256), 1, 1]",
     18, "launches[0].grid: 4 items, want 3\n  a comma inside [ ] splits an item"),
    ('grid: ["src.shape[0]", "ceildiv(src.shape[1], 256)", 1]', "grid: [ceildiv(4, 256), 1]",
     18, "launches[0].grid: an item has unbalanced parentheses\n  a comma inside [ ] splits"),
    ("rows: 1 <= src.shape[0]", "rows: 1 <= scr.shape[0]", 5,
     ":14: contract.rows: unknown name 'scr' (did you mean 'src'?)"),
    ("rows: 1 <= src.shape[0]", "rows: 1 <= src.shpe[0]", 5,
     ":17: contract.rows: a tensor has no '.shpe' (did you mean 'shape'?)"),
    ("rows: 1 <= src.shape[0]", 'rows: "1 <= srk.shape[0]"\n  r: 1 <= src.shape[0]', 5,
     ":15: contract.rows: unknown name 'srk'"),
    ("rows: 1 <= src.shape[0] <=", "rows: 1 <= src.shape[0]\n    <=", 5,
     "contract.rows: an expression ends where its line ends"),
    ("rows: 1 <=", "overflow: 1 <=", 5, "predicate id 'overflow' is reserved"),
    ("rows: 1 <=", "Rows: 1 <=", 5, "contract: 'Rows' is not a valid name"),
    ('phase: phase == "decode"', "phase: 1 == 1", 15, "phase: says nothing about the call"),
    ('"decode"', '"decod"', 15, "phase is never 'decod' (did you mean 'decode'?)"),
    ("lds: 0", 'lds: src.dtype == "f32"', 20, "launches[0].lds: this is true or false, want an"),
    ("{name: dst, kind", "{name: dts, kind", 22, "has no argument 'dts' (did you mean 'dst'?)"),
    ("{name: dst, kind: ptr", "{name: dst, kind: u64", 22, "dst is a tensor, it cannot be"),
    ("{name: alpha, kind: f32", "{name: alpha, kind: u32", 25, "alpha is f32, it cannot go"),
    ("kind: f32", "kind: float", 25, "'float' is not a valid value"),
    ("offset: 8,", "offset: 4,", 23, "from: offset 4 is not a multiple of 8"),
    ("offset: 16,", "offset: 8,", 24, "partial: offset 8 is below 16"),
    ("{name: n,", "{name: alpha,", 26, "two arguments are named 'alpha'"),
    ("value: src}", "value: src * 2}", 23, "* does not take a tensor"),
    ("value: src}", "value: src - workspace}", 23, "a pointer may be moved by an integer"),
    ("value: src}", "value: 4}", 23, "from: a ptr is a tensor, workspace"),
    ('value: "src.shape[1]"', "value: workspace", 26, "n: workspace is ptr, it cannot go into u32"),
    ('value: "src.shape[1]"', "value: -1", 26, "n: -1 does not fit u32"),
    ("value: 0.5", 'value: "src.shape[0]"', 38, "it cannot go into f32"),
    ("bytes: 256", "bytes: workspace", 43, "the workspace has no address here"),
    ("zeroed_by: none", "zeroed_by: nobody", 44, "workspace.zeroed_by: 'nobody' is not a valid"),
    ("  toy_f32_stage2: {vgpr", "  toy_f32_stage3: {vgpr", 41, "resources: no launch of 'toy"),
    ("reads: [src]", "reads: [scr]", 45, "effects.reads: no tensor 'scr' (did you mean 'src'?)"),
    ("writes: [dst, total]", "writes: [dst]", 45, "effects.writes: 'total' is missing"),
    ("writes: [dst, total]", "writes: [dst, total, src]", 45, "the op only reads 'src'"),
    ("decides: deployed", "decides: deploy", 46, "'deploy' is not a valid value (did you mean"),
    ("decides: deployed", "decides: exact", 46, "numerics.exact: `exact` already decides"),
    ("metric: ulp, value: 1", "metric: bitwise, value: 1", 46, "bitwise allows 0, not 1"),
    ("metric: ulp, value: 1", "metric: ulp, value: 0.5", 46, "ulp wants an integer, not 0.5"),
    ("metric: ulp, value: 1", "metric: ulp, relative: 1e-3, value: 1", 46, "only a bound has one"),
    ("value: 1e-3", "value: 1e-x", 46, "numerics.exact.value: '1e-x' does not have the form"),
    ('fallback: {sglang: "torch.mul"}', "fallback: {}", 47, "fallback: is empty"),
    ("fallback:", "maturity: done\nfallback:", 47, "maturity: 'done' is not a valid value"),
    ('"torch.mul"', '"a": b', 47, "not YAML"),
]  # fmt: skip


@pytest.mark.parametrize(("find", "put", "line", "message"), BAD, ids=[b[3][:40] for b in BAD])
def test_a_bad_file_is_named_with_its_line(
    root: Path, find: str, put: str, line: int, message: str
) -> None:
    change(root, find, put)
    for command in (("list",), ("check",)):
        result = run(*command)
        assert result.exit_code == 1
        assert message in result.output
        lines = [text for text in result.output.splitlines() if f"{YAML}:{line}:" in text]
        assert any(message.splitlines()[0] in text for text in lines), result.output
        assert "Traceback" not in result.output


def test_every_error_of_a_file_is_reported_at_once(root: Path) -> None:
    change(root, "src.shape[0] <= 4096", "scr.shape[0] <= 4096")
    change(root, "reads: [src]", "reads: [scr]")
    output = run("list").output
    assert f"{YAML}:5:" in output and f"{YAML}:45:" in output


# list, show, check


def test_list(root: Path) -> None:
    result = run("list")
    assert result.exit_code == 0
    assert result.output.splitlines()[1].split() == [
        "gfx950/toy_f32", "toy.scale", "experiment", "toy_f32_stage1,", "toy_f32_stage2",
    ]  # fmt: skip
    assert document("list", "toy*") == {
        "tactics": [{
            "tactic": "gfx950/toy_f32", "arch": "gfx950", "op": "toy.scale",
            "maturity": "experiment", "hold": None, "kernels": ["toy_f32_stage1", "toy_f32_stage2"],
        }]
    }  # fmt: skip
    result = run("list", "tyo*")
    assert result.exit_code == 2 and "no tactic matches 'tyo*'" in result.output
    assert run("list", "--arch", "gfx1151").exit_code == 2
    change(root, "fallback:", "hold: not yet\nfallback:")
    assert "experiment, held" in run("list").output


def test_show(root: Path) -> None:
    output = run("show", "gfx950/toy_f32").output
    for part in ("1 <= src.shape[0] <= 4096", "@16   ptr  partial = workspace + 256", "torch.mul"):
        assert part in output
    shown = document("show", "toy_f32")
    assert shown["contract"]["phase"] == 'phase == "decode"'
    assert shown["launches"][0]["kernarg_size"] == 40
    assert shown["launches"][0]["args"][2] == {
        "name": "partial", "kind": "ptr", "offset": 16, "value": "workspace + 256",
    }  # fmt: skip
    assert len(shown["contract_sha256"]) == 64
    result = run("show", "toy_f23")
    assert result.exit_code == 2 and "did you mean 'toy_f32'?" in result.output


def test_check(root: Path) -> None:
    result = run("check", "--sources")
    assert result.exit_code == 0 and "no errors (tactics: 1, kernels: 2)" in result.output
    result = run("check")
    assert result.exit_code == 1
    assert f"{YAML}:17: build/gfx950/toy_f32_stage1.co does not exist" in result.output
    assert "type: make gfx950" in result.output
    (root / "asm" / "gfx950" / "extra.s").write_text("")
    result = run("check", "--sources")
    assert result.exit_code == 1
    assert "asm/gfx950/extra.s:1: no launch in catalog/gfx950/ names this kernel" in result.output
    report = document("check", "--sources", code=1)
    assert not report["passed"] and len(report["errors"]) == 1


# why

GOOD = ("why", "toy.scale", "src=f32[16,512]", "alpha=2.5")


def test_why_takes(root: Path) -> None:
    result = run(*GOOD)
    assert result.exit_code == 0
    assert "total=f32[16,2]" in result.output  # from the op's dimensions
    assert "  assumed: phase=decode graph=eager cu_count=256 src.layout=row_major" in result.output
    assert result.output.splitlines()[-1] == "  -> gfx950/toy_f32"
    answer = document(*GOOD, "arch=gfx950")
    assert answer["accepted"] and answer["targets"][0]["tactic"] == "gfx950/toy_f32"
    assert answer["targets"][0]["tactics"][0]["predicate"] is None
    said = document(*GOOD, "phase=decode", "graph=capture", "src.layout=row_major")
    assert said["targets"][0]["assumed"] == [
        "cu_count=256", "dst.layout=row_major", "total.layout=row_major",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "predicate", "text"),
    [
        (["src=f32[0,512]"], "rows", "1 <= src.shape[0] <= 4096 is false (src.shape[0]=0)"),
        (["rows=4097", "n=4", "src.dtype=f32"], "rows", "(src.shape[0]=4097)"),
        (["src=f32[16,6]"], "n", "is false (src.shape[1]=6)"),
        (["src=bf16[16,512]"], "src-dtype", 'src.dtype == "f32" is false (src.dtype=bf16)'),
        (["src=f32[16,512]", "src.stride=1,16"], "src-dense", "src=f32[16,512] stride=(1,16) at"),
        (["src=f32[16,512]", "src.ptr=0x1008"], "src-dense", "at 0x1008"),
        (["src=f32[16,512]", "dst=f32[15,512]"], "dst-shape", "dst.shape[0]=15, src.shape[0]=16"),
        (["src=f32[16,512]", "total=f32[16,1]"], "total-shape", "total.shape[1]=1"),
        (["src=f32[16,512]", "phase=prefill"], "phase", "(phase=prefill)"),
        (["src=f32[16,512]", "dst.ptr=0x10010", "src.ptr=0x10000"], "apart", "at 0x10010"),
        (["src=f32[16,512]", "src.extent=100"], "args", "its storage has 100 bytes"),
        (["src=f32[16]"], "n", "is false: there is no dimension 1"),
        (["src=f32[16,512,1]"], "args", "src is f32[16,512,1], the op wants [rows, n]"),
        (["src=f32[4096,1000000]"], "src-u32", "(src.max_byte_offset=16383999999)"),
        (["src=f32[16,512]", "flags=-1"], "args", "flags = -1 is no u32"),
        (["src=f32[16,512]", "arch=gfx1151"], "arch", "arch: the call is on gfx1151"),
        (["src=f32[16,512]", "arch=gfx1250"], "arch", "arch: the call is on gfx1250"),
    ],
)
def test_why_names_the_first_false_predicate(
    root: Path, words: list[str], predicate: str, text: str
) -> None:
    given = ["why", "toy.scale", "alpha=1", *words]
    if words == ["src=f32[16]"]:
        given += ["n=512"]
    result = run(*given)
    assert result.exit_code == 3
    assert f"  gfx950/toy_f32: {predicate}: " in result.output and text in result.output
    assert "Error: no tactic accepts toy.scale" in result.output
    answer = document(*given, code=3)
    assert not answer["accepted"]
    assert answer["targets"][0]["tactics"][0]["predicate"] == predicate


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["toy.scal"], "no tactic implements 'toy.scal' (did you mean 'toy.scale'?)"),
        (["toy.scale", "src=f32[16,512]"], "alpha is not known\n  add alpha=NUMBER"),
        (["toy.scale", "rows=1", "n=4"], "the type of src is not known: the op allows f32, bf16"),
        (["toy.scale", "rows=1", "src.dtype=f32"], "the shape of src is not known: n is missing"),
        (["toy.scale", "row=1"], "toy.scale has no 'row' (did you mean 'rows'?)"),
        (["toy.scale", "scr=f32[1,4]"], "toy.scale has no 'scr' (did you mean 'src'?)"),
        (["toy.scale", "src"], "'src' is not key=value"),
        (["toy.scale", "src="], "'src=' is not key=value"),
        (["toy.scale", "src=f32"], "src=f32 is not TYPE[SHAPE]"),
        (["toy.scale", "src=fp32[1,4]"], "unknown dtype 'fp32' (did you mean 'f32'?)"),
        (["toy.scale", "src=f32[1,x]"], "src: 'x' is not an integer"),
        (["toy.scale", "src.strid=1"], "a tensor has no '.strid' (did you mean 'stride'?)"),
        (["toy.scale", "src=f32[1,4]", "src.stride=1"], "src has 2 dimensions and 1 strides"),
        (["toy.scale", "rows=1", "rows=2"], "'rows' is given twice"),
        (["toy.scale", "alpha=x"], "alpha: 'x' is not a number"),
        (["toy.scale", "graph=captured"], "graph is never 'captured' (did you mean 'capture'?)"),
        (["toy.scale", "phase=decoding"], "phase is never 'decoding' (did you mean 'decode'?)"),
        (["toy.scale", "rows=-1", "n=4", "alpha=1", "src.dtype=f32", "x"], "not key=value"),
    ],
)
def test_why_says_what_it_needs(root: Path, words: list[str], message: str) -> None:
    result = run("why", *words)
    assert result.exit_code == 2, result.output
    assert message in result.output


def test_why_respects_admission(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change(root, "fallback:", "hold: waits for a fix\nfallback:")
    result = run(*GOOD)
    assert result.exit_code == 3
    assert "would take it, but it is held: waits for a fix" in result.output
    assert "the caller's own path (sglang: torch.mul)" in result.output
    monkeypatch.setenv("NETRA_ENABLE", "toy_*")
    assert run(*GOOD).exit_code == 0
    result = run(*GOOD, "--device", "hip")
    assert result.exit_code == 3 and "it is experiment, a GPU takes accepted" in result.output
    monkeypatch.setenv("NETRA_ADMIT", "gfx950/toy_f32")
    assert run(*GOOD, "--device", "hip").exit_code == 0
    change(root, "fallback:", "maturity: rejected\nfallback:")
    assert "it is rejected" in run(*GOOD).output


def test_why_prefers_the_lower_rank_and_refuses_a_tie(root: Path) -> None:
    text = (root / YAML).read_text()
    second = root / "catalog" / "gfx950" / "toy_alt.yaml"
    second.write_text(text + "rank: 3\n")
    assert run(*GOOD).output.splitlines()[-1] == "  -> gfx950/toy_f32"
    second.write_text(text)
    result = run(*GOOD)
    assert result.exit_code == 1
    assert "gfx950/toy_alt and gfx950/toy_f32 both take toy.scale" in result.output


def test_help_and_start(root: Path) -> None:
    for words in ([], ["list"], ["show"], ["why"], ["check"]):
        result = run(*words, "--help")
        assert result.exit_code == 0 and "Usage:" in result.output
    assert run("lst").exit_code == 2


def test_many_tactics_are_bearable(root: Path) -> None:
    """Reading every YAML is the slow way; the compiled catalog will be the quick one."""
    text = (root / YAML).read_text()
    for index in range(60):
        name = root / "catalog" / "gfx950" / f"toy_{index}.yaml"
        name.write_text(text + f"rank: {index + 1}\n")
    start = time.perf_counter()
    assert len(document("list")["tactics"]) == 61
    assert time.perf_counter() - start < 10


def test_the_real_command_line() -> None:
    folders = [str(ROOT / name) for name in ("catalog", "harness", "sim", "bridges")]
    done = subprocess.run(
        [sys.executable, "-m", "netra_catalog.cli", "list", "--json"],
        capture_output=True, text=True, cwd="/", check=False,
        env={"PYTHONPATH": ":".join(folders), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["tactics"]
