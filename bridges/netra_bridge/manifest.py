"""Which bytes a code object must have.

`make` writes build/objects.json, the SHA-256 of every object that it built; it is read once per
process, so a file that changes afterwards refuses to load. Where there is no such file (objects
built by hand), the bytes loaded first are the ones that every later load must find.
"""

from __future__ import annotations

import json
from pathlib import Path

from netra_catalog import paths

from netra_bridge.errors import ArtefactError
from netra_bridge.library import FILE, HASH


class Manifest:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._expected: dict[str, str] | None = None
        self._first: dict[str, str] = {}

    def expected(self, arch: str, kernel: str) -> str | None:
        """The hash that the object must have; None when any will do, this once."""
        if self._expected is None:
            self._expected = self._read()
        name = f"{arch}/{kernel}"
        if not self._expected:
            return self._first.get(name)
        if name not in self._expected:
            raise ArtefactError(
                f"{name} is not in {paths.display(self._path)}, which lists what was built",
                status=HASH,
                hint=f"type: make {arch}",
            )
        return self._expected[name]

    def loaded(self, arch: str, kernel: str, sha256: str) -> None:
        self._first[f"{arch}/{kernel}"] = sha256

    def _read(self) -> dict[str, str]:
        try:
            document = json.loads(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise ArtefactError(
                f"{paths.display(self._path)}: {error}",
                status=FILE,
                hint="type: make gfx950 gfx1151",
            ) from None
        if not isinstance(document, dict) or not all(
            isinstance(value, str) for value in document.values()
        ):
            raise ArtefactError(
                f"{paths.display(self._path)} is no table of hashes",
                status=HASH,
                hint="delete it and type: make gfx950 gfx1151",
            )
        return document
