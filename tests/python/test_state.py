"""A loop that was interrupted goes on where it was: in the order, in the bytes, and in the random states."""

import io
import os
import queue
import threading

import pytest
import taas
import torch
from conftest import equal, loop, seed, states
from own_datasets import Augmented, Drawn, Eager, generator, numbers
from torch.utils.data import DataLoader, Dataset, DistributedSampler, Sampler

LOADERS = {
    "shuffled": lambda: DataLoader(Augmented(), 8, shuffle=True),
    "by a generator": lambda: DataLoader(Augmented(), 8, shuffle=True, generator=generator()),
    "workers": lambda: DataLoader(Augmented(), 8, shuffle=True, num_workers=2, persistent_workers=True),
    "own sampler": lambda: DataLoader(Augmented(), 8, sampler=Eager(), num_workers=1),
    "distributed": lambda: DataLoader(Augmented(), 8, sampler=DistributedSampler(Augmented(), 2, 1)),
    "iterable": lambda: DataLoader(Drawn(), 4),
    "iterable, workers": lambda: DataLoader(Drawn(), 4, num_workers=3),
}


def program(make, interrupted_at, monkeypatch):
    """Two epochs; at a batch of the second one a checkpoint is written, and another process goes on from it."""
    monkeypatch.setenv("TAAS_DATA_WORKERS", "2")
    seed()
    loader = taas.register(make())
    seen = loop(loader)
    file = io.BytesIO()
    for number, batch in enumerate(loader):
        seen.append((batch, torch.rand(1)))
        if number == interrupted_at:
            torch.save({"loader": loader.state_dict(), "random": torch.get_rng_state()}, file)
            break
    taas.unregister(loader)
    if interrupted_at is None:
        return seen, states()
    return seen, resumed(make, file.getvalue())


def resumed(make, checkpoint):
    seed(99)
    with taas.register(make()) as loader:
        saved = torch.load(io.BytesIO(checkpoint), weights_only=True)
        loader.load_state_dict(saved["loader"])
        torch.set_rng_state(saved["random"])
        seen = [(batch, torch.rand(1)) for batch in loader]
        return seen, loop(loader)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.gate) if name == "iterable, workers" else name for name in LOADERS]
)
@pytest.mark.parametrize("at", [0, 3])
def test_resumed(name, at, monkeypatch):
    make = LOADERS[name]
    whole, _ = program(make, None, monkeypatch)
    first, (rest, _) = program(make, at, monkeypatch)
    assert equal(first + rest, whole)


def test_the_epoch_after_a_resumed_one_is_the_right_one(monkeypatch):
    make = LOADERS["by a generator"]
    seed()
    with taas.register(make()) as loader:
        third = [loop(loader) for _ in range(3)][2]
    _, (_, after) = program(make, 2, monkeypatch)
    assert equal(after, third)


@pytest.mark.gate
def test_digest_is_of_the_bytes_whoever_made_them(monkeypatch):
    def digest(workers, last=9, dataset=None):
        monkeypatch.setenv("TAAS_DATA_WORKERS", str(workers))
        seed()
        with taas.register(DataLoader(dataset or Augmented(), 8, shuffle=True)) as loader:
            for number, _ in enumerate(loader):
                if number == last:
                    return loader.state_dict()["digest"]

    assert digest(0) == digest(1) == digest(3) != 0
    assert digest(1, last=8) != digest(1)
    assert digest(1, dataset=numbers) != digest(1)


@pytest.mark.gate
def test_state_between_loops(monkeypatch):
    seed()
    with taas.register(DataLoader(Augmented(), 8)) as loader:
        loop(loader)
        state = loader.state_dict()
        second = loop(loader)
    seed()
    with taas.register(DataLoader(Augmented(), 8)) as loader:
        loader.load_state_dict(state)
        assert equal(loop(loader), second)


class EachFromTheProcess(Sampler):
    """Draws its next index from the generator that the program draws from as well."""

    def __iter__(self):
        for _ in range(40):
            yield int(torch.randint(len(Augmented()), ()))


