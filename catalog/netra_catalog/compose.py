"""From a checked document to a Tactic: types, names and offsets that a schema
cannot see.  Every problem of the file is collected before any is reported."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any, TypeVar

from netra_catalog.contract import Expr, Place, Predicate, Scope, parse, predicate, scope
from netra_catalog.errors import NetraError, nearest
from netra_catalog.expr import Apply, Load, nodes
from netra_catalog.op import Op, ScalarArg, TensorArg
from netra_catalog.paths import display
from netra_catalog.tactic import (
    Effects,
    ExactCheck,
    KernelArg,
    Launch,
    Numerics,
    Tactic,
    Workspace,
)
from netra_catalog.yaml_loader import Document, Where, dotted

T = TypeVar("T")

# Ids that a miss may report without any predicate of that name.
RESERVED_IDS = ("op", "args", "overflow")
_UNHASHED = ("maturity", "evidence", "hold")
_SCALARS = {
    "u32": ("int",), "i32": ("int",), "u64": ("int",), "i64": ("int",),
    "f32": ("f32", "float", "int"), "f64": ("f32", "f64", "float", "int"),
}
_RANGES = {"u32": (0, 2**32), "i32": (-(2**31), 2**31), "u64": (0, 2**64), "i64": (-(2**63), 2**63)}


def contract_sha256(data: dict[str, Any]) -> str:
    """Hash of every key except maturity, evidence and hold.

    Canonical form: JSON in UTF-8 without spaces, keys sorted, an absent rank
    written as 0, expressions as text, and the contract as a list of pairs, since
    its order decides which predicate a miss reports.
    """
    kept = {key: value for key, value in data.items() if key not in _UNHASHED}
    kept.setdefault("rank", 0)
    kept["contract"] = list(data["contract"].items())
    kept["workspace"] = {**data["workspace"], "bytes": str(data["workspace"]["bytes"])}
    kept["launches"] = [_launch_text(launch) for launch in data["launches"]]
    text = json.dumps(kept, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _launch_text(launch: dict[str, Any]) -> dict[str, Any]:
    args = [
        {**arg, "value": str(arg["value"])} if "value" in arg else arg for arg in launch["args"]
    ]
    triples = {key: [str(item) for item in launch[key]] for key in ("grid", "block")}
    return {**launch, **triples, "lds": str(launch["lds"]), "args": args}


class Composer:
    def __init__(self, document: Document, op: Op, arch: str, stem: str) -> None:
        self.document, self.op, self.arch, self.stem = document, op, arch, stem
        self.data = document.data
        self.errors: list[NetraError] = []
        self.names = scope(op)
        self.launch_names = scope(op, workspace=True)

    def compose(self) -> Tactic:
        """The tactic, or one NetraError that lists everything wrong."""
        data, document = self.data, self.document
        contract = self._contract()
        launches = tuple(self._launch(i) for i in range(len(data["launches"])))
        self._resources(launches)
        workspace = Workspace(
            self._expr(("workspace", "bytes"), self.names, "int"), data["workspace"]["zeroed_by"]
        )
        effects = self._effects()
        numerics = self._numerics()
        self._stated(contract)
        if self.errors:
            raise NetraError("\n".join(error.message for error in self.errors))
        lines = {dotted(where): mark.line for where, mark in document.values.items()}
        lines |= {dotted(where): mark.line for where, mark in document.keys.items()}
        return Tactic(
            id=f"{self.arch}/{self.stem}", arch=self.arch, stem=self.stem,
            op=self.op.name, definition=self.op,
            oracle_name=data["oracle"]["name"], variant=data["oracle"]["variant"],
            rank=data.get("rank", 0), contract=contract, launches=launches,
            resources=data["resources"], workspace=workspace, effects=effects, numerics=numerics,
            fallback=data["fallback"], hold=data.get("hold"),
            maturity=data.get("maturity", "experiment"), evidence=data.get("evidence"),
            contract_sha256=contract_sha256(data), path=document.path, lines=lines,
        )

    def problem(self, where: Where, message: str, *, key: bool = False, hint: str = "") -> None:
        at = self.document.at(where, key)
        self.errors.append(NetraError(message, where=at, hint=hint))

    def _try(self, make: Callable[[], T], otherwise: T) -> T:
        try:
            return make()
        except NetraError as error:
            self.errors.append(error)
            return otherwise

    # Expressions

    def _place(self, where: Where) -> Place:
        mark = self.document.mark(where)
        column = mark.column + (1 if mark.quoted else 0)
        return Place(display(self.document.path), mark.line, column, dotted(where))

    def _text(self, where: Where) -> str:
        value: Any = self.data
        for part in where:
            value = value[part]
        mark = self.document.mark(where)
        if mark.end_line != mark.line:
            self.problem(where, f"{dotted(where)}: an expression ends where its line ends")
        return str(value)

    def _expr(self, where: Where, names: Scope, want: str) -> Expr:
        place = self._place(where)
        text = self._text(where)
        fallback = parse("0", names, place, "any")
        return self._try(lambda: parse(text, names, place, want), fallback)

    def _contract(self) -> dict[str, Predicate]:
        made: dict[str, Predicate] = {}
        for id in self.data["contract"]:
            where: Where = ("contract", id)
            if id in RESERVED_IDS:
                self.problem(where, f"predicate id '{id}' is reserved for misses", key=True)
            place, text = self._place(where), self._text(where)
            try:
                made[id] = predicate(id, text, self.names, place)
            except NetraError as error:
                self.errors.append(error)
        return made

    def _stated(self, contract: dict[str, Predicate]) -> None:
        """Shape alone is never a complete signature: what the op leaves open, the contract must
        say.  That is the phase, the graph mode and, of every tensor, its type, each extent, its
        strides, its alignment and a layout other than the usual one."""
        if len(contract) < len(self.data["contract"]):
            return  # the predicate that is in error may state it
        read: set[str] = set()
        for entry in contract.values():
            read |= {load.text for load in entry.expr.inputs()}
            read |= {
                f"{node.function} {node.args[0].name}"
                for node in nodes(entry.expr.node)
                if isinstance(node, Apply) and isinstance(node.args[0], Load)
            }
        missing = [name for name in ("phase", "graph") if name not in read]
        for arg in self.op.tensors:
            name = arg.name
            wanted = [f"{name}.dtype", *(f"{name}.shape[{i}]" for i in range(len(arg.dims)))]
            if arg.layout != "row_major":
                wanted.append(f"{name}.layout")
            missing += [text for text in wanted if text not in read]
            strides = {f"{name}.stride({i})" for i in range(len(arg.dims))}
            if f"contiguous {name}" not in read and not strides <= read:
                missing.append(f"contiguous({name}) or every {name}.stride(i)")
            if f"aligned {name}" not in read:
                missing.append(f"aligned({name}, n)")
        if missing:
            self.problem(
                ("contract",), f"no predicate states {', '.join(missing)}", key=True,
                hint="add one predicate a line; the op leaves it open",
            )

    # Launches

    def _launch(self, index: int) -> Launch:
        launch, where = self.data["launches"][index], ("launches", index)
        grid = [self._expr((*where, "grid", i), self.names, "int") for i in range(3)]
        block = [self._expr((*where, "block", i), self.names, "int") for i in range(3)]
        lds = self._expr((*where, "lds"), self.names, "int")
        args = tuple(self._arg((*where, "args", i), arg) for i, arg in enumerate(launch["args"]))
        self._offsets(where, args)
        return Launch(
            launch["kernel"], (grid[0], grid[1], grid[2]), (block[0], block[1], block[2]), lds, args
        )

    def _arg(self, where: Where, data: dict[str, Any]) -> KernelArg:
        name, kind, offset = data["name"], data["kind"], data["offset"]
        value = None
        if "value" in data:
            value = self._expr((*where, "value"), self.launch_names, "any")
            self._value_kind((*where, "value"), name, kind, value)
        else:
            self._named(where, name, kind)
        arg = KernelArg(name, kind, offset, value)
        if offset % arg.size:
            self.problem(
                (*where, "offset"), f"{name}: offset {offset} is not a multiple of {arg.size}"
            )
        return arg

    def _named(self, where: Where, name: str, kind: str) -> None:
        """An argument without a value is the op's argument of that name."""
        found = self.op.arg(name)
        if found is None:
            close = nearest(name, [arg.name for arg in self.op.args])
            self.problem(
                (*where, "name"), f"op {self.op.name} has no argument '{name}'{close}",
                hint="or add `value:` with an expression",
            )
        elif isinstance(found, TensorArg) != (kind == "ptr"):
            what = "a tensor" if isinstance(found, TensorArg) else f"a scalar {found.kind}"
            self.problem((*where, "kind"), f"{name} is {what}, it cannot be passed as {kind}")
        elif isinstance(found, ScalarArg):
            type = found.kind if found.kind in ("f32", "f64") else "int"
            if type not in _SCALARS[kind]:
                self.problem((*where, "kind"), f"{name} is {found.kind}, it cannot go into {kind}")

    def _value_kind(self, where: Where, name: str, kind: str, value: Expr) -> None:
        if kind == "ptr":
            if value.type not in ("ptr", "tensor") and value.constant != 0:
                self.problem(
                    where, f"{name}: a ptr is a tensor, workspace, either plus an integer, or 0"
                )
            return
        constant = value.constant
        if value.type not in _SCALARS[kind] or (
            value.type == "int" and kind in ("f32", "f64") and constant is None
        ):
            self.problem(where, f"{name}: {value.text} is {value.type}, it cannot go into {kind}")
        elif kind in _RANGES and isinstance(constant, int):
            low, high = _RANGES[kind]
            if not low <= constant < high:
                self.problem(where, f"{name}: {constant} does not fit {kind}")

    def _offsets(self, where: Where, args: tuple[KernelArg, ...]) -> None:
        end, names = 0, set()
        for index, arg in enumerate(args):
            here: Where = (*where, "args", index)
            if arg.name in names:
                self.problem((*here, "name"), f"two arguments are named '{arg.name}'")
            names.add(arg.name)
            if arg.offset < end:
                self.problem(
                    (*here, "offset"),
                    f"{arg.name}: offset {arg.offset} is below {end}, the end of the one before",
                    hint="write the arguments in the order of their offsets",
                )
            end = max(end, arg.offset + arg.size)

    # The rest

    def _resources(self, launches: tuple[Launch, ...]) -> None:
        launched = {launch.kernel for launch in launches}
        for kernel in self.data["resources"]:
            if kernel not in launched:
                close = nearest(kernel, launched)
                self.problem(
                    ("resources", kernel), f"resources: no launch of '{kernel}'{close}", key=True
                )
        for kernel in sorted(launched - self.data["resources"].keys()):
            self.problem(("resources",), f"resources: '{kernel}' is missing", key=True)

    def _effects(self) -> Effects:
        data = self.data["effects"]
        tensors = {arg.name: arg for arg in self.op.tensors}
        for side, roles in (("reads", ("in", "inout")), ("writes", ("out", "inout"))):
            for index, name in enumerate(data[side]):
                where: Where = ("effects", side, index)
                if name == "workspace":
                    continue
                if name not in tensors:
                    close = nearest(name, [*tensors, "workspace"])
                    self.problem(where, f"effects.{side}: no tensor '{name}'{close}")
                elif side == "writes" and tensors[name].role not in roles:
                    self.problem(where, f"effects.writes: the op only reads '{name}'")
            for name, arg in tensors.items():
                if arg.role in roles and name not in data[side]:
                    self.problem(("effects", side), f"effects.{side}: '{name}' is missing")
        commits = data["commits"]
        if isinstance(commits, str):
            commits = [] if commits == "none" else [commits]
        return Effects(tuple(data["reads"]), tuple(data["writes"]), tuple(commits))

    def _numerics(self) -> Numerics:
        data = self.data["numerics"]
        second = None
        if "exact" in data:
            if data["decides"] == "exact":
                self.problem(
                    ("numerics", "exact"), "numerics.exact: `exact` already decides", key=True
                )
            value = self._allowed(("numerics", "exact"), data["exact"])
            second = ExactCheck(data["exact"]["metric"], value)
        value = self._allowed(("numerics",), data)
        relative = float(data.get("relative", 0))
        if relative and data["metric"] != "bound":
            here = ("numerics", "relative")
            self.problem(here, f"numerics.relative: only a bound has one, not {data['metric']}")
        return Numerics(
            data["decides"], data["metric"], value, data["matrix_model"], second, relative
        )

    def _allowed(self, where: Where, data: dict[str, Any]) -> int | float:
        metric, value = data["metric"], data["value"]
        number: int | float = float(value) if isinstance(value, str) else value
        here = (*where, "value")
        if metric == "bitwise" and number != 0:
            self.problem(here, f"{dotted(here)}: bitwise allows 0, not {value}")
        if metric == "ulp" and not isinstance(number, int):
            self.problem(here, f"{dotted(here)}: ulp wants an integer, not {value}")
        return number
