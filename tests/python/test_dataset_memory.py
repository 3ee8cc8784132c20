"""Large memory of a dataset is there once for all workers that are programs of their own, as their maps say."""

import gc
import os
import pickle
import socket
import time

import numpy
import pytest
import taas
from conftest import DEADLINE_SECONDS
from process_datasets import InMemory, area_of
from taas.runtime import native
from taas.sending.memory import DatasetMemory, ReceivedMemory
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


@pytest.mark.parametrize("over_tcp", [False, True])
def test_workers_map_the_same_memory_each_for_itself(data_workers, over_tcp):
    """On another machine it is that of the worker that has received it first."""
    data_workers(2, over_tcp=over_tcp)
    with taas.register(DataLoader(InMemory(), 1, num_workers=2, collate_fn=list)) as loader:
        seen = samples_of_two(loader)
    areas = {tuple(area) for *_, both in seen for area in both}
    assert {area[::2] for area in areas} == {("rw-p", "/memfd:taas dataset (deleted)")}
    assert len({inode for _, inode, _ in areas}) == 1, "all workers, and the tensor and the array, in one memfd"


def test_what_a_worker_writes_no_other_one_sees():
    memory = DatasetMemory([pickle.PickleBuffer(numpy.arange(1 << 16)), pickle.PickleBuffer(b"end")])
    one, other = (ReceivedMemory(os.dup(memory.fd), memory.size, memory.places).map() for _ in range(2))
    one[0][:3] = b"abc"
    assert bytes(other[0]) == numpy.arange(1 << 16).tobytes() and bytes(other[1]) == b"end"
    with pytest.raises(PermissionError):
        os.pwrite(memory.fd, b"abc", 0)


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


def received(encryption, address, listeners):
    """What a worker gets of a definition with memory: its bytes, the memory's, and whether it is the client's own."""
    memory = DatasetMemory([pickle.PickleBuffer(numpy.arange(1 << 16))])
    server = native.module.Server("a-run", "ab" * 32, encryption, *listeners)
    client = native.module.Client("a-run", "ab" * 32, encryption, "none", 1 << 24)
    client.set_workers(native.addresses([address]))
    stream = client.open("d" * 32, b"a pickle", memory.fd, memory.size)
    client.submit(stream, b"a task", -1, False)
    job = server.take(DEADLINE_SECONDS)
    data, fd, size = server.definition(job.digest)
    content, inode = os.pread(fd, size + 1, 0), os.fstat(fd).st_ino
    os.close(fd)
    return data, content == numpy.arange(1 << 16).tobytes(), inode == os.fstat(memory.fd).st_ino


@pytest.mark.parametrize("encryption", ["tls", "plain"])
def test_another_machine_gets_a_copy_of_the_memory(encryption):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = {"address": "127.0.0.1", "port": listener.getsockname()[1]}
        assert received(encryption, address, (os.dup(listener.fileno()), -1)) == (b"a pickle", True, False)


def test_this_machine_gets_the_memory_itself(tmp_path):
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "worker"))
        listener.listen()
        address = {"unix": str(tmp_path / "worker")}
        assert received("plain", address, (-1, os.dup(listener.fileno()))) == (b"a pickle", True, True)


def test_the_memory_goes_with_the_loader(data_workers):
    data_workers(1)
    with taas.register(DataLoader(InMemory(), 32, num_workers=1, collate_fn=len)) as loader:
        assert list(loader) == [32, 32] and descriptors()
    del loader
    gc.collect()
    assert not descriptors()


def test_no_descriptor_left_is_one_line(data_workers, monkeypatch):
    data_workers(1)

    def none(*_):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "memfd_create", none)
    with (
        pytest.raises(OSError, match="no memory for 8 MB of the dataset.*Too many open files") as raised,
        taas.register(DataLoader([numpy.zeros(1 << 20)] * 3, num_workers=1)) as loader,
    ):
        list(loader)
    assert len(str(raised.value).splitlines()) == 1
