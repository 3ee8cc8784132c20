"""How one stream is dealt over ranks, and which loaders can be."""

import copy
import itertools

import pytest
import taas
from conftest import loop
from test_shared_streams import Together
from own_datasets import Numbers, Sharded
from taas.order.index_batches import IndexBatches, rounds
from torch.utils.data import BatchSampler, DataLoader, DistributedSampler, SequentialSampler


@pytest.fixture
def four_ranks(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "4")
    monkeypatch.setenv("RANK", "1")


def dealt(samples, size, ranks, drop_last=False):
    """Each rank's batches."""
    sampler = SequentialSampler(range(samples))
    sampler = BatchSampler(sampler, size, drop_last) if size else sampler
    shares = [IndexBatches(sampler, rank, ranks, drop_last) for rank in range(ranks)]
    found = [list(share) for share in shares]
    assert [len(share) for share in shares] == list(map(len, found))
    return found


@pytest.mark.gate
@pytest.mark.parametrize("ranks", [2, 3, 4, 8])
@pytest.mark.parametrize("size", [2, 3, 4])
def test_nothing_is_lost_and_nobody_has_a_batch_more(ranks, size):
    for samples in range(ranks, 70):
        shares = dealt(samples, size, ranks)
        assert sorted(index for share in shares for batch in share for index in batch) == list(range(samples))
        assert len(set(map(len, shares))) == 1
        assert all(0 < len(batch) <= size for share in shares for batch in share)


@pytest.mark.gate
@pytest.mark.parametrize(
    "samples, size, ranks, drop_last, shares",
    [
        (12, 3, 2, False, [[[0, 1, 2], [6, 7, 8]], [[3, 4, 5], [9, 10, 11]]]),
        (17, 3, 2, True, [[[0, 1, 2], [6, 7, 8]], [[3, 4, 5], [9, 10, 11]]]),
        (3, 4, 4, False, [[[0]], [[1]], [[2]], []]),
        (5, 1, 2, False, [[[0], [2], [4]], [[1], [3]]]),
        (5, None, 2, False, [[0, 2, 4], [1, 3]]),
    ],
    ids=["comes out even", "drop_last", "too few", "batches of one", "no batches"],
)
def test_batches_stay_as_they_are_and_what_cannot_be_divided_goes_to_the_first_ranks(
    samples, size, ranks, drop_last, shares
):
    assert dealt(samples, size, ranks, drop_last) == shares


@pytest.mark.gate
def test_an_endless_sampler_is_dealt_as_it_goes():
    stream = rounds(([number] for number in itertools.count()), 3, False)
    assert [next(stream) for _ in range(2)] == [[[0], [1], [2]], [[3], [4], [5]]]


@pytest.mark.gate
def test_a_loader_is_as_long_as_its_share_until_it_is_unregistered(four_ranks):
    loader = DataLoader(Numbers(40), batch_size=2, shuffle=True)
    own = loader.batch_sampler
    taas.register(loader, shared=True)
    assert len(loader) == 5 and loader.batch_sampler.batch_size == 2
    assert copy.copy(loader).batch_sampler is own, "a copy is a plain loader"
    taas.unregister(loader)
    assert len(loader) == 20 and loader.batch_sampler is own


class Draws(DataLoader):
    """Takes its indices from where DataLoader keeps them."""

    @property
    def _index_sampler(self):
        return self.batch_sampler


def test_a_class_that_draws_by_itself_has_the_ranks_share(four_ranks, monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setattr("taas.order.common_order.meeting_place", lambda purpose, store=Together(): store)
    with taas.register(Draws(Numbers(40), batch_size=2), shared=True) as loader:
        assert [labels.tolist() for _, labels in loop(loader)] == [[row, row + 1] for row in range(0, 40, 8)]


def test_one_rank_shares_with_nobody():
    with taas.register(DataLoader(Numbers(4), shuffle=True), shared=True) as loader:
        assert type(loader.batch_sampler) is BatchSampler and len(list(loader)) == 4


@pytest.mark.gate
def test_what_cannot_be_shared_is_refused_and_left_alone_by_split(four_ranks, monkeypatch):
    loader = DataLoader(Numbers(8), sampler=DistributedSampler(range(8), 2, 0))
    with pytest.raises(taas.RegistrationError, match="shared=True, but its DistributedSampler"):
        taas.register(loader, shared=True)
    monkeypatch.setenv("TAAS_SPLIT", "1")
    with taas.register(loader):
        assert loader._index_sampler.ranks == 1


@pytest.mark.gate
def test_split_leaves_an_iterable_dataset_alone_which_may_split_itself(four_ranks, monkeypatch):
    monkeypatch.setenv("TAAS_SPLIT", "1")
    with taas.register(DataLoader(Sharded(3), None)) as loader:
        assert loop(loader) == [0, 1, 2]


@pytest.mark.gate
def test_ranks_that_cannot_meet_are_told_so(four_ranks, monkeypatch):
    monkeypatch.delenv("TORCHELASTIC_USE_AGENT_STORE", raising=False)
    with taas.register(DataLoader(Numbers(8)), shared=True) as loader:
        with pytest.raises(RuntimeError, match="no store to agree through: call torch.distributed.init_process_group"):
            next(iter(loader))


@pytest.mark.gate
def test_a_state_of_another_number_of_ranks_is_refused():
    with taas.register(DataLoader(Numbers(40), batch_size=2)) as loader:
        next(iter(loader))
        state = loader.state_dict()
        assert state["position"]["ranks"] == 1
        state["position"]["ranks"] = 8
        loader.load_state_dict(state)
        with pytest.raises(ValueError, match="in the middle of a loop that 8 ranks shared, and now there are 1"):
            iter(loader)
