"""The launcher's own log: what --log-level and TAAS_LOG turn on, and where the lines are."""

import re

import pytest

LINE = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z \d+ \d+ (trace|debug|info|warning|error) "
    r"(coordinator|agent|process|net|store|storage|data|training): .+"
)


def logs(launcher) -> dict[str, list[str]]:
    """The lines of each file, by its name without the process id."""
    return {
        re.sub(r"-\d+\.log$", "", file.name): file.read_text().splitlines()
        for file in (launcher.run_folder() / "log").glob("*.log")
    }


@pytest.mark.gate
def test_without_a_wish_there_is_no_log(launcher):
    assert launcher.run("--no-python", "/bin/true").returncode == 0
    assert not (launcher.run_folder() / "log").exists()


@pytest.mark.parametrize("way", [pytest.param("flag", marks=pytest.mark.gate), "variable", "config"])
def test_a_log_is_asked_for_by_flag_variable_or_config(launcher, way):
    (launcher.folder / "taas.toml").write_text('log-level = "debug"\n')
    arguments = {
        "flag": ["--log-level", "debug"],
        "variable": [],
        "config": ["--config", launcher.folder / "taas.toml"],
    }
    variables = {"TAAS_LOG": "debug"} if way == "variable" else {}
    result = launcher.run(*arguments[way], "--nproc-per-node", 2, "--no-python", "/bin/true", env=variables)
    assert result.returncode == 0
    found = logs(launcher)
    assert list(found) == ["launcher"]
    assert all(LINE.fullmatch(line) for line in found["launcher"])
    text = "\n".join(found["launcher"])
    assert "info process: rank 1 of generation 0 has ended: code 0, signal 0" in text
    assert "debug coordinator: tells agent 0 start_ranks" in text
    assert "info" not in result.stderr and "debug" not in result.stderr


@pytest.mark.gate
def test_the_flag_wins_and_parts_have_levels_of_their_own(launcher):
    launcher.run("--log-level", "off,process=info", "--no-python", "/bin/true", env={"TAAS_LOG": "trace"})
    assert {line.split()[4] for line in logs(launcher)["launcher"]} == {"process:"}


@pytest.mark.gate
def test_standard_error_gets_the_lines_where_it_is_asked_for(launcher):
    result = launcher.run("--log-level", "info,console", "--no-python", "/bin/true")
    lines = [line for line in result.stderr.splitlines() if LINE.fullmatch(line)]
    assert any("info process: rank 0" in line for line in lines)
    assert set(lines) >= set(logs(launcher)["launcher"])


@pytest.mark.parametrize(
    "arguments, variables, name",
    [
        pytest.param(["--log-level", "loud"], {}, "--log-level loud: ", marks=pytest.mark.gate),
        ([], {"TAAS_LOG": "disk=debug"}, "TAAS_LOG: disk: "),
    ],
)
def test_a_wish_that_is_none_is_refused(launcher, arguments, variables, name):
    result = launcher.run(*arguments, "--no-python", "/bin/true", env=variables)
    assert result.returncode == 2
    assert result.stderr.startswith(f"taas-run: {name}") and result.stderr.count("\n") == 1
    assert not (launcher.folder / "taas-runs").exists()


@pytest.mark.gate
def test_ranks_are_told_where_to_write_theirs(launcher):
    script = launcher.python("import os\nprint(os.environ.get('TAAS_LOG'), os.environ.get('TAAS_LOG_DIR'))\n")
    shown = launcher.run("--log-level", "training=debug", script).stdout
    assert shown == f"training=debug {launcher.run_folder().resolve()}/log\n"
    assert launcher.run(script).stdout == "None None\n"
