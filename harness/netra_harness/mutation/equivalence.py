"""Why a mutant that no case notices does the same as the kernel: only what a machine can check."""

from __future__ import annotations

from netra_harness.mutation import assembly, waits
from netra_harness.mutation.operators import Kernel, Mutant


def mutated(kernel: Kernel, mutant: Mutant) -> str:
    """The mutant's text; a removed line stays as an empty one, so that lines keep their numbers."""
    lines = [mutant.edit.get(n, line) for n, line in enumerate(kernel.text, 1)]
    return "\n".join(lines) + "\n"


def reason(kernel: Kernel, mutant: Mutant) -> str:
    """The reason, or an empty string: then the mutant survives."""
    program = assembly.decode(mutated(kernel, mutant), kernel.arch, kernel.name, kernel.wave)
    return waits.needless(kernel.program, program, kernel.arch)
