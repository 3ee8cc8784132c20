"""A batch in the rank is what the plain loader would hand out: type, layout, flags, attributes, values to the bit."""

import os

import numpy
import pytest
import taas
import torch
from batches import Generated, as_it_is, difference
from taas.batch import layout, tree, untree
from torch.utils.data import DataLoader

GENERATED = 10_000 if os.environ.get("TAAS_FULL") else 250
SEED = int(os.environ.get("TAAS_SEED", "1"))


def there_and_back(batch):
    description, buffers = tree.encode(batch)
    return untree.decode(description, memoryview(layout.joined(buffers)))


def test_generated_batches_are_those_of_the_plain_loader(data_workers):
    data_workers(2)
    make = lambda: DataLoader(Generated(SEED, GENERATED), None, collate_fn=as_it_is, num_workers=2)  # noqa: E731
    with taas.register(make()) as loader:
        for index, (registered, plain) in enumerate(zip(loader, make(), strict=True)):
            found = difference(plain, registered)
            assert not found, f"batch {index} of TAAS_SEED={SEED}: {found}"


def test_quantized_tensors_arrive_whole():
    """torch's own workers fail."""
    batch = [torch.quantize_per_tensor(torch.arange(4.0), 0.5, 1, torch.qint8), torch.ones(3)]
    assert not difference(batch, there_and_back(batch))


def test_types_of_other_libraries_keep_their_names():
    types = pytest.importorskip("ml_dtypes")
    for batch in (numpy.ones((2, 3), types.bfloat16), [numpy.ones(3, types.float8_e4m3fn).T]):
        assert not difference(batch, there_and_back(batch))
