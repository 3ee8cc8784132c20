"""What programs read: real output of real runs, held against docs/schema.json."""

import json
import os
import pathlib
import subprocess

import jsonschema
import pytest

from conftest import wait_until

SCHEMA_FILE = pathlib.Path(__file__).parents[2] / "docs" / "schema.json"


def closed(schema):
    """Nothing may be there that the schema does not name: readers have to bear it, we have to describe it."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {name: closed(part) for name, part in schema.items()}
    if parts.get("type") == "object" and "properties" in parts:
        parts.setdefault("additionalProperties", False)
    return parts


SCHEMA = closed(json.loads(SCHEMA_FILE.read_text()))


def number(text: str) -> float:
    assert "e" not in text.lower(), f"{text} has an exponent"
    return float(text)


def read(line: str, kind: str) -> dict:
    """The object in this line, which is one of this kind."""
    value = json.loads(line, parse_float=number, parse_constant=pytest.fail)
    validator = jsonschema.Draft202012Validator({**SCHEMA, "anyOf": [{"$ref": f"#/$defs/{kind}"}]})
    errors = [error.message for error in validator.iter_errors(value)]
    assert not errors, f"{line}: {errors}"
    return value


class Json:
    def __init__(self, launcher):
        self.launcher = launcher

    def ask(self, kind: str, *arguments, code: int = 0) -> dict:
        done = self.launcher.run(*arguments, "--json")
        assert done.returncode == code, done
        assert done.stdout.count("\n") == 1
        return read(done.stdout, kind)

    def run(self, *arguments, code: int = 0) -> list[dict]:
        """A run's lines on its console. Those of its journal are held against the schema as well."""
        done = self.launcher.run("--json", *arguments)
        assert done.returncode == code, done
        lines = [read(line, "run_line") for line in done.stdout.splitlines()]
        journal = (self.launcher.run_folder() / "journal.jsonl").read_text().splitlines()
        kept = [read(line, "journal_line") for line in journal]
        assert kept[0]["event"] == "run_started" and kept[0]["schema"] == 1
        assert all("t" in line for line in lines + kept)
        return lines


@pytest.fixture
def programs(launcher):
    return Json(launcher)


def test_the_schema_is_valid_and_that_of_the_program(launcher):
    printed = launcher.run("--print-schema").stdout
    assert SCHEMA_FILE.read_text() == printed, "run: build/release/bin/taas-run --print-schema > docs/schema.json"
    jsonschema.Draft202012Validator.check_schema(json.loads(printed))
    names = json.loads(printed)["$defs"]
    kinds = {reference["$ref"].rsplit("/", 1)[1] for reference in json.loads(printed)["anyOf"]}
    assert kinds <= names.keys() and len(kinds) == 17


def test_the_check_finds_what_is_not_described():
    with pytest.raises(AssertionError):
        read('{"schema":1,"token":"x","more":1}', "token")
    with pytest.raises(AssertionError):
        read('{"schema":2,"token":"x"}', "token")
    with pytest.raises(AssertionError):
        read('{"t":1.5E-1,"event":"deadline_reached"}', "run_line")


def test_a_run_that_ends_well(programs):
    script = programs.launcher.python("import sys\nprint('out')\nprint('err', file=sys.stderr)\nprint('half', end='\\r')\n")
    lines = programs.run("--nproc-per-node", 2, "-t", 3, "--monitor-interval", 1, script)
    told = [(line["rank"], line["stream"], line["text"]) for line in lines if line.get("event") == "output"]
    assert {(0, "stdout", "out"), (1, "stdout", "out"), (0, "stderr", "err"), (1, "stderr", "err")} <= set(told)
    assert any(line.get("progress") for line in lines)
    assert any(line.get("event") == "message" for line in lines)
    assert lines[-1]["action"] == "finish" and lines[-1]["verdict"]["cause"] == "success"
    times = [line["t"] for line in lines if "action" in line or line["event"] not in ("output", "message")]
    assert times == sorted(times)


def test_a_run_that_fails_and_is_restarted(programs):
    lines = programs.run("--nproc-per-node", 2, "--max-restarts", 1, *programs.launcher.ranks("1=exit:3", "*=stay"), code=3)
    assert [line["restarting"] for line in lines if line.get("action") == "report_failure"] == [True, False]
    verdict = lines[-1]["verdict"]
    assert (verdict["culprit"], verdict["exit_code"], verdict["cause"]) == (1, 3, "exit_code")


