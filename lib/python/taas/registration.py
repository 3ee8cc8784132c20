"""Registering a loader in place: the object stays, and its loops are fed by data workers, where there are any."""

from __future__ import annotations

import functools
import itertools
import os
import weakref
from typing import Any, TypeVar

from torch.utils.data import DataLoader, IterDataPipe, MapDataPipe

from .delivery import device as devices, run_workers
from .delivery.registered import Registered
from .order import sharing
from .order.index_batches import own_sampler

_T = TypeVar("_T")
_KEY = "_taas"
_taken: set[int] = set()
_epochs_had: weakref.WeakKeyDictionary[DataLoader[Any], int] = weakref.WeakKeyDictionary()


class RegistrationError(ValueError):
    """A loader that cannot be registered, or unregistered."""


def register(loader: DataLoader[_T], device: Any = None, shared: bool | None = None) -> DataLoader[_T]:
    """Lets the run's data workers make the batches of `loader` from its next loop on; returns the same object.

    Without data workers it is the DataLoader that it was, with state_dict(), --units, `device` and `shared` all the
    same. With device="cuda" (or "cuda:1", or a torch.device) tensors of its batches arrive on that GPU, copied ahead of
    the loop where data workers make them. With shared=True all ranks have one stream together: its batches are dealt
    over them, each to one rank, in the order that rank 0 draws, or an iterable dataset gives. shared=None is what
    --split says, for loaders that can be shared. Also a context manager: `with taas.register(loader): …` unregisters it
    at the end. Raises RegistrationError when `loader` is no DataLoader or is registered already, for a device that is
    not there, and for a loader that cannot be shared, or that data workers cannot read.
    """
    if not issubclass(type(loader), DataLoader):  # its __class__ may say so, too
        raise RegistrationError(f"taas.register: {_described(loader)} is not a torch.utils.data.DataLoader")
    if is_registered(loader):
        raise RegistrationError("taas.register: this loader is registered already; taas.unregister(loader) ends that")
    try:
        is_shared = sharing.is_wanted(loader, shared)
        if os.environ.get("TAAS_ROLE") == "data-worker":
            sharing.note(loader, is_shared)
            return loader
        target = None if device is None else devices.chosen(device)
    except ValueError as error:
        raise RegistrationError(f"taas.register: {error}") from None
    has_workers = run_workers.connected() is not None
    if has_workers and isinstance(loader.dataset, (IterDataPipe, MapDataPipe)):
        raise RegistrationError(
            "taas.register: data workers do not read DataPipes: give the loader a Dataset or an IterableDataset, or "
            "run without --cpus"
        )
    if is_shared and not has_workers and sharing.is_stream(loader) and sharing.place_of_rank()[1] > 1:
        raise RegistrationError(
            "taas.register: shared=True of an iterable dataset needs data workers: start the program with taas-run "
            "--cpus 1"
        )
    base = _plain_class(type(loader))
    registered = Registered(loader, _free_ordinal(), _epochs_had.get(loader, 0), target, is_shared)
    registered.asked_for = {"device": None if device is None else str(device), "shared": shared}
    loader.__dict__[_KEY] = registered
    loader.__class__ = _registered_class(base)
    _taken.add(registered.ordinal)
    return loader


def _free_ordinal() -> int:
    """The loader's place among those that are registered: the same whenever the program does the same.

    Only unregister() makes a place free. A loader that is let go of keeps its own: when it goes depends on the garbage
    collector.
    """
    return next(ordinal for ordinal in itertools.count() if ordinal not in _taken)


def unregister(loader: DataLoader[_T]) -> DataLoader[_T]:
    """From the next loop on `loader` is an ordinary DataLoader again; returns it.

    Raises RegistrationError when it was not registered.
    """
    if os.environ.get("TAAS_ROLE") == "data-worker":
        return loader
    if not is_registered(loader):
        raise RegistrationError(
            f"taas.unregister: {_described(loader)} is not registered; "
            "give the loader that taas.register was called with"
        )
    registered = loader.__dict__.pop(_KEY)
    registered.close()
    loader.__dict__.update({name: own_sampler(value) for name, value in loader.__dict__.items()})
    loader._iterator = None  # of persistent workers, which know the sampler that was
    _taken.discard(registered.ordinal)
    _epochs_had[loader] = registered.epoch
    loader.__class__ = _plain_class(type(loader))
    return loader


def is_registered(loader: Any) -> bool:
    """True between register and unregister. A copy of a registered loader is not registered."""
    return _registration_of(loader) is not None


def asked_for(loader: DataLoader[Any]) -> dict[str, Any]:
    """What else register was called with, to do the same in another process."""
    return _required(loader).asked_for


