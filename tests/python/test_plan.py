"""`python -m taas.worker` and a rank that take part in a run: a plan file, the launcher's socket, prepared batches."""

import json
import pathlib
import resource
import signal
import socket
import sys
import threading

import pytest
import taas
import torch
from conftest import DEADLINE_SECONDS, equal, loop, seed, wait_until
from own_datasets import Augmented, Carries, Drawn, Fails, Noted, Numbers, numbers
from taas.delivery import delivery
from taas.runtime import events
from taas.runtime.plan import read
from taas.worker.prepare import Preparation
from torch.utils.data import DataLoader, DistributedSampler


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", ":".join([*sys.path, str(pathlib.Path(__file__).parent)]))


CONTRACT = pathlib.Path(__file__).parents[1] / "contract"  # what the launcher's own tests write and read


def test_the_plan_as_the_launcher_writes_it():
    plan = read(str(CONTRACT / "plan.json"))
    assert (plan.run, plan.key, plan.encryption, plan.compression) == ("run", "0123456789abcdef" * 4, "plain", "zstd")
    assert (plan.buffer_bytes, plan.units, plan.on_error, plan.loader, plan.world_size) == (1 << 30, 10, "skip", "data:train", 4)
    here, gone = plan.workers
    assert here == {"name": "data-worker 0", "address": "127.0.0.1", "port": 70, "unix": "/x/0"}
    assert not gone["address"] and not gone["unix"]


