"""Data workers give what the plain loader gives, and leave the program's random states as that one would."""

import warnings

import pytest
import taas
import torch
from conftest import as_with_one, equal, registered_loop, seed, states
from own_datasets import (
    Augmented,
    Drawn,
    Eager,
    Endless,
    InOneGo,
    Lazy,
    Nested,
    Numbers,
    Offset,
    Sharded,
    doubled,
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
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

warnings.filterwarnings("ignore", message="This DataLoader will create")

LOADERS = {
    "sequential": lambda: DataLoader(numbers, 8),
    "shuffled": lambda: DataLoader(numbers, 8, shuffle=True),
    "shuffled by a generator": lambda: DataLoader(numbers, 8, shuffle=True, generator=generator()),
    "shuffled, batches without rest": lambda: DataLoader(Numbers(96), 8, shuffle=True, generator=generator()),
    "workers": lambda: DataLoader(numbers, 8, shuffle=True, num_workers=2),
    "workers by a generator": lambda: DataLoader(numbers, 8, shuffle=True, num_workers=2, generator=generator()),
    "persistent": lambda: DataLoader(
        numbers, 8, shuffle=True, num_workers=2, persistent_workers=True, generator=generator()
    ),
    "prefetch": lambda: DataLoader(numbers, 8, sampler=Lazy(), num_workers=1, prefetch_factor=5),
    "drop_last": lambda: DataLoader(numbers, 8, drop_last=True),
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
    "weights": lambda: DataLoader(numbers, 8, sampler=WeightedRandomSampler([1.0] * 103, 50)),
    "distributed": lambda: DataLoader(numbers, 8, sampler=DistributedSampler(numbers, 3, 1)),
    "list of batches": lambda: DataLoader(numbers, batch_sampler=[[1, 2], [3], [4, 5, 6]]),
    "one-time batches": lambda: DataLoader(numbers, batch_sampler=(batch for batch in ([1, 2], [3]))),
    "batch sampler": lambda: DataLoader(numbers, batch_sampler=BatchSampler(SequentialSampler(numbers), 5, True)),
    "nested": lambda: DataLoader(Nested(), 8),
    "all at once": lambda: DataLoader(InOneGo(), 8),
    "collate_fn": lambda: DataLoader(numbers, 8, collate_fn=doubled),
    "local collate_fn": lambda: DataLoader(numbers, 8, collate_fn=lambda samples: [sample[1] for sample in samples]),
    "tensors": lambda: DataLoader(TensorDataset(torch.arange(20.0).view(10, 2), torch.arange(10)), 4),
    "subset of a dataset": lambda: DataLoader(Subset(numbers, range(5, 50)), 8, shuffle=True),
    "worker_init_fn": lambda: DataLoader(Offset(), 8, num_workers=3, worker_init_fn=set_offset),
    "iterable": lambda: DataLoader(Sharded(), 4),
    "iterable, workers": lambda: DataLoader(Sharded(), 4, num_workers=3),
    "iterable, drop_last": lambda: DataLoader(Sharded(), 4, num_workers=3, drop_last=True),
    "iterable, no batches": lambda: DataLoader(Sharded(), None, num_workers=2),
}
IN_THE_GATE = ("no batches", "lazy sampler, workers")


def watched(loader, register):
    """Three epochs, the second one left early, in a program that draws random numbers between the batches."""
    seed()
    if register:
        taas.register(loader)
    seen = []
    for epoch in range(3):
        for number, batch in enumerate(loader):
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


def test_an_endless_sampler_is_drawn_no_further_than_is_useful(data_workers):
    def first(loader):
        seed()
        return [batch for _, batch in zip(range(30), loader)], states()

    def make():
        return DataLoader(numbers, 8, sampler=Endless())

    data_workers(1)
    with taas.register(make()) as loader:
        assert equal(first(loader), first(as_with_one(make())))


@pytest.mark.parametrize(
    "make",
    [
        lambda: DataLoader(Augmented(), 8, shuffle=True),
        lambda: DataLoader(Drawn(), 4),
        pytest.param(lambda: DataLoader(Augmented(), 8, shuffle=True, num_workers=3), marks=pytest.mark.gate),
        pytest.param(lambda: DataLoader(Drawn(), 4, num_workers=3), marks=pytest.mark.gate),
    ],
)
def test_random_augmentation_is_the_same_for_any_number_of_workers(make, data_workers):
    of_one = registered_loop(make, data_workers, 1, epochs=2)
    assert not equal(of_one[:2], of_one[len(of_one) // 2 :][:2]), "epochs must differ"
    for count in (2, 4):
        assert equal(registered_loop(make, data_workers, count, epochs=2), of_one), f"{count} workers"


@pytest.mark.gate
def test_set_epoch_is_obeyed(data_workers):
    data_workers(1)

    def epochs(register):
        loader = DataLoader(numbers, 8, sampler=DistributedSampler(numbers, 2, 0))
        if register:
            taas.register(loader)
        seen = []
        for epoch in (0, 1, 2, 5, 5):
            loader.sampler.set_epoch(epoch)
            seen += list(loader)
        return seen

    assert equal(epochs(True), epochs(False))


@pytest.mark.gate
def test_a_model_with_dropout_trains_to_the_same_weights(data_workers):
    def trained(count):
        data_workers(count)
        seed()
        model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1))
        optimizer = torch.optim.SGD(model.parameters(), 1e-4)
        loader = DataLoader(numbers, 8, shuffle=True)
        loader = taas.register(loader) if count else as_with_one(loader)
        for _ in range(2):
            for values, labels in loader:
                optimizer.zero_grad()
                (model(values.flatten(1)).squeeze(1) - labels).square().mean().backward()
                optimizer.step()
        return [parameter.detach() for parameter in model.parameters()]

    plain = trained(0)
    assert all(equal(trained(count), plain) for count in (1, 3))
