"""What the launcher adds for frameworks: variables for some ranks, .deepspeed_env, TF_CONFIG, defaults tools read."""

import importlib.util
import json
import pathlib

import pytest

from conftest import need

DUMP = (
    "import json, os, pathlib, sys\n"
    "path = pathlib.Path(os.environ['REPORTS'], os.environ['RANK'] + '.json')\n"
    "path.write_text(json.dumps({**os.environ, 'argv': sys.argv[1:]}))\n"
)


@pytest.fixture
def script(runner):
    path = runner.folder / "dump.py"
    path.write_text(DUMP)
    return path


def told(runner, script, *options, ranks=2, arguments=(), **variables) -> list[dict]:
    result = runner.taas_run("--nproc-per-node", ranks, *options, script, *arguments, **variables)
    return runner.reported(result, ranks)


def test_variables_for_rank_0_and_for_the_others(runner, script):
    first, *others = told(
        runner,
        script,
        "--env",
        "NCCL_DEBUG=INFO",
        "--env",
        "WANDB_MODE=dryrun",
        "--rank0-env",
        "WANDB_MODE=online",
        "--rank0-env",
        "NOTE=a=b c",
        "--other-ranks-env",
        "WANDB_MODE=disabled",
        ranks=3,
        WANDB_MODE="offline",
    )
    assert (first["WANDB_MODE"], first["NOTE"]) == ("online", "a=b c")
    assert [(other["WANDB_MODE"], "NOTE" in other) for other in others] == [("disabled", False)] * 2
    assert {each["NCCL_DEBUG"] for each in (first, *others)} == {"INFO"}


@pytest.mark.parametrize(
    "option, value, complaint",
    [
        ("--rank0-env", "NAME", "not NAME=value"),
        ("--rank0-env", "=x", "not NAME=value"),
        ("--env", "A", "not NAME=value"),
        ("--other-ranks-env", "2X=1", "not NAME=value"),
        ("--rank0-env", "RANK=1", "RANK is what taas-run tells each rank"),
        ("--other-ranks-env", "TORCHELASTIC_RUN_ID=x", "TORCHELASTIC_RUN_ID is what"),
        ("--framework", "horovod", "not one of torch"),
    ],
)
def test_a_wrong_value_is_refused_in_one_line(runner, script, option, value, complaint):
    result = runner.taas_run(option, value, script)
    assert result.returncode == 2
    assert complaint in result.stderr and option in result.stderr and len(result.stderr.splitlines()) == 1


def test_defaults_that_tools_read(runner, script):
    first, second = told(runner, script, "--rdzv-id", "job7")
    run = runner.folder / "taas-runs" / "job7"
    for each in (first, second):
        assert each["WANDB_RUN_GROUP"] == "job7"
        assert (each["TORCH_FR_BUFFER_SIZE"], each["TORCH_NCCL_DUMP_ON_TIMEOUT"]) == ("2000", "1")
        assert each["TORCH_FR_DUMP_TEMP_FILE"] == f"{run}/generation-0/flight-record-"


def test_names_of_the_flight_recorder_are_torchs():
    need("torch")
    folder = pathlib.Path(importlib.util.find_spec("torch").origin).parent
    library = (folder / "lib" / "libtorch_cpu.so").read_bytes()
    for name in (b"TORCH_FR_BUFFER_SIZE", b"TORCH_FR_DUMP_TEMP_FILE", b"TORCH_NCCL_DUMP_ON_TIMEOUT"):
        assert b"\0" + name + b"\0" in library, name


def test_deepspeeds_variables_and_local_rank(runner, script):
    home = runner.folder / "home"
    home.mkdir()
    (home / ".deepspeed_env").write_text("FROM=home\nHOME_ONLY=1\n")
    (runner.folder / ".deepspeed_env").write_text("# migrated\n\nFROM=here\nNCCL_IB_DISABLE=1\nWORDS=a b=c\n")
    for rank, each in enumerate(
        told(runner, script, "--framework", "deepspeed", arguments=("--lr", "0.1"), HOME=str(home), FROM="shell")
    ):
        assert (each["FROM"], each["HOME_ONLY"], each["NCCL_IB_DISABLE"], each["WORDS"]) == ("here", "1", "1", "a b=c")
        assert each["argv"] == [f"--local_rank={rank}", "--lr", "0.1"]
    assert "NCCL_IB_DISABLE" not in told(runner, script)[0], "only for those that ask"


def test_a_bad_line_of_deepspeed_env_is_named(runner, script):
    (runner.folder / "ours.env").write_text("A=1\nexport\n")
    result = runner.taas_run("--framework", "deepspeed", script, DS_ENV_FILE="ours.env")
    assert (result.returncode, "ours.env: line 2 is not NAME=value" in result.stderr) == (2, True), result.stderr


def test_dry_run_shows_it(runner, script):
    result = runner.taas_run(
        "--framework", "tf", "--nproc-per-node", 2, "--rank0-env", "A=1", "--dry-run", "--json", script
    )
    first, second = [rank["environment"] for rank in json.loads(result.stdout)["ranks"]]
    assert (first["A"], "A" in second) == ("1", False)
    assert json.loads(second["TF_CONFIG"])["task"] == {"type": "worker", "index": 1}


def test_accelerate_s_own_settings_are_not_ignored_in_silence(runner):
    """What `accelerate config` has written is for `accelerate launch`; the package need not be there to see that."""
    script = runner.folder / "accelerated.py"
    script.write_text("from accelerate import Accelerator\n")
    plain = runner.folder / "plain.py"
    plain.write_text("import sys\n")
    config = runner.folder / "hf" / "accelerate" / "default_config.yaml"
    told = {"HF_HOME": str(config.parent.parent)}
    assert "accelerate launch" not in runner.taas_run("--dry-run", script, **told).stdout
    config.parent.mkdir(parents=True)
    config.write_text("mixed_precision: bf16\n")
    assert f"{config} is read by accelerate launch alone" in runner.taas_run("--dry-run", script, **told).stdout
    assert "accelerate launch" not in runner.taas_run("--dry-run", plain, **told).stdout
    said = {**told, "ACCELERATE_MIXED_PRECISION": "bf16"}
    assert "accelerate launch" not in runner.taas_run("--dry-run", script, **said).stdout