class AnotherLength(Augmented):
    def __len__(self):
        return super().__len__() - 1


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.gate)])
def test_an_order_that_cannot_be_drawn_again_is_refused(workers, monkeypatch):
    make = lambda: DataLoader(Augmented(), 4, sampler=EachFromTheProcess(), num_workers=workers)  # noqa: E731
    with pytest.raises(ValueError, match="does not draw the order again in which this state was saved") as refusal:
        program(make, 3, monkeypatch)
    assert len(str(refusal.value).splitlines()) == 1


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(lambda: DataLoader(AnotherLength(), 4, shuffle=True), marks=pytest.mark.gate),
        lambda: DataLoader(Augmented(), 5, shuffle=True),
        lambda: DataLoader(range(4), 4, shuffle=True),
    ],
    ids=["a shorter dataset", "another batch size", "fewer batches"],
)
def test_the_order_of_another_loader_is_refused(other):
    seed()
    with taas.register(DataLoader(Augmented(), 4, shuffle=True)) as loader:
        batches = iter(loader)
        next(batches), next(batches)
        state = loader.state_dict()
    with taas.register(other()) as loader:
        loader.load_state_dict(state)
        with pytest.raises(ValueError, match="either the dataset, the batch size or the seed is another one"):
            list(loader)


class ReadAhead(DataLoader):
    """By a thread, all that there is."""

    def __iter__(self):
        batches, ready = super().__iter__(), queue.SimpleQueue()
        reader = threading.Thread(target=lambda: [ready.put(batch) for batch in [*batches, None]])
        reader.start()
        reader.join()
        yield from iter(ready.get, None)


class PairsOfBatches(DataLoader):
    def __iter__(self):
        batches = super().__iter__()
        for batch in batches:
            yield torch.cat([batch, next(batches)])


@pytest.mark.parametrize("workers", ["0", "2"])
@pytest.mark.parametrize("at", [0, 3, 4])
def test_resumed_behind_the_batch_that_the_loop_had_though_all_had_been_read(workers, at, monkeypatch):
    def made():
        return ReadAhead(range(40), 8, shuffle=True, generator=generator())

    monkeypatch.setenv("TAAS_DATA_WORKERS", workers)
    whole = [*made()]
    with taas.register(made()) as loader:
        for number, batch in enumerate(loader):
            assert torch.equal(batch, whole[number])
            if number == at:
                state = loader.state_dict()
        assert loader.state_dict() == {"taas": 1, "epoch": 1}
    with taas.register(made()) as loader:
        loader.load_state_dict(state)
        assert equal([*loader], whole[at + 1 :])


class MadeBy(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return os.getpid()


@pytest.mark.parametrize("make", [ReadAhead, DataLoader])
def test_the_training_process_makes_no_batch(make, monkeypatch):
    """It would have to set and put back random states from which the program draws meanwhile, perhaps in a thread."""
    monkeypatch.setenv("TAAS_DATA_WORKERS", "0")
    with taas.register(make(MadeBy(), 2)) as loader:
        assert os.getpid() not in torch.cat([*loader])


def test_no_state_where_batches_are_made_of_several():
    with taas.register(PairsOfBatches(range(32), 8)) as loader:
        batches = iter(loader)
        next(batches)
        with pytest.raises(RuntimeError, match=r"state_dict: .* has been given 1 more than it gave"):
            loader.state_dict()
        assert len([*batches]) == 1
        assert loader.state_dict() == {"taas": 1, "epoch": 1}


class Following(Dataset):
    """Gives what its own iterator has next, whatever the index."""

    def __init__(self):
        self.following = iter(range(1000))

    def __len__(self):
        return 12

    def __getitem__(self, index):
        return next(self.following)


def test_a_place_that_no_state_holds_is_refused(monkeypatch):
    monkeypatch.setenv("TAAS_DATA_WORKERS", "0")
    loader = taas.register(DataLoader(Following(), 4))
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()
    taas.unregister(loader)
    again = taas.register(DataLoader(Following(), 4))
    again.load_state_dict(state)
    with pytest.raises(
        ValueError, match="the dataset holds a range_iterator, and how far that was is not in the state"
    ):
        iter(again)
    taas.unregister(again)
