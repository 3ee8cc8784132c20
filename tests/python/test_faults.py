"""Workers that die, freeze, raise, or cannot: nothing is lost, and what cannot be is said in one line."""

import os
import signal
import sys

import pytest
import taas
import torch
from conftest import equal, loop, printed, registered_loop, seed
from own_datasets import Fails, Numbers, Slow
from torch.utils.data import DataLoader


@pytest.mark.gate
def test_a_frozen_worker_is_overtaken(data_workers):
    def make():
        return DataLoader(Slow(), 4, num_workers=2)

    undisturbed = registered_loop(make, data_workers, 1)
    run = data_workers(2)
    seed()
    with taas.register(make()) as loader:
        seen = []
        for number, batch in enumerate(loader):
            seen.append(batch)
            if number == 3:
                run.workers[0].send_signal(signal.SIGSTOP)
    assert equal(seen, undisturbed)


@pytest.mark.gate
def test_an_exception_comes_in_its_place_with_its_index_and_traceback(data_workers):
    data_workers(2)
    with taas.register(DataLoader(Fails(), 8)) as loader:
        iterator = iter(loader)
        for _ in range(4):
            next(iterator)
        with pytest.raises(KeyError, match="sample 37 is broken") as raised:
            next(iterator)
        notes = "".join(raised.value.__notes__)
        assert "data worker" in notes and "batch 4" in notes and "index 37" in notes
        assert "own_datasets.py" in str(raised.value.__cause__)
        assert equal(next(iterator)[1], torch.arange(40, 48)), "the loop may go on"
        assert len(list(iterator)) == 7


class Spoilt(Numbers):
    """One sample is not what the others are."""

    def __init__(self, make):
        super().__init__()
        self.make = make

    def __getitem__(self, index):
        return self.make() if index == 37 else index


def kill():
    os.kill(os.getpid(), signal.SIGKILL)


def use_all_memory():
    raise MemoryError("37 TB")


THRICE = r"indices \[32, .* 3 data workers ended, or were lost, while they worked on it"


@pytest.mark.parametrize(
    "make, initialise, line",
    [
        pytest.param(kill, None, THRICE, marks=pytest.mark.gate),
        (kill, id, THRICE),
        pytest.param(use_all_memory, None, "not enough memory", marks=pytest.mark.gate),
        pytest.param(
            lambda: torch.zeros(2 << 20),
            None,
            "a batch of 8.4 MB does not fit into --data-buffer of 4.2 MB",
            marks=pytest.mark.gate,
        ),
    ],
)
def test_a_batch_that_cannot_come_is_a_line_and_the_loop_may_go_on(make, initialise, line, data_workers, capfd):
    data_workers(2, buffer_bytes=4 << 20).keep()
    options = {"num_workers": 2, "collate_fn": list, "worker_init_fn": initialise}
    with taas.register(DataLoader(Spoilt(make), 8, **options)) as loader:
        batches = iter(loader)
        assert [next(batches)[0] for _ in range(4)] == [0, 8, 16, 24]
        with pytest.raises(taas.UndeliverableBatch, match=f"batch 4 of epoch 0.*{line}") as raised:
            next(batches)
        assert next(batches) == [*range(40, 48)]
    assert len(str(raised.value).splitlines()) == 1
    said = capfd.readouterr().err.splitlines()
    times = said.count(
        "taas: index 37 of the dataset"
    )  # from the second death on, also one before the rank heard of it
    assert times >= 2 if make is kill else times == 0
    assert "taas: index 38 of the dataset" not in said


class Waits(Numbers):
    """At one index, until the test lets it."""

    def __init__(self, path, at, size=103):
        super().__init__(size)
        self.path, self.at = path, at

    def __getitem__(self, index):
        if index == self.at:
            with open(self.path) as fifo:
                fifo.read()
        return super().__getitem__(index)


def test_a_loop_that_stands_still_says_so(data_workers, monkeypatch, tmp_path):
    data_workers(1)
    os.mkfifo(fifo := tmp_path / "fifo")
    lines = []

    def remark(text):
        if "batch 1 of" in text:
            lines.append(text)
            if len(lines) == 1:
                fifo.write_text("")

    monkeypatch.setattr("taas.delivery.loop._LINE_EVERY_SECONDS", 0.2)
    monkeypatch.setattr("taas.runtime.events.remark", remark)
    with taas.register(DataLoader(Waits(fifo, 9), 8, num_workers=1)) as loader:
        batches = iter(loader)
        next(batches), next(batches)
    assert "batch 1 of epoch 0, indices [8, 9" in lines[0]
    assert "has not come for 0 s; the data worker is slow, or cannot be reached" in lines[0]


