"""W4A16 mixture of experts: what holds across alignments, and what is and is not executed."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path

import netra_catalog
import numpy as np
import pytest
import sim_kernels
from netra_catalog import dispatch
from netra_catalog.call import Call, Tensor
from netra_harness import int4_weights, w4a16_work
from netra_harness.oracles import _routing
from w4a16_problem import Runner, make

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def runner(sim_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    folder = tmp_path_factory.mktemp("w4a16")
    with sim_kernels.private_simulator(sim_library, folder, "gfx1151", shared=False) as hip:
        hip.call("netraSimSetCounting", ctypes.c_int(1))
        yield Runner(hip)


# ---- alignment changes no bit -------------------------------------------------------------------

FILLS = ("uniform", "zipf", "one", "half-empty", "full-block", "over-full-block")
ROUTINGS = [(FILLS[i % 6], 5 + 13 * i % 70, 1 + i % 3, i) for i in range(20)]


@pytest.mark.parametrize("stage", [1, 2])
@pytest.mark.parametrize(("fill", "tokens", "k", "seed"), ROUTINGS)
def test_blocks_of_64_and_of_128_give_the_same_bits(
    runner: Runner, stage: int, fill: str, tokens: int, k: int, seed: int
) -> None:
    dtype = ("f16", "bf16")[seed % 2]
    if "full" in fill:
        tokens, k = 66, 2  # two experts with 64 or 65 slots
    problem = make(stage, dtype, fill, tokens, k, 4, 64, 128, 32, seed % 3 == 0, seed)
    at_64, at_128 = (runner.run(problem, block) for block in (64, 128))
    assert at_64.tobytes() == at_128.tobytes()
    assert np.isfinite(at_64.astype(np.float32)).all() and at_64.any()


# ---- the order of nibbles -----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("block", [64, 1])
def test_one_tile_gives_every_code_back(runner: Runner, dtype: str, block: int) -> None:
    """Row t of x is 1 at k = t: out[t][n] is the code of (n, t), less its zero point."""
    problem = make(2, dtype, "one", 32, 1, 1, 32, 128, 32, True, 7)
    problem.x[:] = np.eye(32)
    problem.scales[:] = 1
    problem.topk_weights[:] = 1
    want = problem.codes[0].T.astype(int) - problem.zeros[0].T
    assert (runner.run(problem, block).astype(int) == want).all()


# ---- a bound for each element -------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("block", [64, 128, 1])
def test_the_error_is_within_the_bound_of_each_step(
    runner: Runner, dtype: str, block: int
) -> None:
    """A DOT2 step loses at most three units of its grid, 2^-24 of the larger product's operand
    exponents or 2^-26 of the larger of sum and products, and half a unit of the result."""
    tokens = 3 if block == 1 else 20
    problem = make(2, dtype, "uniform", tokens, 2, 3, 256, 128, 64, True, 11)
    got = runner.run(problem, block).astype(np.float64)
    dense = int4_weights.dequantise(
        int4_weights.pack(problem.codes), problem.scales, problem.zeros
    ).astype(np.float64)
    routed = problem.topk_weights.reshape(-1, 1).astype(np.float64)
    w = dense[problem.ids.ravel()]  # [slots, N, K]
    products = problem.x.astype(np.float64)[:, None, :] * w
    size = np.abs(products).sum(axis=2)
    steps = products.reshape(*products.shape[:2], -1, 2)
    largest = np.abs(steps).max(axis=3).sum(axis=2)
    # partial sums in any order are at most `size`; a lane of the gemv adds 32 k of each 1024
    sums = 1.75 * np.abs(np.cumsum(steps.sum(axis=3), axis=2)).sum(axis=2)
    lose = 2.0**-24 * (3 * largest + (sums if block > 1 else 1.75 * size * steps.shape[2]))
    want = products.sum(axis=2) * routed
    unit = 2.0**-11 if dtype == "f16" else 2.0**-8
    allowed = 1.01 * routed * lose + (unit + 2.0**-23) * np.abs(want) + 2.0**-24
    assert (np.abs(got - want) <= allowed).all()


# ---- padding costs nothing ----------------------------------------------------------------------


@pytest.mark.parametrize("block", [64, 128])
@pytest.mark.parametrize("fill", ["zipf", "one", "over-full-block", "absent"])
def test_tiles_of_padding_are_not_multiplied(runner: Runner, block: int, fill: str) -> None:
    problem = make(1, "f16", fill, 70, 2, 6, 64, 64, 32, False, 3)
    runner.run(problem, block)
    ids = problem.ids[(problem.ids >= 0) & (problem.ids < 6)]
    tiles = int((-(-np.bincount(ids, minlength=6) // 16)).sum())
    assert runner.counters["instructions.wmma"] == tiles * (2 * 64 // 16) * (64 // 16)


def test_a_routing_to_nobody_reads_no_weight(runner: Runner) -> None:
    problem = make(1, "f16", "none", 4, 2, 4, 64, 64, 32, False, 3)
    assert not runner.run(problem, 64).any()
    assert runner.counters.get("instructions.wmma", 0) == 0
    assert runner.counters["memory.global.read_bytes"] == 0


# ---- sizes and strides --------------------------------------------------------------------------


def test_weights_beyond_2_to_31_bytes(runner: Runner) -> None:
    """Experts 2^31 + 16 bytes apart: only the pages of three slabs are ever touched."""
    problem = make(2, "f16", "uniform", 9, 2, 3, 64, 128, 32, False, 5)
    words = int4_weights.pack(problem.codes)
    apart = 2**31 + 16
    base = runner.hip.malloc(2 * apart + words[0].nbytes)
    for expert in range(3):
        runner.hip.upload(base + expert * apart, words[expert].tobytes())
    got = runner.run(problem, 64, (base, apart // 4))
    runner.hip.free(base)
    assert got.tobytes() == runner.run(problem, 64).tobytes()


# ---- which tactic takes a call ------------------------------------------------------------------


def call(stage: int, tokens: int, block: int, k: int = 8, experts: int = 128) -> Call:
    numel = tokens * k
    slots = _routing.num_slots(numel, experts, block)
    depth, columns = (2048, 768) if stage == 1 else (768, 2048)
    rows = columns * (2 if stage == 1 else 1)
    forms: dict[str, tuple[str, tuple[int, ...], str]] = {
        "x": ("f16", (tokens if stage == 1 else slots, depth), "row_major"),
        "w": ("i32", (experts, rows, depth // 8), int4_weights.LAYOUT),
        "scales": ("f16", (experts, rows, depth // 32), "row_major"),
        "zeros": ("u8", (0, rows, depth // 32), "row_major"),
        "sorted_token_ids": ("i32", (slots,), "row_major"),
        "expert_ids": ("i32", (-(-slots // block),), "row_major"),
        "num_tokens_post_padded": ("i32", (1,), "row_major"),
        "out": ("f16", (slots if stage == 1 else numel, columns), "row_major"),
    }
    if stage == 2:
        forms["topk_weights"] = ("f32", (tokens, k), "row_major")
    args: dict[str, Tensor | int | float] = {
        name: Tensor.dense((i + 1) << 40, dtype, shape, layout)
        for i, (name, (dtype, shape, layout)) in enumerate(forms.items())
    }
    args["block"] = block
    if stage == 1:
        args["topk"] = k
    return Call(f"moe.w4a16_gemm{stage}", "gfx1151", "prefill", "eager", 40, args)


@pytest.mark.parametrize("stage", [1, 2])
def test_the_staircase_has_no_hole(stage: int) -> None:
    """E 128, top 8: single slots to 5 tokens, blocks of 64 below 2,048 tokens, then of 128."""
    tactics = [t for t in netra_catalog.load("gfx1151/w4a16_moe_*") if t.stem.count(f"{stage}_f16")]
    assert len(tactics) == 3
    edges = {1, 2, 5, 6, 7, 2046, 2047, 2048, 2049, 8191, 8192}
    for tokens in sorted(edges | set(range(3, 8192, 41))):
        taken = {
            t.stem.rpartition("_")[2]: block
            for t in tactics
            for block in (1, 64, 128)
            if dispatch.evaluate(t, call(stage, tokens, block)) is None
        }
        want = {"a64": 64} if tokens < 2048 else {"a128": 128}
        if tokens <= 5:
            want["f16"] = 1  # the gemv, named by its type
        assert taken == want, tokens
        for name, block in taken.items():  # a tile of rows never straddles two experts
            assert block % int(name[1:] if name != "f16" else 1) == 0 or name == "f16"


def test_the_tier_follows_experts_and_k() -> None:
    (small,) = netra_catalog.load("gfx1151/w4a16_moe_gemm1_f16_a64")
    (large,) = netra_catalog.load("gfx1151/w4a16_moe_gemm1_f16_a128")
    for k, experts in ((6, 64), (2, 8), (10, 256)):
        switch = -(-128 * experts // k)
        assert dispatch.evaluate(small, call(1, switch - 1, 64, k, experts)) is None
        assert dispatch.evaluate(small, call(1, switch, 64, k, experts)) == "tier"
        assert dispatch.evaluate(large, call(1, switch - 1, 128, k, experts)) == "tier"
        assert dispatch.evaluate(large, call(1, switch, 128, k, experts)) is None


def test_what_is_declined() -> None:
    (tactic,) = netra_catalog.load("gfx1151/w4a16_moe_gemm1_f16_a64")
    good = call(1, 128, 64)

    def but(**changed: Tensor | int | float) -> str | None:
        args = {**good.args, **changed}
        return dispatch.evaluate(tactic, Call(good.op, good.arch, good.phase, "eager", 40, args))

    dense = Tensor.dense
    assert but() is None
    assert but(x=dense(1 << 40, "f16", (0, 2048), "row_major")) == "tokens"
    assert but(scales=dense(3 << 40, "f16", (128, 1536, 16), "row_major")) == "group"  # of 128
    other = dense(2 << 40, "i32", (128, 1536, 256), "i4_k8_01234567")
    assert but(w=other) == "w-layout"
    short = dense(5 << 40, "i32", (9087,), "row_major")  # one less than 128 tokens may need
    assert but(sorted_token_ids=short) == "slots"


# ---- the work model -----------------------------------------------------------------------------


@pytest.mark.parametrize("block", [64, 128])
def test_bytes_that_a_launch_reads(runner: Runner, block: int) -> None:
    """Of each block and 64 columns, every step reads the weights once for either half of a wave
    (both have the same rows), their scales and zero points, and 32 rows of x for two tiles."""
    problem = make(1, "f16", "zipf", 90, 2, 5, 96, 128, 32, True, 9)
    runner.run(problem, block)
    counts = np.bincount(problem.ids.ravel(), minlength=5)
    wide, steps, lanes = 128 // 64, 96 // 32, 128
    rows = 0
    for count in counts:
        for first in range(0, int(count), block):
            tiles = -(-min(block, int(count) - first) // 16)
            rows += -(-tiles // 2)
    weights = w4a16_work.blocks(counts, block) * wide * steps * lanes * (32 + 2 * 2 + 2 * 1)
    staged = rows * wide * steps * lanes * 16
    ids = w4a16_work.blocks(counts, block) * wide * lanes * 2 * (block // 32) * 4
    assert runner.counters["memory.global.read_bytes"] == weights + staged + ids
    executed = w4a16_work.tiles(counts) * (2 * 128 // 16) * (96 // 16)
    assert runner.counters["instructions.wmma"] == executed


def test_the_table_of_the_guide_is_what_the_model_says() -> None:
    assert w4a16_work.table() in (ROOT / "docs" / "w4a16.md").read_text()


def test_the_published_counts_of_padded_rows() -> None:
    """Experts touched, and blocks of one expert each: 6 tokens touch 33, at A 64 2,112 rows."""
    for touched, at_64, at_128 in ((33, 2112, 4224), (110, 7040, 14080)):
        ids = np.arange(touched)
        assert _routing.post_padded(ids, 128, 64) == at_64
        assert _routing.post_padded(ids, 128, 128) == at_128
