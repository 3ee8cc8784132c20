"""`--devices-per-rank`: each rank has a group of devices of its own."""

import json

import pytest
from conftest import own_mounts, with_driver

FOUR_GPUS = "mount -t tmpfs none /proc/driver; for gpu in 0 1 2 3; do mkdir -p /proc/driver/nvidia/gpus/$gpu; done"
SHOW = (
    "import json, os; "
    "names = 'RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE CUDA_VISIBLE_DEVICES TAAS_DEVICES_PER_RANK'; "
    "print(json.dumps([os.environ.get(name) for name in names.split()]))"
)


@pytest.fixture
def on_four_gpus(launcher, tmp_path):
    """Calls taas-run on a machine whose driver lists four GPUs."""
    before = own_mounts(FOUR_GPUS)
    library = with_driver(tmp_path)
    return lambda *arguments, **variables: launcher.run(*arguments, before=before, env={**library, **variables})


def shown(launcher, done):
    assert done.returncode == 0, done.stderr
    logs = sorted(launcher.run_folder().glob("generation-0/rank-*.out"))
    return [json.loads(log.read_text()) for log in logs]


@pytest.mark.gate
def test_each_rank_sees_its_own_group(launcher, on_four_gpus):
    done = on_four_gpus("--devices-per-rank", 2, launcher.python(SHOW), CUDA_VISIBLE_DEVICES="3,2,1,0")
    assert shown(launcher, done) == [["0", "2", "0", "2", "3,2", "2"], ["1", "2", "1", "2", "1,0", "2"]]
    assert "4 GPUs here: 2 ranks, each on 2 GPUs" in done.stderr


@pytest.mark.gate
def test_groups_that_do_not_fit_are_refused(on_four_gpus):
    for sizes, why in (
        (["--gpus", 3], "--gpus 3 is not a multiple of --devices-per-rank 2"),
        (["--gpus", 8], "4 ranks need 8 GPUs, and this machine has 4"),
    ):
        done = on_four_gpus(*sizes, "--devices-per-rank", 2, "--dry-run", "train.py")
        assert done.returncode == 2 and why in done.stderr and len(done.stderr.splitlines()) == 1


def test_each_rank_has_a_slice_of_a_gpu_that_is_cut(launcher):
    """Three GPUs count whole; the slices of the fourth are for those who name them."""
    slices = "mkdir -p /proc/driver/nvidia/capabilities/gpu0/mig/gi1 /proc/driver/nvidia/capabilities/gpu0/mig/gi2"
    before = own_mounts(f"{FOUR_GPUS}; {slices}")
    launcher.environment |= with_driver(launcher.folder)
    done = launcher.run(launcher.python(SHOW), before=before)
    assert [rank[4] for rank in shown(launcher, done)] == [None] * 3
    names = {"CUDA_VISIBLE_DEVICES": "MIG-a, MIG-b"}
    done = launcher.run(launcher.python(SHOW), before=before, env=names)
    assert shown(launcher, done) == [["0", "2", "0", "2", "MIG-a", "1"], ["1", "2", "0", "2", "MIG-b", "1"]]


def test_without_gpus_the_ranks_are_as_many(launcher):
    done = launcher.run("--gpus", 4, "--devices-per-rank", 2, launcher.python(SHOW), env={"CUDA_VISIBLE_DEVICES": ""})
    assert shown(launcher, done) == [["0", "2", "0", "2", "", "2"], ["1", "2", "1", "2", "", "2"]]


def test_a_dry_run_shows_the_groups(launcher, on_four_gpus):
    plan = on_four_gpus("--gpus", 4, "--devices-per-rank", 2, "--dry-run", "--verbose", launcher.python(SHOW))
    assert "with 4 visible GPU(s), 2 for each rank\n" in plan.stdout
    assert "  CUDA_VISIBLE_DEVICES=0,1\n" in plan.stdout and " CUDA_VISIBLE_DEVICES=2,3" in plan.stdout


@pytest.mark.gate
def test_a_submitted_job_asks_for_all_gpus(launcher):
    tools = launcher.folder / "tools"
    tools.mkdir()
    (tools / "srun").write_text('#!/bin/sh\necho "$@"\n')
    (tools / "srun").chmod(0o755)
    path = f"{tools}:{launcher.environment['PATH']}"
    done = launcher.run("--slurm", "--gpus", 16, "--devices-per-rank", 2, "train.py", env={"PATH": path})
    assert done.returncode == 0, done.stderr
    assert "--nodes=2 " in done.stdout and "--gpus-per-node=8 " in done.stdout
