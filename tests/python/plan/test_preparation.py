"""`--loader`: data workers make the first batches before there is a rank."""

import dataclasses

import own_datasets
import pytest
import taas
import torch
from conftest import DEADLINE_SECONDS, equal, loop, registered_loop, seed, wait_until
from own_datasets import Numbers, numbers
from runs import importable, of_kind  # noqa: F401
from taas.order.order import MapOrder
from taas.order.seeds import Seeds
from taas.runtime import events
from taas.runtime.plan import read
from taas.sending import definition, state
from taas.worker.prepare import LoaderPreparation, Preparation
from taas.worker.prepared_order import of_ranks
from torch.utils.data import DataLoader, Sampler


@pytest.mark.parametrize("name", [pytest.param("plain_loader", marks=pytest.mark.gate), "loader"])
def test_prepared_before_there_is_a_rank(data_workers, name):
    run = data_workers(2, loader=f"own_datasets:{name}")
    wait_until(lambda: len([event for event in of_kind(run, "prepared") if event["done"]]) >= 2)
    prepared = of_kind(run, "prepared")
    assert sum({event["worker"]: event["batches"] for event in prepared}.values()) == 13
    seed()
    loader = taas.register(getattr(own_datasets, name))
    try:
        seen = loop(loader)
    finally:
        taas.unregister(loader)
    assert of_kind(run, "data")[-1]["loader"] == name
    if name == "plain_loader":
        assert equal(seen, loop(loader))
    else:
        assert equal(registered_loop(lambda: DataLoader(loader.dataset, 8, num_workers=2), data_workers, 1), seen)


def test_several_loaders_are_prepared_in_turn(data_workers):
    run = data_workers(2, loader="own_datasets:plain_loader,own_datasets:another_loader")
    wait_until(lambda: len([event for event in of_kind(run, "prepared") if event["done"]]) >= 2)
    assert sum({event["worker"]: event["batches"] for event in of_kind(run, "prepared")}.values()) == 26
    loaders = [own_datasets.plain_loader, own_datasets.another_loader]
    seed()
    with taas.register(loaders[0]) as first, taas.register(loaders[1]) as second:
        seen = [loop(first), loop(second)]
    assert {event["loader"] for event in of_kind(run, "data")} == {"plain_loader", "another_loader"}
    data_workers(1)
    seed()
    with (
        taas.register(DataLoader(loaders[0].dataset, 8)) as first,
        taas.register(DataLoader(loaders[1].dataset, 8, num_workers=2)) as second,
    ):
        assert equal([loop(first), loop(second)], seen)


def test_each_of_several_loaders_has_its_batches_and_its_part_of_the_memory(run, monkeypatch):
    for module in (torch, torch.random):
        monkeypatch.setattr(module, "initial_seed", module.initial_seed)  # a preparation replaces it
    names = ["own_datasets:plain_loader", "own_datasets:loader"]
    run.start(0, loader=",".join(names), buffer_bytes=4096)
    preparation = Preparation(read(run.path), 0)
    alone = Preparation(dataclasses.replace(read(run.path), loader=names[0], buffer_bytes=2048), 0)
    for prepared in (preparation, alone):
        while not prepared.is_done:
            prepared.step()
    both = [loader.store for loader in preparation._loaders]
    assert both[0].count == alone._loaders[0].store.count
    assert all(store.count and store.bytes <= 2048 for store in both)
    assert preparation.take("of another loader", b"", b"") is None


def test_what_copies_have_prepared_is_where_ranks_ask_for_it(run, monkeypatch):
    for module in (torch, torch.random):
        monkeypatch.setattr(module, "initial_seed", module.initial_seed)
    run.start(3, loader="own_datasets:loader_of_copies", world_size=2)
    seed()
    workers = [Preparation(read(run.path), index) for index in range(3)]
    for prepared in workers:
        while not prepared.is_done:
            prepared.step()
    loader, program = own_datasets.loader_of_copies, state.captured()
    digest, found = definition.named("own_datasets:loader_of_copies").digest, 0
    for rank in range(2):
        order = MapOrder(loader, Seeds(11, rank, 0, 0), False)
        order.begin()
        for _ in range(6):
            task = order.next()
            found += workers[task.place(2) % 3].take(digest, program, task.to_bytes()) is not None
    assert found == 12


def test_nothing_is_prepared_for_a_dataset_that_asks_for_its_rank(run, monkeypatch):
    run.start(1, loader="own_datasets:loader_of_rank")
    wait_until(lambda: [event for event in of_kind(run, "prepared") if event["done"]])
    assert of_kind(run, "prepared")[-1]["batches"] == 0
    assert run.remarks() == ["nothing is prepared before the ranks start: the dataset asks for its rank"]
    monkeypatch.setenv("RANK", "3")
    with taas.register(own_datasets.loader_of_rank) as loader:
        assert loop(loader)[0].tolist() == list(range(3000, 3008))


def test_a_stream_is_prepared_to_its_end(run):
    run.start(1, loader="own_datasets:loader_of_shards")
    wait_until(lambda: [event for event in of_kind(run, "prepared") if event["done"]])
    assert of_kind(run, "prepared")[-1]["batches"] == len(loop(own_datasets.loader_of_shards))


class Endless(Sampler):
    """Changes its dataset."""

    def __init__(self, dataset):
        self.dataset = dataset

    def __iter__(self):
        while True:
            for index in range(8):
                self.dataset.drawn += 1
                yield index


class Drawn(Numbers):
    drawn = 0

    def __getitem__(self, index):
        return index, self.drawn


