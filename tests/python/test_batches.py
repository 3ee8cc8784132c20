"""A batch in the rank is what the plain loader's workers would send: types, layouts, sharing, values to the bit."""

import collections
import gc
import os
import sys
import weakref

import numpy
import pytest
import taas
import torch
from batches import Generated, Image, as_it_is, difference, with_note
from own_datasets import Pair
from taas.sending import batches, layout
from torch.utils.data import DataLoader

GENERATED = 10_000 if os.environ.get("TAAS_FULL") else 250
SEED = int(os.environ.get("TAAS_SEED", "1"))

BATCHES = [
    torch.arange(6).view(2, 3),
    torch.arange(6).view(2, 3).t(),
    torch.zeros(3, dtype=torch.bfloat16) + 1.5,
    torch.tensor(2.5),
    torch.zeros(0, 3),
    torch.rand(2, 3, 4, 4).to(memory_format=torch.channels_last),
    torch.ones(1).expand(5),
    torch.tensor([1 + 2j]).conj(),
    torch.tensor([1 + 2j]).conj().imag,
    numpy.arange(6, dtype=">i2"),
    with_note(torch.ones(2), "kept"),
    with_note(torch.ones(2, requires_grad=True), "kept"),
    torch.zeros(3, dtype=torch.complex32).conj(),
    {"a": torch.ones(1), 3: "x", (1, 2): None},
    Pair(1, torch.ones(2)),
    numpy.zeros((0, 2)),
    numpy.arange(6).reshape(2, 3).T,
    [b"bytes", b"", "", "\ud800", 10**30, {1, 2}, 3 + 4j, numpy.float32(3), numpy.array(3), (), [], {}],
    [torch.rand(3).to_sparse(), torch.ones(3)],
    [torch.quantize_per_tensor(torch.arange(4.0), 0.5, 1, torch.qint8)],  # where torch's own workers fail
    [torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])],
]


def payload_of(batch):
    """What crosses to a rank: each buffer at its place, zeros between."""
    buffers = batches.encode(batch)
    spans = layout.spans_of(buffers)
    payload = bytearray(spans[-1][1])
    for (begin, end), buffer in zip(spans, buffers):
        payload[begin:end] = memoryview(buffer).cast("B")
    return memoryview(payload)


def there_and_back(batch):
    return batches.decode(payload_of(batch))


@pytest.mark.gate
@pytest.mark.parametrize("batch", BATCHES)
def test_round_trip(batch):
    assert not difference(batch, there_and_back(batch))


def test_generated_batches_are_those_of_the_plain_loader(data_workers):
    data_workers(2)
    make = lambda: DataLoader(Generated(SEED, GENERATED), None, collate_fn=as_it_is, num_workers=2)  # noqa: E731
    with taas.register(make()) as loader:
        for index, (registered, plain) in enumerate(zip(loader, make(), strict=True)):
            found = difference(plain, registered)
            assert not found, f"batch {index} of TAAS_SEED={SEED}: {found}"


def look_alike():
    """Batches of two tensors with four elements each."""
    whole, twice = torch.arange(8.0), torch.arange(4.0)
    yield [torch.zeros(4), torch.ones(4)]
    yield (torch.zeros(4), torch.ones(4))
    yield {"a": torch.zeros(4), "b": torch.ones(4)}
    yield {"b": torch.zeros(4), "a": torch.ones(4)}
    yield {1: torch.zeros(4), 2: torch.ones(4)}
    yield [twice, twice]
    yield [twice, twice[:]]
    yield [whole[:4], whole[4:]]
    yield [torch.zeros(4), torch.zeros(4).as_subclass(Image)]
    yield [torch.zeros(4), torch.ones(4, requires_grad=True)]
    yield [torch.zeros(4), torch.nn.Parameter(torch.ones(4))]
    yield [torch.zeros(4), with_note(torch.ones(4), 1)]
    yield [torch.zeros(4), torch.ones(4, dtype=torch.bfloat16)]
    yield [torch.zeros(4), torch.ones(4, 1)]
    yield [torch.zeros(4), torch.ones(1, 4).t()]
    yield collections.OrderedDict(a=torch.zeros(4), b=torch.ones(4))


@pytest.mark.gate
def test_batches_that_look_alike_are_told_apart():
    for _ in range(2):  # the second time from what is kept of the first
        for batch in look_alike():
            assert not difference(batch, there_and_back(batch))


def test_heads_are_kept_within_bounds():
    assert batches.encode([torch.ones(3)])[1] is batches.encode([torch.zeros(3)])[1]
    for size in range(1, 600):
        batches.encode([torch.ones(size)])
    assert len(batches._heads) <= 256


def test_a_class_of_the_script_stays_that_class_beside_what_goes_by_value(monkeypatch):
    made = type("Own", (), {"__module__": "__main__"})
    monkeypatch.setattr(sys.modules["__main__"], "Own", made, raising=False)
    own, function = there_and_back([made(), lambda: 1])
    assert type(own) is made and function() == 1


def test_a_function_goes_with_its_batch():
    function = there_and_back([lambda: 1])[0]
    found = weakref.ref(function)
    del function
    gc.collect()
    assert found() is None


@pytest.mark.gate
def test_a_part_of_a_larger_tensor_crosses_alone():
    whole = torch.rand(1000, 1000)
    for part in (
        whole[::100],
        whole[:, 3],
        whole[5].expand(9, 3, 1000),
        [whole[:, 3], whole[:, 500]],
        [whole[1], whole[900].as_subclass(Image)],
    ):
        payload = payload_of(part)
        assert len(payload) < 50_000
        assert not difference(part, batches.decode(payload))


@pytest.mark.gate
def test_what_shares_most_of_its_storage_goes_on_sharing_it():
    """As of a chunk of tokens: its first ones, and those that follow each."""
    chunk = torch.arange(1000)
    payload = payload_of([chunk[:-1], chunk[1:]])
    assert len(payload) < 10_000
    tokens, following = batches.decode(payload)
    tokens[5] = -1
    assert following[4] == -1 and following[-1] == 999


@pytest.mark.gate
def test_tensors_are_views_of_the_payload_and_what_is_small_beside_it_is_apart():
    payload = payload_of([torch.ones(1 << 16), numpy.ones(1 << 16), torch.ones(8)])
    images, array, labels = batches.decode(payload)
    payload[:] = bytes(len(payload))
    assert images.sum() == array.sum() == 0 and labels.sum() == 8
    images[1], array[1] = 5, 6
    assert sum(map(bool, payload)) >= 2


def test_types_of_other_libraries_keep_their_names():
    types = pytest.importorskip("ml_dtypes")
    for batch in (numpy.ones((2, 3), types.bfloat16), [numpy.ones(3, types.float8_e4m3fn).T]):
        assert not difference(batch, there_and_back(batch))


@pytest.mark.gate
def test_a_tensor_with_a_history_is_refused_with_the_way_out():
    with pytest.raises(RuntimeError, match=r"call detach\(\) on it in the dataset or in collate_fn"):
        batches.encode([torch.ones(2, requires_grad=True) * 2])
