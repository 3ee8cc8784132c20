"""Objects of one program's main namespace as bytes, and back in another's: from kernel to ranks, and from rank 0 back.

What the notebook itself defines goes by value, what can be imported by reference. Functions come back with the
receiving program's main namespace as their globals, so that a name means the same to the cell and to what it calls. The
memory of tensors and numpy arrays goes into one file beside the pickle, which the receiver maps: all ranks of a machine
share it, and a rank that writes gets pages of its own.
"""

from __future__ import annotations

import functools
import os
import pickle
import sys
import types
from typing import Any, BinaryIO, Callable

import cloudpickle

from ...sending import reducers
from .memory import Memory, mapped

_SMALL = 1 << 10


class Uncapturable(Exception):
    """Why the object `about` cannot be sent, in words that go on after its name.

    `fix` says where to make it instead.
    """

    def __init__(self, about: Any, why: str, fix: str) -> None:
        super().__init__(why)
        self.about, self.fix = about, fix


class Sender(cloudpickle.Pickler):
    """Pickles objects of `namespace`.

    `names` are the global names that the functions among them read, `words` everything that their code mentions.
    `known` gives the name under which the receiver has an object already, or None.
    """

    def __init__(
        self,
        file: BinaryIO,
        namespace: dict[str, Any],
        memory: Memory,
        *,
        gpus: bool,
        known: Callable[[Any], str | None] = lambda _: None,
    ) -> None:
        super().__init__(file, protocol=5, buffer_callback=self._out_of_band)
        self.names: dict[str, int] = {}
        self.words: set[str] = set()
        self.places: list[tuple[int, int, bool]] = []
        self._namespace, self._memory, self._gpus, self._known = namespace, memory, gpus, known

    def reducer_override(self, obj: Any) -> Any:
        """Called for everything but numbers, texts and containers. Raises Uncapturable."""
        self._check(obj)
        if isinstance(obj, (types.FunctionType, type)) and (name := self._known(obj)):
            return _known_as, (name,)
        if isinstance(obj, types.FunctionType) and obj.__globals__ is self._namespace:
            return self._function(obj)
        torch = sys.modules.get("torch")
        if torch and isinstance(obj, (torch.storage.TypedStorage, torch.storage.UntypedStorage)):
            return self._storage(torch, obj)
        if type(obj) is functools.cached_property:  # which has a lock of its own before Python 3.12
            own = {name: part for name, part in vars(obj).items() if name != "lock"}
            return _new_property, (), own, None, None, _complete_property
        if (reduced := reducers.reduced(obj)) is not NotImplemented:
            return reduced
        return super().reducer_override(obj)

    def _check(self, obj: Any) -> None:
        if hasattr(obj, "fileno") and hasattr(obj, "closed") and not obj.closed:
            raise Uncapturable(obj, f"an open file ({getattr(obj, 'name', '?')!r})", "open it in the cell")
        if isinstance(obj, (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)):
            raise Uncapturable(
                obj,
                f"a {type(obj).__name__}, which stands in the middle of its code",
                "make it in the cell, or capture list(…) of it",
            )
        if type(obj).__module__ == "_thread":
            raise Uncapturable(obj, "a lock, which only the threads of one process share", "make it in the cell")
        torch = sys.modules.get("torch")
        if torch and isinstance(obj, torch.Tensor) and obj.device.type == "cuda" and not self._gpus:
            raise Uncapturable(
                obj,
                f"a tensor on {obj.device}, and the cell's ranks have no GPU",
                "capture its .cpu() under another name",
            )

    def _function(self, function: types.FunctionType) -> Any:
        from .names import globals_of, words_of

        self.names |= globals_of(function.__code__)
        self.words |= words_of(function.__code__)
        cells = function.__closure__ or ()
        attributes = {
            name: getattr(function, name)
            for name in ("__defaults__", "__kwdefaults__", "__module__", "__qualname__", "__doc__", "__annotations__")
        }
        state = attributes, dict(function.__dict__), [_content(cell) for cell in cells]
        return _new_function, (function.__code__, function.__name__, len(cells)), state, None, None, _complete_function

    def _storage(self, torch: Any, storage: Any) -> Any:
        typed = isinstance(storage, torch.storage.TypedStorage)
        untyped = storage._untyped_storage if typed else storage
        dtype = storage.dtype if typed else None
        key = untyped.device, untyped.data_ptr(), untyped.nbytes()
        bytes_ = torch.empty(0, dtype=torch.uint8, device="cpu")
        if untyped.nbytes():
            bytes_ = bytes_.set_(untyped.cpu())
        place = self._memory.place(bytes_.numpy(), key if untyped.nbytes() else None)
        return _storage_at, (place, untyped.nbytes(), dtype, untyped.device.type)

    def _out_of_band(self, buffer: pickle.PickleBuffer) -> bool:
        raw = buffer.raw()
        if raw.nbytes < _SMALL:
            return True
        self.places.append((self._memory.place(raw), raw.nbytes, raw.readonly))
        return False


