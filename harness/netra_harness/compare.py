"""Is what the kernel wrote what the oracle says?  Three metrics, each explicit about NaN and inf.

    bitwise   the same bits: a NaN's payload and the sign of zero count.
    ulp       at most `value` steps.  Against an oracle of the same type a step is the next
              representable number (+0 and -0 are one number); against a float64 oracle the
              error is measured in units of the output type's spacing at the exact value.
    bound     |got - want| <= abs + rel * |want|; `value` is the number abs, or {abs:, rel:}.

Under ulp and bound any NaN equals any NaN and nothing else; an infinity equals only itself, or
an exact value that the output type cannot hold. Integers and booleans are always compared
bitwise. Wrong shape, wrong type, and empty arrays (which prove nothing) never pass.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

METRICS = ("bitwise", "ulp", "bound")


@dataclass(frozen=True)
class Comparison:
    """The verdict on one output array; `first` is the first index that is not allowed."""

    output: str
    against: str
    metric: str
    passed: bool
    total: int = 0
    count: int = 0
    first: tuple[int, ...] | None = None
    got: str = ""
    want: str = ""
    allowed: str = ""
    worst: float = 0.0
    worst_index: tuple[int, ...] | None = None
    error: str = ""

    def text(self) -> str:
        """What differed, for people; one line when it passed."""
        if self.error:
            return f"{self.output} cannot be compared with {self.against}: {self.error}"
        if self.passed:
            return f"{self.output}: {self.total} elements agree with {self.against} ({self.metric})"
        where = index_text(self.output, self.first or ())
        lines = [
            f"{self.output} differs from {self.against} in {self.count} of {self.total} elements",
            f"  first at {where}: got {self.got}, want {self.want} (allowed {self.allowed})",
        ]
        if self.count > 1 and self.worst_index is not None:
            worst = index_text(self.output, self.worst_index)
            lines.append(f"  worst at {worst}: {number(self.worst)} {unit(self.metric)}")
        return "\n".join(lines)

    def json(self) -> dict[str, Any]:
        """Strict JSON: an infinite `worst` is the string "inf"."""
        form = asdict(self)
        form["worst"] = self.worst if math.isfinite(self.worst) else number(self.worst)
        for key in ("first", "worst_index"):
            form[key] = None if form[key] is None else list(form[key])
        return form


def compare(
    output: str,
    got: Array,
    want: Array,
    metric: str = "bitwise",
    value: Any = 0,
    against: str = "the oracle",
) -> Comparison:
    """Compares one output; never raises for what the arrays hold or are."""

    def cannot(error: str) -> Comparison:
        return Comparison(output, against, metric, False, int(got.size), error=error)

    got, want = np.asarray(got), np.asarray(want)
    if metric not in METRICS:
        return cannot(f"metric {metric!r} is none of {', '.join(METRICS)}")
    if got.shape != want.shape:
        return cannot(f"shape {list(got.shape)}, but the oracle gives {list(want.shape)}")
    if got.size == 0:
        return cannot("the arrays are empty, which proves nothing")
    floating = is_float(got.dtype)
    if metric == "bitwise" or not floating:
        if got.dtype != want.dtype:
            return cannot(f"dtype {got.dtype}, but the oracle gives {want.dtype}")
        bad = bits(got) != bits(want)
        # A zero of the other sign, or another NaN, is no step away, and yet a difference.
        distance = np.where(bad, np.maximum(_distance(got, want), 1.0), 0.0)
        return _verdict(output, against, "bitwise", got, want, bad, distance, "no difference")
    if want.dtype != got.dtype and want.dtype != np.float64:
        return cannot(f"dtype {got.dtype}, but the oracle gives {want.dtype} (not float64 either)")
    try:
        absolute, relative = tolerance(value)
    except ValueError as error:
        return cannot(str(error))
    if metric == "ulp":
        if relative:
            return cannot(f"an ulp metric takes a number, not {value!r}")
        distance = _distance(got, want) if want.dtype == got.dtype else _ulps(got, want)
        allowed = f"{absolute:g} ulp"
        bad = ~(distance <= absolute)
    else:
        wide = _wide(want)
        with np.errstate(invalid="ignore"):  # inf - inf
            distance = _apart(got, want, np.abs(_wide(got) - wide))
        limit = absolute + relative * np.where(np.isfinite(wide), np.abs(wide), 0.0)
        allowed = f"{absolute:g}" + (f" + {relative:g} * |want|" if relative else "")
        bad = ~(distance <= limit)
    return _verdict(output, against, metric, got, want, bad, distance, allowed)


def tolerance(value: Any) -> tuple[float, float]:
    """`value` of a bound as (abs, rel): a number, its text, or a mapping with those keys."""
    fields = value if isinstance(value, Mapping) else {"abs": value}
    if not fields or set(fields) - {"abs", "rel"}:
        raise ValueError(f"a tolerance is a number or {{abs, rel}}, not {value!r}")
    try:
        absolute, relative = (float(fields.get(key, 0)) for key in ("abs", "rel"))
    except (TypeError, ValueError):
        raise ValueError(f"a tolerance is a number or {{abs, rel}}, not {value!r}") from None
    if not (0 <= absolute < math.inf and 0 <= relative < math.inf):
        raise ValueError(f"a tolerance must be finite and not negative: {value!r}")
    return absolute, relative


def is_float(dtype: np.dtype[Any]) -> bool:
    """True for floats with a sign; E8M0, an exponent alone, counts as an integer."""
    return dtype.kind == "f" or (dtype.kind == "V" and dtype.name != "float8_e8m0fnu")


def bits(array: Array) -> Array:
    """The same elements as unsigned integers."""
    return np.ascontiguousarray(array).view(np.dtype(f"u{array.dtype.itemsize}"))


def number(value: float) -> str:
    """Short text of a metric's number: 0, 0.503, inf."""
    return f"{value:.4g}"


