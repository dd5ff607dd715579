"""A hash of what the simulator computes and checks: evidence that was made on it is keyed on this.

It is taken over the C++ sources, since two builds of them by other compilers, or for other hosts,
must be one simulator. What counts is every file of sim/core but those of the HIP surface (hip*),
which decides how a kernel is called and not what it computes. Comments and blanks do not count.

`make sim` runs this file as a program, before there is a virtual environment, and puts the hash
into the library; so a library also says which sources it was made of.
"""

from __future__ import annotations

import argparse
import hashlib
import re
from pathlib import Path

_SUFFIXES = (".cc", ".h", ".inc")
_SURFACE = "hip"
# A string, a character (1'000 has none) or a comment: whichever starts first.
_TOKEN = re.compile(
    r'''"(?:\\.|[^"\\\n])*"|(?<!\w)'(?:\\.|[^'\\\n])*'|//[^\n]*|/\*.*?\*/''', re.DOTALL
)


def files(root: Path) -> list[Path]:
    """The sources that count, by their path."""
    core = root / "sim" / "core"
    return sorted(
        path for path in core.rglob("*")
        if path.suffix in _SUFFIXES and not path.name.startswith(_SURFACE)
    )  # fmt: skip


def code(text: str) -> str:
    """The text without comments, blank lines and indentation."""
    bare = _TOKEN.sub(lambda found: " " if found[0].startswith("/") else found[0], text)
    lines = (" ".join(line.split()) for line in bare.splitlines())
    return "\n".join(line for line in lines if line)


def sha256(root: Path) -> str:
    """The hash of a checkout; raises FileNotFoundError where there are no sources."""
    total = hashlib.sha256()
    found = files(root)
    if not found:
        raise FileNotFoundError(f"{root / 'sim' / 'core'} has no sources")
    for path in found:
        name = path.relative_to(root).as_posix()
        body = hashlib.sha256(code(path.read_text(encoding="utf-8")).encode()).hexdigest()
        total.update(f"{name} {body}\n".encode())
    return total.hexdigest()


def main() -> None:
    """Writes the hash where make wants it, and only when it has changed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, required=True, metavar="FILE")
    output: Path = parser.parse_args().write
    text = sha256(Path(__file__).resolve().parents[2]) + "\n"
    if output.is_file() and output.read_text() == text:
        return
    output.parent.mkdir(parents=True, exist_ok=True)
    temporary = output.with_name(f".{output.name}.tmp")
    temporary.write_text(text)
    temporary.replace(output)


if __name__ == "__main__":
    main()
