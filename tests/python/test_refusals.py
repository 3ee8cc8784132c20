"""What cannot be sent is refused in one line, which names the attribute as the program would write it."""

import csv
import multiprocessing
import sys
import threading
import types

import pytest
import taas
import torch
from conftest import loop, printed
from own_datasets import Numbers
from taas.sending import recipe_pickle
from taas.sending.recipe import recipe_of
from torch.utils.data import DataLoader, IterableDataset

HELD = threading.Lock()
HELD.acquire()


class Inner:
    pass


class Holds(Numbers):
    """A dataset, or what is called."""

    def __init__(self, held):
        super().__init__(4)
        self.inner = Inner()
        self.inner.held = [{"it": held}]

    def __call__(self, given):
        return given


class Node:
    """Comes back to itself."""

    def __init__(self, file):
        self.child, self.file = Inner(), file
        self.child.parent = self


REFUSED = {
    "a Manager's dictionary": (lambda: multiprocessing.Manager().dict(), "a multiprocessing.Manager's DictProxy"),
    "an Array": (lambda: multiprocessing.Array("q", 3), "through inheritance"),
    "a Value": (lambda: multiprocessing.Value("q", 3), "through inheritance"),
    "a Queue": (lambda: multiprocessing.Queue(), "through inheritance"),
    "an open file": (lambda: open(__file__), "cannot pickle an open file"),
    "rows of a table": (lambda: csv.reader(()), "cannot pickle '_csv.reader'"),
    "a lock that is held": (lambda: HELD, "a lock that is held"),
    "an iterator": (lambda: iter([1]), "go through a list_iterator by itself"),
    "a generator": (lambda: (each for each in ()), "go through a generator by itself"),
    "a zip": (lambda: zip(), "go through a zip by itself"),
    "a graph": (lambda: torch.ones(2, requires_grad=True) * 2, "a tensor of an autograd graph .*detach"),
    "a file in a circle": (lambda: Node(open(__file__, "rb")), r"\.file \(_io.BufferedReader\)"),
    "shared memory": (lambda: torch.zeros(3).share_memory_(), "tells persistent workers nothing.*=False"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_in_the_dataset_is_named(kind, data_workers):
    make, why = REFUSED[kind]
    data_workers(1)
    with taas.register(DataLoader(Holds(make()), 2, num_workers=1, persistent_workers=True)) as loader:
        with pytest.raises(TypeError, match=rf"^taas: dataset\.inner\.held\[0\]\['it'\].*{why}") as refused:
            loop(loader)
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.gate
@pytest.mark.parametrize("where", ["dataset", "collate_fn", "worker_init_fn"])
def test_each_part_of_the_loader_is_named(where, data_workers):
    data_workers(1)
    options = {"dataset": Numbers(), where: Holds(HELD)}
    with taas.register(DataLoader(**options)) as loader, pytest.raises(TypeError) as refused:
        loop(loader)
    assert str(refused.value).startswith(f"taas: {where}.inner.held[0]['it'] (_thread.lock) of the registered loader ")


def test_classes_of_msgspec_that_the_script_has(data_workers):
    struct = pytest.importorskip("msgspec").defstruct("Struct", ["x"], module="__main__")
    data_workers(1)
    with taas.register(DataLoader(Holds(struct(1)))) as loader:
        with pytest.raises(TypeError, match=r"cannot pickle Struct, a class of msgspec .*: move it to a module"):
            loop(loader)


class Stream(IterableDataset):
    def __init__(self):
        self.rows = iter([1, 2])

    def __iter__(self):
        return self.rows


def test_an_iterable_dataset_may_hold_an_iterator(data_workers):
    data_workers(1)
    with taas.register(DataLoader(Stream(), None)) as loader:
        assert loop(loader, 2) == [1, 2] * 2


def test_a_tensor_on_a_gpu():
    """Only its storage is asked, so that no GPU is needed."""
    tensors = recipe_pickle._Tensors(recipe_of(DataLoader([0])))
    with pytest.raises(recipe_pickle.Refused, match="a tensor on cuda:1 stays in its process: .*tensor.cpu()"):
        tensors.meet(types.SimpleNamespace(device=torch.device("cuda:1")))


SCRIPT = """
import functools, taas
from torch.utils.data import DataLoader

log = open(__file__, "rb")

def noted(rows):
    return [log for row in rows]

def closed(file):
    return lambda rows: file

class Noting(list):
    def __getitem__(self, index):
        return log

for dataset, collate_fn in (
    ([1], noted), ([1], functools.partial(print, more=log)), ([1], closed(log)), (Noting([1]), None)
):
    try:
        with taas.register(DataLoader(dataset, collate_fn=collate_fn)) as loader:
            list(loader)
    except TypeError as error:
        print(str(error).partition(" (")[0])
"""


def test_what_a_function_of_the_script_drags_along_is_named(data_workers, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    data_workers(1)
    assert printed(sys.executable, script).splitlines() == [
        "taas: collate_fn's global log",
        "taas: collate_fn.keywords['more']",
        "taas: collate_fn's variable file",
        "taas: Noting.__getitem__'s global log",
    ]