def test_a_sampler_of_ones_own_is_drawn_from_a_copy(run):
    run.start(0, loader="own_datasets:plain_loader")
    dataset = Drawn(8)
    loader = DataLoader(dataset, 4, sampler=Endless(dataset))
    preparation = LoaderPreparation("own_datasets:plain_loader", loader, 0, read(run.path), 0)
    while not preparation.is_done:
        preparation.step()
    assert preparation.store.count == 2 and dataset.drawn == 0


def test_what_the_process_draws_meanwhile_does_not_matter():
    seed(5)
    loader = DataLoader(numbers, 4, shuffle=True)
    rows = of_ranks(loader, 0, 2)
    expected = list(loader.batch_sampler)
    seed(9)
    for rank, row in enumerate(rows()):
        tasks = list(row)
        assert {(task.seeds.initial, task.seeds.rank) for task in tasks} == {(5, rank)}
        assert sorted(sum((task.indices for task in tasks), [])) == sorted(sum(expected, []))
    assert torch.rand(1) == (seed(9), torch.rand(1))[1]


def test_what_was_prepared_is_made_again_where_the_program_has_set_something(run):
    run.start(1, loader="own_datasets:loader_of_floats")
    wait_until(lambda: [event for event in of_kind(run, "prepared") if event["done"]])
    torch.set_default_dtype(torch.float64)
    try:
        with taas.register(own_datasets.loader_of_floats) as loader:
            assert loop(loader)[0].dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert (
        "batches that were prepared before the ranks started are made again: "
        "torch.set_default_dtype is not as it was then" in run.remarks()
    )


@pytest.mark.parametrize("persistent", [False, True])
def test_a_loader_that_the_program_has_changed_is_sent(persistent, data_workers, monkeypatch):
    data_workers(1, loader="own_datasets:loader_of_offsets")
    loader = own_datasets.loader_of_offsets
    monkeypatch.setattr(loader, "_DataLoader__initialized", False)
    monkeypatch.setattr(loader, "persistent_workers", persistent)
    with taas.register(loader):
        assert loop(loader)[0].tolist() == [0, 1, 2, 3]
        monkeypatch.setattr(loader.dataset, "offset", 100, raising=False)
        assert loop(loader)[0].tolist() == ([0, 1, 2, 3] if persistent else [100, 101, 102, 103])
        monkeypatch.delattr(loader.dataset, "offset")
        assert loop(loader)[0].tolist() == [0, 1, 2, 3]


def test_a_loader_that_cannot_be_sent_is_what_workers_import(data_workers):
    run = data_workers(1, loader="own_datasets:loader_with_a_file")
    with taas.register(own_datasets.loader_with_a_file) as loader:
        assert loop(loader)[0].tolist() == [0, 1, 2, 3]
    said = [line for line in run.remarks() if line.startswith("loader_with_a_file: ")]
    assert len(said) == 1 and "as they import it, whatever the program changes" in said[0]
    assert "taas: dataset.file (_io.BufferedReader) of the registered loader cannot be pickled" in said[0]


def test_the_end_of_a_preparation_is_told_until_it_got_through(run, monkeypatch):
    for module in (torch, torch.random):
        monkeypatch.setattr(module, "initial_seed", module.initial_seed)  # a preparation replaces it
    run.start(0, loader="own_datasets:plain_loader")
    preparation = Preparation(read(run.path), 0)
    told, answers = [], iter([False, False, True])
    monkeypatch.setattr(preparation, "_reported", float("inf"))

    def send(kind, wait, **said):
        told.append((kind, said["batches"], said["done"], wait))
        return next(answers)

    monkeypatch.setattr(events, "send", send)
    while not preparation.is_done:
        preparation.step()
    for _ in range(4):
        preparation.report()
    assert told == [("prepared", 13, True, True)] * 3


@pytest.mark.parametrize("name, batches", [("noise", 5), ("stream_of_noise", 0)])
def test_draws_from_the_operating_system_are_nothing_to_share(name, batches, data_workers):
    run = data_workers(1, loader=f"own_datasets:{name}", buffer_bytes=1000)
    wait_until(lambda: any(event["done"] for event in of_kind(run, "prepared")))
    said = "nothing is prepared before the ranks start: the dataset gives other samples each time it is read"
    assert run.remarks() == [said] * (batches == 0)
    assert (of_kind(run, "prepared")[-1]["batches"] > 0) == (batches > 0)
    with taas.register(getattr(own_datasets, name)) as loader:
        drawn = [draw for batch in loader for draw in batch.tolist()]
    assert len(set(drawn)) == len(drawn) == 20, "equal indices are drawn for anew"


@pytest.mark.parametrize(
    "name, line",
    [
        ("own_datasets:nothing", "ValueError: module own_datasets has no 'nothing'"),
        (
            "own_datasets:numbers",
            "ValueError: 'numbers' of module own_datasets is of type Numbers, not a torch.utils.data.DataLoader",
        ),
        (
            "own_datasets:loader_of_copies_with_a_file",
            "TypeError: taas: dataset.file (_io.BufferedReader) of the registered loader cannot be pickled, so it "
            "cannot be sent to data workers: cannot pickle '_io.BufferedReader' object. Open files and connections on "
            "first use in __getitem__, or in worker_init_fn, or run without --cpus",
        ),
        ("own_datasets:loader,no_such:loader", "no_such:loader: ModuleNotFoundError: No module named 'no_such'"),
        ("no_such:loader", "ModuleNotFoundError: No module named 'no_such'"),
    ],
)
def test_a_loader_that_cannot_be_imported_ends_the_worker_with_a_line(run, name, line, capfd):
    run.start(1, loader=name)
    assert run.workers[0].wait(DEADLINE_SECONDS) == 1
    assert capfd.readouterr().err.splitlines()[-1] == line
    assert not of_kind(run, "prepared")
