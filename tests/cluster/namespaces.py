"""Machines in network namespaces of this one, with sshd: what tests of taas-run on many nodes run on."""

import pathlib

from network import Network, address
from node import Node
from scratch import Scratch
from ssh import Ssh

LOGIN = "login"

# A locked root account (usual on Ubuntu) would be refused by sshd; passwords are not accepted in any case.
SHADOW = "root:*:19000:0:99999:7:::\nsshd:!:19000::::::\n"


class Cluster:
    """`names` are the nodes, in order; `login` is one more machine beside them, for whoever starts taas-run there.

    All see the same files, `home` included, except /run and what mount() and hide() of a node change for it.
    """

    def __init__(self, *names: str):
        self._scratch = Scratch()
        self.folder = self._scratch.folder
        self.home = self.folder / "home"
        self.home.mkdir()
        self._machines = {}
        try:
            self._start([LOGIN, *names])
        except BaseException:
            self.stop()
            raise

    def _start(self, names):
        self.ssh = Ssh(self.folder / "ssh")
        self.network = Network(self.folder)
        mounts = [(self.ssh.config, "/etc/ssh/ssh_config"), *self._system_files(names)]
        for place, name in enumerate(names):
            node = self._machines[name] = Node(name, self.folder / name, mounts, self.home)
            self.network.attach(node, place)
            self.ssh.add(node, place)

    def _system_files(self, names) -> list:
        """What the nodes see in /etc: their names, and a root user with the home and the shell of the cluster."""
        files = {"/etc/hosts": hosts(names), "/etc/passwd": users(self.home), "/etc/shadow": SHADOW}
        return [(self._file(pathlib.Path(place).name, text), place) for place, text in files.items()]

    def _file(self, name: str, text: str) -> pathlib.Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def __getitem__(self, name: str) -> Node:
        return self._machines[name]

    @property
    def login(self) -> Node:
        return self._machines[LOGIN]

    @property
    def nodes(self) -> list:
        return [node for name, node in self._machines.items() if name != LOGIN]

    def address(self, name: str, version: int = 4) -> str:
        return address(list(self._machines).index(name), version)

    def processes(self, *patterns: str) -> dict:
        """Name → processes of that machine, without machines that have none; see Node.processes()."""
        found = {name: node.processes(*patterns) for name, node in self._machines.items()}
        return {name: processes for name, processes in found.items() if processes}

    def stop(self):
        for node in self._machines.values():
            node.stop()
        if hasattr(self, "network"):
            self.network.stop()
        self._scratch.remove()


def users(home) -> str:
    others = [line for line in pathlib.Path("/etc/passwd").read_text().splitlines() if not line.startswith("root:")]
    return "\n".join([f"root:x:0:0:root:{home}:/bin/sh", *others]) + "\n"


def hosts(names) -> str:
    lines = ["127.0.0.1 localhost", "::1 localhost"]
    for place, name in enumerate(names):
        lines += [f"{address(place)} {name}", f"{address(place, 6)} {name}"]
    return "\n".join(lines) + "\n"
