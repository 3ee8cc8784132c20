"""Nodes that meet as torchrun's do: who waits for whom, where the store is served, and who joins or leaves later."""

import json
import pathlib

import pytest
from conftest import UNKNOWN_NAME, assert_ranks, free_port, own_mounts, succeeds
from waiting import DEADLINE_SECONDS, wait_until


@pytest.mark.gate
def test_script_with_a_static_rendezvous(launcher, script, touched):
    port = free_port()
    succeeds(
        launcher,
        "--nnodes=1",
        "--nproc-per-node=4",
        "--master-addr=localhost",
        f"--master-port={port}",
        "--node-rank=0",
        script,
        touched,
    )
    assert_ranks(touched, 4)


@pytest.mark.gate
def test_elastic_range_starts_with_the_nodes_that_are_there(launcher, script, touched):
    """The last call of one second is over, and nobody else has come."""
    place = [
        "--rdzv-backend=c10d",
        f"--rdzv-endpoint=localhost:{free_port()}",
        "--rdzv-id=job8",
        "--rdzv-conf=join_timeout=60,last_call_timeout=1",
    ]
    succeeds(
        launcher, "--nnodes=1:2", "--nproc-per-node=4", *place, script, touched, env={"TAAS_TOKEN": "a secret of ours"}
    )
    assert_ranks(touched, 4)


@pytest.mark.gate
def test_two_agents_on_one_machine(launcher, script, touched):
    common = [
        "--nnodes=2",
        "--nproc-per-node=2",
        "--rdzv-backend=c10d",
        f"--rdzv-endpoint=localhost:{free_port()}",
        "--rdzv-id=job8",
    ]
    agents = [launcher.start(*common, script, touched, env={"TAAS_TOKEN": "a secret of ours"}) for _ in range(2)]
    for agent in agents:
        out, err = agent.communicate(timeout=DEADLINE_SECONDS)
        assert agent.returncode == 0, err
    assert_ranks(touched, 4)


def listens(port: int) -> bool:
    needle = f":{port:04X}"
    return any(
        line.split()[1].endswith(needle) and line.split()[3] == "0A"
        for table in ("tcp", "tcp6")
        for line in pathlib.Path(f"/proc/net/{table}").read_text().splitlines()[1:]
    )


def test_who_cannot_join_is_told_why_while_it_waits_and_at_the_end(launcher):
    """Wherever it failed, all that was said was "the coordinator could not be reached", after minutes of silence."""
    port, secret = free_port(), "a secret of ours"
    rest = ["--nnodes=2", "--nproc-per-node=1", "--no-python", "/bin/true"]
    first = launcher.start(
        "--rdzv-conf=is_host=1",
        f"--rdzv-endpoint=localhost:{port}",
        "--rdzv-id=job8",
        *rest,
        env={"TAAS_TOKEN": secret},
    )
    wait_until(lambda: listens(port), "the first node listens")
    still = "still looking for the coordinator"
    attempts = [
        ("localhost", "job8", "another secret of ours", still, "wrong secret (TAAS_TOKEN"),
        ("localhost", "job9", secret, still, "another run listens there (--rdzv-id"),
        (UNKNOWN_NAME, "job8", secret, f"waiting for the name {UNKNOWN_NAME}", "no address is known for"),
        ("127.0.0.7", "job8", secret, still, "connection refused"),
    ]
    joining = [
        launcher.start(
            "--rdzv-conf=is_host=0,join_timeout=8",
            f"--rdzv-endpoint={host}:{port}",
            f"--rdzv-id={name}",
            *rest,
            env={"TAAS_TOKEN": token},
        )
        for host, name, token, *_ in attempts
    ]
    for process, (*_, line, reason) in zip(joining, attempts):
        waiting, end = process.communicate(timeout=DEADLINE_SECONDS)[1].strip().splitlines()
        assert line in waiting and reason in waiting
        assert "the coordinator could not be reached for 8 s" in end and reason in end
        assert process.returncode == 1
    first.terminate()
    first.communicate(timeout=DEADLINE_SECONDS)


