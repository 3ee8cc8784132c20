"""Data workers of one machine, with a stand-in for what they run (data_worker.py)."""

import ctypes
import json
import os
import pathlib
import signal
import socket
import stat

import pytest

from waiting import DEADLINE_SECONDS, is_gone, wait_until
from data_runs import RANK, STAND_IN, STAY, data, journal  # noqa: F401


def ask(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as to:
        to.settimeout(DEADLINE_SECONDS)
        to.connect(address)
        return json.loads(to.recv(65536))


def end(process):
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=DEADLINE_SECONDS)


@pytest.mark.gate
def test_ranks_and_workers_share_a_plan(data):
    process = data.start(
        "--cpus",
        2,
        "--data-cores",
        2,
        "--units",
        1000,
        "--data-buffer",
        "64M",
        "--data-on-error",
        "skip",
        "--gpus",
        2,
        data.launcher.python(STAY),
        env={"RANK_COUNT": "2"},
    )
    ranks = data.wait_for("rank-0", "rank-1")
    workers = data.wait_for("worker-0", "worker-1", "worker-2", "worker-3")
    plan = data.plan(ranks[0])
    assert [data.plan(one) for one in ranks + workers] == [plan] * 6
    assert plan["cpus"] == 2 and plan["units"] == 1000 and plan["buffer_bytes"] == 64 << 20
    assert (plan["encryption"], plan["compression"], plan["on_error"], plan["loader"]) == ("tls", "none", "skip", "")
    assert plan["world_size"] == 2 and len(plan["key"]) == 64 and plan["run"] == data.launcher.run_folder().name
    for number, worker in enumerate(plan["workers"]):
        about = workers[number]
        assert worker["name"] == f"data worker {number} (CPU machine {number // 2})"
        assert ask(socket.AF_INET, (worker["address"], worker["port"]))["pid"] == about["pid"]
        assert ask(socket.AF_UNIX, worker["unix"])["pid"] == about["pid"]
        assert about["environment"]["TAAS_ROLE"] == "data-worker"
        assert about["environment"]["TAAS_DATA_LISTEN"] == "3,4"
        assert about["group"] == about["pid"] and "RANK" not in about["environment"]
        assert about["open"][:5] == [0, 1, 2, 3, 4] and len(about["open"]) <= 6  # and the folder that it lists
    assert all(rank["environment"]["TAAS_ROLE"] == "rank" for rank in ranks)
    end(process)


def test_more_workers_than_memory_is_there_for_are_said(memory_group, data):
    done = data.run("--cpus", 1, "--data-cores", 3, data.launcher.python(RANK), preexec_fn=memory_group)
    assert done.returncode == 0
    assert "3 data workers take about" in done.stderr and "with a smaller number starts fewer" in done.stderr


@pytest.mark.gate
def test_the_plan_is_private(data):
    process = data.start("--cpus", 1, "--data-cores", 1, data.launcher.python(STAY))
    rank, _ = data.wait_for("rank-0", "worker-0")
    path = pathlib.Path(rank["environment"]["TAAS_DATA_PLAN"])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert pathlib.Path(rank["environment"]["TAAS_EVENTS"]).is_socket()
    end(process)
    assert not path.parent.exists()


@pytest.mark.gate
def test_without_cpus_ranks_hear_nothing_of_it(data):
    assert data.run(data.launcher.python(RANK)).returncode == 0
    assert not {name for name in data.about("rank-0")["environment"] if name.startswith("TAAS_")}


@pytest.mark.gate
def test_cpus_0_starts_nobody(data):
    assert data.run("--cpus", 0, data.launcher.python(RANK)).returncode == 0
    assert data.about("rank-0")["environment"]["TAAS_ROLE"] == "rank"
    assert not (data.launcher.run_folder() / "data").exists()


@pytest.mark.gate
@pytest.mark.parametrize("hosts", [(), ("--nnodes", 2)], ids=["here", "two nodes"])
def test_an_executable_has_no_data_workers(data, hosts):
    program = data.launcher.folder / "program"
    program.write_text("#!/bin/sh\ntouch started\n")
    program.chmod(0o755)
    done = data.run("--cpus", 1, *hosts, program)
    assert done.returncode == 2
    assert f"--cpus 1: data workers make batches for Python programs, and {program} is an executable" in done.stderr
    assert not (data.launcher.folder / "started").exists()


@pytest.mark.gate
def test_a_killed_worker_comes_back_at_its_address(data):
    process = data.start("--cpus", 1, "--data-cores", 2, data.launcher.python(STAY))
    rank, first, other = data.wait_for("rank-0", "worker-0", "worker-1")
    entry = data.plan(rank)["workers"][0]
    os.kill(first["pid"], signal.SIGKILL)
    wait_until(lambda: is_gone(first["pid"]), "it is dead")
    second = ask(socket.AF_INET, (entry["address"], entry["port"]))  # waits in the queue until somebody accepts
    assert second["pid"] != first["pid"]
    assert ask(socket.AF_UNIX, entry["unix"])["pid"] == second["pid"]
    assert data.plan(rank)["workers"][0] == entry
    assert not is_gone(rank["pid"]) and not is_gone(other["pid"])
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=DEADLINE_SECONDS)
    named = [line for line in err.splitlines() if "data worker 0 (CPU machine 0)" in line]
    assert len(named) == 1 and "was killed by SIGKILL" in named[0]
    assert any('"data_worker_ended"' in line for line in journal(data))


