"""Iterable datasets: sharded by worker and by rank, buffered, endless, in the styles of webdataset and HF datasets."""

import io
import itertools
import json
import os
import random
import tarfile

import numpy
import torch
import torch.distributed as dist
from differential.pipeline import pipeline
from torch.utils.data import ChainDataset, DataLoader, IterableDataset, get_worker_info


class Worked(IterableDataset):
    """The tutorial's: each worker has its part, and the parts differ in length."""

    def __init__(self, size=40):
        self.size = size

    def __iter__(self):
        info = get_worker_info()
        worker, workers = (info.id, info.num_workers) if info else (0, 1)
        return iter(range(worker, self.size - 7 * worker, workers))


@pipeline(num_workers=(0, 2, 3))
def sharded_by_worker(workers):
    return DataLoader(Worked(), 4, num_workers=workers)


@pipeline(num_workers=(0, 3))
def sharded_without_the_rest(workers):
    return DataLoader(Worked(), 4, drop_last=True, num_workers=workers)


@pipeline(num_workers=(0, 2))
def sharded_one_by_one(workers):
    return DataLoader(Worked(), batch_size=None, num_workers=workers)


@pipeline(num_workers=(2,))
def sharded_with_persistent_workers(workers):
    return DataLoader(Worked(), 4, num_workers=workers, persistent_workers=True)


@pipeline(num_workers=(0, 2))
def not_sharded_at_all(workers):
    return DataLoader(ChainDataset([Worked(5), Worked(9)]), 2, num_workers=workers)


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


class RankedByVariables(Worked):
    """webdataset's split_by_node and split_by_worker, one after the other."""

    def __iter__(self):
        rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        info = get_worker_info()
        worker, workers = (info.id, info.num_workers) if info else (0, 1)
        return itertools.islice(itertools.islice(range(self.size), rank, None, world_size), worker, None, workers)


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
        drawn = random.Random(self.epoch * 100 + (get_worker_info().id if get_worker_info() else 0))
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


class BufferedByTorch(IterableDataset):
    def __iter__(self):
        for row in torch.randperm(30).tolist():
            yield row, random.random(), float(numpy.random.rand())


@pipeline(random=True)
def a_stream_without_a_seed(workers):
    return DataLoader(BufferedByTorch(), 4, num_workers=workers)


@pipeline(random=True, num_workers=(0, 3))
def a_stream_without_a_seed_one_by_one(workers):
    return DataLoader(
        BufferedByTorch(), batch_size=None, num_workers=workers, generator=torch.Generator().manual_seed(3)
    )


class Unseeded(IterableDataset):
    """A generator of its own that nobody has seeded."""

    def __iter__(self):
        info = get_worker_info()
        mine = numpy.arange(info.id if info else 0, 60, info.num_workers if info else 1)
        yield from numpy.random.default_rng().permutation(mine).tolist()


@pipeline(any_order=True, resumes=False)
def a_stream_that_nobody_seeded(workers):
    return DataLoader(Unseeded(), 4, num_workers=workers, collate_fn=list)


class Forever(IterableDataset):
    def __iter__(self):
        return itertools.count(get_worker_info().id if get_worker_info() else 0)


@pipeline(epochs=1, resumes=False)
def endless(workers):
    return DataLoader(Forever(), 4, num_workers=workers)


def tar_of(first):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for number in range(first, first + 6):
            for suffix, data in (("txt", f"text {number}".encode()), ("json", json.dumps({"label": number}).encode())):
                member = tarfile.TarInfo(f"{number:04}.{suffix}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    return file.getvalue()


class Tars(IterableDataset):
    """What webdataset does: shards to workers, members of a tar grouped by their names' beginnings."""

    def __init__(self):
        self.shards = [tar_of(first) for first in range(0, 30, 6)]

    def __iter__(self):
        info = get_worker_info()
        for shard in itertools.islice(self.shards, info.id if info else 0, None, info.num_workers if info else 1):
            with tarfile.open(fileobj=io.BytesIO(shard)) as tar:
                for key, members in itertools.groupby(tar, lambda member: member.name.split(".")[0]):
                    sample = {member.name.split(".")[1]: tar.extractfile(member).read() for member in members}
                    yield {"__key__": key, "txt": sample["txt"].decode(), **json.loads(sample["json"])}


@pipeline(num_workers=(0, 2, 3))
def tars_of_shards(workers):
    return DataLoader(Tars(), 4, num_workers=workers)


class Examples:
    """HF's streaming datasets: map, filter, take and shuffle build a chain that is run lazily."""

    def __init__(self, make):
        self.make = make

    def map(self, function):
        return Examples(lambda: map(function, self.make()))

    def filter(self, function):
        return Examples(lambda: filter(function, self.make()))

    def take(self, count):
        return Examples(lambda: itertools.islice(self.make(), count))


class Streaming(IterableDataset):
    def __init__(self, examples):
        self.examples = examples

    def __iter__(self):
        info = get_worker_info()
        return itertools.islice(self.examples.make(), info.id if info else 0, None, info.num_workers if info else 1)


@pipeline()
def a_lazy_chain_of_lambdas(workers):
    examples = Examples(lambda: iter(range(100))).map(
        lambda number: {"ids": [number, number + 1], "text": f"text {number}"}
    )
    return DataLoader(Streaming(examples.filter(lambda row: row["ids"][0] % 3).take(30)), 4, num_workers=workers)


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


@pipeline(epochs=1, resumes=False, raises=True)
def a_stream_that_breaks(workers):
    return DataLoader(Fails(), 4, num_workers=workers)


class CountsItsEpochs(IterableDataset):
    """Reshuffles by the number of times that it was iterated, which a new worker does not know."""

    def __init__(self):
        self.epoch = 0

    def __iter__(self):
        self.epoch += 1
        order = torch.randperm(30, generator=torch.Generator().manual_seed(self.epoch))
        yield from (int(number) + 100 * self.epoch for number in order)


@pipeline(resumes=False)
def a_stream_that_counts_its_epochs(workers):
    return DataLoader(CountsItsEpochs(), 4, num_workers=workers)
