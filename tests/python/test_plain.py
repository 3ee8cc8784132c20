"""Without data workers a registered loader is the DataLoader that it was; its loops are counted, and gone on with."""

import io
import itertools
import multiprocessing
import random
import threading
import weakref

import numpy
import pytest
import taas
import torch
from conftest import equal, loop, seed
from own_datasets import Drawn, Fails, Numbers, Sharded, generator, numbers
from test_equality import LOADERS, watched
from test_shared_streams import Together
from test_state import EachFromTheProcess
from torch.utils.data import DataLoader, IterableDataset

IN_THE_GATE = ("shuffled by a generator", "persistent", "no batches", "lazy sampler, workers", "iterable")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.gate) if name in IN_THE_GATE else name for name in LOADERS]
)
def test_a_loop_is_torchs_and_says_nothing(name, capfd):
    assert equal(watched(LOADERS[name](), True), watched(LOADERS[name](), False))
    assert not any(capfd.readouterr())


class Noisy(Numbers):
    def __getitem__(self, index):
        return index, torch.rand(2), random.random()


def three_epochs(make, interrupted_at=None):
    """What a program has and draws. Behind that batch of the second epoch another one goes on from its checkpoint."""
    seed()
    loader, seen = taas.register(make()), []
    for epoch in range(3):
        for number, batch in enumerate(loader):
            seen.append((batch, torch.rand(1)))
            if (epoch, number) == (1, interrupted_at):
                loader = another_program(loader, make)
                seen += [(batch, torch.rand(1)) for batch in loader]
                break
    taas.unregister(loader)
    return seen


def another_program(loader, make):
    file = io.BytesIO()
    torch.save({"loader": loader.state_dict(), "random": torch.get_rng_state()}, file)
    states = random.getstate(), numpy.random.get_state()
    taas.unregister(loader)
    seed(99)
    other, saved = taas.register(make()), torch.load(io.BytesIO(file.getvalue()), weights_only=True)
    other.load_state_dict(saved["loader"])
    torch.set_rng_state(saved["random"])
    random.setstate(states[0]), numpy.random.set_state(states[1])
    return other


TO_THE_BIT = {
    "shuffled": lambda: DataLoader(Noisy(), 8, shuffle=True),
    "shuffled by a generator": lambda: DataLoader(Noisy(), 8, shuffle=True, generator=generator()),
    "one by one": lambda: DataLoader(Noisy(), None),
    "stream": lambda: DataLoader(Drawn(), 4),
    "stream, workers": lambda: DataLoader(Drawn(), 4, num_workers=3),
}
BUT_FOR_NOISE = {  # torch's workers begin with other seeds
    "workers": lambda: DataLoader(Noisy(), 8, shuffle=True, num_workers=2),
    "persistent workers": lambda: DataLoader(
        Noisy(), 8, shuffle=True, num_workers=2, persistent_workers=True, generator=generator()
    ),
}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.gate) if "workers" in name else name
        for name in (*TO_THE_BIT, *BUT_FOR_NOISE)
    ],
)
def test_resumed(name):
    make = {**TO_THE_BIT, **BUT_FOR_NOISE}[name]
    whole, resumed = three_epochs(make), three_epochs(make, 3)
    if name in BUT_FOR_NOISE:
        whole, resumed = ([(batch[0], drawn) for batch, drawn in seen] for seen in (whole, resumed))
    assert equal(resumed, whole)


def test_an_order_that_cannot_be_drawn_again_is_refused():
    with pytest.raises(ValueError, match="does not draw the order again in which this state was saved"):
        three_epochs(lambda: DataLoader(numbers, 4, sampler=EachFromTheProcess()), 3)


@pytest.mark.gate
def test_the_body_of_the_last_batch_is_not_behind_the_end():
    with taas.register(DataLoader(range(8), 4)) as loader:
        states = [loader.state_dict() for _ in loader]
        assert loader.state_dict() == {"taas": 1, "epoch": 1}
    with taas.register(DataLoader(range(8), 4)) as loader:
        loader.load_state_dict(states[-1])
        assert [len(loop(loader)) for _ in range(2)] == [0, 2]


@pytest.mark.parametrize("workers", [0, 2])
def test_resumed_behind_a_batch_that_raised(workers):
    with taas.register(DataLoader(Fails(), 8, num_workers=workers)) as loader:
        batches = iter(loader)
        for _ in range(4):
            next(batches)
        with pytest.raises(KeyError):
            next(batches)
        state, rest = loader.state_dict(), list(batches)
    with taas.register(DataLoader(Fails(), 8, num_workers=workers)) as loader:
        loader.load_state_dict(state)
        assert equal(loop(loader), rest) and len(rest) == 8


