"""A batch is in the rank what the plain loader would have handed out: type, layout, flags, attributes, values to the bit."""

import os

import numpy
import pytest
import taas
from batches import Generated, Generator, as_it_is, difference
from taas.batch import layout, tree, untree
from torch.utils.data import DataLoader

GENERATED = 10_000 if os.environ.get("TAAS_FULL") else 250
SEED = int(os.environ.get("TAAS_SEED", "1"))


def there_and_back(batch, exact=True):
    description, buffers = tree.encode(batch, exact)
    return untree.decode(description, memoryview(layout.joined(buffers)))


@pytest.mark.parametrize("workers", [0, 2])
def test_generated_batches_are_those_of_the_plain_loader(workers, monkeypatch):
    monkeypatch.setenv("TAAS_DATA_WORKERS", "2")
    make = lambda: DataLoader(Generated(SEED, GENERATED), None, collate_fn=as_it_is, num_workers=workers)  # noqa: E731
    with taas.register(make()) as loader:
        for index, (registered, plain) in enumerate(zip(loader, make(), strict=True)):
            found = difference(plain, registered)
            assert not found, f"batch {index} of TAAS_SEED={SEED}: {found}"


def test_generated_batches_keep_all():
    Generator.quantised = True
    for index in range(3 * GENERATED):
        batch = Generator((SEED + 1) * 1_000_003 + index).batch()
        found = difference(batch, there_and_back(batch))
        assert not found, f"batch {index} of TAAS_SEED={SEED}: {found}"
    Generator.quantised = False


def test_types_of_other_libraries_keep_their_names():
    types = pytest.importorskip("ml_dtypes")
    for batch in (numpy.ones((2, 3), types.bfloat16), [numpy.ones(3, types.float8_e4m3fn).T]):
        assert not difference(batch, there_and_back(batch, False))
