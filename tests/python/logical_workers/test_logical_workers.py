"""Each logical worker has a copy of what its code sets, as with the plain loader, however many processes there are."""

import os
import types

import pytest
import taas
import torch
from conftest import equal, loop, registered_loop, seed
from own_datasets import Numbers
from taas.sending import definition
from taas.sending.recipe import recipe_of
from taas.order.order import ShardOrder
from taas.order.seeds import Seeds
from taas.order.task import Task
from taas.runtime import events
from taas.worker import worker
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

MAIN = """
import torch
from torch.utils.data import Dataset, IterableDataset, get_worker_info

calls = 0
opened = set()


def open_once(worker):
    global calls
    calls += 1
    if "rows" in opened:
        raise RuntimeError("rows is already open in this process")
    opened.add("rows")


class Counts(Dataset):
    made = 0

    def __len__(self):
        return 40

    def __getitem__(self, index):
        Counts.made += 1
        return index, calls, len(opened), Counts.made


class CountsStreams(IterableDataset):
    begun = 0

    def __iter__(self):
        CountsStreams.begun += 1
        for row in range(10):
            yield get_worker_info().id, row, CountsStreams.begun
"""


@pytest.fixture(scope="module")
def script():
    """What a script defines, which comes by value."""
    main = {"__name__": "__main__"}
    exec(MAIN, main)
    return types.SimpleNamespace(**main)


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize(
    "make",
    [
        lambda script: DataLoader(script.Counts(), 3, num_workers=3, collate_fn=list, worker_init_fn=script.open_once),
        lambda script: DataLoader(script.CountsStreams(), 3, num_workers=3, collate_fn=list),
    ],
)
def test_no_logical_worker_sees_what_another_of_a_script_has_set(make, count, script, data_workers):
    def made():
        return make(script)

    assert equal(registered_loop(made, data_workers, count, epochs=3), loop(made(), epochs=3))


class Marked(Numbers):
    """worker_init_fn leaves something with its worker's copy."""

    def __getitem__(self, index):
        return index, vars(self).get("marks")


class Seeded(Numbers):
    def __getitem__(self, index):
        return self.seed


def keep_seed(worker):
    get_worker_info().dataset.seed = get_worker_info().seed


def mark(worker):
    dataset = get_worker_info().dataset
    dataset.marks = [*getattr(dataset, "marks", []), worker]


class MarkedStream(IterableDataset):
    def __iter__(self):
        mark(get_worker_info().id)
        yield from ((row, list(get_worker_info().dataset.marks)) for row in range(10))


@pytest.mark.parametrize("count", [1, pytest.param(2, marks=pytest.mark.gate), 4])
@pytest.mark.parametrize(
    "make",
    [
        lambda: DataLoader(Marked(40), 3, num_workers=3, collate_fn=list, worker_init_fn=mark),
        lambda: DataLoader(MarkedStream(), 3, num_workers=3, collate_fn=list),
    ],
)
def test_no_logical_worker_sees_what_another_has_set_in_its_dataset(make, count, data_workers):
    assert equal(registered_loop(make, data_workers, count, epochs=3), loop(make(), epochs=3))


class Strong(Numbers):
    strength = 1

    def __getitem__(self, index):
        return index, self.strength, vars(self).get("marks")


@pytest.mark.gate
def test_persistent_workers_keep_what_they_began_with(data_workers):
    data_workers(2)
    seen = []
    for register in (False, True):
        loader = DataLoader(Strong(20), 3, num_workers=2, collate_fn=list, persistent_workers=True, worker_init_fn=mark)
        if register:
            taas.register(loader)
        seen.append([])
        for epoch in range(3):
            loader.dataset.strength = epoch
            seen[-1] += [batch for _, batch in zip(range(7 - epoch), loader)]  # the last two loops are left early
        if register:
            taas.unregister(loader)
    assert equal(*seen)


def test_persistent_workers_of_a_stream_without_a_length_begin_again(data_workers):
    data_workers(1)
    with taas.register(DataLoader(MarkedStream(), 3, num_workers=1, persistent_workers=True)) as loader:
        batches = iter(loader)
        whole = len(list(batches))
        batches = iter(loader)
        next(batches)
        batches = iter(loader)
        assert len(list(batches)) == whole == 4


