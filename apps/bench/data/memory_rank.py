"""The program of memory.py: loops twice over a dataset in which each sample is a part of the whole memory."""

import json
import os
import sys

import numpy
import torch
from torch.utils.data import DataLoader, Dataset

PART = 1 << 20
EPOCHS = 2


class Parts(Dataset):
    """A part's sum: what a worker reads is large, what it gives is small."""

    def __init__(self, memory):
        self.memory = memory

    def __len__(self):
        return len(self.memory) // PART

    def __getitem__(self, index):
        return int(self.memory[index * PART : (index + 1) * PART].sum())


def memory_of(kind, size, folder):
    """So many bytes, the same in all ways."""
    values = numpy.tile(numpy.arange(251, dtype=numpy.uint8), size // 251 + 1)[:size]
    if kind == "tensor":
        return torch.from_numpy(values)
    if kind == "array":
        return values
    path = os.path.join(folder, "memory.bin")
    values.tofile(path)
    return numpy.memmap(path, numpy.uint8, "r")


def main():
    kind, way, size, workers, folder = sys.argv[1:]
    context = "spawn" if way.endswith("spawn") else "fork"
    loader = DataLoader(
        Parts(memory_of(kind, int(size), folder)), 4, num_workers=int(workers), multiprocessing_context=context
    )
    if way.startswith("taas"):
        import taas

        taas.register(loader)
    total = sum(int(batch.sum()) for _ in range(EPOCHS) for batch in loader)
    print(json.dumps({"sum": total}), flush=True)


if __name__ == "__main__":
    main()
