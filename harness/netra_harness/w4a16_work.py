"""What a routing costs the W4A16 grouped products: rows, WMMAs and weights, from its counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netra_harness.oracles import _routing

TILE = 16  # rows, columns and depth of a WMMA
BLOCKS = (32, 64, 128)
TOKENS = (6, 32, 128, 512, 1024, 2048)


@dataclass(frozen=True)
class Layer:
    """A mixture of experts: hidden is K of gate and up, inner that of down."""

    name: str
    experts: int
    k: int
    hidden: int
    inner: int

    @property
    def tile_wmmas(self) -> int:
        """WMMAs of 16 rows through gate, up and down."""
        return 3 * (self.inner // TILE) * (self.hidden // TILE)

    @property
    def expert_bytes(self) -> int:
        """4-bit weights of one expert, without scales."""
        return 3 * self.inner * self.hidden // 2


QWEN3 = Layer("Qwen3-30B-A3B", 128, 8, 2048, 768)


def tiles(counts: NDArray[Any]) -> int:
    """16-row tiles that hold a row: what the kernels multiply, whatever the block."""
    return int((-(-counts // TILE)).sum())


def blocks(counts: NDArray[Any], block: int) -> int:
    """Blocks of one expert each: how often an expert's weights are read by each column block."""
    return int((-(-counts // block)).sum())


def row(layer: Layer, tokens: int, seed: int = 20260) -> list[str]:
    """One line of the table in docs/w4a16.md, for a Zipf routing drawn from `seed`."""
    rng = np.random.default_rng([seed, tokens])
    ids = _routing.route("zipf", tokens, layer.k, layer.experts, 64, rng)
    counts = np.bincount(ids.ravel(), minlength=layer.experts)
    padded = [blocks(counts, a) * a for a in BLOCKS]
    thousands = [round(n // TILE * layer.tile_wmmas / 1000) for n in padded]
    ours = round(tiles(counts) * layer.tile_wmmas / 1000)
    read = [round(blocks(counts, a) * layer.expert_bytes / 2**20) for a in (64, 128)]
    cells = [tokens, int((counts > 0).sum()), *padded, *thousands, ours, *read]
    return [f"{cell:,}" for cell in cells]


def table(layer: Layer = QWEN3) -> str:
    """The work model as Markdown: padded rows, thousands of WMMAs, MiB of weights."""
    head = ["tokens", "experts", *(f"rows {a}" for a in BLOCKS), *(f"WMMA {a}" for a in BLOCKS),
            "WMMA ours", "MiB 64", "MiB 128"]  # fmt: skip
    lines = [head, ["--:"] * len(head), *(row(layer, tokens) for tokens in TOKENS)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
