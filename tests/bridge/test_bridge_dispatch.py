"""dispatch, prepare and why: a complete match or the caller's path."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

N = 248320
Run = Callable[..., str]


@pytest.fixture(scope="module")
def bridge(sim_library: Path, bridge_library: Path) -> ModuleType:
    """The bridge of this process, on the simulator."""
    import netra_bridge

    netra_bridge.use("sim")
    return netra_bridge


@pytest.fixture(scope="module")
def argmax(bridge: ModuleType) -> SimpleNamespace:
    """Three rows of logits on the device, with what NumPy says of them."""
    host = np.random.default_rng(3).standard_normal((3, N), dtype=np.float32)
    host[1, 5] = host[1, N - 1] = 9.0
    return SimpleNamespace(
        host=host, want=host.argmax(axis=1), logits=bridge.to_device(host),
        out=bridge.to_device(np.full(3, -1)),
    )  # fmt: skip


@pytest.fixture
def hip(bridge: ModuleType, argmax: SimpleNamespace) -> ctypes.CDLL:
    from netra_bridge import runtime

    return ctypes.CDLL(runtime.state(0).device.hip_library)


@contextmanager
def new_stream(hip: ctypes.CDLL) -> Iterator[int]:
    """A stream that does not wait for the null stream."""
    stream = ctypes.c_void_p()
    assert hip.hipStreamCreateWithFlags(ctypes.byref(stream), 1) == 0
    yield stream.value or 0
    assert hip.hipStreamDestroy(stream) == 0


class Graph:
    """Captures in a with block; launch() replays."""

    def __init__(self, hip: ctypes.CDLL, stream: int) -> None:
        self.hip, self.stream = hip, ctypes.c_void_p(stream)
        self.graph, self.executable = ctypes.c_void_p(), ctypes.c_void_p()

    def __enter__(self) -> Graph:
        assert self.hip.hipStreamBeginCapture(self.stream, 1) == 0
        return self

    def __exit__(self, *_: object) -> None:
        assert self.hip.hipStreamEndCapture(self.stream, ctypes.byref(self.graph)) == 0

    def nodes(self) -> int:
        count = ctypes.c_size_t()
        assert self.hip.hipGraphGetNodes(self.graph, None, ctypes.byref(count)) == 0
        return count.value

    def launch(self) -> None:
        if not self.executable:
            made = ctypes.byref(self.executable)
            assert self.hip.hipGraphInstantiate(made, self.graph, None, None, 0) == 0
        assert self.hip.hipGraphLaunch(self.executable, self.stream) == 0
        assert self.hip.hipStreamSynchronize(self.stream) == 0


# ---- hits ------------------------------------------------------------------------------------


def test_greedy_sampling_equals_numpy(bridge: ModuleType, argmax: SimpleNamespace) -> None:
    bridge.prepare("sampling.argmax", logits=argmax.logits, out=argmax.out)
    given = bridge.dispatch("sampling.argmax", logits=argmax.logits, out=argmax.out)
    assert given is argmax.out
    assert bridge.to_host(argmax.out).tolist() == argmax.want.tolist() == [*argmax.want]
    assert argmax.want[1] == 5


def test_first_use_prepares(bridge: ModuleType, argmax: SimpleNamespace, hip: ctypes.CDLL) -> None:
    with new_stream(hip) as stream:
        out = bridge.to_device(np.full(3, -1))
        bridge.dispatch("sampling.argmax", stream=stream, logits=argmax.logits, out=out)
        bridge.synchronize(stream)
        assert bridge.to_host(out).tolist() == argmax.want.tolist()


class Foreign:
    """A device array of another library."""

    def __init__(self, array: Any) -> None:
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__}


def test_stream_and_arrays_of_other_libraries(
    bridge: ModuleType, argmax: SimpleNamespace, hip: ctypes.CDLL
) -> None:
    with new_stream(hip) as stream:
        out = bridge.to_device(np.full(3, -1))
        logits = bridge.as_array(Foreign(argmax.logits), layout="row_major")
        wrapped = SimpleNamespace(cuda_stream=stream)
        returned = bridge.dispatch(
            "sampling.argmax", stream=wrapped, logits=logits, out=Foreign(out)
        )
        assert isinstance(returned, Foreign)
        bridge.synchronize(wrapped)
        assert bridge.to_host(out).tolist() == argmax.want.tolist()


def test_capture_and_replay(bridge: ModuleType, argmax: SimpleNamespace, hip: ctypes.CDLL) -> None:
    logits = bridge.to_device(argmax.host)
    out = bridge.to_device(np.full(3, -1))
    with new_stream(hip) as stream:
        prepared = bridge.prepare("sampling.argmax", stream=stream, logits=logits, out=out)
        assert prepared.tactics == ("gfx950/argmax_f32",) and not prepared.declined
        # A stream of an earlier test may have had this handle, and then a larger workspace is here.
        assert prepared.workspace_bytes >= 3 * 128 * 8
        with Graph(hip, stream) as graph:
            bridge.dispatch("sampling.argmax", stream=stream, logits=logits, out=out)
        assert bridge.to_host(out).tolist() == [-1, -1, -1]
        assert graph.nodes() == 2
        for column in (7, N - 1):
            host = argmax.host.copy()
            host[:, column] = 50.0
            changed = bridge.to_device(host)
            hip.hipMemcpy(ctypes.c_void_p(logits.ptr), ctypes.c_void_p(changed.ptr),
                          ctypes.c_size_t(host.nbytes), 3)  # fmt: skip
            graph.launch()
            assert bridge.to_host(out).tolist() == [column] * 3


def test_a_tactic_that_asks_for_capture(bridge: ModuleType, hip: ctypes.CDLL) -> None:
    rng = np.random.default_rng(5)
    args = {
        "x": bridge.to_device(rng.standard_normal((9, 2, 512), dtype=np.float32)),
        "out": bridge.empty((9, 512), "f8e4m3fn"),
        "scale": bridge.empty((9, 4), "f32"),
    }
    eager = bridge.why("moe.silu_mul_quant", **args)
    assert (eager.chosen, eager.predicate) == (None, "graph-captured")
    with new_stream(hip) as stream:
        bridge.prepare("moe.silu_mul_quant", stream=stream, **args)
        with Graph(hip, stream) as graph:
            written = bridge.dispatch("moe.silu_mul_quant", stream=stream, require=True, **args)
        assert written == (args["out"], args["scale"])
        graph.launch()
    scale = bridge.to_host(args["scale"])
    assert np.isfinite(scale).all() and (scale > 0).all()


# ---- declines --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "predicate, shape, dtype, strides, rows",
    [
        ("columns", (3, 1000), "f32", None, 3),
        ("columns", (3, N - 1), "f32", None, 3),
        ("rows", (0, N), "f32", None, 0),
        ("logits-dtype", (3, N), "bf16", None, 3),
        ("logits-dtype", (3, N), "i32", None, 3),
        ("logits-rank", (N,), "f32", None, 3),
        ("logits-contiguous", (2, N), "f32", (N // 2, 1), 2),
        ("out-rows", (3, N), "f32", None, 2),
    ],
)
def test_declines_name_the_predicate(
    predicate: str, shape: tuple[int, ...], dtype: str, strides: tuple[int, ...] | None, rows: int,
    bridge: ModuleType, argmax: SimpleNamespace,
) -> None:  # fmt: skip
    logits = bridge.DeviceArray(argmax.logits.ptr, shape, dtype, strides, "row_major")
    out = bridge.DeviceArray(argmax.out.ptr, (rows,), "i64")
    told = bridge.why("sampling.argmax", logits=logits, out=out)
    assert (told.chosen, told.predicate) == (None, predicate), told
    with pytest.raises(bridge.NoTacticError, match=predicate) as caught:
        bridge.dispatch("sampling.argmax", logits=logits, out=out)
    assert caught.value.exit_code == 3


def test_a_decline_calls_the_fallback(bridge: ModuleType, argmax: SimpleNamespace) -> None:
    seen: list[dict[str, object]] = []

    def fallback(**args: object) -> str:
        seen.append(args)
        return "theirs"

    logits = bridge.DeviceArray(argmax.logits.ptr, (3, 1000), "f32")
    call = {"logits": logits, "out": argmax.out}
    assert bridge.dispatch("sampling.argmax", fallback=fallback, **call) == "theirs"
    assert len(seen) == 1
    assert seen[0]["logits"] is logits and seen[0]["out"] is argmax.out
    call["logits"] = argmax.logits
    assert bridge.dispatch("sampling.argmax", fallback=fallback, **call) is argmax.out
    assert len(seen) == 1


def test_require_turns_a_decline_into_an_error(
    bridge: ModuleType, argmax: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    logits = bridge.DeviceArray(argmax.logits.ptr, (3, 1000), "f32")

    def attempt(require: bool = False) -> object:
        return bridge.dispatch(
            "sampling.argmax", fallback=lambda **_: "theirs", require=require,
            logits=logits, out=argmax.out,
        )  # fmt: skip

    with pytest.raises(bridge.NoTacticError, match="columns"):
        attempt(require=True)
    for pattern in ("*", "argmax*", "gfx950/argmax_f32", "sampling.argmax", "x, argmax_f32"):
        monkeypatch.setenv("NETRA_REQUIRE", pattern)
        with pytest.raises(bridge.NoTacticError, match="columns"):
            attempt()
    for pattern in ("", "silu*", "gfx1151/*"):
        monkeypatch.setenv("NETRA_REQUIRE", pattern)
        assert attempt() == "theirs"


def test_what_is_not_prepared_is_declined_under_capture(
    bridge: ModuleType, argmax: SimpleNamespace, hip: ctypes.CDLL
) -> None:
    call = {"logits": argmax.logits, "out": argmax.out}
    with new_stream(hip) as stream:
        with Graph(hip, stream) as graph:
            told = bridge.why("sampling.argmax", stream=stream, **call)
            result = bridge.dispatch(
                "sampling.argmax", stream=stream, fallback=lambda **_: "theirs", **call
            )
            with pytest.raises(bridge.CaptureError, match="before the capture"):
                bridge.prepare("sampling.argmax", stream=stream, **call)
        assert (told.predicate, result) == ("not-prepared", "theirs")
        assert "prepare" in str(told)
        assert graph.nodes() == 0  # and the capture was not harmed


# ---- errors, always --------------------------------------------------------------------------


def test_host_memory_is_an_error(bridge: ModuleType, argmax: SimpleNamespace) -> None:
    def attempt(logits: object) -> None:
        bridge.dispatch(
            "sampling.argmax", fallback=lambda **_: None, logits=logits, out=argmax.out
        )

    with pytest.raises(bridge.PointerError, match="logits is in host memory"):
        attempt(argmax.host)
    for address, words in ((argmax.host.ctypes.data, "host pointer"), (0, "null"), (64, "host")):
        with pytest.raises(bridge.PointerError, match=f"logits is a {words}") as caught:
            attempt(bridge.DeviceArray(address, (3, N), "f32"))
        assert caught.value.exit_code == 2


def test_a_view_beyond_its_allocation_is_an_error(
    bridge: ModuleType, argmax: SimpleNamespace
) -> None:
    for shape, strides, shift in (((4, N), None, 0), ((3, N), None, 4), ((3, N), (-N, 1), 0)):
        view = bridge.DeviceArray(argmax.logits.ptr + shift, shape, "f32", strides)
        with pytest.raises(bridge.PointerError, match="allocation"):
            bridge.dispatch("sampling.argmax", logits=view, out=argmax.out)


def test_calls_that_make_no_sense(bridge: ModuleType, argmax: SimpleNamespace) -> None:
    good = {"logits": argmax.logits, "out": argmax.out}
    attempts: list[tuple[str, dict[str, Any], str]] = [
        ("sampling.argmix", good, "did you mean 'sampling.argmax'"),
        ("sampling.argmax", {**good, "logit": 1}, "no argument 'logit'"),
        ("sampling.argmax", {"logits": argmax.logits}, "'out' is missing"),
        ("sampling.argmax", {**good, "out": 3}, "'out' must be an array"),
        ("sampling.argmax", {**good, "phase": "decoding"}, "did you mean 'decode'"),
        ("sampling.argmax", {**good, "graph": "captured"}, "did you mean 'capture'"),
        ("sampling.argmax", {**good, "stream": "main"}, "stream is a str"),
        ("sampling.argmax", {**good, "out": object()}, "no device array"),
    ]
    for op, args, words in attempts:
        with pytest.raises(bridge.UsageError, match=words):
            bridge.dispatch(op, fallback=lambda **_: None, **args)


def test_an_array_of_another_stream(bridge: ModuleType, argmax: SimpleNamespace) -> None:
    foreign = Foreign(argmax.logits)
    foreign.__cuda_array_interface__["stream"] = 0x7000
    with pytest.raises(bridge.UsageError, match="written on stream 0x7000"):
        bridge.dispatch("sampling.argmax", logits=foreign, out=argmax.out)
    foreign.__cuda_array_interface__["stream"] = 1  # the default stream
    assert bridge.why("sampling.argmax", logits=foreign, out=argmax.out)


def test_a_read_only_output(bridge: ModuleType, argmax: SimpleNamespace) -> None:
    out = Foreign(argmax.out)
    out.__cuda_array_interface__["data"] = (argmax.out.ptr, True)
    with pytest.raises(bridge.UsageError, match="out is read-only"):
        bridge.dispatch("sampling.argmax", logits=argmax.logits, out=out)


# ---- a process of its own --------------------------------------------------------------------

ON_STUB = """
import netra_bridge as bridge
import numpy as np
bridge.use(one)
probe = Stub(one)
N = 248320
def arrays(rows=3):
    return {"logits": bridge.empty((rows, N), "f32"), "out": bridge.empty(rows, "i64")}
