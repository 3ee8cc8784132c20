"""What programs see of their launcher, and users of theirs, as PyTorch's own launcher tests have it: scripts
of each kind, flags and PET_*, log files, redirects and tee, restarts, error files, exit codes.
docs/torchrun.md says what differs."""

import json
import os
import pathlib
import sys
import zipapp

import pytest
from conftest import TOUCH, assert_ranks, join_alone, succeeds
from waiting import DEADLINE_SECONDS


# --- programs ---


@pytest.mark.gate
def test_script_with_all_the_usual_flags(launcher, script, touched):
    succeeds(
        launcher,
        "--nnodes=1",
        "--nproc-per-node=4",
        "--rdzv-id=77",
        "--monitor-interval=1",
        "--start-method=spawn",
        script,
        touched,
        "--nnodes",
        "9",
    )
    assert (touched / "3").read_text() == "--nnodes 9", "behind the script options are the script's"
    assert_ranks(touched, 4)


@pytest.mark.gate
def test_a_program_that_comes_through_a_pipe_is_left_to_the_rank(launcher):
    """It was read to find out what it imports: the rank found an empty program, and the run ended well."""
    reader, writer = os.pipe()
    os.write(writer, b"print('read to the end')")
    os.close(writer)
    result = launcher.run("--nproc-per-node=1", "--no-python", sys.executable, "/dev/stdin", stdin=reader)
    os.close(reader)
    assert result.returncode == 0 and "read to the end" in result.stdout, result.stderr


def test_a_program_that_is_a_pipe_holds_nobody_up(launcher):
    """Its text was waited for in the event loop, which then saw no signal and no end of a rank."""
    os.mkfifo(launcher.folder / "later.py")
    agent = launcher.start("--nproc-per-node=1", "later.py")
    with open(launcher.folder / "later.py", "w") as program:  # as soon as the rank reads it, or the launcher
        program.write("print('from the pipe')")
    out, err = agent.communicate(timeout=DEADLINE_SECONDS)
    assert agent.returncode == 0 and "from the pipe" in out, err


@pytest.mark.gate
def test_a_program_from_the_standard_input_is_for_one_rank(launcher):
    """Rank 0 read it, the others ran nothing, and the run ended well."""
    (launcher.folder / "program.txt").write_text("print('ran')")
    for count, code, text in ((1, 0, "ran\n"), (2, 2, "")):
        with open(launcher.folder / "program.txt") as program:
            result = launcher.run("--nproc-per-node", count, "/dev/stdin", stdin=program)
        assert (result.returncode, result.stdout) == (code, text), result.stderr
    assert "save it to a file" in result.stderr


@pytest.mark.gate
def test_folders_and_archives_run_as_python_runs_them(launcher, touched):
    package = launcher.folder / "package"
    package.mkdir()
    (package / "__main__.py").write_text(TOUCH)
    zipapp.create_archive(package, launcher.folder / "app.pyz")
    zipapp.create_archive(package, launcher.folder / "shebang.pyz", interpreter="/usr/bin/env python3")
    (launcher.folder / "shebang.pyz").chmod(0o644)
    for program in ("package", "./package", "app.pyz", "shebang.pyz"):
        succeeds(launcher, "--nproc-per-node=2", program, touched)
        assert_ranks(touched, 2)


@pytest.mark.gate
def test_a_huge_program_is_not_read_to_find_out_what_it_imports(launcher):
    """All of it was read into the agent's memory, which heard no signal meanwhile."""
    for length, preload in ((1 << 10, "torch"), (1 << 20, "none (the program does not seem to use torch)")):
        script = launcher.python("#" * length + "\nimport torch\n")
        result = succeeds(launcher, "--nproc-per-node=2", "--dry-run", script)
        assert f"preload  {preload}\n" in result.stdout


@pytest.mark.gate
def test_module_and_no_python_contradict_each_other(launcher, shell, touched):
    for arguments, env in ((["--no-python", "--module"], {}), ([], {"PET_NO_PYTHON": "1", "PET_MODULE": "1"})):
        result = launcher.run("--nproc-per-node=2", *arguments, shell, touched, env=env)
        assert result.returncode == 2 and "--no-python" in result.stderr, result.stderr
    assert_ranks(touched, 0)


@pytest.mark.gate
def test_run_path_takes_a_script_whatever_its_name(launcher, touched):
    (launcher.folder / "train").write_text(TOUCH)
    succeeds(launcher, "--run-path", "--nproc-per-node=2", "./train", touched)
    assert_ranks(touched, 2)


@pytest.mark.gate
def test_standalone(launcher, script, touched):
    succeeds(launcher, "--nnodes=1", "--nproc-per-node=4", "--standalone", script, touched)
    assert_ranks(touched, 4)


# --- sizes and PET_ variables ---