def _content(cell: Any) -> Any:
    try:
        return (cell.cell_contents,)
    except ValueError:  # not bound yet
        return ()


class Receiver:
    """Loads what a Sender has pickled.

    `namespace` becomes the functions' globals; `known` has what was sent as a name.
    """

    _current: Receiver

    def __init__(
        self,
        file: BinaryIO,
        places: list[tuple[int, int, bool]],
        memory: str,
        namespace: dict[str, Any],
        known: dict[str, Any] | None = None,
    ) -> None:
        self.namespace, self.known = namespace, known or {}
        self._mapped = mapped(memory)
        self._storages: dict[tuple[int, int], Any] = {}
        self._unpickler = pickle.Unpickler(file, buffers=(self.bytes_at(*place) for place in places))

    def load(self) -> Any:
        """The next object. Raises what its loading raises."""
        Receiver._current = self
        return self._unpickler.load()

    def bytes_at(self, place: int, size: int, readonly: bool = False) -> memoryview:
        """A part of the file."""
        part = memoryview(self._mapped)[place : place + size]
        return part.toreadonly() if readonly else part

    def storage_at(self, place: int, size: int, device: str) -> Any:
        """The untyped storage there; the same object each time, since tensors may share one."""
        import torch

        if (place, size) not in self._storages:
            found: Any = (
                torch.frombuffer(self._mapped, dtype=torch.uint8, count=size, offset=place).untyped_storage()
                if size
                else torch.UntypedStorage(0)
            )
            if device == "cuda":
                found = found.cuda(_first_device() % torch.cuda.device_count())
            self._storages[place, size] = found
        return self._storages[place, size]


def _first_device() -> int:
    """Ranks with several devices see their own only."""
    return 0 if int(os.environ.get("TAAS_DEVICES_PER_RANK", 1)) > 1 else int(os.environ.get("LOCAL_RANK", 0))


def _known_as(name: str) -> Any:
    return Receiver._current.known[name]


def _new_function(code: types.CodeType, name: str, cells: int) -> types.FunctionType:
    return types.FunctionType(
        code, Receiver._current.namespace, name, None, tuple(types.CellType() for _ in range(cells))
    )


def _complete_function(function: types.FunctionType, state: Any) -> None:
    attributes, own, contents = state
    for name, value in attributes.items():
        setattr(function, name, value)
    function.__dict__.update(own)
    for cell, content in zip(function.__closure__ or (), contents):
        if content:
            cell.cell_contents = content[0]


def _new_property() -> functools.cached_property[Any]:
    return functools.cached_property(lambda _: None)  # _complete_property() fills it


def _complete_property(value: functools.cached_property[Any], own: dict[str, Any]) -> None:
    vars(value).update(own)


def _storage_at(place: int, size: int, dtype: Any, device: str) -> Any:
    import torch

    untyped = Receiver._current.storage_at(place, size, device)
    return untyped if dtype is None else torch.storage.TypedStorage(wrap_storage=untyped, dtype=dtype, _internal=True)
