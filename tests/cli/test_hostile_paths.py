"""What ranks put in the place of what the launcher made: a link, a pipe, another name of a file.

Nothing of it is followed, written to, waited for or removed. The victim is a folder of the test's own, and ranks are an
ordinary user's.
"""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

import pytest
from conftest import TAAS_RUN, Launcher
from waiting import DEADLINE_SECONDS, next_line

ORDINARY_USER = 54321
WORK = "weeks of work"


class HostileLauncher(Launcher):
    """Below a folder that an ordinary user may enter and write, who runs the launcher where the tests are root's."""

    def __init__(self, folder: pathlib.Path):
        super().__init__(folder)
        self.victim = folder / "victim"
        self.victim.mkdir()
        (self.victim / "notes").write_text(WORK)
        self.environment["VICTIM"] = str(self.victim)
        self.user = {"user": ORDINARY_USER, "group": ORDINARY_USER, "extra_groups": []} if os.getuid() == 0 else {}
        if self.user and subprocess.run([TAAS_RUN, "--version"], capture_output=True, **self.user).returncode != 0:
            self.user = {}  # the build lies where only root may enter

    def start(self, *arguments, **options):
        if self.user:
            for path in (self.folder, *self.folder.rglob("*")):
                os.chown(path, ORDINARY_USER, ORDINARY_USER, follow_symlinks=False)
        return super().start(*arguments, **self.user, **options)

    def shell(self, ranks: int, text: str, *flags, **options):
        """Each rank runs the text; $run is the run's folder, $generation the number of the start."""
        begin = 'run=$(dirname "$TAAS_OUTPUT_DIR"); generation=$TORCHELASTIC_RESTART_COUNT\n'
        return self.run("--nproc-per-node", ranks, *flags, "--no-python", "/bin/sh", "-c", begin + text, **options)

    def assert_victim_is_whole(self):
        assert {path.name: path.read_text() for path in self.victim.iterdir()} == {"notes": WORK}


@pytest.fixture
def hostile():
    launcher = HostileLauncher(pathlib.Path(tempfile.mkdtemp(prefix="taas-hostile-")))
    yield launcher
    launcher.end_all()
    shutil.rmtree(launcher.folder)


@pytest.mark.parametrize("ends", [pytest.param(0, marks=pytest.mark.gate), 3])
def test_files_behind_a_link_in_the_place_of_the_output_folder_are_not_touched(hostile, ends):
    """They were moved into output/, and the run was a success."""
    result = hostile.shell(1, f'rm -rf "$TAAS_OUTPUT_DIR"; ln -s "$VICTIM" "$TAAS_OUTPUT_DIR"; exit {ends}')
    assert result.returncode == (ends or 1), result.stderr
    assert (
        f".staging is a symbolic link to {hostile.victim}: nothing is published from there, and what is in it stays"
        in result.stderr
    )
    assert list((hostile.folder / "taas-runs/latest/output").iterdir()) == []
    hostile.assert_victim_is_whole()


@pytest.mark.gate
def test_files_behind_a_link_in_the_output_folder_are_not_touched(hostile):
    """A link is published as a link; a folder that turns into one is not entered."""
    text = (
        'mkdir "$TAAS_OUTPUT_DIR/sub"; echo text > "$TAAS_OUTPUT_DIR/sub/file"; mv "$TAAS_OUTPUT_DIR/sub" away; '
        'ln -s "$VICTIM" "$TAAS_OUTPUT_DIR/sub"'
    )
    result = hostile.shell(1, text)
    assert result.returncode == 0, result.stderr
    hostile.assert_victim_is_whole()
    assert (hostile.folder / "taas-runs/latest/output/sub").readlink() == hostile.victim


@pytest.mark.gate
def test_an_output_folder_that_a_program_makes_anew_is_as_good_as_the_first(hostile):
    result = hostile.shell(
        1, 'rm -rf "$TAAS_OUTPUT_DIR"; mkdir "$TAAS_OUTPUT_DIR"; echo text > "$TAAS_OUTPUT_DIR/file"'
    )
    assert result.returncode == 0, result.stderr
    assert (hostile.folder / "taas-runs/latest/output/file").read_text() == "text\n"


