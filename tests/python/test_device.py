"""Batches in pinned memory and on a GPU. There is none here: a fake one copies late, and its memory is used again at once."""

import collections
import contextlib
import ctypes
import dataclasses
import os
import random
import types
from typing import Any

import pytest
import taas
import torch
from conftest import equal, loop, wait_until
from own_datasets import Big, Numbers, numbers
from fake_gpu import LateCopies, all_here, copies, cuda  # noqa: F401
from taas.batch import cuda_copies, nested
from taas.delivery import checked_copies, staged
from taas.runtime import native
from torch.utils.data import DataLoader, IterableDataset

pytestmark = pytest.mark.filterwarnings("ignore:'pin_memory' argument is set")

FULL = bool(os.environ.get("TAAS_FULL"))

Pair = collections.namedtuple("Pair", "image label")


@dataclasses.dataclass(frozen=True)
class Example:
    image: Any
    name: str


class Movable:
    """Has an idea of its own of how it is moved."""

    def to(self, where):
        return ("moved", where)


def big():
    return DataLoader(Big(60), 1, num_workers=1, pin_memory=True)  # 1 MiB each


@pytest.fixture
def little_memory(monkeypatch):
    monkeypatch.setenv("TAAS_DATA_BUFFER_BYTES", str(16 << 20))


def late_copies_of(loader, cuda, every):
    """What a loop has that copies each batch without waiting, and lets it go. The copies are done now and then."""
    there = []
    for number, batch in enumerate(loader):
        there.append(cuda.copy(batch))
        if every and number % every == every - 1:
            cuda.run()
    cuda.run()
    return there


@pytest.mark.parametrize("every", [7, 0])
def test_late_copies_out_of_pinned_batches_have_the_right_bytes(cuda, little_memory, every):
    plain = loop(big())
    with taas.register(big()) as loader:
        assert equal(late_copies_of(loader, cuda, every), plain)


class Drawn(Big):
    """Batches of all sizes: copied at once, and by other threads."""

    def __getitem__(self, index):
        size = random.Random(index).choice([1, 300, 40_000, 300_000, 900_000])
        return {"image": torch.full((size,), index, dtype=torch.int32), "label": index, "more": (torch.arange(index), str(index))}


@pytest.mark.parametrize("seed", range(1000 if FULL else 20))
def test_batches_that_are_held_copied_and_let_go_at_random_have_the_right_bytes(cuda, little_memory, seed):
    draw, held, there = random.Random(seed), [], []
    def drawn():
        return DataLoader(Drawn(24), None, num_workers=1, pin_memory=True)
    plain = loop(drawn())
    with taas.register(drawn()) as loader:
        for batch in loader:
            there.append(nested.mapped(batch, lambda leaf: cuda.copy(leaf) if isinstance(leaf, torch.Tensor) else leaf))
            held.append(batch)
            del batch
            while held and draw.random() < 0.6:
                held.pop(draw.randrange(len(held)))
            if draw.random() < 0.2:
                cuda.run()
    cuda.run()
    assert equal(there, plain)


class CopiesLater:
    """Keeps nothing, and copies when it is waited for."""

    def __init__(self, parts, owners):
        self._parts = parts

    def wait(self):
        for to, source, count in self._parts:
            ctypes.memmove(to, source, count)


def test_copies_whose_source_is_let_go_too_early_have_not(cuda, little_memory, monkeypatch):
    """The tests above can fail."""
    plain = loop(big())
    monkeypatch.setattr(native.module, "Copy", CopiesLater)
    with taas.register(big()) as loader:
        assert not equal(late_copies_of(loader, cuda, 0), plain)


def test_storage_that_is_let_go_before_its_copy_is_done_shows(cuda):
    """The fake can be damaged as a GPU's copies would be."""
    source = torch.arange(1000)
    pinned = cuda.new(source).copy_(source)
    there = cuda.copy(pinned)
    cuda.blocks[0].copies = 0  # as if torch did not know of it
    del pinned
    cuda.run()
    assert not equal(there, source)


def test_pinned_memory_is_used_again(cuda):
    with taas.register(big()) as loader:
        for batch in (batch for _ in range(3) for batch in loader):
            assert cuda.is_pinned(batch)
            del batch
    assert cuda.given == 180 and len(cuda.blocks) <= 2 + staged.BATCHES_AHEAD


def test_nothing_is_pinned_before_the_program_uses_a_gpu(cuda, monkeypatch):
    is_initialised = False
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: is_initialised)
    with taas.register(big()) as loader:
        for number, batch in enumerate(loader):
            is_initialised = number >= 10
            assert cuda.is_pinned(batch) == (number > 10)


def test_nothing_is_pinned_for_loaders_that_pin_nothing(cuda):
    with taas.register(DataLoader(Big(4), 1)) as loader:
        assert not any(cuda.is_pinned(batch) for batch in loader)


class Own:
    """Has an idea of its own of how it is pinned."""

    def __init__(self, is_pinned=False):
        self.is_pinned = is_pinned

    def pin_memory(self):
        return Own(True)


