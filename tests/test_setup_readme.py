"""What the README and the other documents tell a user to type exists and works."""

from __future__ import annotations

import re

import pytest
from netra_catalog.cli import main as catalog
from netra_harness.cli import main as harness
from netra_sim.cli import main as sim

COMMANDS = {"netra-catalog": catalog, "netra-harness": harness, "netra-sim": sim}
DOCUMENTS = ["README.md", "CONTRIBUTING.md", "docs/architecture.md", "docs/simulator.md"]


def test_the_readme_opens_with_the_two_commands(repo_root):
    lines = (repo_root / "README.md").read_text().splitlines()
    commands = [line.split("#")[0].strip() for line in lines[:6] if line.startswith("    ")]
    assert commands == ["make validate", "make test"]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_commands_and_targets_exist(repo_root, document):
    text = (repo_root / document).read_text()
    for name, command in re.findall(r"\b(netra-(?:catalog|harness|sim)) ([a-z]+)\b", text):
        assert command in COMMANDS[name].commands, f"{document}: {name} {command}"
    makefile = (repo_root / "Makefile").read_text()
    targets = " ".join(re.findall(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)).split()
    for target in re.findall(r"`make ([a-z][\w-]*)", text):
        assert target in targets, f"{document}: make {target}"


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(repo_root, document):
    path = repo_root / document
    for link in re.findall(r"\]\(([^)#]+)\)", path.read_text()):
        assert (path.parent / link).exists(), f"{document}: {link}"
