"""Each logical worker is a process to its code, as with the plain loader, by however many processes batches are made."""

import os
import random
import signal
import types

import numpy
import pytest
import taas
import torch
from conftest import equal, loop, registered_loop, seed
from own_datasets import Numbers
from taas.delivery import delivery
from taas.runtime import events
from taas.worker import worker
from taas.order.seeds import Seeds
from taas.order.task import Task
from torch.utils.data import DataLoader, IterableDataset, default_collate, get_worker_info
from torch.utils.data._utils.collate import default_collate_fn_map

WAYS = [0, 1, 2, 4]
calls = 0
opened = set()


def open_once(worker):
    """What LMDB does with a file that this process has opened already; and a count in a global."""
    global calls
    calls += 1
    if "rows" in opened:
        raise RuntimeError("rows is already open in this process")
    opened.add("rows")


class Counts(Numbers):
    def __getitem__(self, index):
        return index, calls, len(opened)


class CountsStreams(IterableDataset):
    """How many streams have begun in this process."""

    begun = 0

    def __init__(self):
        self.cannot_be_copied = (number for number in range(3))

    def __iter__(self):
        CountsStreams.begun += 1
        for row in range(10):
            yield get_worker_info().id, row, CountsStreams.begun, next(self.cannot_be_copied, "over")


@pytest.mark.parametrize("processes", WAYS)
@pytest.mark.parametrize("make", [lambda: DataLoader(Counts(40), 3, num_workers=3, collate_fn=list, worker_init_fn=open_once),
                                  lambda: DataLoader(CountsStreams(), 3, num_workers=3, collate_fn=list)])
def test_no_logical_worker_sees_what_another_has_set(make, processes, monkeypatch):
    assert equal(registered_loop(make, processes, monkeypatch, epochs=3), loop(make(), epochs=3))
    assert (calls, opened, CountsStreams.begun) == (0, set(), 0)


class Strong(Numbers):
    strength = 1

    def __getitem__(self, index):
        return index, self.strength, calls


@pytest.mark.parametrize("processes", [0, 2])
def test_persistent_workers_keep_what_they_began_with(processes, monkeypatch):
    monkeypatch.setenv("TAAS_DATA_WORKERS", str(processes))
    seen = []
    for register in (False, True):
        loader = DataLoader(Strong(20), 3, num_workers=2, collate_fn=list, persistent_workers=True, worker_init_fn=open_once)
        if register:
            taas.register(loader)
        seen.append([])
        for epoch in range(3):
            loader.dataset.strength = epoch
            seen[-1] += [batch for _, batch in zip(range(7 - epoch), loader)]  # the last two loops are left early
        if register:
            taas.unregister(loader)
    assert equal(*seen)


class Length(int):
    """A type of a library that default_collate does not know: by its base, a tensor comes of it."""


class Lengths(Numbers):
    def __getitem__(self, index):
        return Length(index)


def collate_and_register(batch):
    """As MONAI's list_data_collate does."""
    default_collate_fn_map[Length] = lambda lengths, *, collate_fn_map=None: ("lengths", list(lengths))
    return default_collate(batch)


@pytest.mark.parametrize("processes", [1, 2])
def test_what_one_loaders_code_registers_is_not_for_another(processes, monkeypatch):
    seen = []
    for register in (lambda loader: loader, taas.register):
        monkeypatch.setenv("TAAS_DATA_WORKERS", str(processes))
        loaders = [register(DataLoader(Lengths(6), 3, num_workers=1, collate_fn=how)) for how in (collate_and_register, None)]
        seen.append([loop(loader) for loader in (*loaders, *loaders)])
        for loader in loaders if register is taas.register else ():
            taas.unregister(loader)
    assert equal(*seen)


class Own(Numbers):
    def __getitem__(self, index):
        return os.getpid()


def test_without_worker_init_fn_there_are_no_further_processes(monkeypatch):
    monkeypatch.setenv("TAAS_DATA_WORKERS", "2")
    with taas.register(DataLoader(Own(), 4, num_workers=3, collate_fn=set)) as loader:
        assert set().union(*loop(loader)) <= set(delivery._deliveries["fork"].pids())


class Ends(Numbers):
    def __getitem__(self, index):
        if index == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return index


