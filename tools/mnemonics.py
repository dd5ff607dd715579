#!/usr/bin/env python3
"""List every mnemonic that the decoder can print for a target: the inventory of its instructions.

    mnemonics.py --llvm /usr/lib/llvm-22/bin              say what changed
    mnemonics.py --llvm /usr/lib/llvm-22/bin --write      rewrite tests/fixtures/mnemonics_*.txt

Nothing but the decoder is asked: all values of an instruction's upper 16 bits, which hold the
encoding and, but for two classes, the opcode, are disassembled with a few choices of the bits below
(operands, and what some encodings want to see there).  Encoding suffixes (_e32, _dpp, ...) are left
out, as the simulator does.  Half a minute a target.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

FIXTURES = Path(__file__).resolve().parent.parent / "tests" / "fixtures"
TARGETS = {"gfx950": ("",), "gfx1151": ("", "+wavefrontsize64")}

# Operands in the low half and the second dword: even registers; a global access's segment bits, a
# D16 or op_sel bit; NULL for the SGPR of a flat access on gfx1151; the fields of a ray query.
LOW = (0x0000, 0x0404, 0x4000, 0x8000, 0xC404, 0x8F80)
SECOND = (0x00000000, 0x04040404, 0x0C020104, 0x047C0404)
# Encodings with opcode bits in the low half: SOP1 and VOP1.
DEEP = (range(0xBE80, 0xBF00), range(0x7E00, 0x7F00))
# gfx950's scaled MFMA has 16 bytes: this prefix, and a VOP3P instruction.
SCALED_PREFIX, SCALED = (0xD3AC0000, 0x00020904), range(0xD380, 0xD400)
SUFFIX = re.compile(r"(_e32|_e64|_dpp|_sdwa)+$")


def encodings(arch: str) -> Iterator[tuple[int, ...]]:
    for top in range(1 << 16):
        deep = any(top in part for part in DEEP)
        for low in (k << 8 | 4 for k in range(256)) if deep else LOW:
            for second in SECOND:
                yield top << 16 | low, second
    if arch == "gfx950":
        for top in SCALED:
            yield *SCALED_PREFIX, top << 16 | 0x0800, 0x04020904


def printed(llvm: Path, arch: str) -> set[str]:
    """What `llvm-mc --disassemble` calls them.

    Raises:
        subprocess.CalledProcessError: llvm-mc could not be run for the target.
    """
    # Zeros behind each: an instruction of more than eight bytes ends there, a shorter one begins.
    source = "".join(
        b"".join(w.to_bytes(4, "little") for w in words).hex(" ").replace(" ", " 0x")
        .join(("0x", " 0x00 0x00 0x00 0x00\n"))
        for words in encodings(arch)
    )
    names = set()
    for attributes in TARGETS[arch]:
        done = subprocess.run(
            [str(llvm / "llvm-mc"), "--disassemble", "-triple=amdgcn-amd-amdhsa", f"-mcpu={arch}",
             f"-mattr={attributes}"],
            input=source, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False,
        )
        words = set(re.findall(r"^\t(\w+)|:: (v_dual_\w+)", done.stdout, re.M))
        found = {SUFFIX.sub("", word) for pair in words for word in pair if word}
        if not found:
            raise subprocess.CalledProcessError(done.returncode, done.args)
        names |= found
    return names


def path(arch: str) -> Path:
    return FIXTURES / f"mnemonics_{arch}.txt"


def stored(arch: str) -> set[str]:
    """The list in the repository."""
    return {n for n in path(arch).read_text().split("\n") if n and not n.startswith("#")}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--llvm", type=Path, required=True, help="directory of llvm-mc")
    parser.add_argument("--write", action="store_true", help="store the lists")
    args = parser.parse_args()
    version = subprocess.run([str(args.llvm / "llvm-mc"), "--version"], capture_output=True,
                             text=True, check=True).stdout
    found = re.search(r"LLVM version (\S+)", version)
    release = found[1] if found else "?"
    changed = False
    for arch in TARGETS:
        names = printed(args.llvm, arch)
        old = stored(arch) if path(arch).is_file() else set()
        print(f"{arch}: {len(names)} mnemonics")
        for sign, difference in (("+", names - old), ("-", old - names)):
            changed |= bool(difference)
            for name in sorted(difference):
                print(f"  {sign} {name}")
        if args.write:
            head = (f"# Every mnemonic that LLVM {release} prints for {arch}, without encoding "
                    "suffix.\n# Written by tools/mnemonics.py.\n")
            fresh = path(arch).with_suffix(".new")
            fresh.write_text(head + "".join(f"{name}\n" for name in sorted(names)))
            fresh.replace(path(arch))
    return 1 if changed and not args.write else 0


if __name__ == "__main__":
    sys.exit(main())
