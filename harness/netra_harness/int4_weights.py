"""Weights of 4 bits: the order that the W4A16 kernels read, and how AWQ and GPTQ store theirs.

The kernels' layout tag is `i4_k8_02461357`: w i32 [..., N, K / 8], where bits 4 p..4 p + 3 of
dword d hold the weight of k = 8 d + ORDER[p].  Slots p and p + 4 are thus an even k and the next
one, so one mask takes a pair out that is already where a packed 16-bit register wants it.  Zero
points are u8 [..., N, K / group], one to a byte; scales have the same shape.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from netra_harness.errors import UsageError

LAYOUT = "i4_k8_02461357"
ORDER = (0, 2, 4, 6, 1, 3, 5, 7)  # slot -> k
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)  # slot -> column
SEQUENTIAL = (0, 1, 2, 3, 4, 5, 6, 7)
SYMMETRIC_ZERO = 8  # what a checkpoint without zero points means

Array = NDArray[Any]
U8 = NDArray[np.uint8]
I32 = NDArray[np.int32]


def pack(codes: Array) -> I32:
    """Codes 0..15, [..., K] with K a multiple of 8, to dwords [..., K / 8] of LAYOUT."""
    return _pack_last(codes, ORDER)


def unpack(words: Array) -> U8:
    """Dwords [..., K / 8] of LAYOUT to codes u8 [..., K]."""
    return _unpack_last(words, ORDER)


def dequantise(words: Array, scales: Array, zeros: Array | None) -> Array:
    """(code - zero) * scale, rounded once to the type of `scales`: [..., N, K].

    words i32 [..., N, K / 8] of LAYOUT; scales f16 or bf16 [..., N, K / group]; zeros u8 likewise,
    None or of no elements where every zero point is 8.
    """
    codes = unpack(words)
    group = codes.shape[-1] // scales.shape[-1]
    if zeros is None or zeros.size == 0:
        zero: Array = np.full(scales.shape, SYMMETRIC_ZERO, np.uint8)
    else:
        zero = zeros
    centred = codes.astype(np.float32) - np.repeat(zero.astype(np.float32), group, axis=-1)
    with np.errstate(all="ignore"):  # 9 bits times 11: exact in f32
        wide = centred * np.repeat(scales.astype(np.float32), group, axis=-1)
        return np.asarray(wide.astype(scales.dtype))


def from_awq(qweight: Array, qzeros: Array, scales: Array) -> tuple[I32, Array, U8]:
    """An AWQ layer to (w [N, K / 8] of LAYOUT, scales [N, K / group], zeros u8 likewise).

    AWQ packs along N: qweight i32 [K, N / 8], qzeros i32 [K / group, N / 8], scales
    [K / group, N].  Slot p of a dword is column 8 d + AWQ_ORDER[p]; (code - zero) * scale.
    Raises UsageError where the shapes disagree.
    """
    depth, groups = qweight.shape[0], scales.shape[0]
    columns = 8 * qweight.shape[1]
    _agree("AWQ", depth, columns, qzeros, scales)
    codes = _unpack_last(qweight, AWQ_ORDER)
    zeros = _unpack_last(qzeros, AWQ_ORDER)
    assert codes.shape == (depth, columns) and zeros.shape == (groups, columns)
    return pack(codes.T), np.ascontiguousarray(scales.T), np.ascontiguousarray(zeros.T)


def from_gptq(
    qweight: Array, qzeros: Array, scales: Array, *, stored_minus_one: bool = True
) -> tuple[I32, Array, U8]:
    """A GPTQ layer to (w [N, K / 8] of LAYOUT, scales [N, K / group], zeros u8 likewise).

    GPTQ packs weights along K and zero points along N, both in sequence: qweight i32 [K / 8, N],
    qzeros i32 [K / group, N / 8], scales [K / group, N].  Checkpoints of version 1 store a zero
    point less one (`stored_minus_one`), so a stored 15 means 16; version 2 stores it as it is.
    Groups must be consecutive in k (no act order).  Raises UsageError where shapes disagree.
    """
    depth, columns = 8 * qweight.shape[0], qweight.shape[1]
    _agree("GPTQ", depth, columns, qzeros, scales)
    codes = _unpack_last(np.ascontiguousarray(qweight.T), SEQUENTIAL)
    zeros = _unpack_last(qzeros, SEQUENTIAL) + np.uint8(stored_minus_one)
    return pack(codes), np.ascontiguousarray(scales.T), np.ascontiguousarray(zeros.T)


def _agree(what: str, depth: int, columns: int, qzeros: Array, scales: Array) -> None:
    groups = scales.shape[0]
    if scales.shape[1] != columns or qzeros.shape != (groups, columns // 8) or depth % groups:
        raise UsageError(
            f"{what} layer: qweight of K {depth}, N {columns} does not go with qzeros "
            f"{list(qzeros.shape)} and scales {list(scales.shape)}; "
            f"want qzeros [groups, {columns // 8}] and scales [groups, {columns}]"
        )


def _pack_last(codes: Array, order: tuple[int, ...]) -> I32:
    eights = np.ascontiguousarray(codes).reshape(*codes.shape[:-1], -1, 8).astype(np.uint32)
    words = np.zeros(eights.shape[:-1], np.uint32)
    for slot, index in enumerate(order):
        words |= (eights[..., index] & np.uint32(15)) << np.uint32(4 * slot)
    return words.view(np.int32)


def _unpack_last(words: Array, order: tuple[int, ...]) -> U8:
    wide = np.ascontiguousarray(words).view(np.uint32)
    codes = np.empty((*words.shape, 8), np.uint8)
    for slot, index in enumerate(order):
        codes[..., index] = (wide >> np.uint32(4 * slot)) & np.uint32(15)
    return codes.reshape(*words.shape[:-1], -1)
