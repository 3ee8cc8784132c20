"""What ranks write to TAAS_OUTPUT_DIR, on machines that do not see the launcher's folder."""

import json
import os
import signal

import pytest

from conftest import NODE_TIMEOUT, TAAS_RUN
from processes import wait_until
from programs.writing_rank import content
from runs import assert_nothing_left

BIG = 40_000_003


@pytest.fixture
def apart(cluster):
    """apart(NAME…): these machines get an empty disk of their own where runs are kept."""
    folder = cluster.home / "taas-runs"
    folder.mkdir()

    def hide(*names):
        for name in names:
            cluster[name].hide(folder)

    return hide


class Runs:
    def __init__(self, cluster, records):
        self.cluster, self.records = cluster, records
        self.folder = cluster.home / "taas-runs" / "run"

    def command(self, files: dict, *words) -> list:
        files = {str(rank): named for rank, named in files.items()}
        return self.records.command("writing_rank.py", json.dumps(files), *words)

    def start(self, files: dict, *words, hosts="n0,n1", options=()):
        return self.cluster.login.start(
            TAAS_RUN,
            "--rdzv-id",
            "run",
            "--hosts",
            hosts,
            "--nproc-per-node",
            1,
            *options,
            *self.command(files, *words),
        )

    def run(self, *arguments, **options):
        return self.start(*arguments, **options).end()

    def output(self) -> dict:
        found = {}
        for path in sorted((self.folder / "output").rglob("*")):
            if path.is_symlink():
                found[str(path.relative_to(self.folder / "output"))] = {"to": os.readlink(path)}
            elif path.is_file():
                found[str(path.relative_to(self.folder / "output"))] = path.read_bytes()
        return found

    def leftovers(self) -> list:
        """What is neither output nor a log, in the launcher's folder."""
        names = {path.name for path in self.folder.iterdir()}
        return sorted(names - {"output", "generation-0", "generation-1", "journal.jsonl", ".mark", ".staging"})


@pytest.fixture
def runs(cluster, records):
    return Runs(cluster, records)


def test_a_shared_folder_is_published_once(cluster, runs):
    result = runs.run({0: {"a": "of rank 0"}, 1: {"b/c": "of rank 1"}})
    assert result.returncode == 0, result.stderr
    assert "2 files" in result.stderr, result.stderr
    assert runs.output() == {"a": b"of rank 0", "b/c": b"of rank 1"}
    assert runs.leftovers() == []
    assert_nothing_left(cluster)


@pytest.mark.parametrize("hidden", [["n1"], ["n0"], pytest.param(["n0", "n1"], marks=pytest.mark.gate)])
def test_output_of_machines_with_disks_of_their_own_arrives(cluster, runs, apart, hidden):
    apart(*hidden)
    files = {0: {"a": "of rank 0", "shards/0": BIG, "empty": 0}, 1: {"shards/1": BIG, "last": {"to": "shards/1"}}}
    result = runs.run(files)
    assert result.returncode == 0, result.stderr
    assert "5 files" in result.stderr, result.stderr
    assert runs.output() == {
        "a": b"of rank 0",
        "empty": b"",
        "last": {"to": "shards/1"},
        "shards/0": content(BIG),
        "shards/1": content(BIG),
    }
    assert runs.leftovers() == []


