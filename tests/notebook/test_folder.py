"""Where a cell's files lie, and which are removed when a later cell begins; no kernel."""

import errno
import os
import select
import signal
import subprocess
import sys

import pytest
from taas.notebook.files import folder
from taas.notebook.variables.capture import Capture
from taas.notebook.variables.memory import Memory

NOBODYS_PROCESS = 1 << 22  # above the highest number that Linux gives
FOREIGN_USER = 65534
KERNEL = """
import sys
from taas.notebook.files import folder
from taas.notebook.variables.capture import Capture
from taas.notebook.variables.memory import Memory
folder._SHARED = sys.argv[1]
memory = Memory()
memory.place(bytes(100))
cell = folder.CellFolder()
cell.write("", Capture(memory=memory), {})
print(cell.path, cell._remover._shell.pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    """Temporary folder and shared memory of this test alone."""
    for name in ("tmp", "shm"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(folder.tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr(folder, "_SHARED", str(tmp_path / "shm"))
    return tmp_path / "tmp", tmp_path / "shm"


def with_memory():
    memory = Memory()
    memory.place(bytes(100))
    return Capture(memory=memory)


def written():
    cell = folder.CellFolder()
    cell.write("", with_memory(), {})
    return cell


def names(places):
    return [sorted(os.listdir(place)) for place in places]


def test_a_cell_leaves_nothing_behind(places):
    cell = written()
    assert os.path.dirname(cell.memory) == str(places[1]) and os.stat(cell.path).st_mode & 0o777 == 0o700
    cell.remove()
    assert names(places) == [[], []]


def test_a_running_cell_keeps_its_files_whatever_its_process_number_means_here(places, monkeypatch):
    """That of another machine or container is nobody's here, or somebody else's."""
    monkeypatch.setattr(folder.os, "getpid", lambda: NOBODYS_PROCESS)
    running = written()
    monkeypatch.undo()
    monkeypatch.setattr(folder.tempfile, "tempdir", str(places[0]))
    monkeypatch.setattr(folder, "_SHARED", str(places[1]))
    other = written()
    assert os.path.exists(running.cell) and os.path.exists(running.memory)
    other.remove()
    running.remove()
    assert names(places) == [[], []]


@pytest.fixture
def kernel(places):
    """A process with a cell, the cell's folder, and the remover's number."""
    process = subprocess.Popen([sys.executable, "-c", KERNEL, places[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               text=True)
    left, remover = process.stdout.readline().split()
    yield process, left, int(remover)
    process.kill()
    process.communicate()


def test_what_a_killed_kernel_has_left_goes_with_it(places, kernel):
    process, left, remover = kernel
    assert os.path.exists(left) and len(os.listdir(places[1])) == 1, "it lives"
    end = os.pidfd_open(remover)
    process.kill()
    assert select.select([end], [], [], 180)[0], "the remover has ended"
    os.close(end)
    assert names(places) == [[], []]


def test_the_remover_ends_with_the_cell_and_removes_nothing_of_others(places):
    (places[0] / "theirs").write_text("x")
    cell = written()
    end = os.pidfd_open(cell._remover._shell.pid)
    cell.remove()
    assert select.select([end], [], [], 180)[0]
    os.close(end)
    assert names(places) == [["theirs"], []]


def test_what_a_killed_kernel_has_left_goes_with_the_next_cell_where_the_remover_was_killed_too(places, kernel):
    process, left, remover = kernel
    written().remove()
    assert os.path.exists(left) and len(os.listdir(places[1])) == 1, "it lives"
    end = os.pidfd_open(remover)
    os.kill(remover, signal.SIGKILL)
    select.select([end], [], [])
    os.close(end)
    process.kill()
    process.communicate()
    assert [len(left) for left in names(places)] == [1, 1]
    written().remove()
    assert names(places) == [[], []]


@pytest.mark.parametrize("name", [f"taas-cell-{os.getuid()}-{NOBODYS_PROCESS}-x", "taas-cell.x"])
def test_what_belongs_to_others_stays_and_harms_no_cell(places, monkeypatch, name):
    (places[0] / name).write_text("theirs")
    (places[1] / name).mkdir()
    if os.getuid() == 0:
        for place in places:
            os.chown(place / name, FOREIGN_USER, FOREIGN_USER)
    else:
        monkeypatch.setattr(folder.os, "getuid", lambda: FOREIGN_USER)
    written().remove()
    assert names(places) == [[name], [name]]


def test_links_are_not_followed(places, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "work").write_text("x")
    (places[0] / "taas-cell.x").symlink_to(tmp_path / "mine")
    written().remove()
    assert (tmp_path / "mine" / "work").exists()


def test_storage_without_locks_is_not_swept(places, monkeypatch):
    def without_locks(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", without_locks)
    running, other = written(), written()
    assert os.path.exists(running.cell)
    other.remove()
    running.remove()
    assert names(places) == [[], []]
