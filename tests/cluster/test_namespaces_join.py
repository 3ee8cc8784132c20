"""torchrun's way: the same command on every node, in any order."""

import os
import pathlib
import time

import pytest

from conftest import TAAS_RUN, some
from processes import wait_until
from runs import assert_nothing_left

NODES = ("n0", "n1", "n2", "n3")
# More than two heartbeats of n1: the kernel of a machine where nobody listens any more refuses them.
GLITCH_SECONDS = 2.5


@pytest.fixture
def token(cluster) -> pathlib.Path:
    path = cluster.home / "token"
    path.write_text("a secret that only these nodes know, and nobody guesses\n")
    path.chmod(0o600)
    return path


class Joining:
    """Starts the same command on nodes, one after the other."""

    def __init__(self, cluster, *arguments):
        self.cluster = cluster
        self.arguments = arguments
        self.runs = {}

    def start(self, name: str, *more, env=None, before=()):
        run = self.runs[name] = self.cluster[name].start(*before, TAAS_RUN, *more, *self.arguments, env=env)
        wait_until(
            lambda: self.cluster[name].processes("taas-run") or run.poll() is not None,
            f"taas-run runs on {name}, or has done so",
        )

    def start_by_rank(self, *places: int):
        for place in places:
            self.start(f"n{place}", "--node-rank", place)

    def end(self) -> dict:
        return {name: run.end() for name, run in self.runs.items()}


def static(cluster, token, nodes: int, processes, *more) -> Joining:
    sizes = ("--nnodes", nodes, "--nproc-per-node", processes)
    return Joining(cluster, *sizes, "--master-addr", "n0", "--master-port", 29500, "--token-file", token, *more)


def assert_all_ended_well(results: dict):
    assert {name: r.returncode for name, r in results.items()} == dict.fromkeys(results, 0), "\n".join(
        f"{name}: {r.stderr}" for name, r in results.items()
    )


def test_four_nodes_in_any_order(cluster, records, token):
    joining = static(cluster, token, 4, 2, *records.command("report_rank.py"))
    joining.start_by_rank(2, 0, 3, 1)
    assert_all_ended_well(joining.end())
    told = records.environments()
    assert [t["hostname"] for t in told] == ["n0", "n0", "n1", "n1", "n2", "n2", "n3", "n3"]
    assert [int(t["GROUP_RANK"]) for t in told] == [0, 0, 1, 1, 2, 2, 3, 3], "GROUP_RANK is --node-rank"


def test_each_node_has_the_environment_that_it_was_called_in(cluster, records, token):
    joining = static(cluster, token, 2, 2, *records.command("report_rank.py"))
    for place in (0, 1):
        joining.start(
            f"n{place}",
            "--node-rank",
            place,
            env={
                "NCCL_SOCKET_IFNAME": f"ib{place}",
                "GLOO_SOCKET_IFNAME": f"eth{place}",
                "UCX_NET_DEVICES": f"mlx5_{place}",
                "LD_LIBRARY_PATH": f"/opt/of/n{place}",
                "SEED": str(place),
                f"ONLY_ON_{place}": "1",
            },
        )
    assert_all_ended_well(joining.end())
    for rank, told in enumerate(records.environments()):
        place = rank // 2
        assert (told["NCCL_SOCKET_IFNAME"], told["GLOO_SOCKET_IFNAME"]) == (f"ib{place}", f"eth{place}")
        assert (told["UCX_NET_DEVICES"], told["SEED"]) == (f"mlx5_{place}", str(place))
        assert told["LD_LIBRARY_PATH"] == f"/opt/of/n{place}"
        assert [name for name in told if name.startswith("ONLY_ON_")] == [f"ONLY_ON_{place}"]


def test_c10d_without_node_ranks(cluster, records, token):
    joining = Joining(
        cluster,
        "--nnodes",
        4,
        "--nproc-per-node",
        2,
        "--rdzv-backend",
        "c10d",
        "--rdzv-endpoint",
        "n0:29400",
        "--rdzv-id",
        "job7",
        "--token-file",
        token,
        *records.command("report_rank.py"),
    )
    for name in reversed(NODES):
        joining.start(name)
    assert_all_ended_well(joining.end())
    told = records.environments()
    assert told[0]["hostname"] == "n0", "the node that has the endpoint is the first"
    assert sorted(t["hostname"] for t in told) == [name for name in NODES for _ in range(2)]
    assert {t["TORCHELASTIC_RUN_ID"] for t in told} == {"job7"}


