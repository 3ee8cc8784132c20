"""Imports the modules, and judges whether ranks may be forked from what came of it."""

import _signal
import contextlib
import gc
import os
import sys
from collections.abc import Iterator

from . import environment_spy, start_folder
from .draws import Draws
from .settings import Settings
from .stash import Recorder

_NEVER = 1_000_000_000


class Refusal(Exception):
    """Why no rank can be forked from this interpreter, for the user, after "no preload: "."""


def prepare(settings: Settings, recorder: Recorder, why_not: str | None) -> str:
    """Imports all, unless `why_not`. Returns what is to be told to taas-run: "ready" or "refused <why>"."""
    handlers = _signal_handlers()
    try:
        if why_not is not None:
            raise Refusal(why_not)
        with _rarely_collecting():
            for module in settings.modules:
                _import(module, settings, recorder)
        _check_devices()
        _check_threads()
        if _signal_handlers() != handlers:
            raise Refusal("an imported module handles signals, which each rank has to do by itself")
    except Refusal as refusal:
        return f"refused {refusal}"
    return "ready"


def freeze() -> None:
    """The collector's rounds write into every object, and so would give each rank a copy of its own of all."""
    gc.freeze()


@contextlib.contextmanager
def _rarely_collecting() -> Iterator[None]:
    """Next to nothing of what importing makes is garbage: looking for it takes a tenth of the time."""
    before = gc.get_threshold()
    gc.set_threshold(_NEVER, *before[1:])
    yield
    if gc.get_threshold()[0] == _NEVER:
        gc.set_threshold(*before)


def _import(module: str, settings: Settings, recorder: Recorder) -> None:
    watched = settings.per_rank + settings.set_by_program
    spy = environment_spy.Spy(watched, recorder.note_asked)
    with start_folder.in_path(settings), spy, Draws() as draws:
        try:
            __import__(module)
        except BaseException as error:
            if not spy.seen:
                raise Refusal(_cannot_import(module, error)) from None
    _check_variables(module, spy.seen, settings)
    if kept := draws.find_kept():
        names = ", ".join(sorted(kept))
        raise Refusal(f"{names} draws at random when it is imported, which would be the same in all ranks")


def _cannot_import(module: str, error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name == module:
        return f"there is no module {module}"
    return f"{module} cannot be imported: {_one_line(error)}"


def _check_variables(module: str, seen: set[str], settings: Settings) -> None:
    if own := seen & set(settings.per_rank):
        raise Refusal(f"{module} reads {', '.join(sorted(own))} when it is imported, which each rank has its own of")
    if seen:
        raise Refusal(f"the program sets {', '.join(sorted(seen))} itself, which {module} reads when it is imported")


def _one_line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


_ACCELERATORS = (
    "/dev/nvidia",  # NVIDIA; Tegra: nvhost and nvmap; in Windows' Linux: dxg
    "/dev/nvhost",
    "/dev/nvmap",
    "/dev/dxg",
    "/dev/kfd",  # AMD
    "/dev/dri/",
    "/dev/accel",  # TPU, Gaudi and others by the kernel's own subsystem
    "/dev/hl",  # Gaudi
    "/dev/davinci",  # Ascend
    "/dev/neuron",
)


def _check_devices() -> None:
    """A process that is forked after CUDA was initialised cannot use it."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    if cuda is not None and cuda.is_initialized():
        raise Refusal("an imported module initialised CUDA, which no forked process can use")
    for number in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{number}")
        except OSError:
            continue
        if target.startswith(_ACCELERATORS):
            raise Refusal(f"an imported module opened {target}, which no forked process can use")


def _check_threads() -> None:
    """Threads do not come along.

    Those of which a library takes care itself (OpenBLAS) are gone once there was a fork.
    """
    if _count_threads() == 1:
        return
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    if _count_threads() > 1:
        raise Refusal(f"an imported module started {_count_threads() - 1} thread(s), which no forked process has")


def _signal_handlers() -> list[object]:
    return [_signal.getsignal(number) for number in _signal.valid_signals()]


def _count_threads() -> int:
    return len(os.listdir("/proc/self/task"))
