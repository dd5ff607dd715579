"""Set-up: finding or installing LLVM, a C++ compiler and the virtual environment."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import find_cxx
import find_llvm
import pytest
import setup_venv
import stamp
import system_packages

SAYS = {"clang": "clang version", "ld.lld": "LLD", "llvm-objdump": "LLVM version"}


def script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def toolchain(folder: Path, version: str, real: Path | None = None, edit: str = "", **other: str):
    """A fake LLVM: it says `version`, and does what the one in `real` does, its text edited."""
    for tool, words in SAYS.items():
        said = other.get(tool.replace(".", "_").replace("-", "_"), version)
        body = f'[ "$1" = --version ] && echo "Fake {words} {said} (somewhere)" && exit\n'
        if real and tool == "llvm-objdump":
            body += f"{real}/{tool} \"$@\" | /bin/sed '{edit}'"
        elif real:
            body += f'exec {real}/{tool} "$@"'
        script(folder / tool, body)
    return folder


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine without LLVM and apt: fixed places and PATH are empty folders below tmp_path."""
    places = [tmp_path / name for name in ("rocm", "llvm-22", "llvm-21", "llvm-20")]
    monkeypatch.setattr(find_llvm, "FIXED_PLACES", tuple(map(str, places)))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("NETRA_LLVM_BIN", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    (tmp_path / "bin").mkdir()
    return tmp_path


def apt(machine: Path, offered: str, after_update: str = "", install: str = "exit 0") -> Path:
    """A fake apt that offers the packages matching `offered`, another set after an update."""
    log = machine / "apt.log"
    path = "PATH=/usr/bin:/bin"
    script(
        machine / "bin" / "apt-cache",
        f'{path}; [ -e {machine}/updated ] && set -- "$1" "$2" "{after_update or offered}" '
        f'|| set -- "$1" "$2" "{offered}"\n'
        'if echo "$2" | grep -Eq "^($3)$"; then echo "  Candidate: 1:1.0"; '
        'else echo "  Candidate: (none)"; fi',
    )
    script(
        machine / "bin" / "apt-get",
        f'{path}; echo "$@" >> {log}\n'
        f'case "$1" in update) touch {machine}/updated;; install) {install};; esac',
    )
    return log


def run(*arguments: str, capsys) -> tuple[int, str]:
    code = find_llvm.main(list(arguments))
    printed = capsys.readouterr()
    return code, printed.out + printed.err


def test_the_real_llvm_passes_its_canary(llvm_bin):
    find_llvm.check_canary(find_llvm.inspect(llvm_bin))


def test_search_order(machine, capsys):
    toolchain(machine / "bin", "22.1.8")
    assert run(capsys=capsys) == (0, f"{machine}/bin\n")
    toolchain(machine / "llvm-22", "22.1.8")
    assert run(capsys=capsys) == (0, f"{machine}/llvm-22\n")
    toolchain(machine / "rocm", "22.1.0")
    assert run(capsys=capsys) == (0, f"{machine}/rocm\n")


def test_named_directory_comes_first(machine, monkeypatch, capsys):
    toolchain(machine / "rocm", "22.1.0")
    monkeypatch.setenv("NETRA_LLVM_BIN", str(toolchain(machine / "mine", "22.1.8")))
    assert run(capsys=capsys) == (0, f"{machine}/mine\n")


@pytest.mark.parametrize(
    "version, why", [("", "not there"), ("19.1.7", "older ones reject gfx950")]
)
def test_wrong_named_directory_is_an_error(machine, monkeypatch, capsys, version, why):
    toolchain(machine / "llvm-22", "22.1.8")
    if version:
        toolchain(machine / "mine", version)
    monkeypatch.setenv("NETRA_LLVM_BIN", str(machine / "mine"))
    code, text = run("--install", capsys=capsys)
    assert code == 4
    assert f"NETRA_LLVM_BIN={machine}/mine cannot be used" in text and why in text
    assert "unset NETRA_LLVM_BIN" in text


def test_version_19_is_refused_with_the_reason(machine, capsys):
    toolchain(machine / "bin", "19.1.7")
    out = machine / "llvm.txt"
    out.write_text("/an/older/choice\n")
    code, text = run("--write", str(out), capsys=capsys)
    assert code == 4
    assert f"{machine}/bin: version 19.1.7, but 20 or later is needed" in text
    assert "reject gfx950" in text
    assert not out.exists()


def test_an_older_one_is_passed_over_for_a_good_one(machine, capsys):
    toolchain(machine / "rocm", "19.0.0git")
    toolchain(machine / "llvm-22", "22.1.8")
    assert run(capsys=capsys) == (0, f"{machine}/llvm-22\n")


def test_tools_of_different_versions_are_refused(machine, capsys):
    toolchain(machine / "bin", "22.1.8", ld_lld="19.1.7")
    code, text = run(capsys=capsys)
    assert code == 4 and "clang 22, ld.lld 19, llvm-objdump 22" in text


def test_a_missing_tool_is_named(machine, capsys):
    (toolchain(machine / "llvm-22", "22.1.8") / "ld.lld").unlink()
    code, text = run(capsys=capsys)
    assert code == 4 and f"{machine}/llvm-22: ld.lld not there" in text


@pytest.mark.parametrize("version", ["21.1.0", "20.1.2", "22.0.0git", "23.1.0"])
def test_another_version_that_prints_the_same_is_accepted(machine, llvm_bin, capsys, version):
    toolchain(machine / "llvm-21", version, real=llvm_bin)
    assert run(capsys=capsys) == (0, f"{machine}/llvm-21\n")


@pytest.mark.parametrize("version", ["21.1.0", "22.0.0git"])
def test_a_canary_difference_shows_both_lines(machine, llvm_bin, capsys, version):
    edit = "s/v_add_co_ci_u32_e32 v6, vcc, 0/v_add_co_ci_u32 v6, vcc, 0x0/"
    toolchain(machine / "llvm-21", version, real=llvm_bin, edit=edit)
    code, text = run(capsys=capsys)
    assert code == 4
    assert f"version {version} disassembles otherwise than 22 does" in text
    assert "tools/canary/gfx1151_wave64.expected:" in text
    assert "want: v_add_co_ci_u32_e32 v6, vcc, 0, v1, vcc" in text
    assert "got:  v_add_co_ci_u32 v6, vcc, 0x0, v1, vcc" in text


def test_a_canary_that_ends_early_is_a_difference(machine, llvm_bin, capsys):
    toolchain(machine / "llvm-21", "21.1.0", real=llvm_bin, edit="20,$d")
    code, text = run(capsys=capsys)
    assert code == 4 and "got:  (end)" in text


def test_without_apt_the_message_says_what_to_type(machine, capsys):
    code, text = run("--install", capsys=capsys)
    assert code == 4
    assert "export NETRA_LLVM_BIN=" in text and "rocm-llvm" in text
    assert all(f"{machine}/{place}: not there" in text for place in ("rocm", "llvm-22", "llvm-20"))


def test_not_root_names_the_newest_that_apt_offers(machine, capsys):
    log = apt(machine, "(clang|lld|llvm)-2[01]|clang-22")
    code, text = run("--install", capsys=capsys)
    assert code == 4
    assert "type: sudo apt-get install clang-21 lld-21 llvm-21\n" in text
    assert not log.exists()


def test_root_installs_the_newest_that_apt_offers(machine, monkeypatch, capsys):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    made = toolchain(machine / "made", "22.1.8")
    offered = "(clang|lld|llvm)-2[0-2]|libclang-rt-22-dev"
    log = apt(machine, offered, install=f"cp -r {made} {machine}/llvm-22")
    code, text = run("--install", capsys=capsys)
    assert code == 0 and text.startswith(f"{machine}/llvm-22\n")
    (line,) = log.read_text().splitlines()
    assert line.startswith("install -y")
    assert line.endswith(" clang-22 lld-22 llvm-22 libclang-rt-22-dev")


def test_apt_lists_are_updated_when_they_offer_nothing(machine, monkeypatch, capsys):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    made = toolchain(machine / "made", "20.1.2")
    copy = f"cp -r {made} {machine}/llvm-20"
    log = apt(machine, "nothing", after_update="(clang|lld|llvm)-20", install=copy)
    monkeypatch.setattr(find_llvm, "check_canary", lambda toolchain: None)
    code, _ = run("--install", capsys=capsys)
    assert code == 0
    assert [line.split()[0] for line in log.read_text().splitlines()] == ["update", "install"]


def test_a_failing_apt_is_reported_with_its_words(machine, monkeypatch, capsys):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    apt(machine, "(clang|lld|llvm)-22", install="echo E: No space left; exit 100")
    code, text = run("--install", capsys=capsys)
    assert code == 4
    assert "apt-get install" in text and "E: No space left" in text


def test_nothing_is_installed_without_being_asked(machine, monkeypatch, capsys):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    log = apt(machine, "(clang|lld|llvm)-22")
    assert run(capsys=capsys)[0] == 4
    assert not log.exists()


def test_the_choice_is_rewritten_only_when_it_changes(machine, capsys):
    out = machine / "build" / "llvm.txt"
    toolchain(machine / "llvm-22", "22.1.8")
    run("--write", str(out), capsys=capsys)
    assert out.read_text() == f"{machine}/llvm-22\n"
    os.utime(out, (1, 1))
    run("--write", str(out), capsys=capsys)
    assert out.stat().st_mtime == 1
    toolchain(machine / "llvm-22", "22.1.9")  # an upgrade in place
    run("--write", str(out), capsys=capsys)
    assert out.stat().st_mtime > 1


def compiler(path: Path, says: str) -> Path:
    script(path, f'[ "$1" = --version ] && echo "{says}"\nexit 0')
    return path


GXX = "g++ (Debian 12.2.0-14+deb12u1) 12.2.0"


def test_gxx_is_preferred_to_clang(machine):
    compiler(machine / "bin" / "g++", GXX)
    compiler(machine / "llvm" / "clang++", "clang version 22.1.8")
    assert find_cxx.find(None, machine / "llvm").command == "g++"


def test_an_old_gxx_gives_way_to_clang(machine):
    compiler(machine / "bin" / "g++", "g++ (Ubuntu 11.4.0-1ubuntu1) 11.4.0")
    clang = compiler(machine / "llvm" / "clang++", "clang version 22.1.8")
    assert find_cxx.find(None, machine / "llvm").command == str(clang)


def test_a_compiler_without_headers_is_refused(machine):
    body = f'[ "$1" = --version ] && echo "{GXX}" && exit\necho "no bit" >&2; exit 1'
    script(machine / "bin" / "g++", body)
    with pytest.raises(find_cxx.NotFound, match=r"g\+\+: no C\+\+20 library: no bit"):
        find_cxx.find(None, machine / "llvm")


def test_a_given_compiler_is_taken_or_refused_but_never_replaced(machine, capsys):
    compiler(machine / "bin" / "g++", GXX)
    out = machine / "cxx.txt"
    arguments = ["--llvm", str(machine), "--write", str(out), "--install", "--cxx"]
    assert find_cxx.main([*arguments, "icpc"]) == 4
    assert "icpc: not there\n  correct CXX" in capsys.readouterr().err
    assert find_cxx.main([*arguments, "g++"]) == 0
    assert out.read_text() == "g++\n"


def test_no_compiler_says_what_to_type(machine, capsys):
    assert find_cxx.main(["--llvm", str(machine), "--install"]) == 4
    assert "type: sudo apt-get install g++" in capsys.readouterr().err


def test_root_gets_a_compiler_from_apt(machine, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    made = compiler(machine / "made", GXX)
    apt(machine, "g\\+\\+", install=f"cp {made} {machine}/bin/g++")
    assert find_cxx.main(["--llvm", str(machine), "--install"]) == 0


def test_old_python_is_refused(monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 9, 2))
    with pytest.raises(
        setup_venv.SetupFailed, match=r"python 3\.9\.2 .*3\.10 or later.*\n.*PYTHON="
    ):
        setup_venv.check_python(install=True)


def hide_ensurepip(monkeypatch, until: Path | None = None) -> None:
    real = setup_venv.importlib.util.find_spec

    def find_spec(name):
        there = name != "ensurepip" or (until is not None and until.exists())
        return real(name) if there else None

    monkeypatch.setattr(setup_venv.importlib.util, "find_spec", find_spec)


def test_missing_venv_package_says_what_to_type(machine, monkeypatch):
    hide_ensurepip(monkeypatch)
    own = f"python3.{sys.version_info[1]}-venv"
    with pytest.raises(setup_venv.SetupFailed, match=f"sudo apt-get install {own}"):
        setup_venv.check_python(install=True)


def test_root_gets_the_venv_package_from_apt(machine, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    hide_ensurepip(monkeypatch, until=machine / "installed")
    log = apt(machine, r"python3\.[0-9]+-venv", install=f"touch {machine}/installed")
    setup_venv.check_python(install=True)
    assert f"python3.{sys.version_info[1]}-venv" in log.read_text()


def test_apt_offers_nothing_where_there_is_no_apt(machine):
    assert not system_packages.Apt().offers("clang-22")
    assert not system_packages.Apt().can_install()


def test_a_file_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "stamp"
    stamp.write_whole(path, "old")

    def no_rename(source, target):
        raise OSError("disk full")

    monkeypatch.setattr(stamp.os, "replace", no_rename)
    with pytest.raises(OSError, match="disk full"):
        stamp.write_whole(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