@pytest.mark.gate
def test_the_exit_code_is_the_culprits_on_every_node(cluster, ranks, token):
    joining = static(cluster, token, 4, 2, *ranks("5=exit:42"))
    joining.start_by_rank(0, 1, 2, 3)
    results = joining.end()
    assert {name: r.returncode for name, r in results.items()} == dict.fromkeys(NODES, 42), results
    assert "rank 5" in results["n0"].stderr and "n2" in results["n0"].stderr
    assert_nothing_left(cluster)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core: nodes cannot have different numbers")
def test_each_node_counts_its_own_cores(cluster, records, token):
    """As its own GPUs, of which there are none here."""
    joining = static(cluster, token, 2, "cpu", "-t", 3, *records.command("report_rank.py"))
    joining.start("n0", "--node-rank", 0, before=["taskset", "--cpu-list", min(os.sched_getaffinity(0))])
    joining.start("n1", "--node-rank", 1)
    assert_all_ended_well(joining.end())
    more = len(os.sched_getaffinity(0))
    told = records.environments()
    assert [t["hostname"] for t in told] == ["n0"] + ["n1"] * more
    assert [int(t["LOCAL_WORLD_SIZE"]) for t in told] == [1] + [more] * more
    assert {int(t["WORLD_SIZE"]) for t in told} == {1 + more}


@pytest.mark.parametrize("version", [4, 6])
def test_a_port_that_is_taken_on_one_address_is_taken(cluster, token, version):
    """Else nodes would look for the first one where somebody else listens."""
    listen = (
        f"import socket; s = socket.create_server(('{cluster.address('n0', version)}', 29500), "
        f"family=socket.AF_INET{'6' if version == 6 else ''}); print('there', flush=True); s.accept()"
    )
    other = cluster["n0"].start("python3", "-c", listen)
    assert other.stdout.readline() == "there\n"
    joining = static(cluster, token, 2, 1, "--rdzv-conf", "join_timeout=5", "true")
    joining.start("n0", "--node-rank", 0)
    result = joining.end()["n0"]
    assert result.returncode == 2 and "n0:29500 cannot be used" in result.stderr, result.stderr
    other.kill()
    other.end()


LAST_RANK = """
import os, subprocess, sys, time
if os.environ["RANK"] == "0":  # what it leaves behind ends when it is told to, and no node is dismissed before
    leftover = "trap '' TERM; touch %s/left; while [ ! -e %s/go ]; do sleep 0.01; done" % (sys.argv[1], sys.argv[1])
    subprocess.Popen(["sh", "-c", leftover], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                     stderr=subprocess.DEVNULL)
    while not os.path.exists(f"{sys.argv[1]}/left"):
        time.sleep(0.01)
"""


@pytest.mark.parametrize("cut", some(["in", "both ways", "out"]))
def test_a_glitch_at_the_very_end_changes_no_exit_code(cluster, records, token, cut):
    """n1 is cut off when all of its work is done, and for a moment more once the first node says that the run is done.

    It hears of that later, or comes back for it.
    """
    program = records.folder / "last_rank.py"
    program.write_text(LAST_RANK)
    joining = static(
        cluster,
        token,
        2,
        1,
        "--rdzv-id",
        "run",
        "--log-level",
        "coordinator=debug",
        "--node-timeout",
        20,
        program,
        records.folder,
    )
    joining.start_by_rank(0, 1)
    logs = cluster.home / "taas-runs" / "run"
    said = lambda: "".join(path.read_text() for path in logs.rglob("coordinator-*.log"))
    wait_until(lambda: "says generation_gone" in said(), "n1 has no process of the run any more")
    if cut == "both ways":
        cluster.network.cut("n1")
    else:
        cluster.network.cut_one_way("n1", cut)
    (records.folder / "go").touch()
    first = joining.runs["n0"]
    while "done in" not in (line := first.stderr.readline()):
        assert line, "n0 ends without a last line"
    time.sleep(GLITCH_SECONDS)
    cluster.network.heal()
    assert_all_ended_well(joining.end())
    assert_nothing_left(cluster)
