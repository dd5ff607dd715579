"""The Makefile, on a small copy of the tree: what is rebuilt, when, and that bytes do not vary."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from assemble import AssemblyFailed
from assemble import assemble as assemble_file

KERNEL = """
        #include "{include}"
        .amdgcn_target "amdgcn-amd-amdhsa--{arch}"
        .text
        .globl  {name}
        .p2align 8
        .type   {name},@function
{name}:
        twice   s_nop
        s_endpgm
"""
SOURCES = {
    "asm/include/one.inc": ".macro  twice op\n        \\op     1\n        \\op     1\n.endm\n",
    "asm/include/two.inc": '        #include "one.inc"\n',
    "asm/gfx950/a.s": KERNEL.format(include="one.inc", arch="gfx950", name="a"),
    "asm/gfx950/b.s": KERNEL.format(include="two.inc", arch="gfx950", name="b"),
    "asm/gfx1151/c.s": KERNEL.format(include="two.inc", arch="gfx1151", name="c"),
    "sim/core/hip.map": "hip_4.2 { global: hipInit; local: *; };\n",
    "sim/core/host.h": "int answer();\n",
    "sim/core/hip_init.cc": '#include "host.h"\n'
    'extern "C" int hipInit(unsigned flags) { return flags ? answer() : 0; }\n',
    "sim/core/answer.cc": '#include "host.h"\nint answer() { return 1; }\n',
    "sim/core/exec/loop.cc": "namespace NETRA_HOST_NS { int loop() { return 1; } }\n",
    "bridges/hip/bridge.cc": "int netra() { return 0; }\n",
    "bridges/hip/netra_bridge.map": "{ global: netra_*; local: *; };\n",
    "README.md": "",
}


def make(tree: Path, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    inherited = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "CXX")}
    done = subprocess.run(
        ["make", f"PYTHON={sys.executable}", *arguments],
        cwd=tree,
        env=inherited,
        capture_output=True,
        text=True,
    )
    if check:
        assert done.returncode == 0, done.stdout + done.stderr
    return done


def steps(tree: Path, *targets: str) -> set[str]:
    """What `make TARGETS` says that it assembled, compiled and linked."""
    return set(make(tree, *targets).stdout.splitlines())


def grow(root: Path, repo_root: Path) -> Path:
    for name in ("Makefile", "pyproject.toml", "LICENSE", "tools"):
        copy = shutil.copytree if (repo_root / name).is_dir() else shutil.copy
        root.mkdir(parents=True, exist_ok=True)
        copy(repo_root / name, root / name)
    for name, text in SOURCES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.fixture
def tree(tmp_path, repo_root, llvm_bin):
    """A checkout with three kernels and a simulator of three functions."""
    return grow(tmp_path / "tree", repo_root)


def edit(path: Path, text: str | None = None) -> None:
    """Change a file, and be sure that its time is later than that of what was built from it."""
    path.write_text(path.read_text() if text is None else text)
    later = path.stat().st_mtime + 5
    os.utime(path, (later, later))


def test_help_is_the_default_and_names_every_target(repo_root):
    listed = make(repo_root).stdout
    for target in ("setup", "gfx950", "gfx1151", "sim", "bridge", "validate", "test", "lint"):
        assert f"make {target} " in listed


def test_kernels_are_assembled_once(tree):
    assert steps(tree, "gfx950") == {"assemble asm/gfx950/a.s", "assemble asm/gfx950/b.s"}
    assert steps(tree, "gfx950", "gfx1151") == {"assemble asm/gfx1151/c.s"}
    assert steps(tree, "gfx950", "gfx1151") == set()
    assert list(json.loads((tree / "build/objects.json").read_text())) == [
        "gfx1151/c",
        "gfx950/a",
        "gfx950/b",
    ]


def test_an_include_rebuilds_what_includes_it(tree):
    steps(tree, "gfx950", "gfx1151")
    edit(tree / "asm/include/two.inc")
    assert steps(tree, "gfx950", "gfx1151") == {
        "assemble asm/gfx950/b.s",
        "assemble asm/gfx1151/c.s",
    }
    edit(tree / "asm/include/one.inc")  # b and c include it by way of two.inc
    assert len(steps(tree, "gfx950", "gfx1151")) == 3


def test_a_removed_include_is_not_a_broken_build(tree):
    steps(tree, "gfx950")
    edit(tree / "asm/gfx950/b.s", SOURCES["asm/gfx950/b.s"].replace("two.inc", "one.inc"))
    (tree / "asm/include/two.inc").unlink()
    assert steps(tree, "gfx950") == {"assemble asm/gfx950/b.s"}


def test_a_removed_kernel_leaves_the_manifest(tree):
    steps(tree, "gfx950")
    (tree / "asm/gfx950/b.s").unlink()
    steps(tree, "gfx950")
    assert list(json.loads((tree / "build/objects.json").read_text())) == ["gfx950/a"]


@pytest.mark.parametrize("broken", ["        s_nosuch 1\n", '        #include "none.inc"\n'])
def test_a_failing_assembly_leaves_nothing(tree, broken):
    steps(tree, "gfx950")
    edit(tree / "asm/gfx950/a.s", SOURCES["asm/gfx950/a.s"] + broken)
    done = make(tree, "gfx950", check=False)
    assert done.returncode != 0
    assert "asm/gfx950/a.s:" in done.stderr and "error:" in done.stderr
    left = {path.name for path in (tree / "build/gfx950").iterdir()}
    assert left - {"a.d", "b.d"} == {"b.co"}


def test_a_warning_of_the_assembler_is_an_error(tree):
    edit(tree / "asm/gfx950/a.s", SOURCES["asm/gfx950/a.s"] + '        .warning "look here"\n')
    done = make(tree, "gfx950", check=False)
    assert done.returncode != 0 and "look here" in done.stderr


def test_two_clones_give_the_same_bytes(tree, tmp_path, repo_root):
    other = grow(tmp_path / "elsewhere" / "with a longer name", repo_root)
    for root in (tree, other):
        make(root, "gfx950", "gfx1151")
    for name in ("gfx950/a.co", "gfx950/b.co", "gfx1151/c.co", "objects.json"):
        assert (tree / "build" / name).read_bytes() == (other / "build" / name).read_bytes()
    assert str(tmp_path).encode() not in (tree / "build/gfx950/a.co").read_bytes()


def test_objects_keep_their_line_tables(tree, llvm_bin):
    make(tree, "gfx950")
    command = [str(llvm_bin / "llvm-objdump"), "-d", "-l", "build/gfx950/a.co"]
    text = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=True).stdout
    assert "; ./asm/gfx950/a.s:9" in text


def test_simulator_and_bridge_are_built_once(tree):
    first = steps(tree, "sim", "bridge")
    assert "link build/sim/libamdhip64.so.7" in first
    assert "link build/bridge/libnetra_bridge.so" in first
    assert {path.name for path in (tree / "build/sim").glob("lib*")} == {
        f"libamdhip64.so{version}" for version in ("", ".5", ".6", ".7")
    }
    assert all(
        "compile" not in line and "link" not in line for line in steps(tree, "sim", "bridge")
    )


def test_a_header_recompiles_what_includes_it(tree):
    steps(tree, "sim")
    edit(tree / "sim/core/host.h")
    assert steps(tree, "sim") == {
        "compile sim/core/hip_init.cc",
        "compile sim/core/answer.cc",
        "link build/sim/libamdhip64.so.7",
    }


def test_a_source_that_comes_or_goes_links_again(tree):
    steps(tree, "sim")
    (tree / "sim/core/more.cc").write_text("int more() { return 2; }\n")
    link = "link build/sim/libamdhip64.so.7"
    assert steps(tree, "sim") == {"compile sim/core/more.cc", link}
    (tree / "sim/core/more.cc").unlink()
    assert steps(tree, "sim") == {link}


def test_changed_flags_compile_again(tree):
    steps(tree, "bridge")
    edit(
        tree / "Makefile",
        (tree / "Makefile").read_text().replace("-std=c++20 -O2", "-std=c++20 -O1"),
    )
    assert "compile bridges/hip/bridge.cc" in steps(tree, "bridge")


def test_a_missing_symbol_stops_the_bridge(tree):
    edit(tree / "bridges/hip/bridge.cc", "int nowhere();\nint netra() { return nowhere(); }\n")
    done = make(tree, "bridge", check=False)
    assert done.returncode != 0 and not list((tree / "build/bridge").glob("*.so"))


def would_set_up(tree: Path) -> bool:
    return "setup_venv.py" in make(tree, "-n", "setup").stdout


def test_python_packages_are_installed_once_for_each_place(tree, tmp_path):
    assert would_set_up(tree)
    make(tree, "build/cxx.txt")
    (tree / ".venv").mkdir()
    (tree / ".venv/netra-root").write_text(f"{tree}\n")
    assert not would_set_up(tree)
    edit(tree / "pyproject.toml")
    assert would_set_up(tree)
    edit(tree / ".venv/netra-root")
    assert would_set_up(tree) is False
    moved = tree.rename(tmp_path / "moved")  # its .venv still points at the old place
    assert would_set_up(moved)


def build_wheel(tree: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "dist"]
    return subprocess.run(command, cwd=tree, capture_output=True, text=True)


def test_a_wheel_holds_what_serving_needs(tree):
    package = tree / "catalog/netra_catalog/__init__.py"
    package.parent.mkdir(parents=True)
    package.write_text("")
    (tree / "catalog/gfx950").mkdir()
    (tree / "catalog/gfx950/a.yaml").write_text("op: a\n")
    (tree / "bridges/bridge.py").write_text("import netra_bridge\n")
    make(tree, "gfx950", "gfx1151", "bridge")
    (tree / "build/catalog.bin").write_bytes(b"compiled")
    (tree / "build/gfx950/gone.co").write_text("a kernel that was deleted\n")
    done = build_wheel(tree)
    assert done.returncode == 0, done.stderr
    (wheel,) = (tree / "dist").glob("netra-*-py3-none-linux_*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        copied = archive.read("netra_catalog/build/gfx950/a.co")
    assert copied == (tree / "build/gfx950/a.co").read_bytes()
    assert {name for name in names if ".dist-info" not in name} == {
        "bridge.py",
        "netra_catalog/__init__.py",
        "netra_catalog/build/bridge/libnetra_bridge.so",
        "netra_catalog/build/catalog.bin",
        "netra_catalog/build/gfx1151/c.co",
        "netra_catalog/build/gfx950/a.co",
        "netra_catalog/build/gfx950/b.co",
        "netra_catalog/build/objects.json",
        "netra_catalog/catalog/gfx950/a.yaml",
    }


def test_a_wheel_is_refused_when_nothing_is_built(tree):
    done = build_wheel(tree)
    assert done.returncode != 0
    assert "build/catalog.bin is missing; type: make wheel" in done.stderr


BUGS = """
extern "C" int hipInit(unsigned flags) {
  volatile unsigned size = 4, most = 0x7fffffff;
  int* data = new int[size]();
  const int value = flags == 1 ? data[size] : 0;
  delete[] data;
  return flags == 2 ? static_cast<int>(most) + 1 : value;
}
"""


def test_sanitizers_report_and_stop(tree):
    edit(tree / "sim/core/hip_init.cc", BUGS)
    library = "build/asan/libamdhip64.so.7"
    make(tree, library)
    cxx = (tree / "build/cxx.txt").read_text().strip()
    for flags, report in enumerate(["", "heap-buffer-overflow", "signed integer overflow"]):
        call = f"import ctypes; ctypes.CDLL('{library}').hipInit({flags}); print('end')"
        command = ["tools/with_asan.py", "--cxx", cxx, library, sys.executable, "-c", call]
        done = subprocess.run([sys.executable, *command], cwd=tree, capture_output=True, text=True)
        if report:
            assert done.returncode != 0 and report in done.stderr and "end" not in done.stdout
        else:
            assert (done.returncode, done.stdout) == (0, "end\n"), done.stderr


WAVE64 = """
        .amdgcn_target "amdgcn-amd-amdhsa--gfx1151"
        .text
        v_cmp_gt_u32    vcc, s4, v0
"""


def test_the_assembler_fixture(assemble, llvm_bin):
    first = assemble(WAVE64, "gfx1151", wave=64)
    assert first.read_bytes()[:4] == b"\x7fELF"
    assert assemble(WAVE64, "gfx1151", wave=64) == first
    with pytest.raises(AssemblyFailed, match="not valid for this GPU or mode"):
        assemble(WAVE64, "gfx1151")
    with pytest.raises(AssemblyFailed, match="does not run: No such file"):
        assemble_file(first.with_suffix(".s"), first, "gfx1151", llvm_bin / "none")
    assert not first.exists()
