"""Wheels of this source, and environments to install them into."""

import os
import pathlib
import subprocess
import sys
import venv
import zipfile
from typing import Callable

import pytest

from environments import BUILD, COMPILATION, SOURCE, Environment


def pip_wheel(folder: pathlib.Path, source: str, **settings: object) -> pathlib.Path:
    """Makes a wheel with the tools of this interpreter, so that nothing is fetched."""
    options = [
        f"--config-settings={name}={value}" for name, value in settings.items()
    ]  # pip has had -C only since 23.1
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            source,
            *options,
            "--no-build-isolation",
            "--no-deps",
            "-q",
            "-w",
            folder,
        ],
        check=True,
        timeout=COMPILATION,
    )
    (wheel,) = folder.glob("taas_run-*.whl")
    return wheel


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A wheel of the build folder under test: same rules, nothing compiled. TAAS_WHEEL names one to test instead."""
    if os.environ.get("TAAS_WHEEL"):
        return pathlib.Path(os.environ["TAAS_WHEEL"]).resolve(strict=True)
    folder = tmp_path_factory.mktemp("wheel")
    return pip_wheel(folder, str(SOURCE), **{"build-dir": folder / "build", "cmake.define.TAAS_PREBUILT": BUILD})


@pytest.fixture(scope="session")
def cloudpickle(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A wheel of the one package that ours depends on, put together from the copy that is installed here."""
    return repack("cloudpickle", tmp_path_factory.mktemp("dependencies"))


def repack(name: str, folder: pathlib.Path) -> pathlib.Path:
    from importlib import metadata

    distribution = metadata.distribution(name)
    path = folder / f"{name}-{distribution.version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for file in distribution.files or []:
            if "__pycache__" not in file.parts and file.name not in ("INSTALLER", "REQUESTED", "direct_url.json"):
                archive.write(file.locate(), str(file))
    return path


@pytest.fixture(scope="session")
def empty_environment(tmp_path_factory: pytest.TempPathFactory, cloudpickle: pathlib.Path) -> Callable[[], Environment]:
    """Makes empty virtual environments. pip is this interpreter's, and finds nothing but what it is handed."""

    def make() -> Environment:
        root = tmp_path_factory.mktemp("environment") / "venv"
        venv.create(root, with_pip=False, symlinks=True)
        return Environment(root, cloudpickle.parent)

    return make


@pytest.fixture
def environment(empty_environment: Callable[[], Environment]) -> Environment:
    return empty_environment()