@pytest.mark.parametrize("processes", [0, 2])
def test_a_logical_worker_that_its_code_kills_is_told_of_in_one_line(processes, monkeypatch):
    monkeypatch.setenv("TAAS_DATA_WORKERS", str(processes))
    with taas.register(DataLoader(Ends(8), 2, num_workers=2, worker_init_fn=print)) as loader:
        with pytest.raises(taas.UndeliverableBatch, match="batch 2 of epoch 0, indices .4, 5.: .*") as raised:
            loop(loader)
    assert "\n" not in str(raised.value)


def test_an_exception_of_worker_init_fn_arrives(monkeypatch):
    def fails(worker):
        raise KeyError(f"worker {worker} has no rows")

    for processes in (0, 2):
        monkeypatch.setenv("TAAS_DATA_WORKERS", str(processes))
        with taas.register(DataLoader(Numbers(), 4, num_workers=2, worker_init_fn=fails)) as loader:
            with pytest.raises(KeyError, match="worker 0 has no rows"):
                loop(loader)


def test_large_batches_come_whole(monkeypatch):
    def make():
        return DataLoader(Numbers(40), 20, num_workers=2, worker_init_fn=lambda worker: None,
                          collate_fn=lambda samples: {"large": torch.arange(300_000.0), "none": torch.empty(0, 3),
                                                      "few": samples})

    assert equal(registered_loop(make, 2, monkeypatch), loop(make()))


def test_a_recipe_that_some_rank_is_at_is_not_loaded_again(monkeypatch):
    loads, let_go = [], []
    server = types.SimpleNamespace(definition=lambda digest: (b"", -1, 0), loaded=loads.append, unloaded=let_go.append,
                                   put=lambda *_: None, raise_=lambda job, *what: pytest.fail(str(what)))
    loader = DataLoader(Numbers(), 2)
    monkeypatch.setattr(worker.definition, "load", lambda digest, *data: worker.definition.recipe_of(loader))
    one = worker.Worker(server, "data worker 0")
    for _ in range(3):
        for rank in range(9):
            payload = Task(Seeds(1, rank, 0, 0), 0, -1, [0, 1]).to_bytes()
            one.answer(types.SimpleNamespace(digest=f"{rank}", client=rank, stream=0, payload=payload, has_ended_a_worker=False))
    assert loads == [f"{rank}" for rank in range(9)] and not let_go


class Unseeded(IterableDataset):
    """Draws from generators that nobody has seeded."""

    def __init__(self, make):
        self.make = make

    def __iter__(self):
        draw = self.make()
        for row in range(40):
            yield row, draw()


def of_torch():
    torch.seed()
    return lambda: float(torch.rand(()))


def of_random():
    random.seed()
    return random.random


KINDS = [lambda: random.Random().random, lambda: numpy.random.default_rng().random, lambda: numpy.random.RandomState().rand,
         lambda: numpy.random.Generator(numpy.random.Philox()).random, of_torch, of_random]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("make", KINDS, ids=["Random", "default_rng", "RandomState", "Philox", "torch.seed", "random.seed"])
def test_a_stream_that_nobody_seeded_goes_on_where_a_worker_died(make, workers, monkeypatch):
    def loader():
        return DataLoader(Unseeded(make), 4, num_workers=workers, collate_fn=list)

    undisturbed = registered_loop(loader, 0, monkeypatch, epochs=2)
    assert len({draw for batch in undisturbed for _, draw in batch}) > 40  # another epoch, another stream
    monkeypatch.setenv("TAAS_DATA_WORKERS", "2")
    seed()
    seen = []
    with taas.register(loader()) as registered:
        for number, batch in enumerate(loop_of(registered, 2)):
            seen.append(batch)
            if number == 3:
                for pid in delivery._deliveries["fork"].pids():
                    os.kill(pid, signal.SIGKILL)
    assert seen == undisturbed


def loop_of(loader, epochs):
    for _ in range(epochs):
        yield from loader


def test_generators_without_a_seed_stay_so_in_the_training_program(monkeypatch):
    monkeypatch.setenv("TAAS_DATA_WORKERS", "0")
    drawn = []
    for _ in range(2):
        seed()
        loop(taas.register(DataLoader(Numbers(), 4)))
        drawn.append((random.Random().random(), numpy.random.default_rng().random()))
    assert drawn[0][0] != drawn[1][0] and drawn[0][1] != drawn[1][1]


