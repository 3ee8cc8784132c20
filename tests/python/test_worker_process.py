"""To dataset code a data worker is the plain loader's worker: its rank's place, and the state of the rank's program."""

import json
import multiprocessing
import os
import subprocess
import sys
import time

import pytest
import taas
import torch
import torch.distributed as dist
from conftest import equal, loop
from process_datasets import OfItsRank, Sums, Tells, as_it_is, communicate, limits_of_pil, own_place, own_settings
from taas.sending import state
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils.data import DataLoader

PLACE = {
    "RANK": "3",
    "WORLD_SIZE": "8",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "2",
    "NODE_RANK": "1",
    "MASTER_ADDR": "here",
    "MASTER_PORT": "1234",
}


def registered(dataset, **options):
    return taas.register(DataLoader(dataset, 2, collate_fn=as_it_is, **options))


@pytest.fixture
def group():
    """This process is a rank of a group."""
    dist.init_process_group("fake", store=FakeStore(), rank=3, world_size=8)
    yield
    dist.destroy_process_group()


def is_rank(monkeypatch, rank):
    for name, value in {**PLACE, "RANK": str(rank)}.items():
        monkeypatch.setenv(name, value)


def test_a_worker_knows_its_ranks_place_and_refuses_to_communicate(data_workers, monkeypatch, group):
    data_workers(1, world_size=8)
    with registered(Tells(own_place)) as loader:
        assert loop(loader)[0] == [(0, own_place()), (1, own_place())]
        is_rank(monkeypatch, 3)
        assert loop(loader)[0] == [(0, own_place()), (1, own_place())]
    with registered(Tells(communicate)) as loader:
        with pytest.raises(RuntimeError, match="a data worker cannot communicate .* it works for rank 3 of 8"):
            loop(loader)


def test_an_iterable_dataset_shards_by_rank(data_workers, monkeypatch):
    data_workers(1, world_size=8)
    with registered(OfItsRank()) as loader:
        for rank in (5, 2):
            is_rank(monkeypatch, rank)
            assert loop(loader) == [[(rank, -1), (rank + 8, -1)], [(rank + 16, -1)]]


def test_what_the_program_sets_holds_in_workers_from_the_next_loop_on(data_workers, monkeypatch, tmp_path):
    data_workers(1)
    default, argv = torch.get_default_dtype(), list(sys.argv)
    with registered(Tells(own_settings)) as loader:
        first = loop(loader)
        assert equal(first[0][0][1], own_settings())
        monkeypatch.setenv("TAASTEST_SET", "by the script")
        monkeypatch.setenv("TZ", "Asia/Tokyo")
        monkeypatch.delenv("HOME", raising=False)
        monkeypatch.syspath_prepend(str(tmp_path))
        try:
            time.tzset()
            torch.set_default_dtype(torch.float64)
            sys.argv.append("--more")
            second = loop(loader)
            assert equal(second[0][0][1], own_settings()) and not equal(first, second)
        finally:
            torch.set_default_dtype(default)
            sys.argv[:] = argv
            monkeypatch.delenv("TZ")
            time.tzset()
        monkeypatch.chdir(tmp_path)
        assert equal(loop(loader)[0][0][1], own_settings())


MODULE = """
import os, sys
os.environ.setdefault("TAASTEST_HOME", "here")
sys.path.insert(0, "added")
"""


def added():
    import a_module_that_adds  # noqa: F401

    return os.environ["TAASTEST_HOME"], "added" in sys.path


