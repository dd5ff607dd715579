"""Matrix rows compiled for any x86-64 and those for AVX2 give the same bits, whatever the operands.

The instructions are those of the table of semantics, so a new row is compared without being named
here. What the right bits are is for test_sim_matrix.py.
"""

from __future__ import annotations

import os
import platform
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import netra_sim
import numpy as np
import pytest
import sim_kernels
from netra_sim.hip import Hip

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="one host only")

HOSTS = ("base", "v3")
MODELS = ("fma_chain", "tr_fdpa", "gfx11_dot2", "exact")
# First register of each operand: A, B, the addend, then scales or an index. D is behind them.
SOURCES, D, WIDTH, TOP = (8, 24, 40, 72, 73), 80, 32, 112
SPARSE = 74  # the index of SMFMAC
FORMATS = {0: 8, 1: 8, 2: 6, 3: 6, 4: 4}  # f8f6f4: registers of an operand, by cbsz or blgp


def lines(arch: str, lanes: int) -> Iterator[str]:
    """Every matrix instruction of a target, on the registers above."""
    for row in netra_sim.rows():
        if row["class"] not in ("mfma", "wmma") or arch not in row["archs"] or row["clamp"]:
            continue
        if arch == "gfx1151" and lanes != (64 if row["slots"][0]["dwords"] == 4 else 32):
            continue
        if "f8f6f4" in row["name"]:
            for a, b in ((0, 0), (0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (4, 4)):
                yield _line(row, {1: FORMATS[a], 2: FORMATS[b]}) + f" cbsz:{a} blgp:{b}"
        else:
            yield _line(row, {})


def _line(row: dict[str, Any], sizes: dict[int, int]) -> str:
    operands = []
    for n, slot in enumerate(row["slots"]):
        first = D if n == 0 else SOURCES[n - 1]
        if n == 3 and row["name"].startswith("v_smfmac"):
            first = SPARSE
        count = sizes.get(n) or max(1, slot["dwords"])
        operands.append(f"v[{first}:{first + count - 1}]" if count > 1 else f"v{first}")
    return f"{row['name']} {', '.join(operands)}"


def kernel(arch: str, lanes: int, texts: list[str]) -> str:
    """Loads the sources; then each instruction, on a D that is set anew, and all of D to memory."""
    nine = arch == "gfx950"
    load2, load, store = (
        ("s_load_dwordx2", "global_load_dword", "global_store_dword") if nine
        else ("s_load_b64", "global_load_b32", "global_store_b32")
    )
    step = f"s_add_u32 s4, s4, {4 * lanes}\ns_addc_u32 s5, s5, 0\n"
    body = f"{load2} s[4:5], s[0:1], 0\nv_lshlrev_b32 v2, 2, v0\ns_waitcnt lgkmcnt(0)\n"
    body += "".join(f"{load} v{r}, v2, s[4:5]\n{step}" for r in range(SOURCES[0], D))
    body += "s_waitcnt vmcnt(0)\n"
    for text in texts:
        body += "".join(f"v_mov_b32 v{D + r}, v{SOURCES[2] + r}\n" for r in range(WIDTH))
        body += f"s_nop 7\n{text}\ns_nop 15\ns_nop 15\n"
        body += "".join(f"{store} v2, v{D + r}, s[4:5]\n{step}" for r in range(WIDTH))
    args = (("data", 0, 8, sim_kernels.POINTER),)
    source = sim_kernels.kernel("k", body + "s_endpgm\n", args, 8, arch)
    source = source.replace(".amdhsa_next_free_vgpr 8", f".amdhsa_next_free_vgpr {TOP}")
    source = source.replace(".amdhsa_accum_offset 8", f".amdhsa_accum_offset {TOP}")
    source = source.replace(".vgpr_count: 8", f".vgpr_count: {TOP}")
    return source.replace(".wavefront_size: 32", f".wavefront_size: {lanes}")


def operands(lanes: int, arch: str) -> np.ndarray:
    """[register][lane]: any bits; half of the addend of everyday size, so that sums stay finite."""
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 1 << 32, (D - SOURCES[0], 64), np.uint64).astype(np.uint32)
    addend = slice(SOURCES[2] - SOURCES[0], SOURCES[2] - SOURCES[0] + 16)
    rows[addend] = rng.standard_normal((16, 64)).astype(np.float32).view(np.uint32)
    # Scales near 1: a large one is refused.
    scales = slice(SOURCES[3] - SOURCES[0], None)
    rows[scales] = rng.integers(120, 134, rows[scales].shape, np.uint32) * np.uint32(0x01010101)
    # Two places of four in rising order, for each pair of elements.
    pairs = rng.choice([0x4, 0x8, 0xC, 0x9, 0xD, 0xE], (8, 64)).astype(np.uint32)
    rows[SPARSE - SOURCES[0]] = sum(pairs[k] << np.uint32(4 * k) for k in range(8))
    if arch == "gfx1151":  # lanes from 16 on repeat those of A and B
        rows[: SOURCES[2] - SOURCES[0]] = rows[: SOURCES[2] - SOURCES[0], np.arange(64) % 16]
    return rows[:, :lanes]


def run(hip: Hip, path: Path, arch: str, lanes: int, count: int) -> np.ndarray:
    """D of each instruction: [instruction][register][lane]."""
    hip.call("hipSetDevice", ("gfx950", "gfx1151").index(arch))
    rows = operands(lanes, arch)
    size = 4 * lanes * WIDTH * count
    data = hip.malloc(rows.nbytes + size)
    hip.upload(data, rows.tobytes())
    hip.launch(hip.function(hip.load_module(path), "k"), (1, 1, 1), (lanes, 1, 1),
               struct.pack("<Q", data))
    try:
        hip.synchronize()
    except Exception as error:
        raise AssertionError(hip.last_fault()) from error
    out = hip.download(data + rows.nbytes, size)
    return np.frombuffer(out, np.uint32).reshape(count, WIDTH, lanes)


@pytest.mark.parametrize("model", MODELS)
def test_both_hosts_agree(
    model: str, sim_library: Path, assemble: Callable[..., Path], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NETRA_SIM_MATRIX_MODEL", model)
    got: dict[str, list[np.ndarray]] = {}
    compared = []
    for host in HOSTS:
        monkeypatch.setenv("NETRA_SIM_HOST", host)
        (tmp_path / host).mkdir()
        with sim_kernels.private_simulator(sim_library, tmp_path / host, "gfx950,gfx1151") as hip:
            for arch, lanes in (("gfx950", 64), ("gfx1151", 32), ("gfx1151", 64)):
                texts = list(lines(arch, lanes))
                wave = 64 if (arch, lanes) == ("gfx1151", 64) else None
                path = assemble(kernel(arch, lanes, texts), arch, wave)
                got.setdefault(host, []).extend(run(hip, path, arch, lanes, len(texts)))
                compared += [f"{text}, {lanes} lanes" for text in texts]
    differing = [
        text for text, a, b in zip(compared, *(got[h] for h in HOSTS), strict=False)
        if not np.array_equal(a, b)
    ]
    assert not differing, "\n".join(differing)
    assert len(got["base"]) >= 60  # the table has not gone missing


def test_vector_rows_of_the_base_host(repo_root: Path) -> None:
    """The tests of vector, narrow and dot rows, run once more on the rows for any x86-64."""
    modules = [f"tests/test_sim_{name}.py" for name in ("valu", "trans", "narrow", "dot")]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *modules], cwd=repo_root, capture_output=True,
        text=True, env={**os.environ, "NETRA_SIM_HOST": "base"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
