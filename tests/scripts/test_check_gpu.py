"""What needs no GPU in scripts/check-gpu: its list, its words without one, how it reads others' output, its report."""

import os
import re
import subprocess
import sys

import pytest
from conftest import DEADLINE_SECONDS, ROOT

sys.path.insert(0, str(ROOT / "scripts"))

from check_gpu import __main__ as command  # noqa: E402
from check_gpu import build, faults, machine, report, seen, several, sharing, speed  # noqa: E402
from check_gpu.result import CHECKS, GREEN, RED, SKIPPED, Check, Red, Result, Seen, Skip  # noqa: E402
from check_gpu.session import Finished, Session  # noqa: E402

TWO_GPUS = """0, NVIDIA H100 80GB HBM3, GPU-1a2b, 81559, 580.65.06
1, NVIDIA H100 80GB HBM3, GPU-3c4d, 81559, 580.65.06
"""


def run(*arguments, **variables):
    return subprocess.run(
        [ROOT / "scripts" / "check-gpu", *arguments],
        text=True,
        capture_output=True,
        timeout=DEADLINE_SECONDS,
        env=os.environ | variables,
    )


@pytest.fixture
def no_gpu(tmp_path):
    """A PATH whose nvidia-smi finds no driver, as in a container without GPUs."""
    program = tmp_path / "nvidia-smi"
    program.write_text(
        '#!/bin/sh\necho "NVIDIA-SMI has failed because it couldn\'t communicate with the NVIDIA driver."\nexit 9\n'
    )
    program.chmod(0o755)
    return f"{tmp_path}:{os.environ['PATH']}"


@pytest.fixture
def session(tmp_path):
    return Session(1, tmp_path, sys.executable, tmp_path, 1)


def test_the_list_has_every_check_once_with_what_it_shows():
    done = run("--list")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == len(CHECKS) == len({check.name for check in CHECKS})
    known = seen.read()
    assert all(re.match(r".{18} (not seen green yet|green 20..-..-.. on .*): ", line) for line in lines)
    assert sum("not seen green yet" in line for line in lines) == len(CHECKS) - len(known)
    assert any(line.startswith("hang ") and "is named" in line for line in lines)
    assert any(line.startswith("bus bandwidth ") and line.endswith("(2 GPUs)") for line in lines)


def test_what_was_green_is_recorded_and_what_was_not_leaves_what_was_known(tmp_path):
    file = tmp_path / "seen.json"
    file.write_text('{"two": "2026-01-01 on another machine"}')
    checks = [Check(name, "shows it", None) for name in ("one", "two", "three")]
    results = [Result(check, state, "") for check, state in zip(checks, (GREEN, RED, SKIPPED))]
    seen.record(
        results,
        machine.parse_gpus(TWO_GPUS),
        machine.Versions("2.15.0", "13", "2.30.7", 2, "nccl2"),
        "a",
        "2026-11-29",
        file,
    )
    assert [seen.line(check, seen.read(file)) for check in checks] == [
        "one                green 2026-11-29 on 2 × NVIDIA H100 80GB HBM3, torch 2.15.0, NCCL 2.30.7 (nccl2), "
        "commit a: shows it",
        "two                green 2026-01-01 on another machine: shows it",
        "three              not seen green yet: shows it",
    ]


def test_the_versions_of_this_interpreter_s_torch_say_what_nccl_is(monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.delenv("TORCH_DIST_USE_NCCL2", raising=False)
    assert machine.versions(sys.executable).backend == "nccl2"
    monkeypatch.setenv("TORCH_DIST_USE_NCCL2", "0")
    assert machine.versions(sys.executable).backend == "ProcessGroupNCCL"


def test_without_a_gpu_one_line_and_nothing_is_built(no_gpu, tmp_path):
    done = run(PATH=no_gpu, TAAS_BUILD=str(tmp_path / "build"))
    assert done.returncode == 2 and done.stdout == ""
    assert (
        done.stderr.count("\n") == 1
        and "there is no NVIDIA GPU to check: nvidia-smi says: NVIDIA-SMI has failed" in done.stderr
    )
    assert not (tmp_path / "build").exists()


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--only", "hang,speed"], "there is no check 'speed': --list names them"),
        (["--repeats", "0"], "--repeats must be 1 or more, not 0"),
        (["--gpus", "-1"], "--gpus must be 1 or more, not -1"),
    ],
)
def test_a_wrong_call_is_refused(arguments, words):
    done = run(*arguments)
    assert done.returncode == 2 and words in done.stderr and "Traceback" not in done.stderr


def test_gpus_are_read_from_nvidia_smi():
    gpus = machine.parse_gpus(TWO_GPUS + "No devices were found\n3, GB10, GPU-5e6f, [N/A], 580.65.06\n")
    assert [(gpu.index, gpu.name, gpu.mebibytes) for gpu in gpus] == [
        (0, "NVIDIA H100 80GB HBM3", 81559),
        (1, "NVIDIA H100 80GB HBM3", 81559),
        (3, "GB10", 0),
    ]
    assert gpus[1].uuid == "GPU-3c4d" and gpus[1].driver == "580.65.06"


def test_bus_bandwidth_is_counted_as_nccl_tests_count_it():
    table = """#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
  1073741824     268435456     float     sum      -1   4000.0  268.44  469.76      0   4010.0  267.77  468.59      0
# Avg bus bandwidth    : 469.176
"""  # noqa: E501
    theirs = several.parse_nccl_tests(table)
    assert theirs == {1 << 30: 469.76}
    assert several.bus_bandwidth(1 << 30, 4e-3, 8) == pytest.approx(theirs[1 << 30], rel=1e-3)


