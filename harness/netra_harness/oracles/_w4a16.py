"""What the oracles of the W4A16 grouped products share: cases, weights, and rows of blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
from netra_catalog.dtypes import numpy_dtype
from numpy.typing import NDArray

from netra_harness import int4_weights
from netra_harness.case import Case
from netra_harness.oracles import _f32, _random, _routing, moe_align_block_size

Array = NDArray[Any]
F32 = NDArray[np.float32]
F64 = NDArray[np.float64]

FORMS = ("f16_a64", "f16_a128", "bf16_a64", "bf16_a128", "f16_a1", "bf16_a1")
STEP = 32  # what Triton's kernel multiplies at a time

# tokens, k, experts, K, columns, group, zero points?, routing.  The first tier is up to 128 slots
# for each expert, the second is from there on; the third is decoding, where a block is a slot.
_SMALL: dict[int, tuple[tuple[int, int, int, int, int, int, bool, str], ...]] = {
    64: (
        (1, 1, 1, 32, 128, 32, False, "uniform"),
        (7, 2, 4, 128, 128, 64, True, "zipf"),
        (33, 3, 5, 96, 256, 32, False, "half-empty"),
        (67, 1, 1, 64, 128, 32, True, "uniform"),
        (32, 4, 2, 64, 128, 64, False, "full-block"),
        (33, 4, 3, 64, 128, 32, True, "over-full-block"),
        (3, 8, 4, 64, 128, 32, False, "absent"),
    ),
    128: (
        (128, 1, 1, 32, 128, 32, False, "uniform"),
        (150, 2, 2, 64, 128, 64, True, "zipf"),
        (129, 2, 2, 96, 128, 32, False, "over-full-block"),
        (131, 1, 1, 128, 128, 64, True, "absent"),
    ),
    1: (
        (1, 1, 1, 32, 128, 32, False, "uniform"),
        (1, 8, 16, 256, 32, 64, True, "uniform"),
        (2, 4, 12, 1088, 32, 32, False, "zipf"),
        (1, 6, 4, 2048, 32, 32, True, "half-empty"),
        (5, 2, 3, 128, 96, 64, False, "absent"),
        (5, 10, 12, 64, 32, 64, True, "zipf"),
    ),
}
# What shows mutants: last blocks of 2, 4 and 6 tiles of 16 rows, no zero points, a block of an
# expert that is none.
_MUTATION: dict[int, tuple[tuple[int, int, int, int, int, int, bool, str], ...]] = {
    64: (
        _SMALL[64][1], (26, 1, 1, 32, 128, 32, False, "uniform"), _SMALL[64][3],
        (9, 2, 3, 64, 128, 32, False, "foreign"),
    ),
    128: (
        _SMALL[128][1], (154, 1, 1, 32, 128, 32, False, "uniform"),
        (186, 1, 1, 32, 128, 32, True, "uniform"), (218, 1, 1, 32, 128, 32, True, "uniform"),
        (129, 2, 2, 64, 128, 32, False, "foreign"),
    ),
    1: (*_SMALL[1][1:2], *_SMALL[1][3:4], (3, 2, 3, 64, 128, 32, False, "foreign")),
}  # fmt: skip
# Qwen3-30B-A3B and DeepSeek-V2-Lite: k, experts, hidden, intermediate, group.
QWEN3, DEEPSEEK = (8, 128, 2048, 768, 32), (6, 64, 2048, 1408, 64)


def block_of(variant: str) -> int:
    return int(variant.rpartition("a")[2])


def cases(case_set: str, variant: str, stage: int) -> list[Case]:
    block = block_of(variant)
    if case_set == "mutation":
        return [_case(variant, *shape) for shape in _MUTATION[block]]
    quick = [_case(variant, *shape) for shape in _SMALL[block]]
    quick.append(_case(variant, *_SMALL[block][1], graph="capture"))
    if case_set == "quick":
        return quick
    return quick + [_case(variant, *shape) for shape in _full(block, stage)]


def _full(block: int, stage: int) -> Iterator[tuple[int, int, int, int, int, int, bool, str]]:
    names = sorted(set(_routing.ROUTINGS) - {"none"})
    for k, experts, hidden, inner, group in (QWEN3, DEEPSEEK):
        depth, columns = (hidden, 128) if stage == 1 else (inner, 128)
        if block == 1:
            for tokens in range(1, 6):
                yield tokens, k, experts, depth, columns, group, True, "zipf"
        elif block == 64:
            for tokens in (1, 6, 128):
                yield tokens, k, experts, depth, columns, group, tokens == 6, "zipf"
        else:  # as many slots for an expert, of fewer experts
            yield 256, k, k, depth, columns, group, True, "zipf"
    if block == 1:
        return
    experts = 2 if block == 128 else 8
    for i, tokens in enumerate((*range(1, 65), 65, 127, 128, 129, 191, 192, 193, 255, 256, 257)):
        k = 1 + i % 3
        if (tokens * k < 128 * experts) == (block == 64):
            yield tokens, k, experts, 64, 128, 32 << i % 2, i % 3 == 0, names[i % len(names)]


def _case(
    variant: str, tokens: int, k: int, experts: int, depth: int, columns: int, group: int,
    zeros: bool, fill: str, graph: str = "eager",
) -> Case:  # fmt: skip
    block = block_of(variant)
    params = {
        "tokens": tokens, "k": k, "experts": experts, "depth": depth, "columns": columns,
        "group": group, "zeros": zeros, "fill": fill, "block": block, "variant": variant,
    }  # fmt: skip
    name = f"{fill}-{tokens}-k{k}-e{experts}-d{depth}-n{columns}-g{group}{'-zeros' * zeros}"
    if graph != "eager":
        name += f"-{graph}"
    return Case(name, params, graph=graph, phase="decode" if block == 1 else "prefill")


def weights(
    case: Case, rows: int, dtype: np.dtype[Any], rng: np.random.Generator
) -> dict[str, Array]:
    """w, scales and zeros of a case, of such size that products with rows of size 1 are about 1."""
    p = case.params
    experts, depth, groups = int(p["experts"]), int(p["depth"]), p["depth"] // p["group"]
    codes = rng.integers(0, 16, (experts, rows, depth), dtype=np.uint8)
    size = (0.5 + rng.random((experts, rows, groups))) / (4.6 * np.sqrt(depth))
    zeros = rng.integers(0, 16, (experts if p["zeros"] else 0, rows, groups), dtype=np.uint8)
    scales = round_to(size.astype(np.float32), dtype)
    return {"w": int4_weights.pack(codes), "scales": scales, "zeros": zeros}


def routing(case: Case, rng: np.random.Generator) -> dict[str, Array]:
    """The three arrays of alignment.  Behind the last block expert_ids holds anything, and where
    it is a foreign expert's, the last block too; then slots that exist lie behind it."""
    p = case.params
    tokens, k, experts, block = (int(p[name]) for name in ("tokens", "k", "experts", "block"))
    fill = "uniform" if p["fill"] == "foreign" else p["fill"]
    ids = _routing.route(fill, tokens, k, experts, block, rng)
    made = moe_align_block_size.exact("stable", ids, experts, block)
    (post,) = made["num_tokens_post_padded"]
    behind = made["expert_ids"][post // block :]
    behind[:] = rng.choice([-1, 0, 0x7FFFFFFF, -0x80000000], behind.shape)
    if p["fill"] == "foreign":
        behind[:] = 0
        made["expert_ids"][post // block - 1] = experts
        slots = made["sorted_token_ids"][post:]
        slots[:] = rng.integers(0, tokens * k, slots.shape)
    return made


def activations(shape: tuple[int, int], dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    """Rows whose stride is more than their width, as columns of a wider matrix have."""
    wide = normal((shape[0], shape[1] + 8), dtype, rng)
    return wide[:, : shape[1]]


def normal(shape: tuple[int, ...], dtype: np.dtype[Any], rng: np.random.Generator) -> Array:
    """Of size 1."""
    return round_to(_random.normal(shape, rng).astype(np.float32), dtype)


def blocks(
    sorted_token_ids: Array, expert_ids: Array, post: int, block: int, numel: int, experts: int
) -> Iterator[tuple[int, Array, Array]]:
    """(expert, places, slots) of each block: its rows that are not padding."""
    for number in range(post // block):
        expert = int(expert_ids[number])
        places = np.arange(number * block, (number + 1) * block)
        slots = sorted_token_ids[places]
        real = (slots >= 0) & (slots < numel)
        if 0 <= expert < experts and real.any():
            yield expert, places[real], slots[real]


def product_f64(x: Array, w: Array) -> F64:
    """[rows, K] times [N, K], in float64."""
    with np.errstate(all="ignore"):
        return np.asarray(_f32.widen(x) @ _f32.widen(w).T)


def product_f32(x: Array, w: Array) -> F32:
    """The same with sums in f32, 32 deep at a time, as the kernel that is replaced has them."""
    a, b = x.astype(np.float32), w.astype(np.float32)
    total = np.zeros((len(a), len(b)), np.float32)
    with np.errstate(all="ignore"):
        for k in range(0, a.shape[1], STEP):
            total += a[:, k : k + STEP] @ b[:, k : k + STEP].T
    return total


def round_to(x: Array, dtype: np.dtype[Any]) -> Array:
    if dtype == ml_dtypes.bfloat16:
        return _f32.to_bf16(x)
    with np.errstate(all="ignore"):
        return np.asarray(x.astype(dtype))


def dtype_of(variant: str) -> np.dtype[Any]:
    return numpy_dtype(variant.partition("_")[0])
