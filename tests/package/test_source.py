"""Wheels from source: the source distribution, and (TAAS_FULL=1) wheels that are compiled."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

from conftest import pip_wheel
from environments import BUILD, COMPILATION, HANG, SOURCE, Environment

# Of the C library alone: what every machine has.
SYSTEM = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
full = pytest.mark.skipif("TAAS_FULL" not in os.environ, reason="compiles the launcher again: TAAS_FULL=1")


@pytest.fixture(scope="module")
def source_distribution(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("sdist")
    subprocess.run(
        [sys.executable, "-c", "import sys, scikit_build_core.build as b; b.build_sdist(sys.argv[1])", folder],
        cwd=SOURCE,
        check=True,
        timeout=HANG,
        stdout=subprocess.DEVNULL,
    )
    (path,) = folder.glob("taas_run-*.tar.gz")
    return path


def test_the_source_distribution_has_what_a_wheel_is_made_of(source_distribution: pathlib.Path) -> None:
    with tarfile.open(source_distribution) as archive:
        packed = {name.split("/", 1)[1] for name in archive.getnames()}
    if not (SOURCE / ".git").exists():
        pytest.skip("not a clone")
    tracked = subprocess.run(
        [
            "git",
            "ls-files",
            "CMakeLists.txt",
            "pyproject.toml",
            "LICENSE",
            "README.md",
            "lib",
            "apps/taas-run",
            "apps/CMakeLists.txt",
            "include",
            "scripts/cmake",
        ],
        cwd=SOURCE,
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG,
    ).stdout.splitlines()
    assert [name for name in tracked if name not in packed] == []
    assert not any(name.startswith(("tests/", "build/", ".venv/", "taas-runs/")) for name in packed)


def needed(binary: pathlib.Path) -> set[str]:
    shown = subprocess.run(["readelf", "-d", binary], capture_output=True, text=True, check=True, timeout=HANG).stdout
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", shown))


@full
def test_a_compiled_wheel_needs_nothing_but_the_c_library(
    source_distribution: pathlib.Path, tmp_path: pathlib.Path, environment: Environment
) -> None:
    wheel = pip_wheel(tmp_path / "wheel", str(source_distribution), **{"build-dir": BUILD / "wheel"})
    unpacked = tmp_path / "unpacked"
    zipfile.ZipFile(wheel).extractall(unpacked)
    (program,) = unpacked.glob("*.data/scripts/taas-run")
    (native,) = unpacked.glob("taas/_native.*")
    assert needed(program) <= SYSTEM and needed(native) <= SYSTEM
    notices = {path.name for path in unpacked.glob("*.dist-info/licenses/*")}
    assert {"LICENSE", "nanobind.txt"} <= notices and (
        not pathlib.Path("/usr/share/doc/libssl-dev").exists() or "libssl-dev.txt" in notices
    )
    environment.pip("install", wheel)
    assert environment.launch("--gpus", 8, environment.script("")).returncode == 0
    assert environment.python("import taas.runtime.native as n; assert n.module, n.why_absent").returncode == 0
    policy = subprocess.run(
        [sys.executable, "-m", "auditwheel", "show", wheel], capture_output=True, text=True, timeout=HANG
    )
    assert "manylinux_2_" in policy.stdout, policy.stdout + policy.stderr


def newest_python() -> str | None:
    """An interpreter with headers for which one wheel serves all later ones."""
    for minor in range(20, 11, -1):
        path = shutil.which(f"python3.{minor}")
        if (
            path
            and subprocess.run(
                [path, "-c", "import os, sysconfig as s; os.stat(s.get_path('include') + '/Python.h')"],
                capture_output=True,
                timeout=HANG,
            ).returncode
            == 0
        ):
            return path
    return None


@full
def test_one_wheel_serves_python_3_12_and_later(tmp_path: pathlib.Path) -> None:
    python = newest_python()
    if python is None:
        pytest.skip("no Python from 3.12 on with headers here")
    # With build isolation, as users have it: pip fetches what building takes.
    subprocess.run(
        [python, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path, SOURCE], check=True, timeout=COMPILATION
    )
    (wheel,) = tmp_path.glob("*.whl")
    assert "-cp312-abi3-" in wheel.name
    assert "taas/_native.abi3.so" in zipfile.ZipFile(wheel).namelist()
    (tmp_path / "site").mkdir()
    subprocess.run(
        [python, "-m", "pip", "install", "-q", "--no-deps", "--target", tmp_path / "site", wheel],
        check=True,
        timeout=HANG,
    )
    done = subprocess.run(
        [python, "-m", "taas", "--version"],
        capture_output=True,
        text=True,
        timeout=HANG,
        env={"PYTHONPATH": str(tmp_path / "site"), "PATH": "/usr/bin:/bin"},
    )
    assert done.stdout.startswith("taas-run "), done.stderr
    native = "import taas.runtime.native as n; assert n.module.__file__.endswith('abi3.so')"
    subprocess.run([python, "-c", native], check=True, timeout=HANG, env={"PYTHONPATH": str(tmp_path / "site")})
