"""The catalog of this checkout claims what its results give, and no more."""

from __future__ import annotations

from pathlib import Path

import pytest
from netra_catalog import evidence, load


def test_evidence_is_current(
    repo_root: Path, sim_library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a change of a kernel, a contract, an oracle or the simulator: revalidate.

    All of it in one test, since one command mends it.
    """
    monkeypatch.chdir(repo_root)
    monkeypatch.delenv("NETRA_ROOT", raising=False)
    tactics = load(root=repo_root)
    wrong = [text for tactic in tactics for text in evidence.problems(tactic)]
    wrong += evidence.orphans(repo_root, [tactic.id for tactic in tactics])
    if wrong:
        pytest.fail("\n".join([*wrong, "for all of them: netra-harness revalidate"]), pytrace=False)
