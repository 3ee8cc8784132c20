"""PyPI's unrelated distribution `taas` in the same environment: its files go into the folder of our package."""

import base64
import hashlib
import pathlib
import zipfile

import pytest

from environments import Environment

MODULES = {
    "taas/__init__.py": "from .writer import data_sender\n",
    "taas/config.py": "",
    "taas/writer.py": "import grpc\ndata_sender = None\n",
    "taas/protos/__init__.py": "",
}
METADATA = "taas-0.9.2.dist-info"
WAY_OUT = "pip uninstall taas, then pip install --force-reinstall --no-deps <wheel of taas-run>"


@pytest.fixture(scope="session")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A wheel with that distribution's name, version and layout."""
    path = tmp_path_factory.mktemp("foreign") / "taas-0.9.2-py3-none-any.whl"
    files = MODULES | {
        f"{METADATA}/METADATA": "Metadata-Version: 2.1\nName: taas\nVersion: 0.9.2\n",
        f"{METADATA}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{METADATA}/top_level.txt": "taas\n",
    }
    record = [f"{name},sha256={digest(text)},{len(text)}" for name, text in files.items()] + [f"{METADATA}/RECORD,,"]
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in (files | {f"{METADATA}/RECORD": "\n".join(record) + "\n"}).items():
            archive.writestr(name, text)
    return path


def digest(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()


def test_files_that_were_there_first_are_named(
    environment: Environment, wheel: pathlib.Path, foreign: pathlib.Path
) -> None:
    environment.pip("install", foreign)
    environment.pip("install", wheel)
    line = environment.python("import taas").stderr.splitlines()[-1]
    assert "taas 0.9.2" in line and f"{environment.site}/taas/config.py and 3 more" in line and line.endswith(WAY_OUT)
    module = environment.run(environment.bin / "python", "-m", "taas", "--version")
    assert module.returncode == 2
    (line,) = module.stderr.splitlines()
    assert line.startswith("taas: files of another distribution") and line.endswith(WAY_OUT)

    environment.pip("uninstall", "-y", "taas")
    environment.pip("install", "--force-reinstall", "--no-deps", wheel)
    healed = environment.python("import taas; print(taas.__version__)")
    assert healed.returncode == 0, healed.stderr


def test_taas_run_says_it_when_our_package_was_replaced(
    environment: Environment, wheel: pathlib.Path, foreign: pathlib.Path
) -> None:
    environment.pip("install", wheel)
    environment.pip("install", foreign)
    assert "ForeignFiles" not in environment.python("import taas").stderr  # it cannot know
    (environment.site / "grpc.py").touch()  # what that one depends on
    module = environment.run(environment.bin / "python", "-m", "taas", "--version")
    assert module.returncode == 2 and module.stderr.startswith("taas: files of another distribution, taas 0.9.2")
    script = environment.script("print('trained')\n")
    run = environment.launch(script)
    assert run.returncode == 0 and "trained" in run.stdout  # a script that does without
    assert f"{environment.site}/{METADATA}" in run.stderr and WAY_OUT in run.stderr
    refused = environment.launch("--cpus", 1, script)
    assert refused.returncode == 2
    (line,) = refused.stderr.splitlines()
    assert line.startswith("taas-run: data delivery: ") and METADATA in line and line.endswith(WAY_OUT)


def test_other_programs_do_not_care(environment: Environment, wheel: pathlib.Path, foreign: pathlib.Path) -> None:
    environment.pip("install", wheel)
    environment.pip("install", foreign)
    run = environment.launch("/bin/true")
    assert run.returncode == 0 and METADATA not in run.stderr


def test_a_name_that_begins_alike_is_no_stranger(environment: Environment, wheel: pathlib.Path) -> None:
    environment.pip("install", wheel)
    for name in ("taasrun-1.0.dist-info", "taas_tools-2.dist-info"):
        (environment.site / name).mkdir()
    assert environment.python("import taas").returncode == 0
    assert "dist-info" not in environment.launch(environment.script("")).stderr
