"""Each logical worker has a copy of what its code sets, as with the plain loader, however many processes there are."""

import types

import pytest
import taas
from conftest import equal, loop, registered_loop, seed
from own_datasets import Numbers
from taas.sending import definition
from taas.sending.state import Frame
from taas.sending.recipe import recipe_of
from taas.order.order import ShardOrder
from taas.order.seeds import Seeds
from taas.order.task import Task
from taas.worker import worker
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

MAIN = """
from torch.utils.data import Dataset, IterableDataset, get_worker_info

calls = 0


def count(worker):
    global calls
    calls += 1


class Counts(Dataset):
    made = 0

    def __len__(self):
        return 40

    def __getitem__(self, index):
        Counts.made += 1
        return index, calls, Counts.made


class CountsStreams(IterableDataset):
    begun = 0

    def __iter__(self):
        CountsStreams.begun += 1
        for row in range(10):
            yield get_worker_info().id, row, CountsStreams.begun
"""


SCRIPT = types.SimpleNamespace(__name__="__main__")
exec(MAIN, vars(SCRIPT))  # what a script defines, which comes by value


class Marked(Numbers):
    """worker_init_fn leaves something with its worker's copy."""

    def __getitem__(self, index):
        return index, vars(self).get("marks")


def keep_seed(worker):
    get_worker_info().dataset.marks = get_worker_info().seed


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
        lambda options: DataLoader(Marked(40), worker_init_fn=mark, **options),
        lambda options: DataLoader(MarkedStream(), **options),
        lambda options: DataLoader(SCRIPT.Counts(), worker_init_fn=SCRIPT.count, **options),
        lambda options: DataLoader(SCRIPT.CountsStreams(), **options),
    ],
)
def test_no_logical_worker_sees_what_another_has_set(make, count, data_workers):
    """In its dataset, or in globals and classes of a script."""

    def made():
        return make({"batch_size": 3, "num_workers": 3, "collate_fn": list})

    assert equal(registered_loop(made, data_workers, count, epochs=3), loop(made(), epochs=3))


class Strong(Numbers):
    strength = 1

    def __getitem__(self, index):
        return index, self.strength, vars(self).get("marks")


@pytest.mark.gate
def test_persistent_workers_keep_what_they_began_with(data_workers):
    data_workers(2)
    seen = []
    for register in (lambda loader: loader, taas.register):
        loader = DataLoader(Strong(20), 3, num_workers=2, collate_fn=list, persistent_workers=True, worker_init_fn=mark)
        register(loader)
        for epoch in range(3):
            loader.dataset.strength = epoch
            seen.append([batch for _, batch in zip(range(7 - epoch), loader)])  # the last two loops are left early
    taas.unregister(loader)
    assert equal(seen[3:], seen[:3])


def test_persistent_workers_of_a_stream_without_a_length_begin_again(data_workers):
    data_workers(1)
    with taas.register(DataLoader(MarkedStream(), 3, num_workers=1, persistent_workers=True)) as loader:
        assert len(loop(loader)) == 4
        next(iter(loader))
        assert len(loop(loader)) == 4


class Counted(Numbers):
    made = 0

    def __getitem__(self, index):
        self.made += 1
        return index, self.made


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
    loader = DataLoader(Counted(12), 2, num_workers=2, collate_fn=list, worker_init_fn=id)
    plain = list(zip(*[loader] * 5))
    with taas.register(loader):
        assert list(zip(*[loader] * 5)) == plain


def test_persistent_workers_of_a_loader_that_is_registered_anew_begin_anew(data_workers):
    data_workers(1)
    seeds = set()
    options = {"num_workers": 1, "persistent_workers": True, "collate_fn": list, "worker_init_fn": keep_seed}
    for value in range(2):
        seed(value)
        with taas.register(DataLoader(Marked(4), 4, **options)) as loader:
            seeds |= {kept for batch in loop(loader, 2) for _, kept in batch}
    assert len(seeds) == 2


offset = None


def stores(worker):
    global offset
    offset = worker


class Offset(Numbers):
    def __getitem__(self, index):
        return index, offset


def test_what_worker_init_fn_stores_in_its_module_stays_and_is_told_of(data_workers):
    """Whatever other loaders the data worker makes batches for in turn."""
    run = data_workers(1)
    options = {"num_workers": 1, "collate_fn": list}
    with (
        taas.register(DataLoader(Offset(8), 2, worker_init_fn=stores, **options)) as train,
        taas.register(DataLoader(Marked(8), 2, worker_init_fn=mark, **options)) as other,
    ):
        assert [offset for batch, _ in zip(train, other) for _, offset in batch] == [0] * 8
    (told,) = [line for line in run.remarks() if "in its module" in line]
    assert "worker_init_fn stores offset in its module" in told


@pytest.mark.gate
def test_an_exception_of_worker_init_fn_arrives(data_workers):
    def fails(worker):
        raise KeyError(f"worker {worker} has no rows")

    data_workers(2)
    with taas.register(DataLoader(Numbers(), 4, num_workers=2, worker_init_fn=fails)) as loader:
        with pytest.raises(KeyError, match="worker 0 has no rows"):
            loop(loader)


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
            payload = Frame().to_bytes() + Task(Seeds(1, rank, 0, 0), 0, 0, [0, 1]).to_bytes()
            one.answer(
                types.SimpleNamespace(
                    digest=f"{rank}", client=rank, stream=0, payload=payload, has_ended_a_worker=False
                )
            )
    assert loads == [f"{rank}" for rank in range(9)] and not let_go
