"""scripts/check-compilers on a project of one file, with a made-up compiler: nothing is installed."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

from configuring import COMPILER, SOURCE

PRESETS = """{"version": 3, "configurePresets": [
  {"name": "release", "generator": "Ninja", "binaryDir": "${sourceDir}/build", "cacheVariables": {"CMAKE_BUILD_TYPE": "Release"}}]}
"""
PROJECT = """cmake_minimum_required(VERSION 3.22)
project(small LANGUAGES CXX)
add_library(small small.cpp)
target_compile_options(small PRIVATE -Wall $<$<BOOL:${TAAS_WERROR}>:-Werror>)
if(TAAS_PYTHON AND TAAS_DIST)
endif()
"""


@pytest.fixture
def project(tmp_path: pathlib.Path) -> pathlib.Path:
    shutil.copytree(SOURCE / "scripts/lib", tmp_path / "scripts/lib")
    shutil.copy(SOURCE / "scripts/check-compilers", tmp_path / "scripts")
    (tmp_path / "CMakePresets.json").write_text(PRESETS)
    (tmp_path / "CMakeLists.txt").write_text(PROJECT)
    (tmp_path / "small.cpp").write_text("int small;\n")
    stubs = {"g++-98": f'exec {shutil.which(COMPILER)} "$@"', "python": "exit 0",
             "dpkg-query": "printf installed", "apt-get": "exit 1", "apt-cache": "exit 0"}
    (tmp_path / "stubs").mkdir()
    for name, line in stubs.items():
        (tmp_path / "stubs" / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / "stubs" / name).chmod(0o755)
    return tmp_path


def check(project: pathlib.Path, *compilers: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{project}/stubs:{os.environ['PATH']}", "TAAS_PYTHON": f"{project}/stubs/python",
                   "TAAS_PRESETS": "release", "TAAS_BUILD": f"{project}/build", "TAAS_JOBS": "1"}
    return subprocess.run([project / "scripts/check-compilers", *compilers], env=environment, capture_output=True, text=True,
                          timeout=120)


def warnings(output: str) -> int:
    found = re.search(r"^gcc-98 +[0-9.]+ +release +([0-9]+) warnings +[0-9]+ s$", output, re.MULTILINE)
    assert found, output
    return int(found[1])


def test_a_clean_build_passes(project: pathlib.Path) -> None:
    result = check(project, "gcc-98")
    assert (result.returncode, warnings(result.stdout)) == (0, 0), result.stdout + result.stderr


def test_each_warning_of_the_compiler_counts(project: pathlib.Path) -> None:
    (project / "small.cpp").write_text("static int first;\nstatic int second;\n")
    result = check(project, "gcc-98")
    assert (result.returncode, warnings(result.stdout)) == (1, 2), result.stdout + result.stderr
    assert "second" in (project / "build/compilers/gcc-98-release.log").read_text()


def test_a_warning_of_cmake_counts(project: pathlib.Path) -> None:
    (project / "CMakeLists.txt").write_text(PROJECT + 'message(AUTHOR_WARNING "old policy")\n')
    result = check(project, "gcc-98")
    assert (result.returncode, warnings(result.stdout)) == (1, 1), result.stdout + result.stderr


def test_a_compiler_that_is_not_offered_is_named(project: pathlib.Path) -> None:
    result = check(project, "gcc-99")
    assert result.returncode == 1
    assert "gcc-99 is not offered by this distribution" in result.stderr


def test_what_is_no_compiler_is_named(project: pathlib.Path) -> None:
    result = check(project, "gcc")
    assert result.returncode == 1
    assert "gcc is no compiler of the form gcc-13 or clang-19" in result.stderr
