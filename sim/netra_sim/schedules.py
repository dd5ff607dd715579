"""Order dependence: the same inputs under several schedule seeds must give the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Finding = dict[str, Any]


def difference(
    kernel: str, seeds: tuple[int, int], name: str, first: bytes, second: bytes, width: int
) -> Finding | None:
    """A finding `order` about buffer `name` after two schedules; None when they agree.

    `width` is the size of an element in bytes; the first one that differs is named.
    """
    a, b = np.frombuffer(first, np.uint8), np.frombuffer(second, np.uint8)
    different = np.flatnonzero(a != b)
    if not different.size:
        return None
    at = int(different[0]) // width
    one, other = (x[at * width : (at + 1) * width][::-1].hex() for x in (first, second))
    elements = len({int(byte) // width for byte in different})
    return {
        "kind": "order", "rule": "D order", "severity": "error", "certainty": "measured",
        "kernel": kernel,
        "text": f"{name} depends on the schedule: {elements} of {len(first) // width} elements "
        f"differ, first {name}[{at}]: 0x{one} under seed {seeds[0]}, 0x{other} under {seeds[1]}",
        "mend": "give the workgroups and waves that write it an order, or a sum that has none; "
        f"--seed {seeds[1]} runs the second schedule",
        "at": {"place": kernel, "line": "", "text": "the whole launch"}, "other": None,
        "wave": 0, "workgroup": [0, 0, 0], "lane": None, "register": "", "address": None,
        "count": elements,
    }  # fmt: skip


def compare(
    kernel: str,
    seed: int,
    count: int,
    widths: Mapping[str, int],
    launch: Callable[[int], Mapping[str, bytes]],
) -> list[Finding]:
    """Runs `launch(seed)` under `count` seeds from `seed` on; one finding for each buffer whose
    bytes differ from those of the first."""
    first = launch(seed)
    found: dict[str, Finding] = {}
    for other in range(seed + 1, seed + count):
        second = launch(other & (2**64 - 1))
        for name, width in widths.items():
            if name in found:
                continue
            one = difference(kernel, (seed, other), name, first[name], second[name], width)
            if one:
                found[name] = one
    return list(found.values())
