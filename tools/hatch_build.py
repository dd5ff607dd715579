"""What a wheel holds beside the Python packages, so that a serving container needs no compiler.

netra_catalog/checkout/ has the part of the checkout that serving needs, in the same places: the
tactics, the code objects with their hashes, libnetra_bridge.so, and the sources of the kernels,
whose lines messages name.  An editable install gets none of it: the checkout itself is used.
"""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCES = ("catalog/gfx*/*.yaml", "asm/include/*.inc", "asm/gfx*/*.s")
BUILT = ("build/objects.json", "build/bridge/libnetra_bridge.so")


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
        for pattern in SOURCES:
            files += [str(path.relative_to(root)) for path in sorted(root.glob(pattern))]
        build_data["pure_python"] = False
        tag = f"py3-none-linux_{platform.machine()}"
        build_data["tag"] = os.environ.get("NETRA_WHEEL_TAG", tag)
        include = build_data["force_include"]
        include[str(root / "bridges" / "bridge.py")] = "bridge.py"
        for name in files:
            include[str(root / name)] = f"netra_catalog/checkout/{name}"