class Augments(Numbers):
    """Draws from generators of its own; `order` is drawn once, when it is first needed."""

    order = None
    late = None

    def __init__(self, size=24):
        super().__init__(size)
        self.image, self.mask = numpy.random.default_rng(5), numpy.random.default_rng(5)
        self.others = [random.Random(5), numpy.random.RandomState(5), torch.Generator().manual_seed(5)]

    def __getitem__(self, index):
        if self.order is None:
            self.order = self.image.permutation(24), self.mask.permutation(24)
            self.late = numpy.random.default_rng(7)
        of_torch = float(torch.rand((), generator=self.others[2]))
        return (index, self.order[0][index], self.image.random(), self.mask.random(), self.late.random(), self.others[0].random(),
                self.others[1].rand(), of_torch, DRAWN.random())


DRAWN = random.Random(8)


@pytest.mark.parametrize("workers", [0, 2])
def test_draws_of_a_dataset_of_its_own_do_not_depend_on_who_makes_a_batch(workers, monkeypatch):
    def make():
        return DataLoader(Augments(), 4, num_workers=workers, collate_fn=list)

    once = registered_loop(make, 0, monkeypatch, epochs=2)
    assert all(registered_loop(make, processes, monkeypatch, epochs=2) == once for processes in (1, 2, 4))
    samples = [sample for batch in once for sample in batch]
    assert all(sample[2] == sample[3] for sample in samples)  # image and mask are augmented alike
    assert len({sample[2] for sample in samples}) == len({sample[4] for sample in samples}) == 48
    assert [sample[:2] for sample in samples] == [sample[:2] for sample in loop(make(), 2) for sample in sample]


@pytest.mark.parametrize("make", [lambda: Augments(), lambda: Numbers()])
def test_generators_of_a_dataset_are_told_of_once_and_stay_as_they_are(make, monkeypatch, capfd):
    monkeypatch.setenv("TAAS_DATA_WORKERS", "0")
    monkeypatch.setattr(events, "_said", set())
    dataset, before = make(), make()
    loop(taas.register(DataLoader(dataset, 4, collate_fn=list)), 2)
    has_some = hasattr(dataset, "image")
    assert capfd.readouterr().err.count("its dataset has random generators of its own") == has_some
    assert not has_some or dataset.others[0].getstate() == before.others[0].getstate()


class FromTheSystem(IterableDataset):
    """What nobody can read again."""

    def __iter__(self):
        generator = torch.Generator()
        generator.seed()
        yield from torch.randint(1000, (60,), generator=generator).tolist()


@pytest.mark.parametrize("workers", [0, 2])
def test_a_stream_that_cannot_be_read_again_ends_the_loop_with_a_line(workers, monkeypatch):
    monkeypatch.setenv("TAAS_DATA_WORKERS", "2")
    with taas.register(DataLoader(FromTheSystem(), 2, num_workers=workers)) as loader:
        iterator = iter(loader)
        next(iterator)
        state = loader.state_dict()
        loader.load_state_dict(state)
        with pytest.raises(RuntimeError, match="this stream gives other samples .*: seed its generators") as raised:
            loop(loader)
    assert "\n" not in str(raised.value)


class Sentences(IterableDataset):
    """The same text, as one object or as two."""

    known = {}

    def __iter__(self):
        for row in range(40):
            text = Sentences.known.setdefault(row, f"text {row}")
            yield [text, "".join(["text ", str(row)])] * 80


@pytest.mark.parametrize("workers", [0, 2])
def test_a_stream_of_equal_objects_is_the_same(workers, monkeypatch):
    monkeypatch.setenv("TAAS_DATA_WORKERS", "1")
    with taas.register(DataLoader(Sentences(), 2, num_workers=workers, collate_fn=list)) as loader:
        iterator = iter(loader)
        had = [next(iterator) for _ in range(3)]
        loader.load_state_dict(loader.state_dict())
        assert equal(had + loop(loader), loop(DataLoader(Sentences(), 2, num_workers=workers, collate_fn=list)))
