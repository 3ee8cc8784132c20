"""Batches in pinned memory and on a GPU. There is none here: a fake one copies late, and sees what was overwritten."""

import collections
import contextlib
import dataclasses
import os
import types
from typing import Any

import pytest
import taas
import torch
from conftest import equal, forget_the_run, loop, wait_until
from own_datasets import Big, Numbers, numbers
from fake_gpu import all_here, copies, cuda  # noqa: F401
from taas.delivery import nested, remote
from taas.delivery import device, pinning, run_workers
from torch.utils.data import DataLoader

pytestmark = pytest.mark.filterwarnings("ignore:'pin_memory' argument is set")

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
def little_memory(data_workers):
    data_workers(1, buffer_bytes=16 << 20)


def late_copies_of(loader, cuda, every):
    """What a loop has that copies each batch without waiting, and lets it go. The copies are done now and then."""
    there = []
    for number, batch in enumerate(loader):
        there.append(cuda.copy(batch))
        if every and number % every == every - 1:
            cuda.run()
    cuda.run()
    return there


@pytest.mark.parametrize("every", [pytest.param(7, marks=pytest.mark.gate), 0])
def test_late_copies_out_of_pinned_batches_have_the_right_bytes(cuda, little_memory, every):
    plain = loop(big())
    with taas.register(big()) as loader:
        assert equal(late_copies_of(loader, cuda, every), plain)


def test_late_copies_out_of_batches_that_are_not_guarded_have_not(cuda, little_memory, monkeypatch):
    """The test above can fail."""
    plain = loop(big())
    monkeypatch.setattr(pinning, "copier", lambda: None)
    monkeypatch.setattr(cuda, "is_registered", lambda tensor: True)
    with taas.register(big()) as loader:
        assert not equal(late_copies_of(loader, cuda, 0), plain)


def test_batches_lie_in_registered_memory_and_memory_is_registered_seldom(cuda):
    registrations = cuda.library.fake_cuda_registrations
    before = registrations()
    with taas.register(big()) as loader:
        for batch in (batch for _ in range(3) for batch in loader):
            assert cuda.is_registered(batch)
        assert registrations() - before <= 8, "that many pieces of memory for 180 batches"
    del batch
    forget_the_run()
    wait_until(lambda: registrations() == before)


def test_nothing_is_registered_before_the_program_uses_a_gpu(cuda, monkeypatch):
    with taas.register(DataLoader(Big(4), 1)) as loader:
        assert not any(cuda.is_registered(batch) for batch in loader), "that does not pin"
    initialised = False
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: initialised)
    cuda.library.fake_cuda_reset()
    with taas.register(big()) as loader:
        for number, batch in enumerate(loader):
            initialised = number >= 10
            if number == 20:
                cuda.library.fake_cuda_use_device(0)
            assert cuda.is_registered(batch) == (number > 20)


def test_memory_that_cuda_refuses_is_said_once_and_the_loop_goes_on(cuda, data_workers):
    run = data_workers(1)
    cuda.refuse()
    with taas.register(big()) as loader:
        assert equal(loop(loader), loop(big()))
    (said,) = run.remarks()
    assert said.startswith("CUDA cannot register") and said.endswith("copied once more on their way to the GPU")


def test_a_program_without_the_cuda_runtime_is_told_once_and_goes_on(cuda, monkeypatch, data_workers):
    run = data_workers(1)

    def absent():
        raise RuntimeError("the program has not loaded libcudart")

    monkeypatch.setattr(pinning.native.module, "CudaCopier", absent)
    with taas.register(big()) as loader:
        assert equal(loop(loader), loop(big()))
    (said,) = run.remarks()
    assert "cannot be registered with CUDA (the program has not loaded libcudart)" in said


@pytest.mark.parametrize("count", [pytest.param(1, marks=pytest.mark.gate), 3])
def test_batches_on_a_device_are_those_of_the_plain_loader(cuda, copies, data_workers, count):
    data_workers(count)
    with taas.register(DataLoader(numbers, 8), device="cuda") as loader:
        for _ in range(3):
            assert equal(loop(loader), loop(DataLoader(numbers, 8)))
    assert copies.most <= 1 + remote.BATCHES_AHEAD


def test_copies_read_late_have_the_right_bytes(cuda, copies, little_memory):
    with taas.register(big(), device="cuda") as loader:
        assert equal(loop(loader), loop(big()))
    assert copies.most == 1 + remote.BATCHES_AHEAD


def test_the_next_batches_are_copied_while_the_loop_is_at_one_and_no_more(cuda, copies):
    with taas.register(DataLoader(numbers, 4), device="cuda") as loader:
        iterator = iter(loader)
        next(iterator), next(iterator)
        all_here(loader, 8)
        for taken in range(3, 8):
            next(iterator)
            assert copies.started == taken + remote.BATCHES_AHEAD


@pytest.mark.gate
def test_without_data_workers_a_batch_is_copied_when_the_loop_gets_it(cuda, copies, data_workers):
    data_workers(0)
    plain = loop(DataLoader(numbers, 4))
    with taas.register(DataLoader(numbers, 4), device="cuda") as loader:
        for number, batch in enumerate(loader):
            assert equal(batch, plain[number]) and copies.started == number + 1


def test_a_copy_that_fails_ahead_of_the_loop_is_tried_again_in_its_turn(cuda, copies):
    plain = loop(DataLoader(numbers, 4))
    copies.fails = lambda number: number == 3
    with taas.register(DataLoader(numbers, 4), device="cuda") as loader:
        assert equal(loop(loader), plain)
        copies.fails = lambda number: number <= failing
        failing, batches = copies.started + 3, iter(loader)  # ahead, once more, and ahead of the next
        with pytest.raises(RuntimeError, match="out of memory"):
            next(batches)
        assert equal(list(batches), plain[1:]), "the loop goes on behind it"


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


def test_everything_but_tensors_stays_as_it_is():
    tensor, thing = torch.ones(2), object()
    batch = {
        "a": [tensor, "text", b"bytes", 3, None],
        "b": Pair(tensor, 7),
        "c": (Example(tensor, "x"), thing),
        "d": collections.OrderedDict(z=tensor),
        "e": {1, 2},
        "f": Movable(),
    }
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
        monkeypatch.setattr(
            torch.Tensor, "record_stream", lambda tensor, stream: self.asked.append(("uses", stream.name, tensor.shape))
        )

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
    copies = device.CudaCopies(0)
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


@pytest.mark.gate
@pytest.mark.parametrize(
    "wrong, words",
    [
        ("cuda", "PyTorch sees no GPU on this machine"),
        ("cuda:9", "no GPU on this machine"),
        ("meta", "'cuda' or 'cuda:1'"),
        ("gpu", "is not a device"),
        (3.5, "is not a device"),
    ],
)
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


def test_a_child_that_holds_a_batch_lets_it_go_without_cuda(cuda):
    with taas.register(big()) as loader:
        iterator = iter(loader)
        batch = next(iterator)
        assert cuda.is_registered(batch)
        child = os.fork()
        if child == 0:
            before, mistakes = cuda.library.fake_cuda_registrations(), cuda.mistakes()
            del batch
            fine = cuda.library.fake_cuda_registrations() == before and cuda.mistakes() == mistakes
            os._exit(0 if fine else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert run_workers.connected().client is not None
