"""A loop that was interrupted goes on where it was: in the order, in the bytes, and in the random states."""

import io

import pytest
import taas
import torch
from conftest import equal, loop, seed, states
from own_datasets import Augmented, Drawn, Eager, generator, numbers
from torch.utils.data import DataLoader, DistributedSampler, Sampler

LOADERS = {
    "shuffled": lambda: DataLoader(Augmented(), 8, shuffle=True),
    "by a generator": lambda: DataLoader(Augmented(), 8, shuffle=True, generator=generator()),
    "workers": lambda: DataLoader(Augmented(), 8, shuffle=True, num_workers=2, persistent_workers=True),
    "own sampler": lambda: DataLoader(Augmented(), 8, sampler=Eager(), num_workers=1),
    "distributed": lambda: DataLoader(Augmented(), 8, sampler=DistributedSampler(Augmented(), 2, 1)),
    "iterable": lambda: DataLoader(Drawn(), 4),
    "iterable, workers": lambda: DataLoader(Drawn(), 4, num_workers=3),
}


def program(make, interrupted_at):
    """Two epochs; at a batch of the second one a checkpoint is written, and another process goes on from it."""
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
def test_resumed(name, at, data_workers):
    data_workers(2)
    make = LOADERS[name]
    whole, _ = program(make, None)
    first, (rest, _) = program(make, at)
    assert equal(first + rest, whole)


def test_the_epoch_after_a_resumed_one_is_the_right_one(data_workers):
    data_workers(2)
    make = LOADERS["by a generator"]
    seed()
    with taas.register(make()) as loader:
        third = [loop(loader) for _ in range(3)][2]
    _, (_, after) = program(make, 2)
    assert equal(after, third)


@pytest.mark.gate
def test_digest_is_of_the_bytes_whoever_made_them(data_workers):
    def digest(count, last=9, dataset=None):
        data_workers(count)
        seed()
        with taas.register(DataLoader(dataset or Augmented(), 8, shuffle=True)) as loader:
            for number, _ in enumerate(loader):
                if number == last:
                    return loader.state_dict()["digest"]

    assert digest(1) == digest(3) != 0
    assert digest(1, last=8) != digest(1)
    assert digest(1, dataset=numbers) != digest(1)


@pytest.mark.gate
def test_state_between_loops(data_workers):
    data_workers(1)
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
def test_an_order_that_cannot_be_drawn_again_is_refused(workers, data_workers):
    data_workers(2)
    make = lambda: DataLoader(Augmented(), 4, sampler=EachFromTheProcess(), num_workers=workers)  # noqa: E731
    with pytest.raises(ValueError, match="does not draw the order again in which this state was saved") as refusal:
        program(make, 3)
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
def test_the_order_of_another_loader_is_refused(other, data_workers):
    data_workers(1)
    seed()
    with taas.register(DataLoader(Augmented(), 4, shuffle=True)) as loader:
        batches = iter(loader)
        next(batches), next(batches)
        state = loader.state_dict()
    with taas.register(other()) as loader:
        loader.load_state_dict(state)
        with pytest.raises(ValueError, match="either the dataset, the batch size or the seed is another one"):
            list(loader)
