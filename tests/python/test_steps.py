"""`taas.step()`: what the launcher reads of it."""

import os
import struct
import subprocess
import sys

import pytest

PROGRAM = """
import os, sys, time, taas
for count in map(int, sys.argv[1:]):
    taas.step(count)
    time.sleep(0.01)
"""


def run(path, *counts: int, program: str = PROGRAM) -> subprocess.CompletedProcess:
    environment = {**os.environ, "TAAS_STEPS": str(path)}
    return subprocess.run([sys.executable, "-c", program, *map(str, counts)], env=environment, capture_output=True, text=True)


def read(path) -> tuple:
    return struct.unpack("=Qqd", path.read_bytes())


def test_steps_are_counted_with_their_rate(tmp_path):
    path = tmp_path / "steps"
    result = run(path, 1, 1, 5)
    assert result.returncode == 0, result.stderr
    count, last, rate = read(path)
    assert count == 7 and last > 0 and 0 < rate <= 500


def test_the_first_step_has_no_rate(tmp_path):
    assert run(tmp_path / "steps", 3).returncode == 0
    assert read(tmp_path / "steps")[::2] == (3, 0.0)


@pytest.mark.parametrize("path", ["", "nowhere/steps", "folder"])
def test_without_a_place_nothing_happens(tmp_path, path):
    (tmp_path / "folder").mkdir()
    assert run(tmp_path / path if path else "", 1, 1).returncode == 0
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["folder"]


def test_a_link_is_not_followed(tmp_path):
    target = tmp_path / "precious"
    target.write_text("x" * 100)
    (tmp_path / "steps").symlink_to(target)
    assert run(tmp_path / "steps", 1).returncode == 0
    assert target.read_text() == "x" * 100


def test_steps_of_a_forked_child_do_not_count(tmp_path):
    program = "import os, taas\ntaas.step()\nif os.fork() == 0:\n    taas.step(100)\n    os._exit(0)\nos.wait()\ntaas.step()\n"
    assert run(tmp_path / "steps", program=program).returncode == 0
    assert read(tmp_path / "steps")[0] == 2
