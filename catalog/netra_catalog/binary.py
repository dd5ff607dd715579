"""Writes catalog.bin, the compiled catalog (docs/catalog-format.md is its description)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from netra_catalog.errors import NetraError
from netra_catalog.expr import Load, Node
from netra_catalog.format import HEADER, KINDS, MAGIC, MATURITIES, SECTION, SECTIONS, VERSION
from netra_catalog.op import ROLES, SCALAR_KINDS, Op, TensorArg
from netra_catalog.program import Instruction, Pools, compile_node
from netra_catalog.tactic import KernelArg, Launch, Tactic


@dataclass(frozen=True)
class Object:
    """What the code object of a kernel says of itself; hashes are hex."""

    co_sha256: str = "00" * 32
    kernel_sha256: str = "00" * 32
    kernarg: int = 0
    wave_size: int = 0
    max_workgroup: int = 0
    version: int = 0


class Writer:
    """Collects sections.  Equal strings, constants and programs are stored once: a reader may
    therefore remember the value of a program for the length of a call."""

    def __init__(self) -> None:
        self.pools = Pools()
        self.rows: dict[str, list[bytes]] = {name: [] for name in SECTIONS}
        self.text = bytearray()
        self._strings: dict[str, int] = {}
        self._programs: dict[tuple[Instruction, ...], int] = {}
        self._lists: dict[tuple[int, ...], int] = {}
        self._ops: dict[str, int] = {}
        self._kernels: dict[tuple[str, str], int] = {}
        self.string("")

    def string(self, text: str) -> int:
        if text not in self._strings:
            raw = text.encode()
            self._strings[text] = self.put("strings", len(self.text), len(raw))
            self.text += raw
        return self._strings[text]

    def put(self, section: str, *fields: object) -> int:
        rows = self.rows[section]
        rows.append(SECTIONS[section][1].pack(*fields))
        return len(rows) - 1

    def list(self, items: Iterable[int]) -> tuple[int, int]:
        key = tuple(items)
        if key not in self._lists:
            self._lists[key] = len(self.rows["lists"])
            for item in key:
                self.put("lists", item)
        return self._lists[key], len(key)

    def words(self, texts: Iterable[str]) -> tuple[int, int]:
        return self.list([self.string(text) for text in texts])

    def program(self, node: Node, slots: Mapping[str, int]) -> int:
        code = compile_node(node, slots, self.pools, self.string)
        if code not in self._programs:
            self._programs[code] = len(self.rows["code"])
            for instruction in code:
                self.put("code", *instruction)
        return self._programs[code]

    # Ops

    def op(self, op: Op, first: int, count: int) -> int:
        start = len(self.rows["op_args"])
        for arg in op.args:
            if isinstance(arg, TensorArg):
                dtypes, dims = self.words(arg.dtypes), self.words(map(str, arg.dims))
                head = (0, ROLES.index(arg.role), 0, 0)
                tail = (*dtypes, *dims, self.string(arg.layout), self.string(arg.doc), 0)
            else:
                given = arg.default is not None
                default = 0
                if arg.default is not None:
                    real = arg.kind in ("f32", "f64")
                    default = (
                        self.pools.real(float(arg.default)) if real
                        else self.pools.run([int(arg.default)])
                    )
                head = (1 + SCALAR_KINDS.index(arg.kind), 0, int(given), 0)
                tail = (0, 0, 0, 0, 0, self.string(arg.doc), default)
            self.put("op_args", self.string(arg.name), *head, *tail)
        said = [self.string(t) for t in (op.nan, op.ties, op.padding, op.sentinels, op.empty,
                                         op.doc)]
        return self.put(
            "ops", self.string(op.name), *self.words(op.phases), start, len(op.args), first,
            count, *said,
        )

    # Tactics

    def tactic(
        self, tactic: Tactic, op: int, root: Path, objects: Callable[[str, str], Object]
    ) -> None:
        slots = {arg.name: slot for slot, arg in enumerate(tactic.definition.args)}
        predicates = [
            (self.string(id), self.string(p.text), self.program(p.expr.node, slots),
             tactic.lines.get(f"contract.{id}", 1))
            for id, p in tactic.contract.items()
        ]
        first_predicate = len(self.rows["predicates"])
        for fields in predicates:
            self.put("predicates", *fields)
        kernels = {
            name: self.kernel(tactic.arch, name, tactic.resources[name], objects)
            for name in tactic.kernels
        }
        launches = [self._launch(tactic, i, slots, kernels) for i in range(len(tactic.launches))]
        first_launch = len(self.rows["launches"])
        for launch in launches:
            self.put("launches", *launch)
        fallback = self.words(part for pair in tactic.fallback.items() for part in pair)
        effects, numerics = tactic.effects, tactic.numerics
        file = tactic.path.resolve().relative_to(root.resolve())
        oracle = oracle_sha256(tactic)
        self.put(
            "tactics",
            self.string(tactic.id), self.string(tactic.arch), op, self.string(tactic.oracle_name),
            self.string(tactic.variant), tactic.rank, MATURITIES.index(tactic.maturity),
            self.string(tactic.hold or ""), first_predicate, len(predicates),
            first_launch, len(launches),
            self.program(tactic.workspace.bytes.node, slots),
            self.string(tactic.workspace.zeroed_by),
            *self.words(effects.reads), *self.words(effects.writes), *self.words(effects.commits),
            *fallback, self.string(numerics.decides), self.string(numerics.metric),
            self.string(repr(numerics.value)), self.string(numerics.matrix_model),
            self.string(str(file)), tactic.lines.get("contract", 1), tactic.lines.get("op", 1),
            *self.list(kernels.values()), 0,
            bytes.fromhex(tactic.contract_sha256), bytes.fromhex(oracle),
        )

    def kernel(
        self, arch: str, name: str, resources: Mapping[str, int],
        objects: Callable[[str, str], Object],
    ) -> int:
        if (arch, name) not in self._kernels:
            found = objects(arch, name)
            self._kernels[arch, name] = self.put(
                "kernels", self.string(name), self.string(arch),
                *(resources[key] for key in ("vgpr", "agpr", "sgpr", "lds", "scratch")),
                found.kernarg, found.wave_size, found.max_workgroup, found.version, 0,
                bytes.fromhex(found.co_sha256), bytes.fromhex(found.kernel_sha256),
            )
        return self._kernels[arch, name]

    def _launch(
        self, tactic: Tactic, index: int, slots: Mapping[str, int], kernels: Mapping[str, int]
    ) -> tuple[int, ...]:
        launch: Launch = tactic.launches[index]
        programs = [self.program(e.node, slots) for e in (*launch.grid, *launch.block, launch.lds)]
        rows = [
            (self.string(arg.name), KINDS.index(arg.kind), arg.offset,
             self.program(argument_node(tactic.definition, arg), slots),
             tactic.lines.get(f"launches[{index}].args[{i}]", 1))
            for i, arg in enumerate(launch.args)
        ]
        first = len(self.rows["args"])
        for row in rows:
            self.put("args", *row)
        line = tactic.lines.get(f"launches[{index}]", 1)
        return (kernels[launch.kernel], *programs, first, len(rows), launch.kernarg_size, line)

    def image(self) -> bytes:
        """The file: header, section table, sections at multiples of 16."""
        data = {name: b"".join(rows) for name, rows in self.rows.items()}
        data["text"] = bytes(self.text)
        data["constants"] = b"".join(self.pools.constants)
        offset = HEADER.size + SECTION.size * len(SECTIONS)
        table, body = b"", b""
        for name, (number, record) in SECTIONS.items():
            start = -(-(offset + len(body)) // 16) * 16
            body += bytes(start - offset - len(body)) + data[name]
            table += SECTION.pack(number, start, len(data[name]) // record.size, record.size)
        rest = table + body
        return HEADER.pack(
            MAGIC, VERSION, len(SECTIONS), HEADER.size + len(rest), hashlib.sha256(rest).digest()
        ) + rest


def argument_node(op: Op, arg: KernelArg) -> Node:
    """What a kernel argument is computed from, written out or not."""
    if arg.value is not None:
        return arg.value.node
    given = op.arg(arg.name)
    if isinstance(given, TensorArg):
        return Load("tensor", arg.name)
    kind = given.kind if given else "int"
    return Load(kind if kind in ("f32", "f64") else "int", arg.name)


def oracle_sha256(tactic: Tactic) -> str:
    """The SHA-256 of the oracle's module."""
    from netra_catalog.definition import oracle_dir

    path = oracle_dir(tactic.root) / f"{tactic.oracle_name}.py"
    return hashlib.sha256(path.read_bytes()).hexdigest()


def compile_catalog(
    tactics: Sequence[Tactic], root: Path,
    objects: Callable[[str, str], Object] = lambda arch, kernel: Object(),
) -> bytes:
    """The bytes of catalog.bin.  Tactics are ordered by op, target, rank and id; the same
    catalog and objects give the same bytes anywhere."""
    writer = Writer()
    ordered = sorted(tactics, key=lambda t: (t.op, t.arch, t.rank, t.id))
    ops: dict[str, list[Tactic]] = {}
    for tactic in ordered:
        ops.setdefault(tactic.op, []).append(tactic)
    first = 0
    for name, mine in ops.items():
        odd = next((t for t in mine if t.definition != mine[0].definition), None)
        if odd:
            raise NetraError(
                f"op {name} is defined by the oracles '{odd.oracle_name}' and "
                f"'{mine[0].oracle_name}', differently", where=odd.where("oracle.name"),
                hint="let one module define the op, with a variant for each way",
            )
        if len(mine[0].definition.args) > 255:
            raise NetraError(f"op {name} has more than 255 arguments", where=mine[0].where("op"))
        index = writer.op(mine[0].definition, first, len(mine))
        for tactic in mine:
            writer.tactic(tactic, index, root, objects)
        first += len(mine)
    return writer.image()
