"""A second node on this machine: a network namespace with a veth pair to ours. Gone with this process."""

import os
import pathlib
import subprocess


class OtherNode:
    """Commands that start() runs see only their end of the link, which has the address `there`."""

    def __init__(self, number: int = 0):
        self._name = f"bench{os.getpid()}-{number}"
        self._link = f"ve{os.getpid()}-{number}"
        self.here, self.there = f"10.78.{number}.1", f"10.78.{number}.2"

    def __enter__(self):
        self._run("ip", "netns", "add", self._name)
        self._run("ip", "link", "add", self._link, "type", "veth", "peer", "name", "eth0", "netns", self._name)
        self._run("ip", "address", "add", f"{self.here}/24", "dev", self._link)
        self._run("ip", "link", "set", self._link, "up")
        self.run("ip", "address", "add", f"{self.there}/24", "dev", "eth0")
        self.run("ip", "link", "set", "eth0", "up")
        self.run("ip", "link", "set", "lo", "up")
        return self

    def __exit__(self, *_):
        self._run("ip", "link", "delete", self._link)  # at once: with the namespace alone it would go some time later
        self._run("ip", "netns", "delete", self._name)

    def start(self, command, **options) -> subprocess.Popen:
        """`ip netns exec` becomes the command, so that signals reach it."""
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "text": True, **options}
        return subprocess.Popen(["ip", "netns", "exec", self._name, *map(str, command)], **options)

    def run(self, *command, **options):
        self._run("ip", "netns", "exec", self._name, *command, **options)

    def cut(self):
        """Silent loss in both directions, until heal()."""
        chains = "\n".join(
            f"chain {hook}s {{\ntype filter hook {hook} priority 0\ndrop\n}}" for hook in ("input", "output")
        )
        self.run("nft", "-f", "-", text=True, input=f"table inet cut {{\n{chains}\n}}\n")

    def heal(self):
        self.run("nft", "flush", "ruleset")

    @staticmethod
    def _run(*command, **options):
        subprocess.run(command, check=True, **options)


def shared_memory_policy() -> str:
    policy = pathlib.Path("/sys/kernel/mm/transparent_hugepage/shmem_enabled")
    return policy.read_text().strip() if policy.exists() else "unknown"
