"""The same on a real GPU: what test_device.py shows with a fake one. Skipped without one."""

import subprocess
import sys

import pytest
import taas
import torch
from conftest import equal, loop
from own_datasets import Big, Numbers, numbers
from taas.delivery import nested
from torch.utils.data import DataLoader

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU that PyTorch can use")
CYCLES = 20_000_000  # of a GPU, about 10 ms


def big(**options):
    return DataLoader(Big(60), 1, **options)  # 1 MiB each


class Nested(Numbers):
    def __getitem__(self, index):
        return {
            "pair": (torch.full((2,), float(index)), index),
            "name": f"sample {index}",
            "none": [index, (index, "x")],
        }


def on_cpu(batches):
    return [
        nested.mapped(batch, lambda leaf: leaf.cpu() if isinstance(leaf, torch.Tensor) else leaf) for batch in batches
    ]


@pytest.fixture(autouse=True)
def little_memory(data_workers):
    data_workers(1, buffer_bytes=16 << 20)
    torch.zeros(1, device="cuda")


def test_batches_are_pinned_and_are_those_of_the_plain_loader():
    with taas.register(big(pin_memory=True)) as loader:
        for batch, plain in zip(loader, big(), strict=True):
            assert batch.is_pinned() and equal(batch, plain)


@pytest.mark.parametrize("priority", [None, 0, -1])
def test_copies_that_are_not_waited_for_have_the_right_bytes(priority):
    stream = torch.cuda.default_stream() if priority is None else torch.cuda.Stream(priority=priority)
    there = []
    with taas.register(big(pin_memory=True)) as loader:
        for batch in loader:
            with torch.cuda.stream(stream):
                torch.cuda._sleep(CYCLES)
                there.append(batch.to("cuda", non_blocking=True))
    torch.cuda.synchronize()
    assert equal(on_cpu(there), loop(big()))


def test_a_graph_may_be_captured_in_the_loop():
    static, result = torch.zeros(1, 1 << 18, device="cuda"), []
    graph = torch.cuda.CUDAGraph()
    with taas.register(big(pin_memory=True)) as loader:
        for number, batch in enumerate(loader):
            static.copy_(batch, non_blocking=True)
            if number == 5:
                with torch.cuda.graph(graph):
                    del batch
                    doubled = static * 2
            if number >= 5:
                graph.replay()
                result.append(doubled.clone())
    assert equal(on_cpu(result), [batch * 2 for batch in loop(big())[5:]])


@pytest.mark.parametrize("count", [0, 2])
@pytest.mark.parametrize("make", [big, lambda: DataLoader(numbers, 8), lambda: DataLoader(Nested(), 8)])
def test_batches_on_the_gpu_are_those_of_the_plain_loader(data_workers, count, make):
    data_workers(count)
    plain = loop(make())
    with taas.register(make(), device="cuda") as loader:
        there = loop(loader)
    tensors = []
    for batch in there:
        nested.mapped(batch, lambda leaf: tensors.append(leaf) if isinstance(leaf, torch.Tensor) else leaf)
    assert tensors and all(tensor.is_cuda for tensor in tensors)
    assert equal(on_cpu(there), plain)


def test_the_loop_may_work_on_another_stream():
    torch.cuda._sleep(CYCLES)
    with torch.cuda.stream(torch.cuda.Stream()), taas.register(big(), device="cuda:0") as loader:
        sums = [batch.double().sum() for batch in loader]
    torch.cuda.synchronize()
    assert [value.item() for value in sums] == [batch.double().sum().item() for batch in loop(big())]


def test_registering_a_loader_initialises_nothing():
    program = """
import taas, torch
from torch.utils.data import DataLoader
loader = taas.register(DataLoader(list(range(8)), 2), device="cuda")
assert not torch.cuda.is_initialized()
assert [batch.tolist() for batch in loader] == [[0, 1], [2, 3], [4, 5], [6, 7]]
assert torch.cuda.is_initialized()
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)
