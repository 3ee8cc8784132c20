"""A recipe in the form that data workers load it from."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import sys
import weakref
from dataclasses import dataclass
from typing import Any, Callable, Sequence

import numpy
from torch.utils.data import DataLoader

from ..code import pickling
from ..code.recipe import Recipe, recipe_of
from . import dataset_memory, dataset_pickle, shared_copies
from .dataset_memory import DatasetMemory


@dataclass(frozen=True)
class Definition:
    """`data` is a line of JSON that says how to load the rest; `digest` has 32 hexadecimal digits.

    `memory` goes along.
    """

    digest: str
    data: bytes
    memory: DatasetMemory | None = None
    shared: Sequence[numpy.ndarray] = ()
    """Memory that processes share, of which data workers on other machines have copies."""

    def open(self, client: Any) -> int:
        """A new stream of the native client."""
        if self.memory is None:
            return client.open(self.digest, self.data)
        return client.open(self.digest, self.data, self.memory.fd, self.memory.size)


def _definition(
    head: dict[str, Any], body: bytes = b"", memory: DatasetMemory | None = None, shared: Sequence[numpy.ndarray] = ()
) -> Definition:
    data = json.dumps(head).encode() + b"\n" + body
    return Definition(hashlib.blake2b(data, digest_size=16).hexdigest(), data, memory, shared)


def pickled(recipe: Recipe, is_for_here: bool) -> Definition:
    """For workers, on this machine or anywhere.

    Raises TypeError with the part that cannot be pickled and the way out.
    """
    try:
        sent = dataset_pickle.dumped(recipe, is_for_here)
    except pickling.Unpicklable as error:

        def dump(value: Any) -> bytes:
            return dataset_pickle.dumped(value, is_for_here).pickle

        part = next(
            (
                pickling.culprit(value, name, dump)
                for name, value in vars(recipe).items()
                if not _is_dumped(value, dump)
            ),
            "the loader",
        )
        raise TypeError(
            f"taas: {part} of the registered loader cannot be pickled, so it cannot be sent to data workers: "
            f"{error}. Open files and connections on first use in __getitem__, or in worker_init_fn, or run without "
            "--cpus"
        ) from error
    memory = dataset_memory.memory_of(sent.beside)
    beside = {"places": memory.places, "digest": memory.digest} if memory else {"places": []}
    head = {"kind": "pickle", "path": sys.path, "folder": os.getcwd(), "beside": beside}
    return _definition(head, sent.pickle, memory, sent.shared)


def _is_dumped(value: Any, dump: Callable[[Any], bytes]) -> bool:
    try:
        dump(value)
    except pickling.Unpicklable:
        return False
    return True


def named(loader: str) -> Definition:
    """For workers that import the loader themselves: `loader` is "module:attribute"."""
    return _definition({"kind": "name", "loader": loader})


def source(data: bytes, memory_fd: int = -1, memory_bytes: int = 0) -> Callable[[], Recipe]:
    """In a data worker: what makes the recipe, as often as it is called. The descriptor becomes its own.

    It raises what importing and unpickling raise.
    """
    line, _, body = data.partition(b"\n")
    head = json.loads(line)
    if head["kind"] == "name":
        return source_of(loader_named(head["loader"]))
    return _Pickled(head, body, memory_fd, memory_bytes).load


def source_of(loader: DataLoader) -> Callable[[], Recipe]:
    """The same of a loader that this process has: copies of it, where logical workers keep something."""
    recipe = recipe_of(loader)
    if not recipe.keeps:
        return lambda: recipe
    sent = pickled(recipe, is_for_here=True)
    memory = sent.memory
    return source(sent.data, os.dup(memory.fd), memory.size) if memory else source(sent.data)


class _Pickled:
    def __init__(self, head: dict[str, Any], body: bytes, memory_fd: int, memory_bytes: int) -> None:
        self._head, self._body = head, body
        self._fd, self._bytes = memory_fd, memory_bytes
        if memory_fd >= 0:
            weakref.finalize(self, os.close, memory_fd)

    def load(self) -> Recipe:
        _find_modules_as(self._head)
        copies = shared_copies.begin()
        memory = dataset_memory.mapped(self._fd, self._bytes, self._head["beside"]["places"])
        recipe: Recipe = dataset_pickle.load(self._body, memory)
        recipe.shared_memory = copies
        return recipe


def loader_named(name: str) -> DataLoader:
    """The loader `module:attribute`. Raises ValueError with one line when there is none."""
    module, _, attribute = name.partition(":")
    value: Any = importlib.import_module(module)
    for part in attribute.split("."):
        value = getattr(value, part, None)
    if value is None:
        raise ValueError(f"module {module} has no {attribute!r}")
    if not isinstance(value, DataLoader):
        raise ValueError(
            f"{attribute!r} of module {module} is of type {type(value).__name__}, not a torch.utils.data.DataLoader"
        )
    return value


def _find_modules_as(head: dict[str, Any]) -> None:
    """What the rank can import, this process can import: folders that are there are looked into as well."""
    for folder in (head["folder"], *head["path"]):
        folder = folder or head["folder"]
        if folder not in sys.path and os.path.exists(folder):
            sys.path.append(folder)
