"""Nothing that a program can do ends the process: code that leaves its code, calls itself without
end, reads the wild; damaged objects and texts; grids that never finish.  Each is an error that
says what happened.
"""

from __future__ import annotations

import hashlib
import struct
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import netra_sim
import pytest
import sim_kernels
from netra_sim.hip import Hip, HipError
from sim_kernels import POINTER, VALUE

Assemble = Callable[..., Path]
ARCHES = ("gfx950", "gfx1151")
ARGS = (("data", 0, 8, POINTER), ("value", 8, 8, VALUE))
CORPUS = Path(__file__).with_name("fuzz")

# name -> (body, HIP error, part of the message); {b64} and {b32} are suffixes of the target.
CRIMES = {
    "self-branch": (".Lhere:\n s_branch .Lhere\n", "LaunchFailure", "NETRA_SIM_WAVE_BUDGET"),
    "vector-loop": (".Lhere:\n v_mov_b32 v1, v0\n s_branch .Lhere\n", "LaunchFailure",
                    "NETRA_SIM_WAVE_BUDGET"),
    "recursion": ("s_getpc_b64 s[4:5]\n.Lhere:\n s_swappc_b64 s[6:7], s[4:5]\n s_endpgm\n",
                  "LaunchFailure", "NETRA_SIM_WAVE_BUDGET"),
    "jump-to-data": ("s_setpc_b64 s[0:1]\n", "LaunchFailure", "s_setpc_b64"),
    "jump-to-nowhere": ("s_mov_b32 s4, 0x1000\n s_mov_b32 s5, 0\n s_setpc_b64 s[4:5]\n",
                        "LaunchFailure", "s_setpc_b64"),
    "jump-far-away": ("s_mov_b32 s4, -4\n s_mov_b32 s5, -1\n s_setpc_b64 s[4:5]\n",
                      "LaunchFailure", "s_setpc_b64"),
    "no-end": ("s_nop 0\n", "LaunchFailure", ""),
    "wild-load": ("v_mov_b32 v2, 0x12345678\n v_mov_b32 v3, 0\n"
                  " global_load_{b32} v4, v[2:3], off\n s_endpgm\n", "IllegalAddress",
                  "out-of-bounds"),
    "wild-store": ("v_mov_b32 v2, -1\n v_mov_b32 v3, -1\n"
                   " global_store_{b32} v[2:3], v0, off\n s_endpgm\n", "IllegalAddress",
                   "out-of-bounds"),
    "wild-flat": ("v_mov_b32 v2, 0\n v_mov_b32 v3, 0x7fff\n flat_load_{b64} v[4:5], v[2:3]\n"
                  " s_endpgm\n", "IllegalAddress", "out-of-bounds"),
    "wild-scalar": ("s_mov_b32 s4, 0\n s_mov_b32 s5, 0xffff\n s_load_{b64} s[6:7], s[4:5], 0\n"
                    " s_endpgm\n", "IllegalAddress", ""),
    "write-to-code": ("s_getpc_b64 s[4:5]\n v_mov_b32 v2, 0\n"
                      " global_store_{b32} v2, v0, s[4:5]\n s_endpgm\n", "IllegalAddress",
                      "read-only"),
    "write-to-arguments": ("v_mov_b32 v2, 0\n global_store_{b32} v2, v0, s[0:1]\n s_endpgm\n",
                           "IllegalAddress", "read-only"),
    "misaligned-atomic": ("s_load_{b64} s[4:5], s[0:1], 0\n v_mov_b32 v2, 2\n"
                          " s_waitcnt lgkmcnt(0)\n global_atomic_add{u32} v2, v0, s[4:5]\n"
                          " s_endpgm\n", "IllegalAddress", "misaligned"),
    "lds-overrun": ("v_mov_b32 v2, 0x100\n ds_{write} v2, v0\n s_endpgm\n",
                    "IllegalAddress", "LDS"),
    "lds-wrap": ("v_mov_b32 v2, -4\n ds_{write} v2, v0 offset:65535\n s_endpgm\n",
                 "IllegalAddress", "LDS"),
    "scratch-overrun": ("scratch_store_{b32} off, v0, off offset:4\n s_endpgm\n", "IllegalAddress",
                        "scratch"),
    "lone-barrier": ("v_cmp_gt_u32 vcc{_lo}, 64, v0\n s_cbranch_vccz .Lend\n.Lagain:\n s_barrier\n"
                     " s_branch .Lagain\n.Lend:\n s_endpgm\n", "LaunchFailure", ""),
    "no-instruction": (".long 0xffffffff\n s_endpgm\n", "LaunchFailure", "not implemented"),
}
_SPELL = {
    "gfx950": {"b32": "dword", "b64": "dwordx2", "u32": "", "write": "write_b32", "_lo": ""},
    "gfx1151": {"b32": "b32", "b64": "b64", "u32": "_u32", "write": "store_b32", "_lo": "_lo"},
}


