"""Reads catalog.bin (docs/catalog-format.md).

A tactic read from it answers what dispatch.py asks of a tactic: its contract, its launches and
what it falls back to.  Its predicates run as programs, and the value of a program is remembered
in the Env, so that a predicate which a thousand tactics share is evaluated once a call.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netra_catalog.env import Env, Overflow, Undefined
from netra_catalog.errors import NetraError
from netra_catalog.format import HEADER, KINDS, MAGIC, MATURITIES, SECTION, SECTIONS, VERSION
from netra_catalog.machine import Machine
from netra_catalog.op import ROLES, SCALAR_KINDS, Op, ScalarArg, TensorArg

if TYPE_CHECKING:
    from netra_catalog.expr import Load
    from netra_catalog.tactic import Launch, Workspace

_MAX_BYTES = 1 << 30


class CompiledExpr:
    """A program; it stands where a parsed expression does."""

    def __init__(self, machine: Machine, start: int, text: str = "") -> None:
        self.machine, self.start, self.text = machine, start, text

    def value(self, env: Env) -> Any:
        memo = env.memo
        if self.start not in memo:
            try:
                memo[self.start] = self.machine.run(self.start, env)
            except (Overflow, Undefined) as error:
                memo[self.start] = error
        found = memo[self.start]
        if isinstance(found, Exception):
            raise found
        return found

    def inputs(self) -> tuple[Load, ...]:
        """What the program reads, each once, in the order of the text."""
        from netra_catalog.decode import inputs_of

        found: dict[Load, None] = {}
        at = self.start
        while (instruction := self.machine.instruction(at))[0] != 0:
            for load in inputs_of(instruction, self.machine.slots):
                found[load] = None
            at += 1
        return tuple(found)

    def __str__(self) -> str:
        return self.text


class CompiledPredicate:
    def __init__(self, id: str, expr: CompiledExpr) -> None:
        self.id, self.expr, self.text = id, expr, expr.text


class CompiledCatalog:
    """The tables.  Everything that an index leads to is checked when it is followed."""

    def __init__(self, data: bytes, name: str = "catalog.bin", root: Path | None = None) -> None:
        self.name, self.root = name, root
        self.data = data
        if len(data) < HEADER.size or data[: len(MAGIC)] != MAGIC:
            self.fail("is no compiled catalog")
        _, version, count, size, digest = HEADER.unpack_from(data)
        if version != VERSION:
            self.fail(f"is version {version}, want {VERSION}")
        if size != len(data) or size > _MAX_BYTES:
            self.fail(f"says that it has {size} bytes and has {len(data)}")
        if hashlib.sha256(data[HEADER.size :]).digest() != digest:
            self.fail("is damaged: its checksum is wrong")
        if count != len(SECTIONS):
            self.fail(f"has {count} sections, want {len(SECTIONS)}")
        self.tables: dict[str, tuple[int, int]] = {}
        for index, (section, (number, record)) in enumerate(SECTIONS.items()):
            if HEADER.size + SECTION.size * (index + 1) > size:
                self.fail("ends within its section table")
            got, offset, rows, width = SECTION.unpack_from(
                data, HEADER.size + SECTION.size * index
            )
            if (got, width) != (number, record.size) or offset % 16:
                self.fail(f"section {index} is not '{section}' as this version has it")
            if offset + rows * width > size:
                self.fail(f"section '{section}' ends beyond the file")
            self.tables[section] = (offset, rows)
        self._strings: dict[int, str] = {}
        self._ops: dict[int, Op] = {}
        self._machines: dict[int, Machine] = {}
        self._predicates: dict[tuple[int, ...], CompiledPredicate] = {}
        self.op_index = {self.row("ops", i)[0]: i for i in range(self.count("ops"))}

    def fail(self, message: str) -> None:
        raise NetraError(
            f"{message}", where=self.name, hint="build it again: netra-catalog build"
        )

    def count(self, section: str) -> int:
        return self.tables[section][1]

    def row(self, section: str, index: int) -> tuple[Any, ...]:
        offset, count = self.tables[section]
        if not 0 <= index < count:
            self.fail(f"entry {index} of '{section}' lies beyond its {count}")
        record = SECTIONS[section][1]
        return record.unpack_from(self.data, offset + index * record.size)

    def rows(self, section: str, first: int, count: int) -> list[tuple[Any, ...]]:
        if first + count > self.count(section):
            self.fail(f"entries {first}..{first + count - 1} of '{section}' lie beyond its end")
        return [self.row(section, i) for i in range(first, first + count)]

    def raw(self, section: str) -> bytes:
        offset, count = self.tables[section]
        return self.data[offset : offset + count * SECTIONS[section][1].size]

    def string(self, index: int) -> str:
        if index not in self._strings:
            offset, length = self.row("strings", index)
            start, size = self.tables["text"]
            if offset + length > size:
                self.fail(f"string {index} lies beyond the text")
            try:
                text = self.data[start + offset : start + offset + length].decode()
            except UnicodeDecodeError:
                self.fail(f"string {index} is not UTF-8")
            self._strings[index] = text
        return self._strings[index]

    def words(self, first: int, count: int) -> tuple[str, ...]:
        return tuple(self.string(index) for (index,) in self.rows("lists", first, count))

    @cached_property
    def ops(self) -> tuple[str, ...]:
        return tuple(self.string(name) for name in self.op_index)

    def op(self, index: int) -> Op:
        if index not in self._ops:
            name, p0, pn, a0, an, _, _, *said = self.row("ops", index)
            try:
                args = tuple(self._arg(fields) for fields in self.rows("op_args", a0, an))
                self._ops[index] = Op(
                    self.string(name), args, self.words(p0, pn), *map(self.string, said)
                )
            except (ValueError, IndexError) as error:
                self.fail(f"op {index}: {error}")
        return self._ops[index]

    def _arg(self, fields: tuple[Any, ...]) -> TensorArg | ScalarArg:
        name, kind, role, given, _, d0, dn, e0, en, layout, doc, default = fields
        if kind == 0:
            dims = tuple(int(d) if d.isdecimal() else d for d in self.words(e0, en))
            return TensorArg(
                self.string(name), self.words(d0, dn), dims, ROLES[role], self.string(layout),
                self.string(doc),
            )
        scalar, value = SCALAR_KINDS[kind - 1], None
        if given:
            (raw,) = self.row("constants", default)
            value = (
                struct.unpack("<d", raw[:8])[0] if scalar in ("f32", "f64")
                else int.from_bytes(raw, "little", signed=True)
            )
        return ScalarArg(self.string(name), scalar, value, self.string(doc))

    @cached_property
    def _code(self) -> bytes:
        return self.raw("code")

    @cached_property
    def _constants(self) -> bytes:
        return self.raw("constants")

    def machine(self, op: int) -> Machine:
        if op not in self._machines:
            slots = [
                (arg.name, 0 if isinstance(arg, TensorArg) else 1 + SCALAR_KINDS.index(arg.kind))
                for arg in self.op(op).args
            ]
            self._machines[op] = Machine(self._code, self._constants, self.string, slots)
        return self._machines[op]

    def predicate(self, op: int, index: int) -> CompiledPredicate:
        id, text, start, _line = self.row("predicates", index)
        key = (op, id, text, start)
        found = self._predicates.get(key)
        if found is None:
            expr = CompiledExpr(self.machine(op), start, self.string(text))
            found = self._predicates[key] = CompiledPredicate(self.string(id), expr)
        return found

    def tactics(self, op: str | None = None) -> list[CompiledTactic]:
        """The tactics of one op, or all, by op, target, rank and id."""
        found: list[CompiledTactic] = []
        for index in range(self.count("ops")):
            name, *_rest = fields = self.row("ops", index)
            if op is None or self.string(name) == op:
                for row in self.rows("tactics", fields[5], fields[6]):
                    if row[2] != index:
                        self.fail(f"a tactic of op {index} names op {row[2]}")
                    found.append(CompiledTactic(self, row))
        return found


class _Contract(Mapping[str, CompiledPredicate]):
    """Predicates, made when they are reached: most tactics decline at one of the first."""

    def __init__(self, catalog: CompiledCatalog, op: int, first: int, count: int) -> None:
        if first + count > catalog.count("predicates"):
            catalog.fail(f"predicates {first}..{first + count - 1} lie beyond the last")
        self.catalog, self.op, self.first, self.count = catalog, op, first, count

    def values(self) -> Any:
        for index in range(self.first, self.first + self.count):
            yield self.catalog.predicate(self.op, index)

    def items(self) -> Any:
        for predicate in self.values():
            yield predicate.id, predicate

    def __iter__(self) -> Iterator[str]:
        return (predicate.id for predicate in self.values())

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, id: str) -> CompiledPredicate:
        for predicate in self.values():
            if predicate.id == id:
                found: CompiledPredicate = predicate
                return found
        raise KeyError(id)


class CompiledTactic:
    """A tactic of catalog.bin: the attributes of tactic.Tactic that dispatching reads."""

    def __init__(self, catalog: CompiledCatalog, row: tuple[Any, ...]) -> None:
        self.catalog, self.row = catalog, row
        text = catalog.string
        self.id, self.arch, self.oracle_name, self.variant = (
            text(row[0]), text(row[1]), text(row[3]), text(row[4])
        )
        self.stem = self.id.rpartition("/")[2]
        self.definition = catalog.op(row[2])
        self.op, self.rank = self.definition.name, row[5]
        if row[6] >= len(MATURITIES):
            catalog.fail(f"{self.id}: maturity {row[6]} is none")
        self.maturity, self.hold = MATURITIES[row[6]], text(row[7]) or None
        self.machine = catalog.machine(row[2])
        self.contract_sha256 = row[32].hex()
        self.oracle_sha256 = row[33].hex()

    @cached_property
    def contract(self) -> Mapping[str, CompiledPredicate]:
        return _Contract(self.catalog, self.row[2], self.row[8], self.row[9])

    def expr(self, start: int, text: str = "") -> CompiledExpr:
        return CompiledExpr(self.machine, start, text or f"program {start}")

    @cached_property
    def launches(self) -> tuple[Launch, ...]:
        from netra_catalog.tactic import KernelArg, Launch

        made: list[Launch] = []
        rows = self.catalog.rows("launches", self.row[10], self.row[11])
        for kernel, *programs, a0, an, size, _ in rows:
            name = self.catalog.string(self.catalog.row("kernels", kernel)[0])
            e: list[Any] = [self.expr(start) for start in programs]
            args: list[KernelArg] = []
            for word, kind, offset, start, _ in self.catalog.rows("args", a0, an):
                if kind >= len(KINDS) or offset + 8 > size + 4 * (kind > 3):
                    self.catalog.fail(f"{self.id}: argument at {offset} does not fit {size} bytes")
                value: Any = self.expr(start)
                args.append(KernelArg(self.catalog.string(word), KINDS[kind], offset, value))
            made.append(Launch(name, (e[0], e[1], e[2]), (e[3], e[4], e[5]), e[6], tuple(args)))
        return tuple(made)

    @cached_property
    def workspace(self) -> Workspace:
        from netra_catalog.tactic import Workspace

        size: Any = self.expr(self.row[12])
        return Workspace(size, self.catalog.string(self.row[13]))

    @property
    def fallback(self) -> Mapping[str, str]:
        words = self.catalog.words(self.row[20], self.row[21])
        return dict(zip(words[::2], words[1::2], strict=True))

    @property
    def kernels(self) -> tuple[str, ...]:
        return tuple(
            self.catalog.string(self.catalog.row("kernels", index)[0])
            for (index,) in self.catalog.rows("lists", self.row[29], self.row[30])
        )

    def where(self, key: str) -> str:
        from netra_catalog.paths import display

        path = Path(self.catalog.string(self.row[26]))
        line = self.row[28] if key == "op" else self.row[27]
        return f"{display(self.catalog.root / path) if self.catalog.root else path}:{line}"


def read(path: Path, root: Path | None = None) -> CompiledCatalog:
    """Reads a file; a missing one is an OSError, a bad one a NetraError."""
    from netra_catalog.paths import display

    with path.open("rb") as file:
        data = file.read(_MAX_BYTES + 1)
    return CompiledCatalog(data, display(path), root)
