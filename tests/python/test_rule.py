"""The rule: what torch gives with workers that are started, sent all as it is at iter(); num_workers=0 counts as 1."""

import types

import numpy
import pytest
import taas
from conftest import equal, loop, seed
from own_datasets import Augmented, Noted, Numbers
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Shifted(Numbers):
    def __init__(self, settings):
        super().__init__(40)
        self.settings = settings

    def __getitem__(self, index):
        return index + self.settings.shift


class ShiftedStream(Shifted, IterableDataset):
    def __iter__(self):
        return map(self.__getitem__, range(40))


@pytest.mark.parametrize("workers", [pytest.param(0, marks=pytest.mark.gate), 1])
@pytest.mark.parametrize("dataset", [Shifted, ShiftedStream])
def test_a_change_during_a_loop_is_seen_by_the_next(dataset, workers, data_workers):
    data_workers(2)
    settings = types.SimpleNamespace(shift=0)
    with taas.register(DataLoader(dataset(settings), 4, num_workers=workers, collate_fn=list)) as loader:
        for epoch in range(3):
            seen = []
            for batch in loader:
                seen += batch
                settings.shift = epoch * 100 + 100
            assert seen == [*range(epoch * 100, epoch * 100 + 40)]


class Notes(Numbers):
    """Keeps what it was asked for."""

    def __init__(self):
        super().__init__(4)
        self.asked, self.begun = [], []

    def __getitem__(self, index):
        self.asked.append(index)
        return len(self.asked), self.begun, get_worker_info().id, get_worker_info().num_workers


def note(worker):
    get_worker_info().dataset.begun.append(worker)


@pytest.mark.gate
def test_no_workers_are_one_with_a_dataset_of_its_own(data_workers):
    data_workers(1)
    with taas.register(DataLoader(Notes(), 1, collate_fn=lambda rows: rows[0], worker_init_fn=note)) as loader:
        assert loop(loader) == [(number, [0], 0, 1) for number in range(1, 5)]
        assert loader.dataset.asked == loader.dataset.begun == []


class Mapped(Numbers):
    """Parts of a file in memory, one of which workers write to; and how often it was asked."""

    def __init__(self, path):
        super().__init__(20)
        whole, self.written = (numpy.memmap(path, "int64", mode) for mode in ("r", "r+"))
        self.parts = [whole, whole[5:25], whole[::2], whole[:40].reshape(8, 5).T[1:]]
        self.asked = 0

    def __getitem__(self, index):
        self.asked += 1
        self.written[index % 3] += 100
        parts = [(type(part).__name__, part.flags.writeable, part[index % 4 :][:2]) for part in self.parts]
        return index, self.asked, self.scale, self.written[:3].tolist(), parts


def test_as_torchs_workers_that_are_started(data_workers, tmp_path):
    numpy.arange(50).tofile(tmp_path / "rows")
    rows, seen = Mapped(tmp_path / "rows"), []
    loader = DataLoader(rows, 4, shuffle=True, collate_fn=list, num_workers=1, multiprocessing_context="spawn")
    data_workers(1)
    for register in (lambda loader: loader, taas.register):
        register(loader)
        seed()
        rows.scale = 1  # before iter()
        batches = iter(loader)
        rows.scale = 2  # after it
        seen.append(list(batches))
    taas.unregister(loader)
    assert equal(*seen) and rows.asked == 0 and numpy.fromfile(tmp_path / "rows", "int64").tolist() == [*range(50)]


class Marks:
    """The program sets `mark`; what workers set stays with them."""

    mark, begun = 0, None

    def begin(self, worker):
        self.begun = worker, self.mark

    def collate(self, samples):
        return self.mark, self.begun, samples


@pytest.mark.parametrize("persistent", [False, True])
def test_collate_fn_and_worker_init_fn_are_sent_as_they_are_at_iter(persistent, data_workers):
    data_workers(1)
    seen = []
    for register in (lambda loader: loader, taas.register):
        marks = Marks()
        options = {"collate_fn": marks.collate, "worker_init_fn": marks.begin, "persistent_workers": persistent}
        loader = register(DataLoader(range(8), 4, num_workers=1, **options))
        for _ in range(3):
            for batch in loader:
                seen.append(batch)
                marks.mark += 1
    taas.unregister(loader)
    assert seen[:6] == seen[6:] and {mark for mark, *_ in seen} == ({0} if persistent else {0, 2, 4})


class Slots:
    __slots__ = ("value",)


class Attributed(dict):
    pass


def test_a_change_is_seen_wherever_it_is(data_workers):
    data_workers(1)
    closed_over = 0

    class Own(Numbers):  # sent by value, as the script's
        shown = kind = 0
        code = lambda self: 0  # noqa: E731

        def __getitem__(self, index):
            return [*(each.value for each in self.held), self.ask(), self.shown, self.code(), self.kind]

    class Other(Own):
        kind = 1

    def close_over():
        nonlocal closed_over
        closed_over = 1

    dataset = Own(1)
    dataset.held, dataset.ask = (Slots(), Attributed()), lambda: closed_over
    dataset.held[0].value = dataset.held[1].value = 0
    changed = [(dataset.held[0], "value", 1), (dataset.held[1], "value", 1), None, (Own, "shown", 1)]
    changed += [(Own, "code", lambda self: 1), (dataset, "__class__", Other)]
    with taas.register(DataLoader(dataset, collate_fn=list)) as loader:
        for count, change in enumerate(changed, 1):
            loop(loader)
            setattr(*change) if change else close_over()
            assert loop(loader) == [[[1] * count + [0] * (6 - count)]]


def test_seeds_are_of_the_seed_the_rank_the_loader_the_epoch_and_the_batch(data_workers, monkeypatch):
    data_workers(1, world_size=2)

    def drawn(value, rank):
        """Two epochs of two loaders."""
        monkeypatch.setenv("RANK", str(rank))
        seed(value)
        with taas.register(DataLoader(Augmented(8), 1)) as one, taas.register(DataLoader(Augmented(8), 1)) as other:
            return [float(draw) for loader in (one, other) for _, _, draw in loop(loader, 2)]

    first = drawn(1, 0)
    assert len({*first, *drawn(1, 1), *drawn(2, 0)}) == 3 * 2 * 2 * 8 and drawn(1, 0) == first


class Reads(IterableDataset):
    def __iter__(self):
        return map(Noted().__getitem__, range(8))


@pytest.mark.parametrize("dataset", [Reads(), Noted(8)])
def test_nothing_is_made_ahead_of_its_loop(dataset, data_workers, monkeypatch, tmp_path):
    """What it reads may be gone then: a queue, a connection."""
    noted = tmp_path / "noted"
    noted.touch()
    monkeypatch.setenv("NOTED", str(noted))
    data_workers(1)
    with taas.register(DataLoader(dataset, 4)) as loader, taas.register(DataLoader(Numbers(40), 4)) as other:
        for made in ("", "0 1 2 3 4 5 6 7 "):
            if made:
                loop(loader)
            loop(other)  # what the one worker was asked for before comes first
            assert noted.read_text() == made