@pytest.mark.parametrize("first, second", [(0, 1), (1, 0)])
@pytest.mark.parametrize(
    "make",
    [
        lambda: DataLoader(numbers, 8, shuffle=True, generator=generator()),
        lambda: DataLoader(Sharded(), 4, num_workers=2),
    ],
)
def test_a_state_is_of_use_with_data_workers_and_without(make, first, second, data_workers):
    data_workers(first)
    with taas.register(make()) as loader:
        batches = iter(loader)
        for _ in range(3):
            next(batches)
        state, rest = loader.state_dict(), list(batches)
    data_workers(second)
    with taas.register(make()) as loader:
        loader.load_state_dict(state)
        assert equal(loop(loader), rest)


def the_rest(loader, batches, make):
    """Of the loop under way, and of one in another program that goes on with its state."""
    state, rest = loader.state_dict(), list(batches)
    taas.unregister(loader)
    seed(99)
    with taas.register(make()) as other:
        other.load_state_dict(state)
        return rest, loop(other)


PERSISTENT = {"num_workers": 2, "persistent_workers": True}


@pytest.mark.gate
@pytest.mark.parametrize("epochs", [0, 2])
def test_the_loops_of_persistent_workers_are_told_apart(epochs):
    """Behind the first one they draw no seed, also where that was in another registration."""
    make = lambda: DataLoader(numbers, 8, shuffle=True, **PERSISTENT)  # noqa: E731
    loader = taas.register(make())
    for _ in range(epochs):
        loop(loader)
        taas.register(taas.unregister(loader))
    batches = iter(loader)
    had = [next(batches), next(batches)]
    rest, resumed = the_rest(loader, batches, make)
    assert equal(resumed, rest) and len(had + rest) == 13


@pytest.mark.gate
def test_a_state_goes_back_in_the_same_program():
    with taas.register(DataLoader(numbers, 8, shuffle=True, **PERSISTENT)) as loader:
        batches = iter(loader)
        next(batches)
        loader.load_state_dict(state := loader.state_dict())
        assert loader.state_dict() == state, "until the loop goes on"
        assert len(loop(loader)) == 12 and loader.state_dict() == {"taas": 1, "epoch": 1}


@pytest.mark.gate
@pytest.mark.parametrize("is_resumed", [False, True])
def test_what_the_program_draws_before_the_order_changes_nothing(is_resumed):
    """With num_workers=0 torch draws the order in the first next()."""
    seed()
    make = lambda: DataLoader(numbers, 8, shuffle=True)  # noqa: E731
    loader = taas.register(make())
    batches = iter(loader)
    if is_resumed:
        loader.load_state_dict(loader.state_dict())
        batches = iter(loader)
    torch.rand(3), next(batches)
    rest, resumed = the_rest(loader, batches, make)
    assert equal(resumed, rest)


class FailsAtFirst:
    fails = False

    def __iter__(self):
        if self.fails:
            raise OSError("the file of names is not there")
        return iter(range(20))

    def __len__(self):
        return 20


def test_a_state_is_kept_until_a_loop_has_begun():
    sampler = FailsAtFirst()
    with taas.register(DataLoader(numbers, 4, sampler=sampler)) as loader:
        next(iter(loader))
        loader.load_state_dict(loader.state_dict())
        sampler.fails = True
        with pytest.raises(OSError):
            iter(loader)
        sampler.fails = False
        assert len(loop(loader)) == 4


class Shrinks(IterableDataset):
    samples = 20

    def __iter__(self):
        yield from range(self.samples)
        if self.samples < 20:
            raise RuntimeError("DataLoader worker (pid 1) is killed by signal: Killed.")


def test_an_error_of_torch_is_no_batch_of_a_stream():
    dataset = Shrinks()
    with taas.register(DataLoader(dataset, 4)) as loader:
        batches = iter(loader)
        next(batches), next(batches)
        loader.load_state_dict(loader.state_dict())
        dataset.samples = 4
        with pytest.raises(RuntimeError, match="is killed by signal"):
            iter(loader)


def test_a_stream_that_is_shorter_is_refused():
    with taas.register(DataLoader(Sharded(), 4)) as loader:
        states = [loader.state_dict() for _ in loader]
    with taas.register(DataLoader(Sharded(), 8)) as loader:
        loader.load_state_dict(states[-1])
        with pytest.raises(ValueError, match="the dataset ends before the place where this state was saved"):
            iter(loader)


def test_a_loop_without_an_order_has_no_state():
    with taas.register(DataLoader(numbers, 8, num_workers=1, in_order=False)) as loader:
        for _ in loader:
            with pytest.raises(ValueError, match="in_order=False nobody knows which batches the loop has had"):
                loader.state_dict()
        assert loader.state_dict() == {"taas": 1, "epoch": 1}


@pytest.mark.gate
@pytest.mark.parametrize("options", [{}, {"num_workers": 2}, PERSISTENT])
def test_two_loops_at_once(options):
    with taas.register(DataLoader(numbers, 8, **options)) as loader:
        pairs = list(zip(loader, loader))
    assert equal(pairs, list(zip(*[DataLoader(numbers, 8, **options)] * 2)))