def attempt(**given):
    return bridge.dispatch("sampling.argmax", fallback=lambda **_: "theirs",
                           **{**arrays(), **given})
"""


def test_kernel_arguments(run: Run, stub: Callable[..., Path]) -> None:
    """The workspace goes to both stages; both launches are on the caller's stream."""
    run(
        ON_STUB + """
call = arrays(5)
bridge.dispatch("sampling.argmax", stream=0x5000, **call)
last = probe.launch()
out, partial = struct.unpack("<QQ", bytes(last.kernarg[:16]))
assert (list(last.grid), list(last.block)) == ([1, 5, 1], [64, 1, 1])
assert (last.stream, last.size, out) == (0x5000, 16, call["out"].ptr)
assert bridge.prepare("sampling.argmax", stream=0x5000, **call).workspace_bytes == 8192
probe.calls()
bridge.dispatch("sampling.argmax", stream=0x5000, **call)
calls = [name for name in probe.calls() if not name.startswith("hipPointer")]
launch = ["hipGetDevice", "hipModuleLaunchKernel"]
assert calls == ["hipGetDevice", "hipStreamIsCapturing", *launch, *launch], calls
assert struct.unpack("<QQ", bytes(probe.launch().kernarg[:16])) == (out, partial)
""",
        one=stub(), env={"NETRA_ADMIT": "*"},
    )  # fmt: skip