def test_the_folder_of_a_worker_that_comes_back_is_not_made_elsewhere(data):
    """A rank has put a link in the place of the folder of its log files."""
    process = data.start("--cpus", 1, "--data-cores", 1, data.launcher.python(STAY))
    rank, first = data.wait_for("rank-0", "worker-0")
    folder, victim = data.launcher.run_folder() / "data/worker-0000", data.launcher.folder / "victim"
    victim.mkdir()
    folder.rename(data.launcher.folder / "moved")
    folder.symlink_to(victim)
    os.kill(first["pid"], signal.SIGKILL)
    wait_until(lambda: is_gone(first["pid"]), "it is dead")
    entry = data.plan(rank)["workers"][0]
    assert ask(socket.AF_INET, (entry["address"], entry["port"]))["pid"] != first["pid"], "it runs without log files"
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=DEADLINE_SECONDS)
    assert list(victim.iterdir()) == []


def has_landlock():
    ask_for_the_version = 1
    return ctypes.CDLL(None).syscall(444, None, 0, ask_for_the_version) > 0  # landlock_create_ruleset, everywhere


@pytest.mark.gate
@pytest.mark.skipif(not has_landlock(), reason="this kernel has no Landlock")
def test_a_protected_folder_is_read_only_for_workers_too(data):
    project = data.launcher.folder / "project"
    project.mkdir()
    process = data.start(
        "--cpus",
        1,
        "--data-cores",
        1,
        "--protect",
        "project",
        data.launcher.python(STAY),
        env={"WORKER": f"write:{project}/from-worker"},
    )
    worker, _ = data.wait_for("worker-0", "rank-0")
    end(process)
    assert "Permission denied" in worker["refused"]
    assert not list(project.iterdir())


@pytest.mark.gate
def test_a_worker_that_dies_again_and_again_is_told_of_once(data):
    script = data.launcher.python(
        RANK + "import pathlib\nlog = pathlib.Path(os.environ['TAAS_OUTPUT_DIR']).parent / "
        "'data' / 'worker-0000' / 'stderr.log'\n"
        "while not log.exists() or log.read_text().count('ModuleNotFound') < 3: time.sleep(0.01)\n"
    )
    done = data.run("--cpus", 1, "--data-cores", 1, script, env={"WORKER": "fail"})
    assert done.returncode == 0
    told = [line for line in done.stderr.splitlines() if "data worker 0" in line]
    assert len(told) == 1 and "exited with code 1" in told[0] and "No module named 'nothing'" in told[0]


@pytest.mark.gate
def test_workers_outlive_a_generation_and_end_with_the_run(data):
    script = data.launcher.python(
        "import os, sys, time, pathlib\nseen = pathlib.Path(os.environ['SEEN'])\n"
        "while not (seen / 'worker-0').exists(): time.sleep(0.01)\n"
        "generation = os.environ['TORCHELASTIC_RESTART_COUNT']\n"
        "(seen / ('was-' + generation)).write_text((seen / 'worker-0').read_text())\n"
        "sys.exit(0 if generation == '1' else 3)\n"
    )
    done = data.run("--cpus", 1, "--data-cores", 1, "--max-restarts", 1, script)
    assert done.returncode == 0, done.stderr
    assert data.about("was-0")["pid"] == data.about("was-1")["pid"]
    assert is_gone(data.about("worker-0")["pid"])


@pytest.mark.parametrize("victim", [pytest.param("keeper", marks=pytest.mark.gate), "agent"])
def test_a_killed_launcher_leaves_no_worker(data, victim):
    process = data.start("--cpus", 2, "--data-cores", 1, data.launcher.python(STAY))
    everybody = data.wait_for("rank-0", "worker-0", "worker-1")
    target = process.pid if victim == "keeper" else parent_of(everybody[1]["pid"])
    os.kill(target, signal.SIGKILL)
    process.wait(timeout=DEADLINE_SECONDS)
    wait_until(lambda: all(is_gone(one["pid"]) for one in everybody), "nobody is left")


def parent_of(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])


@pytest.mark.gate
def test_workers_write_files_of_their_own(data):
    program = data.launcher.python(
        RANK + "while not os.path.exists(os.environ['SEEN'] + '/worker-0'): time.sleep(0.01)\n"
    )
    (data.launcher.folder / "packages" / "taas" / "worker.py").write_text(
        "import sys\nprint('to stdout', flush=True)\nprint('to stderr', file=sys.stderr, flush=True)\n"
        + STAND_IN.read_text()
        + "\nrun()\n"
    )
    done = data.run("--cpus", 1, "--data-cores", 1, program)
    assert done.returncode == 0 and "to stdout" not in done.stdout
    folder = data.launcher.run_folder() / "data" / "worker-0000"
    assert (folder / "stdout.log").read_text() == "to stdout\n"
    assert (folder / "stderr.log").read_text() == "to stderr\n"
