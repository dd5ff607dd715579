"""The order of 4-bit weights, and AWQ's and GPTQ's own packings turned into it."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from netra_harness import int4_weights
from netra_harness.errors import UsageError
from numpy.typing import NDArray

Array = NDArray[Any]


def test_one_dword_by_hand() -> None:
    """k = 0..7 hold 0..7: even ones in the low half, odd ones in the high half."""
    (word,) = int4_weights.pack(np.arange(8))
    assert word == 0x75316420
    assert int4_weights.unpack(np.array([0x75316420], np.int32)).tolist() == list(range(8))
    (word,) = int4_weights.pack(np.arange(15, 7, -1))  # a sign bit is no sign
    assert np.uint32(word) == np.uint32(0x8ACE9BDF)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 3), st.integers(1, 5))
def test_packing_and_back(seed: int, rows: int, words: int) -> None:
    codes = np.random.default_rng(seed).integers(0, 16, (rows, 8 * words), dtype=np.uint8)
    assert (int4_weights.unpack(int4_weights.pack(codes)) == codes).all()


def awq_layer(codes: Array, zeros: Array) -> tuple[Array, Array]:
    """As AutoAWQ packs: for each eight columns, column order[i] goes to bits 4 i."""
    order = [0, 2, 4, 6, 1, 3, 5, 7]

    def rows(x: Array) -> Array:
        out = np.zeros((len(x), x.shape[1] // 8), np.uint32)
        for d in range(out.shape[1]):
            for i in range(8):
                out[:, d] |= x[:, 8 * d + order[i]].astype(np.uint32) << np.uint32(4 * i)
        return out.view(np.int32)

    return rows(codes), rows(zeros)


def gptq_layer(codes: Array, zeros: Array) -> tuple[Array, Array]:
    """As AutoGPTQ packs: k 8 d + i at bits 4 i of row d; columns likewise for the zero points."""
    depth, columns = codes.shape
    weight = np.zeros((depth // 8, columns), np.uint32)
    for k in range(depth):
        weight[k // 8] |= codes[k].astype(np.uint32) << np.uint32(4 * (k % 8))
    packed = np.zeros((len(zeros), columns // 8), np.uint32)
    for n in range(columns):
        packed[:, n // 8] |= zeros[:, n].astype(np.uint32) << np.uint32(4 * (n % 8))
    return weight.view(np.int32), packed.view(np.int32)


def layer(rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """codes [K 64, N 16], zeros and scales [2, 16]: K along the first axis, as checkpoints have."""
    codes = rng.integers(0, 16, (64, 16), dtype=np.uint8)
    zeros = rng.integers(0, 16, (2, 16), dtype=np.uint8)
    return codes, zeros, rng.random((2, 16)).astype(np.float16)


def dense(codes: Array, zeros: Array, scales: Array) -> Array:
    """(q - z) * s in f64, rounded to f16, [N, K]."""
    z, s = zeros.repeat(32, axis=0).astype(float), scales.repeat(32, axis=0).astype(float)
    rounded: Array = ((codes - z) * s).astype(np.float16).T
    return rounded


def test_awq_means_the_same() -> None:
    codes, zeros, scales = layer(np.random.default_rng(1))
    got = int4_weights.from_awq(*awq_layer(codes, zeros), scales)
    assert (int4_weights.dequantise(*got) == dense(codes, zeros, scales)).all()


@pytest.mark.parametrize("minus_one", [True, False])
def test_gptq_means_the_same(minus_one: bool) -> None:
    codes, zeros, scales = layer(np.random.default_rng(2))
    packed = gptq_layer(codes, zeros)
    got = int4_weights.from_gptq(*packed, scales, stored_minus_one=minus_one)
    assert (int4_weights.dequantise(*got) == dense(codes, zeros + minus_one, scales)).all()


def test_a_zero_point_of_16_survives() -> None:
    """GPTQ version 1 stores 15 for it; it fits a byte, and no nibble."""
    codes, zeros, scales = layer(np.random.default_rng(3))
    zeros[:] = 15
    _, _, got = int4_weights.from_gptq(*gptq_layer(codes, zeros), scales)
    assert (got == 16).all()


def test_no_zero_points_mean_eight() -> None:
    codes, zeros, scales = layer(np.random.default_rng(4))
    zeros[:] = 8
    words = int4_weights.pack(codes.T)
    want = dense(codes, zeros, scales)
    for none in (None, np.zeros((0, 16, 2), np.uint8)):
        got = int4_weights.dequantise(words, np.ascontiguousarray(scales.T), none)
        assert (got == want).all()


def test_weights_round_once() -> None:
    """3 * (1 + 2^-7) is 193.5 / 64, in the middle between two bf16: to the even 194."""
    words = int4_weights.pack(np.full((1, 8), 3, np.uint8))
    scale = np.array([[1 + 2.0**-7]]).astype(ml_dtypes.bfloat16)
    got = int4_weights.dequantise(words, scale, np.zeros((1, 1), np.uint8))
    assert (got.astype(float) == 194 / 64).all()


def test_shapes_that_disagree_are_refused() -> None:
    codes, zeros, scales = layer(np.random.default_rng(5))
    weight, packed = gptq_layer(codes, zeros)
    with pytest.raises(UsageError, match=r"want qzeros \[groups, 2\]"):
        int4_weights.from_gptq(weight, packed[:1], scales)
    weight, packed = awq_layer(codes, zeros)
    with pytest.raises(UsageError, match="AWQ layer"):
        int4_weights.from_awq(weight, packed, scales[:, :8])
