"""The wheel: what is in it, and what it does in an empty environment."""

import ast
import os
import pathlib
import re
import subprocess
import sys
from typing import Callable

import pytest

from bills import NAMES, parts_of
from binaries import elf_files, linking_faults, search_faults
from environments import HANG, SOURCE, Environment

VERSION = re.search(r"project\(taas-run VERSION ([0-9.]+)", (SOURCE / "CMakeLists.txt").read_text())[1]

RANKS = """
import os, sys
print(os.environ["RANK"], "of", os.environ["WORLD_SIZE"], sys.executable, flush=True)
"""


@pytest.fixture(scope="module")
def installed(empty_environment: Callable[[], Environment], wheel: pathlib.Path) -> Environment:
    environment = empty_environment()
    environment.pip("install", wheel)
    return environment


def test_eight_ranks_run_with_the_environments_interpreter(installed: Environment) -> None:
    run = installed.launch("--gpus", 8, "-t", "3", installed.script(RANKS))
    assert run.returncode == 0, run.stderr
    for rank in range(8):
        assert f"{rank} of 8 {installed.bin}/python" in run.stdout, run.stdout


def test_an_interpreter_that_is_asked_for_goes_first(installed: Environment) -> None:
    script = installed.script(RANKS)
    assert sys.executable in installed.launch(script, PYTHON_EXEC=sys.executable).stdout
    active = pathlib.Path(sys.executable).parents[1]
    path = f"{active}/bin:{installed.bin}:{os.environ['PATH']}"
    assert f"{active}/bin/python" in installed.launch(script, PATH=path).stdout


def test_a_link_to_taas_run_elsewhere_does_not_choose_the_interpreter(
    installed: Environment, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "taas-run").symlink_to(installed.bin / "taas-run")  # as pipx and uv make them
    run = installed.run(tmp_path / "taas-run", installed.script(RANKS))
    assert run.returncode == 0, run.stderr
    assert str(installed.bin) not in run.stdout, run.stdout


