"""What earlier cells have set in the kernel, and a cell's ranks have too: torch's settings and random states.

The working directory, the variables of the environment and sys.path come by other ways.
"""

from __future__ import annotations

import ast
import base64
import os
import pickle
import random
import sys
import types
from typing import Any, Callable, Iterator, NamedTuple

_SEED_OF_TORCH = 67280421310721
"""c10::detail::default_rng_seed_val: that of a torch that nobody has seeded."""
_OF_ALL = ("seed_everything", "set_seed")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class _Setting(NamedTuple):
    """One of torch's: the value it begins with, and how it is read and set. Values are JSON."""

    usual: Any
    read: Callable[[Any], Any]
    set: Callable[[Any, Any], None]


def _attribute(path: str, usual: Any) -> _Setting:
    """torch.backends.<path>."""
    *modules, name = path.split(".")

    def module(torch: Any) -> Any:
        found = torch.backends
        for each in modules:
            found = getattr(found, each)
        return found

    return _Setting(
        usual, lambda torch: getattr(module(torch), name), lambda torch, value: setattr(module(torch), name, value)
    )


def _default_device(torch: Any) -> str:
    """As it was set: torch.get_default_device() would begin to use CUDA. Of GPUs each rank has its own."""
    context = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)  # of this thread
    return context.device.type if context else "cpu"


_SETTINGS = {
    "dtype": _Setting(
        "float32",
        lambda torch: str(torch.get_default_dtype()).removeprefix("torch."),
        lambda torch, value: torch.set_default_dtype(getattr(torch, value)),
    ),
    "device": _Setting("cpu", _default_device, lambda torch, value: torch.set_default_device(value)),
    "deterministic": _Setting(
        [False, False],
        lambda torch: [
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
        ],
        lambda torch, value: torch.use_deterministic_algorithms(value[0], warn_only=value[1]),
    ),
    "gradients": _Setting(
        True, lambda torch: torch.is_grad_enabled(), lambda torch, value: torch.set_grad_enabled(value)
    ),
    "anomalies": _Setting(
        False,
        lambda torch: torch.is_anomaly_enabled(),
        lambda torch, value: torch.autograd.set_detect_anomaly(value),
    ),
    "cudnn.enabled": _attribute("cudnn.enabled", True),
    "cudnn.benchmark": _attribute("cudnn.benchmark", False),
    "cudnn.deterministic": _attribute("cudnn.deterministic", False),
}
# Torch has two interfaces to this, and refuses to read one after the other was used.
_PRECISION = {
    "precision": _Setting(
        "highest",
        lambda torch: torch.get_float32_matmul_precision(),
        lambda torch, value: torch.set_float32_matmul_precision(value),
    ),
    "cudnn.allow_tf32": _attribute("cudnn.allow_tf32", True),
}
_NEW_PRECISION = {
    path: _attribute(path, usual)
    for path, usual in [
        ("fp32_precision", "none"),
        ("cuda.matmul.fp32_precision", "none"),
        ("cudnn.fp32_precision", "none"),
        ("cudnn.conv.fp32_precision", "tf32"),
        ("cudnn.rnn.fp32_precision", "tf32"),
        ("mkldnn.fp32_precision", "none"),
        ("mkldnn.matmul.fp32_precision", "none"),
        ("mkldnn.conv.fp32_precision", "none"),
        ("mkldnn.rnn.fp32_precision", "none"),
    ]
}


def captured(shell: Any) -> tuple[dict[str, Any], list[str]]:
    """Of this kernel, as JSON, what is not as Python and torch begin; and the names of what could not be read.

    Random states only where somebody has seeded: else each rank has its own.
    """
    called = list(_called(shell))
    states: dict[str, Any] = {}
    settings: dict[str, Any] = {}
    unread: list[str] = []
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch and hasattr(torch, "get_default_dtype"):
        settings, unread = _read(torch)
        if "set_num_threads" in (name.rpartition(".")[2] for name in called):
            # As many as it has had by itself are too many: ranks share the machine's cores.
            threads = torch.get_num_threads()
            if str(threads) not in (os.environ.get("OMP_NUM_THREADS"), str(len(os.sched_getaffinity(0)))):
                settings["threads"] = threads
        if torch.initial_seed() != _SEED_OF_TORCH:
            states["torch"] = torch.initial_seed(), torch.get_rng_state().numpy()
    if numpy and _is_seeded(numpy):
        states["numpy"] = numpy.random.get_state()
    if any(_seeds_python(name, shell.user_ns) for name in called):
        states["random"] = random.getstate()
    return {"torch": settings, "states": base64.b64encode(pickle.dumps(states)).decode() if states else ""}, unread


def _read(torch: Any) -> tuple[dict[str, Any], list[str]]:
    """The settings, and which of them could not be read."""
    found, unread = _changed(torch, _SETTINGS)
    precision, mixed = _changed(torch, _PRECISION)
    if mixed:
        precision, mixed = _changed(torch, _NEW_PRECISION)
    return found | precision, unread + mixed


def _changed(torch: Any, settings: dict[str, _Setting]) -> tuple[dict[str, Any], list[str]]:
    found, unread = {}, []
    for name, setting in settings.items():
        try:
            value = setting.read(torch)
        except (AttributeError, RuntimeError):  # of another release of torch, or of the other interface
            unread.append(name)
        else:
            if value != setting.usual:
                found[name] = value
    return found, unread


def _is_seeded(numpy: Any) -> bool:
    """numpy.random.seed() leaves its generator without the sequence that the operating system had begun."""
    try:
        return numpy.random.get_bit_generator()._seed_seq is None
    except AttributeError:
        return False


def _called(shell: Any) -> Iterator[str]:
    """What ordinary cells have called, as it was written: `random.seed`. Of functions that are only defined, nothing.

    Cells that ran in ranks are calls of a magic here.
    """
    open_nodes: list[ast.AST] = []
    for text in shell.history_manager.input_hist_parsed[:-1]:
        try:
            open_nodes.append(ast.parse(text))
        except SyntaxError:
            continue
    bodies = {each.name: each.body for tree in open_nodes for each in ast.walk(tree) if isinstance(each, _FUNCTIONS)}
    while open_nodes:
        node = open_nodes.pop()
        if isinstance(node, (*_FUNCTIONS, ast.Lambda)):
            continue
        open_nodes += ast.iter_child_nodes(node)
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            yield name
            open_nodes += bodies.pop(name, [])


def _seeds_python(name: str, namespace: dict[str, Any]) -> bool:
    """random.seed under whatever name, or a function for all seeds, as Lightning's and Transformers'."""
    module, _, last = name.rpartition(".")
    if module:
        return last in _OF_ALL or (last == "seed" and namespace.get(module) is random)
    function = namespace.get(last)
    return last in _OF_ALL or (isinstance(function, types.MethodType) and function == random.seed)


def restore(settings: dict[str, Any]) -> None:
    """In this process, before anything of the notebook's is loaded."""
    if settings["torch"]:
        import torch

        every = _SETTINGS | _PRECISION | _NEW_PRECISION
        for name, value in settings["torch"].items():
            torch.set_num_threads(value) if name == "threads" else every[name].set(torch, value)
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