def test_a_gpu_takes_accepted_tactics_only(run: Run, stub: Callable[..., Path]) -> None:
    script = ON_STUB + """
told = bridge.why("sampling.argmax", **arrays())
result = attempt()
if admitted:
    assert told.chosen == "gfx950/argmax_f32" and result != "theirs"
else:
    assert told.predicate == "admission" and result == "theirs", told
    assert bridge.prepare("sampling.argmax", **arrays()).tactics == ()
    os.environ["NETRA_REQUIRE"] = "argmax*"
    try:
        bridge.prepare("sampling.argmax", **arrays())
    except bridge.NoTacticError as error:
        assert "gfx950/argmax_f32" in error.message
    else:
        raise AssertionError
    assert "hipModuleLoadData" not in probe.calls()
"""
    for admit, admitted in (("", False), ("silu*", False), ("argmax*", True), ("gfx950/*", True)):
        run(script, one=stub(), admitted=admitted, env={"NETRA_ADMIT": admit})
    switched_off = {"NETRA_ADMIT": "*", "NETRA_DISABLE": "argmax*"}
    run(script, one=stub(), admitted=False, env=switched_off)


def test_an_unknown_target_gets_the_fallback(run: Run, stub: Callable[..., Path]) -> None:
    run(
        ON_STUB + """
assert attempt() == "theirs"
told = bridge.why("sampling.argmax", **arrays())
assert told.predicate == "op" and "gfx1250" in str(told), told
""",
        one=stub(), env={"STUB_ARCH": "gfx1250", "NETRA_ADMIT": "*"},
    )  # fmt: skip


