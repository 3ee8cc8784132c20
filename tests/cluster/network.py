"""The network between the nodes of a test cluster: a bridge in a namespace of its own, and ways to break it."""

import pathlib
import subprocess

from node import Node

FIRST_ADDRESS = 10

FOUND = """ether type arp accept
icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept"""


def address(place: int, version: int = 4) -> str:
    """Of the node at a place. No cluster can be reached from another one, so that all use the same addresses."""
    return f"10.77.0.{FIRST_ADDRESS + place}" if version == 4 else f"fd00:77::{FIRST_ADDRESS + place}"


class Network:
    def __init__(self, folder: pathlib.Path):
        self._switch = Node("switch", folder / "switch")
        self._nodes = {}
        self._ports = {}  # name of a node → its port of the bridge
        self._dropped = set()  # pairs (from, to) of names; None is anyone
        self._command("ip", "link", "add", "br0", "type", "bridge", "forward_delay", "0", "mcast_snooping", "0")
        self._command("ip", "link", "set", "br0", "up")

    def attach(self, node: Node, place: int):
        """Gives a node its link and its addresses."""
        self._nodes[node.name] = node
        port = self._ports[node.name] = f"port{place}"
        self._command("ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", str(node.pid))
        self._command("ip", "link", "set", port, "master", "br0", "up")
        node.check(
            "sh",
            "-ec",
            f"ip address add {address(place)}/24 dev eth0\n"
            f"ip address add {address(place, 6)}/64 dev eth0 nodad\n"
            "ip link set eth0 up",
        )

    def cut(self, *names: str):
        """Silent loss: nothing that these nodes send arrives, and nothing arrives at them."""
        self._drop({(name, None) for name in names} | {(None, name) for name in names})

    def cut_one_way(self, name: str, direction: str):
        """`direction` "out": nothing that the node sends arrives; "in": nothing arrives at the node."""
        self._drop({{"out": (name, None), "in": (None, name)}[direction]})

    def cut_between(self, some, others):
        """A partition: nothing gets from one group of nodes to the other, in both directions."""
        self._drop({pair for a in some for b in others for pair in ((a, b), (b, a))})

    def heal(self, *names: str):
        """Ends what was cut for these nodes, without names for all."""
        self._dropped = {pair for pair in self._dropped if names and not set(pair) & set(names)}
        self._apply()

    def slow_down(self, rate: str, *names: str):
        """What these nodes send is queued for a second at most, and goes out at that rate (as in tc: 8mbit)."""
        for name in names:
            shape = ("tbf", "rate", rate, "burst", "64k", "latency", "1s")
            self._nodes[name].check("tc", "qdisc", "add", "dev", "eth0", "root", *shape)

    def link_down(self, name: str):
        """The cable is out: the node sees that it has no carrier."""
        self._command("ip", "link", "set", self._ports[name], "down")

    def link_up(self, name: str):
        self._command("ip", "link", "set", self._ports[name], "up")

    def stop(self):
        self._switch.stop()

    def _drop(self, pairs: set):
        self._dropped |= pairs
        self._apply()

    def _apply(self):
        # Hardware addresses are still found, as behind a router: otherwise the sender's kernel would say "no route".
        rules = "\n".join(self._rule(*pair) for pair in sorted(self._dropped, key=str))
        self._command(
            "nft",
            "-f",
            "-",
            input=(
                "flush ruleset\n"
                f"table bridge cuts {{\nchain forward {{\ntype filter hook forward priority 0\n"
                f"{FOUND}\n{rules}\n}}\n}}\n"
            ),
        )

    def _rule(self, sender, receiver) -> str:
        matches = [
            f'{side} "{self._ports[name]}"' for side, name in (("iifname", sender), ("oifname", receiver)) if name
        ]
        return " ".join(matches) + " drop"

    def _command(self, *argv, **options):
        """In the network of the switch alone: pids in the arguments stay those that the test sees."""
        subprocess.run(["nsenter", f"--target={self._switch.pid}", "--net", *argv], check=True, text=True, **options)


# How the network of a node can be broken, by name.
CUTS = {
    "both ways": lambda network, node: network.cut(node),
    "carrier": lambda network, node: network.link_down(node),
    "in": lambda network, node: network.cut_one_way(node, "in"),
    "out": lambda network, node: network.cut_one_way(node, "out"),
}
