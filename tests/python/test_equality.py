"""Data workers give what the plain loader gives, and leave the program's random states as that one would."""

import itertools

import pytest
import taas
import torch
from conftest import as_with_one, equal, registered_loop, seed, states
from own_datasets import (
    Augmented,
    Drawn,
    Eager,
    Endless,
    Lazy,
    Numbers,
    Offset,
    Sharded,
    generator,
    numbers,
    set_offset,
)
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    TensorDataset,
)

LOADERS = {
    "sequential": lambda: DataLoader(numbers, 8),
    "shuffled": lambda: DataLoader(numbers, 8, shuffle=True),
    "shuffled by a generator": lambda: DataLoader(numbers, 8, shuffle=True, generator=generator()),
    "workers": lambda: DataLoader(numbers, 8, shuffle=True, num_workers=2),
    "workers by a generator": lambda: DataLoader(numbers, 8, shuffle=True, num_workers=2, generator=generator()),
    "persistent": lambda: DataLoader(
        numbers, 8, shuffle=True, num_workers=2, persistent_workers=True, generator=generator()
    ),
    "prefetch": lambda: DataLoader(numbers, 8, sampler=Lazy(), num_workers=1, prefetch_factor=5),
    "no batches": lambda: DataLoader(numbers, None),
    "no batches, sampler that draws at once": lambda: DataLoader(numbers, None, sampler=Eager()),
    "lazy sampler": lambda: DataLoader(numbers, 8, sampler=Lazy()),
    "lazy sampler, workers": lambda: DataLoader(numbers, 8, sampler=Lazy(), num_workers=2),
    "sampler that draws at once": lambda: DataLoader(numbers, 8, sampler=Eager()),
    "sampler that draws at once, workers": lambda: DataLoader(numbers, 8, sampler=Eager(), num_workers=1),
    "no batches, sampler that draws at once, workers": lambda: DataLoader(
        numbers, None, sampler=Eager(), num_workers=1
    ),
    "replacement": lambda: DataLoader(numbers, 8, sampler=RandomSampler(numbers, True, 100, generator())),
    "more than there are": lambda: DataLoader(numbers, 8, sampler=RandomSampler(numbers, False, 250, generator())),
    "subset": lambda: DataLoader(numbers, 8, sampler=SubsetRandomSampler(range(50), generator())),
    "distributed": lambda: DataLoader(numbers, 8, sampler=DistributedSampler(numbers, 3, 1)),
    "list of batches": lambda: DataLoader(numbers, batch_sampler=[[1, 2], [3], [4, 5, 6]]),
    "one-time batches": lambda: DataLoader(numbers, batch_sampler=(batch for batch in ([1, 2], [3]))),
    "batch sampler": lambda: DataLoader(numbers, batch_sampler=BatchSampler(SequentialSampler(numbers), 5, True)),
    "tensors": lambda: DataLoader(TensorDataset(torch.arange(20.0).view(10, 2), torch.arange(10)), 4),
    "endless": lambda: DataLoader(numbers, 8, sampler=Endless()),
    "no samples": lambda: DataLoader(Numbers(0), 8),
    "fewer than a batch": lambda: DataLoader(Numbers(3), 8, num_workers=2),
    "worker_init_fn": lambda: DataLoader(Offset(), 8, num_workers=3, worker_init_fn=set_offset),
    "iterable": lambda: DataLoader(Sharded(), 4),
    "iterable, workers": lambda: DataLoader(Sharded(), 4, num_workers=3),
    "iterable, no batches": lambda: DataLoader(Sharded(), None, num_workers=2),
}
IN_THE_GATE = ("no batches", "lazy sampler, workers", "distributed")


def watched(loader, register):
    """Three epochs, the second one left early, in a program that draws random numbers between the batches."""
    seed()
    if register:
        taas.register(loader)
    seen = []
    for epoch in range(3):
        getattr(loader.sampler, "set_epoch", id)(epoch // 2)
        for number, batch in enumerate(itertools.islice(loader, 110)):
            seen.append((batch, torch.rand(1)))
            if epoch == 1 and number == 2:
                break
        seen.append((states(), loader.generator and loader.generator.get_state()))
    if register:
        taas.unregister(loader)
    return seen


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.gate) if name in IN_THE_GATE else name for name in LOADERS]
)
def test_batches_and_random_states_are_the_plain_ones(name, data_workers):
    data_workers(2)
    assert equal(watched(LOADERS[name](), True), watched(as_with_one(LOADERS[name]()), False))


@pytest.mark.gate
@pytest.mark.parametrize(
    "make",
    [
        lambda: DataLoader(Augmented(), 8, shuffle=True, num_workers=3),
        lambda: DataLoader(Drawn(), 4, num_workers=3),
    ],
)
def test_random_augmentation_is_the_same_for_any_number_of_workers(make, data_workers):
    of_one = registered_loop(make, data_workers, 1, epochs=2)
    assert not equal(of_one[:2], of_one[len(of_one) // 2 :][:2]), "epochs must differ"
    for count in (2, 4):
        assert equal(registered_loop(make, data_workers, count, epochs=2), of_one), f"{count} workers"
