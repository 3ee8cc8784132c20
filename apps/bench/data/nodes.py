"""A second node on this machine: a network namespace with a veth pair to ours. Gone with this process."""

import os
import pathlib
import subprocess

HERE, THERE = "10.78.0.1", "10.78.0.2"


class OtherNode:
    """Commands that start() runs see only their end of the link."""

    def __enter__(self):
        self._name = f"bench{os.getpid()}"
        self._run("ip", "netns", "add", self._name)
        self._run("ip", "link", "add", f"veth{os.getpid()}", "type", "veth", "peer", "name", "eth0", "netns", self._name)
        self._run("ip", "address", "add", f"{HERE}/24", "dev", f"veth{os.getpid()}")
        self._run("ip", "link", "set", f"veth{os.getpid()}", "up")
        self._inside("ip", "address", "add", f"{THERE}/24", "dev", "eth0")
        self._inside("ip", "link", "set", "eth0", "up")
        self._inside("ip", "link", "set", "lo", "up")
        return self

    def __exit__(self, *_):
        self._run("ip", "netns", "delete", self._name)  # takes the veth pair with it

    def start(self, command, **options) -> subprocess.Popen:
        return subprocess.Popen(["ip", "netns", "exec", self._name, *map(str, command)], stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, text=True, **options)

    def _inside(self, *command):
        self._run("ip", "netns", "exec", self._name, *command)

    @staticmethod
    def _run(*command):
        subprocess.run(command, check=True)


def shared_memory_policy() -> str:
    policy = pathlib.Path("/sys/kernel/mm/transparent_hugepage/shmem_enabled")
    return policy.read_text().strip() if policy.exists() else "unknown"
