"""A complete match or the caller's path: dispatch, prepare, why."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from netra_catalog.call import Call
from netra_catalog.dispatch import (
    Match,
    describe_call,
    explain,
    match,
    plan,
    workspace_bytes,
)
from netra_catalog.op import GRAPHS
from netra_catalog.tactic import Tactic

from netra_bridge import runtime
from netra_bridge.errors import CaptureError, NoTacticError, UsageError
from netra_bridge.request import Request, read_request
from netra_bridge.runtime import Workspace, log


@dataclass(frozen=True)
class Decline:
    """Why no tactic took a call: the id of a predicate (or `not-prepared`, `disabled`,
    `admission`, `op`, `args`) and a sentence."""

    predicate: str
    text: str
    tactic: str | None = None


@dataclass(frozen=True)
class Prepared:
    """What prepare() did.  `declined` says why a tactic of the op was left out."""

    op: str
    tactics: tuple[str, ...]
    workspace_bytes: int
    declined: dict[str, str]


@dataclass(frozen=True)
class Why:
    """What dispatch() would do with a call; `tactics` has each tactic's reason to decline."""

    chosen: str | None
    predicate: str | None
    tactics: dict[str, str]
    call: str

    def __str__(self) -> str:
        lines = [self.call, f"  taken by {self.chosen}" if self.chosen else "  declined"]
        lines += [f"  {name}: {reason}" for name, reason in self.tactics.items()]
        return "\n".join(lines)


def dispatch(
    op: str,
    /,
    *,
    stream: object = None,
    fallback: Callable[..., Any] | None = None,
    require: bool = False,
    phase: str = "decode",
    graph: str | None = None,
    **args: object,
) -> Any:
    """Launches the tactic that takes this call on the caller's stream, or calls `fallback(**args)`.

    Returns the arguments that the op writes, as they were passed (one, or a tuple), or what the
    fallback returns. With no fallback, or `require`, or NETRA_REQUIRE naming a tactic of the op, a
    decline is a NoTacticError that names the false predicate. Host pointers, unknown arguments,
    wrong artefacts and failed launches are errors always.

    `graph` is found out from the stream, unless given ("piecewise" cannot be found out). What is
    not prepared is prepared at its first eager call; while capturing it is declined instead. The
    work is only enqueued: keep the arrays until the stream has passed, as with any launch."""
    request = read_request(op, args, stream, phase, graph)
    outcome = _select(request)
    if isinstance(outcome, Decline):
        return _declined(op, request, outcome, fallback, require, args)
    tactic, workspace = outcome
    written = tactic.effects.writes
    for name in request.readonly:
        if name in written:
            raise UsageError(f"{name} is read-only, and {tactic.id} writes it")
    request.state.launch(tactic, plan(tactic, request.call, workspace.ptr), request.stream)
    results = tuple(args[name] for name in written if name in args)
    return results[0] if len(results) == 1 else results or None


def prepare(
    op: str,
    /,
    *,
    stream: object = None,
    phase: str | None = None,
    graph: str | None = None,
    **args: object,
) -> Prepared:
    """Makes a later dispatch of this op on this stream ready for capture.

    Loads the code objects of every admitted tactic of the op on the device of the arrays, and
    allocates the workspace of those that take this call (in any phase and graph mode, unless
    given): pass the largest call. Where smaller calls go to other tactics, call it for those too.

    A workspace belongs to one tactic on one stream. A graph keeps the workspace of the stream that
    it was captured on, so two such graphs must not be replayed at once.
    CaptureError when the stream is being captured: nothing is prepared then, and the capture is
    unharmed. A wrong artefact is an ArtefactError; when HIP or the host fails, the tactic is
    disabled in this process and named in `declined`. NoTacticError when NETRA_REQUIRE names the op
    and nothing of it was prepared."""
    request = read_request(op, args, stream, phase or "decode", graph)
    if request.capturing:
        raise CaptureError(
            f"{op}: cannot prepare while the stream is being captured: it allocates and loads",
            hint="prepare before the capture begins",
        )
    state = request.state
    tactics, declined = state.candidates(op)
    declined = dict(declined)
    done: list[str] = []
    for tactic in tactics:
        size = _largest(tactic, request.call, phase, graph)
        failed = state.prepare(tactic, request.stream, size, exact=True)
        if failed:
            declined[tactic.id] = failed
        else:
            done.append(tactic.id)
    if not done and _required(op, state.device.arch):
        reasons = "; ".join(f"{name}: {reason}" for name, reason in declined.items())
        raise NoTacticError(
            f"{op}: nothing to prepare on {state.device.arch}",
            hint=reasons or f"no tactic implements {op} on {state.device.arch}",
        )
    total = sum(
        workspace.size
        for (name, at), workspace in state.workspaces.items()
        if at == request.stream and name in done
    )
    return Prepared(op, tuple(done), total, declined)