class Counted(Numbers):
    made = 0

    def __getitem__(self, index):
        self.made += 1
        return index, self.made


class Own(Numbers):
    def __getitem__(self, index):
        return os.getpid()


class OwnStream(IterableDataset):
    def __iter__(self):
        return iter([os.getpid()] * 40)


@pytest.mark.parametrize(
    "make",
    [
        lambda: DataLoader(Own(), 4, num_workers=3, collate_fn=set),
        lambda: DataLoader(Own(), 4, num_workers=3, collate_fn=set, worker_init_fn=id),
        lambda: DataLoader(OwnStream(), 4, num_workers=3, collate_fn=set),
    ],
)
def test_a_data_worker_is_one_process(make, data_workers):
    run = data_workers(2)
    with taas.register(make()) as loader:
        assert set().union(*loop(loader)) <= set(run.pids())


def test_copies_of_all_ranks_are_spread():
    """Over eight data workers, four ranks with two workers each."""
    recipe = recipe_of(DataLoader(MarkedStream(), num_workers=2))
    orders = [ShardOrder(recipe, Seeds(1, rank, 0, 0)) for rank in range(4)]
    assert sorted(order.next().place(2) for order in orders for _ in range(2)) == list(range(8))


opened = set()


class File:
    """A process may open it once, as LMDB's."""

    def __init__(self):
        assert not opened, "already open in this process"
        opened.add("rows")

    def __del__(self):
        opened.clear()


def open_file(worker):
    get_worker_info().dataset.file = File()


@pytest.mark.parametrize("changes", [pytest.param(False, marks=pytest.mark.gate), True])
def test_copies_of_loops_that_have_ended_are_let_go(changes, data_workers):
    """Also where the dataset has changed, or the loader is made anew."""
    data_workers(2)
    dataset, seen = Numbers(24), []
    for epoch in range(6):
        dataset.epoch = epoch if changes else 0
        loader = taas.register(DataLoader(dataset, 2, num_workers=2, worker_init_fn=open_file))
        seen.append(len(loop(loader)))
        for _ in loader:
            break
    assert seen == [12] * 6


def test_loops_at_once_have_copies_of_their_own(data_workers):
    data_workers(1)
    rows = []
    for register in (lambda loader: loader, taas.register):
        loader = register(DataLoader(Counted(12), 2, num_workers=2, collate_fn=list, worker_init_fn=id))
        rows.append(list(zip(*[loader] * 5)))
    assert equal(*rows)


def test_persistent_workers_of_a_loader_that_is_registered_anew_begin_anew(data_workers):
    data_workers(1)
    seeds = set()
    for value in range(2):
        seed(value)
        options = {"num_workers": 1, "persistent_workers": True, "collate_fn": list, "worker_init_fn": keep_seed}
        with taas.register(DataLoader(Seeded(4), 4, **options)) as loader:
            seeds |= {number for batch in loop(loader, 2) for number in batch}
    assert len(seeds) == 2


offset = None


def stores(worker):
    global offset
    offset = worker


class Offset(Numbers):
    def __getitem__(self, index):
        return index, offset


def test_what_worker_init_fn_stores_in_its_module_stays(data_workers):
    """Whatever other loaders the data worker makes batches for in turn."""
    data_workers(1)
    train = taas.register(DataLoader(Offset(8), 2, num_workers=1, worker_init_fn=stores, collate_fn=list))
    other = taas.register(DataLoader(Numbers(8), 2))
    for batch, _ in zip(train, other):
        assert {offset for _, offset in batch} == {0}
    taas.unregister(train), taas.unregister(other)


@pytest.mark.parametrize("fn, is_told", [(stores, True), (mark, False)])
def test_a_worker_init_fn_that_stores_in_its_module_is_told_of(fn, is_told, data_workers, monkeypatch):
    run = data_workers(1)
    monkeypatch.setattr(events, "_said", set())
    loop(taas.register(DataLoader(Numbers(8), 4, num_workers=1, worker_init_fn=fn)), 2)
    told = [line for line in run.remarks() if "worker_init_fn stores offset in its module" in line]
    assert len(told) == is_told


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
    source = definition.Source(definition.load_of(loader), {})
    monkeypatch.setattr(worker.definition, "source", lambda *data: source)
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
