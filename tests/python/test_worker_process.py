"""To dataset code a data worker is the plain loader's worker: its rank's place, and the state of the rank's program."""

import json
import multiprocessing
import os
import sys
import time

import pytest
import taas
import torch
import torch.distributed as dist
from conftest import loop, printed
from process_datasets import Tells, as_it_is
from taas.sending import state
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils.data import DataLoader, IterableDataset

PLACE = {
    "RANK": "3",
    "WORLD_SIZE": "8",
    "LOCAL_RANK": "1",
    "LOCAL_WORLD_SIZE": "2",
    "NODE_RANK": "1",
    "MASTER_ADDR": "here",
    "MASTER_PORT": "1234",
    "SLURM_PROCID": "3",
}


def registered(dataset, **options):
    return taas.register(DataLoader(dataset, 2, collate_fn=as_it_is, **options))


@pytest.fixture
def group():
    """This process is a rank of a group."""
    dist.init_process_group("fake", store=FakeStore(), rank=3, world_size=8)
    yield
    dist.destroy_process_group()


def own_place():
    """What programs ask to find out which rank they are."""
    return dist.get_rank(), dist.get_world_size(), dist.get_backend(), [*map(os.environ.get, PLACE)]


def communicate():
    dist.all_reduce(torch.ones(1))


def test_a_worker_knows_its_ranks_place_and_refuses_to_communicate(data_workers, monkeypatch, group):
    data_workers(1, world_size=8)
    with registered(Tells(own_place)) as loader:
        assert loop(loader)[0] == [(0, own_place()), (1, own_place())]
        for name, value in PLACE.items():
            monkeypatch.setenv(name, value)
        assert loop(loader)[0] == [(0, own_place()), (1, own_place())]
    with registered(Tells(communicate)) as loader:
        with pytest.raises(RuntimeError, match="a data worker cannot communicate .* it works for rank 3 of 8"):
            loop(loader)


@pytest.fixture
def settings():
    """What a test sets is put back."""
    dtype, argv = torch.get_default_dtype(), list(sys.argv)
    yield
    torch.set_default_dtype(dtype)
    sys.argv[:] = argv
    os.environ.pop("TZ", None)
    time.tzset()


def own_settings():
    """What a program sets for its process, and data workers have."""
    variables = [os.environ.get(name) for name in ("TAASTEST_SET", "HOME")]
    return variables, time.localtime(0)[:5], os.getcwd(), list(sys.argv), sys.path[0], torch.get_default_dtype()


def test_what_the_program_sets_holds_in_workers_from_the_next_loop_on(data_workers, monkeypatch, tmp_path, settings):
    data_workers(1)
    with registered(Tells(own_settings)) as loader:
        first = own_settings()
        assert loop(loader)[0][0][1] == first
        monkeypatch.setenv("TAASTEST_SET", "by the script")
        monkeypatch.delenv("HOME", raising=False)
        monkeypatch.syspath_prepend(str(tmp_path))
        monkeypatch.chdir(tmp_path)
        os.environ["TZ"] = "Asia/Tokyo"
        time.tzset()
        torch.set_default_dtype(torch.float64)
        sys.argv.append("--more")
        assert loop(loader)[0][0][1] == own_settings()
        assert all(one != other for one, other in zip(own_settings(), first))


def added():
    import a_module_that_adds  # noqa: F401

    return os.environ["TAASTEST_HOME"], "added" in sys.path


@pytest.mark.parametrize("initialise", [None, lambda worker: added()])
def test_what_a_module_adds_when_it_is_imported_stays(initialise, data_workers, monkeypatch, tmp_path):
    """It is imported once, whichever loader or loop or logical worker is the first."""
    module = "import os, sys\nos.environ.setdefault('TAASTEST_HOME', 'here')\nsys.path.insert(0, 'added')\n"
    (tmp_path / "a_module_that_adds.py").write_text(module)
    monkeypatch.syspath_prepend(str(tmp_path))
    data_workers(1)
    for number in range(2):
        with registered(Tells(added), num_workers=2, worker_init_fn=initialise) as loader:
            for _ in range(2):
                assert {told for batch in loop(loader) for _, told in batch} == {("here", True)}
                monkeypatch.setenv("TAASTEST_SET", str(number))


def limits_of_pil():
    from PIL import Image, ImageFile

    return Image.MAX_IMAGE_PIXELS, ImageFile.LOAD_TRUNCATED_IMAGES


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
    return os.getpid(), own.daemon, own.name, multiprocessing.parent_process(), sys.stdin.read()


class Stream(IterableDataset):
    def __iter__(self):
        return map(Tells(own_process).__getitem__, range(6))


@pytest.mark.parametrize(
    "dataset, initialise", [(Tells(own_process), None), (Tells(own_process), id), (Stream(), None)]
)
def test_a_data_worker_is_one_process_of_its_own(dataset, initialise, data_workers):
    """It is nobody's daemonic child, so that dataset code may start processes."""
    run = data_workers(2)
    with registered(dataset, num_workers=3, worker_init_fn=initialise) as loader:
        told = {process for batch in loop(loader) for _, process in batch}
    assert {about[0] for about in told} <= set(run.pids())
    assert {about[1:] for about in told} == {(False, "MainProcess", None, "")}


SCRIPT = """
import sys, taas, which
from torch.utils.data import DataLoader, Dataset

class Told(Dataset):
    def __len__(self):
        return 2
    def __getitem__(self, index):
        from late import WHERE
        return which.WHERE, WHERE, sys.argv, sys.modules["__main__"].__file__, sys.path[0]

if __name__ == "__main__":
    loader = DataLoader(Told(), 2, collate_fn=list, num_workers=1)
    plain = list(loader)
    with taas.register(loader):
        print("equal" if list(loader) == plain else (list(loader), plain))
"""


def test_modules_are_found_as_the_script_finds_them(data_workers, tmp_path):
    """Modules of the same name are in the folder that the script is started in."""
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    for folder in (tmp_path, scripts):
        for name in ("which", "late"):
            (folder / f"{name}.py").write_text(f"WHERE = {str(folder)!r}\n")
    (scripts / "train.py").write_text(SCRIPT)
    data_workers(1)
    assert printed(sys.executable, "scripts/train.py", "--rate", "3", cwd=tmp_path) == "equal\n"
