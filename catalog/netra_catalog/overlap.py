"""Whether two tactics take the same call, and whether every admitted call can be launched.

Both are proved over whole contracts (region.py), or refuted with a call; what is neither is an
error too, since a catalog must be known to be sound.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from netra_catalog.artefacts import LDS_LIMIT
from netra_catalog.call import Call
from netra_catalog.dispatch import describe_call, explain, plan, workspace_bytes
from netra_catalog.errors import NetraError
from netra_catalog.expr import Load
from netra_catalog.intsets import Undecided
from netra_catalog.region import Box, Region, bounds, region, solve
from netra_catalog.tactic import Launch, Tactic
from netra_catalog.witness import witness

_THREADS = 1024
_SPACE = 1 << 44
_RANGES = {"u32": (0, 2**32 - 1), "i32": (-(2**31), 2**31 - 1), "i64": (-(2**63), 2**63 - 1),
           "u64": (0, 2**64 - 1)}


def overlaps(tactics: Sequence[Tactic], regions: dict[str, Region] | None = None) -> Iterator[str]:
    """One message for each pair of equal rank that takes, or may take, the same call."""
    known = regions if regions is not None else {}
    groups: dict[tuple[str, str, int], list[Tactic]] = {}
    for tactic in tactics:
        groups.setdefault((tactic.op, tactic.arch, tactic.rank), []).append(tactic)
    for group in groups.values():
        for i, second in enumerate(group):
            for first in group[:i]:
                message = _pair(first, second, known)
                if message:
                    yield message


def _region(tactic: Tactic, known: dict[str, Region]) -> Region:
    if tactic.id not in known:
        known[tactic.id] = region(tactic)
    return known[tactic.id]


def _pair(first: Tactic, second: Tactic, known: dict[str, Region]) -> str:
    hint = f"narrow one of the contracts, or give {second.where('op')} another rank"
    where, other = second.where("contract"), f"{first.id} ({first.where('contract')})"

    def both(call: Call) -> bool:
        return explain(first, call) is None and explain(second, call) is None

    try:
        common = [box for a in _region(first, known) for b in _region(second, known)
                  if (box := meet(a, b, first)) is not None]
    except Undecided as reason:
        return str(NetraError(f"cannot tell whether {second.id} and {other} overlap: {reason}",
                              where=where, hint=hint).message)
    for box in common:
        call = witness(first.definition, box, first.arch, both)
        if call is not None:
            same = {p.expr.node for p in first.contract.values()} == {
                p.expr.node for p in second.contract.values()
            }
            what = "the contract is that of" if same else "takes the same calls as"
            text = f"{what} {other}, at the same rank: {describe_call(call)}"
            return str(NetraError(text, where=where, hint=hint).message)
    if common:
        text = f"cannot tell whether {second.id} and {other} take the same call"
        return str(NetraError(text, where=where, hint=hint).message)
    return ""


def meet(a: Box, b: Box, tactic: Tactic) -> Box | None:
    both = a & b
    return None if both is None else solve(both, tactic.definition)


def launchable(tactic: Tactic, known: dict[str, Region] | None = None) -> Iterator[str]:
    """Launches, workspace and integer arguments over everything that the contract admits."""
    where = tactic.where("contract")
    try:
        boxes = _region(tactic, known if known is not None else {})
    except Undecided as reason:
        yield str(NetraError(f"cannot tell what the contract admits: {reason}", where=where,
                             hint="write simpler predicates").message)
        return
    if not boxes:
        yield str(NetraError("the contract admits no call at all", where=where,
                             hint="two of its predicates exclude each other").message)
        return
    for box in boxes:
        key = next(_unproved(tactic, box), None)
        if key is None:
            continue

        def refuted(call: Call) -> bool:
            return explain(tactic, call) is None and bool(illegal(tactic, call))

        call = witness(tactic.definition, box, tactic.arch, refuted)
        hint = "add a predicate that bounds what it is computed from"
        if call is not None:
            text = f"{describe_call(call)} is admitted and cannot be launched: " \
                   f"{illegal(tactic, call)}"
        else:
            text = f"{key} is not known to be legal for every admitted call"
        yield str(NetraError(text, where=tactic.where(key), hint=hint).message)
        return
    if next((None for box in boxes if _takes(tactic, box)), "none") == "none":
        yield str(NetraError("no call was found that the contract admits", where=where,
                             hint="do two predicates exclude each other?").message)


def _takes(tactic: Tactic, box: Box) -> bool:
    return witness(
        tactic.definition, box, tactic.arch, lambda call: explain(tactic, call) is None
    ) is not None


def illegal(tactic: Tactic, call: Call) -> str:
    """Why an admitted call cannot be launched; "" when it can."""
    try:
        workspace_bytes(tactic, call)
        plan(tactic, call, _SPACE)
    except NetraError as error:
        return error.message.partition("\n")[0]
    return ""


def _unproved(tactic: Tactic, box: Box) -> Iterator[str]:
    """The keys whose values are not shown to stay within their limits."""
    op = tactic.definition

    def outside(key: str, node: object, low: int, high: int) -> Iterator[str]:
        try:
            a, b = bounds(node, box, op)  # type: ignore[arg-type]
        except Undecided:
            yield key
            return
        if a < low or b > high:
            yield key

    yield from outside("workspace.bytes", tactic.workspace.bytes.node, 0, 2**63 - 1)
    for i, launch in enumerate(tactic.launches):
        key = f"launches[{i}]"
        for j, expr in enumerate(launch.grid):
            top = 2**31 - 1 if j == 0 else 2**16 - 1
            yield from outside(f"{key}.grid[{j}]", expr.node, 1, top)
        for j, expr in enumerate(launch.block):
            yield from outside(f"{key}.block[{j}]", expr.node, 1, _THREADS)
        yield from outside(f"{key}.lds", launch.lds.node, 0, _free_lds(tactic, launch))
        try:
            sides = [bounds(e.node, box, op)[1] for e in launch.block]
            width = bounds(launch.grid[0].node, box, op)[1]
            if sides[0] * sides[1] * sides[2] > _THREADS or width * sides[0] >= 2**32:
                yield f"{key}.grid"
        except Undecided:
            pass  # named above
        for j, arg in enumerate(launch.args):
            if arg.kind in _RANGES:
                node = arg.value.node if arg.value else Load("int", arg.name)
                yield from outside(f"{key}.args[{j}]", node, *_RANGES[arg.kind])


def _free_lds(tactic: Tactic, launch: Launch) -> int:
    return LDS_LIMIT[tactic.arch] - tactic.resources[launch.kernel]["lds"]