@pytest.fixture(scope="module")
def hip(sim_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hip]:
    folder = tmp_path_factory.mktemp("sim")
    with sim_kernels.private_simulator(sim_library, folder, "gfx950,gfx1151") as opened:
        yield opened


@pytest.fixture(autouse=True)
def budgets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETRA_SIM_WAVE_BUDGET", "50000")
    monkeypatch.setenv("NETRA_SIM_LAUNCH_BUDGET", "5000000")
    monkeypatch.setenv("NETRA_SIM_SECONDS", "5")


def run(hip: Hip, path: Path, arch: str, name: str, grid: int = 2) -> str:
    """The error and the fault of a launch; "" when it went well.  The device works afterwards."""
    hip.call("hipSetDevice", ARCHES.index(arch))
    module = hip.load_module(path)
    data = hip.malloc(256)
    try:
        hip.launch(hip.function(module, name), (grid, 1, 1), (128, 1, 1),
                   struct.pack("<QQ", data, 1))
        hip.synchronize()
        return ""
    except HipError as error:
        return f"{error} {hip.last_fault()}"
    finally:
        hip.library.netraSimReset()
        hip.free(data)
        hip.unload_module(module)


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("crime", CRIMES)
def test_a_kernel_that_goes_astray(
    hip: Hip, assemble: Assemble, arch: str, crime: str
) -> None:
    body, error, text = CRIMES[crime]
    for key, word in _SPELL[arch].items():
        body = body.replace("{" + key + "}", word)
    path = assemble(sim_kernels.kernel("k", body, ARGS, 16, arch, lds=64), arch)
    told = run(hip, path, arch, "k")
    assert error in told and text in told, told
    # And the next launch is served.
    good = sim_kernels.kernel("k", "s_endpgm\n", ARGS, 16, arch)
    assert run(hip, assemble(good, arch), arch, "k") == ""


@pytest.mark.parametrize("arch", ARCHES)
def test_a_grid_that_never_ends(
    hip: Hip, assemble: Assemble, arch: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NETRA_SIM_LAUNCH_BUDGET", "1000")
    body = ".rept 4000\n s_nop 0\n.endr\n s_endpgm\n"
    path = assemble(sim_kernels.kernel("k", body, ARGS, 16, arch), arch)
    assert "larger than the hardware allows" in run(hip, path, arch, "k", 2**31 - 1)
    told = run(hip, path, arch, "k", 2**25 - 1)
    assert "NETRA_SIM_LAUNCH_BUDGET" in told, told


def descriptor_of(image: bytes) -> int:
    """File offset of the first kernel descriptor."""
    table, = struct.unpack_from("<Q", image, 40)
    count, names = struct.unpack_from("<HH", image, 60)
    headers = [struct.unpack_from("<IIQQQQ", image, table + 64 * i) for i in range(count)]
    start = headers[names][4]
    (offset,) = (h[4] for h in headers if image[start + h[0] :].startswith(b".rodata\0"))
    return int(offset)


@pytest.mark.parametrize(
    ("at", "form", "value", "text"),
    [
        (44, "<I", 63, "first AGPR at 256 of"),
        (56, "<I", 0x7F | 4 << 16, "19 user SGPRs"),
        (58, "<H", 17, "user SGPRs"),
        (58, "<H", 100 << 7 | 1, "of a kernarg segment of 16"),
    ],
)
def test_a_descriptor_that_asks_for_too_much(
    hip: Hip, assemble: Assemble, tmp_path: Path, at: int, form: str, value: int, text: str
) -> None:
    image = bytearray(assemble(sim_kernels.add()).read_bytes())
    struct.pack_into(form, image, descriptor_of(image) + at, value)
    path = tmp_path / "bad.co"
    path.write_bytes(image)
    hip.call("hipSetDevice", 0)
    with pytest.raises(HipError, match=text):
        hip.load_module(path)


def test_more_scratch_than_a_wave_can_have(hip: Hip, assemble: Assemble) -> None:
    source = sim_kernels.add().replace(".amdhsa_next_free_sgpr",
                                       ".amdhsa_private_segment_fixed_size 1000000\n"
                                       "          .amdhsa_next_free_sgpr")
    path = assemble(source.replace(".private_segment_fixed_size: 0",
                                   ".private_segment_fixed_size: 1000000"))
    hip.call("hipSetDevice", 0)
    with pytest.raises(HipError, match="scratch per lane are more than a wave can have"):
        hip.load_module(path)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("\ts_endpgm // 000000000000: BF810000\n", "does not fit"),
        ("\ts_endpgm // FFFFFFFFFFFFFFF0: BF810000\n", "does not fit"),
        ("", "its entry is not an instruction"),
        ("\ts_endpgm // 00000000{0}: BF810000\n\ts_nop 0 // 00000000{0}: BF800000\n",
         "does not fit"),
        ("\tv_mov_b32 v300, v0 // 00000000{0}: BF810000\n", "past the"),
        ("\tv_mov_b32 s3, v0 // 00000000{0}: BF810000\n", "has to be a vector register"),
        ("\ts_mov_b32 s900, s0 // 00000000{0}: BF810000\n", "does not exist"),
        ("\ts_mov_b32 v0, s0 // 00000000{0}: BF810000\n", "is a vector register"),
        ("\tds_read_b32 v1, s900 // 00000000{0}: BF810000\n", "has to be a vector register"),
        ("\tv_mfma_f32_16x16x4_f32 v[0:3], 1.0, v4, 0 // 00000000{0}: BF810000\n",
         "has to be a vector register"),
        ("\t\n\t//\n\t // 0: 0\n;:\n; :9\n\ts_nop // 00000000{0}: BF810000", ""),
    ],
)
def test_a_disassembly_that_lies(
    hip: Hip, assemble: Assemble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str,
    told: str
) -> None:
    path = assemble(sim_kernels.kernel("k", f"// {text!r} \n s_endpgm\n", ARGS, 16)
                    .replace("\\", "/"))
    image = path.read_bytes() + hashlib.sha256(text.encode()).digest()  # another hash
    path = tmp_path / "k.co"
    path.write_bytes(image)
    name = hashlib.sha256(image).hexdigest()
    entry = descriptor_of(image)
    # The kernel starts its section, at a multiple of 256 behind .rodata.
    start = struct.unpack_from("<q", image, entry + 16)[0] + entry
    (tmp_path / f"{name}.w64.txt").write_text(text.replace("{0}", f"{start:08X}"))
    monkeypatch.setenv("NETRA_DISASSEMBLY", str(tmp_path))
    found = run(hip, path, "gfx950", "k")
    assert "LaunchFailure" in found and told in found, found


