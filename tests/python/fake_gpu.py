"""A GPU for tests on machines without one: the fake CUDA library of tests/data, and copies that are done late."""

import ctypes
import functools
import os

import pytest
import torch
from conftest import wait_until
from taas.delivery import nested
from taas.delivery import device, pinning, remote, run_workers
from taas.runtime import events, native

STREAM = 0x10


class Cuda:
    """The fake library. What is copied is read when run() is called, not before."""

    def __init__(self, library):
        self.library = library
        library.fake_cuda_copy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
        library.fake_cuda_is_registered.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
        library.fake_cuda_reset()
        library.fake_cuda_use_device(0)
        self._targets = []

    def copy(self, tensor):
        """What `tensor.to("cuda", non_blocking=True)` gives: a copy done later, out of registered memory, or now."""
        if not self.is_registered(tensor):
            return tensor.clone()
        target = torch.zeros_like(tensor)
        self._targets.append(target)
        self.library.fake_cuda_copy(STREAM, target.data_ptr(), tensor.data_ptr(), tensor.nbytes)
        return target

    def run(self):
        self.library.fake_cuda_run()
        self._targets.clear()

    def is_registered(self, tensor):
        return bool(self.library.fake_cuda_is_registered(tensor.data_ptr(), tensor.nbytes))

    def refuse(self):
        self.library.fake_cuda_refuse(2)

    def mistakes(self):
        return self.library.fake_cuda_mistakes()


@pytest.fixture
def cuda(monkeypatch, data_workers):
    """A program that has initialised CUDA and uses one GPU, and has a data worker."""
    data_workers(1)
    fake = Cuda(ctypes.CDLL(os.environ["TAAS_FAKE_CUDA"]))
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(pinning, "_copier", None)
    monkeypatch.setattr(pinning, "_streams_of", lambda device: [0, STREAM])
    monkeypatch.setattr(events, "_said", set())
    monkeypatch.setattr(
        native.module, "CudaCopier", functools.partial(native.module.CudaCopier, "libfake_cuda", "libfake_cuda")
    )
    yield fake
    fake.run()
    assert fake.mistakes() == 0


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
    for module in (device, remote):
        monkeypatch.setattr(module, "copies_to", lambda chosen: late)
    return late


def all_here(loader, count):
    """Waits until so many batches are there that the loop has not taken."""
    client = run_workers.connected().client
    wait_until(lambda: client.statistics().waiting >= count)
