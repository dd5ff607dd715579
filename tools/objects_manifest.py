#!/usr/bin/env python3
"""Write build/objects.json: {"<arch>/<kernel>": SHA-256 of build/<arch>/<kernel>.co}.

    objects_manifest.py [--asm asm] [--build build]

Kernels whose .s is gone are left out.  The file is written only when it would change.
Standard library only.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import sys
from pathlib import Path

import stamp


def manifest(asm: Path, build: Path) -> dict[str, str]:
    """Hashes of the code objects that are built, for every kernel that has a source."""
    objects = {}
    for source in sorted(asm.glob("gfx*/*.s")):
        code_object = build / source.parent.name / f"{source.stem}.co"
        if code_object.is_file():
            digest = hashlib.sha256(code_object.read_bytes()).hexdigest()
            objects[f"{source.parent.name}/{source.stem}"] = digest
    return objects


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--asm", type=Path, default=Path("asm"))
    parser.add_argument("--build", type=Path, default=Path("build"))
    options = parser.parse_args(argv)
    options.build.mkdir(parents=True, exist_ok=True)
    # Both targets may end at once under make -j: the last one in sees the objects of both.
    with (options.build / ".objects.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        objects = manifest(options.asm, options.build)
        stamp.record({options.build / "objects.json": json.dumps(objects, indent=2)})
    return 0


if __name__ == "__main__":
    sys.exit(main())
