"""What the catalog says of a kernel against what its code object says of itself."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from netra_catalog.errors import NetraError, ToolError, nearest
from netra_catalog.paths import display
from netra_catalog.tactic import Launch, Tactic

LDS_LIMIT = {"gfx950": 160 * 1024, "gfx1151": 64 * 1024}
VGPR_LIMIT = {"gfx950": 512, "gfx1151": 256}
SGPR_LIMIT = {"gfx950": 102, "gfx1151": 106}
_BUFFER, _VALUE = "global_buffer", "by_value"


def inspect_object(path: Path) -> dict[str, Any]:
    """`netra-sim inspect` of a code object; one that was seen before is not disassembled again."""
    try:
        image = path.read_bytes()
    except OSError as error:
        raise ToolError(
            f"{display(path)} cannot be read: {error.strerror}", hint="build it: make"
        ) from None
    return copy.deepcopy(_inspected(image, str(path)))


@lru_cache(maxsize=256)
def _inspected(image: bytes, name: str) -> dict[str, Any]:
    from netra_sim.library import inspect_bytes

    return inspect_bytes(image, name)


class Objects:
    """The code objects of a checkout, each read once, against build/objects.json."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.manifest_path = root / "build" / "objects.json"
        self._read: dict[Path, dict[str, Any] | NetraError] = {}
        try:
            self.manifest: dict[str, str] = json.loads(self.manifest_path.read_text())
        except (OSError, ValueError):
            self.manifest = {}

    def problems(self, tactic: Tactic) -> Iterator[str]:
        """Everything in which a tactic and its objects differ; both files are named."""
        for index, launch in enumerate(tactic.launches):
            where = tactic.where(f"launches[{index}].kernel")
            path = self.root / "build" / tactic.arch / f"{launch.kernel}.co"
            shown = display(path)
            if not path.is_file():
                yield _message(f"{shown} does not exist", where, f"type: make {tactic.arch}")
                continue
            found = self._object(path)
            if isinstance(found, NetraError):
                yield _message(f"{shown} cannot be read: {found.message}", where,
                               f"type: make {tactic.arch}")
                continue
            yield from self._hash(tactic, launch, path, where)
            if found["arch"] != tactic.arch:
                yield _message(f"{shown} is built for {found['arch']}, not {tactic.arch}", where,
                               f"type: make {tactic.arch}")
            kernels = {kernel["name"]: kernel for kernel in found["kernels"]}
            if launch.kernel not in kernels:
                close = nearest(launch.kernel, kernels)
                yield _message(f"{shown} has no symbol '{launch.kernel}'{close}", where,
                               "the symbol of a kernel is the stem of its file")
                continue
            yield from _arguments(tactic, index, launch, kernels[launch.kernel], shown)
            yield from _resources(tactic, launch.kernel, kernels[launch.kernel], shown)

    def _hash(self, tactic: Tactic, launch: Launch, path: Path, where: str) -> Iterator[str]:
        want = self.manifest.get(f"{tactic.arch}/{launch.kernel}")
        got = hashlib.sha256(path.read_bytes()).hexdigest()
        if want != got:
            yield _message(
                f"{display(path)} has SHA-256 {got[:16]}..., {display(self.manifest_path)} says "
                f"{want[:16] + '...' if want else 'nothing of it'}", where,
                f"the object is not what was built last: make {tactic.arch}",
            )

    def _object(self, path: Path) -> dict[str, Any] | NetraError:
        if path not in self._read:
            try:
                self._read[path] = inspect_object(path)
            except NetraError as error:
                self._read[path] = error
        return self._read[path]


def _message(text: str, where: str, hint: str) -> str:
    return str(NetraError(text, where=where, hint=hint).message)


def _arguments(
    tactic: Tactic, index: int, launch: Launch, kernel: dict[str, Any], shown: str
) -> Iterator[str]:
    """The kernarg block, argument by argument."""
    theirs = {arg["offset"]: arg for arg in kernel["args"] if not arg["kind"].startswith("hidden")}
    for i, arg in enumerate(launch.args):
        where = tactic.where(f"launches[{index}].args[{i}]")
        other = theirs.pop(arg.offset, None)
        text = f"{arg.name}, {arg.kind} at offset {arg.offset}"
        if other is None:
            near = next((o["offset"] for o in kernel["args"] if o["name"] == arg.name), None)
            hint = "" if near is None else f"write offset: {near}"
            yield _message(f"{shown} has no argument for {text}", where,
                           hint or "remove the argument, or add it to the kernel's metadata")
            continue
        kind = _BUFFER if arg.kind == "ptr" else _VALUE
        if (other["name"], other["size"], other["kind"]) != (arg.name, arg.size, kind):
            yield _message(
                f"{text} is {other['name']}, {other['kind']} of {other['size']} bytes in {shown}",
                where, "make the two agree: name, kind and size",
            )
    for other in theirs.values():
        yield _message(
            f"{launch.kernel}: no argument for {other['name']}, {other['size']} bytes at offset "
            f"{other['offset']} of {shown}", tactic.where(f"launches[{index}].args"),
            f"add {{name: {other['name']}, kind: ..., offset: {other['offset']}}}",
        )
    if launch.kernarg_size != kernel["kernarg"]:
        yield _message(
            f"{launch.kernel}: the arguments cover {launch.kernarg_size} bytes, {shown} takes "
            f"{kernel['kernarg']}", tactic.where(f"launches[{index}].args"),
            "list every argument of the kernel",
        )


def _resources(
    tactic: Tactic, name: str, kernel: dict[str, Any], shown: str
) -> Iterator[str]:
    where = tactic.where(f"resources.{name}")
    stated = tactic.resources[name]
    real = {
        **{key: kernel[key]["declared"] for key in ("vgpr", "agpr", "sgpr")},
        "lds": kernel["lds"], "scratch": kernel["scratch"],
    }
    for key, value in real.items():
        if stated[key] != value:
            yield _message(f"resources.{name}: {key} is {stated[key]}, {shown} has {value}",
                           where, f"write {key}: {value}")
    limits = {"vgpr": VGPR_LIMIT, "sgpr": SGPR_LIMIT, "lds": LDS_LIMIT}
    for key, table in limits.items():
        if stated[key] > table[tactic.arch]:
            yield _message(
                f"resources.{name}: {key} {stated[key]} is more than the {table[tactic.arch]} of "
                f"{tactic.arch}", where, "make the kernel smaller",
            )
