"""out[row] = the column of the largest logit of the row, as torch.argmax has it.

`exact` asks NumPy, which has the same rules.  `deployed` goes through the 64-bit key that the
kernels reduce, so that a wrong idea of the key shows as a difference between the two.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from netra_catalog.op import Op, TensorArg
from numpy.typing import NDArray

from netra_harness.case import Case
from netra_harness.oracles import _rows

OP = Op(
    name="sampling.argmax",
    args=(
        TensorArg("logits", ("f32",), ("rows", "columns"), "in"),
        TensorArg("out", ("i64",), ("rows",), "out"),
    ),
    phases=("decode", "verify", "draft_extend", "prefill"),
    nan="a NaN is larger than +inf, whatever its sign and payload; the first NaN wins",
    ties="the lowest column; -0 and +0 are equal",
    padding="none: every column counts, every row gets a column below `columns`",
    sentinels="none; a row of -inf gives column 0",
    empty="no rows: nothing is launched and nothing written; no columns: not defined",
    doc="Greedy sampling.  The variant `nan_first` is torch.argmax and row_argmax.",
)

VARIANTS = ("nan_first",)

COLUMNS = 248320
CHUNKS, CHUNK = 128, 1940  # workgroups a row of the gfx950 tactic, and columns of each
GROUP = 256  # columns that it loads at once
F32 = NDArray[np.float32]

NAN, INF = np.float32(np.nan), np.float32(np.inf)


def cases(case_set: str, variant: str) -> list[Case]:
    if case_set == "mutation":
        fills = {"places": len(PLACES), "special": len(SPECIAL)}
        return [Case(fill, {"rows": rows, "fill": fill}) for fill, rows in fills.items()]
    quick = [
        Case("random-16", {"rows": 16, "fill": "random"}, graph="capture"),
        Case("random-1", {"rows": 1, "fill": "random"}),
        Case("random-3", {"rows": 3, "fill": "random"}),
        Case("special", {"rows": len(SPECIAL), "fill": "special"}),
        Case("places", {"rows": len(PLACES), "fill": "places"}),
        Case("chunk-ends", {"rows": CHUNKS // 4, "fill": "chunk_ends", "step": 4}),
    ]
    if case_set == "quick":
        return quick
    quick.append(Case("chunk-ends-all", {"rows": CHUNKS, "fill": "chunk_ends", "step": 1}))
    done = {case.name for case in quick}
    rows = [
        Case(f"random-{rows}", {"rows": rows, "fill": "random"})
        for rows in _rows.counts(4096, 4096)
    ]
    return quick + [case for case in rows if case.name not in done]


def inputs(case: Case, rng: np.random.Generator) -> dict[str, Any]:
    rows = int(case.params["rows"])
    fill = case.params["fill"]
    logits = _background(rows, rng)
    if fill == "special":
        for row, make in zip(logits, SPECIAL.values(), strict=True):
            make(row, rng)
    elif fill == "places":
        for row, column in zip(logits, PLACES, strict=True):
            row[column] = 20
    elif fill == "chunk_ends":
        _chunk_ends(logits, int(case.params["step"]), rng)
    return {"logits": logits}


def outputs(case: Case) -> dict[str, tuple[tuple[int, ...], str]]:
    return {"out": ((int(case.params["rows"]),), "i64")}


def exact(variant: str, logits: F32) -> dict[str, NDArray[Any]]:
    return {"out": np.argmax(logits, axis=-1).astype(np.int64)}


def deployed(variant: str, logits: F32) -> dict[str, NDArray[Any]]:
    """By the key: ordered(value) << 32 | ~column, of which the largest is wanted."""
    low = np.uint64(0xFFFFFFFF)
    tie = low - np.arange(logits.shape[1], dtype=np.uint64)
    best = np.array([np.max(ordered(row) << np.uint64(32) | tie) for row in logits])
    return {"out": (low - (best & low)).astype(np.int64)}


def ordered(values: F32) -> NDArray[np.uint64]:
    """An unsigned number that rises with the value: one for both zeros, one for every NaN."""
    u = values.view(np.uint32)
    top = np.uint32(0x80000000)
    rising = np.where(u < top, u + top, ~u)
    rising[values == 0] = top
    rising[np.isnan(values)] = 0xFFFFFFFF
    return rising.astype(np.uint64)


def _background(rows: int, rng: np.random.Generator) -> F32:
    """Numbers in -16..16; beyond 64 rows the same 64 again, each with a column of its own."""
    some = min(rows, 64)
    drawn: F32 = rng.random((some, COLUMNS), dtype=np.float32) * np.float32(32) - np.float32(16)
    if rows == some:
        return drawn
    logits = np.resize(drawn, (rows, COLUMNS))
    winners = rng.integers(0, COLUMNS, rows)
    logits[np.arange(rows), winners] = np.float32(17)
    return logits


def _chunk_ends(logits: F32, step: int, rng: np.random.Generator) -> None:
    """Every chunk has its largest value at its end; one of every `step` has a row's largest."""
    ends = np.arange(CHUNK - 1, COLUMNS, CHUNK)
    for row, end in zip(logits, ends[step - 1 :: step], strict=True):
        row[ends] = 17 + rng.random(CHUNKS, dtype=np.float32)
        row[end] = 19


