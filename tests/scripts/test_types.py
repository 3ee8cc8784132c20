"""mypy over the Python package: what is asked of it is in pyproject.toml."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HAS_MYPY = subprocess.run([sys.executable, "-m", "mypy", "--version"], capture_output=True, check=False).returncode == 0

needs_mypy = pytest.mark.skipif(not HAS_MYPY, reason="no mypy here (scripts/requirements-test.txt)")


def mypy(cache: pathlib.Path, *arguments) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml", "--cache-dir", cache, *arguments],
                          cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)


@needs_mypy
def test_the_package_has_no_errors_of_types(tmp_path_factory):
    result = mypy(tmp_path_factory.getbasetemp() / "mypy")
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.startswith("Success")


@needs_mypy
def test_an_error_of_types_is_found(tmp_path):
    (tmp_path / "planted.py").write_text("def count() -> int:\n    return 'one'\n")
    result = mypy(tmp_path / "cache", tmp_path / "planted.py")
    assert result.returncode == 1 and "planted.py:2: error: " in result.stdout
