"""The system's ssh between the nodes of a test cluster: keys and configuration of the cluster's own."""

import pathlib
import shutil
import subprocess

from network import address
from node import Node
from processes import wait_until

SERVER = """
Port 22
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PermitRootLogin yes
PasswordAuthentication no
KbdInteractiveAuthentication no
StrictModes no
UsePAM no
PrintMotd no
MaxStartups 100
PidFile none
"""

CLIENT = """
Host {name}
  HostName {address}
"""

CLIENT_DEFAULTS = """
Host *
  User root
  IdentityFile {folder}/user_key
  IdentitiesOnly yes
  IdentityAgent none
  UserKnownHostsFile {folder}/known_hosts
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  BatchMode yes
"""


class Ssh:
    """`ssh NAME` works on every node where `config` is mounted as the system's configuration."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.config = folder / "config"
        folder.mkdir()
        self.make_key("user_key")
        self.make_key("host_key")
        (folder / "known_hosts").touch()
        self.config.write_text(CLIENT_DEFAULTS.format(folder=folder))
        self._servers = {}

    def make_key(self, name: str) -> pathlib.Path:
        path = self.folder / name
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", path], check=True)
        return path

    def add(self, node: Node, place: int):
        """Makes a node known to the clients, and starts its server."""
        files = node.folder / "sshd"
        files.mkdir()
        shutil.copy(self.folder / "host_key", files)
        shutil.copy(self.folder / "user_key.pub", files / "authorized_keys")
        (files / "config").write_text(SERVER.format(folder=files))
        self._describe(node.name, place)
        self.start_server(node)

    def start_server(self, node: Node):
        node.check("mkdir", "-p", "/run/sshd")
        self._servers[node.name] = node.daemon(
            shutil.which("sshd"), "-D", "-e", "-f", node.folder / "sshd" / "config", log="sshd.log"
        )
        wait_until(lambda: _listens(node), f"sshd of {node.name}")

    def stop_server(self, node: Node):
        """From now on the node refuses connections."""
        self._servers.pop(node.name).kill()
        wait_until(lambda: not _listens(node), f"the end of sshd of {node.name}")

    def change_host_key(self, node: Node):
        """The node is not the one that the clients know."""
        (node.folder / "sshd" / "host_key").write_text(self.make_key(f"host_key_of_{node.name}").read_text())
        self.stop_server(node)
        self.start_server(node)

    def _describe(self, name: str, place: int):
        with open(self.config, "r+") as config:  # the same file: it is mounted
            rest = config.read()
            config.seek(0)
            config.write(CLIENT.format(name=name, address=address(place)) + rest)
        key = (self.folder / "host_key.pub").read_text().split(" ", 2)[:2]
        with open(self.folder / "known_hosts", "a") as known:
            known.write(" ".join([f"{name},{address(place)},{address(place, 6)}", *key]) + "\n")


def _listens(node: Node) -> bool:
    return any(port == 22 for _, port in node.listening())
