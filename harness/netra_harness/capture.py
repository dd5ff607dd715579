"""Makes captures: asks a real implementation and writes down what it answered."""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import json
import platform
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from netra_harness import captures, registry, tensorfile
from netra_harness.agreement import Answer, Counts, copies, count
from netra_harness.case import Case, case_rng
from netra_harness.errors import CaptureError, ToolError, UsageError

Array = NDArray[Any]
Reference = Callable[..., Mapping[str, Array]]

STORE_BELOW = 4096  # bytes: an input up to this size is stored, a larger one made again


@dataclass(frozen=True)
class Source:
    """A real implementation, as its module describes it.

    `reference(variant, **inputs)` answers with the outputs by name.  Beside it the module may have
    VARIANTS (those it can answer for; all, when absent), METRICS (by output or `variant.output`:
    how near `deployed` must come; bitwise, when absent), LEFT_OUT (a pattern of case names, or
    `variant:pattern` -> why such cases are not asked) and `device()`, the name of what ran it.
    """

    asked: str  # as `--from` takes it
    full_name: str
    function: Reference
    variants: tuple[str, ...] | None
    metrics: Mapping[str, tuple[str, Any]]
    left_out: Mapping[str, str]
    device: str

    def metric(self, variant: str, output: str) -> tuple[str, Any]:
        for key in (f"{variant}.{output}", output):
            if key in self.metrics:
                return self.metrics[key]
        return ("bitwise", 0)

    def why_left_out(self, variant: str, case: str) -> str | None:
        for pattern, why in self.left_out.items():
            if fnmatchcase(case, pattern) or fnmatchcase(f"{variant}:{case}", pattern):
                return why
        return None


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
    counts: Counts = field(default_factory=Counts)
    left_out: dict[str, str] = field(default_factory=dict)

    def json(self) -> dict[str, Any]:
        return {
            "path": str(self.path), "op": self.op, "variant": self.variant, "source": self.label,
            "seed": self.seed, "cases": self.cases, "bytes": self.bytes,
            "left_out": self.left_out, **self.counts.json(),
        }  # fmt: skip


def source(oracle_name: str, asked: str) -> Source:
    """What `--from torch` or `--from MODULE:FUNCTION` means for an op.

    Raises UsageError when there is no such module or function, ToolError when it needs a package
    or a device that is not there.
    """
    if ":" in asked:
        module_name, _, function = asked.partition(":")
    else:
        module_name, function = f"netra_harness.references.{oracle_name}_{asked}", "reference"
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name == module_name or module_name.startswith(f"{error.name}."):
            raise UsageError(
                f"there is no reference '{asked}' for {oracle_name} (no module {module_name})",
                hint=f"write it: {module_name.replace('.', '/')}.py with {function}(variant, ...)",
            ) from None
        raise ToolError(
            f"the reference '{asked}' needs the package {error.name}",
            hint="install it; PyTorch comes with: pip install -e '.[capture]'",
        ) from None
    found = getattr(module, function, None)
    if not callable(found):
        raise UsageError(f"{module_name} has no function {function}")
    variants = getattr(module, "VARIANTS", None)
    return Source(
        asked=asked,
        full_name=f"{module_name}:{function}",
        function=found,
        variants=None if variants is None else tuple(variants),
        metrics=getattr(module, "METRICS", {}),
        left_out=getattr(module, "LEFT_OUT", {}),
        device=str(module.device()) if hasattr(module, "device") else "cpu",
    )


def capture(
    op: str, asked: str, seed: int, case_set: str = "quick", variant: str | None = None
) -> list[Summary]:
    """Captures every variant (or one) of an op that the source knows; each becomes one file."""
    name, oracle = registry.find(op)
    origin = source(name, asked)
    known = list(getattr(oracle, "VARIANTS", ("default",)))
    if origin.variants is not None:
        known = [v for v in known if v in origin.variants]
    if variant is not None and variant not in known:
        raise UsageError(
            f"'{asked}' answers for no variant '{variant}' of {oracle.OP.name}",
            hint=f"it has: {', '.join(known)}",
        )
    return [_capture(name, oracle, origin, v, seed, case_set)
            for v in ([variant] if variant else known)]  # fmt: skip


