"""Decides which tactic takes a call, and turns a tactic into launches.

A call is taken by a complete match or not at all.  A miss reports the tactic
that came furthest, that is, with most predicates true before its first false
one (ties by id), and that predicate.
"""

from __future__ import annotations

import fnmatch
import os
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from netra_catalog.call import Call, Tensor, describe
from netra_catalog.env import Env, Overflow, Undefined, to_f32
from netra_catalog.errors import NetraError, UsageError
from netra_catalog.op import Op, TensorArg

if TYPE_CHECKING:
    from netra_catalog.contract import Expr, Predicate
    from netra_catalog.tactic import KernelArg, Launch, Tactic

_FORMATS = {
    "ptr": "<Q", "u64": "<Q", "i64": "<q", "u32": "<I", "i32": "<i", "f32": "<f", "f64": "<d",
}
_SCALAR_RANGES = {"u32": (0, 2**32), "i32": (-(2**31), 2**31), "i64": (-(2**63), 2**63)}
_LDS_LIMIT = {"gfx950": 160 * 1024, "gfx1151": 64 * 1024}
_MAX_THREADS = 1024


@dataclass(frozen=True)
class Failure:
    """Why a tactic declines: the predicate's id, one line of text, and how many
    predicates were true before it (-1 when the call does not even fit the op)."""

    id: str
    text: str
    passed: int


@dataclass(frozen=True)
class Match:
    tactic: Tactic


@dataclass(frozen=True)
class Miss:
    """`tactic` is the one that came furthest; None when the op has none."""

    tactic: Tactic | None
    predicate_id: str
    text: str


@dataclass(frozen=True)
class LaunchPlan:
    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    lds: int
    kernarg: bytes