def test_outcomes_are_read_from_ctest():
    said = """    Start  9: training.nccl_on_gpus
1/3 Test  #9: training.nccl_on_gpus ..................   Passed    3.79 sec
2/3 Test #61: training.trained_on_gpus .........***Skipped   0.61 sec
3/3 Test #62: python.device_gpu .......***Failed    2.00 sec
"""
    assert sharing.parse_ctest(said) == {
        "training.nccl_on_gpus": "Passed",
        "training.trained_on_gpus": "Skipped",
        "python.device_gpu": "Failed",
    }


def test_rates_of_an_epoch_are_those_at_its_end_but_not_of_the_first():
    ours = Finished(
        0,
        "epoch 1/3 step 125/125 loss 0.9 9000 samples/s\nepoch 2/3 step 60/125 loss 0.5 100 samples/s\n"
        "epoch 2/3 step 125/125 loss 0.4 28000 samples/s\nepoch 3/3 step 125/125 loss 0.3 33000 samples/s\n",
        "",
        0,
        1,
    )
    assert speed.epoch_rates(ours) == [28000, 33000]
    assert speed.epoch_rates(Finished(0, "9000 samples/s\n23000 samples/s\n", "", 0, 1)) == [23000]


def test_instants_are_found_behind_the_prefix_of_a_rank():
    done = Finished(0, "[rank 1] FAULT 100.250\n[rank 0] FIRST 0 90.000\n[rank 1] FIRST 0 90.500\n", "", 80, 110)
    assert faults.instants(done, "FIRST 0") == [90.0, 90.5] and faults.fault_time(done) == 100.25
    with pytest.raises(Red, match="the fault did not happen"):
        faults.fault_time(Finished(0, "", "", 0, 1))


def outcome(run_one, session, gpus=1):
    return command.run_check(Check("one", "something", run_one, gpus), session)


def test_whatever_a_check_does_is_one_result(session):
    def red(_):
        raise Red("too slow", "| a |")

    def lacks(_):
        raise Skip("no lightning")

    assert outcome(lambda _: Seen("0.4 s"), session).state == GREEN
    assert (outcome(red, session).state, outcome(red, session).details) == (RED, "| a |")
    assert (outcome(lacks, session).state, outcome(lacks, session).seen) == (SKIPPED, "no lightning")
    assert outcome(lambda _: Seen("never run"), session, gpus=2).seen == "needs 2 GPUs"
    broken = outcome(lambda _: {}["key"], session)
    assert broken.state == RED and "the check itself failed: KeyError" in broken.seen


def test_the_report_can_be_pasted_and_says_what_ran_on_what():
    check = Check("hang", "is named", lambda _: None)
    results = [
        Result(check, GREEN, "1.2 s", seconds=31),
        Result(check, RED, "a | b\nc", "```\nlast words\n```"),
        Result(check, SKIPPED, "needs 2 GPUs"),
    ]
    text = report.render(
        results,
        machine.parse_gpus(TWO_GPUS),
        machine.Versions("2.15.0+cu132", "13.2", "2.30.7", 2),
        "Debian 13",
        "abc1234",
        "GPU0 X NV18",
        "2026-11-22",
    )
    assert text.startswith("# GPU check, 2026-11-22: 1 green, 1 red, 1 skipped\n")
    for words in (
        "2 × NVIDIA H100 80GB HBM3 (80 GiB)",
        "580.65.06",
        "2.15.0+cu132",
        "2.30.7",
        "abc1234",
        "GPU0 X NV18",
    ):
        assert words in text
    assert "| 🔴 | hang | is named | a \\| b c | 0 |" in text and "## hang\n\n```\nlast words\n```" in text
    assert report.exit_code(results) == 1 and report.exit_code(results[:1] + results[2:]) == 0


def test_ranks_share_gpus_where_there_are_too_few(session):
    assert session.shape(1) == ["--gpus", "1"] and session.shape(8) == ["--gpus", "8", "--oversubscribe"]


def test_a_program_that_hangs_is_ended_with_what_it_has_started(session):
    with pytest.raises(Red, match="not through after 1 s"):
        session.run("sh", "-c", "sleep 600 & wait", limit=1)


def test_the_environment_is_free_of_what_a_launcher_left(session, monkeypatch):
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("NCCL_HOSTID", "other")
    environment = session.environment({"FAULT": "kill@1@10"})
    assert "RANK" not in environment and "NCCL_HOSTID" not in environment and environment["FAULT"] == "kill@1@10"


def test_what_is_not_built_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("TAAS_BUILD", str(tmp_path))
    assert build.missing() == list(build.PROGRAMS)


@pytest.fixture
def with_gpus(tmp_path):
    """A PATH whose nvidia-smi knows two GPUs."""
    (tmp_path / "gpus").write_text(TWO_GPUS)
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\ncat {tmp_path}/gpus\n")
    program.chmod(0o755)
    return f"{tmp_path}:{os.environ['PATH']}"


def test_a_machine_with_gpus_and_nothing_built_says_what_to_do(with_gpus, tmp_path):
    done = run("--no-build", PATH=with_gpus, TAAS_BUILD=str(tmp_path / "build"))
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert (
        "not built: taas-run, train, nccl_gpu_test, dist_rank, training_gpu_test, ddp_parity; leave --no-build out"
        in done.stderr
    )
