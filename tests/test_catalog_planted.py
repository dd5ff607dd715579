"""Faults planted in generated catalogs: each is found, with file, line and the mend.  And bytes
that are no catalog: read or refused, never a crash.

NETRA_FUZZ=20000 makes the fuzzing as much longer.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import toy_catalogs
from click.testing import CliRunner
from netra_catalog import Call, NetraError, Tensor, evaluate, load, match, plan
from netra_catalog.binary import compile_catalog
from netra_catalog.checks import check
from netra_catalog.cli import main
from netra_catalog.compiled import CompiledCatalog
from netra_catalog.format import HEADER
from netra_catalog.yaml_loader import load_yaml

ROOT = Path(__file__).resolve().parents[1]
FUZZ = int(os.environ.get("NETRA_FUZZ", "400"))

Planted = tuple[dict[str, str], list[str]]


def _bands(rng: random.Random) -> dict[str, str]:
    """Two to four tactics side by side that cover 1..128 together."""
    cuts = sorted(rng.sample(range(8, 120), rng.randint(1, 3)))
    ends = list(zip([1, *(c + 1 for c in cuts)], [*cuts, 128], strict=True))
    return {
        f"made_{i}": toy_catalogs.text(f"{a} <= x.shape[0] <= {b}", kernel=f"made_{i}")
        for i, (a, b) in enumerate(ends)
    }


def _duplicate(rng: random.Random) -> Planted:
    made = _bands(rng)
    stem = rng.choice(sorted(made))
    made["made_z"] = made[stem]
    return made, [f"made_z.yaml:4: the contract is that of gfx950/{stem}", f"{stem}.yaml:4",
                  "or give", "another rank"]  # fmt: skip


def _overlap(rng: random.Random) -> Planted:
    made = _bands(rng)
    row = rng.randint(1, 128)
    made["made_z"] = toy_catalogs.text(f"x.shape[0] in ({row}, 500)", kernel="made_z")
    return made, ["made_z.yaml:4: takes the same calls as gfx950/made_", f"x=bf16[{row},2048]",
                  "narrow one of the contracts"]  # fmt: skip


def _typo(rng: random.Random) -> Planted:
    made = _bands(rng)
    stem = rng.choice(sorted(made))
    find, put, line, said = rng.choice([
        ("rows: ", "rows: y.shape[0] > 0 and ", 8, "unknown name 'y'"),
        ("graph in", "grap in", 7, "unknown name 'grap' (did you mean 'graph'?)"),
        ('"decode"', '"decoed"', 6, "(did you mean 'decode'?)"),
        ("aligned(x", "alignd(x", 11, "unknown function 'alignd' (did you mean 'aligned'?)"),
        ("launches:", "launchs:", 17, "unknown key 'launchs' (did you mean 'launches'?)"),
        ("x.max_byte_offset", "x.max_byte_ofset", 12, "(did you mean 'max_byte_offset'?)"),
        ('  graph: graph in ("eager", "capture")\n', "", 4, "no predicate states graph"),
    ])  # fmt: skip
    assert find in made[stem]
    made[stem] = made[stem].replace(find, put, 1)
    return made, [f"{stem}.yaml:{line}:", said]


def _launch(rng: random.Random) -> Planted:
    made = _bands(rng)
    stem = "made_0"  # the one that admits a single row
    made[stem] = made[stem].replace(
        'grid: ["x.shape[0]", 1, 1]', 'grid: ["x.shape[0] - 1", "x.shape[0] // 8", 1]'
    )
    return made, [f"{stem}.yaml:", "launches[0].grid[", "add a predicate that bounds"]


PLANTS: list[Callable[[random.Random], Planted]] = [_duplicate, _overlap, _typo, _launch]


@pytest.mark.parametrize("plant", PLANTS, ids=lambda plant: plant.__name__)
def test_planted_faults_are_found(tmp_path: Path, plant: Callable[..., Planted]) -> None:
    for seed in range(35):
        rng = random.Random(seed)
        made, wanted = plant(rng)
        root = toy_catalogs.write(tmp_path / str(seed), made)
        before = {p: p.read_bytes() for p in root.rglob("*") if p.is_file()}
        errors = check(root).errors
        assert any(all(w in e for w in wanted) for e in errors), (seed, wanted, errors)
        assert before == {p: p.read_bytes() for p in root.rglob("*") if p.is_file()}


def test_planted_holes_are_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(30):
        rng = random.Random(seed)
        hole = 80 if seed == 0 else rng.randint(2, 127)
        split = rng.random() < 0.5 or seed == 0
        rows = [f"1 <= x.shape[0] <= {hole - 1}", f"{hole + 1} <= x.shape[0] <= 128"]
        made = (
            {f"made_{i}": toy_catalogs.text(r, kernel=f"made_{i}") for i, r in enumerate(rows)}
            if split
            else {"made_0": toy_catalogs.text(f"1 <= x.shape[0] <= 128 and x.shape[0] != {hole}")}
        )
        root = toy_catalogs.write(tmp_path / str(seed), made)
        assert check(root).errors == ()
        monkeypatch.setenv("NETRA_ROOT", str(root))
        result = CliRunner().invoke(main, ["coverage", "made.copy"])
        assert f"hole: out.shape[0] = {hole} is missing in 1..128 (phase decode, verify" in (
            result.output), result.output
        document = json.loads(CliRunner().invoke(main, ["coverage", "made.copy", "--json"]).stdout)
        (found,) = [h for h in document["targets"][0]["holes"]]
        assert found["missing"] == str(hole) and found["tactics"] == [f"gfx950/{s}" for s in made]
        assert document["targets"][0]["fallback"] == {"sglang": "torch.Tensor.copy_"}


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the real catalog and what is built of it."""
    root = tmp_path_factory.mktemp("real")
    for name in ("catalog/gfx950", "catalog/gfx1151", "asm", "build/gfx950", "build/gfx1151",
                 "harness/netra_harness/oracles"):  # fmt: skip
        shutil.copytree(ROOT / name, root / name)
    shutil.copy(ROOT / "build/objects.json", root / "build/objects.json")
    return root