def test_machines_that_share_a_disk_the_launcher_does_not_see(cluster, runs, apart, tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    apart()
    for name in ("n0", "n1"):
        cluster[name].mount(shared, cluster.home / "taas-runs")
    result = runs.run({0: {"a": "of rank 0"}, 1: {"b": "of rank 1"}})
    assert result.returncode == 0, result.stderr
    assert "2 files" in result.stderr, result.stderr
    assert runs.output() == {"a": b"of rank 0", "b": b"of rank 1"}


def test_the_same_name_on_two_disks(cluster, runs, apart):
    apart("n0", "n1", "n2")
    files = {0: {"same": "x", "model": "of rank 0"}, 1: {"same": "x", "model": "of rank 1"}, 2: {"model": "of rank 2"}}
    result = runs.run(files, hosts="n0,n1,n2")
    assert result.returncode == 0, result.stderr
    assert runs.output() == {
        "same": b"x",
        "model": b"of rank 0",
        "node_1/model": b"of rank 1",
        "node_2/model": b"of rank 2",
    }
    assert "model of n1 differs" in result.stderr and "model of n2 differs" in result.stderr, result.stderr
    assert "same of" not in result.stderr, result.stderr


@pytest.mark.parametrize("first", ["n0", "n1"])
def test_rank_0_keeps_its_names_whoever_shares_the_disk(cluster, runs, apart, first):
    """One machine sees the launcher's disk, and the other one is that of rank 0, or not."""
    apart("n0")
    other = {"n0": "n1", "n1": "n0"}[first]
    result = runs.run({0: {"model": "of rank 0"}, 1: {"model": "of rank 1"}}, hosts=f"{first},{other}")
    assert result.returncode == 0, result.stderr
    assert runs.output() == {"model": b"of rank 0", "node_1/model": b"of rank 1"}


def test_files_of_rank_0_appear_while_the_run_goes_on(cluster, runs, apart, records):
    apart("n0", "n1")
    run = runs.start({0: {"checkpoint": BIG}, 1: {"shard": "of rank 1"}}, "wait")
    wait_until(lambda: runs.folder.exists() and "checkpoint" in runs.output(), "the checkpoint has arrived")
    assert runs.output() == {"checkpoint": content(BIG)}
    records.finish()
    result = run.end()
    assert result.returncode == 0, result.stderr
    assert runs.output() == {"checkpoint": content(BIG), "shard": b"of rank 1"}


def test_a_run_that_fails_brings_what_was_published(cluster, runs, apart, records):
    apart("n0", "n1")
    run = runs.start({0: {"checkpoint": "whole"}, 1: {"shard": "whole"}}, "wait", "fail")
    wait_until(lambda: runs.folder.exists() and "checkpoint" in runs.output(), "the checkpoint has arrived")
    wait_until(lambda: list(runs.folder.glob(".delivered/*/shard")), "the shard has arrived")
    records.finish()
    result = run.end()
    assert result.returncode == 3, result.stderr
    assert runs.output() == {"checkpoint": b"whole", "shard": b"whole"}


def test_a_full_disk_of_the_launcher_fails_the_run_and_names_the_file(cluster, runs, apart):
    apart("n0", "n1")
    folder = cluster.home / "taas-runs"
    cluster.login.check("mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder)
    result = runs.run({0: {"small": "fits"}, 1: {"big": BIG}})
    assert result.returncode == 1, result.stderr
    last = [line for line in result.stderr.splitlines() if "No space left" in line][-1]
    assert "n1" in last and "big" in last and f"it stays in {runs.folder}/output" in last, result.stderr
    assert cluster.login.check("cat", runs.folder / "output/small") == "fits"
    assert cluster.login.check("find", runs.folder, "-name", ".part*") == ""
    assert cluster["n1"].check("stat", "-c", "%s", runs.folder / "output/big").strip() == str(BIG)


def test_a_link_that_leads_out_of_the_output_is_refused(cluster, runs, apart):
    apart("n0", "n1")
    result = runs.run({1: {"link": {"to": "/etc/passwd"}, "model": "m"}})
    assert result.returncode == 1, result.stderr
    assert "link is a link to /etc/passwd" in result.stderr and "n1" in result.stderr, result.stderr
    assert runs.output() == {"model": b"m"}


def test_a_machine_that_is_lost_while_it_sends(cluster, runs, apart, records):
    """Its file has not come, which the run says; what came of it is gone."""
    apart("n0", "n1")
    cluster.network.slow_down("40mbit", "n1")
    run = runs.start({0: {"model": "m"}, 1: {"big": BIG}}, "wait", options=("--node-timeout", NODE_TIMEOUT))
    wait_until(lambda: len(records.names("wrote-*")) == 2, "both ranks have written")
    wait_until(lambda: list(runs.folder.glob(".delivered/*")), "the big file has begun to come")
    cluster["n1"].crash()
    result = run.end()
    assert result.returncode == 1, result.stderr
    assert "n1 was lost while big was on its way" in result.stderr, result.stderr
    assert runs.output() == {"model": b"m"}
    assert runs.leftovers() == []


def test_a_link_that_is_cut_while_a_file_comes(cluster, runs, apart, records):
    """The file comes again over the next link, whole."""
    apart("n0", "n1")
    cluster.network.slow_down("40mbit", "n1")
    options = ("--max-restarts", 1, "--node-timeout", NODE_TIMEOUT)
    run = runs.start({0: {"model": "m"}, 1: {"big": BIG}}, "wait", options=options)
    wait_until(lambda: list(runs.folder.glob(".delivered/*")), "the big file has begun to come")
    (records.folder / "wrote-1").unlink()
    cluster.network.cut("n1")
    wait_until(lambda: not cluster["n1"].processes("writing_rank.py"), "the ranks of the lost machine are dead")
    cluster.network.heal()
    wait_until(lambda: records.names("wrote-1"), "rank 1 has written again")
    records.finish()
    result = run.end()
    assert result.returncode == 0, result.stderr
    assert "n1 was lost while big was on its way" in result.stderr, result.stderr
    assert runs.output() == {"model": b"m", "big": content(BIG)}
    assert runs.leftovers() == []


def test_heartbeats_pass_a_large_file_on_a_slow_network(cluster, runs, apart):
    """The file needs twice the patience with a silent node."""
    apart("n0", "n1")
    cluster.network.slow_down("8mbit", "n0", "n1")
    size = 2 * NODE_TIMEOUT * 1_000_000
    result = runs.run({1: {"big": size}}, options=("--node-timeout", NODE_TIMEOUT))
    assert result.returncode == 0, result.stderr
    assert runs.output() == {"big": content(size)}
    assert "lost" not in result.stderr, result.stderr


def test_a_signal_while_output_is_on_its_way(cluster, runs, apart, records):
    """The first one waits for the output, the second one gives it up."""
    apart("n0", "n1")
    cluster.network.slow_down("16mbit", "n1")
    run = runs.start({1: {"big": BIG}})
    wait_until(lambda: list(runs.folder.glob(".delivered/*")), "the big file has begun to come")
    run.send_signal(signal.SIGTERM)
    run.send_signal(signal.SIGINT)
    result = run.end()
    assert result.returncode != 0, result.stderr
    assert "big" not in runs.output()
    assert_nothing_left(cluster)


def test_a_folder_of_another_run_is_refused(cluster, runs, apart):
    """On the launcher's side it was removed, on the node it was not."""
    apart("n0", "n1")
    assert runs.run({0: {"a": "1"}}).returncode == 0
    cluster.login.check("rm", "-r", runs.folder)
    result = runs.run({0: {"a": "2"}})
    assert result.returncode != 0
    assert f"{runs.folder} is left over from another run" in result.stderr, result.stderr


def test_each_process_of_the_launcher_has_a_log_of_its_own(cluster, runs):
    result = runs.run({}, options=["--log-level", "debug"])
    assert result.returncode == 0, result.stderr
    logs = {file.name.rpartition("-")[0]: file.read_text() for file in (runs.folder / "log").glob("*.log")}
    assert sorted(logs) == ["agent-n0", "agent-n1", "coordinator"]
    assert "info agent: linked with the coordinator at" in logs["agent-n1"]  # from before it knew the folder
    assert "debug net: handshake of" in logs["agent-n0"]
    assert "says hello" in logs["coordinator"]
