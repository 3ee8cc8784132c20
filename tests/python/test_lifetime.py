"""Loops that end early, several at once, memory, and the program's end: nothing leaks and nothing hangs."""

import gc
import os
import subprocess
import sys

import pytest
import taas
import torch
from conftest import DEADLINE_SECONDS, equal, loop, wait_until
from own_datasets import Big, Numbers, Slow, numbers
from torch.utils.data import DataLoader, IterableDataset


class Endless(IterableDataset):
    def __iter__(self):
        while True:
            yield torch.zeros(1 << 12)


def living(pids):
    """One that has ended, and that nobody has waited for, has no files."""
    return [pid for pid in pids if os.path.exists(f"/proc/{pid}/fd/0")]


def children(pids):
    return living(child for pid in pids for child in open(f"/proc/{pid}/task/{pid}/children").read().split())


@pytest.mark.gate
@pytest.mark.parametrize("dataset", [Slow(), Endless()])
def test_loops_left_early_are_closed(dataset, data_workers, capfd):
    run = data_workers(2)
    with taas.register(DataLoader(dataset, 8, num_workers=2)) as loader:
        for _ in range(20):
            for _ in loader:
                break
        iterators = [iter(loader) for _ in range(5)]
        for iterator in iterators:
            next(iterator)
        del iterators, iterator
        gc.collect()
        assert isinstance(dataset, Endless) or len(loop(loader)) == 13
        next(iter(loader))
        assert not children(run.pids())
    assert capfd.readouterr() == ("", "")


@pytest.mark.gate
def test_several_loops_at_once(data_workers):
    data_workers(2)
    plain = loop(DataLoader(numbers, 8))
    with (
        taas.register(DataLoader(numbers, 8)) as train,
        taas.register(DataLoader(Numbers(16), 4, num_workers=2)) as validation,
    ):
        for number, batch in enumerate(train):
            assert equal(batch, plain[number])
            if number % 4 == 0:
                assert equal(loop(validation), loop(DataLoader(Numbers(16), 4)))
        assert all(equal(one, other) for one, other in zip(train, train))


def test_all_batches_may_be_kept(data_workers):
    data_workers(1, buffer_bytes=32 << 20)
    with taas.register(DataLoader(Big(64), 8)) as loader:  # 8 MiB each
        assert equal(list(loader), list(DataLoader(Big(64), 8)))


@pytest.mark.gate
def test_memory_stays_in_the_budget_for_a_slow_consumer(data_workers):
    run = data_workers(1, buffer_bytes=32 << 20)
    with taas.register(DataLoader(Big(200), 4)) as loader:  # 50 batches of 4 MiB
        most = 0
        for number, _ in enumerate(loader):
            if number == 1:
                wait_until(lambda: run.client.statistics().waiting >= 3)
            most = max(most, run.client.statistics().buffered_bytes)
    assert 4 << 20 <= most <= 32 << 20


def test_plain_loaders_with_workers_beside_a_registered_one(data_workers):
    data_workers(1)
    with taas.register(DataLoader(numbers, 8)) as loader:
        iterator = iter(loader)
        next(iterator)
        assert equal(loop(DataLoader(numbers, 8, num_workers=2)), loop(DataLoader(numbers, 8)))
        assert len(list(iterator)) == 12


ENDINGS = {
    "in the middle of a loop": "next(iter(loader))",
    "with an iterator and a batch": "iterator = iter(loader); batch = next(iterator)",
    "after the loop": "list(loader)",
    "with an exception": "next(iter(loader)); raise SystemExit(0)",
    "in a thread": "import threading; thread = threading.Thread(target=lambda: list(loader)); "
    "thread.start(); thread.join()",
    "in a function": "def f():\n    for batch in loader: return batch\nkept = f()",
}


def output(program, tmp_path):
    """What it prints, where nothing goes wrong."""
    script = tmp_path / "program.py"
    script.write_text(program)
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=DEADLINE_SECONDS)
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


@pytest.mark.parametrize(
    "ending",
    [pytest.param(each, marks=pytest.mark.gate if each == "in the middle of a loop" else ()) for each in ENDINGS],
)
def test_programs_end(ending, data_workers, tmp_path):
    data_workers(1)
    assert not output(
        "import taas, torch\nfrom torch.utils.data import DataLoader, TensorDataset\n"
        "loader = taas.register(DataLoader(TensorDataset(torch.rand(1000, 4)), 8, num_workers=2))\n" + ENDINGS[ending],
        tmp_path,
    )


OWN_CLASSES = """
import collections, taas
from torch.utils.data import DataLoader, Dataset
Pair = collections.namedtuple("Pair", "one two")
class Odd:
    def __init__(self, value): self.value = value
class Data(Dataset):
    def __len__(self): return 10
    def __getitem__(self, index): return Pair(index, Odd(index))
batches = list(taas.register(DataLoader(Data(), 2, num_workers=1, collate_fn=lambda batch: batch)))
assert all(type(pair) is Pair and type(pair.two) is Odd and pair.two.value == pair.one
           for batch in batches for pair in batch)
print(len(batches))
"""


def test_classes_of_the_script_are_the_scripts_own(data_workers, tmp_path):
    data_workers(1)
    assert output(OWN_CLASSES, tmp_path) == "5\n"
