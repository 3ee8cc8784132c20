"""Each logical worker is a process to its code, as with the plain loader, however many processes make the batches."""

import os
import signal
import types

import pytest
import taas
import torch
from conftest import equal, loop, registered_loop
from own_datasets import Numbers
from taas.worker import worker
from taas.order.seeds import Seeds
from taas.order.task import Task
from torch.utils.data import DataLoader, IterableDataset, default_collate, get_worker_info
from torch.utils.data._utils import collate

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

    def __iter__(self):
        CountsStreams.begun += 1
        for row in range(10):
            yield get_worker_info().id, row, CountsStreams.begun


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize(
    "make",
    [
        lambda: DataLoader(Counts(40), 3, num_workers=3, collate_fn=list, worker_init_fn=open_once),
        lambda: DataLoader(CountsStreams(), 3, num_workers=3, collate_fn=list),
    ],
)
def test_no_logical_worker_sees_what_another_has_set(make, count, data_workers):
    assert equal(registered_loop(make, data_workers, count, epochs=3), loop(make(), epochs=3))


class Strong(Numbers):
    strength = 1

    def __getitem__(self, index):
        return index, self.strength, calls


@pytest.mark.gate
def test_persistent_workers_keep_what_they_began_with(data_workers):
    data_workers(2)
    seen = []
    for register in (False, True):
        loader = DataLoader(
            Strong(20), 3, num_workers=2, collate_fn=list, persistent_workers=True, worker_init_fn=open_once
        )
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
    collate.default_collate_fn_map[Length] = lambda lengths, *, collate_fn_map=None: ("lengths", list(lengths))
    return default_collate(batch)


@pytest.mark.parametrize("count", [1, 2])
def test_what_one_loaders_code_registers_is_not_for_another(count, data_workers):
    data_workers(count)
    seen = []
    for register in (lambda loader: loader, taas.register):
        loaders = [
            register(DataLoader(Lengths(6), 3, num_workers=1, collate_fn=how)) for how in (collate_and_register, None)
        ]
        seen.append([loop(loader) for loader in (*loaders, *loaders)])
        for loader in loaders if register is taas.register else ():
            taas.unregister(loader)
    assert equal(*seen)


class Own(Numbers):
    def __getitem__(self, index):
        return os.getpid()


def test_without_worker_init_fn_there_are_no_further_processes(data_workers):
    run = data_workers(2)
    with taas.register(DataLoader(Own(), 4, num_workers=3, collate_fn=set)) as loader:
        assert set().union(*loop(loader)) <= set(run.pids())


class Ends(Numbers):
    def __getitem__(self, index):
        if index == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return index


def test_a_logical_worker_that_its_code_kills_is_told_of_in_one_line(data_workers):
    data_workers(2).keep()
    with taas.register(DataLoader(Ends(8), 2, num_workers=2, worker_init_fn=print)) as loader:
        with pytest.raises(taas.UndeliverableBatch, match="batch 2 of epoch 0, indices .4, 5.: .*") as raised:
            loop(loader)
    assert "\n" not in str(raised.value)


@pytest.mark.gate
def test_an_exception_of_worker_init_fn_arrives(data_workers):
    def fails(worker):
        raise KeyError(f"worker {worker} has no rows")

    data_workers(2)
    with taas.register(DataLoader(Numbers(), 4, num_workers=2, worker_init_fn=fails)) as loader:
        with pytest.raises(KeyError, match="worker 0 has no rows"):
            loop(loader)


def test_large_batches_come_whole(data_workers):
    def make():
        return DataLoader(
            Numbers(40),
            20,
            num_workers=2,
            worker_init_fn=lambda worker: None,
            collate_fn=lambda samples: {"large": torch.arange(300_000.0), "none": torch.empty(0, 3), "few": samples},
        )

    assert equal(registered_loop(make, data_workers, 2), loop(make()))


def test_a_recipe_that_some_rank_is_at_is_not_loaded_again(monkeypatch):
    loads, let_go = [], []
    server = types.SimpleNamespace(
        definition=lambda digest: (b"", -1, 0),
        loaded=loads.append,
        unloaded=let_go.append,
        put=lambda *_: None,
        raise_=lambda job, *what: pytest.fail(str(what)),
    )
    loader = DataLoader(Numbers(), 2)
    monkeypatch.setattr(worker.definition, "load", lambda digest, *data: worker.definition.recipe_of(loader))
    one = worker.Worker(server, "data worker 0")
    for _ in range(3):
        for rank in range(9):
            payload = Task(Seeds(1, rank, 0, 0), 0, 0, [0, 1]).to_bytes()
            one.answer(
                types.SimpleNamespace(
                    digest=f"{rank}", client=rank, stream=0, payload=payload, has_ended_a_worker=False
                )
            )
    assert loads == [f"{rank}" for rank in range(9)] and not let_go