class Closes:
    closed = False

    def __iter__(self):
        try:
            yield from range(20)
        finally:
            self.closed = True


class Model:
    pass


@pytest.mark.gate
def test_nothing_of_a_loop_is_kept_alive():
    sampler = Closes()

    def train(leave):
        model = Model()
        for _ in loader:
            if leave:
                break
        return weakref.ref(model)

    with taas.register(DataLoader(numbers, 4, sampler=sampler)) as loader:
        assert [train(leave)() for leave in (False, True)] == [None, None]
        assert sampler.closed


class Wraps(DataLoader):
    """As torch_geometric's loaders do."""

    made = 0

    def _get_iterator(self):
        Wraps.made += 1
        return Wrapper(super()._get_iterator())


class Wrapper:
    def __init__(self, inner):
        self.inner = inner

    def _reset(self, loader, first_iter=False):
        self.inner._reset(loader, first_iter)

    def __iter__(self):
        return self

    def __next__(self):
        return next(self.inner)[1]


def test_persistent_workers_below_an_iterator_of_its_own():
    make = lambda: Wraps(numbers, 8, shuffle=True, generator=generator(), **PERSISTENT)  # noqa: E731
    plain, registered = make(), taas.register(make())
    assert equal([loop(plain) for _ in range(3)], [loop(registered) for _ in range(3)]) and Wraps.made == 2
    batches = iter(registered)
    next(batches)
    rest, resumed = the_rest(registered, batches, make)
    assert equal(resumed, rest) and len(rest) == 12


def test_a_sample_is_one_whatever_its_index_is():
    with taas.register(DataLoader({"one": 1, "other": 2}, None, sampler=["one", "other", "one"])) as loader:
        states = [loader.state_dict() for _ in loader]
    assert [state["samples"] for state in states] == [1, 2, 3]


class Holds(Numbers):
    def __init__(self, what):
        super().__init__()
        self.what = what


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    "what", [lambda: open(__file__), lambda: iter(range(9)), threading.Lock, lambda: multiprocessing.Array("i", 3)]
)
def test_nothing_is_refused_for_what_it_holds(what, workers, capfd):
    with taas.register(DataLoader(Holds(what()), 8, num_workers=workers)) as loader:
        assert equal(loop(loader), loop(DataLoader(numbers, 8)))
    assert not any(capfd.readouterr())


@pytest.mark.gate
def test_torchs_workers_end_with_a_loop_that_is_left():
    before = set(multiprocessing.active_children())
    with taas.register(DataLoader(numbers, 8, num_workers=2)) as loader:
        for _ in loader:
            assert len(multiprocessing.active_children()) == len(before) + 2
            break
        assert set(multiprocessing.active_children()) == before
        assert loader.state_dict()["position"]["batch"] == 1


def test_persistent_workers_of_before_the_registration_are_not_gone_on_with():
    loader = DataLoader(numbers, 8, num_workers=1, persistent_workers=True)
    loop(loader)
    with taas.register(loader):
        batches = iter(loader)
        next(batches)
        assert loader.state_dict()["position"]["order"][0] >= 1, "what it draws is noted"


@pytest.mark.parametrize("workers", [0, 2])
def test_four_ranks_share_a_loader(workers, monkeypatch):
    store = Together()
    monkeypatch.setattr("taas.order.common_order.meeting_place", lambda purpose: store)
    monkeypatch.setattr("taas.order.common_order._shared_before", itertools.repeat(0))
    monkeypatch.setenv("WORLD_SIZE", "4")
    shares = []
    for rank in range(4):
        monkeypatch.setenv("RANK", str(rank))
        with taas.register(DataLoader(numbers, 8, shuffle=True, num_workers=workers), shared=True) as loader:
            shares.append(loop(loader))
    assert sorted(index for share in shares for _, labels in share for index in labels.tolist()) == list(range(103))
    assert len(set(map(len, shares))) == 1


@pytest.mark.gate
def test_a_shared_stream_needs_data_workers(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "4")
    loader = DataLoader(Sharded())
    with pytest.raises(taas.RegistrationError, match="needs data workers: start the program with taas-run --cpus 1"):
        taas.register(loader, shared=True)
    assert not taas.is_registered(loader)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_run_without_data_workers_skips_what_cannot_be_made_and_is_told_of_the_loop(workers, run):
    run.start(0, on_error="skip")
    with taas.register(DataLoader(Fails(), 8, num_workers=workers)) as loader:
        assert len(loop(loader)) == 12
    (said,) = run.remarks()
    assert "batch 4 of epoch 0 is skipped (1 so far): the dataset raised KeyError" in said
    last = [event for event in run.events() if event["kind"] == "data"][-1]
    assert (last["samples"], last["batches"], last["workers"], last["done"]) == (95, 12, 0, True)
