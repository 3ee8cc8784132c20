"""What a data worker is asked for: one batch, as bytes. Two tasks that are equal are equal bytes.

And what comes with a batch of a stream beside it.
"""

from __future__ import annotations

import array
import pickle
import struct
from typing import Any, NamedTuple

from .seeds import Seeds

_HEAD = struct.Struct("<iiQQQII")
_INTEGERS, _PICKLED, _SHARD, _DEALT = 0, 1, 2, 3
_TURN = struct.Struct("<q")
_DEALT_TURN = struct.Struct("<qII")
_FACTS = struct.Struct("<QQQ")


class UndeliverableBatch(RuntimeError):
    """No data worker can make a batch."""


class Dealing(NamedTuple):
    """Of a stream that `ranks` ranks share: what is dealt to `rank`."""

    rank: int
    ranks: int


class Facts(NamedTuple):
    """Of a batch of a stream: the digest of what the shard has given before it, and with it; 64 bits each.

    `samples` counts those in the batch; 0: there is none, the shard has ended.
    """

    before: int
    after: int
    samples: int

    def to_bytes(self) -> bytes:
        """24 bytes, which lie at the end of the batch's payload."""
        return _FACTS.pack(*self)

    @classmethod
    def at_end_of(cls, payload: Any) -> Facts:
        """Those of a payload."""
        return cls(*_FACTS.unpack(payload[-_FACTS.size :]))


class Task(NamedTuple):
    """One batch of an epoch.

    `indices` is what the loader's index sampler gave: a list of indices, or one index with batch_size=None. For an
    iterable dataset it is None, and the batch is the `turn`th of the shard `logical_worker`; with `dealt`, the `turn`th
    of those of the shard that are dealt to one rank. `logical_worker` is the worker that the plain loader would have
    had for it, 0 with num_workers=0.
    """

    seeds: Seeds
    number: int
    logical_worker: int
    indices: Any = None
    turn: int = -1
    dealt: Dealing | None = None

    @property
    def rank(self) -> int:
        """Whose batch it is. What is dealt has the seeds of rank 0."""
        return (self.dealt or self.seeds).rank

    @property
    def worker(self) -> tuple[int, int, Dealing | None]:
        """Tells the logical workers of all ranks apart."""
        return self.rank, self.logical_worker, self.dealt

    def place(self, workers: int) -> int:
        """Which data worker, modulo their number, its logical worker stays on; each rank has so many of these."""
        return self.rank * workers + self.logical_worker

    def __str__(self) -> str:
        """Which batch it is, for people."""
        place = f"batch {self.number} of epoch {self.seeds.epoch}"
        return f"{place}, indices {short(self.indices)}" if self.turn < 0 else place

    def to_bytes(self) -> bytes:
        """The payload: a head of 40 bytes, and the indices."""
        kind, body = _body_of(self)
        initial, rank, ordinal, epoch = self.seeds
        return _HEAD.pack(kind, self.logical_worker, self.number, epoch, initial, rank, ordinal) + body


def short(indices: Any) -> str:
    """In one line."""
    text = " ".join(repr(indices).split())
    return text if len(text) <= 80 else text[:76] + " …]"


def _body_of(task: Task) -> tuple[int, bytes]:
    if task.dealt:
        return _DEALT, _DEALT_TURN.pack(task.turn, *task.dealt)
    if task.turn >= 0:
        return _SHARD, _TURN.pack(task.turn)
    indices = task.indices
    if type(indices) is list and (body := integers(indices)):
        return _INTEGERS, body
    return _PICKLED, pickle.dumps(indices, protocol=5)


def integers(values: list[Any]) -> bytes | None:
    """Eight bytes for each. None where there is none, and where one is something else, or too large."""
    if set(map(type, values)) != {int}:
        return None
    try:
        return array.array("q", values).tobytes()
    except OverflowError:
        return None


def from_bytes(payload: bytes) -> Task:
    """The task that `payload` stands for."""
    kind, logical, number, epoch, initial, rank, ordinal = _HEAD.unpack_from(payload)
    seeds, body = Seeds(initial, rank, ordinal, epoch), payload[_HEAD.size :]
    if kind == _SHARD:
        return Task(seeds, number, logical, turn=_TURN.unpack(body)[0])
    if kind == _DEALT:
        turn, rank, ranks = _DEALT_TURN.unpack(body)
        return Task(seeds, number, logical, turn=turn, dealt=Dealing(rank, ranks))
    return Task(seeds, number, logical, array.array("q", body).tolist() if kind == _INTEGERS else pickle.loads(body))


def content_of(payload: bytes) -> bytes:
    """The part of a payload that says what the batch is made of, without seeds and its place in the epoch."""
    return payload[:8] + payload[_HEAD.size :]