def unit(metric: str) -> str:
    """What `worst` counts."""
    return {"bitwise": "steps", "ulp": "ulp", "bound": "abs"}[metric]


def index_text(name: str, index: tuple[int, ...]) -> str:
    """name[1, 2], as it would be typed."""
    return f"{name}[{', '.join(map(str, index))}]"


def element_text(array: Array, index: tuple[int, ...]) -> str:
    """A value with its bits, because equal-looking floats may differ."""
    element = array[index]
    if not is_float(array.dtype):
        return str(element)
    digits = 2 * array.dtype.itemsize
    value = str(element) if array.dtype.kind == "f" else repr(float(element))
    return f"{value} (0x{int(bits(array)[index]):0{digits}x})"


def _verdict(
    output: str,
    against: str,
    metric: str,
    got: Array,
    want: Array,
    bad: NDArray[np.bool_],
    distance: NDArray[np.float64],
    allowed: str,
) -> Comparison:
    worst_at = int(np.argmax(distance))
    worst = float(distance.reshape(-1)[worst_at])
    worst_index = tuple(int(i) for i in np.unravel_index(worst_at, got.shape))
    if not bad.any():
        return Comparison(
            output, against, metric, True, got.size, worst=worst, worst_index=worst_index
        )
    first = tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), got.shape))
    return Comparison(
        output=output,
        against=against,
        metric=metric,
        passed=False,
        total=got.size,
        count=int(bad.sum()),
        first=first,
        got=element_text(got, first),
        want=element_text(want, first),
        allowed=allowed,
        worst=worst,
        worst_index=worst_index,
    )


def _distance(got: Array, want: Array) -> NDArray[np.float64]:
    """Steps between elements of one type: 0 when equal, inf between NaN or inf and the rest."""
    if is_float(got.dtype):
        sign_bit = 8 * got.dtype.itemsize - 1
        magnitude = np.uint64((1 << sign_bit) - 1)
        b, w = bits(got).astype(np.uint64), bits(want).astype(np.uint64)
        same_sign = (b >> np.uint64(sign_bit)) == (w >> np.uint64(sign_bit))
        b, w = b & magnitude, w & magnitude
        steps = np.where(same_sign, np.maximum(b, w) - np.minimum(b, w), b + w)
        return _apart(got, want, steps.astype(np.float64))
    if got.dtype.kind not in "iu":  # booleans, E8M0
        got, want = bits(got), bits(want)
    # Wrapping subtraction of the larger minus the smaller is exact in the unsigned type.
    high, low = bits(np.maximum(got, want)), bits(np.minimum(got, want))
    return (high - low).astype(np.float64)


def _ulps(got: Array, want: NDArray[np.float64]) -> NDArray[np.float64]:
    """|got - want| in units of the spacing of got's type at want."""
    with np.errstate(over="ignore", invalid="ignore"):
        difference = np.abs(_wide(got) - want)
        return _apart(got, want, difference / _spacing(got.dtype, want))


def _wide(array: Array) -> NDArray[np.float64]:
    """f64; of a narrow NaN NumPy would say that it is an invalid value."""
    with np.errstate(invalid="ignore"):
        return np.asarray(array.astype(np.float64))


def _finfo(dtype: np.dtype[Any]) -> Any:
    return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]


def _spacing(dtype: np.dtype[Any], at: NDArray[np.float64]) -> NDArray[np.float64]:
    info = _finfo(dtype)
    finite = np.where(np.isfinite(at), at, 0.0)
    _, exponent = np.frexp(finite)  # |at| in [2^(e-1), 2^e)
    lowest = int(info.minexp)
    exponent = np.where(finite == 0, lowest, np.clip(exponent - 1, lowest, int(info.maxexp) - 1))
    return np.asarray(np.ldexp(1.0, exponent - int(info.nmant)), np.float64)


def _apart(got: Array, want: Array, distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """`distance` with the judgement on NaN and inf put in."""
    g, w = _wide(got), _wide(want)
    equal = (np.isnan(g) & np.isnan(w)) | (g == w)
    if got.dtype != want.dtype:  # an exact value beyond the type's last number rounds to inf
        top = float(_finfo(got.dtype).max)
        limit = top + float(_spacing(got.dtype, np.array(top))) / 2
        equal |= np.isinf(g) & (np.abs(w) >= limit) & (np.signbit(g) == np.signbit(w))
    special = ~(np.isfinite(g) & np.isfinite(w))
    out = np.where(special, math.inf, distance)
    return np.where(equal, 0.0, out)
