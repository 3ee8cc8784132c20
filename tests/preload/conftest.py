"""Runs the same program under Python itself, and under taas-run with and without a preloaded interpreter."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from waiting import DEADLINE_SECONDS

TAAS_RUN = os.environ["TAAS_RUN"]
HERE = pathlib.Path(__file__).parent
SEEN = sorted((HERE / "seen").glob("*.py"))
ENDS = sorted((HERE / "ends").glob("*.py"))

EXECUTE = """
import ctypes, json, sys
words, entries = ([word.encode(errors="surrogateescape") for word in part] for part in json.loads(sys.argv[1]))
array = lambda words: (ctypes.c_char_p * (len(words) + 1))(*words, None)
ctypes.CDLL(None).execve(words[0], array(words), array(entries))
"""


class Launched:
    """A finished run and where its ranks wrote."""

    def __init__(self, folder: pathlib.Path, result: subprocess.CompletedProcess):
        self.result = result
        self.code = result.returncode
        self.console = result.stderr
        self.run_folder = (folder / "taas-runs" / "latest").resolve()
        lines = (self.run_folder / "journal.jsonl").read_text().splitlines()
        self.journal = [json.loads(line) for line in lines]

    def output(self, rank=0, generation=0) -> tuple[str, str]:
        base = self.run_folder / f"generation-{generation}" / f"rank-{rank:04d}"
        return tuple(pathlib.Path(f"{base}.{end}").read_text(errors="replace") for end in ("out", "err"))

    def preloaded(self) -> list[bool]:
        """Of each rank that was started, in order."""
        return [entry["preloaded"] for entry in self.journal if entry.get("event") == "rank_spawned"]

    def exits(self) -> list:
        """(generation, exit code as subprocess has it) of each rank's end, in order."""
        ends = [entry for entry in self.journal if entry.get("event") == "rank_exited"]
        return [(end["generation"], end["status"]["code"] or -end["status"]["signal"]) for end in ends]


class Machine:
    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        foreign = ("PET_", "SLURM_", "TORCHELASTIC_", "TAAS_", "PYTHON")
        names = {
            "RANK",
            "WORLD_SIZE",
            "LOCAL_RANK",
            "MASTER_ADDR",
            "MASTER_PORT",
            "OMP_NUM_THREADS",
            "VIRTUAL_ENV",
            "_",
            "OLDPWD",
        }
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(foreign) and k not in names}
        self.environment["PATH"] = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
        self.environment["PYTHONDONTWRITEBYTECODE"] = "1"

    def launch(self, *words, env=None, stdin=subprocess.DEVNULL, cwd=None, text=None) -> Launched:
        given = {"input": text} if text is not None else {"stdin": stdin}
        result = subprocess.run(
            [TAAS_RUN, *map(str, words)],
            cwd=cwd or self.folder,
            text=True,
            capture_output=True,
            env={**self.environment, **(env or {})},
            timeout=DEADLINE_SECONDS,
            **given,
        )
        return Launched(cwd or self.folder, result)

    def launch_with_entries(self, entries, *words) -> Launched:
        """With more in the environment, in words that subprocess would refuse."""
        words = [TAAS_RUN, *map(str, words)]
        given = [*(f"{name}={value}" for name, value in self.environment.items()), *entries]
        result = subprocess.run(
            [sys.executable, "-c", EXECUTE, json.dumps([words, given])],
            cwd=self.folder,
            text=True,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=DEADLINE_SECONDS,
        )
        return Launched(self.folder, result)

    def python(self, *words, env=None, cwd=None) -> tuple[str, str, int]:
        """Python itself, in a session of its own as ranks are."""
        python = pathlib.Path(sys.executable).with_name("python3")  # as taas-run finds it
        result = subprocess.run(
            [python, *map(str, words)],
            cwd=cwd or self.folder,
            text=True,
            capture_output=True,
            env=env,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            timeout=DEADLINE_SECONDS,
            errors="replace",
        )
        return result.stdout, result.stderr, result.returncode


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


@pytest.fixture(scope="session")
def one_machine(tmp_path_factory):
    return Machine(tmp_path_factory.mktemp("preload"))
