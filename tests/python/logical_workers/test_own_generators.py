"""Random generators of a loader's own code, and streams that are read again: the same draws, whoever makes a batch."""

import random

import numpy
import pytest
import taas
import torch
from conftest import loop, registered_loop
from own_datasets import Numbers
from taas.sending.recipe import recipe_of
from taas.order.order import ShardOrder
from taas.order.seeds import Seeds
from taas.order.task import Facts
from taas.runtime import events
from taas.worker.digest import chained
from torch.utils.data import DataLoader, IterableDataset


class Augments(Numbers):
    """Draws from generators of its own; `order` is drawn once, when it is first needed."""

    order = None

    def __init__(self, size=24):
        super().__init__(size)
        self.image, self.mask = numpy.random.default_rng(5), numpy.random.default_rng(5)
        self.others = [random.Random(5), numpy.random.RandomState(5), torch.Generator().manual_seed(5)]

    def __getitem__(self, index):
        if self.order is None:
            self.order = self.image.permutation(24), self.mask.permutation(24)
        of_torch = float(torch.rand((), generator=self.others[2]))
        return (
            index,
            self.order[0][index],
            self.image.random(),
            self.mask.random(),
            self.others[0].random(),
            self.others[1].rand(),
            of_torch,
        )


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.gate)])
def test_draws_of_a_dataset_of_its_own_do_not_depend_on_who_makes_a_batch(workers, data_workers):
    def make():
        return DataLoader(Augments(), 4, num_workers=workers, collate_fn=list)

    once = registered_loop(make, data_workers, 1, epochs=2)
    assert all(registered_loop(make, data_workers, count, epochs=2) == once for count in (2, 4))
    samples = [sample for batch in once for sample in batch]
    assert all(sample[2] == sample[3] for sample in samples)  # image and mask are augmented alike
    assert len({sample[2] for sample in samples}) == 48
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


class Steps(IterableDataset):
    def __iter__(self):
        return iter(range(40))


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


def large(samples):
    """So that not all of them are made at once."""
    return *samples, torch.zeros(1 << 15)


class Lines(IterableDataset):
    """Of a file that others may write."""

    def __init__(self, path):
        self.path = path

    def __iter__(self):
        yield from self.path.read_text().split()


@pytest.mark.parametrize("change", [lambda lines: lines[:2], lambda lines: ["other", *lines[1:]]])
@pytest.mark.parametrize("how", ["dies", "resumes"])
def test_a_source_that_was_changed_is_noticed(change, how, data_workers, tmp_path):
    path, lines = tmp_path / "lines", [f"line {row}".replace(" ", "_") for row in range(80)]
    path.write_text(" ".join(lines))
    run = data_workers(1, buffer_bytes=1 << 20)
    with taas.register(DataLoader(Lines(path), 1, num_workers=1, collate_fn=large)) as loader:
        batches = iter(loader)
        seen = [next(batches)[0] for _ in range(3)]
        path.write_text(" ".join(change(lines)))
        if how == "dies":
            run.replace(0)
        else:
            loader.load_state_dict(loader.state_dict())
            batches = iter(loader)
        with pytest.raises(RuntimeError, match="this stream gives other samples when it is read again"):
            seen += [batch[0] for batch in batches]
    assert seen == lines[: len(seen)]


def test_a_state_within_a_stream_is_for_as_many_workers(data_workers):
    data_workers(1)
    with taas.register(DataLoader(Steps(), 4, num_workers=2)) as loader:
        next(iter(loader))
        state = loader.state_dict()
    with taas.register(DataLoader(Steps(), 4, num_workers=3)) as loader:
        loader.load_state_dict(state)
        with pytest.raises(ValueError, match="over 2 shards of a stream, and now there are 3: load it with num_w"):
            iter(loader)


