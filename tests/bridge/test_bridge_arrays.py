"""What the bridge reads of the arrays that callers have."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from netra_bridge import DeviceArray, PointerError, UsageError, as_array
from netra_bridge.arrays import is_scalar, read, scalar


def interface(**given: Any) -> SimpleNamespace:
    values = {"version": 3, "data": (0x10000, False), "typestr": "<f4", "shape": (2, 3)}
    return SimpleNamespace(__cuda_array_interface__={**values, **given})


class Tensor:
    """As much of torch.Tensor as the bridge reads."""

    def __init__(self, dtype: str = "float32", device: str = "cuda", **given: Any) -> None:
        self.dtype = f"torch.{dtype}"
        self.device = SimpleNamespace(type=device, index=0)
        self.shape = given.get("shape", (2, 3))
        self.layout = given.get("layout", "torch.strided")
        self._given = given

    def data_ptr(self) -> int:
        return 0x10000

    def stride(self) -> tuple[int, ...]:
        return tuple(self._given.get("strides", (3, 1)))

    def storage_offset(self) -> int:
        return int(self._given.get("offset", 0))

    def untyped_storage(self) -> SimpleNamespace:
        return SimpleNamespace(nbytes=lambda: 1000)

    def is_neg(self) -> bool:
        return bool(self._given.get("neg", False))


@pytest.mark.parametrize(
    "typestr, name",
    [("<f8", "f64"), ("<f4", "f32"), ("<f2", "f16"), ("<i8", "i64"), ("<i4", "i32"), ("|i1", "i8"),
     ("<u8", "u64"), ("<u4", "u32"), ("<u2", "u16"), ("|u1", "u8"), ("|b1", "bool")],
)  # fmt: skip
def test_interface_types(typestr: str, name: str) -> None:
    view = read("x", interface(typestr=typestr))
    assert (view.ptr, view.dtype, view.shape, view.strides) == (0x10000, name, (2, 3), (3, 1))


def test_interface_strides_are_in_bytes() -> None:
    assert read("x", interface(strides=(4, 8))).strides == (1, 2)
    assert read("x", interface(strides=(-12, 4))).strides == (-3, 1)
    assert read("x", interface(version=2, strides=None)).strides == (3, 1)


@pytest.mark.parametrize(
    "given, words",
    [
        ({"version": 1}, "version 1"),
        ({"typestr": ">f4"}, "big-endian"),
        ({"typestr": "|V2"}, "as_array"),
        ({"typestr": "<c8"}, "<c8"),
        ({"mask": object()}, "masked"),
        ({"strides": (6, 4)}, "strides"),
        ({"strides": (4,)}, "strides"),
        ({"shape": (2.0, 3)}, "shape"),
        ({"data": None}, "malformed"),
    ],
)
def test_interfaces_that_cannot_be_used(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        read("x", interface(**given))


def test_bf16_and_fp8_are_named_never_inferred() -> None:
    raw = interface(typestr="<u2")
    assert read("x", raw).dtype == "u16"
    array = as_array(raw, dtype="bf16", layout="row_major")
    assert (array.dtype, array.layout, array.owner) == ("bf16", "row_major", raw)
    assert read("x", array).dtype == "bf16"
    assert as_array(interface(typestr="|V2"), dtype="bf16").dtype == "bf16"
    assert as_array(interface(typestr="|u1"), dtype="f8e4m3fn").dtype == "f8e4m3fn"
    for typestr, dtype in (("<u4", "bf16"), ("<f2", "bf16"), ("<f4", "f8e5m2"), ("<u2", "bf17")):
        with pytest.raises(UsageError):
            as_array(interface(typestr=typestr), dtype=dtype)
    with pytest.raises(UsageError, match="cannot be read as bf16"):
        as_array(Tensor("float16"), dtype="bf16")


@pytest.mark.parametrize(
    "dtype, name",
    [("float32", "f32"), ("bfloat16", "bf16"), ("float8_e4m3fn", "f8e4m3fn"),
     ("float8_e4m3fnuz", "f8e4m3fnuz"), ("float8_e5m2", "f8e5m2"), ("int64", "i64"),
     ("bool", "bool")],
)  # fmt: skip
def test_torch_types(dtype: str, name: str) -> None:
    assert read("x", Tensor(dtype)).dtype == name


def test_torch_strides_and_storage() -> None:
    view = read("x", Tensor("bfloat16", strides=(8, 2), offset=10))
    assert view.strides == (8, 2)
    assert view.extent == 1000 - 20


def test_torch_tensors_that_cannot_be_used() -> None:
    with pytest.raises(PointerError, match="host memory"):
        read("x", Tensor(device="cpu"))
    with pytest.raises(UsageError, match="sparse"):
        read("x", Tensor(layout="torch.sparse_coo"))
    with pytest.raises(UsageError, match="is_neg"):
        read("x", Tensor(neg=True))
    with pytest.raises(UsageError, match="complex64"):
        read("x", Tensor("complex64"))


def test_objects_with_a_pointer() -> None:
    plain = SimpleNamespace(ptr=0x20000, shape=(4,), dtype="bf16")
    assert read("x", plain).strides == (1,)
    typed = SimpleNamespace(ptr=0x20000, shape=(4, 2), dtype=np.dtype("i4"), strides=(1, 4))
    assert (read("x", typed).dtype, read("x", typed).strides) == ("i32", (1, 4))
    with pytest.raises(UsageError, match="no dtype"):
        read("x", SimpleNamespace(ptr=1, shape=(4,)))
    with pytest.raises(UsageError, match="ptr"):
        read("x", SimpleNamespace(ptr="here", shape=(4,), dtype="f32"))
    with pytest.raises(UsageError, match="unknown dtype 'f33'"):
        read("x", SimpleNamespace(ptr=1, shape=(4,), dtype="f33"))


def test_host_arrays_are_refused() -> None:
    for host in (np.zeros(3, np.float32), np.zeros((), np.float32)):
        with pytest.raises(PointerError, match="logits is in host memory"):
            read("logits", host)
    with pytest.raises(UsageError, match="no device array"):
        read("x", [1.0, 2.0])


def test_scalars() -> None:
    assert is_scalar(3) and is_scalar(1e-6) and is_scalar(np.float32(2)) and is_scalar(True)
    assert not is_scalar(np.zeros(())) and not is_scalar("3")
    assert scalar("n", True) == 1 and isinstance(scalar("n", np.int64(5)), int)
    assert scalar("eps", np.float32(0.5)) == 0.5
    with pytest.raises(UsageError, match="z is a complex128"):
        scalar("z", np.complex128(1))


def test_device_array() -> None:
    array = DeviceArray(0x1000, (np.int64(2), 3), "f32")
    assert array.shape == (2, 3) and array.nbytes == 24
    shown = array.__cuda_array_interface__
    assert (shown["typestr"], shown["shape"], shown["data"]) == ("<f4", (2, 3), (0x1000, False))
    assert read("x", SimpleNamespace(__cuda_array_interface__=shown)).dtype == "f32"
    strided = DeviceArray(0x1000, (2, 3), "i64", (6, 2))
    assert strided.__cuda_array_interface__["strides"] == (48, 16)
    assert not hasattr(DeviceArray(0x1000, (2,), "bf16"), "__cuda_array_interface__")
    with pytest.raises(UsageError, match="differ in length"):
        DeviceArray(0x1000, (2, 3), "f32", (1,))
    with pytest.raises(UsageError, match="did you mean 'f32'"):
        DeviceArray(0x1000, (2,), "fp32")


def test_types_from_numpy() -> None:
    from netra_bridge.arrays import dtype_name

    assert dtype_name(np.float32) == "f32"
    assert dtype_name(np.dtype(ml_dtypes.bfloat16)) == "bf16"
    assert dtype_name(ml_dtypes.float8_e4m3fn) == "f8e4m3fn"
    assert dtype_name("torch.bfloat16") == "bf16"
    with pytest.raises(UsageError):
        dtype_name(np.complex64)