def _capture(
    name: str, oracle: ModuleType, origin: Source, variant: str, seed: int, case_set: str
) -> Summary:
    short = origin.asked.replace(":", ".")
    path = captures.folder(oracle.OP.name) / f"{short}-{variant}.safetensors"
    summary = Summary(path, oracle.OP.name, variant, short, seed)
    arrays: dict[str, Array] = {}
    cases: dict[str, Any] = {}
    for case in oracle.cases(case_set, variant):
        why = origin.why_left_out(variant, case.name)
        if why is not None:
            summary.left_out[case.name] = why
            continue
        args = oracle.inputs(case, case_rng(seed, oracle.OP.name, case.name))
        answer = {k: np.asarray(v) for k, v in origin.function(variant, **copies(args)).items()}
        _check_answer(oracle, case, args, answer, origin.full_name)
        metrics = {k: origin.metric(variant, k) for k in answer}
        cases[case.name] = _record(case, args, answer, metrics, arrays)
        answers = {k: Answer(v, *metrics[k]) for k, v in answer.items()}
        count(oracle, variant, case.name, args, answers, short, summary.counts)
        summary.cases += 1
    if not cases:
        raise CaptureError(f"{origin.full_name} leaves out every {case_set} case of {name}")
    versions = _versions(origin.full_name)  # after the calls: what they imported counts
    summary.label = f"{short} {versions.get(short, '')}".strip()
    record = {
        "format": captures.FORMAT,
        "op": oracle.OP.name,
        "oracle": name,
        "variant": variant,
        "seed": seed,
        "case_set": case_set,
        "source": {
            "name": short,
            "from": origin.asked,
            "function": origin.full_name,
            "versions": versions,
            "device": origin.device,
            "machine": platform.machine(),
        },
        "oracle_sha256": _file_digest(oracle),
        "cases": cases,
        "left_out": summary.left_out,
    }
    text = json.dumps(record, separators=(",", ":"), sort_keys=True)
    total = hashlib.sha256(text.encode()).hexdigest()
    tensorfile.write(path, arrays, {captures.KEY: text, captures.SUM: total})
    captures.load(path)  # what cannot be read back is no capture
    summary.bytes = path.stat().st_size
    return summary


def _record(
    case: Case,
    args: Mapping[str, Any],
    answer: Mapping[str, Array],
    metrics: Mapping[str, tuple[str, Any]],
    arrays: dict[str, Array],
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
        metric, near = metrics[name]
        outputs[name] = {**_form(value, True), "metric": metric, "value": near}
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
    oracle: ModuleType,
    case: Case,
    args: Mapping[str, Any],
    answer: Mapping[str, Array],
    full_name: str,
) -> None:
    wanted = {name: (tuple(shape), dtype) for name, (shape, dtype) in oracle.outputs(case).items()}
    for arg in oracle.OP.tensors:
        if arg.role == "inout":
            value = args[arg.name]
            wanted[arg.name] = (value.shape, tensorfile.dtype_name(value.dtype))
    for name, (shape, dtype) in wanted.items():
        got = answer.get(name)
        form = None if got is None else (got.shape, tensorfile.dtype_name(got.dtype))
        if form != (shape, dtype):
            raise CaptureError(
                f"{full_name}, case {case.name}: {name} should be {dtype}{list(shape)}, is {form}"
            )
    unknown = sorted(set(answer) - set(wanted))
    if unknown:
        raise CaptureError(f"{full_name}, case {case.name}: {unknown[0]} is no output of the op")


def _versions(full_name: str) -> dict[str, str]:
    """Versions of what took part; only packages that were imported or always matter."""
    out = {"python": platform.python_version()}
    root = full_name.split(":")[0].split(".")[0]
    known = ["numpy", "ml_dtypes", "torch", "triton", "sglang", "vllm", "aiter"]
    for package in dict.fromkeys([*known, *([root] if root != "netra_harness" else [])]):
        if package not in sys.modules:
            continue
        try:
            out[package] = str(sys.modules[package].__version__)
        except AttributeError:
            try:
                out[package] = importlib.metadata.version(package)
            except importlib.metadata.PackageNotFoundError:
                out[package] = "unknown"
    return out


def _file_digest(module: ModuleType) -> str:
    return hashlib.sha256(Path(str(module.__file__)).read_bytes()).hexdigest()