NAMED_STORE = """
import os, socket, struct, sys
place = (os.environ["GIVEN_ADDRESS"], int(os.environ["GIVEN_PORT"]))
with socket.create_connection(place) as client:
    client.sendall(b"\\0" + struct.pack("<I", 0x3C85F7CE) + b"\\7")
    answer = client.makefile("rb").read(8)
assert len(answer) == 8, answer
assert struct.unpack("<q", answer)[0] >= 0
assert os.environ["MASTER_PORT"] == os.environ["GIVEN_PORT"], "torch takes no other port for the launcher's"
"""


@pytest.mark.gate
def test_the_store_is_at_the_address_and_port_that_were_given(launcher):
    """init_method="tcp://localhost:29500" beside --master-addr localhost --master-port 29500.

    The first node itself was there.
    """
    port = free_port()
    common = [
        "--nnodes=2",
        "--nproc-per-node=1",
        "--master-addr=localhost",
        f"--master-port={port}",
        launcher.python(NAMED_STORE),
    ]
    told = {"TAAS_TOKEN": "a secret of ours", "GIVEN_ADDRESS": "localhost", "GIVEN_PORT": str(port)}
    agents = [launcher.start(f"--node-rank={rank}", *common, env=told) for rank in range(2)]
    for agent in agents:
        _, said = agent.communicate(timeout=DEADLINE_SECONDS)
        assert agent.returncode == 0, said


ELASTIC = """
import os, pathlib, signal, sys, time
touched, rank = pathlib.Path(sys.argv[1]), os.environ["RANK"]
generation, world = int(os.environ["TORCHELASTIC_RESTART_COUNT"]), int(os.environ["WORLD_SIZE"])
wish = pathlib.Path(os.environ["TAAS_STOP_REQUESTED"])
assert not wish.exists(), "the wish was one of an earlier generation"

def save(*_):
    assert generation > 0 or wish.exists()
    (touched / f"saved-{generation}-{rank}").touch()
    sys.exit(143)

signal.signal(signal.SIGTERM, save)
(touched / f"began-{generation}-{rank}-of-{world}").touch()
while generation == 0:
    time.sleep(0.01)
while not (touched / "newcomer").exists():
    time.sleep(0.01)
sys.exit(3 if world == 1 else 0)
"""


def connections(port: int) -> int:
    """How many have come to this port of this machine, and are still there."""
    needle = f":{port:04X}"
    return sum(
        line.split()[1].endswith(needle) and line.split()[3] == "01"
        for table in ("tcp", "tcp6")
        for line in pathlib.Path(f"/proc/net/{table}").read_text().splitlines()[1:]
    )


@pytest.mark.gate
def test_a_node_that_is_told_to_stop_leaves_and_a_late_one_joins_with_the_next_generation(launcher, touched):
    """An evicted pod ended the training of all others with 143."""
    port = free_port()
    script, token = launcher.python(ELASTIC), {"TAAS_TOKEN": "a secret of ours"}
    common = [
        "--nnodes=1:2",
        "--nproc-per-node=1",
        "--max-restarts=50",
        "--monitor-interval=0",
        "--rdzv-backend=c10d",
        f"--rdzv-endpoint=localhost:{port}",
        "--rdzv-id=job8",
        "--rdzv-conf=join_timeout=60,last_call_timeout=30",
    ]
    first = launcher.start("--rdzv-conf=is_host=1", *common, script, touched, env=token)
    wait_until(lambda: listens(port), "the first node listens")
    evicted = launcher.start("--rdzv-conf=is_host=0", *common, script, touched, env=token)
    wait_until(lambda: len(list(touched.glob("began-0-?-of-2"))) == 2, "two nodes train")
    evicted.terminate()
    _, said = evicted.communicate(timeout=DEADLINE_SECONDS)
    assert evicted.returncode == 143, said
    assert "SIGTERM" in said
    assert {path.name for path in touched.glob("saved-*")} == {"saved-0-0", "saved-0-1"}
    wait_until(lambda: (touched / "began-1-0-of-1").exists(), "the other node trains alone")
    wait_until(
        lambda: connections(port) == 1, "the evicted node's connection is gone, and the first node's own is left"
    )
    late = launcher.start("--rdzv-conf=is_host=0", *common, script, touched, env=token)
    wait_until(lambda: connections(port) == 2, "a late node has come")
    (touched / "newcomer").touch()
    for agent in (first, late):
        _, said = agent.communicate(timeout=DEADLINE_SECONDS)
        assert agent.returncode == 0, said
    told = (launcher.run_folder() / "journal.jsonl").read_text()
    assert '"node_leaves"' in told and not list(touched.glob("began-1-?-of-2"))
    assert len([path for path in touched.glob("began-*-of-2") if path.name[6] != "0"]) == 2


