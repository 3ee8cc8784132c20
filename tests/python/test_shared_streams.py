"""How the shards of an iterable dataset are dealt over ranks, without ranks: tasks of all of them, made here."""

import itertools

import pytest
import taas
import torch
from conftest import joined
from taas.sending import batches
from taas.sending.by_value import OfMain
from taas.sending.recipe import recipe_of
from taas.sending.recipe_pickle import Arrived
from taas.order import sharing
from taas.order.common_order import CommonOrder, CommonStream, UnequalOrder
from taas.order.order import ShardOrder
from taas.order.seeds import Seeds
from taas.order.task import Dealing, Facts, Task, from_bytes
from taas.order import random_states
from taas.worker.making import Copies
from taas.worker.prepared_order import of_ranks
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

SEEDS = Seeds(7, 0, 0, 0)


class Rows(IterableDataset):
    """Numbers in an order that is drawn, with noise; each logical worker has a shard. Some of them cannot be read."""

    def __init__(self, length, unreadable=()):
        self.length, self.unreadable = length, unreadable

    def __iter__(self):
        info = get_worker_info()
        mine = range(self.length)[info.id :: info.num_workers] if info else range(self.length)
        order = torch.randperm(len(mine)).tolist()
        return (
            (self.read(mine[place]) for place in order)
            if not self.unreadable
            else Fragile(self, [mine[place] for place in order])
        )

    def read(self, number):
        return number, torch.rand(2)


class Fragile:
    """An iterator that goes on behind what it cannot read, as a generator does not."""

    def __init__(self, rows, numbers):
        self.rows, self.numbers = rows, iter(numbers)

    def __iter__(self):
        return self

    def __next__(self):
        number = next(self.numbers)
        if number in self.rows.unreadable:
            raise ValueError(f"row {number}")
        return self.rows.read(number)


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


def made(copies, task):
    """The facts, and the batch."""
    payload = joined(copies.copy_for(task).encoded(task))
    return Facts.at_end_of(payload), batches.decode(payload)


def loop_of_rank(loader, rank, ranks, stream=None, begin=0):
    """The rank's batches, and the numbers of samples that came with them. Only those from turn `begin` on are made."""
    recipe = recipe_of(loader)
    order = ShardOrder(recipe, SEEDS, Dealing(rank, ranks), stream.read if stream else None)
    copies = Copies(lambda: Arrived(recipe, [], OfMain({})))
    batches = []
    with random_states.kept():
        while True:
            try:
                task = order.next()
                order.take()
                if task.turn < begin:
                    order.delivered(task, None)
                    continue
                facts, batch = made(copies, from_bytes(task.to_bytes()))
            except StopIteration:
                return batches
            except ValueError as error:
                order.delivered(task, None)
                batches.append(str(error))
                continue
            order.delivered(task, facts)
            if facts.samples:
                batches.append((batch[0].tolist(), batch[1].tolist()))
                assert facts.samples == len(batch[0])


def dealt(loader, ranks):
    return [loop_of_rank(loader, rank, ranks) for rank in range(ranks)]


@pytest.mark.parametrize("workers", [0, 2, 3])
@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.gate), 4])
def test_nothing_is_lost_and_nobody_has_a_batch_more(ranks, workers):
    for samples in (ranks * max(1, workers), 23, 24, 41):
        shares = dealt(DataLoader(Rows(samples), batch_size=3, num_workers=workers), ranks)
        assert sorted(number for share in shares for numbers, _ in share for number in numbers) == list(range(samples))
        assert len({len(share) for share in shares}) == 1
        assert all(0 < len(numbers) <= 3 for share in shares for numbers, _ in share)


@pytest.mark.gate
def test_batches_stay_as_they_are_while_they_come_out_even():
    loader = DataLoader(Rows(12), batch_size=3)
    whole = [numbers for numbers, _ in loop_of_rank(loader, 0, 1)]
    first, second = dealt(loader, 2)
    assert [numbers for numbers, _ in first] == whole[::2] and [numbers for numbers, _ in second] == whole[1::2]


@pytest.mark.gate
def test_drop_last_leaves_out_what_does_not_come_out_even():
    shares = dealt(DataLoader(Rows(23), batch_size=3, drop_last=True), 2)
    assert [[len(numbers) for numbers, _ in share] for share in shares] == [[3, 3, 3], [3, 3, 3]]


def test_an_empty_stream_is_empty_in_all_ranks():
    assert dealt(DataLoader(Rows(0), batch_size=3, num_workers=2), 2) == [[], []]


