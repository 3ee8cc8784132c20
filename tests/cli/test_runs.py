"""Runs that have ended or are under way: listed, shown, followed, stopped, repeated, compared, removed."""

import json
import os
import pathlib
import re
import signal
import subprocess

import pytest

from conftest import DEADLINE_SECONDS, TAAS_RUN, wait_until

PROGRAM = """
import os, pathlib, sys, time
rank, generation = os.environ["RANK"], os.environ["TORCHELASTIC_RESTART_COUNT"]
print(f"rank {rank} of generation {generation}: {sys.argv[1:]}", flush=True)
if "fail" in sys.argv and rank == "1":
    raise ValueError("loss is nan")
if "once" in sys.argv and rank == "1" and generation == "0":
    pathlib.Path("came").touch()
    while not pathlib.Path("go").exists():
        time.sleep(0.01)
    sys.exit(7)
if "write" in sys.argv and rank == "0":
    pathlib.Path(os.environ["TAAS_OUTPUT_DIR"], "model.pt").write_bytes(bytes(1 << 20))
if "stay" in sys.argv:
    pathlib.Path("stays-" + sys.argv[-1]).touch()
    time.sleep(1000)
"""


class Runs:
    """Runs of one script in one folder."""

    def __init__(self, launcher):
        self.launcher = launcher
        self.script = launcher.python(PROGRAM)

    def train(self, *arguments, flags=(), **options):
        return self.launcher.run("--nproc-per-node", "2", *flags, self.script, *arguments, **options)

    def start(self, *arguments, flags=()):
        return self.launcher.start("--nproc-per-node", "2", *flags, self.script, *arguments)

    def ask(self, *arguments, **options):
        return self.launcher.run(*arguments, **options)

    def list(self, *arguments) -> list:
        done = self.ask("runs", "--json", *arguments)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["runs"]

    def folder(self, number: int) -> pathlib.Path:
        return pathlib.Path(next(run["folder"] for run in self.list("--all") if run["number"] == number))


@pytest.fixture
def runs(launcher):
    return Runs(launcher)


def test_runs_are_listed_with_how_they_ended(runs):
    runs.train("--lr", "0.1")
    runs.train("--lr", "0.01", "fail")
    page = runs.ask("runs").stdout.splitlines()
    assert page[0].split() == ["#", "when", "ended", "ranks", "time", "command"]
    assert re.fullmatch(r" +2  \d\d:\d\d  rank 1: ValueError: loss is nan  +2 +[\d.]+ s  --nproc-per-node 2 \S+script\.py --lr 0\.01 fail", page[1])
    assert re.fullmatch(r" +1  \d\d:\d\d  ok +2 +[\d.]+ s  --nproc-per-node 2 \S+script\.py --lr 0\.1", page[2])
    assert [run["number"] for run in runs.list()] == [2, 1]
    assert [run["number"] for run in runs.list("--failed")] == [2]
    assert [run["number"] for run in runs.list("--with", "--lr 0.1")] == [1]
    assert [run["number"] for run in runs.list("-n", "1")] == [2]
    assert runs.list("--running") == []


