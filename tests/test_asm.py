"""The kernels as text and as objects: they assemble, say what they are, and mean what they say."""

from __future__ import annotations

import re
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import netra_catalog
import pytest
import yaml
from assemble import AssemblyFailed
from netra_catalog.tactic import KIND_BYTES, Launch, Tactic

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted((ROOT / "asm").glob("gfx*/*.s"))
INCLUDES = sorted((ROOT / "asm" / "include").glob("*.inc"))
LABELS = ("Contract", "Launch", "Numerics", "Oracle", "Schedule", "Readable")
WAVE = {"gfx950": 64, "gfx1151": 32}
EXTRA_SGPRS = {"gfx950": 6, "gfx1151": 2}  # what the hardware adds: VCC, and on gfx9 more

Assemble = Callable[..., Path]


def name(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


@pytest.fixture(scope="module")
def launches() -> dict[str, tuple[Tactic, Launch]]:
    """arch/kernel -> a tactic that launches it, and how."""
    return {
        f"{tactic.arch}/{launch.kernel}": (tactic, launch)
        for tactic in netra_catalog.load(root=ROOT)
        for launch in tactic.launches
    }


@pytest.fixture(params=SOURCES, ids=name)
def source(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


@pytest.fixture
def kernel(source: Path, assemble: Assemble, llvm_bin: Path) -> Kernel:
    return Kernel(source, assemble(source, source.parent.name), llvm_bin)


class Kernel:
    """A source and what its object holds."""

    def __init__(self, source: Path, object: Path, llvm: Path) -> None:
        self.source, self.object, self.arch = source, object, source.parent.name
        self.llvm = llvm
        notes = self.tool("llvm-readelf", "--notes")
        self.metadata: dict[str, Any] = yaml.safe_load(notes[notes.index("---") :])
        (self.kernel,) = self.metadata["amdhsa.kernels"]
        self.symbols = {
            words[7]: int(words[1], 16)
            for line in self.tool("llvm-readelf", "-s").splitlines()
            if len(words := line.split()) == 8 and words[0].endswith(":") and words[0] != "Num:"
        }

    def tool(self, program: str, *words: str) -> str:
        command = [str(self.llvm / program), *words, str(self.object)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def code(self) -> list[str]:
        """The instructions up to s_endpgm."""
        found = []
        for line in self.tool("llvm-objdump", "-d", "--no-show-raw-insn").splitlines():
            if line.startswith("\t"):
                found.append(line.split("//")[0].strip())
                if found[-1] == "s_endpgm":
                    return found
        raise AssertionError("no s_endpgm")

    def descriptor(self) -> dict[str, int]:
        """The 64 bytes of KERNEL.kd, as fields."""
        address = self.symbols[f"{self.source.stem}.kd"]
        raw = self.object.read_bytes()[address : address + 64]  # .rodata: file offset = address
        lds, private, kernarg = struct.unpack_from("<III", raw, 0)
        rsrc3, rsrc1, rsrc2, properties = struct.unpack_from("<IIIH", raw, 44)
        return {
            "lds": lds, "private": private, "kernarg": kernarg,
            "vgprs": ((rsrc1 & 63) + 1) * 8, "accum": (rsrc3 & 63) * 4 + 4,
            "sgprs": ((rsrc1 >> 6 & 15) // 2 + 1) * 16, "round": rsrc1 >> 12 & 15,
            "denorm": rsrc1 >> 16 & 15, "dx10_clamp": rsrc1 >> 21 & 1, "ieee": rsrc1 >> 23 & 1,
            "wgp_mode": rsrc1 >> 29 & 1, "user_sgprs": rsrc2 >> 1 & 31, "ids": rsrc2 >> 7 & 7,
            "item_ids": rsrc2 >> 11 & 3, "pointers": properties & 0x7F,
            "wave32": properties >> 10 & 1,
        }  # fmt: skip

    def registers(self, file: str) -> int:
        """One more than the highest register of the file in the code."""
        text = "\n".join(self.code())
        ranges = re.findall(rf"\b{file}\[\d+:(\d+)\]", text)
        return 1 + max(int(n) for n in ranges + re.findall(rf"\b{file}(\d+)\b", text))


def test_there_are_kernels_for_both_targets() -> None:
    assert {path.parent.name for path in SOURCES} == {"gfx950", "gfx1151"}


# ---- the text ---------------------------------------------------------------------------------


def banner(source: Path) -> list[str]:
    lines: list[str] = []
    for line in source.read_text().splitlines():
        if not line.startswith("//"):
            return lines
        lines.append(line[2:].strip())
    return lines


def test_the_banner_has_its_labels_in_order(source: Path) -> None:
    lines = banner(source)
    assert lines[0].startswith(f"{source.stem} - ")
    text = source.read_text().split("\n\n")[0].splitlines()
    found = [m[1] for line in text if (m := re.match(r"//\s([A-Z]\w+)  +\S", line))]
    assert found in (list(LABELS), list(LABELS[:-1]))


def test_the_banner_names_the_oracle_of_the_tactic(
    source: Path, launches: dict[str, tuple[Tactic, Launch]]
) -> None:
    (line,) = (line for line in banner(source) if line.startswith("Oracle"))
    match = re.fullmatch(r"Oracle\s+(\w+) \((\S+)\)", line)
    assert match is not None
    tactic, _ = launches[name(source)]
    assert match[1] == tactic.oracle_name
    assert match[2] == f"harness/netra_harness/oracles/{match[1]}.py"
    assert (ROOT / match[2]).is_file()


@pytest.mark.parametrize("path", [*SOURCES, *INCLUDES], ids=name)
def test_the_form_of_the_source(path: Path) -> None:
    text = path.read_text()
    assert text.isascii() and text.endswith("\n") and not text.endswith("\n\n")
    for number, line in enumerate(text.splitlines(), 1):
        where = f"{path.name}:{number}"
        assert len(line) <= 100, where
        assert "\t" not in line and line == line.rstrip(), where
        assert not re.match(r"\s*\.include\b", line), f"{where}: #include keeps line numbers right"
        if (directive := re.match(r"\s*#\s*(\w+)", line)) is not None:
            assert directive[1] == "include", where


@pytest.mark.parametrize("path", [*SOURCES, *INCLUDES], ids=name)
def test_labels_are_local(path: Path) -> None:
    """`.Lverb`, so that they stay out of the symbol table."""
    code = path.read_text().split(".amdgpu_metadata")[0]
    for label in re.findall(r"^([\w.$]+):", code, re.MULTILINE):
        assert re.fullmatch(r"\.L[a-z]\w*", label), label


@pytest.mark.parametrize("path", INCLUDES, ids=name)
def test_macros_hide_no_memory_access_wait_branch_or_exec(path: Path) -> None:
    """What an include has outside of macros is code that several kernels share, in the open."""
    hidden = r"\b(s_waitcnt|s_c?branch|s_barrier|s_load|global_|buffer_|flat_|ds_|exec|v_cmpx)"
    code = "\n".join(line.split("//")[0] for line in path.read_text().splitlines())
    bodies = re.findall(r"^ *\.macro\b.*?^ *\.endm\b", code, re.MULTILINE | re.DOTALL)
    assert len(bodies) <= code.count(".macro") == code.count(".endm")
    assert not [body for body in bodies if re.search(hidden, body)]


def test_every_kernel_is_launched(
    source: Path, launches: dict[str, tuple[Tactic, Launch]]
) -> None:
    assert name(source) in launches


def test_every_launch_has_its_source(launches: dict[str, tuple[Tactic, Launch]]) -> None:
    assert set(launches) == {name(path) for path in SOURCES}


# ---- the object -------------------------------------------------------------------------------


def test_it_assembles_to_one_kernel_named_as_its_file(kernel: Kernel) -> None:
    stem = kernel.source.stem
    assert kernel.kernel[".name"] == stem
    assert kernel.kernel[".symbol"] == f"{stem}.kd"
    assert {stem, f"{stem}.kd"} <= set(kernel.symbols)
    assert kernel.metadata["amdhsa.target"] == f"amdgcn-amd-amdhsa--{kernel.arch}"
    assert re.search(r"ABI Version:\s+3\b", kernel.tool("llvm-readelf", "-h"))  # version 5


def camel(word: str) -> str:
    return "k" + "".join(part.capitalize() for part in word.split("_"))


def test_arguments_agree_in_source_metadata_and_catalog(
    kernel: Kernel, launches: dict[str, tuple[Tactic, Launch]]
) -> None:
    _, launch = launches[name(kernel.source)]
    args = kernel.kernel[".args"]
    for arg in args:
        assert kernel.symbols[camel(arg[".name"])] == arg[".offset"]
    named = {symbol for symbol in kernel.symbols if re.match(r"k[A-Z]", symbol)}
    assert named == {camel(arg[".name"]) for arg in args}
    assert [(a[".name"], a[".offset"], a[".size"]) for a in args] == [
        (a.name, a.offset, KIND_BYTES[a.kind]) for a in launch.args
    ]
    for arg, given in zip(args, launch.args, strict=True):
        assert (arg[".value_kind"] == "global_buffer") == (given.kind == "ptr")
    sizes = {kernel.kernel[".kernarg_segment_size"], kernel.descriptor()["kernarg"]}
    assert sizes == {launch.kernarg_size}


def test_registers_agree_in_code_metadata_descriptor_and_catalog(
    kernel: Kernel, launches: dict[str, tuple[Tactic, Launch]]
) -> None:
    tactic, _ = launches[name(kernel.source)]
    stated, told, made = (
        tactic.resources[kernel.source.stem], kernel.kernel, kernel.descriptor(),
    )  # fmt: skip
    vgprs, sgprs = kernel.registers("v"), kernel.registers("s")
    assert stated["vgpr"] == told[".vgpr_count"] == vgprs
    assert stated["sgpr"] == told[".sgpr_count"] == sgprs + EXTRA_SGPRS[kernel.arch]
    assert stated["agpr"] == told.get(".agpr_count", 0) == 0
    assert made["vgprs"] == -(-vgprs // 8) * 8
    if kernel.arch == "gfx950":
        assert made["accum"] == -(-vgprs // 4) * 4
        assert made["sgprs"] == -(-told[".sgpr_count"] // 16) * 16
    assert stated["lds"] == told[".group_segment_fixed_size"] == made["lds"]
    assert stated["scratch"] == told[".private_segment_fixed_size"] == made["private"] == 0


def test_the_descriptor_asks_for_what_the_code_expects(
    kernel: Kernel, launches: dict[str, tuple[Tactic, Launch]]
) -> None:
    _, launch = launches[name(kernel.source)]
    made = kernel.descriptor()
    assert (made["pointers"], made["user_sgprs"]) == (8, 2)  # s[0:1]: the kernarg pointer
    dimensions = 1 + max(i for i, extent in enumerate(launch.grid) if i == 0 or str(extent) != "1")
    assert made["ids"] == (1 << dimensions) - 1
    assert made["item_ids"] == 0
    assert (made["round"], made["denorm"], made["ieee"]) == (0, 15, 1)
    assert made["wave32"] == (WAVE[kernel.arch] == 32)
    assert kernel.kernel[".wavefront_size"] == WAVE[kernel.arch]
    if kernel.arch == "gfx1151":
        assert made["wgp_mode"] == 0
    threads = 1
    for extent in launch.block:
        assert isinstance(extent.constant, int)
        threads *= extent.constant
    assert kernel.kernel[".max_flat_workgroup_size"] == threads


def test_code_is_padded_for_the_prefetcher(kernel: Kernel) -> None:
    text = kernel.tool("llvm-objdump", "-d", "--no-show-raw-insn").split("s_endpgm", 1)[1]
    filler = "s_nop 0" if kernel.arch == "gfx950" else "s_code_end"
    instructions = [line.split("//")[0].strip() for line in text.splitlines() if line[:1] == "\t"]
    assert len(instructions) >= 96 and set(instructions) == {filler}


# ---- the macros -------------------------------------------------------------------------------

SHELL = """        #include "{arch}.inc"
{maps}
        kernel  probe{options}
{code}
        endkernel
"""
MAPS = "        sreg sKarg, 0, 2\n        sreg sWg, 2\n        vreg vTid, 0"
CODE = "        v_mov_b32 v[vTid], s[sWg]"

GUARDS = {
    "karg-overlaps": ("karg kA, 0, 8\n karg kB, 4, 4", "", "karg kB: overlaps the argument before"),
    "karg-misaligned": ("karg kA, 4, 8", "", "karg kA: offset 4 is not a multiple of its size 8"),
    "karg-odd-size": ("karg kA, 0, 6", "", "karg kA: size 6 is not 1, 2, 4 or 8"),
    "sreg-taken": ("sreg sA, 2", "", "sreg sA: s2 already has a name"),
    "sreg-past-the-end": ("sreg sA, MAX_SGPR - 1, 2", "", "sreg sA: past the last SGPR"),
    "vreg-taken": ("vreg vA, 1, 4\n vreg vB, 4", "", "vreg vB: v4 already has a name"),
    "vreg-past-the-end": ("vreg vA, 255, 2", "", "vreg vA: past v255"),
    "areg-taken": ("areg aA, 0, 2\n areg aB, 1", "", "areg aB: a1 already has a name"),
    "areg-past-the-end": ("areg aA, MAX_AGPR, 1", "", "areg aA: past the last AGPR"),
    "name-taken": ("sreg vTid, 3", "", "redefinition of 'vTid'"),
    "vgpr-not-in-the-map": ("", "v_mov_b32 v[vTid+1], 0", "uses a VGPR that its map does not name"),
    "sgpr-not-in-the-map": ("", "s_mov_b32 s[sWg+1], 0", "uses an SGPR that its map does not name"),
    "vgpr-never-used": ("vreg vA, 1", "", "the top of its VGPR map is never used"),
    "sgpr-never-used": ("sreg sA, 3", "", "the top of its SGPR map is never used"),
    "unknown-name": ("", "v_mov_b32 v[vTypo], 0", "vTypo"),
}


@pytest.mark.parametrize("arch", WAVE)
@pytest.mark.parametrize("guard", GUARDS)
def test_a_guard_fires(guard: str, arch: str, assemble: Assemble) -> None:
    maps, code, message = GUARDS[guard]
    text = SHELL.format(arch=arch, maps=f"{MAPS}\n {maps}", code=f"{CODE}\n {code}", options="")
    if arch == "gfx1151" and guard == "areg-taken":
        message = "areg aA: past the last AGPR"
    with pytest.raises(AssemblyFailed, match=re.escape(message)):
        assemble(text, arch)


@pytest.mark.parametrize("arch", WAVE)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (", lds=MAX_LDS+4", "lds MAX_LDS+4 is not in 0..MAX_LDS"),
        (", lds=-4", "lds -4 is not in 0..MAX_LDS"),
        (", grid=4", "grid 4 is not 1, 2 or 3"),
    ],
)
def test_a_kernel_option_out_of_range(
    options: str, message: str, arch: str, assemble: Assemble
) -> None:
    with pytest.raises(AssemblyFailed, match=re.escape(message)):
        assemble(SHELL.format(arch=arch, maps=MAPS, code=CODE, options=options), arch)


def test_kernel_and_endkernel_come_in_pairs(assemble: Assemble) -> None:
    text = SHELL.format(arch="gfx950", maps=MAPS, code=CODE, options="")
    with pytest.raises(AssemblyFailed, match="endkernel"):
        assemble(text + "        endkernel\n")


def probe(text: str, arch: str, assemble: Assemble, llvm: Path, folder: Path) -> Kernel:
    """Kernel of a generated source; `Kernel` wants metadata, so this adds some."""
    notes = (
        "        .amdgpu_metadata\n---\namdhsa.version: [1, 2]\namdhsa.kernels:\n"
        "  - {.name: probe, .symbol: probe.kd, .kernarg_segment_size: 0, .kernarg_segment_align: 8,"
        " .group_segment_fixed_size: 0, .private_segment_fixed_size: 0, .wavefront_size: 64,"
        " .sgpr_count: 3, .vgpr_count: 1, .max_flat_workgroup_size: 64}\n...\n"
        "        .end_amdgpu_metadata\n"
    )
    return Kernel(folder / arch / "probe.s", assemble(text + notes, arch), llvm)


@pytest.mark.parametrize("arch", WAVE)
@pytest.mark.parametrize("grid", [1, 2, 3])
def test_kernel_options_reach_the_descriptor(
    grid: int, arch: str, assemble: Assemble, llvm_bin: Path, tmp_path: Path
) -> None:
    options = f", lds=MAX_LDS, grid={grid}, dx10_clamp=0"
    text = SHELL.format(arch=arch, maps=MAPS, code=CODE, options=options)
    made = probe(text, arch, assemble, llvm_bin, tmp_path).descriptor()
    assert made["ids"] == (1 << grid) - 1
    assert made["lds"] == (163840 if arch == "gfx950" else 65536)
    assert made["dx10_clamp"] == 0


def test_accumulators_follow_the_vgprs(
    assemble: Assemble, llvm_bin: Path, tmp_path: Path
) -> None:
    maps = f"{MAPS}\n        vreg vA, 1, 5\n        areg aA, 0, 10"
    code = f"{CODE}\n        v_mov_b32 v[vA+4], 0\n        v_accvgpr_write_b32 a[aA+9], v[vTid]"
    text = SHELL.format(arch="gfx950", maps=maps, code=code, options="")
    made = probe(text, "gfx950", assemble, llvm_bin, tmp_path).descriptor()
    assert (made["accum"], made["vgprs"]) == (8, 24)
