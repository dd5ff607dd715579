"""The Python example of the README, run as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path


def test_the_example_of_the_readme_runs(
    repo_root: Path, sim_library: Path, bridge_library: Path, tmp_path: Path
) -> None:
    readme = (repo_root / "README.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", readme, re.M | re.S)
    assert len(blocks) == 1, "one Python example in README.md"
    assert sim_library.exists() and bridge_library.exists()
    lines = blocks[0].splitlines()
    assert len(lines) < 15, f"{len(lines)} lines"
    folders = [str(repo_root / name) for name in ("bridges", "catalog", "harness", "sim")]
    script = tmp_path / "example.py"
    script.write_text(blocks[0])
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,  # it needs no checkout around it
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("greedy tokens:"), done.stdout