@pytest.mark.gate
def test_without_enough_others_a_node_that_is_told_to_stop_ends_the_run(launcher, touched):
    port = free_port()
    script, token = launcher.python(ELASTIC), {"TAAS_TOKEN": "a secret of ours"}
    common = [
        "--nnodes=2",
        "--nproc-per-node=1",
        "--rdzv-backend=c10d",
        f"--rdzv-endpoint=localhost:{port}",
        "--rdzv-id=job8",
    ]
    agents = [launcher.start(*common, script, touched, env=token) for _ in range(2)]
    wait_until(lambda: len(list(touched.glob("began-0-?-of-2"))) == 2, "two nodes train")
    agents[1].terminate()
    assert [agent.wait(DEADLINE_SECONDS) for agent in agents] == [143, 143]


def test_two_agents_on_a_machine_whose_own_name_is_loopback(launcher, script, touched):
    """As /etc/hosts of Debian: the first listened on the machine's interfaces alone, and the other never found it."""
    hosts = launcher.folder / "hosts"
    hosts.write_text("127.0.0.1 localhost\n127.0.0.1 this-machine\n")
    before = own_mounts('mount --bind "$1" /etc/hosts', hosts)
    common = [
        "--nnodes=2",
        "--nproc-per-node=2",
        "--rdzv-backend=c10d",
        f"--rdzv-endpoint=this-machine:{free_port()}",
        "--rdzv-id=job8",
        "--rdzv-conf=join_timeout=20",
        script,
        touched,
    ]
    agents = [launcher.start(*common, before=before, env={"TAAS_TOKEN": "a secret of ours"}) for _ in range(2)]
    for agent in agents:
        out, err = agent.communicate(timeout=DEADLINE_SECONDS)
        assert agent.returncode == 0, err
    assert_ranks(touched, 4)


LISTENERS = """
import json, os, pathlib, socket, struct, sys

def sockets_of(process):
    for entry in pathlib.Path(f"/proc/{process}/fd").iterdir():
        try:
            target = os.readlink(entry)
        except FileNotFoundError:
            continue
        if target.startswith("socket:["):
            yield target[8:-1]

def listening(process):
    mine = set(sockets_of(process))
    for table in ("tcp", "tcp6"):
        for line in pathlib.Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and words[9] in mine:
                address, port = words[1].split(":")
                yield address, int(port, 16)

def asks_for_keys(port):
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"\\0" + struct.pack("<I", 0x3C85F7CE) + b"\\7")
        try:
            return client.recv(8).hex()
        except ConnectionResetError:
            return ""

found = list(listening(os.getppid()))
answers = [asks_for_keys(port) for address, port in found if len(address) == 8]
master = asks_for_keys(int(os.environ["MASTER_PORT"]))
pathlib.Path(sys.argv[1], os.environ["RANK"]).write_text(json.dumps([found, answers, master]))
"""


@pytest.mark.gate
def test_only_the_first_node_serves_its_store_and_only_where_it_was_told(launcher, touched):
    """Every node served one on all addresses, with --interface lo too."""
    common = [
        "--nnodes=2",
        "--nproc-per-node=1",
        "--rdzv-backend=c10d",
        f"--rdzv-endpoint=localhost:{free_port()}",
        "--rdzv-id=job8",
        "--rdzv-conf=join_timeout=20",
        "--interface=lo",
        launcher.python(LISTENERS),
        touched,
    ]
    agents = [launcher.start(*common, env={"TAAS_TOKEN": "a secret of ours"}) for _ in range(2)]
    for agent in agents:
        out, err = agent.communicate(timeout=DEADLINE_SECONDS)
        assert agent.returncode == 0, err
    seen = [json.loads((touched / str(rank)).read_text()) for rank in range(2)]
    for listeners, _, master in seen:
        assert {address for address, _ in listeners} <= {"0100007F", "00000000000000000000000001000000"}
        assert len(master) == 16, "the store of the first node answers all ranks"
    assert [len(answer) for answer in seen[1][1]] == [0], "that of the other node answers nobody"
