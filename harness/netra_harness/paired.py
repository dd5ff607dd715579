"""What paired measurements show: a ratio with a confidence interval, or no difference.

Both sides of a pair were measured next to each other, and the order changed from pair to pair, so
that warming up, clocks and other work on the machine favour neither.  The interval of the median
ratio comes from order statistics (the sign test inverted): it assumes no distribution, only that
the pairs are independent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

LEVEL = 0.95
LEAST = 6  # pairs: with fewer even the widest interval covers less than LEVEL


@dataclass(frozen=True)
class Verdict:
    """`ratio` is candidate / baseline, its median over the pairs; `low` and `high` bound it.

    `level` is the coverage that the interval really has, at least LEVEL; `by_order` has the median
    ratio of the pairs in which the baseline, or the candidate, came first.
    """

    ratio: float
    low: float
    high: float
    level: float
    pairs: int
    by_order: dict[str, float]

    @property
    def verdict(self) -> str:
        """"faster", "slower", or "no difference shown"; when the two orders contradict each
        other, what they show is their order."""
        sides = [r for r in self.by_order.values() if not math.isnan(r)]
        if self.high < 1 and all(r < 1 for r in sides):
            return "faster"
        if self.low > 1 and all(r > 1 for r in sides):
            return "slower"
        return "no difference shown"

    def json(self) -> dict[str, Any]:
        return {**asdict(self), "verdict": self.verdict}


def judge(pairs: Sequence[tuple[float, float, str]]) -> Verdict:
    """(baseline, candidate, which came first: "AB" or "BA") of each pair -> what they show.

    Raises ValueError for fewer than LEAST pairs, for a time that is not positive, and when one
    order is missing.
    """
    if len(pairs) < LEAST:
        raise ValueError(f"{len(pairs)} pairs are too few: {LEAST} are the least")
    if any(not (0 < t < math.inf) for a, b, _ in pairs for t in (a, b)):
        raise ValueError("a measurement is zero, negative or not finite")
    ratios = {order: [b / a for a, b, o in pairs if o == order] for order in ("AB", "BA")}
    if not all(ratios.values()):
        raise ValueError("the order was never reversed")
    every = sorted(r for side in ratios.values() for r in side)
    low, high, level = interval(every)
    return Verdict(
        median(every), low, high, level, len(every), {o: median(r) for o, r in ratios.items()}
    )


def median(values: Sequence[float]) -> float:
    """NaN of nothing."""
    ordered, n = sorted(values), len(values)
    if not n:
        return math.nan
    return ordered[n // 2] if n % 2 else (ordered[n // 2 - 1] + ordered[n // 2]) / 2


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def interval(ordered: Sequence[float], level: float = LEVEL) -> tuple[float, float, float]:
    """(low, high, coverage) for the median: x[k] .. x[n-1-k] with the largest k that covers.

    P(x[k] <= median <= x[n-1-k]) = 1 - 2 * sum over i <= k of C(n, i) / 2^n.
    """
    n = len(ordered)
    tail, best = 0.0, (ordered[0], ordered[-1], 1 - 2 * 0.5**n)
    for k in range(n // 2):
        tail += math.comb(n, k) / 2**n
        if 1 - 2 * tail < level:
            break
        best = (ordered[k], ordered[n - 1 - k], 1 - 2 * tail)
    return best