def test_reports_have_the_form_that_the_launcher_reads(tmp_path, monkeypatch):
    monkeypatch.setattr(events, "_socket", None)
    monkeypatch.setenv("TAAS_EVENTS", str(tmp_path / "events"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as launcher:
        launcher.bind(str(tmp_path / "events"))
        sent = [events.DataProgress(3, "train", samples=10, batches=2, bytes=3_000_000_000, seconds=1.5, waited=0.25, buffered=4,
                                    workers=5, hedged=6, done=True),
                events.DataWork(2, batches=3, busy=0.5, seconds=2.0), events.DataPrepared(1, batches=7, bytes=8, done=True),
                events.Remark("four words for people")]
        assert all(events.send(report) for report in sent)
        heard = [json.loads(launcher.recv(1 << 16)) for _ in sent]
    assert heard == [json.loads(line) for line in (CONTRACT / "reports.jsonl").read_text().splitlines()]


def of_kind(run, kind):
    return [event for event in run.events() if event["kind"] == kind]


@pytest.mark.parametrize("make", [lambda: DataLoader(Augmented(), 8, shuffle=True), lambda: DataLoader(Drawn(), 4, num_workers=3)])
def test_the_same_bytes_as_without_workers(run, make, monkeypatch):
    run.start(2)
    seed()
    with taas.register(make()) as loader:
        seen = loop(loader, 2)
    monkeypatch.delenv("TAAS_DATA_PLAN")
    monkeypatch.setenv("TAAS_DATA_WORKERS", "0")
    seed()
    with taas.register(make()) as loader:
        assert equal(loop(loader, 2), seen)


def test_no_workers_means_this_process(run):
    run.start(0)
    with taas.register(DataLoader(numbers, 8)) as loader:
        assert equal(loop(loader), loop(DataLoader(numbers, 8)))


def test_a_worker_lets_go_of_loaders_that_are_not_used_any_more(run):
    size, sizes = 16 << 20, []
    run.start(1)
    for number in range(16):
        with taas.register(DataLoader(Carries(number, size), 8)) as loader:
            assert equal(loop(loader), loop(DataLoader(numbers, 8)))
        pages = pathlib.Path(f"/proc/{run.workers[0].pid}/statm").read_text().split()[1]
        sizes.append(int(pages) * resource.getpagesize())
    assert sizes[-1] < sizes[7] + 4 * size, "the last four are kept, and eight more came"


def test_progress_is_reported(run):
    run.start(1)
    with taas.register(DataLoader(numbers, 8)) as loader:
        loop(loader, 2)
    last = of_kind(run, "data")[-1]
    assert (last["samples"], last["batches"], last["done"], last["workers"], last["rank"]) == (206, 26, True, 1, 0)
    assert last["bytes"] > 0 and last["seconds"] >= last["waited"] >= 0


def test_units_end_the_loop_with_a_line(run):
    run.start(1, units=160, world_size=2)
    with taas.register(DataLoader(numbers, 8)) as loader:
        assert [len(loop(loader)) for _ in range(3)] == [10, 0, 0]
    assert [remark for remark in run.remarks() if "80 samples were taken, in whole batches, as asked for with --units" in remark] == run.remarks()


@pytest.mark.parametrize("units, batches", [(150, [13, 6]), (1000, [13, 13])])
def test_units_count_over_the_epochs_and_a_lack_is_said(run, units, batches):
    run.start(0, units=units)
    with taas.register(DataLoader(numbers, 8)) as loader:
        assert [len(loop(loader)) for _ in range(2)] == batches
    lack = [remark for remark in run.remarks() if "206 of the 1000 samples that --units asks of this rank" in remark]
    assert len(lack) == (units == 1000)


def test_broken_samples_are_skipped_with_a_count(run):
    run.start(1, on_error="skip")
    with taas.register(DataLoader(Fails(), 8)) as loader:
        assert len(loop(loader)) == 12
    assert any("batch 4 of epoch 0" in remark and "is skipped (1 so far)" in remark and "KeyError" in remark for remark in run.remarks())


def test_killed_workers_come_back_at_their_address(run):
    run.start(2)
    seed()
    plain = loop(DataLoader(Numbers(400), 8, shuffle=True))
    seed()
    with taas.register(DataLoader(Numbers(400), 8, shuffle=True)) as loader:
        seen = []
        for number, batch in enumerate(loader):
            seen.append(batch)
            if number in (5, 20):
                which = number % 2
                run.workers[which].kill()
                run.workers[which].wait()
                run.workers[which] = run.start_worker(which)
    assert equal(seen, plain)


def test_a_worker_joins_and_one_leaves_during_the_loop(run):
    run.start(1)
    plain = loop(DataLoader(Numbers(800), 8))
    with taas.register(DataLoader(Numbers(800), 8)) as loader:
        seen = []
        for number, batch in enumerate(loader):
            seen.append(batch)
            if number == 5:
                run._listen(1)
                run.workers.append(run.start_worker(1))
                run.plan["workers"][0].update(unix="")
                run.write()
                run.workers[0].send_signal(signal.SIGKILL)
    assert equal(seen, plain)


def test_the_next_epoch_is_under_way_before_this_one_ends(run, monkeypatch, tmp_path):
    noted = tmp_path / "noted"
    noted.touch()
    monkeypatch.setenv("NOTED", str(noted))
    run.start(1)
    sampler = DistributedSampler(Noted(16), 1, 0)
    with taas.register(DataLoader(sampler.dataset, 4, sampler=sampler)) as loader:
        for epoch in range(3):
            sampler.set_epoch(epoch)
            batches = iter(loader)
            assert torch.cat([next(batches) for _ in range(4)]).tolist() == list(sampler)
            wait_until(lambda: len(noted.read_text().split()) == 16 * (epoch + 1) + 8)  # a worker is two batches ahead
            assert next(batches, None) is None
    assert len(noted.read_text().split()) == 16 * 3 + 8, "nothing is made twice"


@pytest.mark.parametrize("name", ["plain_loader", "loader"])
def test_prepared_before_there_is_a_rank(run, name):
    import own_datasets
    run.start(2, loader=f"own_datasets:{name}")
    wait_until(lambda: len([event for event in of_kind(run, "prepared") if event["done"]]) == 2)
    prepared = of_kind(run, "prepared")
    assert sum({event["worker"]: event["batches"] for event in prepared}.values()) == 13
    seed()
    loader = taas.register(getattr(own_datasets, name))
    try:
        seen = loop(loader)
    finally:
        taas.unregister(loader)
    assert of_kind(run, "data")[-1]["loader"] == name
    if name == "plain_loader":
        assert equal(seen, loop(loader))
    else:
        seed()
        run.write(workers=[], loader="")
        delivery._deliveries.clear()
        with taas.register(DataLoader(loader.dataset, 8, num_workers=2)) as other:
            assert equal(loop(other), seen)


def test_nothing_is_prepared_for_a_dataset_that_asks_for_its_rank(run, monkeypatch):
    import own_datasets
    run.start(1, loader="own_datasets:loader_of_rank")
    wait_until(lambda: [event for event in of_kind(run, "prepared") if event["done"]])
    assert of_kind(run, "prepared")[-1]["batches"] == 0
    assert run.remarks() == ["nothing is prepared before the ranks start: the dataset asks for its rank"]
    monkeypatch.setenv("RANK", "3")
    with taas.register(own_datasets.loader_of_rank) as loader:
        assert loop(loader)[0].tolist() == list(range(3000, 3008))


def test_what_was_prepared_is_made_again_where_the_program_has_set_something(run):
    import own_datasets
    run.start(1, loader="own_datasets:loader_of_floats")
    wait_until(lambda: [event for event in of_kind(run, "prepared") if event["done"]])
    torch.set_default_dtype(torch.float64)
    try:
        with taas.register(own_datasets.loader_of_floats) as loader:
            assert loop(loader)[0].dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert ("batches that were prepared before the ranks started are made again: torch.set_default_dtype is not as it was then"
            in run.remarks())


def test_the_end_of_a_preparation_is_told_until_it_got_through(run, monkeypatch):
    for module in (torch, torch.random):
        monkeypatch.setattr(module, "initial_seed", module.initial_seed)  # a preparation replaces it
    run.start(0, loader="own_datasets:plain_loader")
    preparation = Preparation(read(run.path), 0)
    told, answers = [], iter([False, False, True])
    monkeypatch.setattr(preparation, "_reported", float("inf"))
    monkeypatch.setattr(events, "send", lambda report, wait: told.append((report.batches, report.done, wait)) or next(answers))
    while not preparation.is_done:
        preparation.step()
    for _ in range(4):
        preparation.report()
    assert told == [(13, True, True)] * 3


@pytest.mark.parametrize("name, line", [
    ("own_datasets:nothing", "ValueError: module own_datasets has no 'nothing'"),
    ("own_datasets:numbers", "ValueError: 'numbers' of module own_datasets is of type Numbers, not a torch.utils.data.DataLoader"),
    ("no_such:loader", "ModuleNotFoundError: No module named 'no_such'"),
])
def test_a_loader_that_cannot_be_imported_ends_the_worker_with_a_line(run, name, line, capfd):
    run.start(1, loader=name)
    assert run.workers[0].wait(DEADLINE_SECONDS) == 1
    assert capfd.readouterr().err.splitlines()[-1] == line
    assert not of_kind(run, "prepared")


def test_a_plan_that_cannot_be_read_is_said(monkeypatch, tmp_path):
    monkeypatch.setenv("TAAS_DATA_PLAN", str(tmp_path / "none.json"))
    with pytest.raises(RuntimeError, match="none.json cannot be read"):
        taas.register(DataLoader(numbers, 8))


def test_a_worker_whose_program_has_ended_before_it_serves_ends_too(run, monkeypatch):
    monkeypatch.setenv("TAAS_DATA_PARENT", "1")
    run.start(1)
    assert run.workers[0].wait(DEADLINE_SECONDS) == 0


def test_a_wrong_key_is_said(run):
    run.start(1)
    with taas.register(DataLoader(numbers, 8)) as loader:
        assert len(loop(loader)) == 13
    delivery._deliveries.clear()
    run.write(key="0" * 64)
    with taas.register(DataLoader(numbers, 8)) as loader, pytest.raises(taas.UndeliverableBatch, match="wrong secret"):
        loop(loader)


def test_workers_say_how_busy_they_are(run):
    run.start(1)
    with taas.register(DataLoader(numbers, 8)) as loader:
        loop(loader)
        wait_until(lambda: any(event["batches"] >= 13 for event in of_kind(run, "work")))
    last = of_kind(run, "work")[-1]
    assert last["worker"] == 0 and 0 < last["busy"] < last["seconds"]


def test_the_end_of_a_loop_is_told_to_a_busy_launcher(tmp_path, monkeypatch):
    monkeypatch.setattr(events, "_socket", None)
    monkeypatch.setattr(events, "_PATIENCE", (DEADLINE_SECONDS, 0))
    monkeypatch.setenv("TAAS_EVENTS", str(tmp_path / "events"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as launcher:
        launcher.bind(str(tmp_path / "events"))
        launcher.settimeout(DEADLINE_SECONDS)
        taken = 0
        while events.send(events.Remark(str(taken))):
            taken += 1
        assert taken >= 10
        told = []
        end = threading.Thread(target=lambda: told.append(events.send(events.Remark("the last"), wait=True)))
        end.start()
        wait_until(lambda: not end.is_alive() or status_of(end.native_id).startswith("S"))
        assert [json.loads(launcher.recv(1 << 16))["text"] for _ in range(taken + 1)] == [*map(str, range(taken)), "the last"]
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
