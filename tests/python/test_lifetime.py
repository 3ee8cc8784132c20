"""Loops that end early, several at once, forks, memory, and the program's end: nothing leaks and nothing hangs."""

import gc
import os
import subprocess
import sys

import pytest
import taas
import torch
from conftest import DEADLINE_SECONDS, equal, loop, wait_until
from own_datasets import Big, Numbers, Slow, numbers
from taas.delivery import delivery
from taas.delivery.pool import Pool
from torch.utils.data import DataLoader


def children():
    path = f"/proc/self/task/{os.getpid()}/children"
    return open(path).read().split()


@pytest.mark.gate
def test_workers_go_with_the_last_loader():
    before = children()
    one, other = (taas.register(DataLoader(Numbers(), 8)) for _ in range(2))
    loop(one), loop(other)
    assert len(children()) == len(before) + 1, "loaders share the workers"
    taas.unregister(one)
    assert equal(loop(other), loop(DataLoader(numbers, 8)))
    taas.unregister(other)
    assert children() == before


def test_workers_go_with_a_loader_that_nobody_has():
    before = children()
    loader = taas.register(DataLoader(Numbers(), 8))
    loop(loader)
    del loader
    gc.collect()
    assert children() == before


@pytest.mark.gate
def test_loops_left_early_are_closed():
    with taas.register(DataLoader(Slow(), 8, num_workers=2)) as loader:
        client = None
        for _ in range(20):
            for _ in loader:
                break
            client = client or delivery._deliveries["fork"].client
        iterators = [iter(loader) for _ in range(5)]
        for iterator in iterators:
            next(iterator)
        del iterators, iterator
        gc.collect()
        assert len(loop(loader)) == 13


@pytest.mark.gate
def test_several_loops_at_once():
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


def test_all_batches_may_be_kept():
    with taas.register(DataLoader(Big(64), 8)) as loader:  # 8 MiB each
        assert equal(list(loader), list(DataLoader(Big(64), 8)))


@pytest.mark.gate
def test_memory_stays_in_the_budget_for_a_slow_consumer(monkeypatch):
    monkeypatch.setenv("TAAS_DATA_BUFFER_BYTES", str(32 << 20))
    with taas.register(DataLoader(Big(200), 4)) as loader:  # 50 batches of 4 MiB
        most = 0
        for number, _ in enumerate(loader):
            client = delivery._deliveries["fork"].client
            if number == 1:
                wait_until(lambda: client.statistics().waiting >= 3)
            most = max(most, client.statistics().buffered_bytes)
    assert 4 << 20 <= most <= 32 << 20


@pytest.mark.gate
def test_a_changed_dataset_is_seen_in_the_next_loop():
    dataset = Numbers()
    with taas.register(DataLoader(dataset, 8)) as loader:
        assert len(loop(loader)) == 13
        dataset.scale = 2
        dataset.__class__ = Changed
        assert equal(loop(loader)[0], torch.arange(8) * 2)


class Changed(Numbers):
    def __getitem__(self, index):
        return index * self.scale


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_persistent_workers_keep_the_dataset(method):
    dataset = Changed()
    dataset.scale = 1
    loader = DataLoader(dataset, 8, num_workers=1, persistent_workers=True, multiprocessing_context=method)
    with taas.register(loader):
        loop(loader)
        dataset.scale = 2
        assert equal(loop(loader)[0], torch.arange(8))


def test_plain_loaders_with_workers_beside_a_registered_one():
    with taas.register(DataLoader(numbers, 8)) as loader:
        iterator = iter(loader)
        next(iterator)
        assert equal(loop(DataLoader(numbers, 8, num_workers=2)), loop(DataLoader(numbers, 8)))
        assert len(list(iterator)) == 12


def test_a_fork_has_workers_of_its_own():
    with taas.register(DataLoader(numbers, 8)) as loader:
        iterator = iter(loader)
        next(iterator)
        pid = os.fork()
        if pid == 0:
            try:
                taas.unregister(loader)
                del iterator
                gc.collect()
                other = taas.register(DataLoader(numbers, 8))
                os._exit(0 if equal(loop(other), loop(DataLoader(numbers, 8))) else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
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


@pytest.mark.parametrize(
    "ending",
    [pytest.param(each, marks=pytest.mark.gate if each == "in the middle of a loop" else ()) for each in ENDINGS],
)
def test_programs_end(ending, tmp_path):
    script = tmp_path / "program.py"
    script.write_text(
        "import taas, torch\nfrom torch.utils.data import DataLoader, TensorDataset\n"
        "loader = taas.register(DataLoader(TensorDataset(torch.rand(1000, 4)), 8, num_workers=2))\n" + ENDINGS[ending]
    )
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=DEADLINE_SECONDS)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


@pytest.mark.gate
def test_workers_end_with_a_killed_program(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(
        "import os, taas, torch\nfrom torch.utils.data import DataLoader, TensorDataset\n"
        "from taas.delivery import delivery\n"
        "loader = taas.register(DataLoader(TensorDataset(torch.rand(1000, 4)), 8, num_workers=2))\nnext(iter(loader))\n"
        "print(*delivery._deliveries['fork'].pids(), flush=True)\nos.kill(os.getpid(), 9)"
    )
    ended = subprocess.run([sys.executable, script], stdout=subprocess.PIPE, text=True, timeout=DEADLINE_SECONDS)
    pids = ended.stdout.split()
    assert len(pids) == 2
    wait_until(
        lambda: not any(os.path.exists(f"/proc/{pid}") and "Z" not in open(f"/proc/{pid}/stat").read() for pid in pids)
    )


def test_classes_of_the_script_are_the_scripts_own(tmp_path):
    script = tmp_path / "program.py"
    script.write_text("""
import collections, taas, torch
from torch.utils.data import DataLoader, Dataset
Pair = collections.namedtuple("Pair", "one two")
class Odd:
    def __init__(self, value): self.value = value
class Data(Dataset):
    def __len__(self): return 10
    def __getitem__(self, index): return Pair(index, Odd(index))
if __name__ == "__main__":
    for method in ("fork", "spawn"):
        loader = DataLoader(Data(), 2, num_workers=1, multiprocessing_context=method, collate_fn=lambda batch: batch)
        with taas.register(loader):
            batches = list(loader)
        assert all(type(pair) is Pair and type(pair.two) is Odd and pair.two.value == pair.one
                   for batch in batches for pair in batch)
        print(len(batches))
""")
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=DEADLINE_SECONDS)
    assert ended.stdout.split() == ["5", "5"], ended.stderr


@pytest.mark.parametrize("way", ["link", "folder"])
def test_what_has_taken_the_place_of_the_workers_folder_stays(tmp_path, way):
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "model.pt").write_text("weeks of work")
    pool = Pool()
    with open(os.path.join(pool.folder, "plan.json"), "w") as file:
        file.write("{}")
    os.rename(pool.folder, tmp_path / "moved")
    os.symlink(tmp_path / "victim", pool.folder) if way == "link" else os.rename(tmp_path / "victim", pool.folder)
    pool.close()
    with open(os.path.join(pool.folder, "model.pt")) as file:
        assert file.read() == "weeks of work"
    assert os.listdir(tmp_path / "moved") == []
    os.unlink(pool.folder) if way == "link" else os.rename(pool.folder, tmp_path / "victim")
