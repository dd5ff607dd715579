"""Captures: raw safetensors files, digests, provenance, and what happens when they are stale."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any

import ml_dtypes
import netra_harness.capture as capturing
import numpy as np
import pytest
import safetensors.numpy
from harness_root import runner
from netra_harness import agreement, captures, registry, tensorfile
from netra_harness.case import Case
from netra_harness.cli import main
from netra_harness.errors import CaptureError, UsageError

ARRAYS: dict[str, Any] = {
    "f32": np.arange(6, dtype=np.float32).reshape(2, 3),
    "i64": np.array([-1, 2**62], np.int64),
    "bf16": np.arange(5).astype(ml_dtypes.bfloat16),
    "f8": np.arange(7).astype(ml_dtypes.float8_e4m3fn),
    "fnuz": np.arange(7).astype(ml_dtypes.float8_e4m3fnuz),
    "scale": np.array([126, 127, 255], np.uint8).view(ml_dtypes.float8_e8m0fnu),
    "bool": np.array([True, False]),
    "scalar": np.array(3.5, np.float64),
    "empty": np.empty((0, 4), np.uint8),
}


def same(left: Any, right: Any) -> bool:
    return (left.dtype, left.shape, left.tobytes()) == (right.dtype, right.shape, right.tobytes())


# ---- the file format ---------------------------------------------------------------------------


def test_every_dtype_goes_there_and_back(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    tensorfile.write(path, ARRAYS, {"who": "me"})
    arrays, metadata = tensorfile.read(path)
    assert metadata == {"who": "me"} and set(arrays) == set(ARRAYS)
    assert all(same(arrays[name], ARRAYS[name]) for name in ARRAYS)


def test_the_library_reads_our_files_and_we_read_its(tmp_path: Path) -> None:
    plain = {name: ARRAYS[name] for name in ("f32", "i64", "bool", "empty")}
    tensorfile.write(tmp_path / "ours.safetensors", plain, {})
    theirs = safetensors.numpy.load_file(tmp_path / "ours.safetensors")
    assert all(same(theirs[name], plain[name]) for name in plain)
    written = {name: ARRAYS[name] for name in ("f32", "bf16", "f8", "fnuz", "scale")}
    safetensors.numpy.save_file(written, tmp_path / "theirs.safetensors", {"a": "b"})
    arrays, metadata = tensorfile.read(tmp_path / "theirs.safetensors")
    assert metadata == {"a": "b"} and all(same(arrays[name], written[name]) for name in written)


def test_writing_twice_gives_the_same_bytes_and_no_leftovers(tmp_path: Path) -> None:
    for name in ("a", "b"):
        tensorfile.write(tmp_path / f"{name}.safetensors", ARRAYS, {"x": "1", "a": "2"})
    first, second = sorted(tmp_path.iterdir())
    assert first.read_bytes() == second.read_bytes()


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "x.safetensors"
    tensorfile.write(path, ARRAYS, {})
    before = path.read_bytes()

    def no(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", no)
    with pytest.raises(OSError):
        tensorfile.write(path, {"f32": ARRAYS["f32"]}, {})
    assert [p.name for p in tmp_path.iterdir()] == [path.name] and path.read_bytes() == before


def _header(raw: bytes, change: Any) -> bytes:
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    change(header)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + raw[8 + length :]


@pytest.mark.parametrize(
    "damage, word",
    [
        (lambda raw: b"", "0 bytes"),
        (lambda raw: b"<html>not found</html>", "a header of"),
        (lambda raw: raw[:30], "a header of"),
        (lambda raw: raw[:-1], "of data"),
        (lambda raw: raw + b"x", "cover"),
        (lambda raw: struct.pack("<Q", 2**63) + raw[8:], "a header of"),
        (lambda raw: struct.pack("<Q", 5) + b"[1,2]" + raw[8:], "does not parse"),
        (lambda raw: _header(raw, lambda h: h["f32"].update(dtype="F4")), "unknown dtype F4"),
        (lambda raw: _header(raw, lambda h: h["f32"].update(shape=[7])), "f32 is F32[7]"),
        (lambda raw: _header(raw, lambda h: h["f32"].update(shape=[-2, -3])), "f32 is F32"),
        (lambda raw: _header(raw, lambda h: h["f32"].update(data_offsets=[0])), "f32 is F32"),
        (lambda raw: _header(raw, lambda h: h["f32"].update(data_offsets=["0", 24])), "f32 is"),
        (lambda raw: _header(raw, lambda h: h["f32"].pop("shape")), "does not parse"),
        (lambda raw: _header(raw, lambda h: h.pop("f32")), "cover"),
    ],
)
def test_a_damaged_file_is_refused_with_a_reason(tmp_path: Path, damage: Any, word: str) -> None:
    path = tmp_path / "x.safetensors"
    tensorfile.write(path, {"f32": ARRAYS["f32"]}, {})
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(CaptureError, match="is no safetensors file") as caught:
        tensorfile.read(path)
    assert word in caught.value.message


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="cannot be read"):
        tensorfile.read(tmp_path / "x.safetensors")


# ---- captures ----------------------------------------------------------------------------------

ORACLE = '''
import numpy as np
from netra_catalog.op import Op, ScalarArg, TensorArg
from netra_harness.case import Case

OP = Op(
    name="test.scale",
    args=(TensorArg("dst", ("f32",), ("n",), "out"), TensorArg("src", ("f32",), ("n",), "in"),
          ScalarArg("alpha", "f32")),
    phases=("decode",), nan="", ties="", padding="", sentinels="", empty="", doc="",
)

def cases(case_set, variant):
    return [Case(f"n{n}", {"n": n}) for n in (3, 5000)]

def inputs(case, rng):
    return {"src": rng.standard_normal(case.params["n"], dtype=np.float32), "alpha": 2.0}

def outputs(case):
    return {"dst": ((case.params["n"],), "f32")}

def exact(variant, src, alpha):
    return {"dst": src.astype(np.float64) * alpha}

def deployed(variant, src, alpha):
    return {"dst": src * np.float32(alpha)}
'''

REFERENCES = """
def right(variant, src, alpha):
    return {"dst": src + src}

