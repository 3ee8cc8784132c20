"""Whether a sampler that is drawn again draws the same order."""

from __future__ import annotations

import collections
import io
import pickle
import struct
from typing import Any

from ..runtime import native
from . import task

_CHAIN = struct.Struct("<Q")
_KEPT = 4096
_LIST, _ONE = b"l", b"i"  # no pickle begins so


class AnotherOrder(ValueError):
    """What has been drawn is not what was drawn before."""

    def __init__(self) -> None:
        super().__init__(
            "taas: load_state_dict: the sampler does not draw the order again in which this state was saved; either "
            "the dataset, the batch size or the seed is another one, or the sampler draws from random states that the "
            "program draws from as well: give it a torch.Generator of its own"
        )


class OrderDigest:
    """Chained over the index batches of an epoch, in the order in which they are drawn."""

    def __init__(self) -> None:
        self._count = 0
        self._values: collections.deque[int] = collections.deque([0], maxlen=_KEPT)
        self._expected: tuple[int, int] | None = None

    def noted(self, indices: Any) -> Any:
        """One more batch, which was drawn. Raises AnotherOrder."""
        self._count += 1
        self._values.append(native.digest(_CHAIN.pack(self._values[-1]) + _by_value(indices)))
        self._check()
        return indices

    def state(self) -> tuple[int, int]:
        """How many were drawn, and the digest of all of them."""
        return self._count, self._values[-1]

    def text(self) -> str:
        """The same, to be compared with that of others."""
        return "{}:{:x}".format(*self.state())

    def state_behind(self, count: int) -> tuple[int, int]:
        """The same as it was when so many were drawn: as many as the loop has had.

        No more than 4,096 are drawn ahead of it.
        """
        return count, self._values[-1 - (self._count - count)]

    def position(self, taken: int, ranks: int) -> dict[str, Any]:
        """Of a loop that has had so many batches, and whose batches so many ranks have together: for state_dict."""
        return {"batch": taken, "ranks": ranks, "taken": self.state_behind(taken), "order": self.state()}

    def expect_position(self, had: dict[str, Any]) -> None:
        """What is drawn must be what was drawn at that position. Raises AnotherOrder."""
        self.expect(tuple(had["taken"]))
        self.expect(tuple(had["order"]))

    def expect(self, state: tuple[int, int]) -> None:
        """After as many draws as in `state`, the digest must be the one there. Raises AnotherOrder."""
        self._expected = state
        self._check()

    def _check(self) -> None:
        if self._expected is None or self._count < self._expected[0]:
            return
        (count, value), self._expected = self._expected, None
        back = self._count - count
        if back < len(self._values) and self._values[-1 - back] != value:
            raise AnotherOrder


def _by_value(indices: Any) -> bytes:
    """The same for equal indices, whichever of them are one object; nothing for those that cannot be pickled."""
    if type(indices) is list:
        if integers := task.integers(indices):
            return _LIST + integers
    elif type(indices) is int and (integers := task.integers([indices])):
        return _ONE + integers
    file = io.BytesIO()
    pickler = pickle.Pickler(file, protocol=5)
    pickler.fast = True  # remembers no objects
    try:
        pickler.dump(indices)
    except Exception:
        return b""
    return file.getvalue()