@pytest.mark.parametrize("initialise", [None, lambda worker: added()])
def test_what_a_module_adds_when_it_is_imported_stays(initialise, data_workers, monkeypatch, tmp_path):
    """It is imported once, whichever loader or loop or logical worker is the first."""
    (tmp_path / "a_module_that_adds.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    data_workers(1)
    for number in range(2):
        with registered(Tells(added), num_workers=2, worker_init_fn=initialise) as loader:
            for _ in range(2):
                assert {told for batch in loop(loader) for _, told in batch} == {("here", True)}
                monkeypatch.setenv("TAASTEST_SET", str(number))


def test_the_limits_of_pil_are_the_programs(data_workers, monkeypatch):
    image, file = pytest.importorskip("PIL.Image"), pytest.importorskip("PIL.ImageFile")
    data_workers(1)
    with registered(Tells(limits_of_pil)) as loader:
        assert loop(loader)[0][0][1] == limits_of_pil()
        for limits in ((5, True), (None, False)):
            monkeypatch.setattr(image, "MAX_IMAGE_PIXELS", limits[0])
            monkeypatch.setattr(file, "LOAD_TRUNCATED_IMAGES", limits[1])
            assert loop(loader)[0][0][1] == limits


def test_a_folder_that_is_not_there_is_named():
    said, threads = [], torch.get_num_threads()
    wanted = {**json.loads(state.captured()), "folder": "/not/there"}
    try:
        state.State(lambda what, why: said.append((what, why))).enter(json.dumps(wanted).encode())
    finally:
        torch.set_num_threads(threads)
    assert said == [("the working directory", "[Errno 2] No such file or directory: '/not/there'")]


def test_torch_computes_with_as_many_threads_as_in_workers_of_the_plain_loader(data_workers):
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        data_workers(1)
        plain = loop(DataLoader(Sums(), 2, num_workers=1))
        with taas.register(DataLoader(Sums(), 2)) as loader:
            assert equal(loop(loader), plain)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)


def own_variables():
    return [os.environ.get(name) for name in ("TAASTEST_MACHINE", "TAASTEST_SET", "PATH")]


def test_a_started_worker_has_its_machines_variables_and_what_the_program_changes(data_workers, monkeypatch):
    """Other hashes of strings than the program's are told of."""
    for name, value in (("MACHINE", "its own"), ("SET", "the machine's")):
        monkeypatch.setenv(f"TAASTEST_{name}", value)
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    run = data_workers(1)
    run.replace(0, run.start_program)
    monkeypatch.delenv("TAASTEST_MACHINE")
    with registered(Tells(own_variables)) as loader:
        for changed in ("by the program", "again"):
            monkeypatch.setenv("TAASTEST_SET", changed)
            assert loop(loader)[0][0][1] == ["its own", changed, os.environ.get("PATH")]
            monkeypatch.delenv("PATH", raising=False)
    assert any("set PYTHONHASHSEED to the same number everywhere" in line for line in run.remarks())


def own_process():
    own = multiprocessing.current_process()
    return own.daemon, own.name, multiprocessing.parent_process(), sys.stdin.read()


def test_a_data_worker_is_a_process_of_its_own(data_workers):
    """It is nobody's daemonic child, so that dataset code may start processes."""
    data_workers(1)
    with registered(Tells(own_process)) as loader:
        assert loop(loader)[0][0][1] == (False, "MainProcess", None, "")


SCRIPT = """
import subprocess
import sys
import time
import taas, torch, which, __main__
from torch.utils.data import DataLoader, Dataset

class Own:
    pass

class Told(Dataset):
    def __len__(self):
        return 2
    def __getitem__(self, index):
        import which
        from late import WHERE
        return which.WHERE, WHERE, sys.argv, sys.modules["__main__"].__file__, sys.path[0], Own is not None

if __name__ == "__main__":
    made = lambda: DataLoader(Told(), 2, collate_fn=list, num_workers=1)
    plain = list(made())
    with taas.register(made()) as loader:
        assert list(loader) == plain, (list(loader), plain)
    print("equal")
"""


def test_modules_are_found_as_the_script_finds_them(data_workers, tmp_path):
    """Modules of the same name are in the folder that the script is started in."""
    (tmp_path / "scripts").mkdir()
    for folder, name in ((tmp_path, "the start folder"), (tmp_path / "scripts", "the script's folder")):
        (folder / "which.py").write_text(f"WHERE = {name!r}\n")
        (folder / "late.py").write_text(f"WHERE = {name!r}\n")
    (tmp_path / "scripts" / "train.py").write_text(SCRIPT)
    data_workers(1)
    done = subprocess.run(
        [sys.executable, "scripts/train.py", "--rate", "3"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout.strip() == "equal", done.stderr
