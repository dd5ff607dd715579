"""The comparer: it must fail what is wrong, pass what is right, and say where."""

from __future__ import annotations

import json
import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from netra_harness.compare import compare, tolerance

BF16 = np.dtype(ml_dtypes.bfloat16)
F8 = np.dtype(ml_dtypes.float8_e4m3fn)
FLOATS = [np.dtype(np.float32), np.dtype(np.float16), np.dtype(np.float64), BF16, F8]
METRICS = [("bitwise", 0), ("ulp", 1), ("bound", 1e-3)]


def ones(count: int = 8, dtype: Any = np.float32) -> Any:
    return np.ones(count, dtype)


def raised(array: Any, index: int, steps: int) -> Any:
    """A copy with one element moved by representable steps."""
    out = array.copy()
    patterns = out.view(f"u{out.dtype.itemsize}")
    patterns[index] += patterns.dtype.type(steps)  # of its own type: NumPy 1 would use float64
    return out


@pytest.mark.parametrize("metric, value", METRICS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_equal_arrays_pass(metric: str, value: Any, dtype: Any) -> None:
    array = np.arange(1, 17, dtype=np.float32).astype(dtype).reshape(4, 4)
    verdict = compare("out", array, array.copy(), metric, value)
    assert verdict.passed and verdict.worst == 0 and verdict.total == 16


@pytest.mark.parametrize("metric, value", METRICS)
@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_one_wrong_element_fails_and_is_named(metric: str, value: Any, dtype: Any) -> None:
    want = ones(12, dtype).reshape(3, 4)
    got = want.copy()
    got[1, 2] = 3
    verdict = compare("out", got, want, metric, value, "exact")
    assert not verdict.passed
    assert (verdict.count, verdict.first, verdict.worst_index) == (1, (1, 2), (1, 2))
    assert "out differs from exact in 1 of 12 elements" in verdict.text()
    assert "first at out[1, 2]: got 3.0 (0x" in verdict.text()
    assert ", want 1.0 (0x" in verdict.text() and "(allowed " in verdict.text()


@pytest.mark.parametrize("metric, value", METRICS)
@pytest.mark.parametrize("special", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("side", ["got", "want"])
@pytest.mark.parametrize("dtype", [np.float32, BF16], ids=str)
def test_a_special_on_one_side_only_fails(
    metric: str, value: Any, special: float, side: str, dtype: Any
) -> None:
    arrays = {"got": ones(dtype=dtype), "want": ones(dtype=dtype)}
    arrays[side][5] = special
    verdict = compare("out", arrays["got"], arrays["want"], metric, value)
    assert not verdict.passed and verdict.first == (5,) and verdict.count == 1
    json.dumps(verdict.json(), allow_nan=False)


@pytest.mark.parametrize("metric, value", METRICS)
def test_infinities_of_opposite_sign_differ(metric: str, value: Any) -> None:
    verdict = compare("out", ones() * np.inf, ones() * -np.inf, metric, value)
    assert verdict.count == 8
    assert compare("out", ones() * np.inf, ones() * np.inf, metric, value).passed


def test_nan_payloads_matter_to_bitwise_only() -> None:
    got, want = (np.array([pattern], np.uint32).view(np.float32) for pattern in
                 (0x7FC00000, 0xFFC00001))  # fmt: skip
    bitwise = compare("out", got, want)
    assert not bitwise.passed and bitwise.worst == 1
    assert "0x7fc00000" in bitwise.text() and "0xffc00001" in bitwise.text()
    assert compare("out", got, got.copy()).passed
    for metric, value in METRICS[1:]:
        assert compare("out", got, want, metric, value).passed


def test_zeros_of_both_signs_are_one_number_except_bitwise() -> None:
    got, want = np.array([0.0], np.float32), np.array([-0.0], np.float32)
    assert not compare("out", got, want).passed
    assert compare("out", got, want, "ulp", 0).passed
    assert compare("out", got, want, "bound", 0).passed


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64, BF16, F8], ids=str)
def test_ulp_counts_representable_steps(dtype: Any) -> None:
    want = ones(4, dtype)
    for steps in (1, 2):
        got = raised(want, 2, steps)
        assert compare("out", got, want, "ulp", steps).passed
        verdict = compare("out", got, want, "ulp", steps - 1)
        assert not verdict.passed and verdict.worst == steps


def test_ulp_across_zero_and_between_denormals() -> None:
    tiny = np.array([1, 2], np.uint32).view(np.float32)
    assert compare("out", -tiny, tiny, "ulp", 4).passed
    assert compare("out", -tiny, tiny, "ulp", 3).worst == 4


