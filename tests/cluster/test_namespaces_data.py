"""CPU machines over ssh: what makes batches is elsewhere, and its loss changes nothing but the list of workers."""

import pytest

from conftest import TAAS_RUN
from data_records import Seen
from runs import assert_nothing_left


@pytest.fixture
def seen(records):
    return Seen(records)


@pytest.mark.parametrize("where", ["ranks on this machine", "ranks over ssh"])
def test_a_lost_cpu_machine_leaves_and_comes_back(cluster, seen, records, where):
    ranks = (
        ["--gpus", 2] if where == "ranks on this machine" else ["--hosts", "n2,n3", "--gpus", 2, "--gpus-per-node", 1]
    )
    run = cluster["n0"].start(*seen.environment, TAAS_RUN, *ranks, "--data-hosts", "n1:2", *seen.command)
    seen.wait_for([["n1", 0], ["n1", 1]])
    cluster["n1"].kill_all("--as-agent", "taas.worker")
    seen.wait_for([None, None])
    seen.wait_for([["n1", 0], ["n1", 1]])
    records.finish()
    result = run.end()
    assert result.returncode == 0, result.stderr
    assert "CPU machine n1 was lost" in result.stderr
    assert not [line for line in result.stderr.splitlines() if "rank" in line and "failed" in line]
    assert_nothing_left(cluster)


@pytest.mark.gate
def test_workers_of_several_machines(cluster, seen, records):
    run = cluster["n0"].start(
        *seen.environment, TAAS_RUN, "--gpus", 2, "--cpus", 2, "--data-hosts", "n1:2,n2:1,n3", *seen.command
    )
    seen.wait_for_hosts(["n1", "n1", "n2"])
    records.finish()
    assert run.end().returncode == 0
    assert_nothing_left(cluster)


def test_a_host_that_cannot_be_reached_is_told_and_done_without(cluster, seen, records):
    cluster.ssh.stop_server(cluster["n2"])
    run = cluster["n0"].start(*seen.environment, TAAS_RUN, "--gpus", 1, "--data-hosts", "n1:1,n2:1", *seen.command)
    seen.wait_for_hosts(["n1"], ranks=1)
    records.finish()
    result = run.end()
    assert result.returncode == 0, result.stderr
    assert "n2: ssh: connect to host" in result.stderr


def test_ranks_wait_for_all_machines_with_a_loader(cluster, seen, records):
    run = cluster["n0"].start(
        *seen.environment,
        TAAS_RUN,
        "--gpus",
        1,
        "--data-hosts",
        "n1:1,n2:1",
        "--loader",
        "data:train",
        *seen.command,
        env={"PREPARE": "1"},
    )
    seen.wait_for_hosts(["n1", "n2"], ranks=1)
    records.finish()
    result = run.end()
    assert result.returncode == 0, result.stderr
    assert "prepared data:train: 6 batches" in result.stderr


def test_a_killed_launcher_leaves_no_worker_anywhere(cluster, seen):
    run = cluster["n0"].start(*seen.environment, TAAS_RUN, "--gpus", 1, "--data-hosts", "n1:1,n2:1", *seen.command)
    seen.wait_for_hosts(["n1", "n2"], ranks=1)
    run.kill()
    run.end()
    assert_nothing_left(cluster)
