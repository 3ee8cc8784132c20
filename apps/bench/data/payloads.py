"""What is delivered: batches that one pass over ready bytes makes, so that delivery and hardly production is timed."""

import numpy
import torch

SHAPES = {
    "image": ((256, 3, 224, 224), torch.uint8),  # 38.5 MB
    "digits": ((64, 1, 28, 28), torch.float32),  # 200 KB
}
POOL = 4  # different batches, random, so that no codec and no cache of one page helps


def batch_bytes(kind: str) -> int:
    shape, dtype = SHAPES[kind]
    return torch.Size(shape).numel() * dtype.itemsize


def raw_pool(kind: str) -> list:
    random = numpy.random.default_rng(0)
    return [random.integers(0, 256, batch_bytes(kind), dtype=numpy.uint8) for _ in range(POOL)]


def ready_pool(kind: str) -> list:
    """What the batches look like: arrays of uint8, one dimension."""
    return [raw + 1 for raw in raw_pool(kind)]


class ReadyBatches(torch.utils.data.Dataset):
    """Item i is a whole batch, a new tensor each time.

    A DataLoader turns a tensor that it has sent once into shared memory for good. The pool is made where it is used and
    not sent.
    """

    def __init__(self, kind: str, count: int):
        self.kind, self.count, self._pool = kind, count, None

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if self._pool is None:
            self._pool = [torch.from_numpy(array) for array in raw_pool(self.kind)]
        shape, dtype = SHAPES[self.kind]
        return (self._pool[index % POOL] + 1).view(dtype).reshape(shape)

    def __getstate__(self):
        return {**self.__dict__, "_pool": None}


def loader(kind: str, count: int, **options) -> torch.utils.data.DataLoader:
    return torch.utils.data.DataLoader(ReadyBatches(kind, count), batch_size=None, **options)


def touch(batch) -> int:
    """Reads one byte of each page, as any consumer would at least; what is returned is compared with `expected`."""
    return int(torch.as_tensor(batch).reshape(-1).view(torch.uint8)[::4096].sum())


def expected(kind: str) -> list:
    return [touch(array) for array in ready_pool(kind)]
