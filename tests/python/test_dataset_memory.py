"""Large memory of a dataset is there once for all workers that are programs of their own, as their maps say."""

import gc
import os
import pickle
import time

import numpy
import pytest
import taas
from conftest import DEADLINE_SECONDS
from process_datasets import InMemory
from taas.dataset_memory import DatasetMemory, mapped
from torch.utils.data import DataLoader


def descriptors():
    """This process' descriptors of such memory."""
    folder = "/proc/self/fd"
    found = [os.path.join(folder, name) for name in os.listdir(folder)]
    return [path for path in found if os.path.islink(path) and "taas dataset" in os.readlink(path)]


def samples_of_two(loader):
    """Loops until two workers have made some: which process, its own element, and where both arrays lie."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    found = []
    while len({pid for pid, *_ in found}) < 2:
        assert time.monotonic() < deadline, "one worker has made all samples"
        found += [sample for batch in loader for sample in batch]
    return found


@pytest.fixture(params=["spawn", "run"])
def loader(request, run):
    if request.param == "run":
        run.start(2)
    else:
        os.environ.pop("TAAS_DATA_PLAN")
    made = DataLoader(InMemory(), 1, num_workers=2, collate_fn=list, multiprocessing_context="spawn")
    with taas.register(made):
        yield made


def test_workers_map_the_same_memory_each_for_itself(loader):
    seen = samples_of_two(loader)
    areas = {tuple(area) for *_, both in seen for area in both}
    assert {area[::2] for area in areas} == {("rw-p", "/memfd:taas dataset (deleted)")}
    assert len({inode for _, inode, _ in areas}) == 1, "all workers, and the tensor and the array, in one memfd"


def test_what_a_worker_writes_no_other_one_sees():
    memory = DatasetMemory([pickle.PickleBuffer(numpy.arange(1 << 16)), pickle.PickleBuffer(b"end")])
    one, other = (mapped(memory.fd, memory.size, memory.places) for _ in range(2))
    one[0][:3] = b"abc"
    assert bytes(other[0]) == numpy.arange(1 << 16).tobytes() and bytes(other[1]) == b"end"
    with pytest.raises(PermissionError):
        os.pwrite(memory.fd, b"abc", 0)


def test_the_memory_goes_with_the_loader(monkeypatch):
    monkeypatch.setenv("TAAS_DATA_WORKERS", "1")
    loader = DataLoader(InMemory(), 32, num_workers=1, collate_fn=len, multiprocessing_context="spawn")
    with taas.register(loader):
        assert list(loader) == [32, 32] and descriptors()
    del loader
    gc.collect()
    assert not descriptors()


def test_no_descriptor_left_is_one_line(monkeypatch):
    def none(*_):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "memfd_create", none)
    loader = DataLoader([numpy.zeros(1 << 20)] * 3, num_workers=1, multiprocessing_context="spawn")
    with taas.register(loader), pytest.raises(OSError, match="no memory for 8 MB of the dataset.*Too many open files") as raised:
        list(loader)
    assert len(str(raised.value).splitlines()) == 1
