"""A loader as it is sent: as it was, and only when it has changed."""

import dataclasses
import functools
import os
import random
import sys
import threading
import weakref

import numpy
import pytest
import taas
import torch
from conftest import loop
from process_datasets import area_of
from taas.sending import by_value, definition, files, recipe_pickle
from taas.sending.definition import Sending
from taas.sending.recipe import recipe_of
from torch.utils.data import DataLoader

BYTES = 1 << 20


def dumped(what):
    recipe = recipe_of(DataLoader([0]))
    recipe.dataset = what
    return recipe_pickle.dumped(recipe)


def loaded(sent, beside=()):
    return recipe_pickle.load(sent.pickle, list(beside)).recipe.dataset


def there(what):
    """As it arrives in a worker, and how many bytes went beside the pickle."""
    sent = dumped(what)
    copies = [bytearray(buffer.raw()) for buffer in sent.beside]
    return loaded(sent, copies), sum(map(len, copies))


CHANGES = {
    "a number's type": (1, lambda holder, number: holder.__setitem__(0, True)),
    "one of many samples": ([("0.jpg", 0)] * 1000, lambda _, samples: samples.__setitem__(700, ("other", 1))),
    "a tensor in place": (torch.arange(1_000_000.0), lambda _, tensor: tensor[999_999].neg_()),
    "a tensor through numpy": (torch.arange(100_000.0), lambda _, tensor: tensor.numpy().__setitem__(5, 7.0)),
    "an array": (numpy.arange(100_000), lambda _, array: array.__setitem__(99_999, 7)),
    "a model's weight": (torch.nn.Linear(2, 2), lambda _, model: torch.nn.init.zeros_(model.bias)),
    "a generator": (random.Random(1), lambda _, generator: generator.random()),
}


@pytest.mark.parametrize("what, change", CHANGES.values(), ids=CHANGES)
def test_only_what_has_changed_is_sent_again(what, change):
    loader = DataLoader([what], collate_fn=lambda samples: samples)
    sending = Sending(loader, "", "loader")
    first, _ = sending.now(loader)
    assert sending.now(loader)[0] is first
    change(loader.dataset, what)
    changed, _ = sending.now(loader)
    assert changed.digest != first.digest and sending.now(loader)[0] is changed


def test_what_takes_long_is_told_once(monkeypatch, capfd):
    monkeypatch.setattr(definition, "_SLOW_SECONDS", 0)
    loader = DataLoader([0])
    sending = Sending(loader, "", "rich")
    for _ in range(2):
        sending.now(loader)
    assert capfd.readouterr().err.count("rich: it takes 0.0 s before each loop to pickle its dataset") == 1


