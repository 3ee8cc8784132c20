"""Large memory of a dataset is there once for all workers that are programs of their own, as their maps say."""

import gc
import itertools
import os
import pickle

import numpy
import pytest
import taas
import torch
from conftest import loop, wait_until
from own_datasets import Numbers
from process_datasets import area_of
from taas.sending.memory import DatasetMemory, ReceivedMemory
from torch.utils.data import DataLoader


def descriptors():
    """This process' descriptors of such memory."""
    folder = "/proc/self/fd"
    found = [os.path.join(folder, name) for name in os.listdir(folder)]
    return [path for path in found if os.path.islink(path) and "taas dataset" in os.readlink(path)]


class InMemory(Numbers):
    """Samples say which memory a tensor and an array lie in."""

    def __init__(self):
        super().__init__(64)
        self.tensor, self.array = torch.arange(1 << 20), numpy.arange(1 << 20)

    def __getitem__(self, index):
        return os.getpid(), area_of(self.tensor.data_ptr() + 8000), area_of(self.array.ctypes.data)


@pytest.mark.parametrize("over_tcp", [False, True])
def test_workers_map_the_same_memory_each_for_itself(data_workers, over_tcp):
    """On another machine it is that of the worker that has received it first."""
    data_workers(2, over_tcp=over_tcp)
    pids, areas = set(), set()

    def both_have_made_some():
        for pid, *both in itertools.chain(*loader):
            pids.add(pid)
            areas.update(both)
        return len(pids) == 2

    with taas.register(DataLoader(InMemory(), 1, num_workers=2, collate_fn=list)) as loader:
        wait_until(both_have_made_some)
    ((permissions, _, name),) = areas
    assert (permissions, name) == ("rw-p", "/memfd:taas dataset (deleted)")


def received_memory(values, name="d" * 32):
    memory = DatasetMemory([pickle.PickleBuffer(values)])
    return ReceivedMemory(os.dup(memory.fd), memory.size, memory.places, name)


def test_memory_that_is_gone_or_another_one_is_not_taken(tmp_path, monkeypatch):
    monkeypatch.setenv("TAAS_DATA_PLAN", str(tmp_path / "plan.json"))
    values = numpy.arange(1 << 16)
    first, second, third, fourth = (received_memory(values) for _ in range(4))
    kept = first.map()
    inode = area_of(numpy.frombuffer(kept[0]).ctypes.data)[1]
    (shared,) = second.map()
    assert area_of(numpy.frombuffer(shared).ctypes.data)[1] == inode
    (link,) = tmp_path.iterdir()
    pid, number, _ = os.readlink(link).split("/")
    del kept, first
    gc.collect()
    (own,) = third.map()  # nobody says any more where the first one's is
    assert area_of(numpy.frombuffer(own).ctypes.data)[1] != inode and bytes(own) == values.tobytes()
    another = received_memory(numpy.ones(1 << 16, int), "")
    link.unlink()
    link.symlink_to(f"{pid}/{another._fd}/{os.fstat(another._fd).st_ino + 1}")
    assert bytes(fourth.map()[0]) == values.tobytes()


def test_the_memory_goes_with_the_loader(data_workers):
    data_workers(1)
    with taas.register(DataLoader(InMemory(), 32, num_workers=1, collate_fn=len)) as loader:
        assert list(loader) == [32, 32] and descriptors()
    del loader
    gc.collect()
    assert not descriptors()


def test_no_descriptor_left_is_one_line_and_the_next_loop_sends_what_was_not_sent(data_workers, monkeypatch):
    def none(*_):
        raise OSError(24, "Too many open files")

    data_workers(1)
    with taas.register(DataLoader([numpy.zeros(1 << 20)], num_workers=1)) as loader:
        loop(loader)
        loader.dataset[0][:] = 1
        with (
            monkeypatch.context() as patched,
            pytest.raises(OSError, match="no memory for 8 MB of the dataset.*Too many open files") as raised,
        ):
            patched.setattr(os, "memfd_create", none)
            loop(loader)
        assert len(str(raised.value).splitlines()) == 1
        assert loop(loader)[0].sum() == 1 << 20