def test_a_hip_failure_disables_the_tactic(run: Run, stub: Callable[..., Path]) -> None:
    """Once for the process, logged once; the caller's path serves."""
    run(
        ON_STUB + """
import logging
records = []
class Handler(logging.Handler):
    def emit(self, record):
        records.append(record.getMessage())
logging.getLogger("netra_bridge").addHandler(Handler(logging.WARNING))
call = arrays()
os.environ["STUB_FAIL"] = failing + "=2"
assert bridge.dispatch("sampling.argmax", fallback=lambda **_: "theirs", **call) == "theirs"
del os.environ["STUB_FAIL"]
assert bridge.dispatch("sampling.argmax", fallback=lambda **_: "theirs", **call) == "theirs"
assert bridge.why("sampling.argmax", **call).predicate == "disabled"
assert "gfx950/argmax_f32" in bridge.prepare("sampling.argmax", **call).declined
assert len(records) == 1 and failing in records[0] and "disabled" in records[0], records
assert probe.lib.stubPending() == 0
""",
        one=stub(), failing="hipModuleLoadData", env={"NETRA_ADMIT": "*"},
    )  # fmt: skip


def test_a_failed_launch_is_an_error(run: Run, stub: Callable[..., Path]) -> None:
    run(
        ON_STUB + """
attempt()
os.environ["STUB_FAIL"] = "hipModuleLaunchKernel=719"
for capturing, kind, words in ((0, bridge.BridgeError, "719"), (1, bridge.CaptureError, "void")):
    call = arrays()
    probe.lib.stubCapturing(capturing)
    try:
        bridge.dispatch("sampling.argmax", fallback=lambda **_: "theirs", **call)
    except kind as error:
        assert "argmax_f32_stage1" in error.message and words in error.message
    else:
        raise AssertionError("no error")
    probe.lib.stubCapturing(0)
""",
        one=stub(), env={"NETRA_ADMIT": "*"},
    )  # fmt: skip