def wrong(variant, src, alpha):
    out = src + src
    out[1] = 0
    return {"dst": out}

def misshapen(variant, src, alpha):
    return {"dst": src[:1]}
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: Any) -> Path:
    """A checkout with one op, and references to capture it from."""
    for folder in ("asm", "catalog/gfx950", "harness/netra_harness/oracles", "references"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "harness/netra_harness/oracles/scale.py").write_text(ORACLE)
    (tmp_path / "references/capture_from.py").write_text(REFERENCES)
    monkeypatch.setenv("NETRA_ROOT", str(tmp_path))
    monkeypatch.syspath_prepend(str(tmp_path / "references"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def take(source: str = "capture_from:right", seed: int = 7) -> captures.CapturedCase:
    (summary,) = capturing.capture("test.scale", source, seed)
    return next(c for c in captures.load(summary.path) if c.case == "n5000")


def test_a_capture_stores_outputs_and_only_small_inputs(root: Path) -> None:
    big = take()
    assert big.path == root / "harness/captures/test.scale/capture_from.right-default.safetensors"
    assert big.inputs["src"].stored is None and big.outputs["dst"].stored is not None
    small = captures.captured("test.scale", "default", "n3")[0]
    assert small.inputs["src"].stored is not None and small.scalars == {"alpha": 2.0}
    assert captures.captured("test.scale", "other", "n3") == []
    _, metadata = tensorfile.read(big.path)
    record = json.loads(metadata["netra"])
    assert record["seed"] == 7 and record["source"]["function"] == "capture_from:right"
    assert {"python", "numpy"} <= record["source"]["versions"].keys()


def test_the_same_capture_twice_is_the_same_file(root: Path) -> None:
    path = take().path
    before = path.read_bytes()
    assert take().path.read_bytes() == before


def test_large_inputs_come_back_from_the_seed(root: Path) -> None:
    big = take()
    _, oracle = registry.find("scale")
    args = big.regenerate(oracle, Case("n5000", {"n": 5000}))
    assert captures.digest(args["src"]) == big.inputs["src"].sha256
    assert np.array_equal(args["src"] * 2, big.outputs["dst"].stored)


@pytest.mark.parametrize(
    "old, new, word",
    [
        ("rng.standard_normal", "rng.random", "src with SHA-256"),
        ('"alpha": 2.0', '"alpha": 3.0', "alpha = 2.0, now 3.0"),
        ('case.params["n"], dtype', 'case.params["n"] + 1, dtype', "src as f32[5000]"),
    ],
)
def test_inputs_that_changed_make_it_stale(root: Path, old: str, new: str, word: str) -> None:
    big = take()
    path = root / "harness/netra_harness/oracles/scale.py"
    path.write_text(path.read_text().replace(old, new))
    import importlib.util

    spec = importlib.util.spec_from_file_location("changed_scale", path)
    assert spec is not None and spec.loader is not None
    oracle = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(oracle)
    with pytest.raises(CaptureError) as caught:
        big.regenerate(oracle, Case("n5000", {"n": 5000}))
    assert "the capture is stale for case n5000" in caught.value.message and word in str(
        caught.value.message
    )
    assert "re-capture with: netra-harness capture test.scale --from capture_from:right" in (
        caught.value.message
    )


def test_every_flipped_byte_is_noticed(root: Path) -> None:
    path = take().path
    raw = path.read_bytes()
    rng = np.random.default_rng(5)
    missed = []
    for position in [*range(0, 200, 7), *rng.integers(0, len(raw), 300).tolist()]:
        path.write_bytes(raw[:position] + bytes([raw[position] ^ 1]) + raw[position + 1 :])
        os.utime(path, ns=(position, position))
        try:
            captures.load(path)
        except CaptureError:
            continue
        missed.append(position)
    (length,) = struct.unpack("<Q", raw[:8])
    blank = [p for p in missed if raw[p : p + 1] == b" " and p < 8 + length]
    assert missed == blank


def test_a_reference_that_answers_in_another_form_is_refused(root: Path) -> None:
    with pytest.raises(CaptureError, match=r"dst should be f32\[3\]"):
        take("capture_from:misshapen")
    assert not (root / "harness/captures").exists()


def test_the_command_shows_what_our_oracles_miss(root: Path) -> None:
    result = runner().invoke(
        main, ["capture", "test.scale", "--from", "capture_from:wrong", "--json"]
    )
    assert result.exit_code == 1, result.output
    (summary,) = json.loads(result.stdout)["captures"]
    assert summary["deployed_beyond_metric"] == summary["exact_not_rounded"] == 2
    assert summary["cases"] == 2 and summary["deployed_not_exact"] == 0
    assert "seed" in result.stderr and "first at dst[1]" in summary["differences"][0]
    good = runner().invoke(main, ["capture", "scale", "--from", "capture_from:right"])
    assert good.exit_code == 0 and "of 5003 elements `deployed` differs in 0" in good.stdout


@pytest.mark.parametrize(
    "source, word",
    [
        ("numpyy", "no reference 'numpyy' for scale"),
        ("capture_from:x", "no function"),
        ("nowhere.at_all:x", "no module nowhere.at_all"),
    ],
)
def test_an_unknown_reference_is_a_usage_error(root: Path, source: str, word: str) -> None:
    with pytest.raises(UsageError) as caught:
        take(source)
    assert word in caught.value.message


def test_an_unknown_op_is_a_usage_error(root: Path) -> None:
    result = runner().invoke(main, ["capture", "test.scael", "--from", "torch"])
    assert result.exit_code == 2 and "did you mean 'test.scale'?" in result.stderr


def test_a_reference_whose_package_is_missing_says_so(root: Path) -> None:
    (root / "references/needs.py").write_text("import no_such_package_here\n")
    result = runner().invoke(main, ["capture", "scale", "--from", "needs:x"])
    assert result.exit_code == 4 and "needs the package no_such_package_here" in result.stderr


# ---- what a reference may say of itself ---------------------------------------------------------

NEAR = """
VARIANTS = ("default",)
METRICS = {"dst": ("ulp", 1)}
LEFT_OUT = {"n3*": "three are too few"}

def device():
    return "a device"

def near(variant, src, alpha):
    import numpy as np
    out = src + src
    out[5] = np.nextafter(out[5], np.float32(np.inf))
    return {"dst": out}

def far(variant, src, alpha):
    return {"dst": near(variant, src, alpha)["dst"] * 1.0001}

def extra(variant, src, alpha):
    return {"dst": src + src, "more": src}
"""


def test_each_output_has_the_metric_that_its_reference_states(root: Path) -> None:
    (root / "references/nearly.py").write_text(NEAR)
    (summary,) = capturing.capture("test.scale", "nearly:near", 7)
    assert (summary.counts.beyond, summary.counts.differ, summary.cases) == (0, 1, 1)
    assert summary.left_out == {"n3": "three are too few"}
    (case,) = captures.load(summary.path)
    assert case.device == "a device"
    assert (case.outputs["dst"].metric, case.outputs["dst"].value) == ("ulp", 1)
    (summary,) = capturing.capture("test.scale", "nearly:far", 7)
    assert summary.counts.beyond > 4000 and "n5000: nearly.far's dst" in summary.counts.texts[0]


def test_variants_and_outputs_that_are_unknown_are_refused(root: Path) -> None:
    (root / "references/nearly.py").write_text(NEAR)
    with pytest.raises(UsageError, match="answers for no variant 'other'"):
        capturing.capture("test.scale", "nearly:near", 7, variant="other")
    with pytest.raises(CaptureError, match="more is no output of the op"):
        capturing.capture("test.scale", "nearly:extra", 7)


# ---- the commands ------------------------------------------------------------------------------


def ask(*words: str) -> tuple[int, str]:
    result = runner().invoke(main, ["captures", *words])
    return result.exit_code, result.output


def test_list_and_verify_say_what_there_is(root: Path) -> None:
    path = take().path
    code, text = ask("list", "--json")
    (row,) = json.loads(text)["captures"]
    assert code == 0 and row["op"] == "test.scale" and row["cases"] == 2
    assert row["bytes"] == path.stat().st_size and row["device"] == "cpu"
    code, text = ask("verify")
    assert code == 0 and "5003 elements, ok" in text and "1 captures, 0 not as they" in text


def test_verify_finds_a_flipped_byte_and_an_oracle_that_disagrees(root: Path) -> None:
    path = take().path
    raw = path.read_bytes()
    path.write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
    code, text = ask("verify", "--json")
    (row,) = json.loads(text)["captures"]
    assert code == 1 and "does not have the SHA-256" in row["error"]
    path.unlink()
    take("capture_from:wrong")
    code, text = ask("verify")
    assert code == 1 and "2 beyond the metric" in text and "first at dst[1]" in text


def test_verify_of_no_captures_at_all_does_not_pass(root: Path) -> None:
    assert ask("verify") == (1, "0 captures, 0 not as they should be\n")


def test_the_table_goes_between_its_marks(root: Path) -> None:
    take()
    page = root / "page.md"
    page.write_text("# Title\n<!-- agreement: begin -->\nold\n<!-- agreement: end -->\nafter\n")
    assert ask("agreement", "--write", str(page)) == (0, "")
    text = page.read_text()
    assert "old" not in text and text.startswith("# Title\n") and text.endswith("end -->\nafter\n")
    assert agreement.table_in(text) == ask("agreement")[1]
    assert "| `test.scale` | `default` |" in text and "| 5003 | 0 | 0 | 0 | 0 |" in text
    page.write_text("no marks")
    code, told = ask("agreement", "--write", str(page))
    assert code == 2 and "has no table to replace" in told and page.read_text() == "no marks"
