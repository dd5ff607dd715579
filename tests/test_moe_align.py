"""Alignment of a routing: by hand, and the sizes that vLLM publishes for E 128, top 8."""

from __future__ import annotations

import netra_catalog
import numpy as np
import pytest
from netra_catalog import dispatch
from netra_catalog.call import Call, Tensor
from netra_harness.oracles import _routing, moe_align_block_size


def test_by_hand() -> None:
    ids = np.array([[2, 0], [2, -1], [5, 2], [3, 0]], np.int32)  # -1 and 5 are no experts
    got = moe_align_block_size.exact("stable", ids, experts=4, block=2)
    assert got["num_tokens_post_padded"].tolist() == [2 + 4 + 2]
    assert got["sorted_token_ids"].tolist() == [1, 7, 0, 2, 5, 8, 6, 8, 8, 8, 8, 8]
    assert got["expert_ids"].tolist() == [0, 2, 2, 3, -1, -1]


# num_slots as vLLM has it, at two alignments (E 128, top 8).
@pytest.mark.parametrize(
    ("tokens", "at_64", "at_128"), [(128, 9_088, 17_280), (1024, 16_256, 24_448)]
)
def test_num_slots(tokens: int, at_64: int, at_128: int) -> None:
    assert _routing.num_slots(tokens * 8, 128, 64) == at_64
    assert _routing.num_slots(tokens * 8, 128, 128) == at_128


def test_num_slots_where_there_are_fewer_slots_than_experts() -> None:
    assert _routing.num_slots(6 * 8, 128, 64) == 6 * 8 * 64


@pytest.mark.parametrize("tokens", [1, 6, 15, 16, 128, 1024, 8192])
@pytest.mark.parametrize("block", [1, 4, 16, 32, 64, 128])
def test_the_contract_takes_num_slots_and_not_one_less(tokens: int, block: int) -> None:
    (tactic,) = netra_catalog.load("gfx1151/moe_align_block_size")
    slots = _routing.num_slots(tokens * 8, 128, block)

    def verdict(slots: int, blocks: int) -> str | None:
        args = {
            "topk_ids": Tensor.dense(1 << 40, "i32", (tokens, 8), "row_major"),
            "sorted_token_ids": Tensor.dense(2 << 40, "i32", (slots,), "row_major"),
            "expert_ids": Tensor.dense(3 << 40, "i32", (blocks,), "row_major"),
            "num_tokens_post_padded": Tensor.dense(4 << 40, "i32", (1,), "row_major"),
            "experts": 128, "block": block,
        }  # fmt: skip
        call = Call(tactic.op, "gfx1151", "prefill", "eager", 40, args)
        return dispatch.evaluate(tactic, call)

    assert verdict(slots, slots // block) is None
    assert verdict(slots - 1, slots // block) == "slots-per-expert"
    assert verdict(slots, slots // block - 1) == "blocks"


@pytest.mark.parametrize("name", sorted(_routing.ROUTINGS))
@pytest.mark.parametrize("block", [64, 128])
def test_post_padded_is_the_sum_over_experts_and_fits(name: str, block: int) -> None:
    ids = _routing.route(name, 128, 8, 128, block, np.random.default_rng(5))
    got = moe_align_block_size.exact("stable", ids, 128, block)
    (post,) = got["num_tokens_post_padded"]
    by_hand = sum(-(-int((ids == e).sum()) // block) * block for e in range(128))
    assert post == by_hand == _routing.post_padded(ids, 128, block)
    assert post <= len(got["sorted_token_ids"])