# One winner for each group, element and a few lanes of a chunk, in chunks all over the row.
PLACES = [
    (17 * place + 3) % 128 * CHUNK + place // 4 * GROUP + lane * 4 + place % 4
    for place, lane in enumerate(
        [0, 63, 31, 32, 15, 16, 47, 48, 1, 62, 2, 61, 7, 8, 55, 56]
        + [0, 63, 31, 32, 15, 16, 47, 48, 1, 62, 2, 61, 0, 36, 36, 36]
    )
]


def _special() -> dict[str, Callable[[F32, np.random.Generator], None]]:
    """Rows by name; each maker gets a background row."""
    made: dict[str, Callable[[F32, np.random.Generator], None]] = {}

    def put(name: str, *places: tuple[Any, float], fill: float | None = None) -> None:
        def make(row: F32, rng: np.random.Generator) -> None:
            if fill is not None:
                row[:] = fill
            for where, value in places:
                row[where] = value

        made[name] = make

    last = COLUMNS - 1
    put("nan-first", (0, NAN), (5, INF))
    put("nan-last", (last, NAN), (5, INF))
    put("nan-all", fill=NAN)
    put("nan-after-inf", (100, INF), (200_000, NAN))
    put("nan-at-chunk-ends", (slice(CHUNK - 1, None, CHUNK), NAN))
    put("nan-in-the-tail", (77 * CHUNK + 1800, NAN), (77 * CHUNK + 1801, INF), (99 * CHUNK, NAN))
    put("inf-once", (123_456, INF))
    put("inf-often", (slice(54_321, None, 1000), INF))
    put("minus-inf-all", fill=-INF)
    put("minus-inf-but-one", (240_001, np.finfo(np.float32).min), fill=-INF)
    put("tie-adjacent", (slice(77_777, 77_779), 20))
    put("tie-far", (0, 20), (last, 20))
    put("tie-next-lane", (5003, 20), (5007, 20))
    put("tie-next-group", (90 * CHUNK + 300, 20), (90 * CHUNK + 301, 20), (90 * CHUNK + 40, 20))
    put("tie-next-chunk", (6 * CHUNK - 1, 20), (6 * CHUNK, 20))
    put("tie-later-group-first-lane", (8 * CHUNK + 1790, 20), (8 * CHUNK + 252, 20))
    put("tie-in-the-tail", (CHUNK - 4, 20), (CHUNK - 1, 20))
    put("equal-all", fill=3.25)
    put("equal-all-negative", fill=-3.25)
    put("zero-minus-first", (70_000, -0.0), (140_000, 0.0), fill=-1)
    put("zero-plus-first", (70_000, 0.0), (70_001, -0.0), fill=-1)
    put("zero-minus-all", fill=-0.0)
    put("denormal-over-zero", (3, -0.0), (4, 0.0), (246_000, 1e-45), fill=-1)
    put("minus-denormals-and-zero", (slice(0, None, 7), -1.5e-44), (150_001, -0.0), fill=-1e-40)
    put("minus-denormals", (111_111, -1e-45), fill=-1e-40)
    put("largest-last", (last, 20))
    put("largest-first", (0, 20))
    put("next-below-the-largest", (60_000, np.nextafter(np.float32(20), INF)), (50_000, 20))
    put("negative-neighbours", (9, np.nextafter(np.float32(-5), -INF)), (200_009, -5), fill=-6)
    put("finite-largest", (31_000, np.finfo(np.float32).max))

    def payloads(row: F32, rng: np.random.Generator) -> None:
        """NaNs of both signs, quiet and signalling; a bit pattern above +inf may not decide."""
        where = np.sort(rng.choice(COLUMNS, 1000, replace=False))
        pattern = rng.integers(0x7F800001, 0x80000000, 1000, dtype=np.uint32)
        pattern |= rng.integers(0, 2, 1000, dtype=np.uint32) << np.uint32(31)
        pattern[0], pattern[1] = 0xFF800001, 0x7FFFFFFF
        row.view(np.uint32)[where] = pattern
        row[:3] = INF

    def denormals(row: F32, rng: np.random.Generator) -> None:
        pattern = rng.integers(0, 0x00800000, COLUMNS, dtype=np.uint32)
        row.view(np.uint32)[:] = pattern | rng.integers(0, 2, COLUMNS, np.uint32) << np.uint32(31)

    made["nan-payloads"] = payloads
    made["denormals"] = denormals
    return made


SPECIAL = _special()
