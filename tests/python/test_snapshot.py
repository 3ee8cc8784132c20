"""Whether a change in a dataset is seen before the next epoch, and whether nothing unchanged is made again."""

import collections
import copy
import decimal
import os
import pathlib
import random
import re
import threading

import numpy
import pytest
import torch
from taas.dataset.fingerprint import Fingerprint
from taas.dataset.snapshot import Snapshot, TooMuch
from torch.utils.data import DataLoader, Dataset

Pair = collections.namedtuple("Pair", "path label")
_ANY = 1 << 40


class Inner:
    pass


class Other:
    pass


class WithSlots:
    __slots__ = ("strength",)


class SaysItsState:
    def __init__(self):
        self.size, self.handle = 1, open(__file__)

    def __getstate__(self):
        return {"size": self.size}


class Rich(Dataset):
    """One attribute of each kind."""

    def __init__(self):
        self.number, self.text, self.path = 1, "text", pathlib.Path("a")
        self.samples = [(f"{index}.jpg", index) for index in range(1000)]
        self.pairs = [Pair("a", 1), Pair("b", 2)]
        self.nested = {"a": [[[[[[0]]]]]]}
        self.ordered = collections.OrderedDict(a=[1])
        self.recent = collections.deque([1, 2], maxlen=4)
        self.names = {"a", "b"}
        self.tensor = torch.arange(1_000_000.0)
        self.column = torch.zeros(10, 10)[:, 3]
        self.model = torch.nn.Linear(2, 2)
        self.array = numpy.arange(100_000)
        self.rows = numpy.zeros((10, 10), order="F")
        self.records = numpy.zeros(3, dtype=[("a", "i4"), ("b", "f8")])
        self.objects = numpy.array([{"a": 1}, None], dtype=object)
        self.masked = numpy.ma.masked_array([1, 2, 3], mask=[0, 0, 1])
        self.random, self.numpy_random, self.torch_random = (
            random.Random(1),
            numpy.random.default_rng(1),
            torch.Generator(),
        )
        self.old_numpy_random = numpy.random.RandomState(1)
        self.lock, self.pattern = threading.Lock(), re.compile("a+")
        self.inner, self.slots, self.says = Inner(), WithSlots(), SaysItsState()
        self.inner.deeper = Inner()
        self.inner.deeper.deepest = [Inner() for _ in range(400)]
        self.slots.strength = 1.0
        limit = [1]
        self.transform = lambda value: value * limit[0]
        self.limit = limit
        self.itself = self

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return index


def at_the_end_of_a_long_list(rich):
    rich.inner.deeper.deepest[-1].strength = 3


CHANGES = {
    "a number": lambda rich: setattr(rich, "number", 2),
    "a number's type": lambda rich: setattr(rich, "number", True),
    "a zero's sign": lambda rich: (setattr(rich, "number", 0.0), setattr(rich, "number", -0.0)),
    "text": lambda rich: setattr(rich, "text", "other"),
    "a path": lambda rich: setattr(rich, "path", pathlib.Path("b")),
    "one of many samples": lambda rich: rich.samples.__setitem__(700, ("other", 1)),
    "a label by its type": lambda rich: rich.samples.__setitem__(1, ("1.jpg", 1.0)),
    "the order of samples": lambda rich: rich.samples.reverse(),
    "a named tuple": lambda rich: rich.pairs.__setitem__(0, Pair("a", 3)),
    "seven levels down": lambda rich: rich.nested["a"][0][0][0][0][0].__setitem__(0, 1),
    "an ordered dictionary": lambda rich: rich.ordered["a"].append(2),
    "a queue": lambda rich: rich.recent.append(3),
    "a set": lambda rich: rich.names.add("c"),
    "a tensor in place": lambda rich: rich.tensor[999_999].neg_(),
    "a tensor through numpy": lambda rich: rich.tensor.numpy().__setitem__(5, 7.0),
    "a column": lambda rich: rich.column[4].add_(1),
    "what a gradient is asked for": lambda rich: rich.tensor.requires_grad_(),
    "a model's weight": lambda rich: torch.nn.init.zeros_(rich.model.bias),
    "a model's mode": lambda rich: rich.model.eval(),
    "an array": lambda rich: rich.array.__setitem__(99_999, 7),
    "an array in columns": lambda rich: rich.rows.__setitem__((3, 4), 7),
    "a record": lambda rich: rich.records["b"].__setitem__(1, 7),
    "an object in an array": lambda rich: rich.objects[0].update(a=2),
    "a mask": lambda rich: rich.masked.mask.__setitem__(0, True),
    "random": lambda rich: rich.random.random(),
    "numpy's generator": lambda rich: rich.numpy_random.random(),
    "numpy's older generator": lambda rich: rich.old_numpy_random.random(),
    "torch's generator": lambda rich: torch.rand(1, generator=rich.torch_random),
    "a pattern": lambda rich: setattr(rich, "pattern", re.compile("b+")),
    "a new attribute": lambda rich: setattr(rich.inner, "other", 1),
    "an attribute that goes": lambda rich: delattr(rich.inner, "deeper"),
    "the last of many objects": at_the_end_of_a_long_list,
    "a slot": lambda rich: setattr(rich.slots, "strength", 0.5),
    "what an object says of itself": lambda rich: setattr(rich.says, "size", 2),
    "what a lambda refers to": lambda rich: rich.limit.append(2),
    "a lambda": lambda rich: setattr(rich, "transform", lambda value: value + 1),
    "an object's class": lambda rich: setattr(rich.inner, "__class__", Other),
    "a method": lambda rich: setattr(rich, "chosen", rich.random.random),
    "a number of another kind": lambda rich: setattr(rich, "number", decimal.Decimal(1)),
}


