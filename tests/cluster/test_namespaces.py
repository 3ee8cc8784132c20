"""The machines of these tests leave nothing behind, whatever ends the test process."""

import pathlib
import subprocess
import sys

from namespaces import Cluster
from processes import is_gone, wait_until

TEST = """
import contextlib, pytest, sys
from frozen_disk import FreezableDisk
from namespaces import Cluster
cluster = Cluster("n0")
left = cluster["n0"].start("setsid", "sleep", "1000")
try:
    frozen = FreezableDisk(cluster.folder, [cluster["n0"]]).frozen()
except pytest.skip.Exception:
    frozen = contextlib.nullcontext()
with frozen:
    print(cluster.folder, cluster["n0"].pid, flush=True)
    sys.stdin.read()
"""


def test_nothing_is_left_when_the_test_process_is_killed(namespaces):
    """The nodes, their processes, their network and their disks end with it; the folder goes with the next cluster."""
    with subprocess.Popen(
        [sys.executable, "-c", TEST],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=pathlib.Path(__file__).parent,
    ) as test:
        folder, pid = test.stdout.readline().split()
        test.kill()
    wait_until(lambda: is_gone(int(pid)), "the node is gone")
    wait_until(lambda: folder not in subprocess.check_output(["losetup", "--list"], text=True), "the disk is gone")
    Cluster().stop()
    assert not pathlib.Path(folder).exists()
