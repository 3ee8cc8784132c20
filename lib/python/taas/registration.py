"""Registering a loader in place: the object stays, and its loops are fed by data workers."""

from __future__ import annotations

import functools
import itertools
import os
import weakref
from typing import Any, Iterator, TypeVar

from torch.utils.data import DataLoader, IterDataPipe, MapDataPipe

from .delivery import device as devices, own_iteration
from .delivery.registered import Registered
from .order import sharing
from .order.shared_batches import own_sampler, unshare
from .runtime import events
from .runtime.identity import speaks_for_all

_T = TypeVar("_T")
_KEY = "_taas"
_AS_WITH_ONE_WORKER = (
    "num_workers=0 is as num_workers=1 for a registered loader: another process makes its batches, of the dataset as "
    "it is when a loop begins; taas.unregister(loader) to have them made in this process"
)
_taken: set[int] = set()
_epochs_had: weakref.WeakKeyDictionary[DataLoader[Any], int] = weakref.WeakKeyDictionary()


class RegistrationError(ValueError):
    """A loader that cannot be registered, or unregistered."""


def register(loader: DataLoader[_T], device: Any = None, shared: bool | None = None) -> DataLoader[_T]:
    """Lets data workers make the batches of `loader` from its next loop on; returns the same object.

    With device="cuda" (or "cuda:1", or a torch.device) tensors of its batches arrive on that GPU, copied ahead of the
    loop. With shared=True all ranks have one stream together: its batches are dealt over them, each to one rank, in the
    order that rank 0 draws, or an iterable dataset gives. shared=None is what --split says, for loaders that can be
    shared. Also a context manager: `with taas.register(loader): …` unregisters it at the end. Raises RegistrationError
    when `loader` is no DataLoader or is registered already, for a device that is not there, and for a loader that
    cannot be shared.
    """
    if not isinstance(loader, DataLoader):
        raise RegistrationError(f"taas.register: {_described(loader)} is not a torch.utils.data.DataLoader")
    if isinstance(loader.dataset, (IterDataPipe, MapDataPipe)):
        raise RegistrationError(
            "taas.register: a DataPipe cannot be registered: give the loader a Dataset or an IterableDataset"
        )
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
    if why := own_iteration.why_refused(loader):
        raise RegistrationError(f"taas.register: {why}")
    why_plain = own_iteration.why_plain(loader)
    if is_shared and why_plain:
        raise RegistrationError(f"taas.register: shared=True, but {why_plain}")
    base = _plain_class(type(loader))
    registered = Registered(loader, _free_ordinal(), _epochs_had.get(loader, 0), target)
    registered.asked_for = {"device": None if device is None else str(device), "shared": shared}
    if is_shared:
        registered.ranks, registered.common_stream = sharing.begin(loader, registered.name)
    loader.__dict__[_KEY] = registered
    loader.__class__ = _registered_class(base)
    _taken.add(registered.ordinal)
    if why_plain:
        events.remark_once(f"{registered.name}: {why_plain}")
    else:
        if not loader.num_workers and speaks_for_all():
            events.remark_once(_AS_WITH_ONE_WORKER)
        registered.prepare(loader)
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
    unshare(loader)
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
    return f"the {type(what).__name__} {what!r:.60}" if not isinstance(what, DataLoader) else "this DataLoader"


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
    if own_iteration.is_own(base, "__iter__"):
        own["__iter__"] = lambda self: _followed(self, base.__iter__(self))
    below = _Wrapped if own_iteration.is_own(base, "_get_iterator") else _Delivered
    bases = (below,) if base is DataLoader else (base, below)
    return type(base.__name__, bases, {**own, **names, "_taas_plain_class": base})


class _Shared(DataLoader):  # type: ignore[type-arg]
    """Where len() of a registered loader arrives."""

    __slots__ = ()

    def __len__(self) -> int:
        """Of this rank. An iterable dataset's is a guess, as with the plain loader: its shards are dealt one by one."""
        registration = _registration_of(self)
        ranks = registration.ranks if registration and registration.common_stream else 1
        return -(-super().__len__() // ranks)


class _Delivered(_Shared):
    """Where super().__iter__() of a registered loader's class arrives."""

    __slots__ = ()

    def __iter__(self) -> Any:
        registration = _registration_of(self)
        return registration.iterate(self) if registration else super().__iter__()


class _Wrapped(_Shared):
    """The same for classes that put an iterator of their own around that of super()._get_iterator()."""

    __slots__ = ()

    def _get_iterator(self) -> Any:
        registration = _registration_of(self)
        return registration.iterate(self) if registration else super()._get_iterator()


def _followed(loader: DataLoader[Any], batches: Iterator[Any]) -> Iterator[Any]:
    registration = _registration_of(loader)
    return registration.followed(batches) if registration else batches


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
