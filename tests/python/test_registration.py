"""register and unregister: in place, for one loader, with one clear line when it is not possible."""

import copy
import pickle

import pytest
import taas
from conftest import equal
from datasets import Numbers, numbers
from torch.utils.data import DataLoader


class Own(DataLoader):
    """A program's own kind of loader."""

    def first(self):
        return next(iter(self))


def test_in_place():
    loader = Own(numbers, 8)
    length, dataset, sampler = len(loader), loader.dataset, loader.sampler
    assert taas.register(loader) is loader and taas.is_registered(loader)
    assert isinstance(loader, Own) and isinstance(loader, DataLoader) and type(loader).__name__ == "Own"
    assert (len(loader), loader.dataset, loader.sampler) == (length, dataset, sampler)
    assert equal(loader.first(), Own(numbers, 8).first())
    assert taas.unregister(loader) is loader and type(loader) is Own and not taas.is_registered(loader)
    assert "_taas" not in vars(loader)


def test_other_loaders_stay_as_they_are():
    other = DataLoader(numbers, 8)
    with taas.register(DataLoader(numbers, 8)):
        assert type(other) is DataLoader and not taas.is_registered(other)


def test_as_a_context_manager_and_by_the_old_name():
    with taas.register(DataLoader(numbers, 8)) as loader:
        assert taas.is_registered(loader)
    assert not taas.is_registered(loader)
    assert taas.unregistered(taas.register(loader)) is loader
    with taas.register(loader):
        taas.unregister(loader)


@pytest.mark.parametrize("wrong, words", [
    (lambda loader: taas.register(loader), "registered already"),
    (lambda loader: taas.register([1, 2]), r"the list \[1, 2\] is not a torch.utils.data.DataLoader"),
    (lambda loader: taas.unregister(DataLoader(numbers)), "this DataLoader is not registered"),
    (lambda loader: taas.unregister(numbers), "the Numbers .* is not registered"),
    (lambda loader: loader.load_state_dict({"epoch": 3}), "not the state of a registered loader"),
])
def test_mistakes_are_one_line(wrong, words):
    with taas.register(DataLoader(numbers, 8)) as loader, pytest.raises(ValueError, match=words) as raised:
        wrong(loader)
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda loader: pickle.loads(pickle.dumps(loader))])
def test_a_copy_is_not_registered(duplicate):
    with taas.register(DataLoader(numbers, 8)) as loader:
        other = duplicate(loader)
    assert type(other) is DataLoader and not taas.is_registered(other)
    assert len(list(other)) == 13


def test_a_loader_that_is_made_from_the_class_of_a_registered_one_is_plain():
    with taas.register(DataLoader(numbers, 8)) as loader:
        other = type(loader)(Numbers(), 8)
        assert not taas.is_registered(other) and len(list(other)) == 13


def test_in_a_data_worker_nothing_is_registered(monkeypatch):
    monkeypatch.setenv("TAAS_ROLE", "data-worker")
    loader = DataLoader(numbers, 8)
    assert taas.register(loader) is loader and not taas.is_registered(loader) and taas.unregister(loader) is loader


def test_unregistering_during_the_loop_is_said():
    loader = taas.register(DataLoader(numbers, 8))
    iterator = iter(loader)
    next(iterator)
    taas.unregister(loader)
    with pytest.raises(RuntimeError, match="unregistered during this loop"):
        list(iterator)
