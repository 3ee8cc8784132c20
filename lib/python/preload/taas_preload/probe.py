"""The first execution of two.

The interpreter is started with `-c` and a line that tells taas-run that this hook was passed by (-E, -I, -S, a wrapper
that clears the environment), and the program's command line behind it. Only an interpreter that does come here gets the
program's own command line: so the program can never run where a preloaded interpreter was meant.
"""

import os
import sys
from typing import NoReturn

from .settings import SOCKET, VARIABLE, Settings


def go_on(settings: Settings) -> NoReturn:
    """Executes the same interpreter with the program's own command line."""
    words = sys.orig_argv
    path = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = settings.folder + (":" + path if path else "")
    os.environ[VARIABLE] = settings.print_for_serving()
    _discard_output()
    os.set_inheritable(SOCKET, True)
    os.execvp(words[0], words[: settings.options] + words[settings.options + 2 :])


def _discard_output() -> None:
    """What Python said while it started, it says again."""
    for reader in (SOCKET + 1, SOCKET + 2):
        os.set_blocking(reader, False)
        try:
            while os.read(reader, 1 << 16):
                pass
        except BlockingIOError:
            pass
        os.set_inheritable(reader, True)