def test_what_shares_memory_shares_it_there():
    large, small = torch.arange(100_000), torch.arange(10)
    for base in (large, small):
        (whole, half, turned), beside = there((base, base[: len(base) // 2], base.view(2, -1).T))
        half += 1
        assert torch.equal(whole[: len(half)], half) and torch.equal(turned[:, 0], half)
        assert turned.stride() == (1, len(half)) and beside in (0, base.nbytes)


class AttrDict(dict):
    __getattr__ = dict.__getitem__


class AttrList(list):
    def __getattr__(self, name):
        return self[int(name[1:])]


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_what_is_pickled_in_odd_ways_arrives_as_it_was(device):
    """Also where the program has set another default device."""
    kinds = (torch.int16, torch.uint16, torch.uint32, torch.uint64, torch.float8_e4m3fn)
    tensors = [torch.arange(8, dtype=torch.uint8).view(dtype)[:1] for dtype in kinds]
    sent = [AttrDict(a=1), AttrList([1, 2]), dataclasses.MISSING, sys.stdout, sys.stderr]
    with torch.device(device):
        (arrived, *same), _ = there([tensors, *sent])
    assert all(one.dtype == other.dtype and one.tolist() == other.tolist() for one, other in zip(arrived, tensors))
    assert same == sent and list(map(type, same)) == list(map(type, sent))
    assert all(one is other for one, other in zip(same[2:], sent[2:]))


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_LEAST_BYTES", 0)
    found = tmp_path / "tokens.bin"
    numpy.random.default_rng(5).integers(0, 256, BYTES, numpy.uint8).tofile(found)
    return found


def is_mapped(value, path):
    return area_of(value.__array_interface__["data"][0])[2] == str(path)


VIEWS = {
    "behind a header": lambda path: numpy.memmap(path, numpy.int16, "r", offset=4098, shape=(1000, 30)),
    "far behind": lambda path: numpy.memmap(path, numpy.int16, "r+", offset=9000, shape=(1000, 30)),
    "a view": lambda path: numpy.memmap(path, numpy.int16, "r")[6:-6].reshape(-1, 4)[::3],
    "backwards": lambda path: numpy.memmap(path, numpy.int16, "r")[::-2],
    "an array": lambda path: numpy.asarray(numpy.memmap(path, numpy.int16, "r"))[5:-5],
}


@pytest.mark.parametrize("name", VIEWS)
def test_files_are_mapped_again(name, path):
    value = VIEWS[name](path)
    arrived, beside = there(value)
    assert type(arrived) is type(value) and not beside and is_mapped(arrived, path)
    assert numpy.array_equal(arrived, value) and (arrived.dtype, arrived.strides) == (value.dtype, value.strides)
    if type(value) is numpy.ndarray:
        assert arrived.flags.writeable == value.flags.writeable


def test_what_is_in_no_file_goes_along(path):
    changed = numpy.memmap(path, numpy.uint8, "c")
    changed[BYTES // 2] += 1
    mapped = numpy.memmap(path, numpy.uint8, "r")
    expected = [numpy.array(changed), numpy.array(mapped)]
    path.unlink()
    for replacing in (b"", b"x" * BYTES):
        path.write_bytes(replacing)
        for value, whole in zip((changed, mapped), expected):
            arrived, _ = there(value)
            assert numpy.array_equal(arrived, whole) and not is_mapped(arrived, path)


def test_views_of_a_file_share_one_mapping(path):
    value = numpy.memmap(path, numpy.uint8, "r")
    arrived, _ = there([value[at : at + 100] for at in range(0, 100_000, 100)])
    assert len({each.ctypes.data - at for at, each in zip(range(0, 100_000, 100), arrived)}) == 1


@pytest.mark.parametrize(
    "change",
    [
        None,
        lambda path: path.unlink(),
        lambda path: os.truncate(path, BYTES // 2),
        lambda path: os.utime(path, (5, 5)),
        lambda path: (path.write_bytes(b"x" * BYTES), os.utime(path, (7, 7))),
    ],
)
def test_elsewhere_the_same_file_is_mapped_and_no_other(change, path, monkeypatch):
    os.utime(path, (7, 7))
    sent = dumped(numpy.memmap(path, numpy.uint8, "r"))
    monkeypatch.setattr(files, "_machine", lambda: "another machine")
    if change is None:
        assert is_mapped(loaded(sent), path)
        return
    change(path)
    with pytest.raises(RuntimeError, match="does not have the same file there: copy it there with its time") as raised:
        loaded(sent)
    assert len(str(raised.value).splitlines()) == 1


def test_classes_that_come_by_value_are_of_their_own_definition():
    class Sized:
        size = 1

    first = dumped(Sized())
    Sized.size = 2
    assert [loaded(sent).size for sent in (dumped(Sized()), first)] == [2, 1]


DRAWING = {
    "a method": lambda own: own.random,
    "a closure": lambda own: lambda: own.random(),
    "a member of a class": lambda own: type("Local", (), {"draw": staticmethod(own.random)}),
}


@pytest.mark.parametrize("drawing", DRAWING)
def test_generators_are_known_when_they_arrive(drawing):
    own = random.Random(3)
    held = [DRAWING[drawing](own), own, random.random, torch.default_generator, own]
    sent = dumped(held)
    arrived = recipe_pickle.load(sent.pickle, [])
    _, mine, *others = arrived.recipe.dataset
    assert sent.generators == [own] and arrived.generators == [mine]
    assert others == [random.random, torch.default_generator, mine] and mine.random() == own.random()


SCRIPT = """
import functools, threading
from torch.utils.data import Dataset

@functools.lru_cache(maxsize=7, typed=True)
def fibonacci(number):
    return number if number < 2 else fibonacci(number - 1) + fibonacci(number - 2)

class Shapes(Dataset):
    class Inner:
        __slots__ = ("size",)

    def __init__(self):
        self.locks = [threading.Lock(), threading.RLock(), threading.Condition(), threading.Event()]
        self.seven = functools.lru_cache(maxsize=3)(functools.partial(int, "7"))
        self.inner = self.Inner()
        self.inner.size = self.seven() + fibonacci(9)
        self.name(1)

    def __len__(self):
        return 1

    def __getitem__(self, index):
        kept = fibonacci.cache_info(), self.seven.cache_info()
        with self.locks[0], self.locks[1], self.locks[1], self.locks[2]:
            facts = self.seven(), self.own, self.area(3), self.name(2), self.name(""), self.locks[3].is_set()
        return kept, (*facts, self.inner.size, type(self.inner).__qualname__, hasattr(self.inner, "__dict__"))

    @functools.cached_property
    def own(self):
        return Shapes is type(self), fibonacci(20)

    @functools.lru_cache
    def area(self, side):
        return side * fibonacci(4)

    @functools.singledispatchmethod
    def name(self, value):
        return "a thing"

    @name.register
    def _(self, value: int):
        return "a number"
"""


def test_a_script_arrives_whole_and_its_caches_begin_empty(data_workers):
    main = {"__name__": "__main__"}
    exec(SCRIPT, main)
    data_workers(1)
    with taas.register(DataLoader(main["Shapes"](), None, collate_fn=tuple)) as loader:
        ((kept, facts),) = loop(loader)
    assert kept == ((0, 0, 7, 0), (0, 0, 3, 0)) and facts == main["Shapes"]()[0][1]


@functools.lru_cache
def importable():
    pass


SCALE = [1]


def test_what_can_be_imported_goes_by_its_name_and_has_what_is_there():
    assert by_value.load(by_value.dumps(importable)) is importable
    assert by_value.load(by_value.dumps(lambda: SCALE))() is SCALE


def wrapping(function):
    return functools.wraps(function)(lambda: (SCALE, function()))


def test_a_function_that_another_one_wraps_has_the_globals_of_where_it_is(monkeypatch):
    """Not of the module that it says, which is that of what it wraps."""
    script = type(sys)("__main__")
    monkeypatch.setitem(sys.modules, "__main__", script)
    exec("def wrapped():\n    return [2]", vars(script))
    script.wrapped = wrapping(script.wrapped)
    arrived = by_value.load(by_value.dumps(script.wrapped))
    assert arrived is not script.wrapped and arrived()[0] is SCALE and arrived()[1] == [2]


def test_weak_references_to_what_may_not_arrive_are_refused():
    key = threading.Event()
    with pytest.raises(TypeError, match="weak references"):
        by_value.dumps(weakref.WeakKeyDictionary({key: 1}))
