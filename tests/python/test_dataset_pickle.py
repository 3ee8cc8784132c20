"""What a dataset has in memory arrives as it was: the same files are mapped again, and what shares memory shares it."""

import os

import numpy
import pytest
import torch
from taas.dataset import dataset_pickle, file_memory

BYTES = 1 << 20


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "tokens.bin"
    numpy.random.default_rng(5).integers(0, 256, BYTES, numpy.uint8).tofile(found)
    return found


def sent(what):
    """As it arrives in a worker, and how many bytes went there."""
    data, beside, _ = dataset_pickle.dumped(what, True)
    copies = [bytearray(buffer.raw()) for buffer in beside]
    return dataset_pickle.load(data, copies), sum(map(len, copies))


def is_mapped(value, path):
    """Whether the memory is the file's, as the kernel sees it."""
    address = value.data_ptr() if isinstance(value, torch.Tensor) else value.__array_interface__["data"][0]
    return any(
        line.rstrip().endswith(str(path))
        and int(line.split("-")[0], 16) <= address < int(line.split("-")[1].split()[0], 16)
        for line in open("/proc/self/maps")
    )


def of_torch_load(path):
    torch.save(torch.arange(BYTES), path.with_suffix(".pt"))
    return torch.load(path.with_suffix(".pt"), mmap=True)


VIEWS = {
    "whole": lambda path: numpy.memmap(path, numpy.int16, "r"),
    "copied on write": lambda path: numpy.memmap(path, numpy.int16, "c"),
    "behind a header": lambda path: numpy.memmap(path, numpy.int16, "r", offset=4098, shape=(1000, 30)),
    "a view": lambda path: numpy.memmap(path, numpy.int16, "r")[6:-6].reshape(-1, 4)[::3],
    "backwards": lambda path: numpy.memmap(path, numpy.int16, "r")[::-2],
    "one element": lambda path: numpy.memmap(path, numpy.int16, "r")[7:8],
    "an array": lambda path: numpy.asarray(numpy.memmap(path, numpy.int16, "r"))[5:-5],
    "a tensor": lambda path: torch.from_numpy(numpy.memmap(path, numpy.int16, "c"))[3:],
    "a file of torch": lambda path: torch.from_file(str(path), False, BYTES, dtype=torch.uint8)[100:],
    "torch.load": of_torch_load,
}


@pytest.mark.parametrize("name", VIEWS)
def test_files_are_mapped_again(name, path):
    value = VIEWS[name](path)
    arrived, beside = sent(value)
    assert type(arrived) is type(value) and beside <= BYTES, "a small file's bytes come along, and no more"
    assert is_mapped(arrived, path.with_suffix(".pt") if name == "torch.load" else path)
    assert numpy.array_equal(numpy.asarray(arrived), numpy.asarray(value))
    if isinstance(value, numpy.ndarray):
        assert (arrived.dtype, arrived.strides) == (value.dtype, value.strides)
    if type(value) is numpy.ndarray:
        assert arrived.flags.writeable == value.flags.writeable


@pytest.mark.parametrize("mode", ["r", "c", "r+"])
def test_what_a_worker_writes_stays_there(mode, path):
    value = numpy.memmap(path, numpy.uint8, mode)
    before = path.read_bytes()
    arrived, _ = sent(value)
    assert type(arrived) is numpy.memmap and type(arrived[:2]) is numpy.ndarray and arrived.filename is None
    arrived[:] = 0
    assert path.read_bytes() == before and numpy.array_equal(value, numpy.frombuffer(before, numpy.uint8))


def test_what_was_changed_or_deleted_goes_along(path):
    changed = numpy.memmap(path, numpy.uint8, "c")
    changed[BYTES // 2] += 1
    deleted = numpy.memmap(path, numpy.uint8, "r")
    before = numpy.array(deleted)
    for value, expected in ((changed, numpy.array(changed)), (deleted, before)):
        if value is deleted:
            path.unlink()
        arrived, _ = sent(value)
        assert numpy.array_equal(arrived, expected) and not is_mapped(arrived, path)


def test_views_of_a_file_share_one_mapping(path):
    value = numpy.memmap(path, numpy.uint8, "r")
    arrived, _ = sent([value[at : at + 100] for at in range(0, 100_000, 100)])
    assert len({each.ctypes.data - at for at, each in zip(range(0, 100_000, 100), arrived)}) == 1


def elsewhere(monkeypatch, path, carried):
    """The value as it is sent, on another machine from now on."""
    monkeypatch.setattr(file_memory, "_CARRIED_BYTES", carried)
    data, beside, _ = dataset_pickle.dumped(numpy.memmap(path, numpy.uint8, "r"), True)
    beside = [bytearray(buffer.raw()) for buffer in beside]
    monkeypatch.setattr(file_memory, "_machine", lambda: "another machine")
    return lambda: dataset_pickle.load(data, beside)


def test_elsewhere_the_same_file_is_mapped(path, monkeypatch):
    assert is_mapped(elsewhere(monkeypatch, path, carried=0)(), path)


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.unlink(),
        lambda path: os.truncate(path, BYTES // 2),
        lambda path: os.utime(path, (5, 5)),
        lambda path: (path.write_bytes(b"x" * BYTES), os.utime(path, (7, 7))),
    ],
)
def test_elsewhere_another_file_is_not_taken(change, path, monkeypatch):
    os.utime(path, (7, 7))
    whole = path.read_bytes()
    small = elsewhere(monkeypatch, path, carried=BYTES)
    change(path)
    arrived = small()
    assert arrived.tobytes() == whole and not is_mapped(arrived, path)


def test_elsewhere_a_large_file_that_is_another_one_is_refused(path, monkeypatch):
    load = elsewhere(monkeypatch, path, carried=0)
    os.utime(path, (5, 5))
    with pytest.raises(RuntimeError, match="does not have the same file there: copy it there with its time") as raised:
        load()
    assert len(str(raised.value).splitlines()) == 1


def test_what_shares_memory_shares_it_there():
    large, small = torch.arange(100_000), torch.arange(10)
    for base in (large, small):
        (whole, half), _ = sent((base, base[: len(base) // 2]))
        half += 1
        assert torch.equal(whole[: len(half)], half)


def test_classes_that_come_by_value_are_of_their_own_definition():
    class Sized:
        size = 1

    first = dataset_pickle.dumped(Sized(), is_for_here=True)
    Sized.size = 2
    second = dataset_pickle.dumped(Sized(), is_for_here=True)
    loaded = [dataset_pickle.load(sent.pickle, []) for sent in (second, first)]
    assert [each.size for each in loaded] == [2, 1]