def test_planted_faults_of_code_objects(real: Path) -> None:
    """30 stale hashes, wrong argument maps, resources and symbols in the real catalog."""
    assert check(real, built=True).errors == ()
    rng = random.Random(20260)
    paths = sorted((real / "catalog").glob("gfx*/*.yaml"))
    manifest = real / "build/objects.json"
    said = json.loads(manifest.read_text())
    for number in range(30):
        path = rng.choice(paths)
        text = path.read_text()
        tactic = f"{path.parent.name}/{path.name}"
        kernel = text.partition("- kernel: ")[2].partition("\n")[0]
        line = text[: text.index("- kernel: ")].count("\n") + 1
        kind = number % 4
        if kind == 0:
            spoilt = {**said, f"{path.parent.name}/{kernel}": f"{number:064x}"}
            manifest.write_text(json.dumps(spoilt))
            wanted = [f"{tactic}:{line}: ", f"{kernel}.co has SHA-256", "built last: make "]
        elif kind == 1:
            path.write_text(text.replace("kind: ptr, offset: 0}", "kind: ptr, offset: 512}", 1)
                            if "offset: 0, " not in text else text.replace("offset: 8}",
                                                                           "offset: 24}", 1))
            wanted = [f"{tactic}:", f"{kernel}.co", "write offset:"]
        elif kind == 2:
            stated = text.partition("{vgpr: ")[2].partition(",")[0]
            wrong = int(stated) + 1
            path.write_text(text.replace(f"{{vgpr: {stated}", f"{{vgpr: {wrong}", 1))
            wanted = [f"{tactic}:", f"resources.{kernel}: vgpr is {wrong}", "write vgpr: "]
        else:
            arch = path.parent.name
            others = sorted((real / "build" / arch).glob("*.co"))
            other = next(p for p in others if p.stem != kernel)
            object_ = real / "build" / arch / f"{kernel}.co"
            kept = object_.read_bytes()
            object_.write_bytes(other.read_bytes())
            wanted = [f"{tactic}:{line}: ", f"has no symbol '{kernel}'", "is the stem of its file"]
        try:
            errors = check(real, built=True).errors
            if kind == 1 and not any("write offset:" in e for e in errors):
                wanted = [f"{tactic}:", "offset"]  # refused when it was loaded
            assert any(all(w in e for w in wanted) for e in errors), (number, wanted, errors)
        finally:
            path.write_text(text)
            manifest.write_text(json.dumps(said))
            if kind == 3:
                object_.write_bytes(kept)
    assert check(real, built=True).errors == ()


