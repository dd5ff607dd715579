"""prepare, dispatch, declines, kill switches and failures, through the C interface."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from netra_harness.oracles import router_gemv

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
EXAMPLES = ROOT / "bridges/examples"
CATALOG = ROOT / "build/catalog.bin"
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-O1"]

Ran = subprocess.CompletedProcess
Run = Callable[..., Ran[str]]


def compiled(
    compiler: str, source: Path, out: Path, libraries: list[Path], *flags: str
) -> Path:
    places = [f"-Wl,-rpath,{library.parent}" for library in libraries]
    headers = f"-I{ROOT / 'bridges/hip'}"
    command = [compiler, *WARNINGS, *flags, headers, str(source), "-o", str(out)]
    done = subprocess.run(
        [*command, *map(str, libraries), *places], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return out


def run(program: Path, *args: object, **environment: str) -> Ran[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("NETRA_", "HSA_"))}
    return subprocess.run(
        [str(program), *map(str, args)], capture_output=True, text=True, timeout=100,
        env={**clean, "NETRA_SIM_DEVICES": "gfx950", "NETRA_LLVM_BIN": llvm(), **environment},
    )  # fmt: skip


def llvm() -> str:
    return (ROOT / "build/llvm.txt").read_text().strip()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("session")


@pytest.fixture(scope="module")
def example(
    c_compiler: str, bridge_library: Path, sim_library: Path, folder: Path
) -> Path:
    return compiled(c_compiler, EXAMPLES / "router_gemv.c", folder / "gemv",
                    [bridge_library, sim_library], "-std=c11")  # fmt: skip


def checksum(data: bytes) -> str:
    total = 5381
    for byte in data:
        total = (total * 33 + byte) % 2**64
    return f"{total:x}"


def expected(period: int) -> str:
    def filled(rows: int, period: int) -> np.ndarray:
        numbers = np.arange(rows * 2048) % period - period // 2
        return numbers.astype(ml_dtypes.bfloat16).reshape(rows, 2048)

    out = router_gemv.deployed("n256_chains", filled(3, period), filled(256, 5))["out"]
    return checksum(out.tobytes())


def test_the_c_example(example: Path) -> None:
    done = run(example, CATALOG)
    assert done.returncode == 0, done.stderr
    eager, replay, why = done.stdout.splitlines()
    assert eager == f"eager {expected(7)}" and replay == f"replay {expected(9)}"
    assert why == "gfx950/router_gemv_bf16_n256 declines: hidden-dtype; hits 2, misses 1"


def test_the_cxx_example(
    cxx_compiler: str, bridge_library: Path, sim_library: Path, folder: Path
) -> None:
    program = compiled(cxx_compiler, EXAMPLES / "router.cc", folder / "router",
                       [bridge_library, sim_library], "-std=c++20")  # fmt: skip
    done = run(program, CATALOG)
    assert (done.returncode, done.stdout) == (0, "0 1 2 3 4 5 6 7 8 9 512\n"), done.stderr
    assert run(program, "/nowhere/catalog.bin").returncode == 1


@pytest.mark.parametrize(
    "environment, code, word",
    [
        ({"NETRA_DISABLE": "router_gemv*"}, 3, "declined: disabled"),
        ({"NETRA_DISABLE": "gfx950/*"}, 3, "declined: disabled"),
        ({"NETRA_DISABLE": "router_gemv*", "NETRA_REQUIRE": "router.gemv"}, 1,
         "NETRA_ERROR_REQUIRED: no tactic takes this call of router.gemv"),
        ({"NETRA_SIM_DEVICES": "gfx1151"}, 3, "declined: out-dtype"),
        ({"NETRA_SIM_DEVICES": "gfx1"}, 1, "NETRA_ERROR_"),
        ({"HSA_OVERRIDE_GFX_VERSION": "9.5.0"}, 1, "claim to be gfx950"),
        ({"HSA_OVERRIDE_GFX_VERSION": "9.5.0", "NETRA_ALLOW_GFX_OVERRIDE": "gfx942"}, 1, "claim"),
        ({"HSA_OVERRIDE_GFX_VERSION": "9.5.0", "NETRA_ALLOW_GFX_OVERRIDE": "gfx950"}, 0, "eager"),
    ],
)  # fmt: skip
def test_switches(example: Path, environment: dict[str, str], code: int, word: str) -> None:
    done = run(example, CATALOG, **environment)
    assert done.returncode == code and word in done.stdout + done.stderr, done


def test_objects_that_are_not_the_catalogs(example: Path, folder: Path) -> None:
    place = folder / "moved"
    (place / "gfx950").mkdir(parents=True)
    shutil.copy(CATALOG, place)
    shutil.copy(ROOT / "build/gfx950/router_gemv_bf16_n512_k4096.co", place / "gfx950")
    done = run(example, place / "catalog.bin")
    assert done.returncode == 1 and "NETRA_ERROR_FILE" in done.stderr
    image = (ROOT / "build/gfx950/router_gemv_bf16_n256.co").read_bytes()
    (place / "gfx950/router_gemv_bf16_n256.co").write_bytes(image[:-1] + b"x")
    done = run(example, place / "catalog.bin")
    assert done.returncode == 1 and "NETRA_ERROR_HASH" in done.stderr
    (place / "gfx950/router_gemv_bf16_n256.co").write_bytes(image)
    assert run(example, place / "catalog.bin").returncode == 0


# ---- the closed launch path, and HIP calls that fail ---------------------------------------------


@pytest.fixture(scope="module")
def proxy(c_compiler: str, sim_library: Path, folder: Path) -> Path:
    """The HIP library of hip_proxy.c, beside a copy of the simulator under another name."""
    shutil.copy(sim_library, folder / "the_simulator.so")
    return compiled(c_compiler, HERE / "hip_proxy.c", folder / "libamdhip64.so.7", [], "-shared",
                    "-fPIC", "-fvisibility=hidden", "-ldl",
                    "-Wl,-soname,libamdhip64.so.7")  # fmt: skip


@pytest.fixture(scope="module")
def closed(c_compiler: str, bridge_library: Path, proxy: Path, folder: Path) -> Run:
    """closed(count, mode, fail="", still=False): closed_path.c on the proxy."""
    program = compiled(c_compiler, HERE / "closed_path.c", folder / "closed",
                       [bridge_library, proxy], "-std=gnu11", "-ldl", "-rdynamic")  # fmt: skip
    return lambda *args, **options: through(proxy, program, *args, **options)


def through(
    proxy: Path, program: Path, *args: object, fail: str = "", still: bool = False
) -> Ran[str]:
    """Runs a program whose HIP library is the proxy."""
    more = {"PROXY_TARGET": str(proxy.parent / "the_simulator.so")}
    more |= {"PROXY_FAIL": fail} if fail else {}
    more |= {"PROXY_STILL": "1"} if still else {}
    return run(program, CATALOG, *args, **more)


@pytest.mark.parametrize(
    "mode, launched", [("eager", True), ("capture", True), ("miss", False)]
)
def test_a_dispatch_does_nothing_but_launch(closed: Run, mode: str, launched: bool) -> None:
    done = closed(10000, mode, still=mode == "eager")
    assert done.returncode == 0, done.stderr
    took, left = (10000, 0) if launched else (0, 10000)
    assert done.stdout == (f"launched {took} declined {left} kernels {took} "
                           "memory 0 files 0 symbols 0 locks 0 waits 0\n")  # fmt: skip


def test_launches_that_run_do_no_more(closed: Run) -> None:
    done = closed(100, "eager")
    assert done.stdout == (
        "launched 100 declined 0 kernels 100 memory 0 files 0 symbols 0 locks 0 waits 0\n"
    )


def test_the_counters_can_count(closed: Run) -> None:
    done = closed(10, "control")
    assert " memory 20 " in done.stdout, done


@pytest.mark.parametrize(
    "fail, word",
    [
        ("hipInit:1:100", "hipInit failed with hipErrorNoDevice (100)"),
        ("hipGetDeviceCount:1:100", "NETRA_ERROR_DEVICE"),
        ("hipGetDevicePropertiesR0600:1:101", "hipGetDeviceProperties failed"),
        ("hipGetDevice:3:101", "hipGetDevice failed"),
        ("hipModuleLaunchKernel:3:1", "hipModuleLaunchKernel failed with hipErrorInvalidValue"),
        ("hipStreamIsCapturing:1:1", "NETRA_ERROR_"),
    ],
)
def test_a_failing_call_is_reported(closed: Run, fail: str, word: str) -> None:
    done = closed(10, "eager", fail=fail)
    assert done.returncode == 1 and word in done.stderr, done


@pytest.mark.parametrize(
    "fail",
    ["hipGetDevice:1:101", "hipModuleLoadData:1:2", "hipModuleGetFunction:1:500",
     "hipFuncGetAttribute:1:98"],
)
def test_a_failing_load_puts_the_tactic_out(closed: Run, fail: str) -> None:
    done = closed(10, "eager", fail=fail)
    assert done.returncode == 0 and done.stdout.startswith("launched 0 declined 10 kernels 0")
    assert done.stderr.count("gfx950/router_gemv_bf16_n256 is out for this process") == 1


def test_a_launch_that_fails_in_a_capture_says_that_it_is_void(closed: Run) -> None:
    done = closed(10, "capture", fail="hipModuleLaunchKernel:3:1")
    assert done.returncode == 1 and "NETRA_ERROR_CAPTURE" in done.stderr
    assert "This capture is void" in done.stderr


# ---- threads, and what is left behind ------------------------------------------------------------


def sanitized(cxx_compiler: str, proxy: Path, folder: Path, which: str) -> Path:
    """threads.cc with a bridge of its own, both under a sanitizer; HIP is not instrumented."""
    place = folder / which.replace(",", "_")
    place.mkdir()
    flags = ["-std=c++20", "-g1", f"-fsanitize={which}", "-fno-sanitize-recover=all"]
    sources = sorted((ROOT / "bridges/hip").glob("*.cc"))
    done = subprocess.run(
        [cxx_compiler, *flags, f"-I{ROOT / 'bridges/hip'}",
         str(HERE / "threads.cc"), *map(str, sources), str(proxy), "-ldl", "-pthread",
         f"-Wl,-rpath,{proxy.parent}", "-o", str(place / "threads")],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return place / "threads"


def test_threads_share_a_bridge(cxx_compiler: str, proxy: Path, folder: Path) -> None:
    program = sanitized(cxx_compiler, proxy, folder, "thread")
    done = through(proxy, program, 8, 100_000, still=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == ("hits 66667 misses 33333 errors 0 counted 66667 33333 0 kernels 66667\n"
                           "miss hidden-dtype 33333\n")  # fmt: skip
    assert "ThreadSanitizer" not in done.stderr


def test_every_call_that_fails_leaves_nothing_behind(
    cxx_compiler: str, proxy: Path, folder: Path
) -> None:
    program = sanitized(cxx_compiler, proxy, folder, "address,undefined")
    calls = ["hipInit", "hipGetDeviceCount", "hipGetDevice", "hipGetDevicePropertiesR0600",
             "hipRuntimeGetVersion", "hipModuleLoadData", "hipModuleGetFunction",
             "hipFuncGetAttribute", "hipModuleLaunchKernel", "hipStreamIsCapturing",
             "hipModuleUnload"]  # fmt: skip
    for call in calls:
        for number in (1, 2, 5):
            done = through(proxy, program, 2, 12, fail=f"{call}:{number}:999", still=True)
            told = done.stdout + done.stderr
            assert "Sanitizer" not in told, (call, number, told)
            assert done.returncode in (0, 1), (call, number, told)
            if done.returncode == 0:  # at most the one dispatch was lost, and the next ones work
                lost = re.search(r"errors (\d+)", done.stdout)
                assert lost is not None and int(lost[1]) <= 1, (call, number, told)
            else:
                assert "999" in told or "failed" in told, (call, number, told)
