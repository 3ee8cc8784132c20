"""`python -m taas.worker` and a rank that take part in a run: a plan file, and batches in the plan's workers."""

import pathlib
import resource
import signal

import pytest
import taas
from conftest import equal, forget_the_run, loop, registered_loop, seed
from own_datasets import Augmented, Carries, Drawn, Fails, Numbers, numbers
from runs import CONTRACT, importable  # noqa: F401
from taas.runtime.plan import read
from torch.utils.data import DataLoader


@pytest.mark.gate
def test_the_plan_as_the_launcher_writes_it():
    plan = read(str(CONTRACT / "plan.json"))
    assert (plan.run, plan.key, plan.encryption, plan.compression) == ("run", "0123456789abcdef" * 4, "plain", "zstd")
    assert (plan.buffer_bytes, plan.units, plan.on_error, plan.loader, plan.world_size) == (
        1 << 30,
        10,
        "skip",
        "data:train",
        4,
    )
    here, gone = plan.workers
    assert here == {"name": "data-worker 0", "address": "127.0.0.1", "port": 70, "unix": "/x/0"}
    assert not gone["address"] and not gone["unix"]


@pytest.mark.parametrize(
    "make", [lambda: DataLoader(Augmented(), 8, shuffle=True), lambda: DataLoader(Drawn(), 4, num_workers=3)]
)
def test_workers_as_a_launcher_starts_them_make_the_same_bytes(make, data_workers):
    forked = registered_loop(make, data_workers, 1, epochs=2)
    run = data_workers(2)
    for index in range(2):
        run.replace(index, run.start_program)
    seed()
    with taas.register(make()) as loader:
        assert equal(loop(loader, 2), forked)


def test_a_worker_lets_go_of_loaders_that_are_not_used_any_more(run):
    size, sizes = 16 << 20, []
    run.start(1)
    for number in range(16):
        with taas.register(DataLoader(Carries(number, size), 8)) as loader:
            assert equal(loop(loader), loop(DataLoader(numbers, 8)))
        pages = pathlib.Path(f"/proc/{run.workers[0].pid}/statm").read_text().split()[1]
        sizes.append(int(pages) * resource.getpagesize())
    assert sizes[-1] < sizes[7] + 4 * size, "the last four are kept, and eight more came"


@pytest.mark.gate
def test_broken_samples_are_skipped_with_a_count(run):
    run.start(1, on_error="skip")
    with taas.register(DataLoader(Fails(), 8)) as loader:
        assert len(loop(loader)) == 12
    assert any(
        "batch 4 of epoch 0" in remark and "is skipped (1 so far)" in remark and "KeyError" in remark
        for remark in run.remarks()
    )


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
                run.replace(number % 2)
    assert equal(seen, plain)


@pytest.mark.gate
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


@pytest.mark.gate
def test_a_plan_that_cannot_be_read_is_said(monkeypatch, tmp_path):
    monkeypatch.setenv("TAAS_DATA_PLAN", str(tmp_path / "none.json"))
    with pytest.raises(RuntimeError, match="none.json cannot be read"):
        taas.register(DataLoader(numbers, 8))


def test_a_wrong_key_is_said(run):
    run.start(1)
    with taas.register(DataLoader(numbers, 8)) as loader:
        assert len(loop(loader)) == 13
    forget_the_run()
    run.write(key="0" * 64)
    with taas.register(DataLoader(numbers, 8)) as loader, pytest.raises(taas.UndeliverableBatch, match="wrong secret"):
        loop(loader)
