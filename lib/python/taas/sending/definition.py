"""A recipe in the form that data workers load it from."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import time
from dataclasses import dataclass
from typing import Any, Callable, NamedTuple

from torch.utils.data import DataLoader

from ..runtime import events, native
from ..runtime.identity import speaks_for_all
from . import by_value, modules, recipe_pickle, state
from .by_value import OfMain
from .culprit import culprit
from .memory import DatasetMemory, ReceivedMemory, memory_of
from .recipe import Recipe, recipe_of
from .recipe_pickle import Arrived, Refused
from .tensors import BelongsToGraph

_SLOW_SECONDS = 0.5


@dataclass(frozen=True)
class Definition:
    """`data` is a line of JSON that says how to load the rest; `digest` has 32 hexadecimal digits.

    `memory` goes along.
    """

    digest: str
    data: bytes
    memory: DatasetMemory | None = None

    def open(self, client: Any) -> int:
        """A new stream of the native client."""
        if self.memory is None:
            return client.open(self.digest, self.data)
        return client.open(self.digest, self.data, self.memory.fd, self.memory.size)


def named(loader: str) -> Definition:
    """For workers that import the loader themselves: `loader` is "module:attribute"."""
    digest = hashlib.blake2b(loader.encode(), digest_size=16, person=b"taas named").hexdigest()
    return Definition(digest, _with_head({"loader": loader, "modules": modules.plain_values()}))


def _pickled(sent: recipe_pickle.Sent, digest: str, with_modules: bool) -> Definition:
    """Raises OSError where there is no memory for what goes beside the pickle."""
    beside = memory_of(sent.beside)
    values = modules.plain_values() if with_modules else {}
    head = {"places": beside.places if beside else [], "modules": values}
    return Definition(digest, _with_head(head) + sent.pickle, beside)


def _with_head(head: dict[str, Any]) -> bytes:
    return json.dumps(head).encode() + b"\n"


def _dumped(recipe: Recipe) -> recipe_pickle.Sent:
    """Raises TypeError with the part that cannot be pickled and the way out."""
    try:
        return recipe_pickle.dumped(recipe)
    except MemoryError:
        raise
    except Exception as error:
        part, why = culprit(recipe, "the loader", error, lambda *part: recipe_pickle.try_part(recipe, *part))
        part = part.removeprefix("the loader.")
        if isinstance(why, (Refused, BelongsToGraph)):
            raise TypeError(f"taas: {part} of the registered loader is not for data workers: {why}") from error
        raise TypeError(
            f"taas: {part} of the registered loader cannot be pickled, so it cannot be sent to data workers: "
            f"{by_value.first_line(why)}{by_value.hint()}. Open files and connections on first use in __getitem__, "
            "or in worker_init_fn, or run without --cpus"
        ) from error


def _digest(sent: recipe_pickle.Sent) -> str:
    digest = hashlib.blake2b(sent.pickle, digest_size=16)
    for buffer in sent.beside:
        raw = buffer.raw()
        digest.update(raw.nbytes.to_bytes(8, "little") + native.digest(raw).to_bytes(8, "little"))
    return digest.hexdigest()


class Sending:
    """What data workers have of one registered loader: what it is at each loop; with persistent_workers, at the first.

    `imported` is the "module:attribute" by which they have it already, where they do: they are sent it once it is not
    what it was then. `name` is for people.
    """

    def __init__(self, loader: DataLoader, imported: str, name: str) -> None:
        self.has_generators = False
        """Random generators go with a map-style dataset: they are seeded for each batch."""
        self.is_imported = False
        """Data workers have it as they import it, and may have prepared batches of it."""
        self._name = name
        self._imported = imported
        self._as_imported = ""
        self._digest = ""
        self._last: Definition | None = None
        self._state = b""
        if imported:
            try:
                self._as_imported = _digest(_dumped(recipe_of(loader)))
            except TypeError as error:
                _say(f"{name}: data workers have it as they import it, whatever the program changes in it: {error}")

    def now(self, loader: DataLoader) -> tuple[Definition, bytes]:
        """For a loop that begins: the definition, and the state of the program.

        Raises TypeError when the loader cannot be sent, and OSError when there is no memory for it.
        """
        if self._last is None or not loader.persistent_workers:
            self._state = state.captured()
            self._last = self._definition(recipe_of(loader))
        return self._last, self._state

    def _definition(self, recipe: Recipe) -> Definition:
        if self._imported and not self._as_imported:
            self.is_imported = True
            return self._last or named(self._imported)
        start = time.monotonic()
        sent = _dumped(recipe)
        digest = _digest(sent)
        seconds = time.monotonic() - start
        if seconds > _SLOW_SECONDS and not (self._last or recipe.persistent):
            _say(
                f"{self._name}: it takes {seconds:.1f} s before each loop to pickle its dataset, which may have "
                "changed: persistent_workers=True has it sent once"
            )
        self.has_generators = bool(sent.generators) and not recipe.iterable
        if self._last and self._digest == digest:
            return self._last
        is_imported = digest == self._as_imported
        made = named(self._imported) if is_imported else _pickled(sent, digest, with_modules=self._last is None)
        self._digest, self.is_imported = digest, is_imported
        return made


def _say(line: str) -> None:
    if speaks_for_all():
        events.remark_once(line)


class Source(NamedTuple):
    """In a data worker: `load` makes the recipe, anew each time, and raises what importing and unpickling raise.

    `modules` is what modules.plain_values() gave in the rank, where it did.
    """

    load: Callable[[], Arrived]
    modules: dict[str, str]


def source(digest: str, data: bytes, memory_fd: int = -1, memory_bytes: int = 0) -> Source:
    """Of a definition that came. The descriptor becomes its own."""
    line, _, pickle = data.partition(b"\n")
    head = json.loads(line)
    if "loader" in head:
        return Source(load_of(loader_named(head["loader"])), head["modules"])
    memory = ReceivedMemory(memory_fd, memory_bytes, head["places"], digest) if memory_fd >= 0 else None
    return Source(_loading(pickle, memory), head["modules"])


def load_of(loader: DataLoader) -> Callable[[], Arrived]:
    """The same of a loader that this process has: copies of it, where logical workers keep something."""
    recipe = recipe_of(loader)
    if not recipe.keeps:
        own = Arrived(recipe, recipe_pickle.generators_of(recipe), OfMain({}))
        return lambda: own
    sent = _dumped(recipe)
    beside = memory_of(sent.beside)
    memory = ReceivedMemory(os.dup(beside.fd), beside.size, beside.places) if beside else None
    return _loading(sent.pickle, memory)


def _loading(pickle: bytes, memory: ReceivedMemory | None) -> Callable[[], Arrived]:
    return lambda: recipe_pickle.load(pickle, memory.map() if memory else [])


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
