"""Makes captures: asks a real implementation and writes down what it answered."""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import json
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netra_harness import captures, registry, tensorfile
from netra_harness.case import Case, case_rng
from netra_harness.compare import compare
from netra_harness.errors import CaptureError, ToolError, UsageError

Array = NDArray[Any]
Reference = Callable[..., Mapping[str, Array]]

STORE_BELOW = 4096  # bytes: an input up to this size is stored, a larger one made again


@dataclass
class Summary:
    """What one capture holds, and how far the oracles agree with it."""

    path: Path
    op: str
    variant: str
    label: str
    seed: int
    cases: int = 0
    bytes: int = 0
    elements: int = 0
    differ: dict[str, int] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)

    @property
    def agreed(self) -> bool:
        return not any(self.differ.values())

    def json(self) -> dict[str, Any]:
        return {
            "path": str(self.path), "op": self.op, "variant": self.variant, "source": self.label,
            "seed": self.seed, "cases": self.cases, "bytes": self.bytes,
            "elements": self.elements, "differ": self.differ, "differences": self.texts,
        }  # fmt: skip


def reference(oracle_name: str, source: str) -> tuple[Reference, str]:
    """The function behind `--from torch` or `--from MODULE:FUNCTION`, and its full name."""
    if ":" in source:
        module_name, _, function = source.partition(":")
    else:
        module_name, function = f"netra_harness.references.{oracle_name}_{source}", "reference"
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name == module_name or module_name.startswith(f"{error.name}."):
            raise UsageError(
                f"there is no reference '{source}' for {oracle_name} (no module {module_name})",
                hint=f"write it: {module_name.replace('.', '/')}.py with {function}(variant, ...)",
            ) from None
        raise ToolError(
            f"the reference '{source}' needs the package {error.name}",
            hint="install it; PyTorch comes with: pip install -e '.[capture]'",
        ) from None
    found = getattr(module, function, None)
    if not callable(found):
        raise UsageError(f"{module_name} has no function {function}")
    return found, f"{module_name}:{function}"


def capture(
    op: str, source: str, seed: int, case_set: str = "quick", variant: str | None = None
) -> list[Summary]:
    """Captures every variant (or one) of an op; each becomes one file."""
    name, oracle = registry.find(op)
    function, full_name = reference(name, source)
    variants = [variant] if variant else _variants(oracle)
    return [_capture(name, oracle, function, full_name, source, v, seed, case_set)
            for v in variants]  # fmt: skip


def _variants(oracle: ModuleType) -> list[str]:
    """The variants an oracle names in VARIANTS; the rest have one, "default"."""
    return list(getattr(oracle, "VARIANTS", ("default",)))


def _capture(
    name: str,
    oracle: ModuleType,
    function: Reference,
    full_name: str,
    source: str,
    variant: str,
    seed: int,
    case_set: str,
) -> Summary:
    versions = _versions(full_name)
    short = source.replace(":", ".")
    path = captures.folder(oracle.OP.name) / f"{short}-{variant}.safetensors"
    label = f"{short} {versions.get(short, '')}".strip()
    summary = Summary(path, oracle.OP.name, variant, label, seed)
    arrays: dict[str, Array] = {}
    cases: dict[str, Any] = {}
    for case in oracle.cases(case_set, variant):
        args = oracle.inputs(case, case_rng(seed, oracle.OP.name, case.name))
        answer = {k: np.asarray(v) for k, v in function(variant, **_copies(args)).items()}
        _check_answer(oracle, case, answer, full_name)
        cases[case.name] = _record(case, args, answer, arrays)
        _agreement(summary, oracle, variant, case, args, answer)
        summary.cases += 1
    record = {
        "format": captures.FORMAT,
        "op": oracle.OP.name,
        "oracle": name,
        "variant": variant,
        "seed": seed,
        "case_set": case_set,
        "metric": "bitwise",
        "value": 0,
        "source": {
            "name": short,
            "from": source,
            "function": full_name,
            "versions": versions,
            "device": "cpu",
            "machine": platform.machine(),
        },
        "oracle_sha256": _file_digest(oracle),
        "cases": cases,
    }
    text = json.dumps(record, separators=(",", ":"), sort_keys=True)
    total = hashlib.sha256(text.encode()).hexdigest()
    tensorfile.write(path, arrays, {captures.KEY: text, captures.SUM: total})
    captures.load(path)  # what cannot be read back is no capture
    summary.bytes = path.stat().st_size
    return summary


def _record(
    case: Case, args: Mapping[str, Any], answer: Mapping[str, Array], arrays: dict[str, Array]
) -> dict[str, Any]:
    inputs: dict[str, Any] = {}
    scalars: dict[str, Any] = {}
    for name, value in args.items():
        if not isinstance(value, np.ndarray):
            scalars[name] = value.item() if isinstance(value, np.generic) else value
            continue
        small = value.nbytes <= STORE_BELOW
        inputs[name] = _form(value, small)
        if small:
            arrays[f"{case.name}/in/{name}"] = value
    outputs = {}
    for name, value in answer.items():
        outputs[name] = _form(value, True)
        arrays[f"{case.name}/out/{name}"] = value
    return {"params": dict(case.params), "scalars": scalars, "inputs": inputs, "outputs": outputs}


def _form(array: Array, stored: bool) -> dict[str, Any]:
    return {
        "dtype": tensorfile.dtype_name(array.dtype),
        "shape": list(array.shape),
        "sha256": captures.digest(array),
        "stored": stored,
    }


def _check_answer(
    oracle: ModuleType, case: Case, answer: Mapping[str, Array], full_name: str
) -> None:
    for name, (shape, dtype) in oracle.outputs(case).items():
        got = answer.get(name)
        form = None if got is None else (got.shape, tensorfile.dtype_name(got.dtype))
        if form != (tuple(shape), dtype):
            raise CaptureError(
                f"{full_name}, case {case.name}: {name} should be {dtype}{list(shape)}, is {form}"
            )


def _agreement(
    summary: Summary,
    oracle: ModuleType,
    variant: str,
    case: Case,
    args: Mapping[str, Any],
    answer: Mapping[str, Array],
) -> None:
    summary.elements += sum(array.size for array in answer.values())
    for kind in ("deployed", "exact"):
        ours = getattr(oracle, kind)(variant, **_copies(args))
        for name, array in answer.items():
            wide = ours[name].dtype != array.dtype  # then: is the answer correctly rounded?
            metric, value = ("ulp", 0.5) if wide else ("bitwise", 0)
            verdict = compare(name, array, ours[name], metric, value, against=f"the {kind} oracle")
            missed = verdict.total if verdict.error else verdict.count
            summary.differ[kind] = summary.differ.get(kind, 0) + missed
            if not verdict.passed:
                summary.texts.append(f"{case.name}: {summary.label}'s {verdict.text()}")


def _copies(args: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in args.items()}


def _versions(full_name: str) -> dict[str, str]:
    """Versions of what took part; only packages that were imported or always matter."""
    import sys

    out = {"python": platform.python_version()}
    for package in ("numpy", "ml_dtypes", "torch", "triton", "sglang", "vllm", "aiter"):
        module = sys.modules.get(package)
        if module is not None:
            out[package] = str(getattr(module, "__version__", "unknown"))
    root = full_name.split(":")[0].split(".")[0]
    if root != "netra_harness":
        try:
            out[root] = importlib.metadata.version(root)
        except importlib.metadata.PackageNotFoundError:
            out[root] = "unknown"
    return out


def _file_digest(module: ModuleType) -> str:
    return hashlib.sha256(Path(str(module.__file__)).read_bytes()).hexdigest()
