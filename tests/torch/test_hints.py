"""Mistakes that make no rank fail are told of in one line each, and programs without them are not told of."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
import torch
from waiting import DEADLINE_SECONDS

TAAS_RUN = os.environ["TAAS_RUN"]

TRAIN = """
import os, torch, torch.distributed as dist
from torch import nn

rank = int(os.environ["RANK"])

def step(model, optimizer, device="cpu"):
    optimizer.zero_grad()
    model(torch.ones(2, 4, device=device)).sum().backward()
    optimizer.step()
"""
ALONE = (
    TRAIN
    + """
model = nn.Linear(4, 1)
step(model, torch.optim.SGD(model.parameters(), lr=0.1))
"""
)
TOGETHER = (
    TRAIN
    + """
dist.init_process_group("gloo")
model = nn.parallel.DistributedDataParallel(nn.Linear(4, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
step(model, optimizer)
"""
)
# Two GPUs that are none, once torch has done everything in earnest.
TWO_GPUS = """
class Properties:
    total_memory = multi_processor_count = 1

torch.cuda.is_available = torch.cuda.is_initialized = lambda: True
torch.cuda.device_count = lambda: 2
torch.cuda.get_device_properties = lambda device: Properties
torch.cuda.max_memory_reserved = lambda device: HELD[device]
"""
END = "\ndist.destroy_process_group()\n"
EVERYTHING_WRONG = (
    TOGETHER
    + """
for _ in range(2):
    torch.save(model.state_dict(), "model.pt")
dist.barrier()
"""
    + END
    + "HELD = [4096, 0]"
    + TWO_GPUS
    + "nn.DataParallel(nn.Linear(4, 1))\n"
)
EVERYTHING_RIGHT = (
    TOGETHER
    + """
if rank == 0:
    torch.save(model.state_dict(), "model.pt")
torch.save(model.state_dict(), f"model-{rank}.pt")
torch.save(model.state_dict(), "/dev/null")
os.makedirs(str(rank), exist_ok=True)
torch.save(model.state_dict(), f"{rank}/model.pt")
for best in (0, 1):  # whichever rank has the best result
    step(model, optimizer)
    if rank == best:
        torch.save(model.state_dict(), "best.pt")
    dist.barrier()
"""
    + END
    + "HELD = [4096 * (rank == 0), 4096 * (rank == 1)]"
    + TWO_GPUS
    + "nn.DataParallel(nn.Identity(), device_ids=[rank])\n"
)
WITHOUT_TRAINING = (
    TRAIN
    + """
model = nn.Linear(4, 1)
with torch.no_grad():
    model(torch.ones(2, 4) * rank)
torch.save(model.state_dict(), f"result-{rank}.pt")
"""
)

WITHOUT_GROUP = r"2 ranks trained without a process group, each on its own: .*"
DATA_PARALLEL = r"ranks 0, 1 each used nn\.DataParallel on the same GPUs: .*"
ONE_GPU = r"ranks 0, 1 all used GPU 0, and none of the other 1: .*"
SAME_FILE = r"ranks 0, 1 saved to the same file, .*/model\.pt: .*"


class Run:
    def __init__(self, folder: pathlib.Path, *words, **variables):
        environment = {**os.environ, "PATH": f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}", **variables}
        for _ in range(3):
            result = subprocess.run(
                [TAAS_RUN, "--nproc-per-node", "2", *map(str, words)],
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=DEADLINE_SECONDS,
            )
            if "terminate called without an active exception" not in result.stderr:  # as in test_scripts.py
                break
        assert result.returncode == 0, result.stderr
        self.console = result.stderr
        run_folder = (folder / "taas-runs" / "latest").resolve()
        self.files = [path.name for path in run_folder.rglob("*")]
        entries = map(json.loads, (run_folder / "journal.jsonl").read_text().splitlines())
        self.hints = [entry["text"] for entry in entries if entry.get("action") == "notify"]


@pytest.fixture
def run(tmp_path):
    def run(program: str, *words, **variables) -> Run:
        (tmp_path / "program.py").write_text(program)
        return Run(tmp_path, *words, "program.py", **variables)

    return run


@pytest.mark.gate
def test_training_without_a_group(run):
    result = run(ALONE)
    assert [bool(re.fullmatch(WITHOUT_GROUP, hint)) for hint in result.hints] == [True], result.console
    assert result.console.count("trained without a process group") == 1
    assert not [name for name in result.files if name.endswith(".facts")]


def test_hints_can_be_switched_off(run):
    result = run(ALONE, TAAS_HINTS="0")
    assert result.hints == [] and "process group" not in result.console


@pytest.mark.gate
def test_gpus_and_files_that_ranks_share_by_mistake(run):
    result = run(EVERYTHING_WRONG)
    expected = [DATA_PARALLEL, ONE_GPU, SAME_FILE]
    assert len(result.hints) == len(expected), result.console
    assert all(re.fullmatch(*pair) for pair in zip(expected, result.hints)), result.hints
    assert all(f"taas-run: {hint}" in result.console for hint in result.hints), result.console


@pytest.mark.parametrize(
    "program",
    [pytest.param(EVERYTHING_RIGHT, marks=pytest.mark.gate), WITHOUT_TRAINING],
    ids=["everything right", "without training"],
)
def test_nothing_is_said_of_programs_that_do_it_right(run, program):
    assert run(program).hints == []


def test_nothing_is_said_of_a_program_that_is_not_python(tmp_path):
    assert Run(tmp_path, "--no-python", "true").hints == []


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_ranks_on_one_gpu(run):
    result = run(
        TRAIN + 'dist.init_process_group("gloo")\nmodel = nn.Linear(4, 1, device="cuda:0")\n'
        'step(model, torch.optim.SGD(model.parameters(), lr=0.1), "cuda:0")' + END
    )
    assert [bool(re.match("ranks 0, 1 all used GPU 0", hint)) for hint in result.hints] == [True], result.console
