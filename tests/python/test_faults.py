"""Workers that die, freeze, raise, or cannot: nothing is lost, and what cannot be is said in one line."""

import os
import signal
import subprocess
import sys
import threading

import pytest
import taas
import torch
from conftest import equal, loop, registered_loop, seed
from own_datasets import Big, Drawn, Fails, Kills, NeedsMemory, Numbers, Slow
from torch.utils.data import DataLoader


@pytest.mark.parametrize(
    "make", [lambda: DataLoader(Slow(), 4, shuffle=True, num_workers=3), lambda: DataLoader(Drawn(), 4, num_workers=3)]
)
@pytest.mark.parametrize("how", [pytest.param(signal.SIGKILL, marks=pytest.mark.gate), signal.SIGTERM])
def test_killed_workers_change_nothing(make, how, data_workers):
    undisturbed = registered_loop(make, data_workers, 1)
    run = data_workers(3)
    run.keep()
    seed()
    seen = []
    with taas.register(make()) as loader:
        for number, batch in enumerate(loader):
            seen.append(batch)
            if number % 3 == 1:
                run.workers[number // 3 % 3].send_signal(how)
    assert equal(seen, undisturbed)


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
                run.freeze(0)
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
        assert "index 37" in "".join(raised.value.__notes__)
        assert "own_datasets.py" in str(raised.value.__cause__)
        assert equal(next(iterator)[1], torch.arange(40, 48)), "the loop may go on"
        assert len(list(iterator)) == 7


@pytest.mark.parametrize("initialise", [pytest.param(None, marks=pytest.mark.gate), id])
def test_a_batch_that_kills_every_worker_ends_the_loop_with_one_line(initialise, data_workers, capfd):
    data_workers(2).keep()
    with taas.register(DataLoader(Kills(), 8, num_workers=2, worker_init_fn=initialise)) as loader:
        iterator = iter(loader)
        for _ in range(4):
            next(iterator)
        with pytest.raises(
            taas.UndeliverableBatch,
            match=r"batch 4 of epoch 0, indices \[32, .* 3 data workers ended, or were lost, while they worked on it",
        ) as raised:
            next(iterator)
        assert equal(next(iterator)[1], torch.arange(40, 48)), "the loop may go on"
    assert len(str(raised.value).splitlines()) == 1
    said = [line for line in capfd.readouterr().err.splitlines() if "dataset" in line]
    assert said.count("taas: index 37 of the dataset") in (2, 3) and "taas: index 38 of the dataset" not in said


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
    monkeypatch.setattr("taas.delivery.loop._LINE_EVERY_SECONDS", 0.2)
    os.mkfifo(tmp_path / "fifo")
    said = threading.Event()
    lines = []
    monkeypatch.setattr(
        "taas.runtime.events.remark", lambda text: "batch 1 of" in text and (lines.append(text), said.set())
    )

    def let_it():
        said.wait(60)
        with open(tmp_path / "fifo", "w"):
            pass

    helper = threading.Thread(target=let_it)
    helper.start()
    with taas.register(DataLoader(Waits(tmp_path / "fifo", 9), 8, num_workers=1)) as loader:
        batches = iter(loader)
        next(batches), next(batches)
    helper.join()
    assert (
        "batch 1 of epoch 0, indices [8, 9" in lines[0]
        and "has not come for 0 s; the data worker is slow, or cannot be reached" in lines[0]
    )


@pytest.mark.gate
def test_too_little_memory_for_a_batch_is_said(data_workers):
    data_workers(2)
    with taas.register(DataLoader(NeedsMemory(), 8)) as loader:
        iterator = iter(loader)
        for _ in range(4):
            next(iterator)
        with pytest.raises(taas.UndeliverableBatch, match="batch 4 of epoch 0.*not enough memory"):
            next(iterator)


@pytest.mark.gate
def test_a_batch_larger_than_the_buffer_is_said(data_workers):
    data_workers(1, buffer_bytes=4 << 20)
    with (
        taas.register(DataLoader(Big(), 16)) as loader,
        pytest.raises(taas.UndeliverableBatch, match="batch 0 of epoch 0") as raised,
    ):
        loop(loader)
    assert len(str(raised.value).splitlines()) == 1


class Plain:
    """A sampler that is drawn when torch draws it."""

    def __iter__(self):
        return iter(range(24))

    def __len__(self):
        return 24


@pytest.mark.gate
@pytest.mark.parametrize("sampler", [None, Plain()])
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


def test_a_missing_path_is_the_datasets_own_error(data_workers):
    data_workers(1)

    class Files(Numbers):
        def __getitem__(self, index):
            return open(f"/nowhere/{index}").read()

    with (
        taas.register(DataLoader(Files(), 8)) as loader,
        pytest.raises(FileNotFoundError, match="/nowhere/0") as raised,
    ):
        loop(loader)
    assert "data worker 0" in "".join(raised.value.__notes__)


class NeedsGrad(Numbers):
    def __getitem__(self, index):
        return torch.ones(2, requires_grad=True) * index


def test_what_was_computed_with_gradients_is_refused(data_workers):
    """The plain loader's workers cannot send it either: their loop waits for ever."""
    data_workers(1)
    with taas.register(DataLoader(NeedsGrad(), 4, num_workers=2, collate_fn=list)) as loader:
        with pytest.raises(RuntimeError, match="autograd graph stays in the process that made it: call detach"):
            loop(loader)


class Unreadable:
    def __init__(self):
        self.state = "some"

    def __setstate__(self, state):
        raise ValueError("not in this process")


class OneUnreadable(Numbers):
    def __getitem__(self, index):
        return Unreadable() if index == 1 else index


def test_what_cannot_be_made_again_in_the_rank_is_raised_in_its_place(data_workers):
    data_workers(1)
    with taas.register(DataLoader(OneUnreadable(), None)) as loader:
        batches = iter(loader)
        assert next(batches) == 0
        with pytest.raises(ValueError, match="not in this process") as raised:
            next(batches)
        assert "raised in the rank" in "".join(raised.value.__notes__)
        assert list(batches) == [*range(2, len(loader))]


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
        assert (
            said.startswith("RuntimeError: taas: loader") and "call taas.unregister(loader) in the fork first" in said
        )
        assert in_a_fork(lambda: len(loop(taas.register(taas.unregister(loader))))) == "2", "by a connection of its own"
        assert len(loop(loader)) == 2


def large(index):
    return torch.full((300 << 18,), float(index))


class Large(Numbers):
    """Samples of 300 MiB."""

    def __getitem__(self, index):
        return large(index)


def test_a_batch_of_300_mib(data_workers):
    data_workers(1, buffer_bytes=1 << 30)
    with taas.register(DataLoader(Large(2), None, num_workers=1)) as loader:
        for index, batch in enumerate(loader):
            assert batch.equal(large(index))
            del batch


LITTLE_SHARED_MEMORY = """
import os, pathlib, sys
sys.path[:0] = [{here!r}]
import conftest, pytest, taas, torch
from torch.utils.data import DataLoader, TensorDataset
assert os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize == 64 << 10
rows = torch.arange(8.0).repeat_interleave(1 << 20).view(8, 1 << 20)
conftest.pytest_configure()
run = conftest.Run(pathlib.Path({folder!r}), pytest.MonkeyPatch()).start(2)
with taas.register(DataLoader(TensorDataset(rows), 2, num_workers=2)) as loader:
    assert torch.cat([batch for batch, in loader]).equal(rows)
run.end()
conftest.pytest_unconfigure()
print("all of it")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a /dev/shm of its own")
def test_shared_memory_of_64_kib_is_enough(tmp_path):
    """Containers have that much where nobody asks for more; the plain loader's workers die of it."""
    program = tmp_path / "program.py"
    program.write_text(LITTLE_SHARED_MEMORY.format(here=os.path.dirname(__file__), folder=str(tmp_path)))
    own = 'mount -t tmpfs -o size=64k tmpfs /dev/shm && exec "$@"'
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", own, "sh", sys.executable, program], capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "all of it\n", done.stderr
