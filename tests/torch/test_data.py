"""The seeds' use of data delivery as a whole: taas-run --cpus, register, train, unregister."""

import os
import re

import pytest
import torch

from test_scripts import HERE, taas_run_to_the_end

FULL = bool(os.environ.get("TAAS_FULL"))
GPUS = 8 if FULL else 2
CPUS = (0, 1, 2, 4, 8) if FULL else (0, 1, 4)


def workers(cpus: int) -> tuple:
    return ("--cpus", cpus, "--data-cores", 1) if cpus else ("--cpus", 0)


def trained(folder, launch, *arguments) -> str:
    result = taas_run_to_the_end(folder, "--nproc-per-node", GPUS, *launch, HERE / "data_script.py", *arguments)
    assert result.returncode == 0, result.stderr
    return re.search(r"trained on .*", result.stdout)[0]


def test_the_model_equals_the_one_trained_without_register(tmp_path):
    plain = trained(tmp_path, (), "--plain")
    assert {cpus: trained(tmp_path, workers(cpus)) for cpus in CPUS} == dict.fromkeys(CPUS, plain)


def test_random_augmentation_is_the_same_for_any_number_of_workers(tmp_path):
    ways = [trained(tmp_path, workers(cpus), "--augment") for cpus in CPUS if cpus]
    assert set(ways) == {ways[0]}
    assert ways[0] != trained(tmp_path, ("--cpus", 0), "--plain"), "the augmentation does something"


@pytest.mark.gate
@pytest.mark.parametrize("units", [256])
def test_the_loop_ends_after_the_units(tmp_path, units):
    result = taas_run_to_the_end(
        tmp_path, "--nproc-per-node", 2, "--cpus", 1, "--data-cores", 1, "--units", units, HERE / "data_script.py"
    )
    assert result.returncode == 0, result.stderr
    assert f"trained on {units // 2} samples" in result.stdout
    assert str(units) in result.stderr, "the end of the loop is explained"


PINNED = """
import os
import torch
import taas
from torch.utils.data import DataLoader, TensorDataset
torch.distributed.init_process_group("gloo")
loader = taas.register(DataLoader(TensorDataset(torch.arange(64.0)), batch_size=4, pin_memory=True))
assert sum(len(x) for (x,) in loader) == 64
if os.environ["RANK"] == "1":
    print("PROCESS", os.getpid())
    torch.cuda.is_available()
"""


@pytest.mark.skipif(torch.version.cuda is None, reason="this torch has no libcudart")
@pytest.mark.parametrize("preload", ["none", "torch"])
def test_cuda_is_initialized_by_the_program_alone(tmp_path, preload):
    """With the real libcudart: neither the launcher nor the Python that ranks come from, the data workers or a loader
    whose batches are to be pinned calls cuInit()."""
    (tmp_path / "libcuda.so.1").symlink_to(os.environ["TAAS_FAKE_CUDA"])
    (tmp_path / "pinned.py").write_text(PINNED)
    (tmp_path / "calls").touch()
    words = ("--nproc-per-node", 2, "--cpus", 1, "--preload", preload, "-t", 3, tmp_path / "pinned.py")
    driver = {"LD_LIBRARY_PATH": f"{tmp_path}:{os.environ.get('LD_LIBRARY_PATH', '')}"}
    result = taas_run_to_the_end(tmp_path, *words, FAKE_CUDA_LOG=str(tmp_path / "calls"), **driver)
    assert result.returncode == 0, result.stderr
    process = re.search(r"PROCESS (\d+)", result.stdout)[1]
    calls = (tmp_path / "calls").read_text().splitlines()
    assert f"{process} cuInit" in calls and {call.split()[0] for call in calls} == {process}
