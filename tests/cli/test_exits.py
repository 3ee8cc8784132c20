"""Exit codes: the culprit's own, 128 + signal, 126 and 127, 2 for usage."""

import re

import pytest
from conftest import UNKNOWN_NAME, repeated


def report_lines(result):
    return result.stderr.strip().splitlines()


@pytest.mark.gate
@repeated
def test_exit_code_of_the_culprit_comes_back(launcher, attempt):
    result = launcher.run("--nproc-per-node", 8, *launcher.ranks("3=exit:42"))
    assert result.returncode == 42, result.stderr
    assert "rank 3 exited with code 42" in result.stderr


@pytest.mark.gate
@repeated
def test_segmentation_fault(launcher, attempt):
    result = launcher.run("--nproc-per-node", 8, *launcher.ranks("6=segfault"))
    assert result.returncode == 128 + 11, result.stderr
    assert "rank 6 was killed by SIGSEGV" in result.stderr


@pytest.mark.gate
@repeated
def test_program_that_cannot_be_executed(launcher, attempt):
    program = launcher.folder / "program"
    program.write_text("#!/no/such/interpreter\n")
    program.chmod(0o755)
    result = launcher.run("--nproc-per-node", 2, "--no-python", "--max-restarts", 3, program)
    assert result.returncode == 127, result.stderr
    assert "cannot execute" in result.stderr and str(program) in result.stderr
    assert "restarting" not in result.stderr


@pytest.mark.gate
@repeated
def test_traceback_without_any_help_from_the_program(launcher, attempt):
    script = launcher.python(
        "import os, time\n"
        "def load(path):\n"
        "    raise ValueError(f'bad shape in {path}')\n"
        "if os.environ['RANK'] == '1':\n"
        "    load('weights.pt')\n"
        "time.sleep(60)\n"
    )
    result = launcher.run("--nproc-per-node", 4, script)
    assert result.returncode == 1
    assert "ValueError: bad shape in weights.pt" in result.stderr
    assert re.search(r"script\.py.*line 3", result.stderr)
    assert len(report_lines(result)) <= 12, result.stderr


@pytest.mark.gate
def test_restart_until_the_budget_is_spent(launcher):
    result = launcher.run(
        "--nproc-per-node", 3, "--max-restarts", 2, "--monitor-interval", 0, *launcher.ranks("1=exit:4")
    )
    assert result.returncode == 4
    assert len(list(launcher.barrier.glob("ready-2-*"))) == 3, "two restarts of all three ranks"
    assert not list(launcher.barrier.glob("ready-3-*"))


@pytest.mark.gate
def test_a_start_that_fails_is_restarted_until_the_same_exception_comes_again(launcher):
    """The first failure ended the run: torchrun outlasts what a file server's hiccup has caused."""
    script = launcher.python(
        "import os, signal\nif os.environ['RANK'] == '0':\n    signal.pause()\n"
        "if os.environ['TORCHELASTIC_RESTART_COUNT'] in '01':\n    raise OSError('stale file handle')\n"
        "for epoch in range(epochz):\n    pass\n"
    )
    result = launcher.run("--nproc-per-node", 2, "--max-restarts", 9, "--monitor-interval", 0, script)
    assert result.returncode == 1
    told = [line for line in report_lines(result) if "restart" in line]
    assert told == [
        "taas-run: restarting all 2 ranks, restart 1 of 9",
        "taas-run: rank 1 raised OSError: stale file handle, as before; restarting all 2 ranks, restart 2 of 9",
        "taas-run: restarting all 2 ranks, restart 3 of 9",
        "  hint: not restarted: it raised the same exception at the same line twice, "
        "before any rank had reached the store",
    ], result.stderr


def test_many_restarts_of_a_program_that_cannot_work_leave_little(launcher):
    result = launcher.run("--nproc-per-node", 2, "--max-restarts", 100, "--monitor-interval", 0, "--no-python", "false")
    assert result.returncode == 1
    run = launcher.folder / "taas-runs" / "latest"
    assert sorted(path.name for path in run.glob("generation-*")) == [
        "generation-0",
        "generation-1",
        "generation-100",
        "generation-99",
    ]