class Plain(list):
    """A sampler that is drawn when torch draws it, as a list itself is not."""


@pytest.mark.gate
@pytest.mark.parametrize("sampler", [None, Plain(range(24))])
def test_a_timeout_is_the_loaders_own_and_the_loop_goes_on_behind_it(sampler, data_workers, tmp_path):
    data_workers(1)
    os.mkfifo(fifo := tmp_path / "fifo")
    with taas.register(DataLoader(Waits(fifo, 0, 24), 4, sampler=sampler, num_workers=1, timeout=1)) as loader:
        batches = iter(loader)
        for _ in range(3):
            with pytest.raises(RuntimeError, match="DataLoader timed out after 1 seconds"):
                next(batches)
        with open(fifo, "w"):
            pass
        assert torch.cat([indices for _, indices in batches]).tolist() == list(range(24))


class Unreadable:
    def __init__(self):
        self.state = "some"

    def __setstate__(self, state):
        raise ValueError("not in this process")


def test_what_cannot_be_made_again_in_the_rank_is_raised_in_its_place(data_workers):
    data_workers(1)
    with taas.register(DataLoader(Spoilt(Unreadable), None)) as loader:
        batches = iter(loader)
        assert [next(batches) for _ in range(37)] == [*range(37)]
        with pytest.raises(ValueError, match="not in this process") as raised:
            next(batches)
        assert "raised in the rank" in "".join(raised.value.__notes__)
        assert list(batches) == [*range(38, len(loader))]


def in_a_fork(action):
    """What it prints there."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(write, str(action()).encode())
        except Exception as error:
            os.write(write, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(pid, 0)
    with open(read) as file:
        return file.read()


@pytest.mark.parametrize("has_looped", [False, pytest.param(True, marks=pytest.mark.gate)])
def test_a_loop_in_a_fork_of_the_program_is_refused(has_looped, data_workers):
    data_workers(1)
    with taas.register(DataLoader(Numbers(8), 4)) as loader:
        if has_looped:
            loop(loader)
        said = in_a_fork(lambda: loop(loader))
        assert said.startswith("RuntimeError: taas: loader")
        assert "call taas.unregister(loader) in the fork first" in said
        assert in_a_fork(lambda: len(loop(taas.register(taas.unregister(loader))))) == "2", "by a connection of its own"
        assert len(loop(loader)) == 2


class Large(Numbers):
    def __getitem__(self, index):
        return torch.full((300 << 18,), float(index))


def test_a_batch_of_300_mib(data_workers):
    data_workers(1, buffer_bytes=1 << 30)
    with taas.register(DataLoader(Large(2), None, num_workers=1)) as loader:
        for index, batch in enumerate(loader):
            assert batch.equal(loader.dataset[index])
            del batch


LITTLE_SHARED_MEMORY = """
import os, pathlib, sys
import conftest, pytest, taas, torch
from torch.utils.data import DataLoader, TensorDataset
assert os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize == 64 << 10
rows = torch.arange(8.0).repeat_interleave(1 << 20).view(8, 1 << 20)
conftest.pytest_configure()
run = conftest.Run(pathlib.Path(sys.argv[1]), pytest.MonkeyPatch()).start(2)
with taas.register(DataLoader(TensorDataset(rows), 2, num_workers=2)) as loader:
    assert torch.cat([batch for batch, in loader]).equal(rows)
run.end()
conftest.pytest_unconfigure()
print("all of it")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a /dev/shm of its own")
def test_shared_memory_of_64_kib_is_enough(tmp_path):
    """Containers have that much where nobody asks for more; the plain loader's workers die of it."""
    own = ("unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=64k tmpfs /dev/shm && exec "$@"', "sh")
    program = (sys.executable, "-c", LITTLE_SHARED_MEMORY, tmp_path)
    assert printed(*own, *program, cwd=os.path.dirname(__file__)) == "all of it\n"