def test_what_cannot_be_divided_goes_to_the_first_ranks(capfd):
    shares = dealt(DataLoader(Rows(5), batch_size=1), 2)
    assert [len(share) for share in shares] == [3, 2]
    assert "rank 1 and those behind it get one batch less" in capfd.readouterr().err


def test_samples_without_batches_are_dealt_one_by_one():
    loader = DataLoader(Rows(6), batch_size=None)
    recipe = recipe_of(loader)
    numbers = []
    for rank in range(2):
        copies = Copies(lambda: Arrived(recipe, [], OfMain({})))
        for turn in range(3):
            facts, (number, _) = made(copies, Task(SEEDS, turn, 0, turn=turn, dealt=Dealing(rank, 2)))
            assert facts.samples == 1
            numbers.append(number)
    assert sorted(numbers) == list(range(6))


@pytest.mark.gate
def test_a_sample_that_cannot_be_read_is_raised_in_one_rank_and_the_others_go_on():
    shares = dealt(DataLoader(Rows(24, unreadable=(11,)), batch_size=3), 2)
    assert sum(share.count("row 11") for share in shares) == 1
    read = [number for share in shares for batch in share if batch != "row 11" for number in batch[0]]
    assert len(read) == len(set(read)) and 11 not in read and len(read) >= 21


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.gate)])
def test_whoever_begins_in_the_middle_gives_the_same(workers):
    loader = DataLoader(Rows(41), batch_size=3, num_workers=workers)
    for rank in range(2):
        whole = loop_of_rank(loader, rank, 2)
        late = loop_of_rank(loader, rank, 2, begin=2)
        assert late == whole[2 * max(1, workers) :]


@pytest.mark.gate
def test_the_loop_that_all_ranks_agree_on_is_that_of_rank_0(monkeypatch):
    store, loader = Together(), DataLoader(Rows(4))
    monkeypatch.setattr("taas.order.common_order.meeting_place", lambda purpose: store)
    monkeypatch.setattr("taas.order.common_order._shared_before", iter([0, 0]))
    first, second = (CommonStream(Dealing(rank, 2), CommonOrder(loader, "rows", rank)) for rank in range(2))
    assert first.begin_loop(Seeds(5, 0, 1, 2)) == second.begin_loop(Seeds(6, 1, 3, 4)) == Seeds(5, 0, 1, 2)


@pytest.mark.gate
def test_ranks_that_read_other_samples_are_told_so(monkeypatch):
    store = Together()
    monkeypatch.setattr("taas.order.common_order.meeting_place", lambda purpose: store)
    for lengths, is_refused in (((23, 23), False), ((23, 24), True), ((0, 1), True), ((6, 60), True)):
        store.values.clear()
        monkeypatch.setattr("taas.order.common_order._shared_before", iter([0, 0]))
        found = []
        for rank, length in enumerate(lengths):
            loader = DataLoader(Rows(length), batch_size=3)
            stream = CommonStream(Dealing(rank, 2), CommonOrder(loader, "rows", rank))
            stream.begin_loop(SEEDS)
            try:
                loop_of_rank(loader, rank, 2, stream)
            except UnequalOrder as error:
                found.append(str(error))
        assert len(found) == is_refused
        assert (
            not found
            or "reads other samples of rows than rank 0" in found[0]
            and "gives each rank a part already" in found[0]
        )


@pytest.mark.parametrize("workers", [0, 2])
def test_what_is_prepared_for_a_rank_is_what_is_dealt_to_it(workers):
    loader = DataLoader(Rows(24), batch_size=3, num_workers=workers)
    sharing.note(loader, True)
    for rank, prepared in enumerate(of_ranks(loader, 4, 2)()):
        tasks = list(itertools.islice(prepared, 4))
        order = ShardOrder(recipe_of(loader), Seeds(torch.initial_seed(), 0, 4, 0), Dealing(rank, 2))
        assert [task.to_bytes() for task in tasks] == [order.next().to_bytes() for _ in range(4)]
        shards = max(1, workers)
        assert {task.place(shards) for task in tasks} == set(range(rank * shards, (rank + 1) * shards))


def test_its_length_is_that_of_the_rank(data_workers, monkeypatch):
    class Sized(Rows):
        def __len__(self):
            return self.length

    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("RANK", "1")
    data_workers(1, world_size=4)
    loader = DataLoader(Sized(41), batch_size=2)
    assert len(loader) == 21
    with taas.register(loader, shared=True):
        assert len(loader) == 6
    assert len(loader) == 21
