"""NumPy arrays to PyTorch tensors and back, byte by byte, and where PyTorch runs them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import torch
from numpy.typing import NDArray

Array = NDArray[Any]

# Types that NumPy and PyTorch do not share; the rest go through torch.from_numpy.
_NARROW: dict[np.dtype[Any], tuple[torch.dtype, Any]] = {
    np.dtype(ml_dtypes.bfloat16): (torch.bfloat16, np.int16),
    np.dtype(ml_dtypes.float8_e4m3fn): (torch.float8_e4m3fn, np.uint8),
    np.dtype(ml_dtypes.float8_e5m2): (torch.float8_e5m2, np.uint8),
}
_BACK = {theirs: (ours, carrier) for ours, (theirs, carrier) in _NARROW.items()}
_CARRIERS = {np.int16: torch.int16, np.uint8: torch.uint8}


def device() -> torch.device:
    """The GPU where there is one, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def device_name() -> str:
    """What provenance says: the GPU's own name, or cpu."""
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"


def tensor(array: Array) -> torch.Tensor:
    """A dense tensor of the same shape, type and bytes on `device()`."""
    dense = np.ascontiguousarray(array)
    if dense.dtype not in _NARROW:
        return torch.from_numpy(dense.copy()).to(device())
    theirs, carrier = _NARROW[dense.dtype]
    return torch.from_numpy(dense.view(carrier).copy()).to(device()).view(theirs)


def array(given: torch.Tensor) -> Array:
    """The same bytes as a NumPy array, with the type of ml_dtypes where NumPy has none."""
    given = given.detach().contiguous().cpu()
    if given.dtype not in _BACK:
        return np.asarray(given.numpy())
    ours, carrier = _BACK[given.dtype]
    return np.asarray(given.view(_CARRIERS[carrier]).numpy().view(ours))
