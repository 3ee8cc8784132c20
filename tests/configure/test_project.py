"""The whole project is configured without a warning, and the same way from every shell."""

import pathlib
import re
import shutil
import subprocess

import pytest

from configuring import SOURCE, Project, configure

LAUNCHER = ("-DTAAS_DIST=OFF", "-DTAAS_TESTS=OFF", "-DTAAS_PYTHON=/nowhere/python")


def commands(build: pathlib.Path) -> list[str]:
    ninja = shutil.which("ninja", path="/usr/bin:/usr/local/bin") or "ninja"
    listed = subprocess.run([ninja, "-C", build, "-t", "commands"], check=True, capture_output=True, text=True, timeout=60).stdout
    return [line for line in listed.splitlines() if " -c " in line]


def test_another_shell_compiles_nothing_again(tmp_path: pathlib.Path) -> None:
    build, environment = tmp_path / "build", tmp_path / "venv"
    configure(SOURCE, build, *LAUNCHER, CCACHE_DIR=str(tmp_path / "cache"))
    before = commands(build)
    assert before
    (environment / "bin").mkdir(parents=True)
    for name in ("ninja", "ccache", "python3"):
        (environment / "bin" / name).write_text("#!/bin/sh\nexit 1\n")
        (environment / "bin" / name).chmod(0o755)
    configure(SOURCE, build, VIRTUAL_ENV=str(environment), PATH=f"{environment}/bin:/usr/local/bin:/usr/bin:/bin", CXXFLAGS="-O0",
              CCACHE_DIR=str(tmp_path / "cache"))
    assert commands(build) == before


@pytest.mark.skipif(not shutil.which("ninja", path="/usr/bin:/usr/local/bin"), reason="Ninja is elsewhere on this machine")
def test_ninja_is_not_the_one_of_an_active_environment(tmp_path: pathlib.Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/ninja").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "bin/ninja").chmod(0o755)
    configure(SOURCE, tmp_path / "build", *LAUNCHER, PATH=f"{tmp_path}/bin:/usr/local/bin:/usr/bin:/bin")
    cache = (tmp_path / "build/CMakeCache.txt").read_text()
    assert f"CMAKE_MAKE_PROGRAM:FILEPATH={tmp_path}" not in cache


def test_warnings_are_errors_only_when_asked(tmp_path: pathlib.Path) -> None:
    project = Project(tmp_path, "include(TaasOptions)\n"
                                "get_target_property(flags taas_options INTERFACE_COMPILE_OPTIONS)\n"
                                "message(STATUS \"flags: ${flags}\")\n")
    assert "-Werror" not in project.configure()
    assert "-Werror" in project.configure("-DTAAS_WERROR=ON")
    assert "-Werror" not in project.configure("-DTAAS_WERROR=ON", "-DTAAS_SANITIZE=address")


def test_no_run_path_has_an_empty_element(tmp_path: pathlib.Path) -> None:
    """CMake ends a run path that it is to replace at installation with a colon, and fills it up with more."""
    configure(SOURCE, tmp_path / "build", *LAUNCHER, "-DCMAKE_BUILD_RPATH=/opt/some/lib", "-DCMAKE_INSTALL_RPATH=/opt/some/other/lib",
              CCACHE_DIR=str(tmp_path / "cache"))
    paths = re.findall(r"-rpath,(\S*)", (tmp_path / "build/build.ninja").read_text())
    assert paths
    assert [path for path in paths if "" in path.strip('"').split(":")] == []


def test_hardening_can_be_left_out_to_measure_it(tmp_path: pathlib.Path) -> None:
    project = Project(tmp_path, "include(TaasOptions)\n"
                                "get_directory_property(compile COMPILE_OPTIONS)\n"
                                "get_directory_property(link LINK_OPTIONS)\n"
                                "message(STATUS \"flags: ${compile} ${link}\")\n")
    told = project.configure("-DCMAKE_BUILD_TYPE=Release")
    assert "-fstack-protector-strong" in told and "-D_FORTIFY_SOURCE=3" in told and "-Wl,-z,now" in told
    assert "FORTIFY" not in project.configure("-DCMAKE_BUILD_TYPE=Debug")  # which is not optimised
    told = project.configure("-DCMAKE_BUILD_TYPE=Release", "-DTAAS_SANITIZE=address")
    assert "FORTIFY" not in told and "-fstack-protector-strong" in told
    told = project.configure("-DCMAKE_BUILD_TYPE=Release", "-DTAAS_HARDEN=OFF", "-DTAAS_SANITIZE=")
    assert not any(flag in told for flag in ("stack-protector", "FORTIFY", "-z,now"))