def _registration_of(loader: Any) -> Registered | None:
    registration = getattr(loader, "__dict__", {}).get(_KEY)
    return registration if registration is not None and registration.is_of(loader) else None


def _described(what: Any) -> str:
    return f"the {type(what).__name__} {what!r:.60}" if not issubclass(type(what), DataLoader) else "this DataLoader"


def _plain_class(cls: type) -> type:
    plain: type = vars(cls).get("_taas_plain_class", cls)
    return plain


@functools.lru_cache(maxsize=None)
def _registered_class(base: type[DataLoader[Any]]) -> type:
    """The class of registered loaders that were of class `base`: one for each, with the same name.

    Delivery stands below `base` and above DataLoader: what `base` does itself goes on, over batches that are delivered.
    """
    names = {name: getattr(base, name) for name in ("__module__", "__qualname__", "__doc__")}
    own = {name: method for name, method in _Methods.items() if not hasattr(base, name) or name == "__reduce_ex__"}
    if is_own(base, "__iter__"):
        own["__iter__"] = lambda self: _iterated(self, base)
    below = _Wrapped if is_own(base, "_get_iterator") else _Delivered
    bases = (below,) if base is DataLoader else (base, below)
    return type(base.__name__, bases, {**own, **names, "_taas_plain_class": base})


def is_own(cls: type, method: str) -> bool:
    """Whether `cls` has another `method` than torch's DataLoader."""
    return getattr(cls, method) is not getattr(DataLoader, method)


def _iterated(loader: Any, base: type[DataLoader[Any]]) -> Any:
    """The loader's class iterates by itself: it may ask torch's DataLoader for batches, or not."""
    if registration := _registration_of(loader):
        registration.is_iterated(f"{base.__name__}.__iter__")
    return base.__iter__(loader)


class _Counted(DataLoader):  # type: ignore[type-arg]
    """Where len() and the index sampler of a registered loader arrive."""

    __slots__ = ()

    @property
    def _index_sampler(self) -> Any:
        registration = _registration_of(self)
        batches, own = registration.index_batches if registration else None, super()._index_sampler
        if batches is None or batches is own:
            return own
        batches.inner = own  # which a program may have replaced
        return batches

    def __len__(self) -> int:
        """Of this rank. An iterable dataset's is a guess, as with the plain loader: its shards are dealt one by one."""
        registration = _registration_of(self)
        ranks = registration.ranks if registration and registration.common_stream else 1
        return -(-super().__len__() // ranks)


class _Delivered(_Counted):
    """Where super().__iter__() of a registered loader's class arrives."""

    __slots__ = ()

    def __iter__(self) -> Any:
        registration = _registration_of(self)
        return registration.iterate(self, super().__iter__) if registration else super().__iter__()


class _Wrapped(_Counted):
    """The same for classes that put an iterator of their own around that of super()._get_iterator()."""

    __slots__ = ()

    def __iter__(self) -> Any:
        """With data workers each loop has an iterator of its own: there is none that goes on."""
        registration = _registration_of(self)
        if registration is None:
            return super().__iter__()
        registration.is_iterated(f"{type(self).__name__}._get_iterator")
        return self._get_iterator() if registration.has_workers else super().__iter__()

    def _get_iterator(self) -> Any:
        registration = _registration_of(self)
        return registration.iterate(self, super()._get_iterator) if registration else super()._get_iterator()


def _enter(self: Any) -> Any:
    return self


def _exit(self: Any, *_: Any) -> None:
    if is_registered(self):
        unregister(self)


def _state_dict(self: Any) -> dict[str, Any]:
    """The position of the loop that is under way: for a checkpoint."""
    return _required(self).state_dict()


def _load_state_dict(self: Any, state: dict[str, Any]) -> None:
    """The next loop goes on behind the last batch that the saved one had had."""
    _required(self).load_state_dict(state)


def _required(loader: Any) -> Registered:
    registration = _registration_of(loader)
    if registration is None:
        raise RegistrationError("this is a copy of a registered loader: call taas.register on it first")
    return registration


def _reduce(self: Any, protocol: int) -> Any:
    """Copies and pickles are of the plain class.

    The state comes last: it may refer to the loader, as a collate_fn of its own does.
    """
    cls = _plain_class(type(self))
    own = {name: own_sampler(value) for name, value in self.__dict__.items() if name != _KEY}
    return cls.__new__, (cls,), own


_Methods = {
    "__slots__": (),
    "__enter__": _enter,
    "__exit__": _exit,
    "__reduce_ex__": _reduce,
    "state_dict": _state_dict,
    "load_state_dict": _load_state_dict,
}
