"""Variables that libraries read once, when they are loaded: what the program has changed since they were preloaded."""

import ctypes
import os
import re
from typing import Any

from .settings import Settings
from .stash import Stash

_THREADS = "OMP_NUM_THREADS"
_ALSO_FOR_THREADS = ("MKL_NUM_THREADS", "GOTO_NUM_THREADS", "OPENBLAS_NUM_THREADS")
_OPENMP = ("omp_set_num_threads",)
_LIBRARIES = ("libgomp", "libiomp", "libomp")
_OPENBLAS = tuple(f"{name}_set_num_threads{end}" for name in ("openblas", "scipy_openblas") for end in ("", "64_"))


class Variables:
    def __init__(self, stash: Stash, settings: Settings) -> None:
        """Has them looked at when the program has imported the first library of a package."""
        self._stash = stash
        self._begins = tuple(map(os.fsencode, settings.read_at_load))
        self._later = tuple(map(os.fsencode, settings.read_later))
        self._values: dict[bytes, bytes] = {}
        packages: set[str] = set()
        for name, spec in list(stash.specs.items()):
            package, origin = name.partition(".")[0], str(spec.origin)
            if origin.endswith(".so") and "lib-dynload" not in origin and package not in packages:
                packages.add(package)
                stash.then(name, self._compare)

    def remember(self) -> None:
        """In a rank, when its environment is there."""
        self._values = {
            name: value
            for name, value in os.environ._data.items()  # type: ignore[attr-defined]
            if name.startswith(self._begins) and not name.startswith(self._later)
        }

    def _compare(self) -> None:
        before = self._values
        self.remember()
        for name in before.keys() | self._values.keys():
            if before.get(name) != self._values.get(name):
                _change(self._stash, os.fsdecode(name), self._values.get(name))


def _change(stash: Stash, name: str, value: bytes | None) -> None:
    if name.startswith("KMP_") and not any("libiomp" in path or "libomp" in path for path in _loaded()):
        return  # of Intel's and LLVM's OpenMP, which is not there
    if name != _THREADS or any(other in os.environ for other in _ALSO_FOR_THREADS):
        return stash.tell_of_variable(name)
    if value is not None and not (value.isdigit() and int(value) > 0):
        return stash.tell_of_variable(name)
    threads = int(value) if value else len(os.sched_getaffinity(0))
    _set_threads(threads, (*_OPENMP, *_OPENBLAS))
    torch: Any = stash.find("torch")
    mkls = torch and re.search(r"mkl_get_max_threads\(\) : (\d+)", torch.__config__.parallel_info())
    if mkls:  # as torch does when it begins to use threads
        _set_threads(int(mkls[1]), _OPENMP)


def _set_threads(threads: int, functions: tuple[str, ...]) -> None:
    for path in _loaded():
        library = ctypes.CDLL(path)
        for function in functions:
            if hasattr(library, function):
                getattr(library, function)(threads)


def _loaded() -> set[str]:
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as file:
        paths = {line.rstrip("\n").partition("/")[2] for line in file}
    names = {"/" + path: path.rpartition("/")[2] for path in paths}
    return {path for path, name in names.items() if name.startswith(_LIBRARIES) or "openblas" in name}
