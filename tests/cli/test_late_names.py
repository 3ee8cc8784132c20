"""Nodes whose names are known later, as those of pods are: three on one machine, each with its own /etc/hosts.

With TAAS_FULL=1 each start is repeated 20 times. tests/cluster/test_namespaces_names.py has name servers and addresses
that change.
"""

import os
import pathlib
import re
import subprocess

import pytest
from conftest import assert_ranks, free_port, own_mounts
from waiting import DEADLINE_SECONDS, wait_until

NAME = "job-0.svc"
PODS = 3
REPEATS = 20 if os.environ.get("TAAS_FULL") else 1
TOKEN = {"TAAS_TOKEN": "a secret of ours"}


class Names:
    """What the processes that `before` starts find in /etc/hosts. No name server answers them."""

    def __init__(self, folder: pathlib.Path):
        self._hosts, servers = folder / "hosts", folder / "resolv.conf"
        self.forget_all()
        servers.write_text("nameserver 127.0.0.111\noptions timeout:1 attempts:1\n")
        mount = 'mount --bind "$1" /etc/hosts; mount --bind "$2" /etc/resolv.conf'
        self.before = own_mounts(mount, self._hosts, servers)

    def know(self, name: str, address: str = "127.0.0.1"):
        with open(self._hosts, "a") as hosts:  # the same file: it is mounted
            hosts.write(f"{address} {name}\n")

    def forget_all(self):
        self._hosts.write_text("127.0.0.1 localhost\n")


@pytest.fixture
def names(launcher) -> Names:
    return Names(launcher.folder)


class Pods:
    """The same command on each; `told` are words for each in turn."""

    def __init__(self, launcher, names, told, *command):
        self._errors = [launcher.folder / f"stderr-{pod}" for pod in range(len(told))]
        self._agents = []
        for words, path in zip(told, self._errors):
            with open(path, "w") as errors:
                self._agents.append(
                    launcher.start(
                        *words, *command, before=names.before, env=TOKEN, stderr=errors, stdout=subprocess.DEVNULL
                    )
                )

    def said(self) -> list:
        return [path.read_text() for path in self._errors]

    def wait_for_line(self, pattern: str):
        wait_until(lambda: all(re.search(pattern, text) for text in self.said()), f"all say {pattern}")

    def end(self) -> list:
        return [agent.wait(DEADLINE_SECONDS) for agent in self._agents]


def static(port: int) -> tuple:
    told = [[f"--node-rank={pod}"] for pod in range(PODS)]
    return told, [f"--nnodes={PODS}", "--nproc-per-node=1", f"--master-addr={NAME}", f"--master-port={port}"]


def elastic(port: int) -> tuple:
    return [[]] * PODS, [
        f"--nnodes=2:{PODS}",
        "--nproc-per-node=1",
        "--rdzv-backend=c10d",
        f"--rdzv-endpoint={NAME}:{port}",
        "--rdzv-id=job7",
        "--rdzv-conf=last_call_timeout=120",
    ]


@pytest.mark.parametrize("way", [static, pytest.param(elastic, marks=pytest.mark.gate)])
def test_three_pods_start_once_their_names_are_known(launcher, names, script, touched, way):
    """Static: the first node ended with 2 at once. Elastic: no node became the coordinator any more."""
    for _ in range(REPEATS):
        names.forget_all()
        told, flags = way(free_port())
        pods = Pods(launcher, names, told, *flags, script, touched)
        pods.wait_for_line(f"waiting for the name {NAME}")
        names.know(NAME)
        assert pods.end() == [0] * PODS, pods.said()
        assert_ranks(touched, PODS)


def test_the_first_node_starts_and_its_peers_learn_its_name_late(launcher, names, script, touched):
    """Its own /etc/hosts may have it before any name server does."""
    names.know(NAME)
    told, flags = static(free_port())
    first = Pods(launcher, names, told[:1], *flags, script, touched)
    wait_until(lambda: (launcher.folder / "taas-runs").exists(), "the first node coordinates")
    names.forget_all()
    others = Pods(launcher, names, told[1:], *flags, script, touched)
    others.wait_for_line(f"waiting for the name {NAME}")
    names.know(NAME)
    assert first.end() + others.end() == [0] * PODS, others.said()
    assert_ranks(touched, PODS)


def test_a_name_of_the_machine_that_was_there_before_becomes_this_ones(launcher, names, script, touched):
    """A pod has started again, and its name still stands for the address that it had."""
    for way in static, elastic:
        names.forget_all()
        names.know(NAME, "203.0.113.9")  # of nobody: RFC 5737
        told, flags = way(free_port())
        pods = Pods(launcher, names, told[:1], *flags, script, touched)
        pods.wait_for_line("203.0.113.9")
        names.forget_all()
        names.know(NAME)
        others = Pods(launcher, names, told[1:], *flags, script, touched)
        assert pods.end() + others.end() == [0] * PODS, pods.said() + others.said()
        assert_ranks(touched, PODS)


def test_a_name_that_nobody_ever_knows_ends_the_wait_with_a_reason(launcher, names):
    told, flags = elastic(free_port())
    pods = Pods(launcher, names, told[:1], *flags, "--join-timeout=8", "--no-python", "/bin/true")
    assert pods.end() == [1]
    waiting, end = pods.said()[0].strip().splitlines()
    assert re.search(rf"waiting for the name {NAME}, \d+ s: no address is known for it yet; for \d+ s more", waiting)
    assert "could not be reached for 8 s" in end and "no address is known for this name" in end


@pytest.mark.gate
def test_one_node_needs_no_name(launcher, names, script, touched):
    """The only pod of a job is given its own name as well, and nothing depends on that."""
    result = launcher.run(
        "--nnodes=1",
        "--nproc-per-node=2",
        f"--master-addr={NAME}",
        "--node-rank=0",
        script,
        touched,
        before=names.before,
    )
    assert result.returncode == 0, result.stderr
    assert_ranks(touched, 2)


@pytest.mark.gate
def test_a_wrong_address_of_the_first_node_is_told_at_once(launcher):
    """Unlike a name it will not become this machine's."""
    told, flags = static(free_port())
    flags = [flag.replace(NAME, "203.0.113.9") for flag in flags]
    result = launcher.run(*told[0], *flags, "--no-python", "/bin/true", env=TOKEN)
    assert result.returncode == 2 and "not an address of this machine" in result.stderr, result.stderr
