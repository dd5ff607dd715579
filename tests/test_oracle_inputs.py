"""A seed stands for the data only if every host draws the same from it."""

from __future__ import annotations

import re

import numpy as np
import pytest
from netra_catalog import paths
from netra_harness import captures, registry
from netra_harness.oracles import _random

# Draws that are integers and IEEE arithmetic; the others call the C library's log or exp.
SAFE = {"integers", "random", "permutation", "permuted", "shuffle", "choice", "uniform", "bytes"}

SOURCES = sorted((paths.repo_root() / "harness/netra_harness/oracles").glob("*.py"))


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_oracles_draw_what_every_host_draws(source) -> None:
    used = set(re.findall(r"\brng\.(\w+)\(", source.read_text()))
    assert used <= SAFE, f"{source.name}: take _random.normal or _random.scales for {used - SAFE}"


def test_normal_is_what_it_says() -> None:
    drawn = _random.normal((100, 1000), np.random.default_rng(1))
    assert abs(drawn.mean()) < 0.01 and abs(drawn.std() - 1) < 0.01
    assert 3.5 < np.abs(drawn).max() < 4.9 and drawn.shape == (100, 1000)
    fine = drawn / np.sqrt(1.5) * 65536  # whole numbers: nothing was rounded on the way
    assert np.abs(fine - np.rint(fine)).max() < 1e-6
    assert captures.digest(_random.normal((3, 5), np.random.default_rng(7))) == (
        "c7df330771e7818732a8bef9c329db9c14b7336cdde654dfae187b7b39dfa727"
    )


def test_scales_lie_between_the_powers() -> None:
    drawn = _random.scales((64, 64), np.random.default_rng(1), -8, 0)
    assert drawn.dtype == np.float32 and 2**-8 <= drawn.min() < 2**-7.9 < 0.9 < drawn.max() < 1


def test_every_op_has_inputs_that_a_seed_repeats() -> None:
    from netra_harness.case import case_rng

    for name in registry.names():
        _, oracle = registry.find(name)
        variant = getattr(oracle, "VARIANTS", ("default",))[0]
        case = oracle.cases("quick", variant)[0]
        first, second = (
            {k: captures.digest(v) for k, v in made.items() if isinstance(v, np.ndarray)}
            for made in (oracle.inputs(case, case_rng(3, oracle.OP.name, case.name)) for _ in "ab")
        )
        assert first == second and first, name
