"""`--numa-binding`: which processors ranks may use. Trees of larger machines are tests/proc/machine/numa_test.cpp's."""

import json
import os
import pathlib

import pytest
from conftest import own_mounts, with_driver
from data_runs import STAY, data  # noqa: F401
from waiting import DEADLINE_SECONDS

SHOW = """
import json, os
print(json.dumps([sorted(os.sched_getaffinity(0)), int(os.environ["OMP_NUM_THREADS"])]))
"""
USABLE = sorted(os.sched_getaffinity(0))
CPU = {"CUDA_VISIBLE_DEVICES": ""}
# Two GPUs, the first of which is on the second of two nodes that have a processor each.
TWO_NODES = """
mount -t tmpfs none /proc/driver
mount -t tmpfs none /sys/bus/pci/devices
mount -t tmpfs none /sys/devices/system/node
echo 0-1 > /sys/devices/system/node/has_cpu
for number in 0 1; do
  name=0000:${number}7:00.0
  mkdir -p /proc/driver/nvidia/gpus/$name /sys/bus/pci/devices/$name /sys/devices/system/node/node$number
  printf 'Model: \\t\\t NVIDIA\\nDevice Minor: \\t %s\\n' $number > /proc/driver/nvidia/gpus/$name/information
  echo $((1 - number)) > /sys/bus/pci/devices/$name/numa_node
done
echo $1 > /sys/devices/system/node/node0/cpulist
echo $2 > /sys/devices/system/node/node1/cpulist
"""


def siblings(processor):
    path = pathlib.Path(f"/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list")
    return path.read_text() if path.exists() else processor


def nodes():
    return len(list(pathlib.Path("/sys/devices/system/node").glob("node[0-9]*")))


needs_two_cores = pytest.mark.skipif(len(set(map(siblings, USABLE))) < 2, reason="two ranks cannot have a core each")


def shown(launcher, done):
    assert done.returncode == 0, done.stderr
    return [json.loads(log.read_text()) for log in sorted(launcher.run_folder().glob("generation-0/rank-*.out"))]


@needs_two_cores
@pytest.mark.gate
@pytest.mark.parametrize("preload", ["none", "multiprocessing"])
def test_two_ranks_share_no_core(launcher, preload):
    script = launcher.python(SHOW)
    words = ("--nproc-per-node", 2, "--numa-binding", "exclusive", "--preload", preload, script)
    (first, threads), (second, same_threads) = shown(launcher, launcher.run(*words, env=CPU))
    assert first and second and not set(first) & set(second)
    assert sorted(first + second) == USABLE or nodes() > 2
    assert threads == same_threads <= min(len(first), len(second))


@needs_two_cores
@pytest.mark.gate
def test_ranks_are_on_the_nodes_of_their_gpus(launcher, tmp_path):
    if not pathlib.Path("/sys/bus/pci/devices").is_dir() or not pathlib.Path("/sys/devices/system/node").is_dir():
        pytest.skip("no trees here, whose place those of the test could take")
    launcher.environment |= with_driver(tmp_path)
    launcher.environment.pop("CUDA_VISIBLE_DEVICES", None)
    words = ("--numa-binding", "node", launcher.python(SHOW))
    before = own_mounts(TWO_NODES, USABLE[0], USABLE[1])
    both = [[[USABLE[1]], 1], [[USABLE[0]], 1]]
    assert shown(launcher, launcher.run(*words, before=before)) == both
    assert shown(launcher, launcher.run(*words, before=before, env={"CUDA_VISIBLE_DEVICES": "1"})) == both[1:]
    done = launcher.run("--env", "CUDA_VISIBLE_DEVICES=1,0", *words, before=before)
    assert shown(launcher, done) == both[::-1]


@pytest.mark.gate
def test_too_few_cores_are_said_before_anything_starts(launcher):
    ranks = len(USABLE) + 1
    words = ("--nproc-per-node", ranks, "--numa-binding", "exclusive", "/bin/true")
    for more in (("--max-restarts", 3), ("--dry-run",)):
        done = launcher.run(*more, *words, env=CPU)
        assert done.returncode == 2 and done.stdout == ""
        assert "taas-run: --numa-binding: NUMA node " in done.stderr and "use --numa-binding node" in done.stderr
        assert not (launcher.folder / "taas-runs").exists()


@needs_two_cores
def test_a_machine_that_only_makes_batches_needs_no_cores_for_ranks(data):
    """A command of our own in place of ssh gives it one processor."""
    ssh = data.launcher.folder / "one-processor"
    ssh.write_text(
        f'#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift 2\nexec taskset -c {USABLE[0]} sh -c "$*"\n'
    )
    ssh.chmod(0o755)
    words = ("--nproc-per-node", 2, "--data-hosts", "127.0.0.1", "--cpus", 1, "--ssh", ssh)
    process = data.start(*words, "--numa-binding", "exclusive", data.launcher.python(STAY), env=CPU)
    data.wait_for("rank-0", "rank-1", "worker-0")
    process.terminate()
    process.communicate(timeout=DEADLINE_SECONDS)


def test_openmp_that_binds_threads_itself_is_not_preloaded(launcher):
    script = launcher.python(SHOW)
    words = ("--nproc-per-node", 1, "--numa-binding", "node", "--preload", "multiprocessing", script)
    done = launcher.run(*words, env={"OMP_PROC_BIND": "close", **CPU})
    assert shown(launcher, done)
    assert "not preloaded: OMP_PROC_BIND is read when a process starts, before --numa-binding" in done.stderr
