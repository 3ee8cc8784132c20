"""What the console shows, what the files hold, and how output reaches its final name."""

import json
import os

import pytest
from conftest import TAAS_RUN


def published(launcher):
    return launcher.run_folder() / "output"


@pytest.mark.gate
def test_console_shows_rank_0_and_files_hold_all(launcher):
    script = launcher.python(
        "import os, sys\n"
        "print('hello from', os.environ['RANK'])\n"
        "print('trouble in', os.environ['RANK'], file=sys.stderr)\n"
    )
    result = launcher.run("--nproc-per-node", 3, script)
    assert result.stdout == "hello from 0\n"
    assert "trouble in 0" in result.stderr and "trouble in 1" not in result.stderr
    for rank in range(3):
        assert (launcher.run_folder() / f"generation-0/rank-{rank:04}.out").read_text() == f"hello from {rank}\n"
        assert (launcher.run_folder() / f"generation-0/rank-{rank:04}.err").read_text() == f"trouble in {rank}\n"


EXACT = {
    "no newline at the end": b"begin\nend",
    "a line of more than 64 KiB": b"x" * 70_000 + b"\ny\n",
    "a JSON document in one line": b'{"a": [' + b"1, " * 100_000 + b"1]}",
    "ends of lines of Windows": b"a\r\nb\r\n\r\n",
    "a bar that is drawn over": b"\r 1%\r 2%\r   \rdone\n",
    "nothing but returns": b"\r\r\r",
    "no text at all": bytes(range(256)) * 300,
}


@pytest.mark.parametrize(
    "what", [pytest.param(what, marks=pytest.mark.gate) if what == "no text at all" else what for what in EXACT]
)
def test_rank_0_writes_into_pipes_what_it_would_write_alone(launcher, what):
    (launcher.folder / "bytes").write_bytes(EXACT[what])
    with open(launcher.folder / "out", "wb") as out, open(launcher.folder / "err", "wb") as err:
        script = launcher.python(
            "import sys\n"
            "data = open('bytes', 'rb').read()\n"
            "for stream in sys.stdout, sys.stderr:\n"
            "    stream.buffer.write(data)\n"
            "    stream.flush()\n"
        )
        assert launcher.run("--nproc-per-node", 2, "--quiet", script, stdout=out, stderr=err).returncode == 0
    assert (launcher.folder / "out").read_bytes() == EXACT[what]
    assert (launcher.folder / "err").read_bytes() == EXACT[what]


@pytest.mark.gate
def test_launcher_speaks_on_a_line_of_its_own(launcher):
    script = launcher.python("import sys\nprint('half a line', end='')\nsys.stdout.flush()\nsys.exit(3)\n")
    with open(launcher.folder / "both", "w") as both:
        assert launcher.run("--nproc-per-node", 1, script, stdout=both, stderr=both).returncode == 3
    said = (launcher.folder / "both").read_text().splitlines()
    assert "half a line" in said, "and nothing behind it"


@pytest.mark.gate
def test_progress_bar_ends_in_its_last_state(launcher):
    script = launcher.python(
        "import sys\nfor i in range(101):\n    sys.stdout.write(f'\\r{i}%')\nsys.stdout.write('\\ndone\\n')\n"
    )
    result = launcher.run("--nproc-per-node", 2, "-t", 3, script)
    lines = result.stdout.splitlines()
    first_done = next(place for place, line in enumerate(lines) if line.endswith("done"))
    assert lines[-1].endswith("done") and "100%" in lines[first_done - 1]
    assert "\r" not in result.stdout


@pytest.mark.gate
def test_a_run_that_a_rank_starts_is_not_the_latest(launcher):
    script = launcher.python("import subprocess, sys\nsubprocess.run(sys.argv[1:], check=True)\n")
    result = launcher.run("--rdzv-id", "outer", script, TAAS_RUN, "--rdzv-id", "inner", "--no-python", "/bin/true")
    assert result.returncode == 0, result.stderr
    assert os.readlink(launcher.folder / "taas-runs/latest") == "outer"
    assert (launcher.folder / "taas-runs/inner/journal.jsonl").exists()


@pytest.mark.gate
def test_json_is_one_object_a_line(launcher):
    result = launcher.run("--nproc-per-node", 2, "--json", *launcher.ranks("0=print:hello", "1=after:0:3"))
    assert result.returncode == 3
    objects = [json.loads(line) for line in result.stdout.splitlines()]
    assert any(o.get("text") == "hello" for o in objects)
    assert any(o.get("event") == "rank_exited" and o.get("rank") == 1 for o in objects)


@pytest.mark.gate
def test_quiet_says_nothing_of_its_own(launcher):
    result = launcher.run("--nproc-per-node", 2, "--quiet", *launcher.ranks("0=print:hello", "*=exit:0"))
    assert (result.stdout, result.stderr) == ("hello\n", "")


@pytest.mark.gate
def test_journal_tells_the_run(launcher):
    launcher.run("--nproc-per-node", 2, *launcher.ranks("1=exit:6"))
    lines = [json.loads(line) for line in (launcher.run_folder() / "journal.jsonl").read_text().splitlines()]
    names = [line.get("event") or line.get("action") for line in lines]
    for name in ("run_started", "rank_spawned", "rank_exited", "finish"):
        assert name in names, names