# The compiled catalog


def calls(rng: random.Random, count: int) -> list[Call]:
    made: list[Call] = []
    for _ in range(count):
        rows, width = rng.randint(0, 140), rng.choice([2048, 2048, 2048, 1024])
        dtype = rng.choice(["bf16", "bf16", "bf16", "f32"])
        x = Tensor.dense(1 << 40, dtype, (rows, width))
        out = Tensor.dense((1 << 41) + rng.choice([0, 0, 8]), dtype, (rows, width))
        phase, graph = rng.choice(["decode", "prefill"]), rng.choice(["eager", "piecewise"])
        made.append(Call("made.copy", "gfx950", phase, graph, 256, {"x": x, "out": out}))
    return made


def test_the_compiled_catalog_decides_alike(tmp_path: Path) -> None:
    for seed in range(8):
        rng = random.Random(seed)
        root = toy_catalogs.write(tmp_path / str(seed), _bands(rng))
        tactics = load(root=root)
        data = compile_catalog(tactics, root)
        assert data == compile_catalog(tactics[::-1], root)
        compiled: Any = CompiledCatalog(data).tactics("made.copy")
        assert [t.id for t in compiled] == [t.id for t in tactics]
        assert [t.contract_sha256 for t in compiled] == [t.contract_sha256 for t in tactics]
        assert compiled[0].definition == tactics[0].definition
        for call in calls(rng, 60):
            for theirs, mine in zip(compiled, tactics, strict=True):
                assert evaluate(theirs, call) == evaluate(mine, call)
                if evaluate(mine, call) is None:
                    assert plan(theirs, call) == plan(mine, call)
            a: Any = match(compiled, call)
            b: Any = match(tactics, call)
            assert (a.tactic.id, getattr(a, "text", "")) == (b.tactic.id, getattr(b, "text", ""))


def test_spoilt_catalogs_are_refused(tmp_path: Path) -> None:
    """Bytes changed, cut and added; with the checksum made right again every other time."""
    root = toy_catalogs.write(tmp_path, _bands(random.Random(1)))
    good = compile_catalog(load(root=root), root)
    rng = random.Random(2)
    call = calls(rng, 1)[0]
    refused = 0
    for number in range(FUZZ):
        data = bytearray(good)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(data))
            data[at] = rng.choice([0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        if number % 5 == 0:
            data = data[: rng.randrange(len(data))]
        if number % 2 and len(data) > HEADER.size:
            struct.pack_into("<Q", data, 16, len(data))
            data[24:56] = hashlib.sha256(data[56:]).digest()
        try:
            for tactic in CompiledCatalog(bytes(data)).tactics():
                subject: Any = tactic
                evaluate(subject, call)
                _ = (tactic.launches, tactic.workspace, tactic.fallback, tactic.kernels)
        except NetraError as error:
            refused += "catalog.bin" in error.message or "gfx950" in error.message
    assert refused > FUZZ // 3


def test_spoilt_yaml_is_read_or_refused(tmp_path: Path) -> None:
    good = toy_catalogs.text().encode()
    rng = random.Random(3)
    root = toy_catalogs.write(tmp_path, {"made_0": toy_catalogs.text()})
    path = root / "catalog/gfx950/made_0.yaml"
    for _ in range(FUZZ // 2):
        data = bytearray(good)
        for _ in range(rng.randint(1, 5)):
            at = rng.randrange(len(data))
            if rng.random() < 0.5:
                data[at] = rng.choice(b"\0\xff\n\t :[]{}#&*!|>'\"%@`-,?")
            else:
                del data[at : at + rng.randint(1, 30)]
        path.write_bytes(data)
        try:
            load_yaml(path)
            load(root=root)
        except NetraError as error:
            assert "made_0.yaml" in error.message or "made.py" in error.message, error.message


def test_why_is_quick_with_many_tactics(tmp_path: Path) -> None:
    """A bound far above what tools/catalog_speed.py prints: it is there to notice a why that
    reads the YAML files again, which takes seconds."""
    import catalog_speed

    root = catalog_speed.prepare(tmp_path, 200)
    (found,) = catalog_speed.measure(root, 300, 1)
    assert found["why"] and found["found"] == "Match"
    assert found["cpu"] < 0.5 and found["match"] < 0.5
