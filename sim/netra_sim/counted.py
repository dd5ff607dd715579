"""What a launch counted, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

_PROMISES = ("exact", "within_1_ulp", "model")
_PATHS = ("global", "scalar", "lds", "scratch")
_LIMITS = ("slots", "vgprs", "sgprs", "lds")


def text(counters: Mapping[str, int]) -> str:
    """Lines of a label and numbers; what a launch without counting lacks is left out."""
    return "\n".join(f"  {label:<22}{said}" for label, said in _lines(counters))


def _lines(counters: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    yield "workgroups, waves", f"{counters['workgroups']}, {counters['waves']}"
    yield "instructions", str(counters["instructions"])
    classes = {name: n for name, n in counters.items() if name.startswith("instructions.")}
    for name, n in sorted(classes.items(), key=lambda item: (-item[1], item[0])):
        yield f"  {name.partition('.')[2]}", str(n)
    yield "results", ", ".join(f"{counters[f'numerics.{p}']} {p}" for p in _PROMISES)
    if "barriers" not in counters:
        return
    for path in _PATHS:
        for way, verb in (("read", "read"), ("write", "written")):
            flow = f"memory.{path}.{way}"
            said = f"{counters[f'{flow}_bytes']} bytes"
            if f"{flow}_lines" in counters:
                said += (f", {counters[f'{flow}_lines']} lines of 128 bytes, "
                         f"{counters[f'{flow}_line_requests']} line requests")
            if counters[f"{flow}_bytes"]:
                yield f"{path} {verb}", said
    for kind, label in (("", "LDS banks, model"), ("assumed_", "LDS banks, assumed")):
        if phases := counters[f"lds_model.{kind}phases"]:
            yield label, f"{counters[f'lds_model.{kind}conflicts']} conflicts in {phases} phases"
    yield "MFMA passes", str(counters["mfma.passes"])
    yield "barriers", f"{counters['barriers']}, reached by {counters['barriers.arrivals']} waves"
    limits = [f"{name} {counters[f'occupancy.limit.{name}']}" for name in _LIMITS
              if f"occupancy.limit.{name}" in counters]
    yield "waves per SIMD", f"{counters['occupancy.waves_per_simd']} (limits: {', '.join(limits)})"
