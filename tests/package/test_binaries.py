"""The binaries of the build folder and of an installation: where they look for libraries, and how they are hardened."""

import pathlib
import subprocess

import pytest

from binaries import Binary, compiling_faults, elf_files, linking_faults, search_faults
from environments import BUILD, HANG

FOLDERS = [BUILD / name for name in ("bin", "lib", "python", "tests", "apps")]
READ_NETWORKS = ("taas-run", "_native.*.so", "libtaas.so.*", "train")


def cached(name: str) -> str:
    lines = (BUILD / "CMakeCache.txt").read_text().splitlines()
    return next((line.partition("=")[2] for line in lines if line.startswith(f"{name}:")), "")


hardened = pytest.mark.skipif(BUILD.name != "" and cached("TAAS_HARDEN") == "OFF", reason="built with TAAS_HARDEN=OFF")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """What `cmake --install` makes of the build folder: all of it, or of one without libtaas what it has."""
    prefix = tmp_path_factory.mktemp("prefix")
    part = [] if list(BUILD.glob("lib/libtaas.so.*")) else ["--component", "Launcher"]
    subprocess.run(
        ["cmake", "--install", BUILD, "--prefix", prefix, *part], check=True, timeout=HANG, stdout=subprocess.DEVNULL
    )
    return prefix


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_nothing_that_is_built_looks_for_libraries_in_the_current_folder(folder: pathlib.Path) -> None:
    assert search_faults(folder) == {}


def test_nothing_that_is_installed_looks_for_libraries_in_the_current_folder(installed: pathlib.Path) -> None:
    assert installed / "bin/taas-run" in elf_files(installed)
    assert search_faults(installed) == {}


def test_libtaas_and_programs_on_it_need_none_of_the_libraries_of_data_delivery(installed: pathlib.Path) -> None:
    on_torch = [path for path in elf_files(installed) if path.name.startswith("libtaas.so") or path.name == "train"]
    others = ("libssl.", "libcrypto.", "liblz4.", "libzstd.")
    assert [name for path in on_torch for name in Binary(path).needed() if name.startswith(others)] == []


@hardened
@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_tables_of_what_is_built_cannot_be_written(folder: pathlib.Path) -> None:
    assert linking_faults(folder) == {}


@hardened
def test_tables_of_what_is_installed_cannot_be_written(installed: pathlib.Path) -> None:
    assert linking_faults(installed) == {}


@hardened
def test_what_reads_a_network_checks_its_stack_and_buffers() -> None:
    optimised = any(
        level in cached("CMAKE_CXX_FLAGS_" + cached("CMAKE_BUILD_TYPE").upper())
        for level in ("-O1", "-O2", "-O3", "-Os")
    )
    read = [
        path
        for name in READ_NETWORKS
        for folder in FOLDERS[:3]
        for path in folder.rglob(name)
        if path in elf_files(folder)
    ]
    assert read
    assert {path.name: faults for path in read if (faults := compiling_faults(path, optimised))} == {}
