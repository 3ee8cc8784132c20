"""What a place of a number can be nested in, on the way from the dataset to it. Each gives an object with `read`."""

import collections
import dataclasses
import functools
import types
from typing import Any, Callable

import torch


class InAnAttribute:
    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def read(self) -> int:
        return self.inner.read()


class InAContainer:
    """`wrap` puts it into a container, `find` gets it out."""

    def __init__(self, wrap: Callable[[Any], Any], inner: Any) -> None:
        self.container = wrap(inner)

    def read(self) -> int:
        held = self.container
        while not hasattr(held, "read"):
            held = next(iter(held.values() if isinstance(held, dict) else held))
        return held.read()


class InSlots:
    __slots__ = ("inner",)

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    read = InAnAttribute.read


@dataclasses.dataclass(frozen=True, slots=True)
class InFrozenSlots:
    inner: Any

    def read(self) -> int:
        return self.inner.read()


class InADict(dict):
    """A dict with an attribute."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner=inner)
        self.again = inner

    def read(self) -> int:
        return self["inner"].read() + 1000 * (self["inner"] is not self.again)


class InAList(list):
    def read(self) -> int:
        return self[0].read()


class Named(collections.namedtuple("Named", ["inner", "other"])):
    def read(self) -> int:
        return self.inner.read()


class Delegating:
    """Answers as what it wraps for all that it does not have."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class WithItsOwnState:
    """Pickled in its own words."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def read(self) -> int:
        return self.inner.read()

    def __getstate__(self) -> Any:
        return ("kept", self.inner)

    def __setstate__(self, state: Any) -> None:
        _, self.inner = state


class Reduced:
    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def read(self) -> int:
        return self.inner.read()

    def __reduce__(self) -> Any:
        return type(self), (self.inner,)


class WithAnIdentity:
    """Equal to all of its kind; found in a set."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, WithAnIdentity)

    def __hash__(self) -> int:
        return 7

    def read(self) -> int:
        return self.inner.read()


class InAModule(torch.nn.Module):
    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def read(self) -> int:
        return self.inner.read()


class InACircle:
    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.itself = [self]

    def read(self) -> int:
        return self.itself[0].itself[0].inner.read()


class ByDescriptor:
    class Reader:
        def __get__(self, holder: Any, kind: type | None = None) -> Any:
            return holder.__dict__["kept"].read

    read = Reader()

    def __init__(self, inner: Any) -> None:
        self.__dict__["kept"] = inner


class Function:
    """What it reads by is a function, not an object."""

    def __init__(self, read: Callable[[], int]) -> None:
        self.read = read


def in_a_lambda(inner: Any) -> Any:
    return Function(lambda: inner.read())


def in_a_partial(inner: Any) -> Any:
    return Function(functools.partial(lambda held: held.read(), inner))


def in_a_bound_method(inner: Any) -> Any:
    return Function(InAnAttribute(inner).read)


def in_a_local_class(inner: Any) -> Any:
    class Local:
        held = inner

        def read(self) -> int:
            return self.held.read()

    return Local()


def in_a_default(inner: Any) -> Any:
    def read(held: Any = inner) -> int:
        return held.read()

    return Function(read)


def in_a_method_of_its_own(inner: Any) -> Any:
    def read(self: Any) -> int:
        return inner.read()

    holder = Function(lambda: 0)
    holder.read = types.MethodType(read, holder)
    return holder


IN_A_CONTAINER = {
    "a list": lambda inner: [inner],
    "a dict": lambda inner: {"a": inner},
    "a tuple": lambda inner: (inner,),
    "a deque": lambda inner: collections.deque([inner]),
    "an ordered dict": lambda inner: collections.OrderedDict(a=inner),
    "a list in a dict in a tuple": lambda inner: ({"b": [inner]},),
    "a set": lambda inner: {WithAnIdentity(inner)},
}

NESTINGS = {
    "an attribute": InAnAttribute,
    "slots": InSlots,
    "frozen slots": InFrozenSlots,
    "a dict with an attribute": InADict,
    "a kind of list": lambda inner: InAList([inner]),
    "a named tuple": lambda inner: Named(inner, 1),
    "a delegate": Delegating,
    "its own state": WithItsOwnState,
    "a reduction": Reduced,
    "a module of torch": InAModule,
    "a circle": InACircle,
    "a descriptor": ByDescriptor,
    "a lambda": in_a_lambda,
    "a partial": in_a_partial,
    "a bound method": in_a_bound_method,
    "a local class": in_a_local_class,
    "a default argument": in_a_default,
    "a method of its own": in_a_method_of_its_own,
    **{name: functools.partial(InAContainer, wrap) for name, wrap in IN_A_CONTAINER.items()},
}
