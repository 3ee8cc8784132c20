"""Judges whether a run's ranks may come out of a session's interpreter, which was made before anybody knew their program: whether
what it has imported is what they would import themselves."""

import os
import site
import subprocess
import sys
from typing import NamedTuple

from . import start_folder
from .settings import Settings

# Read by libraries, or by Python before any of our code runs.
_READ_AT_LOAD = ("ATEN_", "BLIS_", "CUDA_", "DNNL_", "GLIBC_", "GOMP_", "GOTO_", "KMP_", "LC_", "LD_", "MALLOC_", "MKLDNN_", "MKL_", "NPY_",
                 "NUMEXPR_", "NVIDIA_", "OMP_", "ONEDNN_", "OPENBLAS_", "PYTHON", "PYTORCH_", "TF_", "TORCH_")
_READ_BY_NAME = frozenset({"HOME", "LANG", "LANGUAGE", "TZ"})
# Of these, what is read when the program runs.
_READ_LATER = ("CUDA_LAUNCH_BLOCKING", "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "PYTHONBREAKPOINT", "PYTHON_EXEC", "TORCH_COMPILE_DEBUG",
               "TORCH_CPP_LOG_LEVEL", "TORCH_DISTRIBUTED_DEBUG", "TORCH_EXTENSIONS_DIR", "TORCH_FR_", "TORCH_HOME", "TORCH_NCCL_",
               "TORCH_SHOW_CPP_STACKTRACES")
_PATIENCE = 10  # seconds, for a script in place of an interpreter


class Misfit(Exception):
    """Why ranks cannot be forked from this interpreter, for the user."""

    def __init__(self, why: str, stale: bool = False) -> None:
        super().__init__(why)
        self.stale = stale  # another one, made as this run wants it, would fit runs like it


class Wanted(NamedTuple):
    """What taas-run asks: as PreloadRequest of lib/proc/preload."""

    options: int
    command: list[str]
    modules: list[str]
    per_rank: set[str]
    set_by_program: set[str]
    folder: bytes  # in which the launcher is by now
    environment: dict[bytes, bytes]

    @classmethod
    def read(cls, text: bytes) -> "Wanted":
        """Counts, and texts that end with a zero byte."""
        words = text.split(b"\0")
        options, count = int(words[0]), int(words[1])
        command, rest = words[2:count + 2], words[count + 2:-1]
        modules, per_rank, set_by_program = (os.fsdecode(names).split(",") for names in rest[:3])
        entries = (entry.partition(b"=") for entry in reversed(rest[4:]))
        return cls(options, [os.fsdecode(word) for word in command], modules, set(per_rank), set(set_by_program), rest[3],
                   {name: value for name, _, value in entries})

    @property
    def program(self) -> list[str]:
        return self.command[self.options:]