@pytest.mark.gate
def test_the_next_generations_folder_is_not_made_elsewhere(hostile):
    result = hostile.shell(
        1, '[ "$generation" = 1 ] && exit 0\nln -s "$VICTIM" "$run/generation-1"\nexit 3\n', "--max-restarts", 1
    )
    assert result.returncode == 0, result.stderr
    assert f"generation-1 is a symbolic link to {hostile.victim}; training goes on without files there" in result.stderr
    hostile.assert_victim_is_whole()


@pytest.mark.parametrize(
    "plant, found",
    [
        pytest.param('ln -s "$VICTIM/notes" "$log"', "is a symbolic link to ", marks=pytest.mark.gate),
        pytest.param(
            'ln "$VICTIM/notes" "$log"', "is a file with 2 names, and may be anybody's", marks=pytest.mark.gate
        ),
        ('mkfifo "$log"', "is a named pipe"),
        ('mkdir "$log"', "is a folder"),
    ],
)
def test_a_log_file_is_written_to_no_other_file(hostile, plant, found):
    text = f"""[ "$generation" = 1 ] && echo hello && exit 0
        mkdir "$run/generation-1"; log=$run/generation-1/rank-0000.out; {plant}; exit 3"""
    result = hostile.shell(1, text, "--max-restarts", 1)
    assert result.returncode == 0, result.stderr
    assert result.stdout == "hello\n"
    assert "generation-1/rank-0000.out " + found in result.stderr
    hostile.assert_victim_is_whole()


def test_log_files_below_log_dir_are_written_to_no_other_file(hostile):
    text = """[ "$generation" = 1 ] && echo hello && exit 0
        ln -s "$VICTIM" "$(echo logs/*)/attempt_1"; exit 3"""
    result = hostile.shell(1, text, "--max-restarts", 1, "--log-dir", "logs")
    assert result.returncode == 0, result.stderr
    assert f"attempt_1 is a symbolic link to {hostile.victim}" in result.stderr
    hostile.assert_victim_is_whole()


@pytest.mark.gate
def test_the_users_own_links_are_followed(hostile):
    (hostile.folder / "storage").mkdir()
    for name in ("taas-runs", "logs"):
        (hostile.folder / "storage" / name).mkdir()
        (hostile.folder / name).symlink_to(hostile.folder / "storage" / name)
    result = hostile.shell(1, 'echo hello; echo text > "$TAAS_OUTPUT_DIR/file"', "--log-dir", "logs")
    assert result.returncode == 0, result.stderr
    assert [path.read_text() for path in (hostile.folder / "storage/logs").rglob("stdout.log")] == ["hello\n"]
    assert (hostile.folder / "storage/taas-runs/latest/output/file").read_text() == "text\n"


@pytest.mark.gate
def test_no_evidence_is_read_from_elsewhere(hostile):
    """The rank's folder leads to one that has an error file of somebody else."""
    other = hostile.folder / "other"
    other.mkdir()
    (other / "rank-0000.error.json").write_text(json.dumps({"message": {"message": "SecretError: of another run"}}))
    result = hostile.shell(1, 'mv "$run/generation-0" "$run/away"; ln -s "$PWD/other" "$run/generation-0"; exit 3')
    assert result.returncode == 3
    assert "SecretError" not in result.stderr


@pytest.mark.parametrize(
    "plant",
    [
        'ln -s "$VICTIM/new" "$file"',
        pytest.param('ln -s "$VICTIM/notes" "$file"', marks=pytest.mark.gate),
        'mkfifo "$file"',
    ],
)
def test_the_wish_to_stop_is_told_whatever_has_the_files_name(hostile, plant):
    text = f"""file=$TAAS_STOP_REQUESTED; {plant}
        trap '[ -f "$file" ] && [ ! -L "$file" ] && echo told; exit 0' TERM
        echo ready; while :; do sleep 0.1; done"""
    process = hostile.start("--nproc-per-node", 1, "--no-python", "/bin/sh", "-c", text)
    assert next_line(process.stdout) == "ready\n"
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=DEADLINE_SECONDS)
    assert out == "told\n", err
    hostile.assert_victim_is_whole()


