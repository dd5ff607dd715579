"""An unmodified HIP program on the simulator: linked against ROCm's symbol versions, run on ours.

The stub that it is linked against stands for ROCm's library: its sonames, and its versions as its
own tables have them, written down here apart from sim/core/hip.map.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import sim_kernels

Assemble = Callable[..., Path]
Environment = Callable[..., dict[str, str]]

PROGRAM = Path(__file__).resolve().parent / "programs" / "hip_module_app.c"

# In which version ROCm's library has each function that the program calls.
ROCM_VERSIONS = {
    "hip_4.2": "hipInit hipGetDeviceCount hipGetErrorString hipMalloc hipFree hipMemcpy "
    "hipModuleLoad hipModuleUnload hipModuleGetFunction hipModuleLaunchKernel "
    "hipStreamCreateWithFlags hipStreamSynchronize hipStreamDestroy",
    "hip_4.3": "hipStreamBeginCapture hipStreamEndCapture hipGraphInstantiate hipGraphLaunch "
    "hipGraphExecDestroy hipGraphDestroy",
    "hip_4.4": "hipGraphGetNodes",
    "hip_4.5": "hipGraphNodeGetType",
    "hip_5.0": "hipPointerGetAttribute",
    "hip_5.3": "hipGraphUpload",
    "hip_6.0": "hipGetDevicePropertiesR0600",
}


def stub(folder: Path, compiler: str, soname: str, versions: dict[str, str] | None) -> Path:
    """libamdhip64.so for the linker: right names, right versions, no content."""
    names = " ".join(ROCM_VERSIONS.values()).split()
    (folder / "stub.c").write_text("".join(f"int {name}(void) {{ return 999; }}\n"
                                           for name in names))
    command = [compiler, "-shared", "-fPIC", f"-Wl,-soname,{soname}"]
    if versions is not None:
        script, previous = "", ""
        for node, members in versions.items():
            listed = " ".join(f"{name};" for name in members.split())
            script += f"{node} {{ global: {listed} }}{previous};\n"
            previous = f" {node}"
        (folder / "stub.map").write_text(script)
        command.append(f"-Wl,--version-script={folder / 'stub.map'}")
    library = folder / "libamdhip64.so"
    subprocess.run([*command, folder / "stub.c", "-o", library], check=True)
    return library


def build(folder: Path, compiler: str, library: Path) -> Path:
    program = folder / "app"
    subprocess.run([compiler, "-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", PROGRAM,
                    "-o", program, f"-L{library.parent}", "-lamdhip64"], check=True)
    return program


def run(
    program: Path, environment: dict[str, str], *args: Path
) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *args], env={**environment, "LD_BIND_NOW": "1"},
                          capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("soname", ["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"])
@pytest.mark.parametrize(
    "arch, shown",
    [("gfx950", "gfx950:sramecc+:xnack-, warp size 64"), ("gfx1151", "gfx1151, warp size 32")],
)
def test_program_linked_with_rocms_versions(
    tmp_path: Path, c_compiler: str, hip_env: Environment, assemble: Assemble, soname: str,
    arch: str, shown: str,
) -> None:
    program = build(tmp_path, c_compiler, stub(tmp_path, c_compiler, soname, ROCM_VERSIONS))
    for node in ROCM_VERSIONS:
        assert node.encode() in program.read_bytes(), "the program does not ask for versions"
    done = run(program, hip_env(arch), assemble(sim_kernels.add(arch), arch))
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"1 device(s), {shown}: good\n"
    assert done.stderr == ""  # ld.so complains here about versions that it does not find


def test_program_linked_without_versions(
    tmp_path: Path, c_compiler: str, hip_env: Environment, assemble: Assemble
) -> None:
    program = build(tmp_path, c_compiler, stub(tmp_path, c_compiler, "libamdhip64.so.7", None))
    done = run(program, hip_env(), assemble(sim_kernels.add()))
    assert (done.returncode, done.stderr) == (0, "")


def test_versions_are_checked(
    tmp_path: Path, c_compiler: str, hip_env: Environment, assemble: Assemble
) -> None:
    """The test above would pass for nothing if the dynamic linker did not look."""
    versions = {"hip_99.0" if node == "hip_6.0" else node: members
                for node, members in ROCM_VERSIONS.items()}
    program = build(tmp_path, c_compiler, stub(tmp_path, c_compiler, "libamdhip64.so.7", versions))
    done = run(program, hip_env(), assemble(sim_kernels.add()))
    assert done.returncode != 0 and "hip_99.0" in done.stderr


def test_program_reports_hips_errors(
    tmp_path: Path, c_compiler: str, hip_env: Environment, assemble: Assemble
) -> None:
    program = build(tmp_path, c_compiler, stub(tmp_path, c_compiler, "libamdhip64.so.7",
                                               ROCM_VERSIONS))
    done = run(program, hip_env("gfx1151"), assemble(sim_kernels.add()))
    assert done.returncode == 1 and "209 no kernel image is available" in done.stderr
    done = run(program, hip_env("gfx000"), assemble(sim_kernels.add()))
    assert done.returncode == 1 and "100 no ROCm-capable device" in done.stderr
    assert 'unknown device "gfx000"' in done.stderr


def test_only_the_interface_is_exported(sim_library: Path, llvm_bin: Path) -> None:
    listed = subprocess.run([llvm_bin / "llvm-nm", "-D", "--defined-only", sim_library],
                            capture_output=True, text=True, check=True).stdout
    exported = {line.split()[-1] for line in listed.splitlines()}
    symbols = {name for name in exported if not re.fullmatch(r"(hip_\d\.\d|netra_sim_1)(@@.*)?",
                                                             name)}
    for name in symbols:
        assert re.fullmatch(r"(_*hip\w+@@hip_\d\.\d|netraSim\w+@@netra_sim_1)", name), name
    for node, members in ROCM_VERSIONS.items():
        for name in members.split():
            assert f"{name}@@{node}" in symbols
    assert "hipGetDeviceProperties@@hip_4.2" in symbols  # the R0000 structure
