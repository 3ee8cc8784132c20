"""Twenty things that people want of their runs after a day, each done by commands alone over real runs."""

import json
import os
import pathlib
import re
import signal

import pytest

from conftest import DEADLINE_SECONDS, Launcher, wait_until

TRAIN = """
import os, pathlib, sys, time
rank, start = int(os.environ["RANK"]), os.environ["TORCHELASTIC_RESTART_COUNT"]
print(f"start {start}: rank {rank} {sys.argv[1:]}", flush=True)
if "nan" in sys.argv and rank == 1:
    raise FloatingPointError("loss is nan")
if "fails" in sys.argv and rank == 5 and start in "01":
    sys.exit(f"rank 5 gives up in start {start}")
if "save" in sys.argv and rank == 0:
    pathlib.Path(os.environ["TAAS_OUTPUT_DIR"], "model.pt").write_bytes(bytes(3_000_000))
if "stays" in sys.argv:
    pathlib.Path(f"{sys.argv[-1]}-{rank}").touch()
    while not pathlib.Path(f"{sys.argv[-1]}-may-end").exists():
        time.sleep(0.01)
"""


def last_word(run: dict) -> str:
    """Of its command; of a run that has only begun, there may be none yet."""
    return [None, *run["record"]["command"]][-1]


class Day:
    """A folder of runs: 1 is the run with lr 0.1, 2 one that failed, 3 one with restarts over two nodes, 4 one that saved."""

    def __init__(self, folder: pathlib.Path):
        self.launcher = Launcher(folder)
        self.folder = folder
        self.script = self.launcher.python(TRAIN)
        for flags, arguments, code in [
            ([], ["--lr", "0.1"], 0),
            ([], ["--lr", "0.5", "nan"], 1),
            (["--nnodes", "2", "--nproc-per-node", "3", "--max-restarts", "2"], ["fails"], 0),
            (["--name", "digits"], ["--lr", "0.2", "save"], 0),
        ]:
            done = self.train(*flags, arguments=arguments)
            assert done.returncode == code, done.stderr

    def train(self, *flags, arguments=(), env=None):
        size = [] if "--nproc-per-node" in flags else ["--gpus", 2]
        return self.launcher.run(*size, *flags, self.script, *arguments, env=env)

    def start(self, *arguments):
        """A run that stays until the test lets it end; its folder's name."""
        process = self.launcher.start("--gpus", 2, self.script, *arguments)
        wait_until(lambda: (self.folder / f"{arguments[-1]}-1").exists(), "its ranks run")
        (name,) = [run["id"] for run in self.runs("--running") if last_word(run) == arguments[-1]]
        return process, name

    def let_end(self, name):
        (self.folder / f"{name}-may-end").touch()

    def say(self, *arguments, **options) -> str:
        done = self.launcher.run(*arguments, **options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def runs(self, *arguments) -> list:
        return json.loads(self.say("runs", "--json", *arguments))["runs"]


@pytest.fixture(scope="module")
def day(tmp_path_factory):
    made = Day(tmp_path_factory.mktemp("day"))
    yield made
    made.launcher.end_all()


def test_01_what_ran_today(day):
    page = day.say("runs", "--all").splitlines()
    assert page[0].split()[:2] == ["#", "when"] and [line.split()[0] for line in page[-4:]] == ["4", "3", "2", "1"]


def test_02_the_last_failure(day):
    (line,) = day.say("runs", "--failed", "-n", 1).splitlines()[1:]
    assert line.split()[0] == "2" and "rank 1: FloatingPointError" in line


def test_03_the_run_with_lr_01(day):
    assert [run["number"] for run in day.runs("--with", "--lr 0.1")] == [1]


def test_04_what_happened_in_a_run(day):
    page = day.say("show", 3)
    assert page.startswith("run 3 (") and page.index("generation 0 starts") < page.index("generation 2 starts")


def test_05_what_a_rank_printed(day):
    assert "start 0: rank 1 ['--lr', '0.1']" in day.say("logs", 1, "-r", 1)


def test_06_what_it_said_before_it_failed(day):
    said = day.say("logs", 2, "-r", 1, "--stderr")
    assert said.rstrip().endswith("FloatingPointError: loss is nan") and "start 0" not in said


def test_07_rank_5_through_two_restarts_over_two_nodes(day):
    said = day.say("logs", 3, "-r", 5)
    assert [f"start {i}: rank 5" in said for i in range(4)] == [True, True, True, False]
    assert re.findall(r"rank 5 gives up in start (\d)", said) == ["0", "1"]


def test_08_the_same_while_it_runs(day):
    run = day.launcher.start("--nnodes", 2, "--nproc-per-node", 3, "--max-restarts", 2, day.script, "fails", "stays", "followed")
    wait_until(lambda: any(last_word(run) == "followed" for run in day.runs("--running")), "it is listed")
    follower = day.launcher.start("logs", "-f", "-r", 5)
    wait_until(lambda: (day.folder / "followed-5").exists(), "its third start is there")
    day.let_end("followed")
    out, _ = follower.communicate(timeout=DEADLINE_SECONDS)
    assert re.findall(r"start (\d): rank 5", out) == ["0", "1", "2"] and run.wait(DEADLINE_SECONDS) == 0


def test_09_what_runs_now_and_how_it_is(day):
    process, name = day.start("stays", "seen")
    assert [run["id"] for run in day.runs("--running")] == [name]
    wait_until(lambda: "2 ranks" in day.launcher.run("look", name).stdout, "it answers")
    day.let_end("seen")
    assert process.wait(DEADLINE_SECONDS) == 0


def test_10_one_of_two_runs_is_stopped(day):
    (one, first), (other, second) = day.start("stays", "one"), day.start("stays", "other")
    assert day.launcher.run("stop").returncode == 2  # which one?
    day.say("stop", first)
    assert one.wait(DEADLINE_SECONDS) == 128 + signal.SIGTERM and other.poll() is None
    assert [run["id"] for run in day.runs("--running")] == [second]
    day.let_end("other")
    assert other.wait(DEADLINE_SECONDS) == 0


def test_11_who_comes_late_sees_it_to_its_end(day):
    process, name = day.start("stays", "late")
    attached = day.launcher.start("attach", name)
    assert "start 0: rank 0" in attached.stdout.readline() + attached.stdout.readline()
    day.let_end("late")
    assert attached.wait(DEADLINE_SECONDS) == 0 and process.wait(DEADLINE_SECONDS) == 0


def test_12_a_run_is_repeated(day):
    assert "start 0: rank 0 ['--lr', '0.1']" in day.say("rerun", 1)
    again, first = [run["record"]["command"][1:] for run in day.runs("--with", "--lr 0.1", "--all")]
    assert again == first


def test_13_what_differs_between_two_runs(day):
    page = day.say("diff", 1, 2)
    assert "0.1" in page and "0.5" in page and "nan" in page


def test_14_how_much_could_be_freed(day):
    count = len(day.runs("--all"))
    page = day.say("clean", "--keep", 1, "--dry-run", "--files")
    assert "would be removed" in page and re.search(r"\d MB", page) and len(day.runs("--all")) == count


def test_15_old_runs_go_and_saved_models_stay(day):
    folder = pathlib.Path(day.runs("--with", "save", "--all")[0]["folder"])
    day.say("clean", "--keep", 3)
    assert (folder / "output/model.pt").exists() and not any(run["number"] == 2 for run in day.runs("--all"))


def test_16_a_breakpoint_in_rank_3_of_4(day):
    script = day.folder / "stops.py"
    script.write_text("import os\nvalue = int(os.environ['RANK']) * 7\nif value == 21: breakpoint()\n")
    typed = day.folder / "typed"
    typed.write_text("p value\nc\n")
    with open(typed) as keys:
        assert "21" in day.say("--nproc-per-node", 4, "--debug-rank", 3, script, stdin=keys)


def test_17_where_an_array_task_wrote(day):
    task = {"SLURM_JOB_ID": "26792920", "SLURM_ARRAY_JOB_ID": "26792918", "SLURM_ARRAY_TASK_ID": "2"}
    assert day.train("--standalone", arguments=["array"], env=task).returncode == 0
    (folder,) = (day.folder / "taas-runs").glob("26792918_2-*")
    assert [run["id"] for run in day.runs("--with", "array")] == [folder.name]


def test_18_the_newest_run_of_a_name(day):
    assert (day.folder / "taas-runs/latest-digits").resolve().name.startswith("digits-")


def test_19_what_a_run_was_started_with(day):
    (run,) = day.runs("--with", "save", "--all")
    record = json.loads(day.say("show", run["id"], "--json"))["run"]["record"]
    assert record["command"][-3:] == ["--lr", "0.2", "save"] and record["folder"] == str(day.folder)
    assert record["versions"]["python"].count(".") >= 1 and record["user"] and record["started"].endswith("Z")


def test_20_a_launcher_that_was_killed_leaves_a_run_that_is_lost(day):
    process, name = day.start("stays", "lost")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    wait_until(lambda: {run["id"]: run["state"] for run in day.runs("--all")}[name] == "lost", "it is lost")
