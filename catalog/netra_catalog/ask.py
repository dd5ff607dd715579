"""Builds a call from `key=value` words, for `netra-catalog why`.

    logits=f32[16,248320]   a tensor; an extent may be the name of a dimension
    logits.stride=1,16      also .ptr .extent .layout .dtype .shape
    rows=9                  a dimension of the op, or a scalar argument
    arch=gfx950 phase=decode graph=capture cu_count=256

What is left out is assumed where only one thing can be meant: a tensor's shape
from the op's dimensions, its type when the op allows one, dense strides, an
address that is a multiple of 4096, the op's layout, the first phase, eager.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from netra_catalog.call import Call, Tensor, dense_strides
from netra_catalog.dtypes import DTYPES, itemsize
from netra_catalog.env import Env, Overflow, Undefined
from netra_catalog.errors import NetraError, UsageError, nearest
from netra_catalog.op import FUNCTIONS, GRAPHS, PHASES, SIGNATURE, Op, ScalarArg, TensorArg

_CU_COUNT = {"gfx950": 256, "gfx1151": 40}
_FIELDS = ("stride", "ptr", "extent", "layout", "dtype", "shape")
_TENSOR = re.compile(r"([a-z][a-z0-9]*)?\[([^\[\]]*)\]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FIRST_PTR = 0x7F00_0000_0000


@dataclass
class Question:
    """What the words say, before anything is assumed."""

    op: Op
    signature: dict[str, str] = field(default_factory=dict)
    dims: dict[str, int] = field(default_factory=dict)
    scalars: dict[str, int | float] = field(default_factory=dict)
    tensors: dict[str, dict[str, str]] = field(default_factory=dict)

    def call(self, arch: str) -> Call:
        """The complete call on one target."""
        given = self.signature
        args: dict[str, Tensor | int | float] = {}
        address = _FIRST_PTR
        self._learn_dims()
        for arg in self.op.args:
            if isinstance(arg, TensorArg):
                tensor = self._tensor(arg, address)
                args[arg.name] = tensor
                address += -(-max(tensor.extent, 1) // 4096) * 4096
            elif arg.name in self.scalars:
                args[arg.name] = self.scalars[arg.name]
            elif arg.default is None:
                raise UsageError(f"{arg.name} is not known", hint=f"add {arg.name}=NUMBER")
        count = given.get("cu_count", str(_CU_COUNT.get(arch, 1)))
        return Call(
            self.op.name, arch, given.get("phase", self.op.phases[0]),
            given.get("graph", "eager"), _integer("cu_count", count), args,
        )

    def assumed(self, call: Call) -> list[str]:
        """What the words left open and the call now says, apart from shapes."""
        fields = {"phase": call.phase, "graph": call.graph, "cu_count": call.cu_count}
        found = [f"{key}={value}" for key, value in fields.items() if key not in self.signature]
        for name, value in call.args.items():
            given = self.tensors.get(name, {})
            if isinstance(value, Tensor) and value.layout and "layout" not in given:
                found.append(f"{name}.layout={value.layout}")
        return found

    def _learn_dims(self) -> None:
        """Shapes that were given say what the op's dimensions are."""
        for arg in self.op.tensors:
            texts = self._shape_texts(arg)
            for dim, text in zip(arg.dims, texts or (), strict=False):
                if isinstance(dim, str) and _NAME.fullmatch(dim) and text not in self.dims:
                    self.dims.setdefault(dim, _integer(arg.name, text))

    def _shape_texts(self, arg: TensorArg) -> list[str] | None:
        text = self.tensors.get(arg.name, {}).get("shape")
        if text is None:
            return None
        return [part.strip() for part in text.split(",")] if text.strip() else []

    def _tensor(self, arg: TensorArg, address: int) -> Tensor:
        given = self.tensors.get(arg.name, {})
        dtype = given.get("dtype") or (arg.dtypes[0] if len(arg.dtypes) == 1 else "")
        if not dtype:
            allowed = ", ".join(arg.dtypes)
            raise UsageError(
                f"the type of {arg.name} is not known: the op allows {allowed}",
                hint=f"add {arg.name}.dtype={arg.dtypes[0]}",
            )
        texts = self._shape_texts(arg)
        if texts is None:
            shape = tuple(self._extent(arg, dim) for dim in arg.dims)
        else:
            shape = tuple(
                self.dims[text] if text in self.dims else _integer(arg.name, text)
                for text in texts
            )
        strides = dense_strides(shape)
        if "stride" in given:
            strides = tuple(_integer(f"{arg.name}.stride", s) for s in given["stride"].split(","))
        if len(strides) != len(shape):
            raise UsageError(
                f"{arg.name} has {len(shape)} dimensions and {len(strides)} strides"
            )
        ptr = _integer(f"{arg.name}.ptr", given["ptr"]) if "ptr" in given else address
        tensor = Tensor(ptr, dtype, shape, strides, 0, given.get("layout", arg.layout))
        extent = max(0, tensor.max_byte_offset + 1)
        if "extent" in given:
            extent = _integer(f"{arg.name}.extent", given["extent"])
        return Tensor(ptr, dtype, shape, strides, extent, tensor.layout)

    def _extent(self, arg: TensorArg, dim: str | int) -> int:
        if isinstance(dim, int):
            return dim
        if dim in self.dims:
            return self.dims[dim]
        from netra_catalog.contract import Place, int_scope, parse  # not for a plain name

        names = set(_NAME.findall(dim)) - set(FUNCTIONS)
        missing = sorted(names - self.dims.keys())
        if missing:
            dims = ",".join(map(str, arg.dims))
            raise UsageError(
                f"the shape of {arg.name} is not known: {', '.join(missing)} is missing",
                hint=f"add {' '.join(f'{name}=N' for name in missing)}, "
                f"or {arg.name}={arg.dtypes[0]}[{dims}] with numbers",
            )
        place = Place(f"OP {self.op.name}", label=arg.name)
        call = Call("", "", "", "", 0, {name: self.dims[name] for name in names})
        try:
            value = parse(dim, int_scope(names), place, "int").value(Env(call, {}))
        except (Overflow, Undefined) as error:
            raise NetraError(f"{arg.name}: {dim}: {error}", where=str(place)) from None
        assert isinstance(value, int)
        return value


