"""What a worker of torch does between fork and first sample, and at its end, is done in those of registered loaders."""

import multiprocessing
import os
import signal
import sys
from multiprocessing import util

import pytest
import taas
import torch
from conftest import equal, loop, registered_loop, wait_until
from own_datasets import Numbers
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

WAYS = [0, 1, 2, 4]


class Hooked:
    """What its hooks have seen."""

    forked, bootstrapped = os.getpid(), os.getpid()

    def __init__(self):
        os.register_at_fork(after_in_child=lambda: setattr(self, "forked", os.getpid()))
        util.register_after_fork(self, lambda own: setattr(own, "bootstrapped", os.getpid()))


hooked = Hooked()
told_at_the_end = os.eventfd(0)
util.Finalize(hooked, os.eventfd_write, (told_at_the_end, 1), exitpriority=1)


def caught(*numbers):
    """Which of these signals have a handler in this process, of C or of Python."""
    with open("/proc/self/status") as status:
        mask = next(int(line.split()[1], 16) for line in status if line.startswith("SigCgt:"))
    return [bool(mask >> number - 1 & 1) for number in numbers]


def a_child():
    """What comes of it that a sample starts a process."""
    try:
        multiprocessing.Process(target=int).start()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def the_process():
    """What a sample can know of the process that it is made in."""
    own, parent = multiprocessing.current_process(), multiprocessing.parent_process()
    return [
        own.daemon,
        own.name == "MainProcess",
        own.pid == os.getpid(),
        parent.is_alive(),
        multiprocessing.active_children(),
        sys.stdin.read(),
        torch.get_num_threads(),
        caught(signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE),
        signal.getsignal(signal.SIGINT) == signal.SIG_IGN,
        a_child(),
        hooked.forked == os.getpid(),
        hooked.bootstrapped == os.getpid(),
    ]


class Asks(Numbers):
    def __getitem__(self, index):
        return index, the_process()


class AsksAStream(IterableDataset):
    def __iter__(self):
        yield from ([row, the_process()] for row in range(6))


@pytest.mark.parametrize("processes", WAYS)
@pytest.mark.parametrize("dataset", [Asks(12), AsksAStream()], ids=["map", "stream"])
def test_the_process_is_as_a_worker_of_torch(dataset, processes, monkeypatch):
    def make():
        return DataLoader(dataset, 3, num_workers=2, collate_fn=list)

    plain = loop(make())
    for batch in plain:  # but that SIGINT is the run's business, which tells its ranks of it
        for _, answers in batch:
            answers[8] = True
    assert equal(registered_loop(make, processes, monkeypatch), plain)


@pytest.fixture(scope="module")
def manager():
    with multiprocessing.Manager() as started:
        yield started


class Managed(Numbers):
    """Samples that a Manager keeps, and what each process has asked for."""

    def __init__(self, rows, asked):
        super().__init__(len(rows))
        self.rows, self.asked = rows, asked

    def __getitem__(self, index):
        self.asked.append(index)
        return self.rows[index]


class ManagedStream(IterableDataset):
    def __init__(self, rows):
        self.rows = rows

    def __iter__(self):
        info = get_worker_info()
        for index in range(info.id, 60, info.num_workers):
            yield self.rows[index]


@pytest.mark.parametrize("processes", WAYS)
def test_what_a_manager_keeps_is_right_in_every_process(processes, manager, monkeypatch):
    rows, asked = manager.dict({index: f"row {index}" for index in range(60)}), manager.list()

    def make():
        return DataLoader(Managed(rows, asked), 3, num_workers=3)

    assert equal(registered_loop(make, processes, monkeypatch, epochs=2), loop(make(), epochs=2))
    assert set(asked) == set(range(60))

    def stream():
        return DataLoader(ManagedStream(rows), 3, num_workers=3)

    assert equal(registered_loop(stream, processes, monkeypatch, epochs=2), loop(stream(), epochs=2))


class Reports(IterableDataset):
    """The last thing that it does is to put something into a queue, which a thread of the process writes."""

    def __init__(self, queue):
        self.queue = queue

    def __iter__(self):
        yield get_worker_info().id
        self.queue.put(bytes(1 << 15))


@pytest.mark.parametrize("processes", WAYS)
def test_a_queue_is_flushed_at_the_end(processes, monkeypatch):
    queue = multiprocessing.Queue()
    loader = DataLoader(Reports(queue), 1, num_workers=2)
    monkeypatch.setenv("TAAS_DATA_WORKERS", str(processes))
    with taas.register(loader):
        assert len(loop(loader)) == 2
        assert [len(queue.get(timeout=60)) for _ in range(2)] == [1 << 15] * 2


@pytest.mark.parametrize("processes", WAYS)
def test_what_multiprocessing_does_at_the_programs_end_is_not_done_by_workers(processes, monkeypatch):
    registered_loop(lambda: DataLoader(Asks(12), 3, num_workers=2, collate_fn=list), processes, monkeypatch, epochs=2)
    os.set_blocking(told_at_the_end, False)
    with pytest.raises(BlockingIOError):
        os.eventfd_read(told_at_the_end)


class Endless(IterableDataset):
    def __iter__(self):
        while True:
            yield torch.zeros(1 << 18)


def children():
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return set(file.read().split())


@pytest.mark.parametrize("processes", WAYS)
def test_a_loop_that_is_left_prints_nothing(processes, monkeypatch, capfd):
    monkeypatch.setenv("TAAS_DATA_WORKERS", str(processes))
    before = children()
    with taas.register(DataLoader(Endless(), 2, num_workers=3)) as loader:
        for _ in range(3):
            next(iter(loader))
        started = children() - before
    assert started
    wait_until(lambda: not any(os.path.exists(f"/proc/{pid}/fd/0") for pid in started))
    assert "Traceback" not in capfd.readouterr().err
