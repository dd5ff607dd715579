"""SGLang's kernel modules without its server.

Running `sglang/__init__.py` brings up the server's patches, and some packages on the way need a
full installation; the modules that hold kernels need neither.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from netra_harness.errors import ToolError

# Packages whose own __init__ is not run, and the one function that kernels want of one of them.
_BARE = ("sglang", "sglang.srt.layers", "sglang.srt.layers.moe")


def require_gpu() -> None:
    """ToolError unless there is a GPU that runs Triton: its CPU interpreter truncates bf16."""
    if not torch.cuda.is_available():
        raise ToolError(
            "SGLang's kernels are Triton's, and there is no GPU here that runs Triton",
            hint="capture on a machine with a GPU and copy harness/captures/OP/ back",
        )


def module(name: str) -> ModuleType:
    """Imports `name`, a module below sglang; ModuleNotFoundError if SGLang is not installed."""
    if "sglang" not in sys.modules:
        root = _root()
        for bare in _BARE:
            _stand_in(bare, __path__=[str(root.joinpath(*bare.split(".")[1:]))])
        _stand_in("sglang.srt.layers.moe.utils", get_moe_padding_size=lambda *_: 0)
        if importlib.util.find_spec("IPython") is None:
            _stand_in("IPython")
            _stand_in("IPython.display", HTML=None, display=None)
    return importlib.import_module(name)


def _root() -> Path:
    spec = importlib.util.find_spec("sglang")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("No module named 'sglang'", name="sglang")
    return Path(next(iter(spec.submodule_search_locations)))


def _stand_in(name: str, **names: Any) -> None:
    made = ModuleType(name)
    made.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package="__path__" in names)
    for key, value in names.items():
        setattr(made, key, value)
    sys.modules[name] = made
