"""The machines in namespaces themselves: what the other tests build on does what it says."""

import pathlib
import signal
import subprocess
import sys
import textwrap

import pytest

from namespaces import Cluster
from processes import is_gone, wait_until


def ssh(cluster, name, *command, seconds_to_connect=60):
    return cluster.login.run("ssh", f"-oConnectTimeout={seconds_to_connect}", name, *command)


def test_ssh_reaches_every_node_by_name_from_every_node(cluster):
    for name in ("n0", "n1", "n2", "n3"):
        assert ssh(cluster, name, "hostname").stdout == f"{name}\n"
    result = cluster["n3"].run("ssh", "-6", cluster.address("n1", 6), "hostname")
    assert result.stdout == "n1\n", result.stderr


def test_a_cut_is_silent_and_heals(cluster):
    cluster.network.cut("n2")
    result = ssh(cluster, "n2", "hostname", seconds_to_connect=1)
    assert "timed out" in result.stderr, "no answer at all, neither refused nor unreachable"
    assert ssh(cluster, "n1", "hostname").returncode == 0, "the others are not concerned"
    cluster.network.heal("n2")
    assert ssh(cluster, "n2", "hostname").stdout == "n2\n"


@pytest.mark.parametrize("direction", ["in", "out"])
def test_a_cut_one_way(cluster, direction):
    receive = [
        sys.executable,
        "-c",
        textwrap.dedent("""
        import socket, sys
        inbox = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        inbox.bind(("", 5000))
        print("bound", flush=True)
        sys.stdin.read()  # to its end, which says that the sender has ended
        inbox.settimeout(1)
        try:
            print(inbox.recv(10).decode())
        except TimeoutError:
            print("nothing")
    """),
    ]
    send = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'hello', (%r, 5000))"

    def arrives(sender, receiver):
        inbox = cluster[receiver].start(*receive, stdin=subprocess.PIPE)
        assert inbox.stdout.readline() == "bound\n", inbox.stderr.read()
        cluster[sender].check(sys.executable, "-c", send % cluster.address(receiver))
        return inbox.end().stdout == "hello\n"

    assert arrives("n0", "n1") and arrives("n1", "n0"), "both know each other's hardware address now"
    cluster.network.cut_one_way("n1", direction)
    assert arrives("n0", "n1") == (direction == "out")
    assert arrives("n1", "n0") == (direction == "in")


def test_a_partition_between_two_groups(cluster):
    cluster.network.cut_between(["login", "n0"], ["n1"])
    assert ssh(cluster, "n0", "hostname").returncode == 0
    assert "timed out" in ssh(cluster, "n1", "hostname", seconds_to_connect=1).stderr
    assert cluster["n2"].run("ssh", "n1", "hostname").stdout == "n1\n"


def test_a_link_that_is_down_is_seen_by_the_node(cluster):
    cluster.network.link_down("n1")
    wait_until(lambda: "NO-CARRIER" in cluster["n1"].check("ip", "link", "show", "eth0"), "no carrier")
    cluster.network.link_up("n1")
    assert ssh(cluster, "n1", "hostname").stdout == "n1\n"


def test_nodes_that_do_not_let_us_in(cluster):
    cluster.ssh.stop_server(cluster["n0"])
    assert "refused" in ssh(cluster, "n0", "true").stderr
    cluster.ssh.refuse_our_key(cluster["n1"])
    assert "Permission denied" in ssh(cluster, "n1", "true").stderr
    cluster.ssh.change_host_key(cluster["n2"])
    assert "Host key verification failed" in ssh(cluster, "n2", "true").stderr


def test_files_that_only_one_node_sees_differently(cluster):
    program = cluster.home / "program"
    program.write_text("#!/bin/sh\necho one\n")
    program.chmod(0o755)
    other = cluster.home / "other"
    other.write_text("#!/bin/sh\necho two\n")
    other.chmod(0o755)
    cluster["n1"].mount(other, program)
    cluster["n2"].hide(cluster.home)
    assert ssh(cluster, "n0", program).stdout == "one\n"
    assert ssh(cluster, "n1", program).stdout == "two\n"
    assert ssh(cluster, "n2", program).returncode == 127


def test_processes_are_seen_signalled_and_killed(cluster):
    process = cluster["n0"].start("sh", "-c", "trap 'echo asked; exit 3' TERM; echo up; while :; do sleep 0.01; done")
    assert process.stdout.readline() == "up\n"
    assert "trap" in str(cluster.processes("trap"))
    process.terminate()
    assert process.end().returncode == 3
    stubborn = cluster["n1"].start("sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.01; done; # stubborn")
    assert stubborn.stdout.readline() == "up\n"
    assert cluster["n1"].kill_all("stubborn")
    assert stubborn.end().returncode == -signal.SIGKILL
    assert not cluster.processes("stubborn")


def test_a_node_that_crashes_takes_everything_with_it(cluster):
    process = cluster["n3"].start("setsid", "sleep", "1000")
    wait_until(lambda: cluster["n3"].processes("sleep 1000"), "it sleeps")
    cluster["n3"].crash()
    process.end()
    assert not cluster["n3"].processes()
    assert ssh(cluster, "n3", "hostname", seconds_to_connect=1).returncode == 255


def test_nothing_is_left_when_the_test_process_is_killed(namespaces):
    """The nodes, their processes and their network end with it; the folder goes when the next cluster starts."""
    text = textwrap.dedent("""
        import sys
        from namespaces import Cluster
        cluster = Cluster("n0")
        left = cluster["n0"].start("setsid", "sleep", "1000")
        print(cluster.folder, cluster["n0"].pid, flush=True)
        sys.stdin.read()
    """)
    test = subprocess.Popen(
        [sys.executable, "-c", text],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=__file__.rsplit("/", 1)[0],
    )
    folder, pid = test.stdout.readline().split()
    test.kill()
    test.communicate()
    wait_until(lambda: is_gone(int(pid)), "the node is gone")
    Cluster().stop()
    assert not pathlib.Path(folder).exists()
