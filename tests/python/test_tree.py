"""A batch taken apart and put together is the same batch."""

import collections

import numpy
import pytest
import torch
from conftest import equal
from own_datasets import Pair
from taas.batch import layout, tree, untree

BATCHES = [
    torch.arange(6).view(2, 3),
    torch.arange(6).view(2, 3).t(),
    torch.zeros(3, dtype=torch.bfloat16) + 1.5,
    torch.tensor(2.5),
    torch.zeros(0, 3),
    torch.rand(2, 3, 4, 4).to(memory_format=torch.channels_last),
    torch.ones(1).expand(5),
    torch.tensor([True, False]),
    torch.tensor([1 + 2j]),
    torch.tensor([1, 2], dtype=torch.int8),
    torch.rand(2, 2).half(),
    [torch.ones(2, 3), torch.tensor([1, 2])],
    {"a": torch.ones(1), 3: "x", (1, 2): None},
    Pair(1, torch.ones(2)),
    numpy.arange(5.0),
    numpy.array(["a", "bc"]),
    numpy.array(3),
    numpy.zeros((0, 2)),
    numpy.arange(6).reshape(2, 3).T.copy(),
    b"bytes",
    b"",
    ["s", 1, 2.5, -0.0, float("nan"), float("inf"), True, None],
    3 + 4j,
    numpy.float32(3),
    10**30,
    "",
    "\ud800",
    (),
    [],
    {},
    {1, 2},
    collections.OrderedDict(a=torch.ones(2)),
    [[[1]], ({"deep": (torch.ones(1),)},)],
]


def there_and_back(batch):
    description, buffers = tree.encode(batch)
    return untree.decode(description, memoryview(layout.joined(buffers)))


@pytest.mark.gate
@pytest.mark.parametrize("number", range(len(BATCHES)))
def test_round_trip(number):
    batch = BATCHES[number]
    for _ in range(2):  # the second time from what is kept of the first
        assert equal(there_and_back(batch), batch)


@pytest.mark.gate
def test_a_part_of_a_larger_tensor_crosses_alone():
    whole = torch.rand(1000, 1000)
    for part in (whole[::100], whole[:, 3], [whole[:, 3], whole[:, 500]], [whole[1], whole[900]]):
        description, buffers = tree.encode(part)
        assert sum(memoryview(buffer).nbytes for buffer in buffers) < 50_000
        assert equal(untree.decode(description, memoryview(layout.joined(buffers))), part)


@pytest.mark.gate
def test_tensors_are_views_of_the_payload():
    description, buffers = tree.encode([torch.ones(4), numpy.ones(4)])
    payload = layout.joined(buffers)
    tensor, array = untree.decode(description, memoryview(payload), apart=False)
    payload[0:4] = b"\0\0\0\0"
    payload[64:72] = bytes(8)
    assert tensor[0] == 0 and array[0] == 0


def test_values_that_look_alike_stay_apart():
    assert [there_and_back(value) for value in (1, True, 1.0, "1")] == [1, True, 1.0, "1"]
    assert [type(there_and_back(value)) for value in (1, True, 1.0, "1")] == [int, bool, float, str]


@pytest.mark.gate
@pytest.mark.parametrize("tensor", [torch.rand(3).to_sparse(), torch.ones(2, requires_grad=True)])
def test_unusual_tensors_are_pickled(tensor):
    back = there_and_back(tensor)
    assert back.layout == tensor.layout and back.requires_grad == tensor.requires_grad
    assert torch.equal(back.detach().to_dense(), tensor.detach().to_dense())


def test_what_is_small_beside_the_rest_is_apart_from_it():
    for batch in ([torch.ones(1 << 16), torch.ones(8)], [torch.ones(1 << 16), torch.ones(8), {1}]):
        description, buffers = tree.encode(batch)
        payload = layout.joined(buffers)
        images, labels = untree.decode(description, memoryview(payload))[:2]
        payload[:] = bytes(len(payload))
        assert images.sum() == 0 and labels.sum() == 8


def test_many_values_are_not_in_the_description():
    for batch in (
        list(range(100_000)),
        ["one long text " * 100_000],
        {str(n): n for n in range(5000)},
        [torch.ones(1)] * 5000,
        [torch.ones(1) for _ in range(5000)],
    ):
        description, _ = tree.encode(batch)
        assert len(description) < 200
        assert equal(there_and_back(batch), batch)


def test_what_is_kept_of_descriptions_is_bounded():
    for number in range(8000):
        there_and_back([number, "text" * 40])
    assert tree._descriptions.bytes <= 4 << 20 and untree._builders.bytes <= 4 << 20
    assert len(tree._descriptions._values) < 8000


@pytest.mark.gate
def test_a_tensor_with_a_history_is_refused_with_the_way_out():
    with pytest.raises(RuntimeError, match=r"call detach\(\) on it in the dataset or in collate_fn"):
        tree.encode([torch.ones(2, requires_grad=True) * 2])
