#!/usr/bin/env python3
"""Make .venv and install the four packages into it, in place (`pip install -e`).

    setup_venv.py [--install] [--write .venv/netra-root] FOLDER

The stamp that --write names is written last and holds the checkout's path: a checkout that was
copied or moved has a .venv that still points at the old place, and make then runs this again.
Standard library only.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import system_packages

OLDEST = (3, 10)


class SetupFailed(Exception):
    """The virtual environment cannot be made; the text says what to type."""


def check_python(install: bool) -> None:
    """This interpreter is new enough and can make virtual environments (apt may help)."""
    if sys.version_info < OLDEST:
        have = ".".join(map(str, sys.version_info[:3]))
        raise SetupFailed(
            f"python {have} at {sys.executable}, but 3.10 or later is needed\n"
            "  name another one: make PYTHON=python3.12"
        )
    if importlib.util.find_spec("ensurepip") is not None:
        return
    own = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
    apt = system_packages.Apt()
    if install and apt.can_install():
        if not apt.offers(own):
            apt.update()
        if apt.offers(own):
            apt.install([own])
            importlib.invalidate_caches()
            if importlib.util.find_spec("ensurepip") is not None:
                return
    raise SetupFailed(
        f"{sys.executable} cannot make a virtual environment (no ensurepip)\n"
        f"  type: sudo apt-get install {own}    (or: python3-venv)"
    )


def make_venv(folder: Path) -> Path:
    """A virtual environment in `folder`, made anew unless its interpreter works; its python."""
    python = folder / "bin" / "python"
    works = os.access(python, os.X_OK) and not subprocess.call(
        [python, "-m", "pip", "--version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    if not works:
        shutil.rmtree(folder, ignore_errors=True)
        print(f"set-up: {folder} with {sys.executable}", file=sys.stderr, flush=True)
        if subprocess.call([sys.executable, "-m", "venv", str(folder)]):
            raise SetupFailed(f"{sys.executable} -m venv {folder} failed")
    return python


def install_packages(python: Path, root: Path) -> None:
    """The packages of `root` in place, with what they and the developer's tools need."""
    print("set-up: pip install -e '.[dev]'", file=sys.stderr, flush=True)
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if subprocess.call([*command, "-e", f"{root}[dev]"]):
        raise SetupFailed(
            "pip install failed (its message is above)\n"
            "  it needs PyPI, or a mirror: set PIP_INDEX_URL, or PIP_FIND_LINKS=/folder/of/wheels"
        )


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="the virtual environment")
    parser.add_argument("--write", type=Path, metavar="FILE", help="stamp to write at the end")
    parser.add_argument("--install", action="store_true", help="install python3-venv when missing")
    options = parser.parse_args(argv)
    root = Path.cwd()
    try:
        check_python(options.install)
        python = make_venv(options.folder)
        install_packages(python, root)
    except SetupFailed as error:
        print(f"Error: {error}", file=sys.stderr)
        return 4
    if options.write:
        options.write.write_text(f"{root}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
