"""Configures the project, or small ones that use one of scripts/cmake's files, and says what CMake printed."""

import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from waiting import DEADLINE_SECONDS

SOURCE = pathlib.Path(__file__).resolve().parents[2]
CMAKE = os.environ.get("TAAS_CMAKE", "cmake")
COMPILER = os.environ.get("TAAS_CXX", "c++")


def configure(source: pathlib.Path, build: pathlib.Path, *definitions: str, **environment: str) -> str:
    """Returns all that CMake printed; it must neither fail nor warn."""
    result = subprocess.run(
        [
            CMAKE,
            "-S",
            source,
            "-B",
            build,
            "-G",
            "Ninja",
            "--no-warn-unused-cli",
            f"-DCMAKE_CXX_COMPILER={COMPILER}",
            *definitions,
        ],
        env={**os.environ, **environment},
        text=True,
        timeout=DEADLINE_SECONDS,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert result.returncode == 0, result.stdout
    assert "Warning" not in result.stdout, result.stdout
    return result.stdout


class Project:
    """A project of a few lines, configured as often as asked."""

    def __init__(self, folder: pathlib.Path, lines: str) -> None:
        self.source = folder / "source"
        self.build = folder / "build"
        self.source.mkdir()
        (self.source / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.22...4.0)\n"
            "project(small LANGUAGES CXX)\n"
            f'list(APPEND CMAKE_MODULE_PATH "{SOURCE}/scripts/cmake")\n' + lines
        )

    def configure(self, *definitions: str, **environment: str) -> str:
        return configure(self.source, self.build, *definitions, **environment)
