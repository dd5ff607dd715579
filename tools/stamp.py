"""Files that appear whole or not at all, and whose time changes only when their content does."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path


def write_whole(path: Path, text: str) -> None:
    """Write `text` to `path` by way of a temporary file beside it and a rename."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def record(values: Mapping[Path, str]) -> bool:
    """Write each value as a line to its file, all of them, unless all hold it already.

    make rebuilds what depends on such a file only when the function returned True.
    """
    if all(path.is_file() and path.read_text() == f"{v}\n" for path, v in values.items()):
        return False
    for path, value in values.items():
        write_whole(path, f"{value}\n")
    return True
