"""How the shards of an iterable dataset are dealt over ranks, which loop over it in turn in this process."""

import itertools

import pytest
import taas
import torch
from conftest import seed
from taas.order import sharing
from taas.order.order import ShardOrder
from taas.order.seeds import Seeds
from taas.order.task import Dealing
from taas.sending.recipe import recipe_of
from taas.worker.prepared_order import of_ranks
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Rows(IterableDataset):
    """Numbers in an order that is drawn, with noise; each logical worker has a shard. Some of them cannot be read."""

    def __init__(self, length, unreadable=()):
        self.length, self.unreadable = length, unreadable

    def __iter__(self):
        mine = range(self.length)[get_worker_info().id :: get_worker_info().num_workers]
        return map(self.read, [mine[place] for place in torch.randperm(len(mine)).tolist()])

    def read(self, number):
        if number in self.unreadable:
            raise ValueError(f"row {number}")
        return number, torch.rand(2)


class Together:
    """A store for ranks that are in one process."""

    def __init__(self):
        self.values = {}

    def set(self, key, value):
        self.values[key] = value

    def get(self, key):
        return self.values[key].encode()

    def wait(self, keys, timeout):
        assert all(key in self.values for key in keys)

    def compare_set(self, key, expected, value):
        return self.values.setdefault(key, value).encode()

    def delete_key(self, key):
        self.values.pop(key, None)


@pytest.fixture
def dealt(data_workers, monkeypatch):
    """What each of so many ranks has of the loaders that `make` makes. They are not seeded alike."""
    store = Together()
    monkeypatch.setattr("taas.order.common_order.meeting_place", lambda purpose: store)
    monkeypatch.setattr("taas.order.common_order._shared_before", itertools.repeat(0))

    def shares(make, ranks, left_at=None):
        store.values.clear()
        monkeypatch.setenv("WORLD_SIZE", str(ranks))
        shares.run = data_workers(2, world_size=ranks)
        found = []
        for rank in range(ranks):
            monkeypatch.setenv("RANK", str(rank))
            seed(rank)
            with taas.register(make(), shared=True) as loader:
                found.append([*batches_of(loader, left_at)])
        return found

    return shares


def batches_of(loader, left_at):
    """Its numbers and its noise; and what is raised in place of a batch. From there on by another loop."""
    batches = iter(loader)
    for place in itertools.count(1):
        try:
            numbers, noise = next(batches)
            yield torch.as_tensor(numbers).reshape(-1).tolist(), noise.tolist()
        except ValueError as error:
            yield [str(error)], None
        except StopIteration:
            return
        if place == left_at:
            loader.load_state_dict(loader.state_dict())
            batches = iter(loader)


def numbers_of(shares):
    return [[numbers for numbers, _ in share] for share in shares]


@pytest.mark.parametrize("workers", [0, 2, 3])
@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.gate), 4])
def test_nothing_is_lost_and_nobody_has_a_batch_more(ranks, workers, dealt):
    for samples in (ranks * max(1, workers), 23, 41):
        shares = numbers_of(dealt(lambda: DataLoader(Rows(samples), 3, num_workers=workers), ranks))
        assert sorted(itertools.chain(*itertools.chain(*shares))) == list(range(samples))
        assert len({len(share) for share in shares}) == 1
        assert all(0 < len(numbers) <= 3 for share in shares for numbers in share)


@pytest.mark.gate
def test_batches_stay_as_they_are_while_they_come_out_even(dealt):
    make = lambda: DataLoader(Rows(12), 3)  # noqa: E731
    (whole,) = dealt(make, 1)
    assert dealt(make, 2) == [whole[::2], whole[1::2]]


@pytest.mark.parametrize(
    "make, sizes",
    [
        pytest.param(lambda: DataLoader(Rows(23), 3, drop_last=True), [[3, 3, 3]] * 2, marks=pytest.mark.gate),
        (lambda: DataLoader(Rows(0), 3, num_workers=2), [[], []]),
        (lambda: DataLoader(Rows(5), 1), [[1, 1, 1], [1, 1]]),
        (lambda: DataLoader(Rows(5), None), [[1, 1, 1], [1, 1]]),
    ],
    ids=["the rest is dropped", "nothing", "not divisible", "one by one"],
)
def test_what_cannot_be_divided_goes_to_the_first_ranks(make, sizes, dealt):
    shares = numbers_of(dealt(make, 2))
    assert [[len(numbers) for numbers in share] for share in shares] == sizes
    assert len({*itertools.chain(*itertools.chain(*shares))}) == sum(map(sum, sizes))
    said = [line for line in dealt.run.remarks() if "rank 1 and those behind it get one batch less" in line]
    assert len(said) == (len(sizes[0]) > len(sizes[1]))


@pytest.mark.gate
def test_a_sample_that_cannot_be_read_is_raised_in_one_rank_and_the_others_go_on(dealt):
    shares = numbers_of(dealt(lambda: DataLoader(Rows(24, unreadable=(11,)), 3), 2))
    assert sum(share.count(["row 11"]) for share in shares) == 1
    read = [*itertools.chain(*itertools.chain(*shares))]
    assert len(read) == len(set(read)) >= 21 and 11 not in read


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.gate)])
def test_a_loop_that_begins_in_the_middle_gives_the_same(workers, dealt):
    make = lambda: DataLoader(Rows(41), 3, num_workers=workers)  # noqa: E731
    assert dealt(make, 2, left_at=3) == dealt(make, 2)


@pytest.mark.parametrize("lengths", [pytest.param((23, 24), marks=pytest.mark.gate), (0, 1), (6, 60)])
def test_ranks_that_read_other_samples_are_told_so(lengths, dealt):
    of_ranks = iter(lengths)
    with pytest.raises(RuntimeError, match="rank 1 reads other samples of .* than rank 0.*gives each rank a part alre"):
        dealt(lambda: DataLoader(Rows(next(of_ranks)), 3), 2)


@pytest.mark.parametrize("workers", [0, 2])
def test_what_is_prepared_for_a_rank_is_what_is_dealt_to_it(workers):
    loader = DataLoader(Rows(24), 3, num_workers=workers)
    sharing.note(loader, True)
    for rank, prepared in enumerate(of_ranks(loader, 4, 2)()):
        order = ShardOrder(recipe_of(loader), Seeds(torch.initial_seed(), 0, 4, 0), Dealing(rank, 2))
        tasks = [next(prepared) for _ in range(4)]
        assert [task.to_bytes() for task in tasks] == [order.next().to_bytes() for _ in range(4)]
        shards = max(1, workers)
        assert {task.place(shards) for task in tasks} == set(range(rank * shards, (rank + 1) * shards))


class Sized(Rows):
    def __len__(self):
        return self.length


def test_its_length_is_that_of_the_rank(data_workers, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("RANK", "1")
    data_workers(1, world_size=4)
    loader = DataLoader(Sized(41), batch_size=2)
    with taas.register(loader, shared=True):
        assert len(loader) == 6
    assert len(loader) == 21
