"""In each Python rank of a run with --on-error pdb: a debugger at the exception that ended the first of them.

taas-run puts this folder in front of PYTHONPATH and says in a variable where its terminal is and in which folder the ranks of a
generation meet. Neither is seen by the program, nor by what it starts. When the main program has raised and Python has printed
that, the first rank to come here stops the others, so that none of them times out or talks meanwhile, and asks at the terminal.
"""

import os
import sys
from collections.abc import Iterator
from typing import Any

_VARIABLE = "TAAS_POST_MORTEM"


def _import_users_own(folder: str) -> None:
    """The user's own `sitecustomize`, whose place this one has taken. Its exception is Python's to report."""
    sys.path[:] = [path for path in sys.path if path != folder]
    sys.path_importer_cache.pop(folder, None)
    paths = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path != folder]
    if any(paths):
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    else:
        os.environ.pop("PYTHONPATH", None)
    sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "sitecustomize":
            raise


class _Ends(list):  # type: ignore[type-arg]
    """Python goes through this list, backwards, when the main program is over and what it raised has been printed."""

    def __init__(self, functions: list[Any], debugger: "_Debugger") -> None:
        super().__init__(functions)
        self._process = os.getpid()
        self._debugger = debugger

    def __reversed__(self) -> Iterator[Any]:
        if os.getpid() == self._process and getattr(sys, "last_traceback", None) is not None:
            self._debugger.begin()
        return super().__reversed__()


class _Debugger:
    def __init__(self, terminal: str, folder: str) -> None:
        self._terminal = terminal
        self._folder = folder
        self._rank = os.environ.get("RANK", "0")
        os.makedirs(folder, exist_ok=True)
        self._first, self._over = (os.path.join(folder, name) for name in ("first", "over"))
        with open(os.path.join(folder, f".{self._rank}"), "w") as file:
            file.write(str(os.getpid()))
        os.rename(file.name, os.path.join(folder, self._rank))  # whole when it is seen
        if os.path.exists(self._first) and not os.path.exists(self._over):
            import signal  # the rank that is looked at may not have seen this one
            os.kill(os.getpid(), signal.SIGSTOP)

    def begin(self) -> None:
        try:
            os.close(os.open(self._first, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            import time
            while True:  # another rank is looked at; the launcher ends this one with it
                time.sleep(3600)
        except OSError:
            return
        import signal
        try:
            self._tell_others(signal.SIGSTOP)
            self._ask()
        except OSError:
            pass  # the terminal is gone: nobody can be asked
        finally:
            os.mkdir(self._over)
            self._tell_others(signal.SIGCONT)

    def _tell_others(self, signal: int) -> None:
        for name in os.listdir(self._folder):
            if not name.isdigit() or name == self._rank:
                continue
            try:
                with open(os.path.join(self._folder, name)) as file:
                    os.kill(int(file.read()), signal)
            except OSError:
                pass  # it has ended

    def _ask(self) -> None:
        import pdb
        with open(self._terminal) as keys, open(self._terminal, "w") as screen:
            error = getattr(sys, "last_value", None)
            print(f"\ntaas-run: rank {self._rank} raised {type(error).__name__}: {error}\n"
                  "the other ranks are stopped; q ends the run", file=screen, flush=True)
            debugger = pdb.Pdb(stdin=keys, stdout=screen)
            debugger.prompt = f"(Pdb, rank {self._rank}) "
            debugger.reset()
            debugger.interaction(None, sys.last_traceback)


_terminal, _, _folder = os.environ.pop(_VARIABLE, "").partition("\n")
_import_users_own(os.path.dirname(os.path.abspath(__file__)))
if _folder:
    import threading
    if type(getattr(threading, "_threading_atexits", None)) is list:
        threading._threading_atexits = _Ends(  # type: ignore[attr-defined]
            threading._threading_atexits, _Debugger(_terminal, _folder))  # type: ignore[attr-defined]
