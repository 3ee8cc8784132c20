"""register and unregister: in place, for one loader, with one clear line when it is not possible."""

import copy
import gc
import pickle

import pytest
import taas
from conftest import as_with_one, equal, loop, seed, states
from own_datasets import Numbers, numbers
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _SingleProcessDataLoaderIter
from torch.utils.data.datapipes.iter import IterableWrapper


class Own(DataLoader):
    """A program's own kind of loader."""

    def first(self):
        return next(iter(self))


@pytest.mark.gate
def test_in_place():
    loader, other = Own(numbers, 8), Own(numbers, 8)
    length, dataset, sampler = len(loader), loader.dataset, loader.sampler
    assert taas.register(loader) is loader and taas.is_registered(loader)
    assert isinstance(loader, Own) and isinstance(loader, DataLoader) and type(loader).__name__ == "Own"
    assert (len(loader), loader.dataset, loader.sampler) == (length, dataset, sampler)
    assert type(other) is Own and not taas.is_registered(other) and equal(loader.first(), other.first())
    assert taas.unregister(loader) is loader and type(loader) is Own and not taas.is_registered(loader)
    assert "_taas" not in vars(loader)


@pytest.mark.gate
def test_as_a_context_manager():
    with taas.register(DataLoader(numbers, 8)) as loader:
        assert taas.is_registered(loader)
    assert not taas.is_registered(loader)
    assert taas.unregister(taas.register(loader)) is loader
    with taas.register(loader):
        taas.unregister(loader)


class Claims:
    """Only says that it is one, as loaders that accelerate has prepared."""

    __class__ = DataLoader


@pytest.mark.gate
@pytest.mark.parametrize(
    "wrong, words",
    [
        (lambda loader: taas.register(loader), "registered already"),
        (lambda loader: taas.register([1, 2]), r"the list \[1, 2\] is not a torch.utils.data.DataLoader"),
        (lambda loader: taas.register(Claims()), "the Claims .* is not a torch.utils.data.DataLoader"),
        (lambda loader: taas.unregister(DataLoader(numbers)), "this DataLoader is not registered"),
        (lambda loader: taas.unregister(numbers), "the Numbers .* is not registered"),
        (lambda loader: loader.load_state_dict({"epoch": 3}), "not the state of a registered loader"),
    ],
)
def test_mistakes_are_one_line(wrong, words):
    with taas.register(DataLoader(numbers, 8)) as loader, pytest.raises(ValueError, match=words) as raised:
        wrong(loader)
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.gate
@pytest.mark.parametrize(
    "duplicate",
    [
        copy.copy,
        copy.deepcopy,
        lambda loader: pickle.loads(pickle.dumps(loader)),
        lambda loader: type(loader)(Numbers(), 8),
    ],
)
def test_a_copy_and_what_is_made_of_its_class_is_not_registered(duplicate):
    with taas.register(DataLoader(numbers, 8)) as loader:
        other = duplicate(loader)
        assert isinstance(other, DataLoader) and not taas.is_registered(other) and len(list(other)) == 13


@pytest.mark.gate
def test_in_a_data_worker_nothing_is_registered(monkeypatch):
    monkeypatch.setenv("TAAS_ROLE", "data-worker")
    loader = DataLoader(numbers, 8)
    assert taas.register(loader) is loader and not taas.is_registered(loader) and taas.unregister(loader) is loader


@pytest.mark.gate
def test_only_unregistering_makes_a_place_free():
    """The place decides about seeds: a loader that was forgotten kept it until the garbage collector came."""

    def place(loader):
        return vars(loader)["_taas"].ordinal

    kept, forgotten = taas.register(DataLoader(numbers)), taas.register(DataLoader(numbers))
    place_of_kept, place_of_forgotten = place(kept), place(forgotten)
    del forgotten
    gc.collect()
    taas.unregister(kept)
    later = [taas.register(DataLoader(numbers)) for _ in range(2)]
    assert place(later[0]) == place_of_kept and place(later[1]) > place_of_forgotten
    for loader in later:
        taas.unregister(loader)


@pytest.mark.parametrize("count", [0, 1])
def test_a_loop_under_way_is_none_of_unregisters_business(count, data_workers):
    data_workers(count)
    loader = taas.register(DataLoader(numbers, 8))
    iterator = iter(loader)
    next(iterator)
    taas.unregister(loader)
    assert len(list(iterator)) == 12


@pytest.mark.gate
def test_a_data_pipe_is_refused_where_there_are_data_workers(data_workers):
    make = lambda: DataLoader(IterableWrapper(range(4)))  # noqa: E731
    with taas.register(make()) as loader:
        assert equal(loop(loader), loop(make()))
    data_workers(1)
    with pytest.raises(taas.RegistrationError, match="data workers do not read DataPipes: .*, or run without --cpus"):
        taas.register(make())


class Moved(DataLoader):
    """Changes each batch, as loaders do that move it to a device."""

    def __iter__(self):
        for values, labels in super().__iter__():
            yield values + 1, labels


class Filtered(DataLoader):
    """Puts an iterator of its own around torch's, as torch_geometric's do."""

    def _get_iterator(self):
        return map(lambda batch: batch[1], super()._get_iterator())


class Prepared(DataLoader):
    """Has taken over another loader, as ray's and accelerate's do."""

    def __init__(self, loader):
        vars(self).update(vars(loader))
        self.base_dataloader = loader

    def __iter__(self):
        yield from self.base_dataloader


class Stateful(DataLoader):
    """Has an iterator class of its own, as torchdata's does."""

    def _get_iterator(self):
        return _SingleProcessDataLoaderIter(self)


DELIVERED = [
    lambda: Moved(numbers, 8, shuffle=True),
    lambda: Moved(numbers, 8, shuffle=True, num_workers=2),
    lambda: Filtered(numbers, 8, shuffle=True, num_workers=1),
]
PLAIN = [
    lambda: Prepared(DataLoader(numbers, 8, shuffle=True)),
    lambda: Stateful(numbers, 8, shuffle=True),
]


def watched(loader):
    seed()
    return loop(loader, 2), states()


@pytest.mark.parametrize("count", [0, 2])
@pytest.mark.parametrize("make", [*DELIVERED, *PLAIN])
def test_a_subclass_iterates_as_it_does_unregistered(make, count, data_workers, capfd):
    """Those that ask torch for nothing have the plain batches, which is said where there are data workers."""
    run, has_workers = data_workers(count), count and make in DELIVERED
    with taas.register(make()) as loader:
        registered = watched(loader)
    assert equal(registered, watched(as_with_one(make()) if has_workers else make()))
    said = [line for line in run.remarks() if "its batches came from the plain loader" in line] if run else []
    assert len(said) == (count > 0 and make in PLAIN) and capfd.readouterr().err == ""


def test_what_a_prepared_loader_iterates_over_can_be_registered():
    prepared = Prepared(DataLoader(numbers, 8))
    with taas.register(prepared.base_dataloader):
        assert equal(loop(prepared), loop(DataLoader(numbers, 8)))