def test_a_run_that_raises(programs):
    lines = programs.run("--nproc-per-node", 1, programs.launcher.python("raise ValueError('loss is nan')"), code=1)
    assert lines[-1]["verdict"]["summary"] == "rank 0 raised ValueError: loss is nan"


def test_a_run_that_is_stopped_by_a_command(programs):
    launcher = programs.launcher
    name = f"json{os.getpid()}"  # other tests have runs on this machine, too
    process = launcher.start("--json", "--nproc-per-node", 2, "--name", name, *launcher.ranks("*=stay"))
    launcher.wait_for_ranks(2)
    wait_until(lambda: launcher.run("look", name).returncode == 0, "it can be asked")
    assert programs.ask("look", "look", name)["world_size"] == 2
    whole = programs.ask("look", "look", name, "--rank", 1)
    assert whole["ranks"][0]["processes"][0]["threads"][0]["wait"] == "events"
    assert programs.ask("look", "top", name, "--once")["ranks"][1]["rank"] == 1
    assert programs.ask("runs", "runs", "--running")["runs"][0]["state"] == "running"
    assert programs.ask("stop", "stop", name)["run"].startswith(name + "-")
    output, _ = process.communicate(timeout=60)
    lines = [read(line, "run_line") for line in output.splitlines()]
    assert process.returncode == 143 and lines[-1]["verdict"]["cause"] == "stopped"


def test_past_runs(programs):
    launcher = programs.launcher
    script = launcher.python("import sys\nprint(sys.argv[1])\nprint('last', end='')\nprint('err', file=sys.stderr)\nsys.exit(int(sys.argv[1]))\n")
    programs.run("--nproc-per-node", 1, script, 0)
    programs.run("--nproc-per-node", 1, script, 4, code=4)
    first, second = programs.ask("runs", "runs")["runs"]
    assert (first["number"], first["exit_code"], second["number"], second["exit_code"]) == (2, 4, 1, 0)
    assert [run["number"] for run in programs.ask("runs", "runs", "--failed")["runs"]] == [2]
    shown = programs.ask("show", "show", 2)
    assert shown["run"]["id"] == first["id"] and shown["timeline"][-1]["text"].startswith("failed: rank 0 exited with code 4")
    differing = programs.ask("diff", "diff", 1, 2)
    assert differing["differences"]["ended"] == ["ok", "rank 0 exited with code 4"] and differing["runs"] == [second["id"], first["id"]]
    again = programs.ask("rerun", "rerun", 1, "--dry-run")
    assert again["command"][-1] == "0" and again["folder"] == str(launcher.folder)
    done = launcher.run("logs", "2", "--json")
    head, *lines = done.stdout.splitlines()
    assert read(head, "logs")["run"] == first["id"]
    assert [(line["stream"], line["text"], line["open"]) for line in (read(line, "logs_line") for line in lines)] == [
        ("stdout", "4", False), ("stderr", "err", False), ("stdout", "last", True)]
    would = programs.ask("clean", "clean", "--keep", 1, "--dry-run")
    assert would["dry_run"] and [run["run"] for run in would["removed"]] == [second["id"]]
    assert programs.ask("clean", "clean", "--keep", 1)["removed"][0]["bytes"] > 0
    assert len(programs.ask("runs", "runs")["runs"]) == 1


def test_rerun_prints_the_lines_of_the_new_run(programs):
    script = programs.launcher.python("print('ran')")
    programs.launcher.run("--nproc-per-node", 1, script)
    done = programs.launcher.run("rerun", "--json")
    assert done.returncode == 0
    assert any(read(line, "run_line").get("text") == "ran" for line in done.stdout.splitlines())


def test_what_starts_nothing(programs):
    launcher = programs.launcher
    script = launcher.python("pass")
    plan = launcher.run("--dry-run", "--json", "--nproc-per-node", 2, script)
    assert [rank["rank"] for rank in read(plan.stdout, "dry_run")["ranks"]] == [0, 1]
    checked = launcher.run("check", "--json", script)
    assert read(checked.stdout, "check")["ok"] and checked.returncode == 0
    refused = launcher.run("check", "--json", "--env", "NCCL_SOCKET_IFNAME=ib7", script)
    finding = read(refused.stdout, "check")["findings"][0]
    assert refused.returncode == 1 and finding["severity"] == "error" and finding["code"] and finding["fix"]
    refused = launcher.run("--preflight", "--json", "--env", "NCCL_SOCKET_IFNAME=ib7", script)
    assert refused.returncode == 2 and not read(refused.stdout, "check")["ok"]
    assert len(programs.ask("token", "token")["token"]) == 64
    assert programs.ask("devices", "devices")["devices"][0]["device"] == "cpu"


