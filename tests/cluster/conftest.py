"""Fixtures that drive the real taas-run on clusters of this machine: namespaces.py and slurm.py are the clusters.

They need root, namespaces and some packages, and are skipped without; where the variable CI is set, root has to have
them.
"""

import os
import pathlib
import shutil

import pytest

from frozen_disk import FreezableDisk
from namespaces import Cluster
from node import Node
from runs import Records, assert_nothing_left
from slurm import Slurm

TAAS_RUN = os.environ["TAAS_RUN"]
NODE_TIMEOUT = 5  # seconds, where a node is lost or cut off: agents end their ranks after three of them
RANK_PROGRAM = os.environ["TAAS_RANK_PROGRAM"]

FULL = bool(os.environ.get("TAAS_FULL"))  # ./scripts/test --full


def some(values, count: int = 1) -> list:
    """All cases of a long test, or the first ones in the fast whole."""
    return list(values) if FULL else list(values)[:count]


NETWORK_TOOLS = {
    "ssh": "openssh-client",
    "sshd": "openssh-server",
    "ip": "iproute2",
    "nft": "nftables",
    "unshare": "util-linux",
}
SLURM_TOOLS = {"slurmctld": "slurm-wlm", "slurmd": "slurm-wlm", "srun": "slurm-wlm", "munged": "munge"}


def give_up(reason: str):
    if os.environ.get("CI") and os.geteuid() == 0:
        pytest.fail(reason)
    pytest.skip(reason)


def need(tools: dict):
    missing = sorted({package for tool, package in tools.items() if shutil.which(tool) is None})
    if missing:
        give_up(f"packages are missing: {' '.join(missing)} (./scripts/test installs them)")


@pytest.fixture(scope="session")
def namespaces(tmp_path_factory):
    """Skips where this user or this machine cannot have a cluster."""
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    if os.geteuid() != 0:
        give_up("only root can make network namespaces")
    need(NETWORK_TOOLS)
    try:
        Node("trial", tmp_path_factory.mktemp("trial")).stop()
    except RuntimeError as error:
        give_up(f"namespaces are not permitted here: {error}")


@pytest.fixture
def cluster(namespaces):
    """Four machines n0..n3 and login, new for each test."""
    cluster = Cluster("n0", "n1", "n2", "n3")
    yield cluster
    cluster.stop()


@pytest.fixture
def frozen_disk(cluster, tmp_path):
    """One disk of the login node, n0 and n1."""
    need({"mkfs.ext4": "e2fsprogs", "losetup": "mount"})
    return FreezableDisk(tmp_path, [cluster.login, cluster["n0"], cluster["n1"]])


@pytest.fixture(scope="session")
def running_slurm(namespaces):
    need(SLURM_TOOLS)
    slurm = Slurm()
    yield slurm
    slurm.stop()


@pytest.fixture
def slurm(running_slurm):
    """All nodes are idle at the start, and no node may be drained at the end."""
    yield running_slurm
    running_slurm.reset()
    assert running_slurm.drained() == ""


def assert_sound(slurm, *jobs):
    """Nothing of the jobs is left, and all nodes take the next one."""
    slurm.wait_until_idle()
    assert slurm.drained() == ""
    assert not any(slurm.processes(job) for job in jobs)
    assert_nothing_left(slurm.cluster)


@pytest.fixture
def barrier(tmp_path) -> pathlib.Path:
    folder = tmp_path / "barrier"
    folder.mkdir()
    return folder


@pytest.fixture
def records(tmp_path) -> Records:
    """Where the programs of programs/ write what they saw."""
    return Records(tmp_path / "records")


@pytest.fixture
def ranks(barrier):
    """ranks(action…): the command of ranks that meet at the barrier, on whatever nodes, and then do their actions."""
    return lambda *actions: [RANK_PROGRAM, "--barrier", str(barrier), *actions]
