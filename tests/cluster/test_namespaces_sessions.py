"""taas-run up --hosts: runs over ssh whose ranks come out of a Python that is there on each machine."""

import json

from conftest import TAAS_RUN
from namespaces import give_own_runtime_folders
from processes import wait_until
from runs import assert_nothing_left

def run(cluster, *words):
    return cluster.login.run(TAAS_RUN, *words)


def preloaded(cluster) -> list:
    lines = (cluster.home / "taas-runs/latest/journal.jsonl").read_text().splitlines()
    return [event["preloaded"] for event in map(json.loads, lines) if event.get("event") == "rank_spawned"]


def test_two_machines(cluster, records):
    give_own_runtime_folders([cluster["n0"], cluster["n1"]])
    up = run(cluster, "up", "--hosts", "n0,n1", "--nproc-per-node", 2, "--preload", "json", "--name", "pair")
    assert up.returncode == 0, up.stdout + up.stderr
    for name in "n0", "n1":
        assert f"{name}: taas-run: session pair is ready: json in " in up.stdout
    program = records.command("report_rank.py")
    words = ("--in", "pair", "--hosts", "n0,n1", "--nproc-per-node", 2, "--preload", "json")
    first = run(cluster, *words, *program)  # may make them anew: over ssh there were other variables
    assert first.returncode == 0, first.stderr
    wait_until(lambda: "does not fit" not in (last := run(cluster, *words, *program)).stderr and last.returncode == 0, "the sessions fit")
    told = records.environments()
    assert [t["hostname"] for t in told] == ["n0"] * 2 + ["n1"] * 2 and {t["cwd"] for t in told} == {str(cluster.home)}
    assert preloaded(cluster) == [True] * 4
    down = run(cluster, "down", "pair", "--hosts", "n0,n1")
    assert down.returncode == 0 and down.stdout == "".join(f"{name}: taas-run: session pair has been ended\n" for name in ("n0", "n1"))
    assert_nothing_left(cluster)


def test_runs_share_the_connection_of_their_session(cluster, records):
    """Without a server no other one can be made."""
    give_own_runtime_folders([cluster["n0"], cluster["n1"]])
    assert run(cluster, "up", "--hosts", "n0,n1", "--nproc-per-node", 1, "--preload", "json", "--name", "pair").returncode == 0
    for name in "n0", "n1":
        cluster.ssh.stop_server(cluster[name])
    words = ("--hosts", "n0,n1", "--nproc-per-node", 1, "--preload", "json", *records.command("report_rank.py"))
    done = run(cluster, "--in", "pair", *words)
    assert done.returncode == 0 and [t["hostname"] for t in records.environments()] == ["n0", "n1"], done.stderr
    assert run(cluster, *words).returncode == 2, "one of no session makes its own"
    assert run(cluster, "down", "pair", "--hosts", "n0,n1").returncode == 0
    assert_nothing_left(cluster)


def test_a_machine_without_one_starts_as_ever(cluster, records):
    give_own_runtime_folders([cluster["n0"], cluster["n1"]])
    done = run(cluster, "--in", "nobodys", "--hosts", "n0,n1", "--nproc-per-node", 1, *records.command("report_rank.py"))
    assert done.returncode == 0 and [t["hostname"] for t in records.environments()] == ["n0", "n1"], done.stderr
    assert_nothing_left(cluster)


def test_a_lost_session_takes_its_agent_along(cluster, records):
    """The run goes on as after any lost agent: all ranks start again, on the machine that has no session by then too."""
    give_own_runtime_folders([cluster["n0"]])
    assert run(cluster, "up", "--hosts", "n0", "--gpus", 2, "--preload", "json", "--name", "one").returncode == 0
    process = cluster.login.start(TAAS_RUN, "--in", "one", "--hosts", "n0", "--gpus", 2, "--max-restarts", 1, "--preload", "json",
                                  *records.command("living_rank.py"))
    records.wait_for_generation(0, 2)
    cluster["n0"].check("pkill", "-KILL", "-f", f"{TAAS_RUN} up")
    records.wait_for_generation(1, 2)
    records.finish()
    assert process.wait(120) == 0
    run(cluster, "down", "one", "--hosts", "n0")  # the connection is left
    assert_nothing_left(cluster)
