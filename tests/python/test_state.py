"""A loop that was interrupted goes on where it was: in the order, in the bytes, and in the random states."""

import io

import numpy
import pytest
import taas
import torch
from conftest import equal, loop, seed
from own_datasets import Augmented, Drawn, Eager, Numbers, generator, numbers
from torch.utils.data import DataLoader, Sampler

LOADERS = {
    "by a generator": lambda: DataLoader(Augmented(), 8, shuffle=True, generator=generator()),
    "persistent": lambda: DataLoader(Augmented(), 8, shuffle=True, num_workers=2, persistent_workers=True),
    "own sampler": lambda: DataLoader(Augmented(), 8, sampler=Eager(), num_workers=1),
    "stream": lambda: DataLoader(Drawn(), 4, num_workers=3),
}


def program(make, interrupted_at=None):
    """Three epochs; at a batch of the second one a checkpoint is written, and another process goes on from it."""
    seed()
    loader, seen = taas.register(make()), []
    for epoch in range(3):
        for number, batch in enumerate(loader):
            seen.append((batch, torch.rand(1)))
            if (epoch, number) == (1, interrupted_at):
                return seen + resumed(loader, make())
    taas.unregister(loader)
    return seen


def resumed(saved, loader):
    torch.save({"loader": saved.state_dict(), "random": torch.get_rng_state()}, file := io.BytesIO())
    taas.unregister(saved)
    of_numpy = numpy.random.get_state()
    seed(99)
    found = torch.load(io.BytesIO(file.getvalue()), weights_only=True)
    with taas.register(loader):
        loader.load_state_dict(found["loader"])
        torch.set_rng_state(found["random"])
        numpy.random.set_state(of_numpy)
        return [(batch, torch.rand(1)) for _ in range(2) for batch in loader]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.gate) if name == "stream" else name for name in LOADERS]
)
@pytest.mark.parametrize("at", [0, 3])
def test_resumed(name, at, data_workers):
    data_workers(2)
    assert equal(program(LOADERS[name], at), program(LOADERS[name]))


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
    state, seen = None, []
    for _ in range(2):
        seed()
        with taas.register(DataLoader(Augmented(), 8)) as loader:
            if state:
                loader.load_state_dict(state)
            else:
                loop(loader)
                state = loader.state_dict()
            seen.append(loop(loader))
    assert equal(*seen)


class EachFromTheProcess(Sampler):
    """Draws its next index from the generator that the program draws from as well."""

    def __iter__(self):
        for _ in range(40):
            yield int(torch.randint(len(Augmented()), ()))


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
        pytest.param(lambda: DataLoader(Numbers(102), 4, shuffle=True), marks=pytest.mark.gate),
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
