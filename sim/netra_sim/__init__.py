"""The simulator from Python: where its library is, what a code object holds, what a run found.

The simulator is a HIP library; programs use it through HIP.  Here is only what HIP does not have.
"""

from netra_sim.library import (
    counters,
    findings,
    inspect,
    last_error,
    last_fault,
    library_path,
    reset,
    rows,
    semantics_sha256,
    set_checked,
    set_counting,
    set_seed,
    set_trace,
    trace,
)

__all__ = [
    "counters",
    "findings",
    "inspect",
    "last_error",
    "last_fault",
    "library_path",
    "reset",
    "rows",
    "semantics_sha256",
    "set_checked",
    "set_counting",
    "set_seed",
    "set_trace",
    "trace",
]
