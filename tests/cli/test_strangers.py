"""Who connects without the secret, and says nothing or next to nothing, takes no descriptor that the run needs."""

import contextlib
import resource
import socket
import struct

import pytest
from conftest import free_port
from waiting import DEADLINE_SECONDS, wait_until

LIMIT = 1024
LEAST_FOR_8_RANKS = 112
STRANGERS = 900
SECRET = {"TAAS_TOKEN": "a secret of ours"}
QUERY = b"\0" + struct.pack("<I", 0x3C85F7CE)  # "validate" of torch's TCPStore

# Each rank has a connection to the store, waits until the strangers are there, and uses it, another one and the
# staging folder.
RANK = """
import os, pathlib, socket, struct, sys, time
rank, folder, once = os.environ["RANK"], pathlib.Path(sys.argv[1]), "once" in sys.argv
place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])

def connect():
    client = socket.create_connection(place)
    client.sendall(b"\\0" + struct.pack("<I", 0x3C85F7CE))
    return client, client.makefile("rb")

def ask(client, answers):
    client.sendall(b"\\7")
    assert len(answers.read(8)) == 8

first = connect()
ask(*first)
(folder / f"began-{rank}").write_text(f"{place[0]} {place[1]}")
while not (folder / "go").exists():
    time.sleep(0.01)
ask(*first)
if not once:
    ask(*connect())
pathlib.Path(os.environ["TAAS_OUTPUT_DIR"], f"result-{rank}").write_text(rank)
"""


@pytest.fixture(autouse=True)
def many_descriptors():
    """For the strangers, all of which this process is."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] < 4 * STRANGERS:
        pytest.skip(f"only {before[1]} descriptors for {STRANGERS} strangers")
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def limited(limit: int = LIMIT):
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))


class Crowd(contextlib.ExitStack):
    """Strangers, each of which says `words` and waits."""

    def __init__(self, address, port: int, words: bytes, count: int = STRANGERS):
        super().__init__()
        for _ in range(count):
            stranger = self.enter_context(socket.create_connection((address, port)))
            with contextlib.suppress(ConnectionError):  # it was turned away already
                stranger.sendall(words)


def began(folder, count: int) -> bool:
    return len(list(folder.glob("began-*"))) == count


def assert_sound(launcher, ranks: int, said: list):
    assert not any("Too many open files" in text for text in said), said
    results = sorted(path.name for path in (launcher.run_folder() / "output").iterdir())
    assert results == [f"result-{rank}" for rank in range(ranks)]


WORDS = {
    "silent": b"",
    "one byte": b"\0",
    "half a query": QUERY[:3],
    "a greeting": QUERY,
    "half a handshake": b"\x16\x03\x01",
}
WITH_AN_ANSWER = QUERY + b"\7" + bytes(4)


def two_nodes_beside_a_crowd(launcher, touched, words: bytes, *arguments):
    port = free_port()
    common = [
        "--nnodes=2",
        "--nproc-per-node=1",
        "--preload=none",
        "--master-addr=localhost",
        f"--master-port={port}",
        launcher.python(RANK),
        touched,
        *arguments,
    ]
    agents = [launcher.start(f"--node-rank={rank}", *common, env=SECRET, preexec_fn=limited()) for rank in range(2)]
    wait_until(lambda: began(touched, 2), "both ranks are up")
    with Crowd("localhost", port, words):
        (touched / "go").touch()
        said = [agent.communicate(timeout=DEADLINE_SECONDS)[1] for agent in agents]
    assert [agent.returncode for agent in agents] == [0, 0], said
    assert_sound(launcher, 2, said)


@pytest.mark.parametrize(
    "words",
    [pytest.param(words, marks=pytest.mark.gate) if words == QUERY else words for words in WORDS.values()],
    ids=WORDS,
)
def test_ranks_get_through_a_crowd_of_strangers_at_the_meeting_port(launcher, touched, words):
    """900 took all descriptors of the coordinator, which had no deadline and no limit for the store's clients."""
    two_nodes_beside_a_crowd(launcher, touched, words)


def test_strangers_whom_the_store_has_answered_take_no_connection_away(launcher, touched):
    """They cannot be told from ranks: further clients are turned away, and those that are there stay."""
    two_nodes_beside_a_crowd(launcher, touched, WITH_AN_ANSWER, "once")


@pytest.mark.parametrize("words", [b"", QUERY], ids=["silent", "a greeting"])
@pytest.mark.parametrize("limit", [pytest.param(LEAST_FOR_8_RANKS, marks=pytest.mark.gate), LIMIT])
def test_ranks_get_through_a_crowd_of_strangers_at_the_open_store(launcher, touched, words, limit):
    """They had three quarters of any limit, and made room for each other before they were listened to."""
    process = launcher.start(
        "--nproc-per-node=8",
        "--store=agent",
        "--preload=none",
        launcher.python(RANK),
        touched,
        preexec_fn=limited(limit),
    )
    wait_until(lambda: began(touched, 8), "all ranks are up")
    address, port = (touched / "began-0").read_text().split()
    with Crowd(address, int(port), words):
        (touched / "go").touch()
        _, said = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 0, said
    assert_sound(launcher, 8, [said])
