"""ccache is used where it works, and what was decided stays (TaasCcache.cmake)."""

import pathlib
import shutil

import pytest

from configuring import Project

pytestmark = pytest.mark.skipif(not shutil.which("ccache"), reason="no ccache here")


@pytest.fixture
def project(tmp_path: pathlib.Path) -> Project:
    return Project(tmp_path, "include(TaasCcache)\nmessage(STATUS \"launcher: ${CMAKE_CXX_COMPILER_LAUNCHER}\")\n")


def launcher(printed: str) -> str:
    return printed.split("launcher: ")[1].splitlines()[0]


def test_a_cache_that_can_be_written_is_used(project: Project, tmp_path: pathlib.Path) -> None:
    assert "ccache" in launcher(project.configure(CCACHE_DIR=str(tmp_path / "cache")))


def test_a_cache_that_cannot_be_written_is_not_used(project: Project) -> None:
    printed = project.configure(CCACHE_DIR="/proc/nowhere")
    assert launcher(printed) == ""
    assert "Compiling without ccache: it cannot be used: " in printed


def test_the_decision_stays_until_it_is_asked_again(project: Project, tmp_path: pathlib.Path) -> None:
    working = {"CCACHE_DIR": str(tmp_path / "cache")}
    project.configure(CCACHE_DIR="/proc/nowhere")
    assert launcher(project.configure(**working)) == ""
    assert "ccache" in launcher(project.configure("-DTAAS_CCACHE=ON", **working))


def test_no_command_depends_on_which_cmake_configures(project: Project, tmp_path: pathlib.Path) -> None:
    assert launcher(project.configure(CCACHE_DIR=str(tmp_path / "cache"))).startswith("/usr/bin/env;")
