"""Command lines that nearly say what was meant: one line, exit code 2, what was meant, and no run."""

import pytest


@pytest.mark.parametrize("arguments, words", [
    (["-n", "2", "train.py"], "-n is mpirun's: --gpus N is the number of ranks in all, --nproc-per-node N that of each node"),
    (["-np", "2", "train.py"], "-np is mpirun's: --gpus N is the number of ranks in all"),
    (["-np2", "train.py"], "-np2 is mpirun's: --gpus N"),
    (["-ppn", "2", "train.py"], "-ppn is mpirun's: use --nproc-per-node N"),
    (["--ntasks=4", "train.py"], "--ntasks is srun's: --gpus N"),
    (["--gpu", "8", "train.py"], "--gpu: is short for more than one option: --gpus, --gpus-per-node; did you mean --gpus?"),
    (["--gpsu", "8", "train.py"], "did you mean --gpus?"),
    (["--lr", "0.1", "train.py"], "--lr: no such option of taas-run; options of train.py stand behind it: train.py --lr 0.1"),
    (["--lr=0.1", "-m", "train"], "--lr: no such option of taas-run; options of train stand behind it: -m train --lr=0.1"),
    (["--color", "alwasy", "train.py"], "not one of auto, always, never; did you mean always?"),
    (["--framework", "deepsped", "train.py"], "did you mean deepspeed?"),
    (["--rank-output", "privat", "train.py"], "did you mean private?"),
    (["trian"], "did you mean train?"),
    (["trian.py"], "trian.py: no such file; did you mean train.py?"),
    (["src/trian.py"], "src/trian.py: no such file; did you mean src/train.py?"),
    (["trian.py", "--lr", "0.1"], "did you mean train.py?"),
    (["main"], "did you mean main.py?"),
    (["shwo", "3"], "did you mean show?"),
    (["devcies"], "did you mean devices?"),
    (["chekc", "train.py"], "did you mean check?"),
    (["lgos", "-f"], "did you mean logs?"),
    (["logs", "--folow"], "logs: --folow: no such option; did you mean --follow?"),
    (["look", "--wacth"], "look: --wacth: no such option; did you mean --watch?"),
    (["token", "now"], "token: now: one word too many; taas-run token --help says what it takes"),
])
def test_it_is_told_what_was_meant(launcher, arguments, words):
    (launcher.folder / "src").mkdir()
    for name in ("train.py", "main.py", "src/train.py"):
        (launcher.folder / name).write_text("print('ran')\n")
    result = launcher.run(*arguments)
    assert result.returncode == 2, result
    assert words in result.stderr and result.stderr.count("\n") == 1 and result.stderr.startswith("taas-run: "), result.stderr
    assert result.stdout == "" and not (launcher.folder / "taas-runs").exists()


def test_what_is_near_nothing_is_only_not_there(launcher):
    (launcher.folder / "train.py").write_text("print('ran')\n")
    result = launcher.run("evaluate.py")
    assert (result.returncode, result.stderr) == (127, "taas-run: evaluate.py: no such file\n")


def test_a_file_with_a_hostile_name_is_shown_as_one_word(launcher):
    (launcher.folder / "trai;n.py").write_text("")
    result = launcher.run("train.py")
    assert result.stderr == "taas-run: train.py: no such file; did you mean 'trai;n.py'?\n"


def test_programs_in_the_path_come_first(launcher):
    result = launcher.run("--nproc-per-node", 1, "echo", "hi")
    assert (result.returncode, result.stdout) == (0, "hi\n")


@pytest.mark.parametrize("arguments", [["--nproc", "1"], ["--nproc_per_node=1"], ["--np", "1"], ["--max_r", "0", "--nproc-per-node", "1"],
                                       ["--nnodes=1", "--standalone", "--nproc", "1"], ["-t3", "--nproc", "1"]])
def test_what_torchrun_accepts_is_accepted(launcher, arguments):
    result = launcher.run(*arguments, launcher.python("print('ran')"))
    assert result.returncode == 0 and result.stdout == "ran\n", result


def test_the_help_fits_a_screen_and_names_the_rest(launcher):
    short = launcher.run("--help").stdout
    assert len(short.splitlines()) <= 24 and max(map(len, short.splitlines())) <= 80
    assert "taas-run --help all" in short
    for command in ("devices", "token", "look", "check", "runs"):
        assert f"taas-run {command}" in short
    whole = launcher.run("--help", "all").stdout
    assert "--monitor-interval SECONDS" in whole and whole == launcher.run("help", "all").stdout
    assert "--monitor-interval" not in short and short == launcher.run("help").stdout


@pytest.mark.parametrize("command", ["look", "top", "runs", "show", "logs", "stop", "rerun", "diff", "clean", "devices", "token"])
def test_each_command_has_help(launcher, command):
    told = launcher.run("help", command)
    assert told.returncode == 0 and f"taas-run {command}" in told.stdout and "--json" in told.stdout
    assert told.stdout == launcher.run(command, "--help").stdout
