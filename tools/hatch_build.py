"""What a wheel holds beside the Python packages, so that a serving container needs no compiler.

Inside netra_catalog, as catalog/ and build/ and in the places that they have in a checkout: the
tactics, catalog.bin, the code objects with their hashes, and libnetra_bridge.so.  Beside it the
`bridge` alias.  An editable install gets none of it: the checkout itself is used.
"""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

BUILT = ("build/catalog.bin", "build/objects.json", "build/bridge/libnetra_bridge.so")


class NetraHook(BuildHookInterface[Any]):
    """Adds the built files; fails, with the command to type, when they are missing."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel" or version == "editable":
            return
        root = Path(self.root)
        for name in BUILT:
            if not (root / name).is_file():
                raise FileNotFoundError(f"{name} is missing; type: make wheel")
        objects = json.loads((root / "build" / "objects.json").read_text())
        files = [*BUILT, *(f"build/{name}.co" for name in objects)]
        tactics = sorted((root / "catalog").glob("gfx*/*.yaml"))
        files += [str(path.relative_to(root)) for path in tactics]
        build_data["pure_python"] = False
        tag = f"py3-none-linux_{platform.machine()}"
        build_data["tag"] = os.environ.get("NETRA_WHEEL_TAG", tag)
        include = build_data["force_include"]
        include[str(root / "bridges" / "bridge.py")] = "bridge.py"
        for name in files:
            include[str(root / name)] = f"netra_catalog/{name}"
