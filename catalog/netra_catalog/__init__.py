"""The catalog: tactics, their contracts, and who may take a call.

`netra_catalog.load` is the function; its siblings are imported from
`netra_catalog.load` as well (`from netra_catalog.load import select`).
"""

from typing import TYPE_CHECKING, Any

from netra_catalog.call import Call, Tensor
from netra_catalog.dispatch import (
    LaunchPlan,
    Match,
    Miss,
    admitted,
    barred,
    evaluate,
    explain,
    match,
    plan,
    workspace_bytes,
)
from netra_catalog.errors import NetraError, NoTacticError, ToolError, UsageError
from netra_catalog.load import load, load_one, oracle, select
from netra_catalog.op import Op, ScalarArg, TensorArg

if TYPE_CHECKING:
    from netra_catalog.tactic import KernelArg, Launch, Tactic

__all__ = [
    "Call", "KernelArg", "Launch", "LaunchPlan", "Match", "Miss", "NetraError", "NoTacticError",
    "Op", "ScalarArg", "Tactic", "Tensor", "TensorArg", "ToolError", "UsageError", "admitted",
    "barred", "evaluate", "explain", "load", "load_one", "match", "oracle", "plan", "select",
    "workspace_bytes",
]


def __getattr__(name: str) -> Any:
    """What a reader of catalog.bin does not need is imported when it is asked for."""
    if name in ("KernelArg", "Launch", "Tactic"):
        from netra_catalog import tactic

        return getattr(tactic, name)
    raise AttributeError(f"module 'netra_catalog' has no attribute '{name}'")
