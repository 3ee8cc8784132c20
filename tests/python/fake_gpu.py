"""A GPU for tests on machines without one: torch's pinned allocator, whose memory is handed out again at once, and copies that are done
late.
"""

import weakref

import numpy
import pytest
import torch
from conftest import wait_until
from taas.batch import nested
from taas.delivery import delivery, device, pinning
from taas.runtime import events

GARBAGE = 0xA5


class Block:
    """Pinned memory. `copies` out of it are to come."""

    def __init__(self, size):
        self.memory = numpy.zeros(size, numpy.uint8)
        self.begin = self.memory.ctypes.data
        self.is_held = False
        self.copies = 0

    def has(self, address):
        return self.begin <= address < self.begin + self.memory.nbytes


class Cuda:
    """As torch's caching host allocator: a block is free when no tensor lies in it any more and the copies out of it are done. What
    is asked of the GPU is read when run() is called, not before.
    """

    def __init__(self):
        self.blocks = []
        self.given = 0
        self._asked = []

    def new(self, tensor):
        """Pinned memory for the tensor's bytes, which are not in it yet: with the same strides, as torch's."""
        self.given += 1
        span = 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride())) if tensor.numel() else 0
        size = span * tensor.element_size()
        block = next((block for block in self.blocks if not block.is_held and not block.copies and block.memory.nbytes >= size), None)
        if block is None:
            self.blocks.append(block := Block(max(size, 1)))
        block.is_held = True
        view = block.memory[:size].view()
        weakref.finalize(view, self._let_go, block)
        return torch.from_numpy(view).view(tensor.dtype).as_strided(tensor.shape, tensor.stride())

    def pinned(self, tensor):
        """Tensor.pin_memory()."""
        return tensor if tensor.layout is not torch.strided or self.is_pinned(tensor) else self.new(tensor).copy_(tensor)

    def is_pinned(self, tensor):
        return self._block_of(tensor) is not None

    def copy(self, tensor):
        """What `tensor.to("cuda", non_blocking=True)` gives: a copy that is done later, out of pinned memory, or now."""
        block = self._block_of(tensor)
        if block is None:
            return tensor.clone()
        block.copies += 1
        there = torch.zeros_like(tensor)
        first = tensor.data_ptr() - block.begin
        self._asked.append((block, block.memory[first:first + tensor.nbytes], there))
        return there

    def run(self):
        for block, memory, there in self._asked:
            there.view(-1).view(torch.uint8).numpy()[:] = memory
            block.copies -= 1
        self._asked.clear()

    def _block_of(self, tensor):
        return next((block for block in self.blocks if block.has(tensor.data_ptr())), None)

    @staticmethod
    def _let_go(block):
        block.is_held = False
        if not block.copies:
            block.memory[:] = GARBAGE


@pytest.fixture
def cuda(monkeypatch):
    """A program that has initialised CUDA and uses one GPU."""
    fake = Cuda()
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.Tensor, "is_pinned", lambda tensor, *_: fake.is_pinned(tensor))
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor, *_: fake.pinned(tensor))
    monkeypatch.setattr(pinning, "_accelerator", lambda: "cuda")
    monkeypatch.setattr(pinning, "_new_pinned", fake.new)
    monkeypatch.setattr(events, "_said", set())
    yield fake
    fake.run()


class LateCopies:
    """Copies on a stream of the fake GPU. `most` is how many batches were on their way at once."""

    def __init__(self, cuda):
        self._cuda = cuda
        self._under_way = self.most = self.started = 0
        self.fails = lambda number: False

    def start(self, batch):
        self.started += 1
        if self.fails(self.started):
            raise RuntimeError("CUDA out of memory")
        self._under_way += 1
        self.most = max(self.most, self._under_way)
        return nested.mapped(batch, lambda leaf: self._cuda.copy(leaf) if isinstance(leaf, torch.Tensor) else leaf)

    def finish(self, started):
        self._under_way -= 1
        self._cuda.run()
        return started


@pytest.fixture
def copies(cuda, monkeypatch):
    late = LateCopies(cuda)
    monkeypatch.setattr(device, "_copies_to", lambda chosen: late)
    return late


def all_here(loader, count):
    """Waits until so many batches are there that the loop has not taken."""
    client = delivery._deliveries["fork"].client
    wait_until(lambda: client.statistics().waiting >= count)
