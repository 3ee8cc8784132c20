"""What ranks and data workers of a run tell the launcher's socket and the log: progress, units, the end of a loop."""

import json
import pathlib
import socket
import threading

import pytest
import taas
from conftest import DEADLINE_SECONDS, loop, wait_until
from own_datasets import numbers
from runs import CONTRACT, importable, of_kind  # noqa: F401
from taas.runtime import events
from torch.utils.data import DataLoader


@pytest.mark.gate
def test_reports_have_the_form_that_the_launcher_reads(data_workers):
    run = data_workers(1, loader="own_datasets:plain_loader")
    wait_until(lambda: any(event["done"] for event in of_kind(run, "prepared")))
    with taas.register(DataLoader(numbers, 8)) as loader:
        loop(loader, 2)
        wait_until(lambda: any(event["batches"] >= 26 for event in of_kind(run, "work")))
    events.remark("four words for people")
    contract = [json.loads(line) for line in (CONTRACT / "reports.jsonl").read_text().splitlines()]
    last = {said["kind"]: of_kind(run, said["kind"])[-1] for said in contract}
    for said in contract:
        assert {name: type(value) for name, value in last[said["kind"]].items()} == {
            name: type(value) for name, value in said.items()
        }
    data, work = last["data"], last["work"]
    assert (data["samples"], data["batches"], data["done"], data["workers"], data["rank"]) == (206, 26, True, 1, 0)
    assert data["bytes"] > 0 and data["seconds"] >= data["waited"] >= 0
    assert work["worker"] == 0 and 0 < work["busy"] < work["seconds"]


def test_units_end_the_loop_with_a_line(run):
    run.start(1, units=160, world_size=2)
    with taas.register(DataLoader(numbers, 8)) as loader:
        assert [len(loop(loader)) for _ in range(3)] == [10, 0, 0]
    assert [
        remark
        for remark in run.remarks()
        if "80 samples were taken, in whole batches, as asked for with --units" in remark
    ] == run.remarks()


@pytest.mark.gate
@pytest.mark.parametrize("units, batches", [(150, [13, 6]), (1000, [13, 13])])
def test_units_count_over_the_epochs_and_a_lack_is_said(run, units, batches):
    run.start(0, units=units)
    with taas.register(DataLoader(numbers, 8)) as loader:
        assert [len(loop(loader)) for _ in range(2)] == batches
    lack = [remark for remark in run.remarks() if "206 of the 1000 samples that --units asks of this rank" in remark]
    assert len(lack) == (units == 1000)


def test_the_end_of_a_loop_is_told_to_a_busy_launcher(tmp_path, monkeypatch):
    monkeypatch.setattr(events, "_socket", None)
    monkeypatch.setattr(events, "_PATIENCE", (DEADLINE_SECONDS, 0))
    monkeypatch.setenv("TAAS_EVENTS", str(tmp_path / "events"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as launcher:
        launcher.bind(str(tmp_path / "events"))
        launcher.settimeout(DEADLINE_SECONDS)
        taken = 0
        while events.send("remark", text=str(taken)):
            taken += 1
        assert taken >= 10
        told = []
        end = threading.Thread(target=lambda: told.append(events.send("remark", wait=True, text="the last")))
        end.start()
        wait_until(lambda: not end.is_alive() or status_of(end.native_id).startswith("S"))
        assert [json.loads(launcher.recv(1 << 16))["text"] for _ in range(taken + 1)] == [
            *map(str, range(taken)),
            "the last",
        ]
        end.join()
        assert told == [True]


def status_of(thread):
    return pathlib.Path(f"/proc/self/task/{thread}/stat").read_text().rsplit(")", 1)[1].strip()


def test_both_ends_write_what_their_links_do_to_the_log(run, monkeypatch, tmp_path):
    monkeypatch.setenv("TAAS_LOG", "data=info")
    monkeypatch.setenv("TAAS_LOG_DIR", str(tmp_path / "log"))
    run.start(1)
    with taas.register(DataLoader(numbers, 8)) as loader:
        loop(loader)

    def text(name):
        return "".join(file.read_text() for file in (tmp_path / "log").glob(f"{name}-*.log"))

    wait_until(lambda: " info data: linked with " in text("rank-0-data"))
    wait_until(lambda: " info data: client " in text("data-worker-0"))
