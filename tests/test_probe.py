"""The probe pack: every kind of item runs on the simulator, and a difference is found and named."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness_root import runner
from netra_catalog import result
from netra_harness import workers
from netra_harness.cli import main
from netra_harness.errors import NetraError, UsageError
from netra_harness.probes import items as probe_items
from netra_harness.probes import pack


@pytest.fixture(autouse=True)
def here(repo_root: Path, sim_library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repo_root)
    monkeypatch.delenv("NETRA_ROOT", raising=False)


def probe(*words: str, code: int = 0) -> Any:
    done = runner().invoke(main, ["probe", *words])
    assert done.exit_code == code, done.output
    return done


WANTED = [
    "adder/v_mfma_f32_16x16x16_f16", "trans/v_rcp_f32/table", "convert/v_cvt_f32_fp8",
    "hazard/v_exp_f32/valu-read", "layout/v_mfma_f32_16x16x16_f16/64",
]  # fmt: skip


@pytest.fixture(scope="module")
def ran(sim_library: Path) -> dict[str, Any]:
    return pack.run("gfx950", "sim", WANTED)


def test_each_kind_has_items_on_both_targets() -> None:
    for arch in ("gfx950", "gfx1151"):
        names = pack.names(arch)
        kinds = {name.split("/")[0] for name in names}
        assert kinds == {"layout", "adder", "trans", "convert", "hazard", "case"}
        assert len(names) == len(set(names))


def test_the_simulator_answers(ran: dict[str, Any]) -> None:
    assert [e["verdict"] for e in ran["items"]] == ["ok"] * len(WANTED), ran["items"]
    found = {e["name"]: e for e in ran["items"]}
    # fp8 codes by hand: 0x38 is 1, 0x7e is 448, 0x80 is -0.
    table = np.frombuffer(bytes.fromhex(found["convert/v_cvt_f32_fp8"]["words"]), "<f4")
    assert table[0x38] == 1 and table[0x7E] == 448 and np.signbit(table[0x80])
    # Which of the three depends on the adder; the exact sum is -0.875.
    adder = np.frombuffer(bytes.fromhex(found["adder/v_mfma_f32_16x16x16_f16"]["words"]), "<f4")
    labels = [i for i in probe_items.items("gfx950") if i.name == WANTED[0]][0].labels
    assert len(adder) == len(labels) and adder[labels.index("generations")] in (-0.875, -0.5, 0)
    assert ran["device"]["kind"] == "sim" and ran["device"]["arch"] == "gfx950"
    hazard = np.frombuffer(bytes.fromhex(found["hazard/v_exp_f32/valu-read"]["words"]), "<u4")
    assert len(set(hazard)) == 1  # the simulator waits as long as it takes


def test_a_difference_is_found_and_named(ran: dict[str, Any], tmp_path: Path) -> None:
    assert pack.compare(ran, ran) == []
    theirs = json.loads(json.dumps(ran))
    entry = next(e for e in theirs["items"] if e["name"] == "hazard/v_exp_f32/valu-read")
    words = bytearray.fromhex(entry["words"])
    words[0:4] = (0x40E00000).to_bytes(4, "little")  # 7: stale without a wait state
    entry["words"], entry["sha256"] = words.hex(), "0" * 64
    theirs["items"][1]["verdict"], theirs["items"][1]["text"] = "hang", "no answer"
    path = tmp_path / "theirs.json"
    pack.write(path, theirs)
    assert pack.read(path)["items"][0] == ran["items"][0]
    text = probe("--compare", str(path), "[hta]*", code=1).output
    assert "hazard/v_exp_f32/valu-read: 1 of 5 differ" in text
    assert "0 wait states: 0x40e00000, the other has" in text
    assert "trans/v_rcp_f32/table: 1 of 1 differ" in text and "hang, where the other is ok" in text
    assert "compared 3 items, 2 differ" in text


def test_a_file_is_whole_or_refused(ran: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "probe.json"
    pack.write(path, ran)
    whole = path.read_bytes()
    assert json.loads(whole)["digest"] == result.digest(json.loads(whole))
    path.write_bytes(whole.replace(b'"verdict": "ok"', b'"verdict": "no"', 1))
    with pytest.raises(NetraError, match="is damaged"):
        pack.read(path)
    for text in ("", "[]", '{"kind": "oracle"}'):
        path.write_text(text)
        with pytest.raises(UsageError):
            pack.read(path)
    assert "which target?" in probe("trans/*", "--device", "sim", code=2).output
    assert "no probe of gfx950 matches" in probe("x*", "--arch", "gfx950", code=2).output


def test_an_item_that_never_ends_costs_its_limit_and_no_more() -> None:
    """Its process is ended; the entry says so."""
    body = {
        "do": "call", "name": "slow", "function": "naps:nap",
        "sys_path": [str(Path(__file__).parent / "fixtures")],
    }
    begin = time.monotonic()
    [outcome] = workers.run([workers.Job(body, {}, 2.0)])
    entry = pack._entry(outcome)
    assert entry["verdict"] == "hang" and "2 s" in entry["text"] and not entry["words"]
    assert time.monotonic() - begin < 30
