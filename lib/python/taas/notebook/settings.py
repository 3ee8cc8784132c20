"""What earlier cells have set in the kernel, and a cell's ranks have too: torch's settings and random states.

The working directory, the variables of the environment and sys.path come by other ways.
"""

from __future__ import annotations

import base64
import pickle
import random
import re
import sys
from typing import Any, Callable, Iterable, NamedTuple

_SEED_OF_TORCH = 67280421310721
"""c10::detail default_rng_seed_val: that of a torch that nobody has seeded."""
_SEEDS_PYTHON = re.compile(r"(?<!np\.)(?<!numpy\.)\brandom\.seed\(|\bseed_everything\(|\bset_seed\(")


class _Setting(NamedTuple):
    """One of torch's: the value it begins with, and how it is read and set. Values are JSON."""

    usual: Any
    read: Callable[[Any], Any]
    set: Callable[[Any, Any], None]


def _set_deterministic(torch: Any, value: list[bool]) -> None:
    torch.use_deterministic_algorithms(value[0], warn_only=value[1])


def _of_cudnn(name: str, usual: bool) -> _Setting:
    return _Setting(
        usual,
        lambda torch: getattr(torch.backends.cudnn, name),
        lambda torch, value: setattr(torch.backends.cudnn, name, value),
    )


_SETTINGS = {
    "dtype": _Setting(
        "float32",
        lambda torch: str(torch.get_default_dtype()).removeprefix("torch."),
        lambda torch, value: torch.set_default_dtype(getattr(torch, value)),
    ),
    "device": _Setting(  # of GPUs each rank has its own
        "cpu", lambda torch: torch.get_default_device().type, lambda torch, value: torch.set_default_device(value)
    ),
    "precision": _Setting(
        "highest",
        lambda torch: torch.get_float32_matmul_precision(),
        lambda torch, value: torch.set_float32_matmul_precision(value),
    ),
    "deterministic": _Setting(
        [False, False],
        lambda torch: [
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
        ],
        _set_deterministic,
    ),
    "gradients": _Setting(
        True, lambda torch: torch.is_grad_enabled(), lambda torch, value: torch.set_grad_enabled(value)
    ),
    "anomalies": _Setting(
        False,
        lambda torch: torch.is_anomaly_enabled(),
        lambda torch, value: torch.autograd.set_detect_anomaly(value),
    ),
    "cudnn.enabled": _of_cudnn("enabled", True),
    "cudnn.benchmark": _of_cudnn("benchmark", False),
    "cudnn.deterministic": _of_cudnn("deterministic", False),
}


def captured(cells: Iterable[str]) -> dict[str, Any]:
    """Of this kernel, as JSON: what is not as Python and torch begin. `cells` are the texts that have run.

    Random states only where somebody has seeded: else each rank has its own.
    """
    text = "\n".join(cells)
    states: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    if torch := sys.modules.get("torch"):
        settings = {name: value for name, one in _SETTINGS.items() if (value := one.read(torch)) != one.usual}
        if "set_num_threads(" in text:  # the kernel has had as many as there are cores, which ranks share
            settings["threads"] = torch.get_num_threads()
        if torch.initial_seed() != _SEED_OF_TORCH:
            states["torch"] = torch.initial_seed(), torch.get_rng_state().numpy()
    if (numpy := sys.modules.get("numpy")) and _is_seeded(numpy):
        states["numpy"] = numpy.random.get_state()
    if _SEEDS_PYTHON.search(text):
        states["random"] = random.getstate()
    return {"torch": settings, "states": base64.b64encode(pickle.dumps(states)).decode() if states else ""}


def _is_seeded(numpy: Any) -> bool:
    """numpy.random.seed() leaves its generator without the sequence that the operating system had begun."""
    generator = numpy.random.get_bit_generator()
    return getattr(generator, "_seed_seq", None) is None


def restore(settings: dict[str, Any]) -> None:
    """In this process, before anything of the notebook's is loaded."""
    if settings["torch"]:
        import torch

        for name, value in settings["torch"].items():
            torch.set_num_threads(value) if name == "threads" else _SETTINGS[name].set(torch, value)
    if not settings["states"]:
        return
    states = pickle.loads(base64.b64decode(settings["states"]))
    if "torch" in states:
        import torch

        seed, state = states["torch"]
        torch.manual_seed(seed)  # GPUs too
        torch.set_rng_state(torch.from_numpy(state))
    if "numpy" in states:
        import numpy

        numpy.random.set_state(states["numpy"])
    if "random" in states:
        random.setstate(states["random"])