def test_the_process_that_is_started_is_the_program_itself(installed: Environment, tmp_path: pathlib.Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    script = installed.script(f"open({str(fifo)!r}).read()\n")
    process = subprocess.Popen([installed.bin / "taas-run", script], cwd=tmp_path, stdout=subprocess.DEVNULL)
    with open(fifo, "w"):  # opens once the rank reads
        assert os.readlink(f"/proc/{process.pid}/exe") == str(installed.bin / "taas-run")
    assert process.wait(HANG) == 0
    assert (installed.bin / "taas-run").read_bytes()[:4] == b"\x7fELF"


def test_binaries_look_for_libraries_in_no_folder_of_the_callers(installed: Environment) -> None:
    assert installed.bin / "taas-run" in elf_files(installed.bin)
    for folder in (installed.bin, installed.site / "taas"):
        assert search_faults(folder) == {} and linking_faults(folder) == {}


def test_it_says_what_is_in_it_and_has_the_notices(installed: Environment) -> None:
    (metadata,) = installed.site.glob("taas_run-*.dist-info")
    assert "Redistribution and use" in (metadata / "licenses/nanobind.txt").read_text()
    assert (metadata / "licenses/LICENSE").exists() and (metadata / "licenses/libcli11-dev.txt").exists()
    assert not list(installed.root.glob("share/doc/*"))
    parts = parts_of(metadata / "sboms/taas-run.cdx.json")
    assert set(parts) == NAMES and all(part["version"] for part in parts.values())


def test_what_is_of_unknown_version_is_named_without_one(tmp_path: pathlib.Path) -> None:
    """A build is not ended by headers that are laid out in another way than the distributions'."""
    pytest.importorskip("cyclonedx", reason="no cyclonedx-python-lib: scripts/requirements-package.txt has it")
    (tmp_path / "CLI").mkdir()
    (tmp_path / "CLI/Version.hpp").write_text('#define CLI11_VERSION "2.5.0"\n')
    (tmp_path / "lz4.h").write_text("#pragma once\n")
    done = subprocess.run(
        [sys.executable, SOURCE / "scripts/cmake/write_sbom.py", tmp_path / "bill.json", VERSION, "static", tmp_path],
        check=True,
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    assert (
        f"the version of lz4 is not known: {tmp_path}/lz4.h" in done.stderr
        and "none of the folders has zstd.h" in done.stderr
    )
    parts = parts_of(tmp_path / "bill.json")
    assert parts["cli11"]["version"] == "2.5.0" and "version" not in parts["lz4"] and NAMES - {"nanobind"} <= set(parts)


def test_the_version_is_the_same_everywhere(installed: Environment, wheel: pathlib.Path) -> None:
    assert wheel.name.startswith(f"taas_run-{VERSION}-")
    assert installed.launch("--version").stdout == f"taas-run {VERSION}\n"
    assert installed.run(installed.bin / "python", "-m", "taas", "--version").stdout == f"taas-run {VERSION}\n"
    told = installed.python("import taas, importlib.metadata as m; print(taas.__version__, m.version('taas-run'))")
    assert told.stdout == f"{VERSION} {VERSION}\n", told.stderr
    assert f'"taas-run {VERSION}"' in (installed.root / "share/man/man1/taas-run.1").read_text().replace("\\", "")


def test_torch_is_an_extra(installed: Environment) -> None:
    needs = installed.python("import importlib.metadata as m; print(m.requires('taas-run'))").stdout
    for requirement in ast.literal_eval(needs):
        assert requirement.startswith("cloudpickle") or "extra ==" in requirement
    assert any(re.match("torch.*extra == .torch", requirement) for requirement in ast.literal_eval(needs))
    assert installed.python("import taas, sys; assert 'torch' not in sys.modules").returncode == 0
    missing = installed.python("import taas; taas.register")
    assert missing.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'torch'"


def test_the_package_runs_taas_run_with_its_own_interpreter(installed: Environment) -> None:
    run = installed.run(installed.bin / "python", "-m", "taas", installed.script(RANKS), VIRTUAL_ENV="/nowhere")
    assert run.returncode == 0, run.stderr
    assert f"0 of 1 {installed.bin}/python" in run.stdout


def test_modules_that_only_taas_run_starts_are_not_importable(installed: Environment) -> None:
    for folder in (SOURCE / "lib/python").iterdir():
        if folder.name in ("taas", "native") or not folder.is_dir() or not list(folder.rglob("*.py")):
            continue
        assert (installed.root / "lib/taas/python" / folder.name).is_dir()
        assert not (installed.site / folder.name).exists()


def test_ranks_with_torch_and_the_native_module(installed: Environment) -> None:
    torch = subprocess.run(
        [sys.executable, "-c", "import importlib.util as u; print(u.find_spec('torch').origin)"],
        capture_output=True,
        text=True,
        timeout=HANG,
    )
    if torch.returncode != 0:
        pytest.skip("no torch in this interpreter")
    borrowed = pathlib.Path(torch.stdout.strip()).parents[1]
    script = installed.script("""
import taas, taas.runtime.native, torch, torch.distributed as dist
dist.init_process_group("gloo")
value = torch.ones(1)
dist.all_reduce(value)
print(int(value), taas.runtime.native.module.__file__, taas.register.__name__)
""")
    run = installed.launch("--gpus", 2, script, PYTHONPATH=str(borrowed))
    assert run.returncode == 0, run.stderr
    assert f"2 {installed.site}/taas/_native." in run.stdout
    assert run.stdout.rstrip().endswith("register")


def test_nothing_is_left_after_uninstalling(environment: Environment, wheel: pathlib.Path) -> None:
    before = environment.files()
    environment.pip("install", wheel)
    assert "bin/taas-run" in environment.files()
    environment.python("import taas")
    environment.pip("uninstall", "-y", "taas-run", "cloudpickle")
    assert environment.files() - before == set()
