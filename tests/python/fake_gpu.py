"""A GPU for tests on machines without one: it copies late, out of memory that is handed out again at once."""

import collections
import contextlib
import ctypes
import functools
import random
import types
import weakref

import pytest
import torch
from conftest import wait_until
from taas.delivery import device, pinning, run_workers
from taas.runtime import events
from torch.overrides import handle_torch_function, has_torch_function_unary

GARBAGE = 0x5A


class Block:
    """Some pinned memory. `readers`: copies out of it that the GPU was asked for and has not done."""

    def __init__(self, size):
        self.memory = bytearray(size)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.readers = 0
        self.is_free = False


class PinnedMemory:
    """Stands in for torch's pinned allocator: like that it knows the storages that it made, and no others.

    What is free is overwritten, and handed out before all else.
    """

    def __init__(self):
        self._blocks = {}
        self._free = collections.defaultdict(list)
        self.refuses = False

    def empty(self, size):
        """A uint8 tensor."""
        if self.refuses:
            raise RuntimeError("CUDA error: out of memory\nand more lines")
        if not size:
            return torch.empty(0, dtype=torch.uint8)
        free = self._free[size]
        block = free.pop() if free else Block(size)
        self._blocks[block.address] = block
        block.is_free = False
        view = memoryview(block.memory)
        weakref.finalize(view, self._let_go, block)
        return torch.frombuffer(view, dtype=torch.uint8)

    def block_of(self, tensor):
        return self._blocks.get(tensor.untyped_storage().data_ptr()) if tensor.numel() else None

    def has(self, tensor):
        return self.block_of(tensor) is not None

    def _let_go(self, block):
        block.is_free = True
        self.settle(block)

    def settle(self, block):
        """Nobody has it, and nothing reads it: it can be used again."""
        if block.is_free and not block.readers and block not in self._free[len(block.memory)]:
            block.memory[:] = bytes([GARBAGE]) * len(block.memory)
            self._free[len(block.memory)].append(block)


class Gpu:
    """Copies when run() is called, and not before. Its tensors are on the CPU."""

    def __init__(self, memory):
        self.memory = memory
        self._asked = collections.deque()
        self.done = self.asked = 0
        self.spoils = lambda number: False
        self.log = []
        self.pinned_at_once = 0
        """So often torch itself was asked to pin a tensor."""

    def copy(self, tensor, where=None):
        """What `tensor.to("cuda", non_blocking=True)` gives."""
        assert pinning._is_dense(tensor.shape, tensor.stride()), "its bytes are copied as they lie"
        there = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
        block = self.memory.block_of(tensor)
        if block:
            block.readers += 1
        self._asked.append((there, tensor.data_ptr(), block))
        self.asked += 1
        return there

    def run(self, count=None):
        """Does the next copies, or all."""
        for _ in range(len(self._asked) if count is None else min(count, len(self._asked))):
            there, address, block = self._asked.popleft()
            if there.numel():
                ctypes.memmove(there.data_ptr(), address, there.nbytes)
                if self.spoils(self.done):
                    there.reshape(-1).view(torch.uint8)[0] ^= 0xFF
            self.done += 1
            if block:
                block.readers -= 1
                self.memory.settle(block)

    def stream(self, name):
        """One of torch's streams."""
        stream = types.SimpleNamespace(name=name)
        stream.record_event = functools.partial(self._event, name)
        stream.wait_event = lambda event: self.log.append(("waits", name))
        return stream

    def _event(self, name):
        self.log.append(("records", name))
        asked = self.asked
        return types.SimpleNamespace(query=lambda: self.done >= asked, synchronize=self.run)

    @contextlib.contextmanager
    def within(self, stream):
        self.log.append(("begin", stream.name))
        yield
        self.log.append(("end", stream.name))


@pytest.fixture
def gpu(monkeypatch, data_workers):
    """A program that has initialised CUDA and uses one GPU, and has a data worker."""
    data_workers(1)
    memory = PinnedMemory()
    there = Gpu(memory)
    empty_strided = torch.empty_strided

    def empty(shape, stride, *, pin_memory=False, **options):
        if not pin_memory:
            return empty_strided(shape, stride, **options)
        assert options.pop("device") == "cpu"
        like = empty_strided(shape, stride, device="meta", **options)
        made = memory.empty(like.untyped_storage().nbytes())
        return made.view(options["dtype"]).as_strided(shape, stride)

    def pinned(tensor):
        if has_torch_function_unary(tensor):  # as of each function of torch's
            return handle_torch_function(torch.Tensor.pin_memory, (tensor,), tensor)
        there.pinned_at_once += 1
        if memory.has(tensor):
            return tensor
        options = {"dtype": tensor.dtype, "device": "cpu", "pin_memory": True}
        return empty(tensor.shape, tensor.stride(), **options).copy_(tensor)

    compare = device._difference
    monkeypatch.setattr(torch, "empty_strided", empty)
    monkeypatch.setattr(torch.Tensor, "is_pinned", lambda tensor: memory.has(tensor))
    monkeypatch.setattr(torch.Tensor, "pin_memory", pinned)
    monkeypatch.setattr(torch.Tensor, "record_stream", lambda tensor, stream: there.log.append(("uses", stream.name)))
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "Stream", lambda where: there.stream("copies"))
    monkeypatch.setattr(torch.cuda, "stream", there.within)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda where: there.stream("loop"))
    monkeypatch.setattr(device, "_asked_for", there.copy)
    monkeypatch.setattr(device, "_difference", lambda pairs: there.run() or compare(pairs))
    monkeypatch.setattr(events, "_said", set())
    device._of_number.cache_clear()
    device._of_number(0).device = torch.device("cpu")
    yield there
    there.run()
    device._of_number.cache_clear()


def late(gpu, loader, seed, copied=True):
    """What a loop has that asks for copies, if they were not made `copied`, and lets the batches go.

    The copies are done at random moments, the last ones long after the loop.
    """
    chance, there = random.Random(seed), []
    for batch in loader:
        there.append(batch if copied else gpu.copy(batch))
        del batch
        if chance.random() < 0.3:
            gpu.run(chance.randrange(8))
    return there


def all_here(loader, count):
    """Waits until so many batches are there that the loop has not taken."""
    client = run_workers.connected().client
    wait_until(lambda: client.statistics().waiting >= count)
