"""What only one process can use is found wherever the loader's code reaches it.

With num_workers up to 1 that process is a fork of the program, made when the loop begins.
"""

import collections
import dataclasses
import functools
import os
import random
import types

import pytest
import taas
from taas.code import own_generators, process_bound
from taas.code.recipe import recipe_of
from torch.utils.data import DataLoader

OPEN = open(__file__, "rb")


class Rows:
    def __len__(self):
        return 8


def reading(file):
    file.seek(3)
    return os.getpid()


def in_a_closure(file):
    class Closed(Rows):
        def __getitem__(self, index):
            return reading(file)

    return Closed()


def in_the_class(file):
    return type("Classed", (Rows,), {"file": file, "__getitem__": lambda self, index: reading(self.file)})()


def in_a_global(file):
    return type("Globally", (Rows,), {"__getitem__": lambda self, index: reading(OPEN)})()


def in_a_static_method(file):
    class Static(Rows):
        @staticmethod
        def read(file=file):
            return reading(file)

        def __getitem__(self, index):
            return self.read()

    return Static()


def in_a_bound_method(file):
    return called([file.seek])


def in_a_partial(file):
    return called(functools.partial(reading, file))


def in_a_row(file):
    return called(collections.deque([file]))


def in_a_cache(file):
    return called(cached(functools.lru_cache(maxsize=4), file))


def in_a_cache_without_a_limit(file):
    return called(cached(functools.cache, file))


def cached(cache, file):
    path, opened = file.name, cache(lambda path: open(path, "rb"))
    opened(path)
    return lambda: reading(opened(path))


def called(what):
    class Calls(Rows):
        def __init__(self):
            self.what = what

        def __getitem__(self, index):
            return self.what() if callable(self.what) else os.getpid()

    return Calls()


@pytest.mark.parametrize(
    "held",
    [
        in_a_closure,
        in_the_class,
        in_a_global,
        in_a_static_method,
        in_a_bound_method,
        in_a_partial,
        in_a_row,
        in_a_cache,
        in_a_cache_without_a_limit,
    ],
)
def test_an_open_file_leaves_the_batches_to_one_fork_of_the_program(held, monkeypatch):
    monkeypatch.setenv("TAAS_DATA_WORKERS", "2")
    with open(__file__, "rb") as file, taas.register(DataLoader(held(file), 1)) as loader:
        assert len({process for batch in loader for process in batch.tolist()} - {os.getpid()}) == 1


def test_an_open_file_of_collate_fn_is_found_as_well(monkeypatch, capfd):
    monkeypatch.setenv("TAAS_DATA_WORKERS", "2")
    with open(__file__, "rb") as file:
        loader = DataLoader(range(8), 1, collate_fn=lambda rows: reading(file))
        taas.register(loader)
        assert len(set(loader) - {os.getpid()}) == 1
        taas.unregister(loader)
    assert "its collate_fn holds a BufferedReader, which only one process can use" in capfd.readouterr().err


def test_with_one_worker_a_fork_of_the_program_reads_though_others_are_there_for_another_loader(capfd):
    with open(__file__, "rb") as file, taas.register(DataLoader(range(8), 4, num_workers=2)) as other:
        list(other)
        with taas.register(DataLoader(in_a_closure(file), 1, num_workers=1)) as loader:
            assert len({int(process) for process in loader} - {os.getpid()}) == 1
    assert "from now on one fork of the training process makes its batches" in capfd.readouterr().err


@dataclasses.dataclass
class Harmless(Rows):
    """Nothing here is bound to a process, though Python could not pickle all of it."""

    closed: object
    settings: object = dataclasses.field(default_factory=lambda: types.MappingProxyType({"size": 3}))

    @property
    def size(self):
        return self.settings["size"]

    @functools.lru_cache
    def __getitem__(self, index):
        return print, random.random, type(self).__mro__


def test_what_is_harmless_is_not_found():
    with open(__file__, "rb") as file:
        pass
    assert process_bound.found_in(Harmless(file)) == ""


@pytest.mark.parametrize(
    "drawing",
    [
        lambda own: own.random,
        lambda own: functools.partial(own.random),
        lambda own: functools.partialmethod(lambda _, other: other.random(), own),
        lambda own: staticmethod(own.random),
    ],
)
def test_generators_are_found_by_their_methods(drawing):
    own = random.Random(3)
    dataset = type("Draws", (Rows,), {"draw": drawing(own), "__getitem__": lambda self, index: self.draw()})()
    assert own_generators.found_in(recipe_of(DataLoader(dataset))) == [own]
