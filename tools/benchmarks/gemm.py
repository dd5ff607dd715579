"""1024 x 1024 x 1024 in FP8 by the kernel of the catalog, and the answer by NumPy."""

from __future__ import annotations

import struct
from pathlib import Path
from types import TracebackType

import ml_dtypes
import numpy as np
from netra_sim.hip import Hip

KERNEL = "gemm_fp8_bf16"
SIZE, TILE, BLOCK = 1024, 128, 256
_SCALES = np.array([0.01, 0.25 / 1024], np.float32)


class Problem:
    """The matrices in device memory.  Codes are drawn from all that are finite."""

    def __init__(self, hip: Hip, path: Path, rng: np.random.Generator) -> None:
        self._hip = hip
        self._module = hip.load_module(path)
        self._function = hip.function(self._module, KERNEL)
        codes = rng.integers(0, 254, (2, SIZE, SIZE), np.uint8)
        codes += codes >= 0x7F
        self._a, self._b = codes.view(ml_dtypes.float8_e4m3fn).astype(np.float64)
        self._data = hip.malloc(codes.nbytes)
        self._scales = hip.malloc(_SCALES.nbytes)
        self._out = hip.malloc(2 * SIZE * SIZE)
        hip.upload(self._data, codes.tobytes())
        hip.upload(self._scales, _SCALES.tobytes())

    def __enter__(self) -> Problem:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for pointer in (self._data, self._scales, self._out):
            self._hip.free(pointer)
        self._hip.unload_module(self._module)

    def launch(self) -> None:
        arguments = struct.pack(
            "<QQQQQIII", self._data, self._data + SIZE * SIZE, self._out, self._scales,
            self._scales + 4, SIZE, SIZE, SIZE,
        )
        self._hip.launch(
            self._function, (SIZE // TILE, SIZE // TILE, 1), (BLOCK, 1, 1), arguments
        )
        self._hip.synchronize()

    def difference(self) -> str:
        """What is wrong with the result, or "": half a step of bf16, and what sums may lose."""
        out = np.frombuffer(self._hip.download(self._out, 2 * SIZE * SIZE), ml_dtypes.bfloat16)
        got = out.reshape(SIZE, SIZE).astype(np.float64)
        want = self._a @ self._b.T * np.prod(_SCALES.astype(np.float64))
        bad = ~(np.abs(got - want) <= 2e-4 + np.abs(want) / 256)
        if not bad.any():
            return ""
        at = tuple(int(n) for n in np.unravel_index(int(np.argmax(bad)), bad.shape))
        return f"{bad.sum()} elements differ, first {at}: got {got[at]:g}, want {want[at]:g}"