def test_what_a_rank_compares_of_a_stream():
    compared = []
    recipe = recipe_of(DataLoader(Steps()))
    order = ShardOrder(recipe, Seeds(1, 0, 0, 0), compare=lambda *what: compared.append(what))
    tasks = [order.next() for _ in range(6)]
    for task, facts in zip(tasks, [Facts(0, 1, 4), None, Facts(7, 8, 4), Facts(8, 8, 0), Facts(8, 8, 0)]):
        order.take()
        order.delivered(task, facts)  # behind a batch that raised it is not known what the shard has given
    assert [(digest, is_end) for _, digest, is_end in compared] == [(1, False), (8, False), (8, True)]
    order.take()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="gives other samples"):
            order.delivered(tasks[5], Facts(9, 9, 4))
    position = {key: value for key, value in order.position().items() if key != "chains"}
    with pytest.raises(ValueError, match="another release"):
        order.skip_to(position)


class Point:
    def __init__(self, value):
        self.value = value


def structures(number):
    """With bytes between the fields that mean nothing."""
    array = numpy.empty(3, numpy.dtype([("a", "i1"), ("b", "f8")], align=True))
    array["a"], array["b"] = number, number
    return array


def of_a_local_class(number):
    class Local(Point):
        pass

    return Local(number)


WHATS = [
    lambda number: number,
    lambda number: [f"text {number}", None, {"a": (number, 1.5)}],
    lambda number: torch.arange(6).view(2, 3) + number,
    lambda number: torch.arange(12.0)[::2] + number,
    lambda number: torch.full((2, 2), number, dtype=torch.bfloat16),
    lambda number: torch.nn.Parameter(torch.tensor([float(number)])),
    lambda number: torch.eye(3).mul(number + 1).to_sparse(),
    lambda number: torch.nested.nested_tensor([torch.full((2,), float(number)), torch.zeros(3)]),
    lambda number: torch.quantize_per_tensor(torch.tensor([float(number)]), 0.1, 0, torch.qint8),
    lambda number: numpy.arange(6).reshape(2, 3).T + number,
    lambda number: numpy.array([number, "text"], object),
    lambda number: numpy.longdouble(number) + numpy.zeros(3, numpy.longdouble),
    lambda number: [Point(number)],
    structures,
    of_a_local_class,
]


@pytest.mark.parametrize("make", WHATS)
def test_digests_of_equal_values_are_equal(make):
    one, other = chained(5, [make(1), make(1)]), chained(5, [make(1), make(2)])
    assert one == chained(5, [make(1), make(1)]) == chained(5, [make(1)] * 2)
    assert len({one, other, chained(6, [make(1), make(1)])}) == 3


class Unopened(IterableDataset):
    def __iter__(self):
        raise FileNotFoundError("shards")


def fails(worker):
    raise FileNotFoundError("shards")


@pytest.mark.parametrize("dataset, initialise", [(Unopened(), None), (Steps(), fails)])
def test_a_stream_that_cannot_be_begun_is_skipped_once(dataset, initialise, data_workers):
    run = data_workers(1, on_error="skip")
    with taas.register(DataLoader(dataset, 2, num_workers=2, worker_init_fn=initialise)) as loader:
        assert loop(loader) == []
    assert len([line for line in run.remarks() if "is skipped" in line]) == 2


class Scarce(IterableDataset):
    """Once there is no memory in one process: when both have given something."""

    def __init__(self, path):
        self.path = path

    def __iter__(self):
        for row in range(20):
            if row == 12 and not self.path.exists():
                self.path.touch()
                raise MemoryError
            yield row, torch.rand(())


def test_a_stream_goes_on_where_there_was_no_memory(data_workers, tmp_path):
    """Another data worker makes the batch, and who had no memory begins the shard anew."""

    def make():
        return DataLoader(Scarce(tmp_path / "failed"), 2, num_workers=2, collate_fn=list)

    seen = registered_loop(make, data_workers, 2)
    assert (tmp_path / "failed").exists() and seen == registered_loop(make, data_workers, 2)
    assert [row for batch in seen[::2] for row, _ in batch] == [*range(20)]