def test_the_fuzzer_fits_what_it_feeds(llvm_bin: Path) -> None:
    """It is built by `make fuzz` alone: a reader that changes must not leave it behind."""
    done = subprocess.run(
        [llvm_bin / "clang++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
         "-Wno-deprecated-declarations", "-Isim/core", "sim/fuzz/fuzz.cc"],
        cwd=CORPUS.parents[1], capture_output=True, text=True,
    )
    assert done.returncode == 0, done.stderr


def corpus(kind: str) -> list[Path]:
    return sorted((CORPUS / kind).iterdir()) if (CORPUS / kind).is_dir() else []


def test_objects_that_a_fuzzer_found(hip: Hip) -> None:
    """Each loads, or is refused with a sentence."""
    found = [*corpus("elf"), *corpus("bundle"), *corpus("launch")]
    assert len(found) >= 100
    for path in found:
        for device in range(len(ARCHES)):
            hip.call("hipSetDevice", device)
            try:
                hip.unload_module(hip.load_module(path))
            except HipError as error:
                assert error.detail, path.name


def test_launches_that_a_fuzzer_found(hip: Hip, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop of matrix instructions stops at the budget of a wave."""
    monkeypatch.setenv("NETRA_SIM_WAVE_BUDGET", "2000")
    (path,) = corpus("launch")
    (kernel,) = netra_sim.inspect(path)["kernels"]
    hip.call("hipSetDevice", 0)
    module = hip.load_module(path)
    data = hip.malloc(1 << 24)
    arguments = struct.pack("<5Q4I", *[data] * 5, *[128] * 4)
    hip.launch(hip.function(module, kernel["name"]), (1, 1, 1), (256, 1, 1), arguments)
    with pytest.raises(HipError):
        hip.synchronize()
    assert "NETRA_SIM_WAVE_BUDGET" in hip.last_fault()
    hip.library.netraSimReset()
    hip.free(data)
    hip.unload_module(module)


def test_texts_that_a_fuzzer_found(
    hip: Hip, assemble: Assemble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the disassembly of an object: it is refused, or the kernel runs, or faults with a name."""
    monkeypatch.setenv("NETRA_DISASSEMBLY", str(tmp_path))
    monkeypatch.setenv("NETRA_SIM_WAVE_BUDGET", "2000")
    good = assemble(sim_kernels.kernel("k", "s_endpgm\n", ARGS, 16)).read_bytes()
    found = corpus("text")
    assert len(found) >= 20
    for path in found:
        image = good + path.name.encode()
        (tmp_path / "k.co").write_bytes(image)
        text = tmp_path / f"{hashlib.sha256(image).hexdigest()}.w64.txt"
        text.write_bytes(path.read_bytes()[1:])
        told = run(hip, tmp_path / "k.co", "gfx950", "k", 1)
        assert told == "" or "k: " in told, (path.name, told)
