"""Sorts the slots of a routing by expert, and pads each expert to whole blocks.

Slot s = k * token + j is the j-th choice of a token.  The grouped matrix products of a mixture of
experts take `block` rows at a time, all of one expert, so an expert with n slots takes
ceil(n / block) blocks, and one without slots none.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from netra_catalog.op import Op, ScalarArg, TensorArg
from numpy.typing import NDArray

from netra_harness.case import Case
from netra_harness.oracles._routing import ROUTINGS, num_slots, route

OP = Op(
    name="moe.align_block_size",
    args=(
        TensorArg("topk_ids", ("i32",), ("tokens", "k"), "in", doc="the experts of each token"),
        TensorArg("sorted_token_ids", ("i32",), ("slots",), "out", doc="slots, by expert"),
        TensorArg("expert_ids", ("i32",), ("blocks",), "out", doc="the expert of each block"),
        TensorArg("num_tokens_post_padded", ("i32",), (1,), "out", doc="slots in blocks"),
        ScalarArg("experts", "u32"),
        ScalarArg("block", "u32", 64, doc="rows that are multiplied at a time"),
    ),
    phases=("decode", "verify", "draft_extend", "prefill"),
    nan="no floats",
    ties="slots of one expert keep their order",
    padding="sorted_token_ids holds the number of slots, tokens * k, where a block has no slot and "
    "behind the last block; expert_ids holds -1 behind the last block",
    sentinels="slots whose id is not that of an expert, such as -1, are in no block",
    empty="no tokens: nothing is launched and nothing written",
    doc="Slots are numbered k * token + choice.  num_tokens_post_padded is the sum over experts of "
    "ceil(its slots / block) * block.",
)

VARIANTS = ("stable",)

Array = NDArray[Any]

BLOCKS = (16, 32, 64, 128, 1, 2, 4, 8)
MOST_TOKENS = 8192


def cases(case_set: str, variant: str) -> list[Case]:
    if case_set == "mutation":
        return [
            _case("absent", 130, 10, 256, 16),
            _case("zipf", 40, 8, 37, 64),
            _case("zipf", 256, 8, 128, 1),  # two blocks a thread, to the last thread
        ]
    quick = [
        _case("uniform", 1, 8, 128, 64),
        _case("uniform", 33, 8, 128, 64, graph="capture"),
        _case("zipf", 67, 6, 64, 128),
        _case("one", 40, 1, 7, 16),
        _case("absent", 130, 10, 256, 16),
        _case("none", 5, 8, 128, 32),
        _case("full-block", 32, 4, 2, 64),
        _case("over-full-block", 33, 4, 2, 64),
        _case("uniform", 1, 1, 1, 128),
        _case("zipf", 5, 8, 128, 1),
        _case("absent", 20, 8, 30, 4),
    ]
    if case_set == "quick":
        return quick
    done = {case.name for case in quick}
    counts = [*range(1, 129), 255, 256, 257, 511, 512, 513, 1023, 1024, 1025]
    counts += [2047, 2048, 2049, 4095, 4096, 4097, MOST_TOKENS - 1, MOST_TOKENS]
    shapes = [(8, 128), (6, 64), (10, 256), (2, 8)]
    names = sorted(ROUTINGS)
    more = [
        _case(names[i % len(names)], tokens, *shapes[i % len(shapes)], BLOCKS[i // 2 % len(BLOCKS)])
        for i, tokens in enumerate(counts)
    ]
    return quick + [case for case in more if case.name not in done]


def _case(fill: str, tokens: int, k: int, experts: int, block: int, graph: str = "eager") -> Case:
    params = {"tokens": tokens, "k": k, "experts": experts, "block": block, "fill": fill}
    return Case(f"{fill}-{tokens}-k{k}-e{experts}-a{block}", params, graph=graph, phase="prefill")


def inputs(case: Case, rng: np.random.Generator) -> dict[str, Any]:
    p = case.params
    ids = route(p["fill"], int(p["tokens"]), int(p["k"]), int(p["experts"]), int(p["block"]), rng)
    return {"topk_ids": ids, "experts": int(p["experts"]), "block": int(p["block"])}


def outputs(case: Case) -> dict[str, tuple[tuple[int, ...], str]]:
    p = case.params
    slots = num_slots(int(p["tokens"]) * int(p["k"]), int(p["experts"]), int(p["block"]))
    blocks = -(-slots // int(p["block"]))
    return {
        "sorted_token_ids": ((slots,), "i32"),
        "expert_ids": ((blocks,), "i32"),
        "num_tokens_post_padded": ((1,), "i32"),
    }


def exact(variant: str, topk_ids: Array, experts: int, block: int) -> dict[str, Array]:
    """Fills as many places as any routing of this size may need."""
    ids = topk_ids.ravel()
    slots = num_slots(ids.size, experts, block)
    sorted_token_ids = np.full(slots, ids.size, np.int32)
    expert_ids = np.full(-(-slots // block), -1, np.int32)
    at = 0
    for expert in range(experts):
        mine = np.flatnonzero(ids == expert)
        blocks = -(-mine.size // block)
        sorted_token_ids[at : at + mine.size] = mine
        expert_ids[at // block : at // block + blocks] = expert
        at += blocks * block
    return {
        "sorted_token_ids": sorted_token_ids,
        "expert_ids": expert_ids,
        "num_tokens_post_padded": np.array([at], np.int32),
    }


deployed = exact