def why(
    op: str,
    /,
    *,
    stream: object = None,
    phase: str = "decode",
    graph: str | None = None,
    **args: object,
) -> Why:
    """Tells what dispatch() would do, tactic by tactic.  Launches and prepares nothing."""
    request = read_request(op, args, stream, phase, graph)
    state = request.state
    tactics, barred = state.candidates(op)
    reasons = {name: f"admission: {reason}" for name, reason in barred.items()}
    for tactic in tactics:
        failure = explain(tactic, request.call)
        if failure is not None:
            reasons[tactic.id] = failure.text
        elif tactic.id in state.disabled:
            reasons[tactic.id] = f"disabled: {state.disabled[tactic.id]}"
    chosen: str | None = None
    predicate: str | None = None
    outcome = _match(request)
    if isinstance(outcome, Decline):
        predicate = outcome.predicate
        if outcome.tactic is None:
            reasons.setdefault(state.device.arch, outcome.text)
    else:
        needed = workspace_bytes(outcome, request.call)
        if request.capturing and state.ready(outcome, request.stream, needed) is None:
            predicate = "not-prepared"
            reasons[outcome.id] = _not_prepared(outcome).text
        else:
            chosen = outcome.id
    return Why(chosen, predicate, dict(sorted(reasons.items())), describe_call(request.call))


def _match(request: Request) -> Tactic | Decline:
    state, call = request.state, request.call
    tactics, barred = state.candidates(call.op)
    if not tactics:
        if barred:
            name, reason = next(iter(barred.items()))
            return Decline("admission", f"{name}: {reason}", name)
        return Decline("op", f"no tactic implements {call.op} on {call.arch}")
    if state.disabled:
        alive = [tactic for tactic in tactics if tactic.id not in state.disabled]
        if not alive:
            name, reason = next(iter(state.disabled.items()))
            return Decline("disabled", f"{name}: {reason}", name)
        tactics = alive
    found = match(tactics, call)
    if isinstance(found, Match):
        return found.tactic
    return Decline(found.predicate_id, found.text, found.tactic.id if found.tactic else None)


def _select(request: Request) -> tuple[Tactic, Workspace] | Decline:
    """The tactic that takes the call, prepared, with its workspace."""
    found = _match(request)
    if isinstance(found, Decline):
        return found
    state, stream = request.state, request.stream
    size = workspace_bytes(found, request.call)
    workspace = state.ready(found, stream, size)
    if workspace is None:
        if request.capturing:
            return _not_prepared(found)
        failed = state.prepare(found, stream, size, exact=False)
        if failed:
            return Decline("disabled", f"{found.id}: {failed}", found.id)
        workspace = state.ready(found, stream, size)
        assert workspace is not None
    return found, workspace


def _not_prepared(tactic: Tactic) -> Decline:
    return Decline(
        "not-prepared",
        f"{tactic.id}: not prepared for this call on this stream, and nothing may be loaded or "
        "allocated while it is being captured; call netra_bridge.prepare before",
        tactic.id,
    )


def _largest(tactic: Tactic, call: Call, phase: str | None, graph: str | None) -> int:
    """The workspace that the tactic needs for the call, 0 when it would not take it."""
    phases = (phase,) if phase is not None else tactic.definition.phases
    graphs = (graph,) if graph is not None else GRAPHS
    for each_phase, each_graph in product(phases, graphs):
        variant = Call(call.op, call.arch, each_phase, each_graph, call.cu_count, call.args)
        if explain(tactic, variant) is None:
            return workspace_bytes(tactic, variant)
    return 0


_told: set[tuple[str, str | None, str]] = set()


def _declined(
    op: str,
    request: Request,
    decline: Decline,
    fallback: Callable[..., Any] | None,
    require: bool,
    args: Mapping[str, object],
) -> Any:
    required = require or _required(op, request.state.device.arch)
    if fallback is None or required:
        raise NoTacticError(
            f"no tactic takes this call of {op} ({decline.predicate})",
            hint=decline.text,
        )
    key = (op, decline.tactic, decline.predicate)
    if key not in _told:
        _told.add(key)
        log.info("%s: the fallback runs (told once): %s", op, decline.text)
    return fallback(**args)


def _required(op: str, arch: str) -> bool:
    """Whether NETRA_REQUIRE names the op, or a tactic of it on this target."""
    patterns = os.environ.get("NETRA_REQUIRE", "")
    if not patterns:
        return False
    if "*" in patterns.replace(",", " ").split() or op in patterns.replace(",", " ").split():
        return True
    return any(
        runtime.names(tactic, patterns)
        for tactic in runtime.catalog()
        if tactic.op == op and tactic.arch == arch
    )