MANIFEST = ON_STUB + """
import hashlib, json, shutil
from netra_catalog import paths
root = tmp / "checkout"
for name in ("asm", "catalog", "harness"):
    (root / name).parent.mkdir(exist_ok=True)
    (root / name).symlink_to(paths.repo_root() / name)
shutil.copytree(stage2.parents[1] / "gfx950", root / "build" / "gfx950")
(root / "build" / "bridge").symlink_to(stage2.parents[1] / "bridge")
os.environ["NETRA_ROOT"] = str(root)
objects = root / "build" / "gfx950"
table = {f"gfx950/{path.stem}": hashlib.sha256(path.read_bytes()).hexdigest()
         for path in objects.glob("*.co")}
manifest = root / "build" / "objects.json"
manifest.write_text(json.dumps(table))
stage1 = objects / "argmax_f32_stage1.co"
def refuses(*words):
    for action in (attempt, lambda: bridge.prepare("sampling.argmax", **arrays())):
        try:
            action()
        except bridge.ArtefactError as error:
            for word in words:
                assert word in error.message, error.message
        else:
            raise AssertionError("opened a wrong artefact")
"""


@pytest.mark.parametrize(
    "damage, words",
    [
        ("", ()),
        ("stage1.write_bytes(stage1.read_bytes() + b'x')", ("SHA-256", "argmax_f32_stage1")),
        ("stage1.write_bytes(b'')", ("argmax_f32_stage1.co", "empty")),
        ("stage1.write_bytes(stage1.read_bytes()[:3000])", ("truncated",)),
        ("stage1.unlink()", ("argmax_f32_stage1.co", "make gfx950")),
        ("del table['gfx950/argmax_f32_stage1']; manifest.write_text(json.dumps(table))",
         ("gfx950/argmax_f32_stage1", "objects.json", "make gfx950")),
        ("manifest.write_text('{')", ("objects.json", "make")),
        ("manifest.write_text('[1]')", ("objects.json",)),
        ("shutil.copy(objects / 'argmax_f32_stage2.co', stage1)", ("SHA-256",)),
        ("manifest.unlink(); shutil.copy(objects / 'argmax_f32_stage2.co', stage1)",
         ("no kernel argmax_f32_stage1", "argmax_f32_stage2")),
    ],
)  # fmt: skip
def test_a_wrong_artefact_never_falls_through(
    damage: str, words: tuple[str, ...], run: Run, stub: Callable[..., Path]
) -> None:
    if words:
        script = f"{MANIFEST}\n{damage}\nrefuses(*words)\n"
    else:
        script = MANIFEST + '\nassert attempt() != "theirs"\n'
    run(script, one=stub(), words=words, env={"NETRA_ADMIT": "*"})


def test_without_a_manifest_the_first_bytes_count(run: Run, stub: Callable[..., Path]) -> None:
    run(
        MANIFEST + """
from netra_bridge import runtime
manifest.unlink()
assert attempt() != "theirs"
state = runtime.state(0)
state.kernels.clear(), state.objects.clear()  # as another device would be
stage1.write_bytes(stage1.read_bytes() + b"x")
refuses("SHA-256", "argmax_f32_stage1")
""",
        one=stub(), env={"NETRA_ADMIT": "*"},
    )  # fmt: skip