@pytest.mark.gate
@pytest.mark.parametrize(
    "wanted, count",
    [
        ("cpu", len(os.sched_getaffinity(0))),
        (None, 1),
    ],
)
def test_number_of_processes(launcher, shell, touched, wanted, count):
    succeeds(launcher, *([f"--nproc-per-node={wanted}"] if wanted else []), "--no-python", shell, touched)
    assert_ranks(touched, count)


@pytest.mark.parametrize(
    "flag, value",
    [("--nproc-per-node", "unknown"), ("--nnodes", "2:20:30"), pytest.param("--nnodes", "3:2", marks=pytest.mark.gate)],
)
def test_sizes_that_are_none(launcher, shell, touched, flag, value):
    result = launcher.run(flag, value, "--no-python", shell, touched)
    assert result.returncode == 2 and value in result.stderr, result.stderr


@pytest.mark.gate
def test_pet_variables(launcher, shell, touched):
    pet = {
        "PET_NNODES": "1",
        "PET_NPROC_PER_NODE": "4",
        "PET_RDZV_ID": "job9",
        "PET_MONITOR_INTERVAL": "1",
        "PET_START_METHOD": "spawn",
        "PET_NO_PYTHON": "1",
        "PET_MODULE": "0",
    }
    succeeds(launcher, shell, touched, env=pet)
    assert_ranks(touched, 4)
    assert launcher.run_folder().name == "job9"


# --- spelling ---


@pytest.mark.gate
def test_options_are_spelled_as_argparse_lets_users(launcher, shell, touched):
    result = succeeds(launcher, "--nproc=2", "-t=3", "--no-py", shell, touched)
    assert_ranks(touched, 2)
    assert "creating" in result.stdout and "[0]" in result.stdout and "[1]" in result.stdout


@pytest.mark.gate
def test_a_name_that_is_no_signal_is_passed_over_and_said(launcher):
    result = succeeds(launcher, "--signals-to-handle=SIGTERM,SIGNOPE", "--no-python", "/bin/true")
    assert "SIGNOPE in --signals-to-handle" in result.stderr


@pytest.mark.gate
def test_filters_are_refused_as_a_variable_too(launcher):
    result = launcher.run("--no-python", "/bin/true", env={"PET_DUPLICATE_STDOUT_FILTERS": "loss"})
    assert result.returncode == 2 and "PET_DUPLICATE_STDOUT_FILTERS comes with a later version" in result.stderr


@pytest.mark.gate
def test_a_prefix_has_the_names_of_nodes_that_joined(launcher):
    result = join_alone(
        launcher,
        "-t",
        "3",
        "--log-line-prefix-template=<${hostname}>",
        "--no-python",
        "/bin/echo",
        "x",
        TAAS_TOKEN="a secret of ours",
    )
    assert f"<{os.uname().nodename}>x" in result.stdout, result.stdout


# --- output ---


@pytest.mark.gate
def test_log_files_hold_both_streams_by_attempt_and_local_rank(launcher, shell, touched):
    succeeds(
        launcher, "--nproc-per-node=2", "--rdzv-id=job", "--log-dir=logs", "-r", "3", "--no-python", shell, touched
    )
    folder = launcher.folder / "logs/job/attempt_0"
    for rank in range(2):
        assert (folder / str(rank) / "stdout.log").read_text() == f"creating {touched}/{rank}\n"
        assert (folder / str(rank) / "stderr.log").read_text() == f"warning of {rank}\n"


@pytest.mark.gate
def test_redirect_keeps_rank_0_off_the_console(launcher, shell, touched):
    result = succeeds(launcher, "--nproc-per-node=2", "--redirects=1", "--no-python", shell, touched)
    assert "creating" not in result.stdout and "warning of 0" in result.stderr


@pytest.mark.gate
def test_tee_shows_all_with_the_prefix_of_the_environment(launcher, shell, touched):
    result = succeeds(
        launcher,
        "--nproc-per-node=4",
        "--redirects=3",
        "--tee=3",
        "--no-python",
        shell,
        touched,
        env={"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": "[rank${rank}]: "},
    )
    for rank in range(4):
        assert f"[rank{rank}]: creating {touched}/{rank}\n" in result.stdout
        assert f"[rank{rank}]: warning of {rank}\n" in result.stderr


@pytest.mark.gate
def test_tee_by_local_rank(launcher, shell, touched):
    result = succeeds(
        launcher,
        "--nproc-per-node=3",
        "--tee=1:1,2:2",
        "--log-line-prefix-template=<${local_rank}>",
        "--no-python",
        shell,
        touched,
    )
    assert "<1>creating" in result.stdout and "<2>creating" not in result.stdout
    assert "<2>warning" in result.stderr and "<1>warning" not in result.stderr