def test_a_run_knows_what_it_was(runs):
    runs.launcher.environment["NCCL_DEBUG"] = "INFO"
    runs.launcher.environment["HF_TOKEN"] = runs.launcher.environment["TAAS_TOKEN"] = "a-secret-of-the-user-s"
    runs.train("--lr", "0.1")
    journal = (runs.launcher.run_folder() / "journal.jsonl").read_text()
    record = json.loads(journal.splitlines()[0])["record"]
    assert record["number"] == 1 and record["run"] == runs.launcher.run_folder().name
    assert record["command"][1:] == ["--nproc-per-node", "2", runs.script, "--lr", "0.1"]
    assert record["folder"] == str(runs.launcher.folder) and record["host"] and record["user"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", record["started"])
    assert (record["ranks"], record["nodes"]) == (2, 1) and record["versions"]["taas_run"]
    assert "NCCL_DEBUG=INFO" in record["environment"] and "a-secret" not in journal
    page = runs.ask("show").stdout
    assert page.startswith("run 1 (") and "--lr 0.1" in page and re.search(r"\d s  ranks 0[-,]1 end well", page)


def test_a_page_names_how_ranks_ended_and_ends_its_rows_between_words(runs, terminal):
    error = "the loss is not a number at step 120, and neither are the gradients of what comes before it"
    script = runs.launcher.python("import os, signal\n"
                                  "os.kill(os.getpid(), signal.SIGKILL) if os.environ['RANK'] == '1' else signal.pause()\n")
    runs.launcher.run("--nproc-per-node", 3, script)
    assert re.search(r"s  rank 1 is killed by SIGKILL\n.*s  ranks 0,2 are killed by SIGTERM\n", runs.ask("show").stdout)
    runs.launcher.run(runs.launcher.python(f"raise ValueError('{error}')"))
    assert " ".join(row.strip() for row in terminal(TAAS_RUN, "show").finish()).count(error) == 2


def test_what_differs_between_two_runs(runs):
    runs.train("--lr", "0.1")
    runs.launcher.environment["OMP_NUM_THREADS"] = "3"
    runs.train("--lr", "0.2", "fail")
    different = json.loads(runs.ask("diff", "1", "2", "--json").stdout)["differences"]
    assert different["$OMP_NUM_THREADS"] == ["", "3"] and different["ended"] == ["ok", "rank 1 raised ValueError: loss is nan"]
    assert different["command"][0].endswith("--lr 0.1") and different["command"][1].endswith("--lr 0.2 fail")
    assert set(different) == {"$OMP_NUM_THREADS", "ended", "command"}
    assert runs.ask("diff", "1", "1").stdout.endswith(": nothing differs\n")
    page = runs.ask("diff", "1").stdout  # with the newest
    assert "$OMP_NUM_THREADS\n  + 3\n" in page


def test_a_run_is_repeated_as_it_was(runs):
    runs.launcher.environment["OMP_NUM_THREADS"] = "3"
    runs.train("--name", "it's")
    del runs.launcher.environment["OMP_NUM_THREADS"]
    dry = runs.ask("rerun", "1", "--dry-run").stdout.splitlines()
    assert dry[0] == f"cd {runs.launcher.folder}" and "export OMP_NUM_THREADS=3" in dry
    assert dry[-1] == f"taas-run --nproc-per-node 2 {runs.script} --name 'it'\\''s'"
    elsewhere = runs.launcher.folder / "elsewhere"
    elsewhere.mkdir()
    done = runs.ask("rerun", "1", "--output", "../taas-runs", before=("env", "-C", elsewhere))
    assert done.returncode == 0 and "run 1 (" in done.stderr and " again: taas-run --nproc-per-node 2 " in done.stderr
    again = runs.list()[0]
    assert again["number"] == 2 and "OMP_NUM_THREADS=3" in again["record"]["environment"]
    assert json.loads(runs.ask("diff", "1", "2", "--json").stdout)["differences"].keys() <= {"command"}  # its first word


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to somebody else")
def test_what_somebody_else_ran_is_not_run_unseen(runs):
    runs.train()
    os.chown(runs.folder(1) / "journal.jsonl", 54321, 54321)
    refused = runs.ask("rerun", "1")
    assert refused.returncode == 2 and "--dry-run shows what would be started" in refused.stderr and len(runs.list()) == 1
    assert runs.ask("rerun", "1", "--dry-run").returncode == 0


def test_logs_are_followed_over_a_restart(runs):
    process = runs.start("once", flags=("--max-restarts", "1"))
    wait_until(lambda: (runs.launcher.folder / "came").exists(), "the rank is there")
    follower = subprocess.Popen([TAAS_RUN, "logs", "-f", "-r", "1", "--stdout"], cwd=runs.launcher.folder,
                                env=runs.launcher.environment, stdout=subprocess.PIPE, text=True)
    assert follower.stdout.readline() == "==> generation-0/rank-0001.out <==\n"
    assert follower.stdout.readline() == "rank 1 of generation 0: ['once']\n"
    (runs.launcher.folder / "go").touch()
    rest = follower.communicate(timeout=DEADLINE_SECONDS)[0]
    assert rest == "\n==> generation-1/rank-0001.out <==\nrank 1 of generation 1: ['once']\n"
    assert follower.returncode == 0 and process.wait() == 0
    only = runs.ask("logs", "1", "-r", "1", "-g", "0", "--stdout")
    assert only.stdout == "rank 1 of generation 0: ['once']\n"
    missing = runs.ask("logs", "-r", "5")
    assert missing.returncode == 2 and "rank 5 has no log files in" in missing.stderr


@pytest.mark.parametrize("log_dir", [False, True])
def test_whoever_comes_late_sees_the_last_lines_and_what_follows_to_the_end(runs, log_dir):
    script = runs.launcher.python("import os, pathlib, sys, time\n"
                                  "for i in range(100): print('line', i, flush=True)\n"
                                  "pathlib.Path('there').touch()\n"
                                  "while not pathlib.Path('go').exists(): time.sleep(0.01)\n"
                                  "print('the end', os.environ['RANK'], flush=True)\n"
                                  "sys.exit(3 if os.environ['RANK'] == '1' else 0)\n")
    run = runs.launcher.start("--nproc-per-node", "2", *(["--log-dir", "logs"] if log_dir else []), script)
    wait_until(lambda: (runs.launcher.folder / "there").exists(), "the ranks have printed")
    wait_until(lambda: "line 99" in runs.ask("logs", "-r", "1").stdout, "their lines are in the files")
    late = runs.launcher.start("attach", "-r", "1")
    seen = []
    while "line 99\n" not in seen:
        seen.append(late.stdout.readline())
    assert seen[-10:] == [f"line {i}\n" for i in range(90, 100)] and "line 89\n" not in seen
    (runs.launcher.folder / "go").touch()
    out, err = late.communicate(timeout=DEADLINE_SECONDS)
    assert "the end 1" in out and late.returncode == 3 and "control-C leaves it running" in err
    assert "rank 1 exited with code 3" in err
    run.communicate(timeout=DEADLINE_SECONDS)
    over = runs.ask("attach")
    assert over.returncode == 2 and "is not under way" in over.stderr and "taas-run logs" in over.stderr


def test_a_log_with_a_limit_is_followed_across_its_ends(runs):
    script = runs.launcher.python("import pathlib, time\n"
                                  "for i in range(2000):\n"
                                  "    print(f'line {i:04}', flush=True)\n"
                                  "    if i == 1000: pathlib.Path('there').touch()\n"
                                  "    while i == 1000 and not pathlib.Path('go').exists(): time.sleep(0.01)\n"
                                  "    if i % 50 == 0: time.sleep(0.01)\n")
    run = runs.launcher.start("--nproc-per-node", "1", "--log-limit", "4k", script)
    wait_until(lambda: (runs.launcher.folder / "there").exists(), "half of it is printed")
    wait_until(lambda: "line 1000" in runs.ask("logs").stdout, "it is in the files")
    follower = runs.launcher.start("logs", "-f", "--stdout")
    first = [follower.stdout.readline() for _ in range(2)]
    (runs.launcher.folder / "go").touch()
    out, _ = follower.communicate(timeout=DEADLINE_SECONDS)
    seen = [int(number) for number in re.findall(r"line (\d{4})\n", "".join(first) + out)]
    assert seen == sorted(set(seen)) and seen[-1] == 1999 and run.wait(DEADLINE_SECONDS) == 0
    folder = runs.launcher.run_folder() / "generation-0"
    assert (folder / "rank-0000.out").stat().st_size <= 4096 and (folder / "rank-0000.out.1").stat().st_size <= 4096
    assert runs.launcher.run("--log-limit", "much", script).returncode == 2


def test_one_of_two_runs_is_stopped(runs):
    processes = [runs.start("stay", which) for which in "ab"]
    wait_until(lambda: all((runs.launcher.folder / f"stays-{which}").exists() for which in "ab"), "both stay")
    assert [run["state"] for run in runs.list()] == ["running"] * 2
    unnamed = runs.ask("stop")
    assert unnamed.returncode == 2 and "several runs are under way; name one: " in unnamed.stderr
    number = next(run["number"] for run in runs.list() if run["record"]["command"][-1] == "a")
    assert "was told to stop" in runs.ask("stop", str(number)).stdout
    assert processes[0].wait(timeout=DEADLINE_SECONDS) == 128 + signal.SIGTERM
    assert [run["state"] for run in runs.list("--running")] == ["running"]
    again = runs.ask("stop", str(number))
    assert again.returncode == 2 and "is not under way on this machine" in again.stderr
    processes[1].terminate()
    processes[1].wait()


def test_a_run_whose_launcher_was_killed_is_lost(runs):
    process = runs.start("stay", "x")
    wait_until(lambda: (runs.launcher.folder / "stays-x").exists(), "the rank stays")
    assert runs.list()[0]["state"] == "running"
    subprocess.run(["pkill", "-KILL", "-P", str(process.pid)], check=True)
    process.kill()
    process.wait()
    wait_until(lambda: runs.list()[0]["state"] == "lost", "it is gone")
    assert "lost: its launcher was killed" in runs.ask("runs", "--failed").stdout


def test_old_runs_are_removed_and_nothing_that_somebody_may_need(runs):
    for arguments in [["1"], ["2", "write"], ["3"], ["4"]]:
        runs.train(*arguments)
    staged = runs.folder(3) / ".staging" / "kept.pt"
    in_copy = runs.folder(2) / "code-n1-0123" / "results.txt"  # of a node that had a copy of the code
    for left in staged, in_copy:
        left.parent.mkdir()
        left.touch()
    assert "1 run would be removed" in runs.ask("clean", "--keep", "1", "--dry-run").stdout
    assert len(runs.list()) == 4
    assert runs.ask("clean", "--keep", "1", "--older", "1h").stdout.startswith("0 runs removed")
    said = runs.ask("clean", "--keep", "1").stdout
    assert said.startswith("1 run removed, ")
    assert "2 with files that were not published stay" in said and staged.exists() and in_copy.exists()
    assert [run["number"] for run in runs.list()] == [4, 3, 2]
    in_copy.unlink()
    assert "1 with files that ranks wrote stay (--files)" in runs.ask("clean", "--keep", "1").stdout
    assert runs.ask("clean", "--keep", "1", "--files").stdout.startswith("1 run removed, 1.1 MB")
    assert [run["number"] for run in runs.list()] == [4, 3]
    assert sorted(path.name for path in (runs.launcher.folder / "taas-runs" / ".runs").iterdir()) == ["3", "4"]
    runs.train("5")
    assert runs.list()[0]["number"] == 5


def test_a_run_that_lives_is_never_removed(runs):
    process = runs.start("stay", "x")
    wait_until(lambda: (runs.launcher.folder / "stays-x").exists(), "the rank stays")
    wait_until(lambda: runs.list()[0]["state"] == "running", "it can be asked")
    assert runs.ask("clean", "--keep", "0", "--files").stdout.startswith("0 runs removed")
    process.terminate()
    process.wait()


def test_journals_of_older_releases_and_of_other_hosts_are_read(runs):
    folder = runs.launcher.folder / "taas-runs"
    old = folder / "20250101-120000-abcdef"
    old.mkdir(parents=True)
    (old / "journal.jsonl").write_text('{"t":0,"event":"run_started"}\n{"t":1,"event":"nodes_gathered","world_size":8}\n'
                                       '{"action":"finish","verdict":{"cause":"success","exit_code":0,"generation":2}}\n{"torn')
    other = folder / "20250102-120000-abcdef"
    other.mkdir()
    (other / "journal.jsonl").write_text('{"t":0,"event":"run_started","record":{"number":7,"host":"elsewhere","news":[1]}}\n')
    (folder / "notes").mkdir()
    first, second = runs.list()
    assert (first["number"], first["state"], first["record"]["host"]) == (7, "unknown", "elsewhere")
    assert (second["id"], second["state"], second["ranks"], second["restarts"]) == (old.name, "ended", 8, 2)
    refused = runs.ask("rerun", "20250101")
    assert refused.returncode == 2 and "is of a release that did not keep its command" in refused.stderr
    assert runs.ask("clean", "--keep", "0").stdout.startswith("1 run removed")  # not that of another host
    assert other.exists() and not old.exists() and (folder / "notes").exists()


@pytest.mark.parametrize("arguments, words", [
    (["show", "9"], "9: no such run; the newest are 1"),
    (["show", "--output", "nowhere"], "nowhere: no runs are there; --output names another folder"),
    (["logs", "--rank", "-1"], "logs: --rank: "),
    (["clean", "--older", "7 days"], "clean: --older 7 days: not an age such as 7d, 12h, 30m or 45s"),
    (["runs", "--failing"], "runs: --failing: no such option; did you mean --failed?"),
    (["stop"], "stop: no run of ./taas-runs is under way"),
    (["stop", "1"], "stop: run 1 ("),
    (["ls"], "ls: there is no such program here; `taas-run runs` lists runs"),
    (["status", "--all"], "status: there is no such program here; "),
])
def test_what_makes_no_sense_is_refused_in_a_line(runs, arguments, words):
    runs.train()
    done = runs.ask(*arguments)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith(f"taas-run: {words}") and done.stderr.count("\n") == 1
    assert len(runs.list()) == 1  # no run was begun for it


def test_a_program_of_such_a_name_is_the_program(runs):
    program = runs.launcher.folder / "show"
    program.write_text("print('mine')\n")
    done = runs.launcher.run("--nproc-per-node", "1", "show")
    assert done.returncode == 0 and "mine" in done.stdout
    assert "mine" in runs.launcher.run("show").stdout


def test_a_run_has_the_name_that_it_was_given(runs):
    runs.train(flags=("--name", "tiny"))
    runs.train()
    assert [run["record"]["name"] for run in runs.list()] == ["", "tiny"]
    folder = runs.folder(1)
    assert re.fullmatch(r"tiny-\d{8}-\d{6}-[0-9a-f]{6}", folder.name)
    assert (folder.parent / "latest-tiny").resolve() == folder and (folder.parent / "latest").resolve() != folder
    assert runs.ask("show", "tiny").stdout.startswith("run 1 (tiny-")
    for wrong in ["", "a/b", ".hidden", "a\nb"]:
        refused = runs.train(flags=("--name", wrong))
        assert refused.returncode == 2 and "not the name of a folder" in refused.stderr


def test_a_task_of_a_job_array_is_found_by_its_number(runs):
    runs.launcher.environment.update(SLURM_JOB_ID="26792921", SLURM_ARRAY_JOB_ID="26792918", SLURM_ARRAY_TASK_ID="2")
    runs.train(flags=("--standalone",))
    (run,) = runs.list()
    assert run["id"].startswith("26792918_2-") and run["record"]["job"]["array_task"] == "2"
    assert "job      26792918_2\n" in runs.ask("show", "26792918_2").stdout


def test_git_is_told_to_leave_runs_alone(runs):
    runs.train()
    assert (runs.launcher.folder / "taas-runs" / ".gitignore").read_text() == "*\n"
    (runs.launcher.folder / "mine").mkdir()
    runs.train(flags=("--output", "mine"))
    assert not (runs.launcher.folder / "mine" / ".gitignore").exists()
