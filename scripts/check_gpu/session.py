"""Runs programs on the machine's GPUs for the checks."""

import dataclasses
import os
import pathlib
import signal
import subprocess
import time

from check_gpu import machine
from check_gpu.result import Red, Skip

ROOT = pathlib.Path(__file__).resolve().parents[2]
RANKS = pathlib.Path(__file__).resolve().parent / "ranks"
FOREIGN = ("PET_", "SLURM_", "TORCHELASTIC_", "TAAS_RUN", "TAAS_OUTPUT", "NCCL_HOSTID")
FOREIGN_NAMES = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}
GONE_WITHIN = 5.0  # seconds in which a run's processes have let go of the GPU


@dataclasses.dataclass(frozen=True)
class Finished:
    code: int
    out: str
    err: str
    began: float  # of time.time(), as programs print it
    ended: float

    @property
    def seconds(self) -> float:
        return self.ended - self.began

    def tail(self) -> str:
        """The last lines, for a report."""
        lines = (self.out + self.err).strip().splitlines()[-15:]
        return "```\n" + "\n".join(lines) + "\n```"

    def need(self, good: bool, what: str) -> None:
        if not good:
            raise Red(what, self.tail())


@dataclasses.dataclass
class Session:
    gpus: int
    bin: pathlib.Path
    python: str
    folder: pathlib.Path
    repeats: int = 3

    def environment(self, variables: dict) -> dict:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(FOREIGN) and name not in FOREIGN_NAMES
        }
        paths = [str(self.bin), str(pathlib.Path(self.python).parent), kept.get("PATH", "")]
        kept["PATH"] = os.pathsep.join(paths)
        packages = [str(self.bin.parent / "python"), kept.get("PYTHONPATH", "")]
        kept["PYTHONPATH"] = os.pathsep.join(path for path in packages if path)
        kept |= {"PYTHONUNBUFFERED": "1", "PYTHONWARNINGS": "ignore"}
        return kept | {name: str(value) for name, value in variables.items()}

    def run(self, *command, limit: float = 300, **variables) -> Finished:
        """Runs a command to its end; one that takes over `limit` seconds is red, and ends with all it has started."""
        began = time.time()
        process = subprocess.Popen(
            [str(word) for word in command],
            cwd=self.folder,
            env=self.environment(variables),
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            out, err = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.communicate()
            raise Red(f"not through after {limit:.0f} s: {' '.join(map(str, command))}") from None
        return Finished(process.returncode, out, err, began, time.time())

    def shape(self, ranks: int) -> list[str]:
        """taas-run's options for so many ranks: a GPU for each, or shared."""
        return ["--gpus", str(ranks), *([] if ranks <= self.gpus else ["--oversubscribe"])]

    def taas_run(self, ranks: int, *program, **variables) -> Finished:
        return self.run(self.bin / "taas-run", *self.shape(ranks), *program, **variables)

    def torchrun(self, ranks: int, *program, **variables) -> Finished:
        return self.run(
            self.python,
            "-m",
            "torch.distributed.run",
            "--nproc-per-node",
            ranks,
            "--rdzv-backend",
            "c10d",
            "--rdzv-endpoint",
            "127.0.0.1:0",
            "--nnodes",
            1,
            *program,
            **variables,
        )

    def need_module(self, *names: str) -> None:
        found = f"import importlib.util as u, sys; sys.exit(any(u.find_spec(n) is None for n in {names!r}))"
        if self.run(self.python, "-c", found).code != 0:
            raise Skip(f"not installed: {' or '.join(names)}")

    def need_gpus_free(self, before: set[int]) -> None:
        """Nothing that was started since holds a GPU."""
        deadline = time.monotonic() + GONE_WITHIN
        while left := machine.compute_processes() - before:
            if time.monotonic() > deadline:
                raise Red(f"processes still hold a GPU: {', '.join(map(str, sorted(left)))}")
            time.sleep(0.1)