@pytest.mark.gate
def test_half_written_file_never_shows(launcher):
    script = launcher.python(
        "import os, signal, time\n"
        "folder = os.environ['TAAS_OUTPUT_DIR']\n"
        "open(folder + '/whole.bin', 'wb').write(b'w' * 1000)\n"
        "half = open(folder + '/half.bin', 'wb', buffering=0)\n"
        "half.write(b'h' * 1000)\n"
        "while not os.path.exists(folder + '/../output/whole.bin'): time.sleep(0.01)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    result = launcher.run("--nproc-per-node", 1, script)
    assert result.returncode == 137
    assert [path.name for path in published(launcher).iterdir()] == ["whole.bin"]
    assert "half.bin" in result.stderr


@pytest.mark.parametrize(
    "folder, reason", [pytest.param("file", "not a", marks=pytest.mark.gate), ("missing/../file/x", "not a")]
)
def test_unusable_output_folder_is_named(launcher, folder, reason):
    (launcher.folder / "file").write_text("")
    result = launcher.run("--output", folder, *launcher.ranks("*=exit:0"))
    assert result.returncode == 2
    assert "file" in result.stderr and reason in result.stderr.lower()


@pytest.mark.gate
def test_read_only_output_folder_is_named(launcher):
    if os.geteuid() == 0:
        folder = "/proc/taas"  # no permission stops root, but no folder can be made here
    else:
        (launcher.folder / "sealed").mkdir(mode=0o500)
        folder = "sealed"
    result = launcher.run("--output", folder, *launcher.ranks("*=exit:0"))
    assert result.returncode == 2
    assert folder in result.stderr


@pytest.mark.gate
def test_protected_folder_is_writable_for_rank_0_only(launcher):
    (launcher.folder / "project").mkdir()
    script = launcher.python(
        "import os, sys, time\nrank = os.environ['RANK']\nopen('project/from-' + rank, 'w').write('x')\n"
    )
    result = launcher.run("--nproc-per-node", 2, "--protect", "project", script)
    if "Landlock" in result.stderr and "not supported" in result.stderr:
        pytest.skip("this kernel has no Landlock")
    assert result.returncode == 1
    assert not (launcher.folder / "project/from-1").exists()
    assert "PermissionError" in result.stderr
    assert "--protect" in result.stderr, "one line explains why"


def test_output_beside_a_protected_folder_is_writable_in_the_first_run_too(launcher):
    (launcher.folder / "project").mkdir()
    script = launcher.python(
        "import os\nopen(os.environ['TAAS_OUTPUT_DIR'] + '/from-' + os.environ['RANK'], 'w').write('x')\n"
    )
    result = launcher.run("--nproc-per-node", 2, "--protect", "project", script)
    if "no Landlock" in result.stderr:
        pytest.skip("this kernel has no Landlock")
    assert result.returncode == 0, result.stderr
    assert sorted(path.name for path in published(launcher).iterdir()) == ["from-0", "from-1"]


@pytest.mark.gate
def test_missing_protected_folder_is_named(launcher):
    result = launcher.run("--protect", "nowhere", *launcher.ranks("*=exit:0"))
    assert result.returncode == 2 and "nowhere" in result.stderr


@pytest.mark.parametrize("arguments", [pytest.param(["--quiet"], marks=pytest.mark.gate), ["--json"], ["--dry-run"]])
def test_console_output_that_is_lost_is_no_success(launcher, arguments):
    with open("/dev/full", "w") as full:
        result = launcher.run(*arguments, "echo", "hi", stdout=full)
    assert result.returncode == 1
    lines = result.stderr.splitlines()
    assert len([line for line in lines if "standard output" in line and "No space left" in line]) == 1, result.stderr


def test_help_that_is_lost_is_no_success(launcher):
    with open("/dev/full", "w") as full:
        result = launcher.run("--help", stdout=full)
    assert result.returncode == 1 and "standard output" in result.stderr


@pytest.mark.gate
def test_lost_errors_are_no_success_and_a_failure_keeps_its_code(launcher):
    with open("/dev/full", "w") as full:
        well = launcher.run("--nproc-per-node", 1, "sh", "-c", "echo trouble >&2", stderr=full)
        ill = launcher.run("--nproc-per-node", 1, "sh", "-c", "echo hi; exit 3", stdout=full)
        refused = launcher.run("--no-such-flag", stderr=full)
    assert (well.returncode, ill.returncode, refused.returncode) == (1, 3, 2)


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["echo", "hi"], marks=pytest.mark.gate),
        ["--json", "echo", "hi"],
        ["--help"],
        ["--dry-run", "echo", "hi"],
    ],
)
def test_a_reader_that_went_away_changes_nothing(launcher, arguments):
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as nobody:
        result = launcher.run(*arguments, stdout=nobody)
    assert result.returncode == 0 and "standard output" not in result.stderr, result.stderr


@pytest.mark.gate
def test_dry_run_starts_nothing(launcher):
    result = launcher.run("--gpus", 16, "--dry-run", *launcher.ranks("*=exit:0"))
    assert result.returncode == 0, result.stderr
    assert "MASTER_ADDR" in result.stdout and "WORLD_SIZE" in result.stdout
    assert not list(launcher.barrier.iterdir())
    assert not (launcher.folder / "taas-runs").exists()
