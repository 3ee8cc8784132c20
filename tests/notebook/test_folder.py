"""Where a cell's files lie, and which are removed when a later cell begins; no kernel."""

import errno
import os
import signal
import subprocess
import sys

import pytest
from taas.notebook.files import folder
from taas.notebook.files.log_end import last_lines
from taas.notebook.files.private_files import sort_private_files
from taas.notebook.variables.capture import Capture
from taas.notebook.variables.memory import Memory, mapped
from taas.runtime import own_files
from waiting import is_gone, next_line, wait_until

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
    process = subprocess.Popen(
        [sys.executable, "-c", KERNEL, places[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    left, remover = next_line(process.stdout).split()
    yield process, left, int(remover)
    process.kill()
    process.communicate()


def test_what_a_killed_kernel_has_left_goes_with_it(places, kernel):
    process, left, remover = kernel
    assert os.path.exists(left) and len(os.listdir(places[1])) == 1, "it lives"
    process.kill()
    wait_until(lambda: is_gone(remover), "the remover has ended")
    assert names(places) == [[], []]


def test_the_remover_ends_with_the_cell_and_removes_nothing_of_others(places):
    (places[0] / "theirs").write_text("x")
    cell = written()
    remover = cell._remover._shell.pid
    cell.remove()
    wait_until(lambda: is_gone(remover), "the remover has ended")
    assert names(places) == [["theirs"], []]


def test_what_a_killed_kernel_has_left_goes_with_the_next_cell_where_the_remover_was_killed_too(places, kernel):
    process, left, remover = kernel
    written().remove()
    assert os.path.exists(left) and len(os.listdir(places[1])) == 1, "it lives"
    os.kill(remover, signal.SIGKILL)
    wait_until(lambda: is_gone(remover), "the remover has ended")
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


# --- what ranks, who know the paths, may have put in the place of the files ---


@pytest.fixture
def victim(tmp_path):
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "model.pt").write_text("weeks of work")
    yield tmp_path / "victim"
    assert (tmp_path / "victim" / "model.pt").read_text() == "weeks of work"


@pytest.mark.parametrize("way", ["link", "folder"])
def test_what_has_taken_the_place_of_a_cells_folder_stays(places, tmp_path, victim, way):
    cell = written()
    os.rename(cell.path, tmp_path / "moved")
    if way == "link":
        os.symlink(victim, cell.path)
        cell.remove()
    else:
        os.rename(victim, cell.path)
        cell.remove()
        os.rename(cell.path, victim)
    assert os.listdir(tmp_path / "moved") == [], "what was the cell's own is gone"


@pytest.mark.parametrize("way", ["link", "folder"])
def test_what_has_taken_the_place_of_a_killed_kernels_files_stays(places, tmp_path, victim, kernel, way):
    process, left, remover = kernel
    (memory,) = places[1].iterdir()
    os.rename(left, tmp_path / "moved")
    os.symlink(victim, left) if way == "link" else os.rename(victim, left)
    memory.unlink()
    (tmp_path / "model.pt").write_text("weeks of work")
    os.rename(tmp_path / "model.pt", memory)
    process.kill()
    wait_until(lambda: is_gone(remover), "the remover has ended")
    if way == "folder":
        os.rename(left, victim)
    assert memory.read_text() == "weeks of work"


def test_what_has_taken_the_place_of_a_cells_memory_stays(places):
    cell = written()
    (memory,) = places[1].iterdir()
    memory.unlink()
    memory.write_text("weeks of work")
    cell.remove()
    assert memory.read_text() == "weeks of work"


def test_however_deep_folders_are_a_cell_ends(places):
    cell = written()
    end_of_stack = sys.getrecursionlimit()
    within = os.open(cell.path, os.O_RDONLY)
    for _ in range(end_of_stack):
        os.mkdir("d", dir_fd=within)
        inner = os.open("d", os.O_RDONLY, dir_fd=within)
        os.close(within)
        within = inner
    os.close(within)
    cell.remove()
    assert not os.path.exists(cell.cell)
    subprocess.run(["rm", "-rf", cell.path], check=True)


def test_what_links_in_a_cells_folder_lead_to_stays(places, victim):
    cell = written()
    os.symlink(victim, os.path.join(cell.path, "inner"))
    os.link(victim / "model.pt", os.path.join(cell.path, "name"))
    cell.remove()
    assert names(places) == [[], []]


def test_only_files_of_ranks_themselves_are_sorted(tmp_path, victim):
    """Rank 1 has replaced its project by a link, rank 2 its whole folder, and rank 3 has one below its own."""
    private, project = tmp_path / "run" / "private", tmp_path / "project"
    project.mkdir()
    (project / "model.pt").write_text("of rank 0")
    (victim / "project").mkdir()
    (victim / "project" / "model.pt").write_text("weeks of work")
    for rank in (1, 3):
        (private / f"rank-000{rank}").mkdir(parents=True)
    (private / "rank-0001" / "project").symlink_to(victim)
    (private / "rank-0002").symlink_to(victim)
    (private / "rank-0003" / "project").mkdir()
    (private / "rank-0003" / "project" / "model.pt").write_text("of rank 3")
    (private / "rank-0003" / "project" / "linked").symlink_to(victim)
    (private / "rank-other").mkdir()
    lines = sort_private_files(str(tmp_path / "run"), str(project), 0.0)
    assert lines == ["rank 3 wrote model.pt, too: only what rank 0 wrote was kept"]
    assert (victim / "project" / "model.pt").read_text() == "weeks of work"
    (private / "rank-0003" / "project" / "linked").unlink()
    (victim / "project" / "model.pt").unlink()
    (victim / "project").rmdir()


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_a_log_that_is_no_file_of_its_own_is_not_read(tmp_path, victim, kind):
    log = tmp_path / "rank-0000.out"
    os.mkfifo(log) if kind == "pipe" else log.symlink_to(victim / "model.pt")
    with pytest.raises(OSError):
        last_lines(log, 10)


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_pulled_variables_that_are_no_file_of_their_own_are_not_read(tmp_path, victim, kind):
    pulled = tmp_path / "pulled"
    os.mkfifo(pulled) if kind == "pipe" else pulled.symlink_to(victim / "model.pt")
    with pytest.raises(OSError):
        mapped(str(pulled))


def test_a_new_file_is_not_written_through_a_link(tmp_path, victim):
    (tmp_path / "pulled").symlink_to(victim / "model.pt")
    with own_files.new_file(str(tmp_path / "pulled")) as file:
        file.write(b"x")
    assert not (tmp_path / "pulled").is_symlink()
