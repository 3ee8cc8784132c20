"""Nodes are lost: how fast that is noticed, what goes on, and that no two generations ever live at once."""

import signal
import time

import pytest

from conftest import NODE_TIMEOUT, TAAS_RUN, some
from network import CUTS
from processes import send, wait_until
from runs import assert_nothing_left

RANKS = 6  # on three nodes; the fourth one stands by


class Run:
    """A run of living_rank.py on three nodes with a spare, started on the login node."""

    def __init__(self, cluster, records, *arguments):
        self.cluster = cluster
        self.records = records
        self.process = cluster.login.start(
            TAAS_RUN,
            "--hosts",
            "n0,n1,n2,n3",
            "--gpus",
            RANKS,
            "--gpus-per-node",
            2,
            *(arguments or ("--spares", 1, "--node-timeout", NODE_TIMEOUT)),
            *records.command("living_rank.py"),
        )
        self.wait_for_generation(0)

    def wait_for_generation(self, number: int, ranks: int = RANKS) -> float:
        try:
            return self.records.wait_for_generation(number, ranks)
        except AssertionError as error:
            self.process.kill()
            out, err = self.process.communicate()
            raise AssertionError(f"{error}\nstderr: {err}") from None

    def hosts(self, generation: int) -> list:
        lives = self.records.lives(generation)
        return [lives[rank][0] for rank in sorted(lives)]

    def finish(self):
        """The run ends well, and never had two generations at once."""
        self.records.finish()
        result = self.process.end()
        assert result.returncode == 0, result.stderr
        self.records.assert_one_generation_at_a_time()
        assert_nothing_left(self.cluster)
        return result


@pytest.fixture
def run(cluster, records):
    run = Run(cluster, records)
    assert run.hosts(0) == ["n0", "n0", "n1", "n1", "n2", "n2"]
    return run


@pytest.mark.parametrize("lost", some(["n0", "n1", "n2"], 2))
def test_kill_9_of_an_agent_and_its_ranks(cluster, run, lost):
    assert len(cluster[lost].kill_all()) >= 3, "the agent and two ranks"
    run.wait_for_generation(1)
    assert run.hosts(1) == [("n3" if host == lost else host) for host in run.hosts(0)], "the others keep their ranks"
    run.finish()


def test_kill_9_of_an_agent_alone(cluster, run):
    """What the agent leaves is killed on its own node, before anything is started elsewhere."""
    cluster["n1"].kill_all("--as-agent")
    run.wait_for_generation(1)
    run.finish()


def test_a_frozen_coordinator_blames_nobody(cluster, run):
    frozen = cluster.login.signal_all(signal.SIGSTOP, "taas-run")
    wait_until(
        lambda: not any(node.processes("living_rank.py") for node in cluster.nodes), "agents have killed their ranks"
    )
    for pid in frozen:
        send(pid, signal.SIGCONT)
    run.wait_for_generation(1)
    result = run.finish()
    assert "the coordinator did not run for" in result.stderr, result.stderr
    assert "no sign of life" not in result.stderr and "lost its connection" not in result.stderr, result.stderr


@pytest.mark.parametrize("how", some([pytest.param("both ways", marks=pytest.mark.gate), "out", "in", "carrier"], 2))
@pytest.mark.parametrize("lost", some(["n1", "n0"]))
def test_a_link_that_is_cut_and_heals(cluster, run, lost, how):
    CUTS[how](cluster.network, lost)
    run.wait_for_generation(1)
    assert not cluster[lost].processes("living_rank"), "the lost node's ranks are dead before others start"
    cluster.network.heal()
    cluster.network.link_up(lost)
    wait_until(lambda: cluster[lost].processes("--as-agent"), "the lost node has an agent again, or still")
    result = run.finish()
    assert lost in result.stderr, "the lost node is named"


@pytest.mark.parametrize("how", some(["both ways", "out", "in", "carrier"]))
def test_a_cut_is_told_and_outlived(cluster, records, how):
    """With the default timeout, the silence is over when it has been told."""
    run = Run(cluster, records, "--max-restarts", 0)
    journal = cluster.home / "taas-runs" / "latest" / "journal.jsonl"
    CUTS[how](cluster.network, "n1")
    wait_until(lambda: '"nodes_silent"' in journal.read_text(), "the silence is told")
    cluster.network.heal()
    cluster.network.link_up("n1")
    wait_until(lambda: '"nodes_answer"' in journal.read_text(), "its end is told")
    result = run.finish()
    assert not records.lives(1), "nobody was started again"
    assert "node 1 (n1) has not answered for 3 s; it counts as lost after 30 s" in result.stderr, result.stderr
    assert "node 1 (n1) answers again" in result.stderr, result.stderr


