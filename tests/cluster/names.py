"""The name service of a test cluster: a name server on each node, all of which know the same, as in Kubernetes."""

import json
import pathlib

from processes import wait_until

PROGRAM = pathlib.Path(__file__).parent / "programs" / "name_server.py"
DOMAIN = "team.svc.cluster.local"  # the search domain of every node


class Names:
    def __init__(self, cluster):
        self._file, self._servers = cluster.folder / "zone.json", cluster.folder / "resolv.conf"
        self._zone = {"names": {}}
        self._write()
        self.ask("timeout:2 attempts:1")
        order = cluster.folder / "nsswitch.conf"
        order.write_text("hosts: files dns\n")
        for node in cluster.nodes:
            log = f"names-{node.name}.log"
            node.daemon("python3", PROGRAM, self._file, log=log)
            wait_until(lambda: "ready" in (node.folder / log).read_text(), f"names are served on {node.name}")
            node.mount(order, "/etc/nsswitch.conf")
            node.mount(self._servers, "/etc/resolv.conf")

    def ask(self, options: str):
        """How nodes ask: `options` as in resolv.conf."""
        self._servers.write_text(
            f"nameserver 127.0.0.1\nsearch {DOMAIN} svc.cluster.local\noptions ndots:5 {options}\n"
        )

    def know(self, name: str, *addresses: str):
        """`name` is what a program may say of `name` in the search domain."""
        self._zone["names"][f"{name}.{DOMAIN}"] = addresses
        self._write()

    def answer_after(self, seconds: float):
        self._zone["seconds"] = seconds
        self._write()

    def fall_silent(self):
        self._zone["silent"] = True
        self._write()

    def _write(self):
        new = self._file.with_suffix(".new")
        new.write_text(json.dumps(self._zone))
        new.rename(self._file)