@pytest.mark.gate
def test_local_ranks_filter(launcher, shell, touched):
    result = succeeds(
        launcher, "--nproc-per-node=3", "--tee=3", "--local-ranks-filter=2", "--no-python", shell, touched
    )
    shown = [rank for rank in range(3) if f"creating {touched}/{rank}" in result.stdout]
    assert shown == [2]


@pytest.mark.gate
def test_plug_in_for_logs_is_refused(launcher, script):
    result = launcher.run("--logs-specs=default", script)
    assert result.returncode == 2 and "--logs-specs" in result.stderr


# --- failures ---


@pytest.mark.gate
def test_attempts_count_up(launcher, shell):
    """A program that is no Python: of those that fail as they start, taas-run knows that they would fail again."""
    pathlib.Path(shell).write_text(
        "#!/bin/sh\necho $TORCHELASTIC_RESTART_COUNT $TORCHELASTIC_MAX_RESTARTS\n"
        "[ $TORCHELASTIC_RESTART_COUNT = 2 ] || exit 3\n"
    )
    succeeds(
        launcher, "--nproc-per-node=2", "--max-restarts=3", "--rdzv-id=job", "--log-dir=logs", "--no-python", shell
    )
    folder = launcher.folder / "logs/job"
    assert sorted(path.name for path in folder.iterdir()) == ["attempt_0", "attempt_1", "attempt_2"]
    assert (folder / "attempt_2/0/stdout.log").read_text() == (folder / "attempt_2/1/stdout.log").read_text() == "2 3\n"
    assert "0 3\n" in [(folder / f"attempt_0/{rank}/stdout.log").read_text() for rank in range(2)]


@pytest.mark.gate
def test_error_file_is_of_the_rank_and_the_attempt_and_its_message_is_the_report(launcher, shell):
    """A program that writes the file as @record does, and dies without another word."""
    extra = {"py_callstack": 'Traceback\n  File "model.py", line 3, in load\nKeyError: layer7', "timestamp": "1"}
    message = {"message": {"message": "KeyError: layer7", "errorCode": 17, "extraInfo": extra}}
    (launcher.folder / "error.json").write_text(json.dumps(message))
    pathlib.Path(shell).write_text(
        "#!/bin/sh\n[ $RANK = 1 ] || exec sleep 60\n"
        f'cp {launcher.folder}/error.json "$TORCHELASTIC_ERROR_FILE"\nexit 17\n'
    )
    result = launcher.run("--nproc-per-node=2", "--max-restarts=1", "--no-python", shell)
    assert result.returncode == 17
    assert "KeyError: layer7" in result.stderr and "rank 1" in result.stderr, result.stderr
    for generation in range(2):
        path = launcher.run_folder() / f"generation-{generation}/rank-0001.error.json"
        assert json.loads(path.read_text()) == message
        assert not path.with_name("rank-0000.error.json").exists()


def test_whoever_started_the_launcher_gets_the_first_failure_in_its_own_error_file(launcher):
    outer = launcher.folder / "outer.json"
    outer.write_text("what an earlier run left")
    script = launcher.python(
        "import os\nfrom torch.distributed.elastic.multiprocessing.errors import record\n"
        "@record\ndef main():\n    if os.environ['RANK'] == '1':\n        raise KeyError('layer7')\nmain()\n"
    )
    launcher.run("--nproc-per-node=2", script, env={"TORCHELASTIC_ERROR_FILE": str(outer)})
    told = json.loads(outer.read_text())["message"]
    assert "KeyError: 'layer7'" in told["message"] and "in main" in told["extraInfo"]["py_callstack"]
    assert told["errorCode"] == 1
    launcher.run(
        "--nproc-per-node=1",
        "--no-python",
        "/bin/sh",
        "-c",
        "kill -SEGV $$",
        env={"TORCHELASTIC_ERROR_FILE": str(outer)},
    )
    told = json.loads(outer.read_text())["message"]
    assert "SIGSEGV" in told["message"] and told["errorCode"] == 139
    outer.unlink()
    succeeds(launcher, "--nproc-per-node=1", "--no-python", "/bin/true", env={"TORCHELASTIC_ERROR_FILE": str(outer)})
    assert not outer.exists()


@pytest.mark.gate
def test_virtual_local_rank_gives_each_rank_a_device_called_0(launcher):
    script = launcher.python("import os\nprint(os.environ['LOCAL_RANK'], os.environ['CUDA_VISIBLE_DEVICES'])\n")
    launcher.environment.pop("CUDA_VISIBLE_DEVICES", None)
    succeeds(launcher, "--nproc-per-node=2", "--virtual-local-rank", script)
    logs = [launcher.run_folder() / f"generation-0/rank-000{rank}.out" for rank in range(2)]
    assert [log.read_text() for log in logs] == ["0 0\n", "0 1\n"]
