"""One way of objects.py: `objects_rank.py batches_of_lists taas`. Prints a line of JSON."""

import contextlib
import hashlib
import json
import statistics
import sys
import time

import contenders
import taas
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, get_worker_info

BATCHES = 300
SINGLES = 12_000
WARM_UP = 60
LOOPS = 6


class Objects(Dataset):
    """Samples of a tokenized corpus: `kind` says in which form."""

    def __init__(self, kind: str):
        self.kind = kind

    def __len__(self):
        return 32 * BATCHES

    def __getitem__(self, index):
        if self.kind == "tensors":
            return torch.arange(index, index + 512)
        if self.kind == "lists":
            return list(range(index, index + 512))
        words = [f"word{(index * 7 + place) % 5000}" for place in range(128)]
        return (
            words
            if self.kind == "texts"
            else {"id": index, "words": words, "spans": [(place, place + 4) for place in range(64)]}
        )


class Streamed(IterableDataset):
    """Small samples one after the other.

    Each batch is made by the worker that made the one before it in its part of the stream.
    """

    def __iter__(self):
        worker = get_worker_info()
        for index in range(worker.id, 32 * BATCHES, worker.num_workers):
            yield torch.arange(index, index + 16)


class Held(Dataset):
    """What the training process holds: `kind` says how much."""

    def __init__(self, kind: str):
        self.names = [
            (f"train/{index % 1000}/{index}.jpg", index % 1000)
            for index in range(1_280_000 if kind == "names" else 100)
        ]
        self.data = torch.zeros(50_000_000 if kind == "tensors_200_mb" else 100)

    def __len__(self):
        return 64

    def __getitem__(self, index):
        return self.data[index] + self.names[index][1]


def resident() -> int:
    return int(open("/proc/self/statm", encoding="utf-8").read().split()[1]) * 4096


def batches(loader, count: int) -> dict:
    """Rate behind the first of so many batches, and by how much this process grows in the second half."""
    digest, half = hashlib.blake2b(digest_size=8), 0
    for number, batch in enumerate(loader):
        digest.update(repr(batch[0].tolist() if torch.is_tensor(batch[0]) else batch[0]).encode())
        if number == WARM_UP:
            began = time.perf_counter()
        if number == count // 2:
            half = resident()
    took = time.perf_counter() - began
    return {
        "batches_per_second": (count - 1 - WARM_UP) / took,
        "grown_bytes": max(0, resident() - half),
        "digest": digest.hexdigest(),
    }


def starts(loader) -> dict:
    """From iter() to the first batch, in the loops behind the first one."""
    took, digest, before = [], hashlib.blake2b(digest_size=8), 0
    for loop in range(LOOPS):
        began = time.perf_counter()
        for number, batch in enumerate(loader):
            if number == 0 and loop > 0:
                took.append(time.perf_counter() - began)
            digest.update(batch.numpy().tobytes())
        before = before or resident()
    return {
        "start_seconds": statistics.median(took),
        "grown_bytes": max(0, resident() - before),
        "digest": digest.hexdigest(),
    }


def made(test: str, kind: str) -> DataLoader:
    if test == "start":
        return DataLoader(Held(kind), 8, num_workers=2)
    if kind == "one_sample":
        return DataLoader(TensorDataset(torch.arange(4.0 * SINGLES).view(SINGLES, 4)), 1)
    if kind == "a_stream":
        return DataLoader(Streamed(), 32, num_workers=2)
    return DataLoader(Objects(kind), 32, num_workers=2, collate_fn=list)


def main():
    what, way = sys.argv[1:]
    test, _, kind = what.replace("batches_of_", "batches ").replace("start_with_", "start ").partition(" ")
    loader = made(test, kind)
    count = SINGLES if kind == "one_sample" else BATCHES
    with contextlib.ExitStack() as stack:
        if way == "taas":
            stack.enter_context(contenders.workers_here(max(1, loader.num_workers)))
            stack.enter_context(taas.register(loader))
        print(json.dumps(batches(loader, count) if test == "batches" else starts(loader)))


if __name__ == "__main__":
    main()