class Made:
    """What an interpreter was made of."""

    def __init__(self, early: frozenset[str], given: dict[bytes, bytes], asked: set[str]) -> None:
        """`early`: modules that are imported before a program's folder counts; `given`: the environment before the others are imported;
        `asked`: variables that these look at."""
        self._environment = given
        self._path = _entries(given.get(b"PYTHONPATH", b""))
        self._asked = asked
        self._early = early
        self._files = {path: _state_of(path) for path in _files()}
        self._path_files = {folder: _named_by_path_files(folder) for folder in _package_folders()}

    def judge(self, wanted: Wanted, settings: Settings) -> None:
        """Misfit, or all is well."""
        self._judge_command(wanted, settings)
        self._judge_variables(wanted)
        changed = [path for path, state in self._files.items() if _state_of(path) != state]
        if changed:
            raise Misfit(f"{changed[0]} has changed", stale=True)
        self._judge_folders(wanted)

    def follow_path(self, path: str) -> None:
        """In a rank: what PYTHONPATH names stands at the beginning of sys.path, where Python has put what it named here."""
        own = _entries(os.fsencode(path))
        rest = [entry for entry in sys.path if entry not in self._path or entry in own]
        whole = [each for entry in rest for each in (entry, *self._path_files.get(entry, ()))]
        sys.path[:] = list(dict.fromkeys(own + whole))

    @staticmethod
    def _judge_command(wanted: Wanted, settings: Settings) -> None:
        own = sys.orig_argv[:settings.options]
        python, *options = wanted.command[:wanted.options]
        if options != own[1:] or not (python == own[0] or _starts_this(python, wanted)):
            raise Misfit(f"it is {' '.join(own)}, and the program wants {' '.join(wanted.command[:wanted.options])}", stale=True)
        if not set(wanted.modules) <= set(settings.modules):
            raise Misfit(f"it has imported {', '.join(settings.modules)}, and {', '.join(wanted.modules)} is wanted", stale=True)
        first, *others = wanted.program
        if first.startswith("-") and (first not in ("-m", "-c") or not others):
            raise Misfit(f"{first} is more than the name of a program")

    def _judge_variables(self, wanted: Wanted) -> None:
        if own := self._asked & wanted.set_by_program:
            raise Misfit(f"the program sets {', '.join(sorted(own))} itself, which is read at import")
        if own := self._asked & wanted.per_rank:
            raise Misfit(f"each rank has its own {', '.join(sorted(own))}, which is read at import")
        names = set(self._environment) | set(wanted.environment)
        for name in sorted(name for name in names - {b"PYTHONPATH"} if self._matters(os.fsdecode(name))):
            before, now = self._environment.get(name), wanted.environment.get(name)
            if before != now:
                raise Misfit(f"{os.fsdecode(name)} is {_shown(now)} now and was {_shown(before)}", stale=True)

    def _matters(self, name: str) -> bool:
        return name in self._asked or name in _READ_BY_NAME or (name.startswith(_READ_AT_LOAD) and not name.startswith(_READ_LATER))

    def _judge_folders(self, wanted: Wanted) -> None:
        """A file of the user's may be called like a module that torch imports."""
        own = start_folder.find(wanted.program) or "."
        if not os.path.isdir(own):
            raise Misfit(f"nobody has looked into {own}, where modules would be looked for first")
        path = _entries(wanted.environment.get(b"PYTHONPATH", b""))
        imported = {name.partition(".")[0] for name in sys.modules} - self._early
        for folder in [own, *path]:
            names = _modules_in(folder)
            for name in names & imported:
                if not _is_in(sys.modules[name], folder):
                    raise Misfit(f"{os.path.join(folder, name)} would be imported in place of the module that torch uses")
            if folder in path and folder not in self._path and names & {"sitecustomize", "usercustomize"}:
                raise Misfit(f"{folder} is new in PYTHONPATH, and Python would run what is in it first", stale=True)
        for folder in set(self._path) - set(path):
            if any(_is_in(module, folder) for name, module in sys.modules.items() if name in imported):
                raise Misfit(f"{folder} is no longer in PYTHONPATH, and something was imported from it", stale=True)


def _starts_this(python: str, wanted: Wanted) -> bool:
    """Whether a script in place of an interpreter (pyenv's, say, which goes by the folder) would start this one."""
    try:
        with open(python, "rb") as file:
            if file.read(2) != b"#!":
                return False
        started = subprocess.run([python, "-ES", "-c", "import sys; print(sys.executable)"], env=wanted.environment, check=False,
                                 stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return os.fsdecode(started.stdout).rstrip("\n") == sys.executable


def _files() -> set[str]:
    """All that was imported, and the folders in which packages are installed."""
    paths = [vars(module).get("__file__") for module in list(sys.modules.values()) if hasattr(module, "__dict__")]
    return {path for path in paths if isinstance(path, str)} | set(_package_folders()) | {sys.executable}


def _package_folders() -> list[str]:
    return [folder for folder in [*site.getsitepackages(), site.getusersitepackages()] if folder in sys.path]


def _named_by_path_files(folder: str) -> list[str]:
    """What Python has in sys.path behind a folder of packages, and leaves out where PYTHONPATH names it, too. (Source: the module site.)"""
    named = []
    for name in sorted(name for name in os.listdir(folder) if name.endswith(".pth") and not name.startswith(".")):
        with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
            lines = [line.rstrip() for line in file if line.strip() and not line.startswith(("#", "import ", "import\t"))]
        named += [os.path.abspath(os.path.join(folder, line)) for line in lines]
    return [entry for entry in named if os.path.exists(entry)]


def _state_of(path: str) -> tuple[int, int, int] | None:
    try:
        state = os.stat(path)
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size, state.st_ino


def _entries(path: bytes) -> list[str]:
    """As Python has them in sys.path: without relative ones, each once."""
    return list(dict.fromkeys(os.path.abspath(entry) for entry in os.fsdecode(path).split(":"))) if path else []


def _modules_in(folder: str) -> set[str]:
    names: set[str] = set()
    try:
        with os.scandir(folder or ".") as entries:
            for entry in entries:
                name = entry.name.partition(".")[0]
                is_package = "." not in entry.name and os.path.exists(os.path.join(entry.path, "__init__.py"))
                if is_package or entry.name.endswith((".py", ".pyc", ".so")):
                    names.add(name)
    except OSError:
        pass
    return names


def _is_in(module: object, folder: str) -> bool:
    """It is imported from there already."""
    path = getattr(module, "__file__", None)
    if not path:
        return False
    own = os.path.dirname(str(path))  # of a package: its folder
    return os.path.realpath(folder) in (os.path.realpath(own), os.path.realpath(os.path.dirname(own)))


def _shown(value: bytes | None) -> str:
    return "not set" if value is None else os.fsdecode(value)[:80] or '""'