def snapshot(what, before=None):
    return Snapshot([what], _ANY, before)


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of(change):
    rich = Rich()
    before = snapshot(rich)
    assert snapshot(rich) == before == snapshot(rich, before)
    CHANGES[change](rich)
    assert snapshot(rich) != before
    assert snapshot(rich, before) != before


def test_equal_values_in_the_place_of_others_are_no_change():
    rich = Rich()
    before = snapshot(rich)
    rich.number, rich.text, rich.samples = 3 - 2, "".join(["te", "xt"]), [tuple(sample) for sample in rich.samples]
    assert snapshot(rich) == before


def test_a_tensor_that_no_longer_shares_its_memory_is_a_change():
    shared = torch.zeros(10)
    pair = [shared[:5], shared[:5]]
    before = snapshot(pair)
    pair[1] = pair[0].clone()
    assert snapshot(pair) != before


@pytest.mark.parametrize(
    "what",
    [open(__file__), (number for number in range(3)), [[index] for index in range(30_000)]],
    ids=["an open file", "a generator", "many lists"],
)
def test_what_cannot_be_looked_at_whole_is_said_to_be_too_much(what):
    with pytest.raises(TooMuch):
        snapshot(what)


def test_bytes_are_read_up_to_a_limit():
    with pytest.raises(TooMuch):
        Snapshot([torch.zeros(1000), numpy.zeros(1000)], 11_000)


def test_a_file_behind_an_array_is_not_read_but_seen(tmp_path):
    with open(tmp_path / "array", "wb") as file:
        file.truncate(80_000_000)
    mapped = [
        numpy.memmap(tmp_path / "array", mode="r"),
        torch.from_file(str(tmp_path / "array"), size=80_000_000, dtype=torch.uint8),
    ]
    before = Snapshot(mapped, 1000)
    assert Snapshot(mapped, 1000) == before
    os.utime(tmp_path / "array", (1, 1))
    assert Snapshot(mapped, 1000) != before


class Large(Rich):
    """Above the size at which nothing is looked at twice without need."""

    def __init__(self):
        super().__init__()
        self.images = torch.zeros(2_000_000)
        del self.says, self.lock


def test_an_unchanged_dataset_is_not_pickled_again(monkeypatch):
    dataset = Large()
    fingerprint, loader = Fingerprint(), DataLoader(dataset, 2)
    first = fingerprint.definition(loader, True)
    monkeypatch.setattr("taas.dataset.fingerprint.pickled", lambda *_: pytest.fail("it was pickled again"))
    assert fingerprint.definition(loader, True) is first


def test_a_changed_dataset_is_sent_with_the_change():
    fingerprint, loader = Fingerprint(), DataLoader(Large(), 2)
    first = fingerprint.definition(loader, True)
    loader.dataset.images[1_999_999] = 1
    assert fingerprint.definition(loader, True).digest != first.digest


def test_a_copy_of_a_dataset_is_another_one_only_where_that_matters():
    rich = Rich()
    del rich.lock, rich.says
    before = snapshot(rich.samples)
    assert snapshot(copy.deepcopy(rich.samples)) == before
