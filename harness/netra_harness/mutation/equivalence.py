"""Why a mutant that no case notices does the same as the kernel: only what a machine can check."""

from __future__ import annotations

from netra_harness.mutation import assembly, symbolic, waits
from netra_harness.mutation.operators import VALUES, Kernel, Mutant


def mutated(kernel: Kernel, mutant: Mutant) -> str:
    """The mutant's text; a removed line stays as an empty one, so that lines keep their numbers."""
    lines = [mutant.edit.get(n, line) for n, line in enumerate(kernel.text, 1)]
    return "\n".join(lines) + "\n"


def reason(kernel: Kernel, mutant: Mutant) -> str:
    """The reason, or an empty string: then the mutant survives."""
    program = assembly.decode(mutated(kernel, mutant), kernel.arch, kernel.name, kernel.wave)
    if mutant.operator not in VALUES:
        return waits.needless(kernel.program, program, kernel.arch)
    # The terms know nothing of waits and wait states, which these faults leave as they are.
    if kernel.waves and symbolic.same(kernel.program, program, kernel.wave, kernel.waves):
        return "on every path the same is asked for, stored and decided"
    return ""
