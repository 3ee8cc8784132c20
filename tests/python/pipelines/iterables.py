"""Iterable datasets: sharded by worker and by rank, buffered, endless, in the styles of webdataset and HF datasets."""

import itertools
import os
import random

import torch
import torch.distributed as dist
from differential.pipeline import pipeline
from own_datasets import Sharded as Worked
from torch.utils.data import ChainDataset, DataLoader, IterableDataset, get_worker_info


@pipeline(num_workers=(0, 3))
def sharded_without_the_rest(workers):
    return DataLoader(Worked(40), 4, drop_last=True, num_workers=workers)


@pipeline(num_workers=(2,))
def chained_with_persistent_workers(workers):
    return DataLoader(ChainDataset([Worked(25), Worked(19)]), 4, num_workers=workers, persistent_workers=True)


def shard_of(info):
    dataset = info.dataset
    length = -(-len(dataset.rows) // info.num_workers)
    dataset.rows = dataset.rows[info.id * length : (info.id + 1) * length]


class Rows(IterableDataset):
    def __init__(self):
        self.rows = list(range(40))

    def __iter__(self):
        return iter(self.rows)


@pipeline(num_workers=(2, 3))
def sharded_by_worker_init_fn(workers):
    return DataLoader(Rows(), 4, num_workers=workers, worker_init_fn=lambda _: shard_of(get_worker_info()))


def of_this_worker(rows):
    info = get_worker_info()
    return itertools.islice(rows, info.id, None, info.num_workers)


class RankedByVariables(Worked):
    """webdataset's split_by_node and split_by_worker, one after the other."""

    def __iter__(self):
        rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        return of_this_worker(range(rank, self.size, world_size))


def be_rank(rank, world_size):
    os.environ.update(
        RANK=str(rank), WORLD_SIZE=str(world_size), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(world_size)
    )


@pipeline()
def sharded_by_variables_of_the_rank(workers):
    be_rank(1, 3)
    return DataLoader(RankedByVariables(60), 4, num_workers=workers)


class RankedByGroup(Worked):
    """The same, as Megatron and HF's split_dataset_by_node have it."""

    def __iter__(self):
        rank, world_size = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
        return itertools.islice(super().__iter__(), rank, None, world_size)


def join_group(rank, world_size):
    from torch.testing._internal.distributed.fake_pg import FakeStore

    dist.init_process_group("fake", rank=rank, world_size=world_size, store=FakeStore())


@pipeline()
def sharded_by_the_process_group(workers):
    be_rank(1, 2)
    join_group(1, 2)
    return DataLoader(RankedByGroup(60), 4, num_workers=workers)


class Buffered(IterableDataset):
    """A shuffle buffer with a generator of its own, seeded by epoch and worker."""

    epoch = 0

    def __iter__(self):
        drawn = random.Random(self.epoch * 100 + get_worker_info().id)
        buffer = []
        for row in range(40):
            buffer.append(row)
            if len(buffer) == 10:
                yield buffer.pop(drawn.randrange(10))
        drawn.shuffle(buffer)
        yield from buffer


@pipeline(before_epoch=lambda loader, epoch: setattr(loader.dataset, "epoch", epoch))
def a_shuffle_buffer_by_epoch(workers):
    return DataLoader(Buffered(), 4, num_workers=workers)


class Forever(IterableDataset):
    def __iter__(self):
        return itertools.count(get_worker_info().id)


@pipeline(epochs=1)
def endless(workers):
    return DataLoader(Forever(), 4, num_workers=workers)


class Examples(IterableDataset):
    """HF's streaming datasets: map, filter and take build a chain that is run lazily."""

    def __init__(self, make):
        self.make = make

    def map(self, function):
        return Examples(lambda: map(function, self.make()))

    def filter(self, function):
        return Examples(lambda: filter(function, self.make()))

    def take(self, count):
        return Examples(lambda: itertools.islice(self.make(), count))

    def __iter__(self):
        return of_this_worker(self.make())


@pipeline()
def a_lazy_chain_of_lambdas(workers):
    rows = Examples(lambda: iter(range(100))).map(lambda number: {"ids": [number, number + 1], "text": f"row {number}"})
    return DataLoader(rows.filter(lambda row: row["ids"][0] % 3).take(30), 4, num_workers=workers)


class Packed(IterableDataset):
    """Language models: documents concatenated and cut into blocks; what is left is carried on."""

    def __iter__(self):
        left = []
        for document in range(20):
            left += [document] * (document % 7 + 3)
            while len(left) >= 8:
                yield torch.tensor(left[:8])
                left = left[8:]


@pipeline()
def packed_documents(workers):
    return DataLoader(Packed(), 2, num_workers=workers)


class WithALength(Worked):
    def __len__(self):
        return 100


@pipeline()
def a_length_that_is_not_true(workers):
    return DataLoader(WithALength(), 4, num_workers=workers)


class Fails(IterableDataset):
    def __iter__(self):
        yield from range(6)
        raise ValueError("the stream broke")


@pipeline(epochs=1, raises=True)
def a_stream_that_breaks(workers):
    return DataLoader(Fails(), 4, num_workers=workers)
