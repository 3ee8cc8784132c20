"""Where the program taas-run is that this package came with."""

from __future__ import annotations

import os
import shutil
import sysconfig


class NoLauncher(RuntimeError):
    """There is no taas-run beside this package, and none in PATH."""


def find_launcher() -> str:
    """The path of taas-run: of the same build folder, installation or environment, or the first in PATH.

    Raises NoLauncher.
    """
    for folder in _folders():
        program = os.path.join(folder, "taas-run")
        if os.access(program, os.X_OK) and os.path.isfile(program):
            return program
    in_path = shutil.which("taas-run")
    if in_path is None:
        raise NoLauncher(
            "no taas-run in this environment or in PATH; pip install --force-reinstall --no-deps <wheel of taas-run>"
        )
    return in_path


def _folders() -> list[str]:
    packages = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    above = os.path.dirname(packages)
    return [
        os.path.join(above, "bin"),  # of <build>/python
        os.path.join(
            os.path.dirname(os.path.dirname(above)), "bin"
        ),  # of <prefix>/lib/taas/python, lib/python3.x/site-packages
        os.path.join(packages, "bin"),  # of pip install --target
        sysconfig.get_path("scripts"),
    ]
