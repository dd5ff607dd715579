"""Captured oracles: what the real implementation answered, with its provenance.

harness/captures/<op>/*.safetensors holds the outputs (`CASE/out/NAME`) and small inputs
(`CASE/in/NAME`); large inputs are made again from the seed. The SHA-256 of every array's bytes
stands in the metadata, so what is compared is what was captured, or an error.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from netra_catalog import paths
from numpy.typing import NDArray

from netra_harness import tensorfile
from netra_harness.case import Case, case_rng
from netra_harness.errors import CaptureError

Array = NDArray[Any]

FORMAT = 2
KEY = "netra"  # the metadata entry that says everything, as JSON
SUM = "netra_sha256"  # of that text


@dataclass(frozen=True)
class ArrayRecord:
    """One array of a case: what it was, and its bytes when they are stored."""

    dtype: str
    shape: tuple[int, ...]
    sha256: str
    stored: Array | None
    metric: str = "bitwise"  # how near an answer to an output must come
    value: Any = 0

    def agrees(self, array: Array) -> bool:
        return self.sha256 == digest(array)


@dataclass(frozen=True)
class CapturedCase:
    """One case of a capture; `label` names the source as reports print it."""

    path: Path
    op: str
    variant: str
    case: str
    label: str
    source: str  # as `--from` takes it
    seed: int
    device: str
    scalars: Mapping[str, int | float]
    inputs: Mapping[str, ArrayRecord]
    outputs: Mapping[str, ArrayRecord]

    @property
    def again(self) -> str:
        """The command that makes this capture anew."""
        return f"netra-harness capture {self.op} --from {self.source} --seed {self.seed}"

    def regenerate(self, oracle: Any, case: Case) -> dict[str, Any]:
        """The captured inputs: stored ones as they are, the others from the seed."""
        made = oracle.inputs(case, case_rng(self.seed, self.op, case.name))
        for name, record in self.inputs.items():
            if record.stored is not None:
                made[name] = record.stored
        self.check_inputs(made)
        return dict(made)

    def check_inputs(self, args: Mapping[str, Any]) -> None:
        """Raises CaptureError unless the arguments are those that were captured."""
        arrays = {k for k, v in args.items() if isinstance(v, np.ndarray)}
        if arrays != set(self.inputs):
            raise self.stale(f"inputs {sorted(self.inputs)}, now {sorted(arrays)}")
        for name, record in self.inputs.items():
            array = args[name]
            form = tensorfile.dtype_name(array.dtype), array.shape
            if form != (record.dtype, record.shape):
                raise self.stale(f"{name} as {record.dtype}{list(record.shape)}, now {form}")
            if not record.agrees(array):
                raise self.stale(
                    f"{name} with SHA-256 {record.sha256[:16]}..., now {digest(array)[:16]}..."
                )
        for name, value in self.scalars.items():
            if args.get(name) != value:
                raise self.stale(f"{name} = {value!r}, now {args.get(name)!r}")

    def stale(self, what: str) -> CaptureError:
        return CaptureError(
            f"the capture is stale for case {self.case}: it was made with {what}",
            where=paths.display(self.path),
            hint=f"re-capture with: {self.again}",
        )


def digest(array: Array) -> str:
    """SHA-256 of the array's bytes in C order."""
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return hashlib.sha256(data.data).hexdigest()


def folder(op: str) -> Path:
    return paths.repo_root() / "harness" / "captures" / op


def captured(op: str, variant: str, case: str) -> list[CapturedCase]:
    """What each capture of the op and variant has for a case of this name."""
    found = []
    for path in sorted(folder(op).glob("*.safetensors")):
        found += [c for c in load(path) if (c.op, c.variant, c.case) == (op, variant, case)]
    return found


def files() -> list[Path]:
    """Every capture of the checkout, by op and name."""
    return sorted((paths.repo_root() / "harness" / "captures").glob("*/*.safetensors"))


def load(path: Path) -> list[CapturedCase]:
    """Every case of a capture file, its stored arrays checked against their digests."""
    return _load(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=32)
def _load(path: Path, _changed: int) -> list[CapturedCase]:
    arrays, metadata = tensorfile.read(path)
    where = paths.display(path)
    try:
        if hashlib.sha256(metadata[KEY].encode()).hexdigest() != metadata[SUM]:
            raise CaptureError("the capture's metadata was changed after it was made", where=where)
        record = json.loads(metadata[KEY])
        if record["format"] != FORMAT:
            raise CaptureError(f"format {record['format']}, want {FORMAT}", where=where)
        cases = [_case(path, record, name, arrays) for name in record["cases"]]
    except (KeyError, TypeError, ValueError) as error:
        raise CaptureError(f"the capture's metadata is damaged ({error!r})", where=where) from None
    listed = {
        f"{c.case}/{side}/{name}"
        for c in cases
        for side, records in (("in", c.inputs), ("out", c.outputs))
        for name, entry in records.items()
        if entry.stored is not None
    }
    if listed != set(arrays):
        odd = sorted(listed ^ set(arrays))[0]
        raise CaptureError(f"{odd} is either listed or stored, but not both", where=where)
    return cases


def _case(
    path: Path, record: Mapping[str, Any], name: str, arrays: Mapping[str, Array]
) -> CapturedCase:
    entry = record["cases"][name]

    def records(side: str, key: str) -> dict[str, ArrayRecord]:
        out = {}
        for arg, form in entry[key].items():
            stored = arrays.get(f"{name}/{side}/{arg}")
            if bool(form["stored"]) != (stored is not None):
                raise ValueError(f"{name}/{side}/{arg}")
            near = (form["metric"], form["value"]) if side == "out" else ("bitwise", 0)
            made = ArrayRecord(
                form["dtype"], tuple(form["shape"]), form["sha256"], stored, *near
            )
            if stored is not None and not made.agrees(stored):
                raise CaptureError(
                    f"{name}/{side}/{arg} does not have the SHA-256 that the file states",
                    where=paths.display(path),
                )
            out[arg] = made
        return out

    source = record["source"]
    version = source["versions"].get(source["name"], "")
    return CapturedCase(
        path=path,
        op=record["op"],
        variant=record["variant"],
        case=name,
        label=f"{source['name']} {version}".strip(),
        source=source["from"],
        seed=int(record["seed"]),
        device=str(source["device"]),
        scalars=entry["scalars"],
        inputs=records("in", "inputs"),
        outputs=records("out", "outputs"),
    )
