"""The command line of a cell: what taas-run is told besides the user's own options."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import tempfile

from ..launcher import NoLauncher, find_launcher
from .errors import CellUsage
from .files.folder import MODULE
from .options import CellOptions

_LANDLOCK_CREATE_RULESET = 444
_CACHES = (
    "XDG_CACHE_HOME",
    "TORCH_HOME",
    "HF_HOME",
    "TORCHINDUCTOR_CACHE_DIR",
    "TRITON_CACHE_DIR",
    "MPLCONFIGDIR",
    "CUDA_CACHE_PATH",
    "TORCH_EXTENSIONS_DIR",
)


def launcher() -> str:
    """taas-run; `$TAAS_RUN` names another one. Raises CellUsage."""
    try:
        return os.environ.get("TAAS_RUN") or find_launcher()
    except NoLauncher as error:
        raise CellUsage(str(error)) from None


def command(options: CellOptions, folder: str, loader: str | None, imports_torch: bool = True) -> list[str]:
    """The words that start the cell. SIGTERM is handed on to ranks: the second of the three steps of an interrupt.

    A cell that does not use torch does not wait for a preloaded one.
    """
    words = [
        launcher(),
        "--json",
        "-t",
        "3",
        "--end-with",
        str(os.getpid()),
        "--signals-to-handle",
        "SIGINT,SIGHUP,SIGQUIT",
    ]
    if protects(options):
        words += ["--protect", os.getcwd(), *(word for place in _writable() for word in ("--protect-except", place))]
        words += ["--rank-output", options.rank_output]
    if loader:
        words += ["--loader", f"{MODULE}:{loader}"]
    if not imports_torch and not any(word.startswith("--preload") for word in options.launcher):
        words += ["--preload", "none"]
    return [*words, *options.launcher, "-m", "taas.notebook.rank", folder]


def ask(words: list[str]) -> str:
    """What `taas-run --dry-run` prints. Raises CellUsage with its line when it refuses the words."""
    asked = subprocess.run(
        [launcher(), "--dry-run", *words],
        env=environment(""),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        start_new_session=True,
    )
    if asked.returncode != 0:
        raise CellUsage(asked.stderr.strip().removeprefix("taas-run: "))
    return asked.stdout


def environment(folder: str) -> dict[str, str]:
    """This process' own, with this interpreter for ranks, plots in the notebook, and the cell's module."""
    values = {name: value for name, value in os.environ.items() if name not in ("JPY_PARENT_PID", "TAAS_ROLE")}
    path = [folder, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **values,
        "PYTHON_EXEC": sys.executable,
        "PYTHONPATH": os.pathsep.join(path),
        "MPLBACKEND": "module://taas.notebook.rank.plots",
        "TAAS_CELL": folder,
    }


def protects(options: CellOptions) -> bool:
    """Whether only rank 0 may write to the project's directory."""
    return options.protect and os.getcwd() != "/" and landlock_supported()


def writes_apart(options: CellOptions) -> bool:
    """Whether what other ranks write to the project is kept in folders of their own, and not refused."""
    return protects(options) and options.rank_output == "private"


def landlock_supported() -> bool:
    """False on kernels before 5.13, and where it is switched off."""
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.syscall(_LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(1)) > 0


def _writable() -> list[str]:
    """Caches and folders for temporary files that lie within the project: every rank needs them."""
    home = os.path.expanduser("~")
    places = [os.path.join(home, name) for name in (".cache", ".triton", ".nv", ".config", ".local")]
    places += [os.environ[name] for name in _CACHES if os.environ.get(name)] + [tempfile.gettempdir()]
    project = os.path.realpath(os.getcwd())
    return sorted(
        {
            place
            for place in map(os.path.realpath, places)
            if place.startswith(project + os.sep) and os.path.isdir(place)
        }
    )
