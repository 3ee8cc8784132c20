"""`taas.log_scalar()`: lines of JSON, in the run's output."""

import json
import os
import subprocess
import sys

PROGRAM = """
import taas
class Tensor:
    __float__ = lambda self: 0.5
taas.log_scalar("loss", 0.1, 7)
taas.log_scalar("loss", Tensor(), 8)
taas.log_scalar("loss", float("nan"), 9)
taas.log_scalar("loss", float("inf"), 10)
"""


def run(folder, program=PROGRAM, **variables):
    environment = {name: value for name, value in os.environ.items() if name not in ("TAAS_OUTPUT_DIR", "RANK", "TORCHELASTIC_RESTART_COUNT")}
    return subprocess.run([sys.executable, "-c", program], cwd=folder, env=environment | variables, capture_output=True, text=True)


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_lines_of_rank_0(tmp_path):
    done = run(tmp_path, TAAS_OUTPUT_DIR=str(tmp_path), RANK="0", TORCHELASTIC_RESTART_COUNT="2")
    assert done.returncode == 0, done.stderr
    lines = lines_of(tmp_path / "scalars-2.jsonl")
    assert [line["step"] for line in lines] == [7, 8, 9, 10]
    assert [line["value"] for line in lines] == [0.1, 0.5, "NaN", "Infinity"]
    assert all(line["name"] == "loss" and line["wall_time"] > 1.7e9 for line in lines)


def test_other_ranks_write_nothing(tmp_path):
    assert run(tmp_path, TAAS_OUTPUT_DIR=str(tmp_path), RANK="1").returncode == 0
    assert not list(tmp_path.iterdir())


def test_without_a_launcher_they_are_in_the_current_folder_and_go_on(tmp_path):
    for _ in range(2):
        assert run(tmp_path).returncode == 0
    assert len(lines_of(tmp_path / "scalars-0.jsonl")) == 8


def test_a_folder_that_is_not_there_is_named(tmp_path):
    done = run(tmp_path, TAAS_OUTPUT_DIR=str(tmp_path / "nowhere"))
    assert done.returncode == 1 and "nowhere/scalars-0.jsonl" in done.stderr.splitlines()[-1]
