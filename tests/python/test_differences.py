"""What differs from worker processes that are forked: each row of the table in docs/data.md, as it is documented."""

import multiprocessing
import os
import random
import sys

import numpy
import process_datasets
import pytest
import taas
import torch
from conftest import loop
from own_datasets import Numbers
from process_datasets import Scaled, Tells, as_it_is
from torch.utils.data import DataLoader, IterableDataset


def registered(dataset, **options):
    return taas.register(DataLoader(dataset, 2, **{"collate_fn": as_it_is, **options}))


def test_values_of_modules_are_those_of_the_import(data_workers, monkeypatch):
    monkeypatch.setattr(process_datasets, "SCALE", 5)
    data_workers(1)
    with registered(Scaled()) as loader:
        assert loop(loader) == [[(0, 2.0), (1, 2.0)], [(2, 2.0), (3, 2.0)]]


def settings():
    return numpy.geterr()["divide"], torch.is_grad_enabled(), torch.are_deterministic_algorithms_enabled()


def test_settings_inside_libraries_are_a_new_process_s(data_workers):
    data_workers(1)
    torch.use_deterministic_algorithms(True)
    try:
        with registered(Tells(settings)) as loader, numpy.errstate(all="ignore"), torch.no_grad():
            assert loop(loader)[0] == [(0, ("warn", True, False)), (1, ("warn", True, False))]
    finally:
        torch.use_deterministic_algorithms(False)


DRAWS = random.Random(8)


def test_generators_of_modules_are_a_new_process_s(data_workers):
    DRAWS.random()
    data_workers(1)
    with registered(Tells(lambda: DRAWS.random())) as loader:
        assert loop(loader)[0][0][1] == random.Random(8).random()


def tensor():
    return torch.zeros(1, dtype=torch.int64).share_memory_()


def array():
    return numpy.frombuffer(multiprocessing.Array("q", 1).get_obj(), numpy.int64)


class Told(Numbers):
    def __init__(self, epoch):
        super().__init__(8)
        self.epoch = epoch

    def __getitem__(self, index):
        self.epoch += 100
        return int(self.epoch[0])


@pytest.mark.parametrize("make", [tensor, array])
def test_shared_memory_is_a_copy_from_iter_on(make, data_workers):
    """What the program writes during a loop is not seen, and what is counted there is each copy's own."""
    data_workers(2)
    with registered(Told(make()), num_workers=2, worker_init_fn=id) as loader:
        for epoch in range(3):
            loader.dataset.epoch[0] = epoch
            seen = []
            for batch in loader:
                seen += batch
                loader.dataset.epoch[0] = 50
            assert seen == [100 * count + epoch for count in (1, 2, 1, 2, 3, 4, 3, 4)]
    assert int(loader.dataset.epoch[0]) == 50


class Late(Numbers):
    """Makes its generator when it is first needed."""

    own = None

    def __getitem__(self, index):
        self.own = self.own or random.Random(7)
        return self.own.random()


def test_a_generator_that_is_made_late_is_each_copys_own(data_workers):
    data_workers(2)
    with registered(Late(8), num_workers=2, worker_init_fn=id) as loader:
        first, second, third, fourth = loop(loader)
        made = random.Random(7)
        assert first + third == [made.random() for _ in range(4)] == second + fourth


def sets(worker):
    torch.set_grad_enabled(False)
    torch.set_num_threads(2)
    torch.set_default_dtype(torch.float64)
    os.environ["TAASTEST_SET"] = "set"
    os.chdir("/")
    sys.path.insert(0, "set")


def process():
    dtype, threads, has_gradients = torch.get_default_dtype(), torch.get_num_threads(), torch.is_grad_enabled()
    return dtype, threads, has_gradients, os.environ.get("TAASTEST_SET"), os.getcwd(), sys.path[0]


class Processes(IterableDataset):
    def __iter__(self):
        yield from (process() for _ in range(4))


@pytest.mark.parametrize("dataset", [Tells(process), Processes()])
def test_what_worker_init_fn_sets_in_the_process_is_its_copys(dataset, data_workers):
    """One data worker has several: of two logical workers, and of another loader."""
    data_workers(1)
    options = {"num_workers": 2, "worker_init_fn": lambda worker: (sets, id)[worker](worker)}
    mine, others = (torch.float64, 2, False, "set", "/", "set"), (torch.float32, 1, True, *process()[3:])
    with registered(dataset, **options) as two, registered(Tells(process)) as other:
        for number, (batch, plain) in enumerate(zip(two, other)):
            seen = {each if isinstance(dataset, Processes) else each[1] for each in batch}
            assert seen == {others if number % 2 else mine} and {each[1] for each in plain} == {others}


class ReadsAhead(DataLoader):
    """NVIDIA's DataPrefetcher."""

    def __iter__(self):
        batches = super().__iter__()
        ahead = next(batches, None)
        while ahead is not None:
            batch, ahead = ahead, next(batches, None)
            yield batch


def test_the_state_of_a_subclass_that_reads_ahead_is_of_what_it_has_read(data_workers):
    data_workers(1)
    with taas.register(ReadsAhead(range(12), 2, collate_fn=as_it_is)) as loader:
        assert next(iter(loader)) == [0, 1]
        loader.load_state_dict(loader.state_dict())
        assert loop(loader) == [[4, 5], [6, 7], [8, 9], [10, 11]]
