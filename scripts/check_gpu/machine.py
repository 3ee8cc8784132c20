"""What GPUs this machine has, and which versions of what runs on them."""

import dataclasses
import platform
import subprocess

FIELDS = ("index", "name", "uuid", "memory.total", "driver_version")


class NoGpu(Exception):
    """There is none that could be checked; the text says how that is known."""


@dataclasses.dataclass(frozen=True)
class Gpu:
    index: int
    name: str
    uuid: str
    mebibytes: int
    driver: str


def parse_gpus(text: str) -> list[Gpu]:
    """From nvidia-smi --query-gpu=FIELDS --format=csv,noheader,nounits."""
    gpus = []
    for line in text.splitlines():
        fields = [field.strip() for field in line.split(",")]
        if len(fields) != len(FIELDS) or not fields[0].isdigit():
            continue
        memory = int(fields[3]) if fields[3].isdigit() else 0  # "[N/A]" where it is shared with the CPU
        gpus.append(Gpu(int(fields[0]), fields[1], fields[2], memory, fields[4]))
    return gpus


def nvidia_smi(*arguments: str) -> str:
    """Its output; an explanation in NoGpu when there is none."""
    try:
        done = subprocess.run(["nvidia-smi", *arguments], capture_output=True, text=True, timeout=60)
    except FileNotFoundError:
        raise NoGpu("nvidia-smi is not installed") from None
    except subprocess.TimeoutExpired:
        raise NoGpu("nvidia-smi does not answer") from None
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip().splitlines()
        raise NoGpu(f"nvidia-smi says: {said[0] if said else f'exit code {done.returncode}'}")
    return done.stdout


def find_gpus() -> list[Gpu]:
    gpus = parse_gpus(nvidia_smi(f"--query-gpu={','.join(FIELDS)}", "--format=csv,noheader,nounits"))
    if not gpus:
        raise NoGpu("nvidia-smi lists none")
    return gpus


def topology() -> str:
    """nvidia-smi's matrix of links, without its colours."""
    try:
        return nvidia_smi("topo", "-m").replace("\x1b[4m", "").replace("\x1b[0m", "").rstrip()
    except NoGpu as problem:
        return str(problem)


def compute_processes() -> set[int]:
    """Process ids that hold a GPU."""
    said = nvidia_smi("--query-compute-apps=pid", "--format=csv,noheader")
    return {int(line) for line in said.split() if line.isdigit()}


VERSIONS = """
import torch
print(torch.__version__)
print(torch.version.cuda)
print(".".join(map(str, torch.cuda.nccl.version())) if torch.cuda.is_available() else "not used")
print(torch.cuda.device_count())
from torch.distributed.distributed_c10d import Backend
getattr(Backend, "_ensure_backend_registered", lambda name: None)("nccl")
made_by = getattr(Backend._plugins.get("NCCL"), "creator_fn", None)
print("nccl2" if made_by and "nccl2" in made_by.__name__ else "ProcessGroupNCCL")
"""


@dataclasses.dataclass(frozen=True)
class Versions:
    torch: str = "not known"
    cuda: str = "not known"
    nccl: str = "not known"
    usable_gpus: int = 0
    backend: str = "not known"
    """What "nccl" is in Python. In C++ it is always ProcessGroupNCCL."""


def versions(python: str) -> Versions:
    """Of the interpreter whose torch is used."""
    done = subprocess.run([python, "-c", VERSIONS], capture_output=True, text=True, timeout=300)
    lines = done.stdout.split("\n")
    return Versions(lines[0], lines[1], lines[2], int(lines[3]), lines[4]) if done.returncode == 0 else Versions()


def system() -> str:
    try:
        name = platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        name = platform.system()
    return f"{name}, kernel {platform.release()}, {platform.machine()}"