class Judge:
    """What tactics need to know of one call, found out once for all of them."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self._known: dict[int, tuple[Op, str, Env]] = {}
        self._said: dict[int, tuple[Tactic, Failure | None]] = {}

    def explain(self, tactic: Tactic) -> Failure | None:
        """`explain`, once for each tactic."""
        if id(tactic) not in self._said:
            self._said[id(tactic)] = (tactic, explain(tactic, self.call, self))
        return self._said[id(tactic)][1]

    def about(self, definition: Op) -> tuple[str, Env]:
        """How the call does not fit the op ("" when it does), and what names stand for."""
        known = self._known.get(id(definition))
        if known is None:
            env = _env(definition, self.call)
            known = self._known[id(definition)] = (definition, _misfit(definition, self.call), env)
        return known[1:]


def evaluate(tactic: Tactic, call: Call) -> str | None:
    """The id of the first false predicate; None when the tactic takes the call.

    Before the contract: `op`, `arch`, and `args` (an argument is missing, of the
    wrong kind, or reaches past its storage).  A tensor whose rank is not the op's
    is for the contract to name; where it does not, `args` follows.  `overflow`
    stands for any predicate whose numbers leave 128 bits.
    """
    failure = explain(tactic, call)
    return failure.id if failure else None


def explain(tactic: Tactic, call: Call, judge: Judge | None = None) -> Failure | None:
    """Like `evaluate`, with the predicate and the values that made it false."""
    if call.op != tactic.op:
        return Failure("op", f"op: the call is {call.op}, the tactic does {tactic.op}", -1)
    if call.arch != tactic.arch:
        return Failure("arch", f"arch: the call is on {call.arch}", -1)
    misfit, env = (judge or Judge(call)).about(tactic.definition)
    if misfit:
        return Failure("args", f"args: {misfit}", -1)
    for passed, (id, predicate) in enumerate(tactic.contract.items()):
        try:
            if predicate.expr.value(env):
                continue
        except Overflow as error:
            text = f"overflow: {id}: {predicate.text}: {error} ({_values(predicate, env)})"
            return Failure("overflow", text, passed)
        except Undefined as error:
            return Failure(id, f"{id}: {predicate.text} is false: {error}", passed)
        text = f"{id}: {predicate.text} is false ({_values(predicate, env)})"
        return Failure(id, text, passed)
    for arg in tactic.definition.tensors:
        given = call.args[arg.name]
        if isinstance(given, Tensor) and len(given.shape) != len(arg.dims):
            dims = ", ".join(map(str, arg.dims))
            text = f"args: {arg.name} is {describe(given)}, the op wants [{dims}]"
            return Failure("args", text, len(tactic.contract))
    return None


def admitted(
    tactics: Iterable[Tactic], *, simulated: bool, environ: dict[str, str] | None = None
) -> list[Tactic]:
    """The tactics that may run at all, whatever the call."""
    return [t for t in tactics if not barred(t, simulated=simulated, environ=environ)]


def barred(tactic: Tactic, *, simulated: bool, environ: dict[str, str] | None = None) -> str:
    """Why a tactic is never admitted; "" when it may be.  NETRA_ENABLE names held
    tactics, NETRA_ADMIT those that may run on a GPU before they are accepted."""
    env = os.environ if environ is None else environ
    if tactic.maturity in ("rejected", "quarantined"):
        return f"it is {tactic.maturity}"
    if tactic.hold and not _named(tactic, env.get("NETRA_ENABLE", "")):
        return f"it is held: {tactic.hold}"
    if simulated or tactic.maturity == "accepted" or _named(tactic, env.get("NETRA_ADMIT", "")):
        return ""
    return f"it is {tactic.maturity}, a GPU takes accepted ones (or name it in NETRA_ADMIT)"


def _named(tactic: Tactic, patterns: str) -> bool:
    return any(
        fnmatch.fnmatchcase(tactic.id if "/" in pattern else tactic.stem, pattern)
        for pattern in patterns.replace(",", " ").split()
    )


def match(
    tactics: Sequence[Tactic], call: Call, judge: Judge | None = None
) -> Match | Miss:
    """The tactic of lowest rank that takes the call.  Two of equal rank are an
    error of the catalog: which one runs must not depend on their names."""
    takers: list[Tactic] = []
    judge = judge or Judge(call)
    best: tuple[Tactic, Failure] | None = None
    for tactic in sorted((t for t in tactics if t.op == call.op), key=lambda t: (t.rank, t.id)):
        failure = judge.explain(tactic)
        if failure is None:
            takers.append(tactic)
        elif best is None or (-failure.passed, tactic.id) < (-best[1].passed, best[0].id):
            best = (tactic, failure)
    if len(takers) > 1 and takers[0].rank == takers[1].rank:
        first, second = takers[:2]
        raise NetraError(
            f"{first.id} and {second.id} both take {describe_call(call)}",
            where=first.where("contract"),
            hint=f"narrow one of the contracts, or give {second.where('op')} another rank",
        )
    if takers:
        return Match(takers[0])
    if best is None:
        return Miss(None, "op", f"no tactic implements {call.op}")
    tactic, failure = best
    return Miss(tactic, failure.id, f"{tactic.id}: {failure.text}")


def workspace_bytes(tactic: Tactic, call: Call) -> int:
    """Bytes of workspace that an admitted call needs."""
    env = _env(tactic.definition, call)
    return _int(tactic, "workspace.bytes", tactic.workspace.bytes, env, 0, 2**63)


def plan(tactic: Tactic, call: Call, workspace: int = 0) -> tuple[LaunchPlan, ...]:
    """The launches of an admitted call; `workspace` is its device address."""
    if workspace == 0 and workspace_bytes(tactic, call):
        raise UsageError(f"{tactic.id} needs a workspace of {workspace_bytes(tactic, call)} bytes")
    env = _env(tactic.definition, call, workspace)
    return tuple(_plan(tactic, i, launch, env) for i, launch in enumerate(tactic.launches))


def _plan(tactic: Tactic, index: int, launch: Launch, env: Env) -> LaunchPlan:
    key = f"launches[{index}]"
    grid = [
        _int(tactic, f"{key}.grid[{i}]", expr, env, 1, 2**31 if i == 0 else 2**16)
        for i, expr in enumerate(launch.grid)
    ]
    block = [
        _int(tactic, f"{key}.block[{i}]", expr, env, 1, _MAX_THREADS + 1)
        for i, expr in enumerate(launch.block)
    ]
    if block[0] * block[1] * block[2] > _MAX_THREADS or grid[0] * block[0] >= 2**32:
        raise NetraError(
            f"{tactic.id}: grid {grid} of blocks {block} is beyond what HIP launches",
            where=tactic.where(key),
        )
    lds = _int(tactic, f"{key}.lds", launch.lds, env, 0, _LDS_LIMIT[tactic.arch] + 1)
    kernarg = bytearray(launch.kernarg_size)
    for i, arg in enumerate(launch.args):
        value = _arg_value(tactic, f"{key}.args[{i}]", arg, env)
        struct.pack_into(_FORMATS[arg.kind], kernarg, arg.offset, value)
    return LaunchPlan(
        launch.kernel, (grid[0], grid[1], grid[2]), (block[0], block[1], block[2]), lds,
        bytes(kernarg),
    )


def _arg_value(tactic: Tactic, key: str, arg: KernelArg, env: Env) -> int | float:
    value = arg.value
    given = env.call.args.get(arg.name, env.defaults.get(arg.name))
    if value is not None:
        try:
            found = value.value(env)
        except (Overflow, Undefined) as error:
            raise NetraError(
                f"{tactic.id}: {arg.name}: {error}", where=tactic.where(key)
            ) from None
        assert not isinstance(found, str)
        given = found
    if isinstance(given, Tensor):
        given = given.ptr
    assert given is not None
    if arg.kind in ("f32", "f64"):
        return to_f32(float(given)) if arg.kind == "f32" else float(given)
    try:
        struct.pack(_FORMATS[arg.kind], given)
    except struct.error:
        raise NetraError(
            f"{tactic.id}: {arg.name} = {given} does not fit {arg.kind}", where=tactic.where(key),
            hint="a predicate of the contract must rule such a call out",
        ) from None
    return given


def _int(tactic: Tactic, key: str, expr: Expr, env: Env, low: int, high: int) -> int:
    try:
        value = expr.value(env)
    except (Overflow, Undefined) as error:
        raise NetraError(f"{tactic.id}: {key}: {error}", where=tactic.where(key)) from None
    assert isinstance(value, int)
    if not low <= value < high:
        raise NetraError(
            f"{tactic.id}: {key} = {expr.text} is {value}, want {low}..{high - 1}",
            where=tactic.where(key), hint="a predicate of the contract must rule such a call out",
        )
    return value


def _env(op: Op, call: Call, workspace: int = 0) -> Env:
    defaults = {arg.name: arg.default for arg in op.scalars if arg.default is not None}
    return Env(call, defaults, workspace)


def _misfit(op: Op, call: Call) -> str:
    """What is wrong with the arguments as such; "" when they fit the op."""
    for arg in op.args:
        given = call.args.get(arg.name)
        if isinstance(arg, TensorArg):
            if not isinstance(given, Tensor):
                return f"{arg.name} is missing" if given is None else f"{arg.name} is no tensor"
            if min(given.shape, default=0) < 0 or given.max_byte_offset >= given.extent:
                return f"{arg.name} is {describe(given)}, its storage has {given.extent} bytes"
        elif given is None:
            if arg.default is None:
                return f"{arg.name} is missing"
        elif isinstance(given, Tensor):
            return f"{arg.name} is a tensor, the op wants a scalar {arg.kind}"
        elif arg.kind in _SCALAR_RANGES:
            low, high = _SCALAR_RANGES[arg.kind]
            if not hasattr(given, "__index__") or not low <= given < high:
                return f"{arg.name} = {given} is no {arg.kind}"
    extra = call.args.keys() - {arg.name for arg in op.args}
    return f"the op has no argument '{min(extra)}'" if extra else ""


def _values(predicate: Predicate, env: Env) -> str:
    """`rows=0, x.ptr=0x1004`: what the predicate read."""
    known = env.memo.get(("values", predicate.text))
    if known is not None:
        return str(known)
    parts: list[str] = []
    for load in predicate.expr.inputs():
        try:
            value = load.value(env)
        except (Overflow, Undefined) as error:
            parts.append(f"{load.text}: {error}")
            continue
        if isinstance(value, Tensor):
            parts.append(f"{load.text}={describe(value)} at {value.ptr:#x}")
        else:
            parts.append(f"{load.text}={value}")
    env.memo["values", predicate.text] = text = ", ".join(parts)
    return text


def describe_call(call: Call) -> str:
    args = " ".join(f"{name}={describe(value)}" for name, value in call.args.items())
    return (
        f"{call.op} arch={call.arch} phase={call.phase} graph={call.graph} "
        f"cu_count={call.cu_count} {args}"
    ).rstrip()