def test_all_nodes_that_are_stopped_and_continued_together_go_on(cluster, records):
    """Longer than any agent waits for an answer: the clocks that ran on meanwhile are nobody's silence."""
    run = Run(cluster, records, "--max-restarts", 0, "--node-timeout", NODE_TIMEOUT)
    stopped = [pid for node in [cluster.login, *cluster.nodes] for pid in node.signal_all(signal.SIGSTOP)]
    time.sleep(NODE_TIMEOUT + 1)  # the time of the stop is what is tested
    for pid in stopped:
        send(pid, signal.SIGCONT)
    began = time.monotonic()
    wait_until(
        lambda: min(last for _, _, last in records.lives(0).values()) > began + 5, "all ranks live on for a while"
    )
    run.finish()
    assert not records.lives(1), "nobody was started again"


def test_a_partition_into_two_halves(cluster, records):
    """n2 and n3 can talk to each other, but not to the rest: no second run comes up there."""
    run = Run(cluster, records, "--spares", 1, "--max-restarts", 3, "--node-timeout", NODE_TIMEOUT)
    cluster.network.cut_between(["login", "n0", "n1"], ["n2", "n3"])
    wait_until(lambda: not cluster["n2"].processes("living_rank"), "the ranks without a coordinator are killed")
    cluster.network.heal()
    run.wait_for_generation(1)
    run.finish()


def test_a_lost_node_comes_back_and_stands_by(cluster, records):
    run = Run(cluster, records, "--spares", 1, "--max-restarts", 3, "--node-timeout", NODE_TIMEOUT)
    cluster.network.cut("n1")
    run.wait_for_generation(1)
    assert run.hosts(1) == ["n0", "n0", "n3", "n3", "n2", "n2"]
    cluster.network.heal()
    cluster["n2"].kill_all()
    run.wait_for_generation(2)
    assert run.hosts(2)[:4] == ["n0", "n0", "n3", "n3"], "who is there keeps its ranks"
    assert run.hosts(2)[4:] in (["n1", "n1"], ["n2", "n2"]), "whoever is back first"
    run.finish()


def test_a_machine_that_is_frozen_for_a_while(cluster, run):
    """Nobody can tell it from one that is dead; on waking it finds its ranks to be of the past, and kills them."""
    assert cluster["n1"].signal_all(signal.SIGSTOP)
    run.wait_for_generation(1)
    cluster["n1"].signal_all(signal.SIGCONT)
    wait_until(lambda: not cluster["n1"].processes("living_rank"), "the ranks of the past are killed")
    run.records.finish()
    result = run.process.end()
    assert result.returncode == 0, result.stderr
    assert_nothing_left(cluster)


def test_a_disk_that_takes_nothing_for_a_while(cluster, records, frozen_disk):
    """Journal, log files and the console's own file lie there: ranks train on, no node is lost, no line is missing."""
    output = frozen_disk.path / "output"
    with open(frozen_disk.inside("console"), "wb") as console:
        process = cluster.login.start(
            TAAS_RUN,
            "--hosts",
            "n0,n1",
            "--gpus",
            4,
            "--gpus-per-node",
            2,
            "--node-timeout",
            NODE_TIMEOUT,
            "--output",
            output,
            *records.command("living_rank.py", "--print"),
            stdout=console,
            stderr=console,
        )
    records.wait_for_generation(0, 4)
    with frozen_disk.frozen():
        began = time.monotonic()
        wait_until(
            lambda: min(last for _, _, last in records.lives(0).values()) > began + 2 * NODE_TIMEOUT,
            "all ranks live on while the disk takes nothing",
        )
    records.finish()
    process.end()
    told = frozen_disk.inside("console").read_text()
    assert process.returncode == 0, told
    assert records.names("[1-9]*-*") == [], told
    logs = frozen_disk.inside("output/latest/generation-0")
    for rank, host in enumerate(["n0", "n0", "n1", "n1"]):
        signs = (records.folder / f"0-{rank}-{host}").read_text()
        assert (logs / f"rank-{rank:04}.out").read_text() == signs
        assert rank != 0 or signs.splitlines()[-1] in told
    assert_nothing_left(cluster)


def test_two_nodes_at_once_with_restarts_left(cluster, records):
    run = Run(cluster, records, "--spares", 1, "--max-restarts", 3, "--node-timeout", NODE_TIMEOUT)
    frozen = [*cluster["n1"].signal_all(signal.SIGSTOP), *cluster["n2"].signal_all(signal.SIGSTOP)]
    for pid in frozen:  # found already: nothing starts in between with only one of them lost
        send(pid, signal.SIGKILL)
    run.wait_for_generation(1)
    run.finish()


def test_the_last_node_too_many(cluster, records):
    """No spare, no restarts: the run ends, and says which node was lost."""
    run = Run(cluster, records, "--max-restarts", 0, "--node-timeout", NODE_TIMEOUT)
    cluster.network.cut("n1")
    result = run.process.end()
    assert result.returncode != 0
    assert "n1" in result.stderr, result.stderr
    cluster.network.heal()
    assert_nothing_left(cluster)
