"""Recording the tensors of a call: strides, flavours and sentinels stay as they are."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from netra_harness import callsite
from netra_harness.errors import CaptureError


def test_a_view_with_gaps_comes_back_with_its_strides(tmp_path: Path) -> None:
    wide = np.arange(60, dtype=np.int32).reshape(5, 12)
    ids = np.array([7, -1, 2**31 - 1], np.int32)
    with callsite.record(tmp_path / "call.safetensors", "moe.route") as call:
        call.inputs(x=wide[1:4, 2:9:3], ids=ids, eps=1e-6, name="decode")
        wide[:] = 0  # in place: the copy was taken before
        call.outputs(out=np.array([0x7FC1, 0xFF80], np.uint16).view(ml_dtypes.bfloat16))
    back = callsite.load(tmp_path / "call.safetensors")
    x = back.tensors["in/x"]
    assert x.tolist() == [[14, 17, 20], [26, 29, 32], [38, 41, 44]]
    assert x.strides == (48, 12) and back.forms["in/x"]["strides"] == [12, 3]
    assert back.tensors["in/ids"].tolist() == [7, -1, 2**31 - 1]
    assert back.tensors["out/out"].view(np.uint16).tolist() == [0x7FC1, 0xFF80]
    assert back.scalars == {"in/eps": 1e-6, "in/name": "decode"} and back.op == "moe.route"
    assert "python" in back.provenance


def test_flavours_of_fp8_and_a_broadcast_are_kept(tmp_path: Path) -> None:
    codes = np.array([0x80, 0x7F], np.uint8)
    with callsite.record(tmp_path / "c", "op") as call:
        call.inputs(
            a=codes.view(ml_dtypes.float8_e4m3fn),
            b=codes.view(ml_dtypes.float8_e4m3fnuz),
            row=np.broadcast_to(np.float32(3), (2, 1000)),
            none=np.empty((0, 4), np.float32),
        )
    back = callsite.load(tmp_path / "c")
    assert back.forms["in/a"]["flavour"] == "float8_e4m3fn"
    assert back.forms["in/b"]["flavour"] == "float8_e4m3fnuz"
    assert back.tensors["in/b"].view(np.uint8).tolist() == [0x80, 0x7F]
    assert back.tensors["in/row"].shape == (2, 1000) and back.tensors["in/row"].strides == (0, 0)
    assert back.tensors["in/none"].shape == (0, 4)
    assert (tmp_path / "c").stat().st_size < 3000  # the broadcast is one element


def test_an_exception_stores_nothing_and_keeps_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "c"
    path.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), callsite.record(path, "op") as call:
        call.inputs(x=np.zeros(3))
        raise ZeroDivisionError
    assert path.read_bytes() == b"old" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "values, word",
    [
        ({}, "no tensor of op was recorded"),
        ({"x": [1, 2]}, "x is list: neither tensor nor number"),
        ({"x": np.arange(4)[::-1]}, "negative strides"),
    ],
)
def test_what_cannot_be_recorded_says_so(
    tmp_path: Path, values: dict[str, Any], word: str
) -> None:
    with pytest.raises(CaptureError, match=word), callsite.record(tmp_path / "c", "op") as call:
        call.inputs(**values)
    assert not list(tmp_path.iterdir())


def test_a_name_is_recorded_once(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match="x is recorded twice"):
        with callsite.record(tmp_path / "c", "op") as call:
            call.inputs(x=np.zeros(3))
            call.inputs(x=np.zeros(3))


def test_a_flipped_byte_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "c"
    with callsite.record(path, "op") as call:
        call.inputs(x=np.arange(3))
    raw = path.read_bytes()
    for position in (len(raw) - 1, raw.index(b"sha256") + 12):
        path.write_bytes(raw[:position] + bytes([raw[position] ^ 1]) + raw[position + 1 :])
        with pytest.raises(CaptureError):
            callsite.load(path)


# ---- PyTorch, by its attributes: no test needs it installed -------------------------------------


class FakeTensor:
    """What `record` asks of torch.Tensor, over NumPy memory."""

    def __init__(self, storage: Any, dtype: str, shape: Any, strides: Any, offset: int) -> None:
        self.storage, self.dtype, self.shape = storage, dtype, shape
        self._strides, self._offset, self.device = strides, offset, "cuda:0"

    def stride(self) -> Any:
        return self._strides

    def storage_offset(self) -> int:
        return self._offset

    def detach(self) -> FakeTensor:
        return self

    def as_strided(self, shape: Any, strides: Any) -> FakeTensor:
        assert strides == (1,)
        part = self.storage[self._offset : self._offset + shape[0]]
        return FakeTensor(part, self.dtype, shape, strides, 0)

    def view(self, dtype: Any) -> FakeTensor:
        assert dtype == "torch.uint8"
        return self

    cpu = detach

    def numpy(self) -> Any:
        return self.storage.view(np.uint8)


def test_a_torch_view_is_read_by_its_attributes(tmp_path: Path, monkeypatch: Any) -> None:
    torch = ModuleType("torch")
    torch.Tensor, torch.uint8, torch.__version__ = FakeTensor, "torch.uint8", "2.11.0"  # type: ignore[attr-defined]
    torch.cuda = ModuleType("cuda")  # type: ignore[attr-defined]
    torch.cuda.is_available = lambda: True  # type: ignore[attr-defined]
    torch.cuda.get_device_name = lambda: "a GPU"  # type: ignore[attr-defined]
    monkeypatch.setitem(__import__("sys").modules, "torch", torch)
    storage = np.arange(40, dtype=np.uint16)
    view = FakeTensor(storage, "torch.bfloat16", (2, 3), (10, 2), 5)
    with callsite.record(tmp_path / "c", "op") as call:
        call.inputs(x=view)
    back = callsite.load(tmp_path / "c")
    assert back.tensors["in/x"].view(np.uint16).tolist() == [[5, 7, 9], [15, 17, 19]]
    form = back.forms["in/x"]
    assert (form["storage_offset"], form["device"], form["dtype"]) == (5, "cuda:0", "bf16")
    assert back.provenance["gpu"] == "a GPU" and back.provenance["torch"] == "2.11.0"
    view.dtype = "torch.complex64"
    with pytest.raises(CaptureError, match="complex64"), callsite.record(tmp_path / "d", "op") as c:
        c.inputs(x=view)