def test_memory_is_released_and_grows_by_powers_of_two(
    run: Run, stub: Callable[..., Path]
) -> None:
    run(
        ON_STUB + """
from netra_bridge import runtime
for rows in (1, 3, 4, 5, 2):
    keep = arrays(8)
    args = {name: bridge.DeviceArray(a.ptr, (rows, *a.shape[1:]), a.dtype, None, a.layout, a)
            for name, a in keep.items()}
    bridge.dispatch("sampling.argmax", **args)
    sizes = [workspace.size for workspace in runtime.state(0).workspaces.values()]
    assert sizes == [{1: 1024, 3: 4096, 4: 4096, 5: 8192, 2: 8192}[rows]], (rows, sizes)
calls = probe.calls()
assert calls.count("hipMalloc") - calls.count("hipFree") <= 12, calls
""",
        one=stub(), env={"NETRA_ADMIT": "*"},
    )  # fmt: skip


def test_import_bridge_is_the_same_module(run: Run) -> None:
    run("import bridge, netra_bridge; assert bridge is netra_bridge")


def test_a_missing_bridge_library_says_what_to_type(run: Run, tmp_path: Path) -> None:
    for name in ("asm", "catalog"):
        (tmp_path / name).mkdir()
    run(
        """
        import netra_bridge
        try:
            netra_bridge.empty(3, "f32")
        except netra_bridge.LibraryError as error:
            assert "make bridge" in error.message and error.exit_code == 4
        else:
            raise AssertionError
        """,
        env={"NETRA_ROOT": str(tmp_path)},
    )


def test_the_library_cannot_change(run: Run, stub: Callable[..., Path]) -> None:
    run(
        ON_STUB + """
bridge.empty(3, "f32")
bridge.use(one), bridge.use(None)
try:
    bridge.use(two)
except bridge.LibraryError as error:
    assert one in error.message and two in error.message
else:
    raise AssertionError
""",
        one=stub(), two=stub(folder="two"),
    )  # fmt: skip


# ---- the simulator, through the C ABI --------------------------------------------------------


def test_an_object_of_another_target_on_the_simulator(run: Run, sim_library: Path) -> None:
    run(
        """
        first, second = Device(0, sim), Device(1, None)
        assert (first.arch, second.arch) == ("gfx950", "gfx1151")
        assert first.simulated and (first.warp_size, second.warp_size) == (64, 32)
        refused(abi.ARCH, lambda: second.load(stage2, None, "gfx1151", 0), "gfx950", "gfx1151")
        refused(abi.DEVICE, lambda: Device(2, None), "no device 2")
        first.load(stage2, None, "gfx950", 0)
        """,
        sim=sim_library, env={"NETRA_SIM_DEVICES": "gfx950,gfx1151"},
    )  # fmt: skip


def test_devices_side_by_side(run: Run, sim_library: Path) -> None:
    """The device follows from the arrays; mixing two is an error."""
    run(
        """
        import netra_bridge as bridge
        import numpy as np
        bridge.use("sim")
        rng = np.random.default_rng(1)
        x = rng.standard_normal((2, 248320), dtype=np.float32)
        there = bridge.to_device(np.arange(2), device=1)
        logits, out = bridge.to_device(x, device=1), bridge.to_device(np.arange(2), device=1)
        bridge.dispatch("sampling.argmax", logits=logits, out=out, require=True)
        assert bridge.to_host(out).tolist() == x.argmax(axis=1).tolist()
        try:
            bridge.dispatch("sampling.argmax", logits=logits, out=bridge.to_device(np.arange(2)))
        except bridge.PointerError as error:
            assert "out is on device 0, logits on device 1" in error.message
        else:
            raise AssertionError
        """,
        env={"NETRA_SIM_DEVICES": "gfx1151,gfx950"},
    )


def test_two_simulators_are_refused(run: Run, sim_library: Path, tmp_path: Path) -> None:
    import shutil

    copy = tmp_path / "copy" / "libamdhip64.so.7"
    copy.parent.mkdir()
    shutil.copy(sim_library, copy)
    run(
        """
        maps = [ctypes.CDLL(sim), ctypes.CDLL(copy)]
        refused(abi.LIBRARY, lambda: Device(0, None), sim, copy)
        """,
        sim=sim_library, copy=copy,
    )  # fmt: skip
