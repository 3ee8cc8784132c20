"""Drives the real train program: alone, resumed, with two ranks, and with input that it must refuse in one line.

usage: program_test.py TRAIN CASE
"""

import filecmp
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from free_port import free_port

TINY = ("--train-images", "256", "--test-images", "128", "--threads", "1")


def environment(**more):
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("TAAS_", "TORCHELASTIC_"))}
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        inherited.pop(name, None)
    return inherited | more


def train(*options, code=0, **variables):
    done = subprocess.run(
        [TRAIN, *options], env=environment(**variables), capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == code, f"{options}: exit code {done.returncode}, not {code}\n{done.stdout}{done.stderr}"
    return done


def refused(*options, code, saying, **variables):
    text = train(*options, code=code, **variables).stderr
    assert text.count("\n") == 1 and saying in text, f"expected one line with '{saying}', got:\n{text}"


def alone(folder):
    done = train(*TINY, "--epochs", "1", "--check-equal")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("training on 1 rank "), lines
    assert any(line.startswith("epoch 1/1 step 4/4 loss ") and line.endswith(" samples/s") for line in lines), lines
    assert lines[-2].startswith("total time ") and lines[-2].endswith("/128)"), lines
    assert lines[-1] == "parameters equal on all 1 ranks", lines
    assert not os.listdir(folder), "wrote a checkpoint without being asked to"


def learns(folder):
    train("--train-images", "1500", "--test-images", "300", "--epochs", "3", "--target-accuracy", "90")
    train(*TINY, "--epochs", "1", "--target-accuracy", "100", code=3)


def resume(folder):
    """Two epochs at once and one, then one more: the same bytes."""
    straight, parts = os.path.join(folder, "straight"), os.path.join(folder, "parts")
    train(*TINY, "--epochs", "2", "--output", straight)
    train(*TINY, "--epochs", "1", TAAS_OUTPUT_DIR=parts)
    first = os.path.join(parts, "checkpoint.pt")
    assert os.listdir(parts) == ["checkpoint.pt"], os.listdir(parts)
    assert not filecmp.cmp(os.path.join(straight, "checkpoint.pt"), first, shallow=False)
    done = train(*TINY, "--epochs", "2", TAAS_OUTPUT_DIR=parts, TORCHELASTIC_RESTART_COUNT="1")
    assert f"going on from {first}" in done.stdout and "epoch 1/2" not in done.stdout, done.stdout
    assert filecmp.cmp(os.path.join(straight, "checkpoint.pt"), first, shallow=False), "the resumed run differs"
    done = train(*TINY, "--epochs", "2", f"--resume={first}")
    assert "epoch" not in done.stdout and "accuracy" in done.stdout, done.stdout


def logs(folder):
    """What TAAS_LOG turns on is in TAAS_LOG_DIR, and a wish that is none is refused in one line."""
    wish = {"TAAS_LOG": "training=info", "TAAS_LOG_DIR": os.path.join(folder, "log")}
    train(*TINY, "--epochs", "1", "--output", folder, **wish)
    (name,) = os.listdir(wish["TAAS_LOG_DIR"])
    assert name.startswith("rank-0-"), name
    with open(os.path.join(wish["TAAS_LOG_DIR"], name), encoding="utf-8") as file:
        text = file.read()
    assert " info training: rank 0 of 1, local rank 0" in text and "checkpoint.pt, " in text, text
    refused(*TINY, code=2, saying="TAAS_LOG: loud: not a level of the log", TAAS_LOG="loud")


def stopped(folder):
    """Told to stop within an epoch it writes a checkpoint; going on from there gives the bytes of an unstopped run."""
    straight, parts = os.path.join(folder, "straight"), os.path.join(folder, "parts")
    wish = os.path.join(folder, "stop-requested")
    long = ("--train-images", "1024", "--test-images", "64", "--batch-size", "2", "--threads", "1", "--epochs", "1")
    train(*long, "--output", straight)
    open(wish, "w", encoding="utf-8").close()
    run = subprocess.Popen(
        [TRAIN, *long],
        env=environment(TAAS_OUTPUT_DIR=parts, TAAS_STOP_REQUESTED=wish),
        stdout=subprocess.PIPE,
        text=True,
    )
    told = next(line for line in run.stdout if "on demand" in line)
    assert told == "checkpoint written on demand after step 1\n", told
    run.send_signal(signal.SIGTERM)
    rest = run.communicate(timeout=240)[0]
    assert run.returncode == 128 + signal.SIGTERM and "on demand after step" in rest, (run.returncode, rest)
    train(*long, TAAS_OUTPUT_DIR=parts, TORCHELASTIC_RESTART_COUNT="1")
    same = filecmp.cmp(os.path.join(straight, "checkpoint.pt"), os.path.join(parts, "checkpoint.pt"), shallow=False)
    assert same, "the resumed run differs"


def two_ranks(folder):
    shared = environment(WORLD_SIZE="2", LOCAL_WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()))
    ranks = [
        subprocess.Popen(
            [TRAIN, *TINY, "--epochs", "1", "--check-equal", "--output", folder],
            env=shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    outputs = [rank.communicate(timeout=240)[0] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0], outputs
    assert "step 2/2" in outputs[0] and "parameters equal on all 2 ranks" in outputs[0], outputs
    assert outputs[1] == "", "only rank 0 speaks"
    assert os.listdir(folder) == ["checkpoint.pt"]


def wrong_input(folder):
    broken = os.path.join(folder, "checkpoint.pt")
    with open(broken, "w", encoding="utf-8") as file:
        file.write("not a checkpoint")
    refused("--nonsense", code=2, saying="--nonsense")
    refused("--data", folder, code=2, saying=folder)
    refused("--resume=/no/such.pt", code=2, saying="/no/such.pt")
    refused(*TINY, f"--resume={broken}", code=1, saying=broken)
    refused(*TINY, "--output", broken, code=2, saying=broken)
    refused("--train-images", "1", "--test-images", "1", code=2, saying="images")
    refused(*TINY, code=2, saying="RANK", WORLD_SIZE="2")


if __name__ == "__main__":
    TRAIN = sys.argv[1]
    with tempfile.TemporaryDirectory() as scratch:
        cases = (alone, learns, resume, logs, stopped, two_ranks, wrong_input)
        {case.__name__: case for case in cases}[sys.argv[2]](scratch)
