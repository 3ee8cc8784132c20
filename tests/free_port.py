"""A port for a server that a test starts."""

import random
import socket

# Below the ports that the kernel gives to whoever asks for any: no other test gets one of these by chance.
PORTS = range(20_000, 32_000)


def free_port() -> int:
    for port in random.SystemRandom().sample(PORTS, len(PORTS)):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("all ports are taken")