class Odd(Numbers):
    def __getitem__(self, index):
        return (torch.full((2, 3), index).t(), torch.empty(0), Pair(torch.ones(2), "text"), Own(), Example(torch.ones(3), "name"),
                torch.eye(2).to_sparse(), {"a": [torch.tensor(index), b"bytes", None]})


def test_what_is_pinned_is_what_the_plain_loader_pins(cuda):
    def leaves_of(batch):
        turned, empty, pair, own, example, sparse, nest = batch
        return [turned.stride(), type(pair), own.is_pinned, type(sparse), equal(nest["a"][1:], [b"bytes", None]),
                *map(cuda.is_pinned, (turned, pair.image, example.image, nest["a"][0]))]

    with taas.register(DataLoader(Odd(), None, num_workers=1, pin_memory=True)) as loader:
        for batch in loader:
            assert leaves_of(batch) == [(1, 3), Pair, True, torch.Tensor, True, True, True, False, True]


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_batches_on_a_device_are_those_of_the_plain_loader(cuda, copies, monkeypatch, workers):
    monkeypatch.setenv("TAAS_DATA_WORKERS", str(workers))
    with taas.register(DataLoader(numbers, 8), device="cuda") as loader:
        for _ in range(3):
            assert equal(loop(loader), loop(DataLoader(numbers, 8)))
    assert copies.most <= 1 + staged.BATCHES_AHEAD


def test_copies_read_late_have_the_right_bytes(cuda, copies, little_memory):
    with taas.register(big(), device="cuda") as loader:
        assert equal(loop(loader), loop(big()))
    assert copies.most == 1 + staged.BATCHES_AHEAD


def test_the_next_batches_are_copied_while_the_loop_is_at_one_and_no_more(cuda, copies):
    with taas.register(DataLoader(numbers, 4), device="cuda") as loader:
        iterator = iter(loader)
        next(iterator), next(iterator)
        all_here(loader, 8)
        for taken in range(3, 8):
            next(iterator)
            assert copies.started == taken + staged.BATCHES_AHEAD


def test_a_copy_that_fails_ahead_of_the_loop_is_tried_again_in_its_turn(cuda, copies):
    plain = loop(DataLoader(numbers, 4))
    copies.fails = lambda number: number == 3
    with taas.register(DataLoader(numbers, 4), device="cuda") as loader:
        assert equal(loop(loader), plain)
        copies.fails = lambda number: True
        with pytest.raises(RuntimeError, match="out of memory"):
            next(iter(loader))


def test_exceptions_come_in_their_place(cuda, copies):
    class Faulty(Numbers):
        def __getitem__(self, index):
            if index == 9:
                raise KeyError("nine")
            return super().__getitem__(index)

    with taas.register(DataLoader(Faulty(), 4), device="cuda") as loader:
        iterator = iter(loader)
        assert equal([next(iterator), next(iterator)], loop(DataLoader(numbers, 4))[:2])
        with pytest.raises(KeyError):
            next(iterator)
        assert equal(next(iterator), loop(DataLoader(numbers, 4))[3])


def test_shards_that_end_are_followed(cuda, copies):
    class Stream(IterableDataset):
        def __iter__(self):
            return iter(torch.arange(21).unbind())

    with taas.register(DataLoader(Stream(), 4, num_workers=2), device="cuda") as loader:
        assert equal(loop(loader), loop(DataLoader(Stream(), 4, num_workers=2)))


def test_what_is_ahead_is_not_yet_taken(cuda, copies):
    plain = loop(DataLoader(numbers, 4))
    with taas.register(DataLoader(numbers, 4), device="cuda") as loader:
        iterator = iter(loader)
        for _ in range(3):
            next(iterator)
        state = loader.state_dict()
        del iterator
    with taas.register(DataLoader(numbers, 4), device="cuda") as loader:
        loader.load_state_dict(state)
        assert equal(loop(loader), plain[3:])


def test_a_loop_may_be_left_and_a_wrong_guess_corrected(cuda, copies):
    sampler = torch.utils.data.SubsetRandomSampler(range(20))
    with taas.register(DataLoader(numbers, 4, sampler=sampler), device="cuda") as loader:
        for _ in loader:
            break
        torch.manual_seed(3)
        there = loop(loader)
    torch.manual_seed(3)
    assert equal(there, loop(DataLoader(numbers, 4, sampler=sampler)))


@pytest.mark.parametrize("wrong", [0, 2, 15, 1000, 3000])
def test_a_copy_that_is_not_what_was_copied_ends_the_loop(cuda, wrong):
    class Damaged(LateCopies):
        def finish(self, started):
            there = super().finish(started)
            if self.started - 1 == wrong:
                there["b"][1][2] = float("nan")
            return there

    checked = checked_copies.CheckedCopies(Damaged(cuda))
    batch = {"a": torch.arange(3), "b": (torch.tensor(7), torch.full((5,), float("inf"))), "c": "text"}
    for _ in range(wrong):
        checked.finish(checked.start(batch))
    with pytest.raises(RuntimeError, match=f"tensor 2 of batch {wrong} .*float32, .5.. is not on cpu what .*element 2 is nan there and inf here"):
        checked.finish(checked.start(batch))


