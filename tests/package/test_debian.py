"""The Debian package: what it says of itself, and what is in it, unpacked and run."""

import os
import pathlib
import shutil
import subprocess

import pytest

from bills import NAMES, parts_of
from binaries import linking_faults, search_faults
from environments import BUILD, HANG

TOOLS = {"dpkg-deb": "dpkg", "dpkg-shlibdeps": "dpkg-dev", "file": "file"}  # CPack looks with `file` for what is linked


def need_tools() -> None:
    missing = sorted({package for tool, package in TOOLS.items() if shutil.which(tool) is None})
    if missing:
        reason = f"packages are missing: {' '.join(missing)} (./scripts/test installs them)"
        pytest.fail(reason) if os.environ.get("CI") and os.geteuid() == 0 else pytest.skip(reason)


def output(*command: object, **options: object) -> str:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=HANG, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    need_tools()
    folder = tmp_path_factory.mktemp("debian")
    output("cpack", "-G", "DEB", "--config", BUILD / "CPackConfig.cmake", "-B", folder, cwd=folder)
    (package,) = folder.glob("*.deb")
    return package


@pytest.fixture(scope="module")
def root(package: pathlib.Path) -> pathlib.Path:
    root = package.parent / "root"
    output("dpkg-deb", "-x", package, root)
    return root


def test_it_depends_on_the_libraries_that_it_is_linked_with(package: pathlib.Path) -> None:
    assert output("dpkg-deb", "-f", package, "Package").strip() == "taas-run"
    version = output(os.environ["TAAS_RUN"], "--version").split()[1]
    assert output("dpkg-deb", "-f", package, "Version").strip() == version
    depends = output("dpkg-deb", "-f", package, "Depends")
    assert "libc6 (>=" in depends and "libssl3" in depends and "torch" not in depends


def test_its_files_are_where_debian_looks_for_them(root: pathlib.Path) -> None:
    files = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    assert {
        "usr/bin/taas-run",
        "usr/share/man/man1/taas-run.1",
        "usr/share/bash-completion/completions/taas-run",
        "usr/share/zsh/vendor-completions/_taas-run",
        "usr/share/fish/vendor_completions.d/taas-run.fish",
        "usr/share/doc/taas-run/copyright",
        "usr/lib/taas/python/taas/__init__.py",
    } <= files
    expected = ("usr/bin/taas-run", "usr/lib/taas/python/", "usr/share/")
    assert [name for name in files if not name.startswith(expected)] == []


def test_its_binaries_look_for_libraries_where_the_distribution_has_them(root: pathlib.Path) -> None:
    assert search_faults(root) == {} and linking_faults(root) == {}


def test_it_says_what_is_in_it_and_has_the_notices(root: pathlib.Path) -> None:
    documents = root / "usr/share/doc/taas-run"
    parts = parts_of(documents / "taas-run.cdx.json")
    assert set(parts) == NAMES and all(part["version"] for part in parts.values())
    assert parts["openssl"]["purl"].startswith(
        "pkg:deb/"
    )  # with the distribution's version, which says what was mended
    assert {part["properties"][0]["value"] for part in parts.values()} == {"shared", "static", "headers"}
    assert "Redistribution and use" in (documents / "nanobind.txt").read_text()
    assert (documents / "libspdlog-dev.txt").exists()


def test_ranks_find_the_package(root: pathlib.Path, tmp_path: pathlib.Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import os, taas, taas.foreign; print(os.environ['RANK'], taas.__version__, taas.__file__)")
    shown = output(
        root / "usr/bin/taas-run",
        "--gpus",
        2,
        "-t",
        "3",
        "--output",
        tmp_path / "runs",
        script,
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
    )
    for rank in range(2):
        assert f"{rank} " in shown and str(root / "usr/lib/taas/python/taas/__init__.py") in shown


def test_the_package_finds_taas_run(root: pathlib.Path) -> None:
    told = output(
        "/usr/bin/python3",
        "-m",
        "taas",
        "--version",
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(root / "usr/lib/taas/python")},
    )
    assert told == output(root / "usr/bin/taas-run", "--version")
