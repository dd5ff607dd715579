"""Which experts the tokens of a case choose, and how much room their blocks may need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

I32 = NDArray[np.int32]
Array = NDArray[Any]
Maker = Callable[[int, int, int, int, np.random.Generator], Array]


def num_slots(numel: int, experts: int, block: int) -> int:
    """What any routing of `numel` slots fits in, in slots.

    Each expert that has slots may waste block - 1; there are at most min(numel, experts) of them.
    vLLM's formula: numel + experts (block - 1), or numel * block where numel < experts.
    """
    return min(numel + experts * (block - 1), numel * block)


def post_padded(ids: Array, experts: int, block: int) -> int:
    """num_tokens_post_padded: the slots that whole blocks of each expert have together."""
    ids = ids[(ids >= 0) & (ids < experts)]
    return int((-(-np.bincount(ids, minlength=experts) // block) * block).sum())


def _distinct(weight: Array, tokens: int, k: int, rng: np.random.Generator) -> Array:
    """k different experts a token, more often those with more weight; slot by slot."""
    left = np.broadcast_to(weight, (tokens, len(weight))).copy()
    picked = np.empty((tokens, k), np.int64)
    for slot in range(k):
        reach = left.cumsum(axis=1)
        dart = rng.random((tokens, 1)) * reach[:, -1:]
        picked[:, slot] = (reach > dart).argmax(axis=1)
        left[np.arange(tokens), picked[:, slot]] = 0
    return picked


def _uniform(tokens: int, k: int, experts: int, block: int, rng: np.random.Generator) -> Array:
    if k > experts:
        return rng.integers(0, experts, (tokens, k))
    return _distinct(np.ones(experts), tokens, k, rng)


def _zipf(tokens: int, k: int, experts: int, block: int, rng: np.random.Generator) -> Array:
    weight = 1 / np.arange(1, experts + 1)
    return _distinct(weight[rng.permutation(experts)], tokens, min(k, experts), rng).repeat(
        -(-k // min(k, experts)), axis=1
    )[:, :k]


def _one(tokens: int, k: int, experts: int, block: int, rng: np.random.Generator) -> Array:
    return np.full((tokens, k), int(rng.integers(experts)))


def _half_empty(tokens: int, k: int, experts: int, block: int, rng: np.random.Generator) -> Array:
    some = rng.permutation(experts)[: max(1, experts // 2)]
    return some[rng.integers(0, len(some), (tokens, k))]


def _whole(size: int, tokens: int, k: int, experts: int, rng: np.random.Generator) -> Array:
    """`size` slots for one expert after the other, as far as there are any, in random order."""
    ids = np.arange(tokens * k) // size % experts
    return rng.permutation(ids).reshape(tokens, k)


def _full_block(tokens: int, k: int, experts: int, block: int, rng: np.random.Generator) -> Array:
    return _whole(block, tokens, k, experts, rng)


def _over_full(tokens: int, k: int, experts: int, block: int, rng: np.random.Generator) -> Array:
    return _whole(block + 1, tokens, k, experts, rng)


def _absent(tokens: int, k: int, experts: int, block: int, rng: np.random.Generator) -> Array:
    """A third of the slots name no expert."""
    ids = _uniform(tokens, k, experts, block, rng)
    far = np.iinfo(np.int32)
    odd = rng.choice([-1, experts, far.min, far.max], ids.shape)
    return np.where(rng.random(ids.shape) < 1 / 3, odd, ids)


def _none(tokens: int, k: int, experts: int, block: int, rng: np.random.Generator) -> Array:
    return np.full((tokens, k), -1)


ROUTINGS: dict[str, Maker] = {
    "uniform": _uniform,
    "zipf": _zipf,
    "one": _one,
    "half-empty": _half_empty,
    "full-block": _full_block,
    "over-full-block": _over_full,
    "absent": _absent,
    "none": _none,
}


def route(
    name: str, tokens: int, k: int, experts: int, block: int, rng: np.random.Generator
) -> I32:
    """topk_ids of one of ROUTINGS, [tokens, k]."""
    return ROUTINGS[name](tokens, k, experts, block, rng).astype(np.int32)