@pytest.mark.gate
def test_private_files_that_are_not_a_ranks_own_stay(hostile):
    (hostile.victim / "notes").write_text(WORK)
    text = '''if [ "$RANK" = 0 ]; then echo mine > "$TAAS_OUTPUT_DIR/notes"; exit 0; fi
        rmdir "$TAAS_OUTPUT_DIR"; ln -s "$VICTIM" "$TAAS_OUTPUT_DIR"'''
    result = hostile.shell(2, text, "--rank-output", "private")
    assert result.returncode == 0, result.stderr
    assert (
        f"private/rank-0001/output is a symbolic link to {hostile.victim}: what is there was left alone"
        in result.stderr
    )
    hostile.assert_victim_is_whole()


def test_private_folders_are_not_made_elsewhere(hostile):
    text = """[ "$RANK" = 1 ] && exit 0
        [ "$generation" = 1 ] && exit 0
        until rmdir "$run/private/rank-0001/output"; do sleep 0.1; done
        rmdir "$run/private/rank-0001"; ln -s "$VICTIM" "$run/private/rank-0001"; exit 3"""
    result = hostile.shell(2, text, "--rank-output", "private", "--max-restarts", 1)
    assert result.returncode == 0, result.stderr
    assert f"private/rank-0001 is a symbolic link to {hostile.victim}" in result.stderr
    hostile.assert_victim_is_whole()


@pytest.mark.gate
def test_the_launchers_own_error_file_is_no_other_file(hostile):
    """As a rank of another launcher has it."""
    (hostile.folder / "error.json").write_text("")
    result = hostile.shell(
        1,
        'rm error.json; ln -s "$VICTIM/notes" error.json; exit 3',
        env={"TORCHELASTIC_ERROR_FILE": str(hostile.folder / "error.json")},
    )
    assert result.returncode == 3
    assert "error.json is not written: a symbolic link has taken its place" in result.stderr
    hostile.assert_victim_is_whole()


@pytest.mark.parametrize("target", [pytest.param("real.json", marks=pytest.mark.gate), "/dev/null"])
def test_the_launchers_own_error_file_may_be_a_link_of_the_users(hostile, target):
    (hostile.folder / "real.json").write_text("older, and longer than what is written in its place: " + "x" * 10000)
    (hostile.folder / "error.json").symlink_to(target)
    result = hostile.shell(1, "exit 3", env={"TORCHELASTIC_ERROR_FILE": str(hostile.folder / "error.json")})
    assert result.returncode == 3
    assert "error.json" not in result.stderr
    if target == "real.json":
        assert json.loads((hostile.folder / target).read_text())["message"]["errorCode"] == 3


@pytest.mark.gate
def test_what_has_taken_the_place_of_the_timers_pipe_stays(hostile):
    pipe = hostile.folder / "timers"
    result = hostile.shell(
        1,
        f'rm "{pipe}"; echo mine > "{pipe}"',
        env={"TORCHELASTIC_ENABLE_FILE_TIMER": "1", "TORCHELASTIC_TIMER_FILE": str(pipe)},
    )
    assert result.returncode == 0, result.stderr
    assert pipe.read_text() == "mine\n"


@pytest.mark.gate
def test_the_run_goes_on_below_the_folder_that_it_began_with(hostile):
    """A rank moves the run's folder away and puts another one there: what follows goes where the run's files are."""
    text = """[ "$generation" = 1 ] && echo hello && exit 0
        mv "$run" moved; ln -s "$VICTIM" "$run"; exit 3"""
    result = hostile.shell(1, text, "--max-restarts", 1)
    assert (hostile.folder / "moved/generation-1/rank-0000.out").exists(), result.stderr
    assert '"generation":1' in (hostile.folder / "moved/journal.jsonl").read_text()
    assert not (hostile.victim / "generation-1").exists()
    assert (hostile.victim / "notes").read_text() == WORK
