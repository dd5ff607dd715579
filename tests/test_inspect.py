"""netra_sim.inspect and the command line: what a code object holds, and what is wrong with one."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import netra_sim
import numpy as np
import pytest
import sim_kernels
from click.testing import CliRunner, Result
from netra_sim.cli import main
from netra_sim.library import CodeObjectError, inspect_bytes
from sim_kernels import POINTER, VALUE

Assemble = Callable[..., Path]

pytestmark = pytest.mark.usefixtures("sim_library")


@pytest.fixture(scope="module")
def image(assemble: Assemble) -> bytes:
    return assemble(sim_kernels.add()).read_bytes()


def sections(image: bytes) -> dict[str, tuple[int, int, int]]:
    """name -> (address, file offset, size)"""
    table, = struct.unpack_from("<Q", image, 40)
    count, names = struct.unpack_from("<HH", image, 60)
    headers = [struct.unpack_from("<IIQQQQ", image, table + 64 * i) for i in range(count)]
    start = headers[names][4]
    return {
        image[start + h[0] : image.index(b"\0", start + h[0])].decode(): h[3:] for h in headers
    }


def spoil(image: bytes, offset: int, new: bytes) -> bytes:
    return image[:offset] + new + image[offset + len(new) :]


def wrong(image: bytes, code: int) -> str:
    with pytest.raises(CodeObjectError) as caught:
        inspect_bytes(image, "x.co")
    assert caught.value.code == code, caught.value.message
    assert caught.value.message.startswith("x.co: ")
    return str(caught.value.message)


# ---- good objects ------------------------------------------------------------------------------


def test_fields(assemble: Assemble) -> None:
    path = assemble(sim_kernels.add(lds=2048, max_workgroup=256))
    document = netra_sim.inspect(path)
    assert document["file"] == str(path)
    assert (document["arch"], document["code_object_version"]) == ("gfx950", 5)
    assert document["co_sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    (kernel,) = document["kernels"]
    assert kernel["name"] == "add_step"
    assert kernel["vgpr"] == {"used": 3, "declared": 8, "allocated": 8}
    assert kernel["agpr"] == {"used": 0, "declared": 0, "allocated": 0}
    assert kernel["sgpr"] == {"used": 7, "declared": 16, "allocated": 32}
    assert (kernel["lds"], kernel["scratch"], kernel["kernarg"]) == (2048, 0, 16)
    assert kernel["args"] == [
        {"name": "data", "kind": POINTER, "offset": 0, "size": 8},
        {"name": "step", "kind": VALUE, "offset": 8, "size": 4},
    ]
    assert (kernel["wave_size"], kernel["max_workgroup"]) == (64, 256)
    assert (kernel["code_bytes"], kernel["dynamic_stack"]) == (60, False)


def test_gfx1151_encodes_no_sgprs(assemble: Assemble) -> None:
    (kernel,) = netra_sim.inspect(assemble(sim_kernels.add("gfx1151"), "gfx1151"))["kernels"]
    assert kernel["sgpr"] == {"used": 7, "declared": 16, "allocated": None}
    assert (kernel["wave_size"], kernel["waves_per_simd"]) == (32, 16)


@pytest.mark.parametrize(
    "arch, vgprs, waves",
    [("gfx950", v, w) for v, w in
     ((64, 8), (72, 7), (80, 6), (96, 5), (128, 4), (168, 3), (256, 2), (512, 1))]
    + [("gfx1151", v, w) for v, w in
       ((96, 16), (120, 12), (144, 10), (168, 9), (192, 8), (216, 7), (240, 6), (256, 5))],
)
def test_waves_by_registers(assemble: Assemble, arch: str, vgprs: int, waves: int) -> None:
    text = sim_kernels.add(arch).replace(".amdhsa_next_free_vgpr 8",
                                         f".amdhsa_next_free_vgpr {vgprs}")
    (kernel,) = netra_sim.inspect(assemble(text, arch))["kernels"]
    assert kernel["waves_per_simd"] == waves


@pytest.mark.parametrize(
    "arch, lds, waves",
    [("gfx950", n, w) for n, w in
     ((20480, 8), (32768, 4), (40960, 4), (65536, 2), (81920, 2), (163840, 1))]
    + [("gfx1151", n, w) for n, w in ((16384, 16), (20480, 12), (32768, 8), (65536, 4))],
)
def test_waves_by_lds(assemble: Assemble, arch: str, lds: int, waves: int) -> None:
    text = sim_kernels.add(arch, lds=lds, max_workgroup=256)
    (kernel,) = netra_sim.inspect(assemble(text, arch))["kernels"]
    assert kernel["waves_per_simd"] == waves


@pytest.mark.parametrize("version, metadata", [(4, "1, 1"), (5, "1, 2"), (6, "1, 2")])
def test_code_object_versions(assemble: Assemble, version: int, metadata: str) -> None:
    text = sim_kernels.add(version=version).replace("[1, 2]", f"[{metadata}]")
    assert netra_sim.inspect(assemble(text))["code_object_version"] == version


def test_kernel_hash_covers_what_interfaces_say(assemble: Assemble) -> None:
    """Text, descriptor and metadata count; the place in the file and debug lines do not."""

    def sha(text: str) -> str:
        (kernel,) = netra_sim.inspect(assemble(text))["kernels"]
        return str(kernel["kernel_sha256"])

    base = sim_kernels.add()
    assert sha(base) == sha("// one more line\n" + base)
    moved = base.replace(".text\n", ".text\n        .fill 64, 4, 0xbf800000\n", 1)
    assert sha(base) == sha(moved)
    swapped = base.replace("    .sgpr_count: 16\n    .vgpr_count: 8\n",
                           "    .vgpr_count: 8\n    .sgpr_count: 16\n")
    assert sha(base) == sha(swapped)
    changes = [
        base.replace("v_add_u32       v2, s6, v2", "v_sub_u32       v2, s6, v2"),
        base.replace("denorm_mode_32 3", "denorm_mode_32 0"),
        base.replace(".name: step", ".name: stride"),
        base.replace(".vgpr_count: 8", ".vgpr_count: 7"),
    ]
    assert len({sha(base), *map(sha, changes)}) == 5


def test_kernel_without_metadata_is_shown(assemble: Assemble) -> None:
    second = sim_kernels.kernel("second", "        s_endpgm\n", (), 0, metadata=False)
    second = "\n".join(line for line in second.splitlines()
                       if ".amdgcn_target" not in line and "code_object_version" not in line)
    kernels = netra_sim.inspect(assemble(sim_kernels.add(extra_text=second)))["kernels"]
    assert [(k["name"], k["has_metadata"]) for k in kernels] == [("add_step", True),
                                                                 ("second", False)]
    assert kernels[1]["vgpr"]["declared"] is None


def test_stripped_object(image: bytes, llvm_bin: Path, tmp_path: Path) -> None:
    path = tmp_path / "stripped.co"
    path.write_bytes(image)
    subprocess.run([llvm_bin / "llvm-strip", "--strip-all", path], check=True)
    assert path.stat().st_size < len(image)
    stripped, full = netra_sim.inspect(path), inspect_bytes(image, "x")
    assert stripped["kernels"][0]["kernel_sha256"] == full["kernels"][0]["kernel_sha256"]
    assert stripped["co_sha256"] != full["co_sha256"]


# ---- bad objects -------------------------------------------------------------------------------


def test_container(image: bytes) -> None:
    assert "empty" in wrong(b"", 200)
    assert "HTML page" in wrong(b"\n<!DOCTYPE html>\n<html><body>404", 200)
    assert "not an ELF file" in wrong(b"PK\3\4", 200)
    assert "an ELF header alone has 64" in wrong(image[:63], 200)
    assert "32-bit" in wrong(spoil(image, 4, b"\1"), 200)
    assert "big-endian" in wrong(spoil(image, 5, b"\2"), 200)


def test_identity(image: bytes) -> None:
    assert "machine 62 (x86-64)" in wrong(spoil(image, 18, b"\x3e\0"), 200)
    assert "relocatable" in wrong(spoil(image, 16, b"\1\0"), 200)
    assert "OS ABI 0" in wrong(spoil(image, 7, b"\0"), 200)
    assert "ABI version is 1" in wrong(spoil(image, 8, b"\1"), 200)
    assert "gfx90a, which this simulator does not have" in wrong(spoil(image, 48, b"\x3f"), 209)
    assert "unknown processor" in wrong(spoil(image, 48, b"\xfe"), 209)
    text = wrong(spoil(image, 48, b"\x4a"), 218)
    assert "metadata says target gfx950, the ELF header says gfx1151" in text


def test_every_truncation(image: bytes) -> None:
    """No prefix of an object is taken for an object, and none brings the parser down."""
    for length in [*range(0, 64), *range(64, len(image), 7), len(image) - 1]:
        with pytest.raises(CodeObjectError) as caught:
            inspect_bytes(image[:length], "x.co")
        assert caught.value.code == 200
    assert "truncated" in wrong(image[: len(image) // 2], 200)


def test_damage(image: bytes) -> None:
    """Random damage gives an answer or one of the loader's errors, never anything else."""
    rng = random.Random(11)
    for _ in range(200):
        damaged = bytearray(image)
        for _ in range(rng.choice((1, 1, 2, 8))):
            at = rng.choice((rng.randrange(len(image)), rng.randrange(0x700)))
            damaged[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        try:
            inspect_bytes(bytes(damaged), "x.co")
        except CodeObjectError as error:
            assert error.code in (200, 209, 218), error.message
            assert len(error.message) > len("x.co: ") + 10


def test_missing_note(assemble: Assemble, image: bytes) -> None:
    bare = assemble(sim_kernels.add(metadata=False)).read_bytes()
    assert "no metadata note" in wrong(bare, 200)
    _, note, _ = sections(image)[".note"]
    assert "MessagePack" in wrong(spoil(image, note + 20, b"\xc1"), 200)


def test_descriptor(image: bytes) -> None:
    parts = sections(image)
    _, dynsym, size = parts[".dynsym"]
    _, descriptor, _ = parts[".rodata"]
    address = parts[".rodata"][0]
    (symbol,) = [at for at in range(dynsym, dynsym + size, 24)
                 if struct.unpack_from("<Q", image, at + 8) == (address,)]
    moved = spoil(image, symbol + 8, struct.pack("<Q", 0x7000_0000))
    assert "add_step.kd at 0x70000000 lies outside" in wrong(moved, 218)
    moved = spoil(image, symbol + 8, struct.pack("<Q", address - 8))
    assert "not aligned to 64" in wrong(moved, 218)
    off = spoil(image, descriptor + 16, struct.pack("<q", 1 << 40))
    assert "is not in executable code" in wrong(off, 218)
    off = spoil(image, descriptor + 16, struct.pack("<q", struct.unpack_from(
        "<q", image, descriptor + 16)[0] + 4))
    assert "not aligned to 256" in wrong(off, 218)


@pytest.mark.parametrize(
    "change, text",
    [
        ((".kernarg_segment_size: 16", ".kernarg_segment_size: 24"),
         "kernarg size 24, the kernel descriptor says 16"),
        ((".wavefront_size: 64", ".wavefront_size: 32"), "wave size 32"),
        ((".group_segment_fixed_size: 0", ".group_segment_fixed_size: 64"), "LDS size 64"),
        ((".private_segment_fixed_size: 0", ".private_segment_fixed_size: 8"), "scratch size 8"),
        ((".offset: 8, .size: 4", ".offset: 14, .size: 4"), "argument step ends at byte 18"),
        ((".symbol: add_step.kd", ".symbol: add_stop.kd"), "no symbol add_stop.kd"),
    ],
)
def test_metadata_against_descriptor(
    assemble: Assemble, change: tuple[str, str], text: str
) -> None:
    source = sim_kernels.add()
    assert change[0] in source
    assert text in wrong(assemble(source.replace(*change)).read_bytes(), 218)


# ---- the command line --------------------------------------------------------------------------


def cli(*args: object) -> Result:
    return CliRunner().invoke(main, [str(a) for a in args])


def test_inspect_command(assemble: Assemble) -> None:
    path = assemble(sim_kernels.add())
    shown = cli("inspect", path)
    assert shown.exit_code == 0
    for text in ("add_step", "kernel_sha256", "co_sha256", "VGPR", "AGPR", "SGPR", "LDS",
                 "scratch", "kernarg", "wave size", "workgroup", "8 per SIMD", "data", "step"):
        assert text in shown.output
    document = json.loads(cli("inspect", path, "--json").output)
    assert document == netra_sim.inspect(path)


@pytest.mark.parametrize("content", [b"", b"<html>", b"\x7fELF" + bytes(60)])
def test_inspect_command_on_bad_files(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.co"
    path.write_bytes(content)
    for options in ((), ("--json",)):
        shown = cli("inspect", path, *options)
        assert shown.exit_code == 1
        assert shown.output.startswith(f"Error: {path}: the ")
        assert "Traceback" not in shown.output
    assert cli("inspect", tmp_path / "absent.co").exit_code == 1
    assert cli("inspect").exit_code == 2


def test_missing_library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from netra_catalog.errors import ToolError

    monkeypatch.setenv("NETRA_SIM_LIBRARY", str(tmp_path / "libamdhip64.so.7"))
    with pytest.raises(ToolError) as caught:
        netra_sim.library_path()
    assert caught.value.exit_code == 4


def run_cli(*args: object) -> subprocess.CompletedProcess[str]:
    """In a process of its own: the simulator's devices are chosen once per process."""
    code = "from netra_sim.cli import main; main(prog_name='netra-sim')"
    return subprocess.run([sys.executable, "-c", code, *map(str, args)], capture_output=True,
                          text=True, timeout=120,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})


ADD = ("--grid", "1", "--block", "64")


@pytest.mark.parametrize("arch", ["gfx950", "gfx1151"])
def test_run_command(assemble: Assemble, tmp_path: Path, arch: str) -> None:
    path = assemble(sim_kernels.add(arch), arch)
    values = np.arange(128, dtype=np.uint32)
    np.save(tmp_path / "in.npy", values)
    shape = ADD if arch == "gfx950" else ("--grid", "2", "--block", "64")
    done = run_cli("run", path, "add_step", *shape, "--arg", f"data=@{tmp_path / 'in.npy'}",
                   "--arg", "step=0x10:u32", "--save", f"data={tmp_path / 'out.npy'}")
    assert done.returncode == 0, done.stderr
    assert "seed 1" in done.stdout
    expected = values + np.where(values < (64 if arch == "gfx950" else 128), 16, 0)
    assert np.array_equal(np.load(tmp_path / "out.npy"), expected)


def test_run_command_json(assemble: Assemble, tmp_path: Path) -> None:
    path = assemble(sim_kernels.add())
    done = run_cli("run", path, "add_step", *ADD, "--arg", "data=u32[8,8]", "--arg", "step=1:u32",
                   "--save", f"data={tmp_path / 'out.bin'}", "--seed", "5", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["seed"] == 5 and "seed 5" in done.stderr
    assert document["counters"]["instructions"] == 10
    assert (tmp_path / "out.bin").read_bytes() == struct.pack("<I", 0xA5A5A5A6) * 64


def test_run_command_reports_a_fault(assemble: Assemble, tmp_path: Path) -> None:
    path = assemble(sim_kernels.add())
    saved = tmp_path / "out.npy"
    done = run_cli("run", path, "add_step", *ADD, "--arg", "data=u32[63]", "--arg", "step=1:u32",
                   "--save", f"data={saved}")
    assert done.returncode == 1
    assert done.stderr.startswith(f"Error: {path}: add_step: ")
    assert "hipMalloc#" in done.stderr and "Traceback" not in done.stderr
    assert not saved.exists()


GOOD = ("--arg", "data=u32[64]", "--arg", "step=1:u32")


@pytest.mark.parametrize(
    "args, code, text",
    [
        (("add_stop", *ADD, *GOOD), 2, "did you mean 'add_step'?"),
        (("add_step", *ADD, "--arg", "data=u32[64]"), 2, "no --arg for step"),
        (("add_step", *ADD, *GOOD, "--arg", "steps=1:u32"), 2, "did you mean 'step'?"),
        (("add_step", *ADD, *GOOD, "--arg", "step=2:u32"), 2, "given twice"),
        (("add_step", *ADD, *GOOD[:2], "--arg", "step=1"), 2, "needs its type"),
        (("add_step", *ADD, *GOOD[:2], "--arg", "step=one:u32"), 2, "'one' is no u32"),
        (("add_step", *ADD, *GOOD[:2], "--arg", "step=-1:u32"), 2, "'-1' is no u32"),
        (("add_step", *ADD, *GOOD[:2], "--arg", "step=1:u64"), 2, "takes 4 bytes"),
        (("add_step", *ADD, *GOOD[2:], "--arg", "data=u33[64]"), 2, "unknown dtype 'u33'"),
        (("add_step", *ADD, *GOOD[2:], "--arg", "data=u32[0]"), 2, "the buffer is empty"),
        (("add_step", *ADD, *GOOD[2:], "--arg", "data=@/absent.npy"), 2, "No such file"),
        (("add_step", *ADD, *GOOD[2:], "--arg", "data=@/absent.bin"), 2, "needs its type"),
        (("add_step", *ADD, *GOOD, "--save", "step=x.npy"), 2, "no buffer 'step'"),
        (("add_step", "--grid", "1,2,3,4", "--block", "64", *GOOD), 2, "one to three counts"),
        (("add_step", "--grid", "0", "--block", "64", *GOOD), 1, "grid 0 x 1 x 1 is empty"),
        (("add_step", *ADD, *GOOD, "--arch", "gfx1151"), 2, "is for gfx950, not for gfx1151"),
        (("add_step", *ADD, *GOOD, "--seed", "x"), 2, "--seed x"),
    ],
)
def test_run_command_misuse(
    assemble: Assemble, args: tuple[str, ...], code: int, text: str
) -> None:
    done = run_cli("run", assemble(sim_kernels.add()), *args)
    assert done.returncode == code, done.stderr
    assert text in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("dtype, bits", [("bf16", "u2"), ("f8e4m3fn", "u1"), ("e8m0", "u1")])
def test_files_of_types_that_numpy_lacks(tmp_path: Path, dtype: str, bits: str) -> None:
    from netra_catalog.errors import NetraError
    from netra_sim import arguments

    stored = np.arange(6).reshape(2, 3).astype(bits)
    np.save(tmp_path / "x.npy", stored)
    argument = arguments.parse(f"x:{dtype}=@{tmp_path / 'x.npy'}")
    assert (argument.dtype, argument.shape, argument.data) == (dtype, (2, 3), stored.tobytes())
    arguments.save(tmp_path / "y.npy", argument, stored.tobytes())
    assert np.array_equal(np.load(tmp_path / "y.npy"), stored)
    np.save(tmp_path / "z.npy", stored.astype("f4"))
    with pytest.raises(NetraError, match="float32, not"):
        arguments.parse(f"x:{dtype}=@{tmp_path / 'z.npy'}")


def test_the_llvm_of_set_up_decodes(
    assemble: Assemble, sim_library: Path, llvm_bin: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """build/llvm.txt beside the library's folder; $NETRA_LLVM_BIN comes before it."""
    path = assemble(sim_kernels.add())
    library = tmp_path / "build" / "sim" / "libamdhip64.so.7"
    library.parent.mkdir(parents=True)
    shutil.copy(sim_library, library)
    for name in ("chosen", "given"):
        (tmp_path / name).mkdir()
        tool = tmp_path / name / "llvm-objdump"
        tool.write_text(f"#!/bin/sh\necho {name} >>{tmp_path}/asked\n"
                        f"exec '{llvm_bin}/llvm-objdump' \"$@\"\n")
        tool.chmod(0o755)
    monkeypatch.setenv("NETRA_SIM_LIBRARY", str(library))
    (tmp_path / "build" / "llvm.txt").write_text(f"{tmp_path}/chosen\n")
    monkeypatch.delenv("NETRA_LLVM_BIN", raising=False)
    assert run_cli("inspect", path).returncode == 0
    assert set((tmp_path / "asked").read_text().split()) == {"chosen"}
    (tmp_path / "asked").unlink()
    monkeypatch.setenv("NETRA_LLVM_BIN", str(tmp_path / "given"))
    assert run_cli("inspect", path).returncode == 0
    assert set((tmp_path / "asked").read_text().split()) == {"given"}
