"""What the tactics of an op admit together, what lies between and is not admitted, and where
such calls go."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from netra_catalog.expr import Load, Node, nodes
from netra_catalog.intsets import Ints, Undecided
from netra_catalog.op import GRAPHS, Op
from netra_catalog.region import Box, Domain, Names, domain_of, get, leader, region
from netra_catalog.tactic import Tactic

_CELL = ("phase", "graph", "arch")
Entry = tuple[Tactic, Box, dict[Load, Domain]]


def coverage(tactics: Sequence[Tactic], arch: str) -> dict[str, Any]:
    """`admitted`, `holes` and `declined` (phases and graph modes that nothing takes) on one
    target; the tactics are those that may run."""
    mine = [tactic for tactic in tactics if tactic.arch == arch]
    entries: list[Entry] = []
    unknown: list[str] = []
    for tactic in mine:
        try:
            entries += [(tactic, box, _stated(tactic, box)) for box in region(tactic)]
        except Undecided as reason:
            unknown.append(f"{tactic.id}: {reason}")
    op = tactics[0].definition
    cells = [(phase, graph) for phase in op.phases for graph in GRAPHS]
    taken = {cell for cell in cells if any(_in_cell(box, cell, op) for _, box, _ in entries)}
    return {
        "arch": arch,
        "admitted": [_admitted(entry, op) for entry in entries],
        "holes": _holes(entries, cells, op),
        "declined": [{"phase": p, "graph": g} for p, g in cells if (p, g) not in taken],
        "unknown": unknown,
    }


def _stated(tactic: Tactic, box: Box) -> dict[Load, Domain]:
    """The sets of the inputs that tell one box from another, by the leader of each group."""
    op, found = tactic.definition, {}
    for load, domain in box.sets.items():
        if load.name in _CELL or load.field in ("max_byte_offset", "ndim"):
            continue
        if domain != domain_of(load, op):
            found[load] = domain
    return found


def _in_cell(box: Box, cell: tuple[str, str], op: Op) -> bool:
    phases, graphs = (get(box, Load("str", key), op) for key in ("phase", "graph"))
    assert isinstance(phases, Names) and isinstance(graphs, Names)
    return cell[0] in phases and cell[1] in graphs


def _text(domain: Domain, load: Load) -> str:
    if isinstance(domain, Ints):
        return str(domain)
    names = ", ".join(sorted(domain.names))
    return f"all but {names}" if domain.negated else names


def _admitted(entry: Entry, op: Op) -> dict[str, Any]:
    tactic, box, stated = entry
    words: dict[str, list[str]] = {}
    for key, every in (("phase", op.phases), ("graph", GRAPHS)):
        domain = get(box, Load("str", key), op)
        words[key] = [name for name in every if isinstance(domain, Names) and name in domain]
    inputs = {
        load.text: _text(domain, load) for load, domain in sorted(
            stated.items(), key=lambda item: item[0].text
        )
        if load.type not in ("tensor", "f32", "f64")
    }
    loose = {node for node, _ in box.literals}
    where = [
        p.text for p in tactic.contract.values()
        if _mentions(p.expr.node, loose) or any(
            load.type in ("tensor", "f32", "f64") or load.field == "max_byte_offset"
            for load in p.expr.inputs()
        )
    ]
    return {
        "tactic": tactic.id, "rank": tactic.rank, "phases": words["phase"],
        "graphs": words["graph"], "inputs": inputs, "where": where,
    }


def _mentions(node: Node, loose: set[Node]) -> bool:
    return any(here in loose for here in nodes(node))


def _holes(entries: list[Entry], cells: list[tuple[str, str]], op: Op) -> list[dict[str, Any]]:
    """For each integer input: what is missing between the least and the greatest value that is
    admitted while everything else stays as it is."""
    found: dict[tuple[str, str, str, tuple[str, ...]], list[tuple[str, str]]] = {}
    varied = sorted(
        {load for _, _, stated in entries for load, d in stated.items()
         if isinstance(d, Ints) and load.type == "int"},
        key=lambda load: load.text,
    )
    for cell in cells:
        here = [entry for entry in entries if _in_cell(entry[1], cell, op)]
        for load in varied:
            for tactic, box, stated in here:
                rest = _rest(stated, box, load)
                group = [e for e in here if _covers(_rest(e[2], e[1], load), rest, op)]
                covered = Ints(())
                for _, other, _ in group:
                    domain = get(other, load, op)
                    assert isinstance(domain, Ints)
                    covered = covered | domain
                missing = Ints.between(covered.low, covered.high) - covered
                if missing:
                    between = str(Ints.between(covered.low, covered.high))
                    ids = tuple(sorted({t.id for t, _, _ in group} | {tactic.id}))
                    places = found.setdefault((load.text, str(missing), between, ids), [])
                    if cell not in places:
                        places.append(cell)
    return [
        {
            "input": name, "missing": missing, "between": between, "tactics": list(ids),
            "phases": list(dict.fromkeys(p for p, _ in places)),
            "graphs": list(dict.fromkeys(g for _, g in places)),
        }
        for (name, missing, between, ids), places in found.items()
    ]


def _rest(stated: dict[Load, Domain], box: Box, load: Load) -> tuple[dict[Load, Domain], Box]:
    top = leader(box, load)
    return {key: domain for key, domain in stated.items() if leader(box, key) != top}, box


def _covers(
    wide: tuple[dict[Load, Domain], Box], narrow: tuple[dict[Load, Domain], Box], op: Op
) -> bool:
    """Whether everything that the narrow box allows of the other inputs, the wide one does."""
    if not (wide[1].literals <= narrow[1].literals and wide[1].equal <= narrow[1].equal):
        return False
    for load, domain in wide[0].items():
        other = narrow[0].get(load, domain_of(load, op))
        if isinstance(domain, Ints) and isinstance(other, Ints):
            if not domain.includes(other):
                return False
        elif not (isinstance(domain, Names) and isinstance(other, Names)):
            return False
        elif not _subset(other, domain):
            return False
    return True


def _subset(a: Names, b: Names) -> bool:
    if a.negated:
        return b.negated and b.names <= a.names
    return all(name in b for name in a.names)