def test_copies_are_compared_to_the_bit_and_seldom(cuda, monkeypatch):
    compared = []
    monkeypatch.setattr(checked_copies, "_compare", lambda source, copy, what, compare=checked_copies._compare:
                        (compared.append(what), compare(source, copy, what)))
    checked = checked_copies.CheckedCopies(LateCopies(cuda))
    odd = [torch.tensor([float("nan")]), torch.tensor(1 + 2j).conj(), torch.empty(0), torch.tensor([True]), torch.ones(2, 3).t(), torch.eye(2).to_sparse()]
    for _ in range(1017):
        checked.finish(checked.start(odd))
    assert len(compared) == 5 * 17 and compared[-1] == "tensor 4 of batch 1000"


def test_everything_but_tensors_stays_as_it_is():
    tensor, thing = torch.ones(2), object()
    batch = {"a": [tensor, "text", b"bytes", 3, None], "b": Pair(tensor, 7), "c": (Example(tensor, "x"), thing),
             "d": collections.OrderedDict(z=tensor), "e": {1, 2}, "f": Movable()}
    there = nested.mapped(batch, lambda leaf: leaf + 1 if isinstance(leaf, torch.Tensor) else leaf)
    two = torch.full((2,), 2.0)
    assert equal(there["a"], [two, "text", b"bytes", 3, None])
    assert type(there["b"]) is Pair and equal(there["b"], Pair(two, 7))
    example, same = there["c"]
    assert type(example) is Example and equal(example.image, two) and example.name == "x" and same is thing
    assert type(there["d"]) is collections.OrderedDict and equal(there["d"]["z"], two)
    assert there["e"] == {1, 2} and there["f"] is batch["f"]
    assert batch["b"].image is tensor and batch["a"][0] is tensor


class Streams:
    """Stands in for torch.cuda: notes what is asked of streams. The device is "meta", whose tensors have no bytes."""

    def __init__(self, monkeypatch):
        self.asked = []
        monkeypatch.setattr(torch.cuda, "Stream", lambda where: self.stream("copies"))
        monkeypatch.setattr(torch.cuda, "stream", self.within)
        monkeypatch.setattr(torch.cuda, "current_stream", lambda where: self.stream("loop"))
        monkeypatch.setattr(torch.Tensor, "record_stream", lambda tensor, stream: self.asked.append(("uses", stream.name, tensor.shape)))

    def stream(self, name):
        stream = types.SimpleNamespace(name=name)
        stream.record_event = lambda: self.asked.append(("records", name)) or "event"
        stream.wait_event = lambda event: self.asked.append((f"waits for the {event}", name))
        return stream

    @contextlib.contextmanager
    def within(self, stream):
        self.asked.append(("begin", stream.name))
        yield
        self.asked.append(("end", stream.name))


def test_copies_are_asked_for_on_their_own_stream_and_the_loop_s_stream_waits(monkeypatch):
    streams = Streams(monkeypatch)
    copies = cuda_copies.CudaCopies(0)
    copies._device = torch.device("meta")
    batch = {"image": torch.ones(2, 3), "rest": (torch.ones(4), "name", Movable(), torch.eye(2).to_sparse())}
    started = copies.start(batch)
    assert streams.asked == [("begin", "copies"), ("records", "copies"), ("end", "copies")]
    streams.asked.clear()
    there = copies.finish(started)
    assert streams.asked == [("waits for the event", "loop"), ("uses", "loop", (2, 3)), ("uses", "loop", (4,))]
    one, name, moved, sparse = there["rest"]
    assert there["image"].is_meta and one.is_meta and sparse.is_meta and sparse.is_sparse
    assert name == "name" and moved == ("moved", torch.device("meta"))
    assert not batch["image"].is_meta


@pytest.mark.parametrize("wrong, words", [
    ("cuda", "PyTorch sees no GPU on this machine"), ("cuda:9", "no GPU on this machine"), ("meta", "'cuda' or 'cuda:1'"),
    ("gpu", "is not a device"), (3.5, "is not a device"),
])
def test_a_device_that_is_not_there_is_one_line(monkeypatch, wrong, words):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    loader = DataLoader(numbers, 8)
    with pytest.raises(taas.RegistrationError, match=words) as raised:
        taas.register(loader, device=wrong)
    assert len(str(raised.value).splitlines()) == 1 and not taas.is_registered(loader)


def test_a_gpu_too_far_names_the_last(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(taas.RegistrationError, match="'cuda:2'.*sees 2 GPUs here, of which the last is 'cuda:1'"):
        taas.register(DataLoader(numbers, 8), device="cuda:2")


@pytest.mark.parametrize("here", ["cpu", torch.device("cpu"), None])
def test_the_cpu_is_no_other_place(here):
    with taas.register(DataLoader(numbers, 8), device=here) as loader:
        assert equal(loop(loader), loop(DataLoader(numbers, 8)))


def test_data_workers_need_no_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.setenv("TAAS_ROLE", "data-worker")
    loader = DataLoader(numbers, 8)
    assert taas.register(loader, device="cuda") is loader