@pytest.mark.parametrize("arguments, code, kind, words", [
    (["--json", "--gpus", "many", "x.py"], 2, "usage", "--gpus many: not a whole number from 1"),
    (["--gpu", "8", "--json", "x.py"], 2, "usage", "did you mean --gpus?"),
    (["--json", "--lr", "0.1", "x.py"], 2, "usage", "options of x.py stand behind it: x.py --lr 0.1"),
    (["--json"], 2, "usage", "for example: taas-run --gpus 8 train"),
    (["--json", "nowhere.py"], 127, "not_found", "nowhere.py: no such file"),
    (["--json", "--output", "/proc/nowhere", "true"], 2, "system", "/proc/nowhere"),
    (["--json", "."], 126, "not_executable", ".: a directory without a __main__.py, not a program"),
    (["show", "9", "--json"], 2, "usage", "--output names another folder"),
    (["look", "nobody", "--json", "--rank", "x"], 2, "usage", "--rank"),
    (["logs", "--json", "--folow"], 2, "usage", "did you mean --follow?"),
    (["devices", "all", "--json"], 2, "usage", "taas-run devices --help says what it takes"),
    (["check", "--json", "--gpus", "many"], 2, "usage", "--gpus many: not a whole number from 1"),
])
def test_errors_are_objects(launcher, arguments, code, kind, words):
    done = launcher.run(*arguments)
    assert done.returncode == code, done
    told = read(done.stdout, "error")
    assert told["exit_code"] == code and told["error"]["code"] == kind
    assert words in told["error"]["message"] + told["error"]["fix"]
    assert told["error"]["message"] and told["error"]["fix"]
    assert told["error"]["message"] in done.stderr and done.stderr.startswith("taas-run: ")


def test_the_json_of_a_program_is_its_own(launcher):
    done = launcher.run("--gpu", 8, "x.py", "--json")
    assert done.returncode == 2 and done.stdout == ""


def test_journals_of_earlier_versions_are_read(programs):
    folder = programs.launcher.folder / "taas-runs" / "20250101-120000-abcdef"
    folder.mkdir(parents=True)
    (folder / "journal.jsonl").write_text(
        '{"t":2.110048E-3,"event":"run_started","record":{"number":1,"run":"20250101-120000-abcdef","command":["taas-run","x.py"]}}\n'
        '{"action":"start_generation","generation":0}\n'
        '{"t":1.5E0,"event":"rank_exited","generation":0,"rank":0,"status":{"code":3,"signal":0,"core_dumped":false}}\n'
        '{"action":"set_deadline","at":3.15E1}\n'
        '{"action":"finish","verdict":{"cause":"exit_code","summary":"rank 0 exited with code 3","exit_code":3,"generation":0,"at":1.5E0}}\n')
    shown = programs.ask("show", "show", 1)
    assert (shown["run"]["state"], shown["run"]["exit_code"], shown["run"]["seconds"]) == ("ended", 3, 1.5)
    assert shown["timeline"] == [{"t": 0.00211, "text": "generation 0 starts"}, {"t": 1.5, "text": "rank 0 ends with exit code 3"}]


@pytest.mark.parametrize("arguments", [["runs"], ["show"], ["logs"], ["stop"], ["rerun"], ["diff", "1"], ["clean"], ["look", "nobody"],
                                       ["top", "nobody"],                                       ["devices"], ["token"], ["check"], ["--dry-run", "x.py"], ["rerun", "--dry-run"],
                                       ["clean", "--keep", "0", "--files"]])
def test_nothing_asks_back(launcher, arguments):
    """Standard input stays open and says nothing: who waited for an answer would not end."""
    (launcher.folder / "x.py").write_text("pass\n")
    launcher.run("--nproc-per-node", 1, "x.py")
    process = launcher.start(*arguments, "--json", stdin=subprocess.PIPE) if arguments[0] != "--dry-run" else launcher.start(
        "--json", *arguments, stdin=subprocess.PIPE)
    wait_until(lambda: process.poll() is not None, "it ends by itself")
    process.stdin.close()
    for line in process.stdout.read().splitlines():
        json.loads(line)
