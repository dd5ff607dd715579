"""The inputs of one launch and what must come out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
from netra_catalog.tactic import Tactic
from numpy.typing import NDArray

from netra_harness.captures import CapturedCase
from netra_harness.case import Case

Array = NDArray[Any]


@dataclass(frozen=True)
class Check:
    """Outputs to compare with, and by what metric."""

    against: str
    metric: str
    value: Any
    outputs: Mapping[str, Array]

    @classmethod
    def of_capture(cls, case: CapturedCase) -> list[Check]:
        """One for each output, whose metric is its own."""
        return [
            cls(case.label, record.metric, record.value, {name: record.stored})
            for name, record in case.outputs.items()
            if record.stored is not None
        ]


@dataclass
class Draw:
    """Arguments by name; `label` tells this draw from the first one in messages."""

    args: dict[str, Any]
    checks: list[Check]
    label: str = ""


def make_draw(
    tactic: Tactic,
    oracle: ModuleType,
    case: Case,
    rng: np.random.Generator,
    label: str,
    like: Draw | None,
) -> Draw:
    """Draws inputs and asks the oracle that decides, and `exact` where the tactic says so too.

    `like` gives the scalars: a graph keeps those that it was recorded with.
    """
    args = dict(oracle.inputs(case, rng))
    if like is not None:
        args.update({k: v for k, v in like.args.items() if not isinstance(v, np.ndarray)})
    check_args(oracle, case, args)
    numerics = tactic.numerics
    value: Any = numerics.value
    if numerics.relative:
        value = {"abs": value, "rel": numerics.relative}
    checks = [_check(tactic, oracle, args, numerics.decides, numerics.metric, value)]
    if numerics.exact is not None and numerics.decides != "exact":
        second = numerics.exact
        checks.append(_check(tactic, oracle, args, "exact", second.metric, second.value))
    return Draw(args, checks, label)


def laid_out(array: Array) -> Array:
    """The elements of `array` as memory holds them, first to last: a view with gaps, such as some
    columns of a wider matrix, gets bytes of 0xff there, which are NaNs as floats."""
    if array.flags.c_contiguous:
        return array
    strides = [s // array.itemsize for s in array.strides]
    if min(strides) < 0:
        raise ValueError("arrays with negative strides are not laid out")
    last = sum((n - 1) * s for n, s in zip(array.shape, strides, strict=True))
    flat = np.full((last + 1) * array.itemsize, 0xFF, np.uint8).view(array.dtype)
    np.lib.stride_tricks.as_strided(flat, array.shape, array.strides)[...] = array
    return flat


def gaps(array: Array) -> list[tuple[int, int]]:
    """Bytes start..end - 1 between the elements of a view, as `laid_out` has them."""
    if array.flags.c_contiguous:
        return []
    last = sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True))
    held = np.zeros(last // array.itemsize + 1, bool)
    strides = [s // array.itemsize for s in array.strides]
    np.lib.stride_tricks.as_strided(held, array.shape, strides)[...] = True
    edges = np.flatnonzero(np.diff(held, prepend=True, append=True))
    pairs = edges.reshape(-1, 2) * array.itemsize
    return [(int(start), int(end)) for start, end in pairs]


def check_args(oracle: ModuleType, case: Case, args: Mapping[str, Any]) -> None:
    """The oracle must give every input of its OP, as arrays and numbers, and nothing else."""
    op = oracle.OP
    wanted = {a.name for a in op.tensors if a.role != "out"} | {a.name for a in op.scalars}
    if set(args) != wanted:
        raise ValueError(
            f"{oracle.__name__}.inputs, case {case.name}: gives {sorted(args)}, "
            f"OP wants {sorted(wanted)}"
        )
    for arg in op.tensors:
        if arg.role != "out" and not isinstance(args[arg.name], np.ndarray):
            raise TypeError(f"{oracle.__name__}.inputs, case {case.name}: {arg.name} is no array")
    for scalar in op.scalars:
        if isinstance(args[scalar.name], np.generic):
            raise TypeError(
                f"{oracle.__name__}.inputs, case {case.name}: {scalar.name} should be a plain "
                f"number, not {type(args[scalar.name]).__name__}"
            )


def _check(
    tactic: Tactic,
    oracle: ModuleType,
    args: Mapping[str, Any],
    which: str,
    metric: str,
    value: Any,
) -> Check:
    given = {k: _read_only(v) if isinstance(v, np.ndarray) else v for k, v in args.items()}
    answer = getattr(oracle, which)(tactic.variant, **given)
    wanted = [arg.name for arg in oracle.OP.tensors if arg.role != "in"]
    missing = sorted(set(wanted) - set(answer))
    if missing:
        raise ValueError(f"{oracle.__name__}.{which} gives no {', '.join(missing)}")
    return Check(which, metric, value, {name: np.asarray(answer[name]) for name in wanted})


def _read_only(array: Array) -> Array:
    """The same memory; an oracle that writes to its input gets a ValueError."""
    view: Array = array.view()
    view.flags.writeable = False
    return view
