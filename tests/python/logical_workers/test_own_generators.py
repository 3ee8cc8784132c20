"""Random generators of a loader's own code, and streams that are read again: the same draws, whoever makes a batch."""

import functools
import random

import numpy
import pytest
import taas
import torch
from conftest import equal, loop, registered_loop, seed
from own_datasets import Numbers
from taas.code import own_generators
from taas.code.recipe import recipe_of
from taas.runtime import events
from torch.utils.data import DataLoader, IterableDataset


class Unseeded(IterableDataset):
    """Draws from generators that nobody has seeded."""

    def __init__(self, make):
        self.make = make

    def __iter__(self):
        draw = self.make()
        for row in range(40):
            yield row, draw()


def of_torch():
    torch.seed()
    return lambda: float(torch.rand(()))


def of_random():
    random.seed()
    return random.random


KINDS = [
    lambda: random.Random().random,
    lambda: numpy.random.default_rng().random,
    lambda: numpy.random.RandomState().rand,
    lambda: numpy.random.Generator(numpy.random.Philox()).random,
    of_torch,
    of_random,
]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    "make", KINDS, ids=["Random", "default_rng", "RandomState", "Philox", "torch.seed", "random.seed"]
)
def test_a_stream_that_nobody_seeded_goes_on_where_a_worker_died(make, workers, data_workers):
    def loader():
        return DataLoader(Unseeded(make), 4, num_workers=workers, collate_fn=list)

    undisturbed = registered_loop(loader, data_workers, 1, epochs=2)
    assert len({draw for batch in undisturbed for _, draw in batch}) > 40  # another epoch, another stream
    run = data_workers(2)
    seed()
    seen = []
    with taas.register(loader()) as registered:
        for batch in (batch for _ in range(2) for batch in registered):
            seen.append(batch)
            if len(seen) == 4:
                run.replace(0), run.replace(1)
    assert seen == undisturbed


def test_generators_without_a_seed_stay_so_in_the_training_program(data_workers):
    data_workers(1)
    drawn = []
    for _ in range(2):
        seed()
        with taas.register(DataLoader(Numbers(), 4)) as loader:
            loop(loader)
        drawn.append((random.Random().random(), numpy.random.default_rng().random()))
    assert drawn[0][0] != drawn[1][0] and drawn[0][1] != drawn[1][1]


class Augments(Numbers):
    """Draws from generators of its own; `order` is drawn once, when it is first needed."""

    order = None
    late = None

    def __init__(self, size=24):
        super().__init__(size)
        self.image, self.mask = numpy.random.default_rng(5), numpy.random.default_rng(5)
        self.others = [random.Random(5), numpy.random.RandomState(5), torch.Generator().manual_seed(5)]

    def __getitem__(self, index):
        if self.order is None:
            self.order = self.image.permutation(24), self.mask.permutation(24)
            self.late = numpy.random.default_rng(7)
        of_torch = float(torch.rand((), generator=self.others[2]))
        return (
            index,
            self.order[0][index],
            self.image.random(),
            self.mask.random(),
            self.late.random(),
            self.others[0].random(),
            self.others[1].rand(),
            of_torch,
            DRAWN.random(),
        )


DRAWN = random.Random(8)


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.gate)])
def test_draws_of_a_dataset_of_its_own_do_not_depend_on_who_makes_a_batch(workers, data_workers):
    def make():
        return DataLoader(Augments(), 4, num_workers=workers, collate_fn=list)

    once = registered_loop(make, data_workers, 1, epochs=2)
    assert all(registered_loop(make, data_workers, count, epochs=2) == once for count in (2, 4))
    samples = [sample for batch in once for sample in batch]
    assert all(sample[2] == sample[3] for sample in samples)  # image and mask are augmented alike
    assert len({sample[2] for sample in samples}) == len({sample[4] for sample in samples}) == 48
    assert [sample[:2] for sample in samples] == [sample[:2] for sample in loop(make(), 2) for sample in sample]


@pytest.mark.parametrize("make", [lambda: Augments(), lambda: Numbers()])
def test_generators_of_a_dataset_are_told_of_once_and_stay_as_they_are(make, data_workers, monkeypatch):
    run = data_workers(1)
    monkeypatch.setattr(events, "_said", set())
    dataset, before = make(), make()
    loop(taas.register(DataLoader(dataset, 4, collate_fn=list)), 2)
    has_some = hasattr(dataset, "image")
    assert len([line for line in run.remarks() if "its dataset has random generators of its own" in line]) == has_some
    assert not has_some or dataset.others[0].getstate() == before.others[0].getstate()


@pytest.mark.parametrize(
    "drawing",
    [
        lambda own: own.random,
        lambda own: functools.partial(own.random),
        lambda own: functools.partialmethod(lambda _, other: other.random(), own),
        lambda own: staticmethod(own.random),
    ],
)
def test_generators_are_found_by_their_methods(drawing):
    own = random.Random(3)
    dataset = type("Draws", (Numbers,), {"draw": drawing(own), "__getitem__": lambda self, index: self.draw()})()
    assert own_generators.found_in(recipe_of(DataLoader(dataset))) == [own]


class FromTheSystem(IterableDataset):
    """What nobody can read again."""

    def __iter__(self):
        generator = torch.Generator()
        generator.seed()
        yield from torch.randint(1000, (60,), generator=generator).tolist()


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.gate)])
def test_a_stream_that_cannot_be_read_again_ends_the_loop_with_a_line(workers, data_workers):
    data_workers(2)
    with taas.register(DataLoader(FromTheSystem(), 2, num_workers=workers)) as loader:
        iterator = iter(loader)
        next(iterator)
        state = loader.state_dict()
        loader.load_state_dict(state)
        with pytest.raises(RuntimeError, match="this stream gives other samples .*: seed its generators") as raised:
            loop(loader)
    assert "\n" not in str(raised.value)


class Sentences(IterableDataset):
    """The same text, as one object or as two."""

    known = {}

    def __iter__(self):
        for row in range(40):
            text = Sentences.known.setdefault(row, f"text {row}")
            yield [text, "".join(["text ", str(row)])] * 80


@pytest.mark.parametrize("workers", [0, 2])
def test_a_stream_of_equal_objects_is_the_same(workers, data_workers):
    data_workers(1)
    with taas.register(DataLoader(Sentences(), 2, num_workers=workers, collate_fn=list)) as loader:
        iterator = iter(loader)
        had = [next(iterator) for _ in range(3)]
        loader.load_state_dict(loader.state_dict())
        assert equal(had + loop(loader), loop(DataLoader(Sentences(), 2, num_workers=workers, collate_fn=list)))
