"""scripts/conda/recipe.yaml says the same as pyproject.toml and CMake. conda itself is not needed."""

import pathlib
import re
from typing import Any

import pytest

from environments import SOURCE

yaml = pytest.importorskip("yaml", reason="no PyYAML to read the recipe with")
tomllib = pytest.importorskip("tomllib", reason="Python 3.10 cannot read pyproject.toml")

# What CMake looks for, as conda-forge calls it. Without a name: it comes with the compiler or with Python.
CONDA_NAMES = {
    "Threads": "",
    "Boost": "libboost-devel",
    "OpenSSL": "openssl",
    "CLI11": "cli11",
    "fmt": "fmt",
    "toml++/toml.h": "tomlplusplus",
    "spdlog/spdlog.h": "spdlog",
    "xxhash.h": "xxhash",
    "lz4.h": "lz4-c",
    "zstd.h": "zstd",
    "lz4": "lz4-c",
    "zstd": "zstd",
    "Python": "python",
    "nanobind": "nanobind",
}
LOOKS_FOR = re.compile(r"find_(?:package\((\S+)(?: ([0-9.]+))?|(?:path|library)\(\S+ (\S+))")


@pytest.fixture(scope="module")
def recipe() -> dict[str, Any]:
    return yaml.safe_load((SOURCE / "scripts/conda/recipe.yaml").read_text())


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((SOURCE / "pyproject.toml").read_text())


def bounds(requirements: list[str]) -> dict[str, str]:
    """By name, what follows it."""
    parted = (re.fullmatch(r"([A-Za-z0-9_-]+) *(.*)", requirement) for requirement in requirements)
    return {match[1]: match[2] for match in parted if match}


def test_name_version_and_license(recipe: dict[str, Any], project: dict[str, Any]) -> None:
    version = re.search(r"project\(taas-run VERSION ([0-9.]+)", (SOURCE / "CMakeLists.txt").read_text())
    assert version and recipe["context"]["version"] == version[1]
    assert recipe["package"]["name"] == project["project"]["name"]
    assert recipe["about"]["license"] == project["project"]["license"]
    assert (SOURCE / "scripts/conda" / recipe["source"]["path"] / "pyproject.toml").samefile(SOURCE / "pyproject.toml")
    assert (SOURCE / recipe["about"]["license_file"]).is_file()


def test_requirements(recipe: dict[str, Any], project: dict[str, Any]) -> None:
    requirements = recipe["requirements"]
    host, run = bounds(requirements["host"]), bounds(requirements["run"])
    for name, bound in bounds(project["build-system"]["requires"]).items():
        assert host[name] == bound, name
    assert {name: bound for name, bound in run.items() if name != "python"} == bounds(
        project["project"]["dependencies"]
    )
    torch = bounds(project["project"]["optional-dependencies"]["torch"])["torch"]
    assert bounds(requirements["run_constraints"]) == {"pytorch": torch}
    oldest = project["project"]["requires-python"].removeprefix(">=")
    assert f'match(python, "<{oldest}")' in recipe["build"]["skip"]


def test_what_cmake_looks_for_is_required(recipe: dict[str, Any]) -> None:
    files = [
        SOURCE / "scripts/cmake/TaasDependencies.cmake",
        SOURCE / "lib/data/CMakeLists.txt",
        SOURCE / "lib/python/CMakeLists.txt",
    ]
    found = [match for file in files for match in LOOKS_FOR.findall(pathlib.Path(file).read_text())]
    assert len(found) >= len(CONDA_NAMES)
    host = bounds(recipe["requirements"]["host"])
    for package, bound, file in found:
        name = CONDA_NAMES[package or file]
        assert not name or name in host, f"CMake looks for {package or file}"
        assert not bound or name in ("", "python") or host[name] == f">={bound}", name
