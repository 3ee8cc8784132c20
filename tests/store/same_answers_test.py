"""Sends the same random requests to our store and to torch's own server, byte by byte, and compares every answer.

Left out are the cases where torch's server ends a wait before its keys have come, or never, and ours does it when they
have: a compare-set that fails on a missing key wakes its waiters; in a wait for a queue among other keys, each push
counts again, and a queue that already holds values counts as missing. No client of torch's asks for these.

usage: same_answers_test.py STORE_SERVER [SEED [ROUNDS]]
"""

import random
import socket
import struct
import sys
from datetime import timedelta

try:
    import torch.distributed as dist
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

from store_process import StoreProcess

(
    VALIDATE,
    SET,
    COMPARE_SET,
    GET,
    ADD,
    CHECK,
    WAIT,
    COUNT_KEYS,
    DELETE,
    APPEND,
    MULTI_GET,
    MULTI_SET,
    CANCEL_WAIT,
    PING,
    QUEUE_PUSH,
    QUEUE_POP,
    QUEUE_LENGTH,
    LIST_KEYS,
    BARRIER,
) = range(19)
KEYS = [b"", b"a", b"b", b"init/", b"/default_pg/0//cpu//0/1", b"k" * 200]
NUMBER_KEYS = [b"n", b"m"]
QUEUES = [b"q", b"r"]
COMPARED_KEYS = [b"c", b"d"]
VALUES = [b"", b"v", b"\0\xff" * 9, b"x" * 3000]
GREETING = struct.pack("<BI", VALIDATE, 0x3C85F7CE)


def u64(number):
    return struct.pack("<Q", number)


def blob(text):
    return u64(len(text)) + text


class Client:
    """One raw connection. After each request comes a ping, whose nonce marks where the answers end."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.socket.sendall(GREETING)
        self.nonce = 0

    def ask(self, request):
        self.nonce += 1
        mark = struct.pack("<I", 0xA5000000 + self.nonce)
        self.socket.sendall(request + bytes([PING]) + mark)
        answer = b""
        while not answer.endswith(mark):
            received = self.socket.recv(1 << 20)
            if not received:
                return answer + b"<closed>"
            answer += received
        return answer[:-4]


def random_request(rng):
    """One whole request; nobody waits for the COMPARED_KEYS."""
    key, other = rng.choice(KEYS), rng.choice(KEYS)
    value, number = rng.choice(VALUES), rng.choice(NUMBER_KEYS)
    queue = rng.choice(QUEUES)
    some = rng.choices(KEYS + NUMBER_KEYS + QUEUES, k=rng.randrange(5))
    awaited = rng.choice([[queue], rng.choices(KEYS + NUMBER_KEYS, k=rng.randrange(5))])
    kind = rng.choice(
        [
            SET,
            COMPARE_SET,
            GET,
            ADD,
            CHECK,
            WAIT,
            COUNT_KEYS,
            DELETE,
            APPEND,
            MULTI_GET,
            MULTI_SET,
            CANCEL_WAIT,
            QUEUE_PUSH,
            QUEUE_POP,
            QUEUE_LENGTH,
            LIST_KEYS,
            BARRIER,
        ]
    )
    arguments = {
        SET: lambda: blob(rng.choice([key, rng.choice(COMPARED_KEYS)])) + blob(value),
        COMPARE_SET: lambda: blob(rng.choice(COMPARED_KEYS)) + blob(rng.choice(VALUES)) + blob(value),
        GET: lambda: blob(rng.choice([key, number])),
        ADD: lambda: blob(number) + struct.pack("<q", rng.choice([0, 1, -5, 2**62, -(2**63)])),
        CHECK: lambda: u64(len(some)) + b"".join(map(blob, some)),
        WAIT: lambda: u64(len(awaited)) + b"".join(map(blob, awaited)),
        DELETE: lambda: blob(rng.choice([key, number, queue] + COMPARED_KEYS)),
        APPEND: lambda: blob(key) + blob(value),
        MULTI_GET: lambda: u64(len(some)) + b"".join(map(blob, some)),
        MULTI_SET: lambda: u64(2) + blob(key) + blob(value) + blob(other) + blob(b"second"),
        QUEUE_PUSH: lambda: blob(queue) + blob(value),
        QUEUE_POP: lambda: blob(queue),
        QUEUE_LENGTH: lambda: blob(queue),
        BARRIER: lambda: blob(number) + struct.pack("<q", rng.choice([-1, 0, 1, 2, 3])),
    }.get(kind, bytes)
    return bytes([kind]) + arguments()


def normal(request, answer):
    """torch lists its keys in no order."""
    if request[0] != LIST_KEYS:
        return answer
    keys, at = [], 8
    while at < len(answer):
        size = struct.unpack_from("<Q", answer, at)[0]
        keys.append(answer[at + 8 : at + 8 + size])
        at += 8 + size
    return answer[:8] + b"|".join(sorted(keys))


def compare(rng, ours_port, torch_port, rounds, name):
    """Several clients at random. A client that waits asks nothing but to cancel, as a real one; what is released is
    seen by asking every waiting client after each request.
    """
    ours, theirs = ([Client(port) for _ in range(4)] for port in (ours_port, torch_port))
    waiting = set()
    for round_number in range(rounds):
        who = rng.randrange(len(ours))
        request = bytes([CANCEL_WAIT]) if who in waiting else random_request(rng)
        asked = [(who, request)] + [(other, b"") for other in range(len(ours)) if other != who]
        for client, sent in asked:
            mine, wanted = ours[client].ask(sent), theirs[client].ask(sent)
            context = f"{name}, round {round_number}, client {client}, after {who} sent {request[:80]!r}"
            assert not mine.endswith(b"<closed>"), context
            expected = normal(sent, wanted) if sent else wanted
            answer = normal(sent, mine) if sent else mine
            assert answer == expected, f"{context}: {answer[:200]!r}, torch answers {expected[:200]!r}"
            if client == who and request[0] in (WAIT, BARRIER) and not mine:
                waiting.add(who)
            elif mine:
                waiting.discard(client)


def main():
    executable = sys.argv[1]
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 20
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 1500
    for offset in range(3):
        theirs = dist.TCPStore("127.0.0.1", 0, None, True, timedelta(seconds=60), wait_for_workers=False)
        with StoreProcess(executable) as ours:
            compare(random.Random(seed + offset), ours.port, theirs.port, rounds, f"seed {seed + offset}")
    print(f"{3 * rounds} random requests answered as torch answers them")


if __name__ == "__main__":
    main()
