"""`taas-run check` and --preflight on one machine; tests/cluster/test_namespaces_check.py has the nodes."""

import json
import re


def test_a_sound_machine(launcher):
    script = launcher.python("print('ran')")
    result = launcher.run("check", "--nproc-per-node", 2, script)
    assert result.returncode == 0 and result.stderr == "", result
    assert re.fullmatch(r"(warning: .*\n)*check: no error.* on 1 node with \d+ GPUs?, Python [\d.]+(, torch \S+)?\n", result.stdout)
    assert not (launcher.folder / "taas-runs").exists()


def test_without_a_program_the_machine_alone_is_looked_at(launcher):
    assert launcher.run("check").returncode == 0


def test_a_program_that_is_not_there(launcher):
    result = launcher.run("check", "nowhere.py")
    assert result.returncode == 1
    assert result.stdout.splitlines()[0] == "error: nowhere.py: no such file"


def test_an_interpreter_that_is_not_there(launcher):
    script = launcher.folder / "tool"
    script.write_text("#!/usr/bin/env no-such-interpreter\n")
    script.chmod(0o755)
    result = launcher.run("check", script)
    assert result.returncode == 1 and "its interpreter no-such-interpreter is not there" in result.stdout


def test_flags_that_are_wrong_are_told_as_those_of_a_run(launcher):
    result = launcher.run("check", "--nproc-per-node", "many", "x.py")
    assert result.returncode == 2 and "--nproc-per-node many" in result.stderr
    assert result.stdout == ""


def test_speed_is_a_part_of_the_check(launcher):
    result = launcher.run("--speed", "x.py")
    assert result.returncode == 2 and result.stderr == "taas-run: --speed: only as taas-run check --speed\n"
    result = launcher.run("check", "--speed", "nowhere.py")
    assert result.returncode == 1 and result.stdout.startswith("error: nowhere.py: no such file\n")


def test_an_interface_that_a_variable_names_and_nobody_has(launcher):
    result = launcher.run("check", "--env", "NCCL_SOCKET_IFNAME=ib", launcher.python("pass"))
    assert result.returncode == 1
    assert "NCCL_SOCKET_IFNAME=ib names no interface that is up" in result.stdout


def test_output_where_a_file_is(launcher):
    (launcher.folder / "runs").write_text("a file\n")
    result = launcher.run("check", "--output", "runs/here", launcher.python("pass"))
    assert result.returncode == 1 and "cannot be a folder" in result.stdout
    assert (launcher.folder / "runs").read_text() == "a file\n"


def test_json(launcher):
    result = launcher.run("check", "--json", launcher.python("pass"))
    report = json.loads(result.stdout)
    assert report["ok"] and result.returncode == 0
    [node] = report["nodes"]
    assert node["facts"]["program"]["python"].startswith("3.") and node["facts"]["limits"]["open_files"] != 0


def test_preflight_goes_on_where_nothing_is_wrong(launcher):
    result = launcher.run("--preflight", "--nproc-per-node", 2, launcher.python("print('ran')"))
    assert result.returncode == 0 and result.stdout == "ran\n", result


def test_preflight_starts_no_rank_where_something_is_wrong(launcher):
    result = launcher.run("--preflight", "--env", "GLOO_SOCKET_IFNAME=ib7", launcher.python("print('ran')"))
    assert result.returncode == 2 and result.stdout == ""
    assert re.search(r"^taas-run: --preflight: GLOO_SOCKET_IFNAME=ib7 names no interface", result.stderr, re.M)
    assert not (launcher.folder / "taas-runs").exists()