def read_question(op: Op, words: Sequence[str]) -> Question:
    """Sorts the words by what they name; an unknown name is a usage error."""
    question = Question(op)
    dims = {
        name
        for arg in op.tensors
        for dim in arg.dims
        if isinstance(dim, str)
        for name in _NAME.findall(dim)
        if name not in FUNCTIONS
    }
    seen: set[str] = set()
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not value:
            raise UsageError(f"'{word}' is not key=value", hint="for example rows=9")
        if key in seen:
            raise UsageError(f"'{key}' is given twice")
        seen.add(key)
        name, _, part = key.partition(".")
        arg = op.arg(name)
        if isinstance(arg, TensorArg):
            _read_tensor(question, arg, part, value)
        elif key in SIGNATURE:
            question.signature[key] = _word(key, value)
        elif isinstance(arg, ScalarArg) and not part:
            question.scalars[key] = _number(arg, value)
            if key in dims:
                question.dims[key] = _integer(key, value)
        elif key in dims:
            question.dims[key] = _integer(key, value)
        else:
            valid = [*SIGNATURE, *(a.name for a in op.args), *dims]
            raise UsageError(f"{op.name} has no '{key}'{nearest(key, valid)}")
    return question


def _read_tensor(question: Question, arg: TensorArg, part: str, value: str) -> None:
    given = question.tensors.setdefault(arg.name, {})
    if part:
        if part not in _FIELDS:
            raise UsageError(f"a tensor has no '.{part}'{nearest(part, _FIELDS)}")
        given[part] = value.strip("()[]")
    else:
        found = _TENSOR.fullmatch(value)
        if not found:
            dims = ",".join(map(str, arg.dims))
            raise UsageError(
                f"{arg.name}={value} is not TYPE[SHAPE]", hint=f"{arg.name}={arg.dtypes[0]}[{dims}]"
            )
        if found.group(1):
            given["dtype"] = found.group(1)
        given["shape"] = found.group(2)
    if "dtype" in given and given["dtype"] not in DTYPES:
        raise UsageError(f"unknown dtype '{given['dtype']}'{nearest(given['dtype'], DTYPES)}")
    itemsize(given.get("dtype", "u8"))


def _word(key: str, value: str) -> str:
    """An unknown phase or graph mode is a typing mistake; an unknown target is a
    fair question, and no tactic takes it."""
    valid = {"phase": PHASES, "graph": GRAPHS}.get(key)
    if valid and value not in valid:
        raise UsageError(f"{key} is never '{value}'{nearest(value, valid)}")
    return value


def _integer(key: str, text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise UsageError(f"{key}: '{text}' is not an integer") from None


def _number(arg: ScalarArg, text: str) -> int | float:
    if arg.kind not in ("f32", "f64"):
        return _integer(arg.name, text)
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{arg.name}: '{text}' is not a number") from None