@pytest.mark.gate
@pytest.mark.parametrize("flags", [[], ["--no-python"], ["--run-path"]])
def test_a_program_that_does_not_exist_is_127(launcher, flags):
    result = launcher.run(*flags, "missing.py")
    assert result.returncode == 127 and len(report_lines(result)) == 1, result.stderr
    assert "missing.py" in result.stderr
    assert not (launcher.folder / "taas-runs").exists(), "a refused run leaves nothing behind"


@pytest.mark.gate
def test_an_interpreter_that_does_not_exist_is_127(launcher):
    script = launcher.python("print()\n")
    for value, why in (("/no/such/python", "no such file"), ("no-such-python", "not in PATH")):
        result = launcher.run(script, env={"PYTHON_EXEC": value})
        assert result.returncode == 127 and f"PYTHON_EXEC={value}: {why}" in result.stderr, result.stderr
    result = launcher.run(script, env={"PYTHON_EXEC": script})
    assert result.returncode == 126 and "not an executable file" in result.stderr, result.stderr


@pytest.mark.gate
def test_what_cannot_be_executed_is_126_with_advice(launcher):
    contents = {"run.sh": "#!/bin/sh\nexit 0\n", "cells.ipynb": "{}", "model.pt": "\0" * 100}
    for (name, content), advice in zip(contents.items(), ("chmod +x run.sh", "jupyter nbconvert", "binary data")):
        (launcher.folder / name).write_text(content)
        result = launcher.run(name)
        assert result.returncode == 126 and len(report_lines(result)) == 1, result.stderr
        assert advice in result.stderr
    for name in (".", "/dev/zero"):
        result = launcher.run(name)
        assert result.returncode == 126 and "not a program" in result.stderr, result.stderr


NO_PROCESS = 2**22 + 1  # above the largest number that Linux gives


@pytest.mark.parametrize(
    "flags, why",
    [
        pytest.param(
            ["--end-with", NO_PROCESS], f"--end-with: {NO_PROCESS}: there is no such process", marks=pytest.mark.gate
        ),
        pytest.param(
            ["-t", "5:3"], "--tee 5:3: there is no local rank 5; the largest of a node is 1", marks=pytest.mark.gate
        ),
        pytest.param(
            ["--protect-except", "/usr"], "--protect-except /usr: only with --protect", marks=pytest.mark.gate
        ),
        pytest.param(
            ["--interface", "nope0"],
            "--interface nope0: no address that others can reach on an interface 'nope0'",
            marks=pytest.mark.gate,
        ),
        (["--local-addr", UNKNOWN_NAME], f"--local-addr {UNKNOWN_NAME}: no address is known for this name"),
        pytest.param(
            ["--local-addr", "203.0.113.9"],
            "--local-addr 203.0.113.9: not an address of this machine",
            marks=pytest.mark.gate,
        ),
        (["--master-addr", "203.0.113.9"], "--master-addr 203.0.113.9: not an address of this machine"),
    ],
)
def test_what_is_not_there_is_refused(launcher, flags, why):
    result = launcher.run("--nproc-per-node", 2, *flags, *launcher.ranks("*=exit:0"))
    assert result.returncode == 2 and why in result.stderr, result.stderr
    assert not list(launcher.barrier.iterdir()), "no rank was started"


@pytest.mark.gate
def test_a_wrong_config_file_is_told_by_its_line(launcher):
    for text in ("gpus = 1\ngpus = 2\n", "\nprotect = [1\n", "\ngpus = true\n", "\nrole = trainer\n"):
        (launcher.folder / "run.toml").write_text(text)
        result = launcher.run("--config", "run.toml", "/bin/true")
        assert result.returncode == 2 and len(report_lines(result)) == 1, (text, result.stderr)
        assert result.stderr.startswith("taas-run: run.toml: line 2: "), result.stderr


@pytest.mark.gate
def test_usage_errors_are_one_line_and_code_2(launcher):
    for arguments in (
        ["--gpus", "0", "x"],
        ["--nproc-per-node", "many", "/bin/true"],
        ["--no-such-flag", "/bin/true"],
        ["--gpus", "4"],
        ["--hosts", "a,b", "/bin/true"],
    ):
        result = launcher.run(*arguments)
        assert result.returncode == 2, (arguments, result)
        assert len(report_lines(result)) <= 2, result.stderr
        assert not (launcher.folder / "taas-runs").exists(), "a refused run leaves nothing behind"
