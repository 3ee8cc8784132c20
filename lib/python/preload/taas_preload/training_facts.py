"""What a rank notices of its own training.

taas-run compares ranks at the end, and names mistakes that none of them can see alone (docs/failures.md). Torch's
functions are watched by `torch_watch`; nothing is imported or initialised for it.
"""

import os
import stat
import sys
import time
import weakref
from types import ModuleType
from typing import Any, NamedTuple

_MOST_FILES = 16
_MOST_ORDERS = 16
_MOST_TIMES = 8  # of one file
# Their ranks may know each other in ways of their own. What connects ranks by torch's process group does not belong
# here.
_OTHERS = ("horovod", "jax", "mpi4py", "mxnet", "paddle", "ray", "tensorflow", "torch_xla")
_LIGHTNING = ("lightning", "lightning_fabric", "pytorch_lightning")


class _Save(NamedTuple):
    """As SaveTime of taas-run."""

    began: int
    ended: int
    step: int


class _File(NamedTuple):
    device: int
    inode: int
    times: list[_Save]


class _Order(NamedTuple):
    """As ShuffledOrder of taas-run."""

    loader: str
    digest: str


class TrainingFacts:
    """Of this process, from now on. A process that it forks tells nothing."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._optimizer: weakref.ReferenceType[Any] | None = None
        self._made_optimizer = False
        self._computed_gradients = False
        self._first_version = 0
        self._joined = False
        self._data_parallel: list[int] = []
        self._files: dict[str, _File] = {}
        self._orders: list[_Order] = []

    def made_optimizer(self, optimizer: Any) -> None:
        self._made_optimizer = True
        self._optimizer = weakref.ref(optimizer)

    def computed_gradients(self) -> None:
        self._computed_gradients = True
        self._first_version = self._version()

    def joined(self) -> None:
        """A process group of several ranks, or it cannot be known."""
        self._joined = True

    def used_data_parallel(self, devices: list[Any]) -> None:
        if len(devices) > 1:
            self._data_parallel = [int(getattr(device, "index", device)) for device in devices]

    def shuffled(self, loader: str, digest: str) -> None:
        """The first loop over a registered loader had its samples in this random order."""
        if len(self._orders) < _MOST_ORDERS:
            self._orders.append(_Order(loader, digest))

    def saved(self, name: object, began: int) -> None:
        """A file was closed under this name, if it is one."""
        if not isinstance(name, (str, bytes, os.PathLike)):
            return
        ended = time.monotonic_ns()
        path = os.path.realpath(os.fsdecode(name))
        found = os.stat(path)
        if not stat.S_ISREG(found.st_mode):
            return
        file = self._files.get(path)
        if file is None and len(self._files) >= _MOST_FILES:
            return
        if file is None or (file.device, file.inode) != (found.st_dev, found.st_ino):
            file = self._files[path] = _File(found.st_dev, found.st_ino, [])
        if len(file.times) < _MOST_TIMES:
            file.times.append(_Save(began, ended, self._step()))

    def write(self, path: str) -> None:
        """Nothing that fails here is of interest to the program."""
        try:
            if os.getpid() != self._process or not self._is_telling():
                return
            text = sys.modules["json"].dumps(self._told())  # torch has imported it
            new = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)  # nobody else's file
            with open(new, "w", encoding="ascii") as file:
                file.write(text)
        except Exception:
            return

    def _is_telling(self) -> bool:
        return self._trained() or bool(self._data_parallel) or bool(self._files) or bool(self._orders)

    def _trained(self) -> bool:
        return self._made_optimizer and self._computed_gradients

    def _told(self) -> dict[str, object]:
        """As TrainingFacts of taas-run."""
        gpus, used = _gpus(sys.modules["torch"])
        framework, counted_one = _framework()
        return {
            "trained": self._trained(),
            "joined": self._joined or any(name in sys.modules for name in _OTHERS),
            "framework": framework,
            "counted_one": counted_one,
            "visible_gpus": os.environ.get("CUDA_VISIBLE_DEVICES", "").encode(errors="replace").decode(),
            "gpus": gpus,
            "gpus_used": used,
            "data_parallel_gpus": self._data_parallel,
            "shuffled": [order._asdict() for order in self._orders],
            "saved": [_print(path, file) for path, file in self._files.items() if _is_there(path, file)],
        }

    def _version(self) -> int:
        """A number that every step of the first optimizer raises, in all ranks of a training alike."""
        optimizer = self._optimizer() if self._optimizer else None
        try:
            return int(optimizer.param_groups[0]["params"][0]._version) if optimizer is not None else 0
        except Exception:
            return 0  # parameters of another kind

    def _step(self) -> int:
        return max(0, self._version() - self._first_version) if self._computed_gradients else 0


def _framework() -> tuple[str, bool]:
    """What ranks that are alone would have to tell of each other, and whether it took this one for the only one.

    On the CPU accelerate makes a process group and does not use it. transformers imports accelerate for many purposes;
    training by it needs its state.
    """
    if any(name in sys.modules for name in _LIGHTNING):
        return "lightning", False
    accelerate = sys.modules.get("accelerate.state")
    place, training = (
        getattr(getattr(accelerate, name, None), "_shared_state", None) for name in ("PartialState", "AcceleratorState")
    )
    return ("accelerate", bool(place) and place.get("num_processes") == 1) if training else ("", False)


def _is_there(path: str, file: _File) -> bool:
    try:
        found = os.stat(path)
    except OSError:
        return False
    return (found.st_dev, found.st_ino) == (file.device, file.inode)


def _print(path: str, file: _File) -> dict[str, object]:
    return {
        "path": path.encode(errors="replace").decode(),
        "device": file.device,
        "inode": file.inode,
        "times": [save._asdict() for save in file.times],
    }


def _gpus(torch: ModuleType) -> tuple[int, list[int]]:
    """How many it sees, and on which of them torch has held memory."""
    try:
        if not torch.cuda.is_initialized():
            return 0, []
        count = torch.cuda.device_count()
        return count, [gpu for gpu in range(count) if torch.cuda.max_memory_reserved(gpu) > 0]
    except Exception:
        return 0, []  # another allocator, which does not count
