"""What data workers and ranks report to the launcher: loaders prepared first, progress, a judgement at the end."""

import json

import pytest
from data_runs import RANK, data, journal  # noqa: F401
from waiting import DEADLINE_SECONDS, wait_until


@pytest.mark.gate
def test_ranks_wait_for_a_loader(data):
    process = data.start(
        "--cpus", 1, "--data-cores", 2, "--loader", "data:train", data.launcher.python(RANK), env={"WORKER": "prepare"}
    )
    data.wait_for("worker-0", "worker-1")
    wait_until(lambda: (data.launcher.folder / "taas-runs" / "latest" / "journal.jsonl").exists(), "the run is there")
    assert not (data.seen / "rank-0").exists()
    (data.seen / "go").touch()
    _, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 0, err
    assert (data.seen / "rank-0").exists()
    assert "preparing data:train before ranks start" in err and "prepared data:train: 4 batches" in err


def test_several_loaders_are_waited_for_together(data):
    loaders = ["--loader", "data:train", "--loader", "data:val", "--loader", "data:train"]
    plan = data.launcher.run("--cpus", 1, *loaders, "--dry-run", "--json", data.launcher.python(RANK))
    assert json.loads(plan.stdout)["data"]["loader"] == "data:train,data:val"
    (data.seen / "go").touch()
    done = data.run("--cpus", 1, "--data-cores", 1, *loaders, data.launcher.python(RANK), env={"WORKER": "prepare"})
    assert done.returncode == 0, done.stderr
    assert "preparing data:train,data:val before ranks start" in done.stderr


@pytest.mark.gate
def test_a_loader_that_cannot_be_imported_ends_the_run(data):
    done = data.run(
        "--cpus", 1, "--data-cores", 2, "--loader", "nothing:train", data.launcher.python(RANK), env={"WORKER": "fail"}
    )
    assert done.returncode == 2
    assert "--loader nothing:train: ModuleNotFoundError: No module named 'nothing'" in done.stderr
    assert not (data.seen / "rank-0").exists()


@pytest.mark.gate
def test_what_ranks_report_is_judged_at_the_end(data):
    script = data.launcher.python("""
import json, os, socket
to = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
def report(**event): to.sendto(json.dumps(event).encode(), os.environ["TAAS_EVENTS"])
rank = int(os.environ["RANK"])
report(kind="work", worker=rank, busy=10.0, seconds=100.0, batches=10)
report(kind="data", rank=rank, loader="train", samples=500000, batches=5000, bytes=250e9, seconds=100.0, waited=0.3,
       buffered=3, workers=4, hedged=0, done=True)
report(kind="remark", text="something of note")
to.sendto(b"garbage", os.environ["TAAS_EVENTS"])
""")
    done = data.run("--cpus", 4, "--data-cores", 1, "--gpus", 2, script)
    assert done.returncode == 0
    assert (
        "data: train: 1,000,000 samples in 100.0 s, 5.0 GB/s; the ranks waited 0.3 % for data; "
        "1 CPU machine would have been enough"
    ) in done.stderr
    assert "something of note" in done.stderr
    told = [json.loads(line) for line in journal(data) if '"data_progress"' in line]
    assert {line["rank"] for line in told} == {0, 1} and told[0]["samples"] == 500000


def test_json_has_the_reports(data):
    script = data.launcher.python(
        "import json, os, socket\nsocket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto("
        "json.dumps({'kind': 'data', 'rank': 0, 'loader': 'train', 'samples': 7}).encode(), "
        "os.environ['TAAS_EVENTS'])\n"
    )
    done = data.run("--json", "--cpus", 0, script)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [e["samples"] for e in events if e.get("event") == "data_progress"] == [7]
    assert any("data: train: 7 samples" in e.get("text", "") for e in events)