def test_ulp_to_a_float64_oracle_is_measured_at_the_exact_value() -> None:
    exact = np.array([1.0 + 2**-9, 1.0 + 2**-8, 3.0e-41])
    got = np.array([1.0, 1.0, 0.0], np.float32).astype(BF16)  # spacing is 2^-7 at 1
    verdict = compare("out", got, exact, "ulp", 0.5)
    assert verdict.passed and verdict.worst == 0.5
    assert not compare("out", got, exact, "ulp", 0.49).passed


def test_an_exact_value_beyond_the_type_may_become_inf() -> None:
    got = np.array([np.inf, -np.inf], np.float32).astype(BF16)
    assert compare("out", got, np.array([1e39, -1e39]), "ulp", 1).passed
    assert not compare("out", got, np.array([1e39, 1e39]), "ulp", 1).passed
    assert not compare("out", got, np.array([3.3e38, -1e39]), "ulp", 1).passed


def test_bound_is_absolute_plus_relative() -> None:
    want = np.array([100.0, 0.0], np.float32)
    got = want + np.float32(0.5)
    assert compare("out", got, want, "bound", 0.5).passed
    assert compare("out", got, want, "bound", "0.5").passed
    assert compare("out", got, want, "bound", {"abs": 0.5}).passed
    verdict = compare("out", got, want, "bound", {"abs": 0.1, "rel": 0.005})
    assert verdict.first == (1,) and verdict.count == 1
    assert "allowed 0.1 + 0.005 * |want|" in verdict.text()


@pytest.mark.parametrize("value", [-1, math.nan, math.inf, "x", None, {}, {"abs": 1, "typo": 2}])
def test_a_senseless_tolerance_never_passes(value: Any) -> None:
    with pytest.raises(ValueError):
        tolerance(value)
    assert not compare("out", ones(), ones(), "bound", value).passed


@pytest.mark.parametrize("metric, value", METRICS)
def test_wrong_shape_wrong_dtype_and_empty_are_errors(metric: str, value: Any) -> None:
    for got, want, word in [
        (ones(8), ones(9), "shape [8], but the oracle gives [9]"),
        (ones(8), ones(8).reshape(2, 4), "shape"),
        (ones(1), np.float32(1), "shape"),
        (ones(8), ones(8, np.int32), "dtype float32"),
        (ones(8, BF16), ones(8), "dtype bfloat16"),
        (ones(0), ones(0), "empty"),
    ]:
        verdict = compare("out", got, want, metric, value)
        assert not verdict.passed and word in verdict.error, (got, want)
        assert "cannot be compared" in verdict.text()


def test_a_float64_oracle_needs_a_tolerance() -> None:
    verdict = compare("out", ones(), ones(dtype=np.float64), "bitwise")
    assert not verdict.passed and "dtype" in verdict.error


def test_an_unknown_metric_never_passes() -> None:
    assert "none of bitwise, ulp, bound" in compare("out", ones(), ones(), "close").error


@pytest.mark.parametrize("metric, value", METRICS)
def test_integers_are_bitwise_under_every_metric(metric: str, value: Any) -> None:
    want = np.array([0, -(2**63), 2**63 - 1], np.int64)
    assert compare("out", want, want.copy(), metric, value).passed
    got = want.copy()
    got[2] -= 1
    verdict = compare("out", got, want, metric, value)
    assert verdict.metric == "bitwise" and verdict.first == (2,) and verdict.worst == 1
    assert "got 9223372036854775806, want 9223372036854775807" in verdict.text()


def test_booleans_and_block_scales() -> None:
    yes, no = np.array([True]), np.array([False])
    assert not compare("out", yes, no).passed
    scale = np.dtype(ml_dtypes.float8_e8m0fnu)
    one, two = (np.array([b], np.uint8).view(scale) for b in (127, 128))
    assert compare("out", one, one.copy(), "ulp", 4).passed
    assert compare("out", one, two, "ulp", 4).worst == 1


@pytest.mark.parametrize("metric, value", METRICS)
def test_constant_zero_shuffled_and_previous_outputs_fail(metric: str, value: Any) -> None:
    rng = np.random.default_rng(1)
    want = rng.standard_normal((8, 16)).astype(np.float32)
    previous = rng.standard_normal((8, 16)).astype(np.float32)
    for got in (np.zeros_like(want), np.full_like(want, 0.75), want[::-1].copy(), previous):
        assert not compare("out", got, want, metric, value).passed


def test_worst_is_not_always_first() -> None:
    want = ones(4)
    got = raised(raised(want, 1, 2), 3, 9)
    verdict = compare("out", got, want, "ulp", 1)
    assert verdict.first == (1,) and verdict.worst_index == (3,) and verdict.worst == 9
    assert "worst at out[3]: 9 ulp" in verdict.text()
