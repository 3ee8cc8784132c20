"""Removes files after this process, however that ends: a killed kernel would leave a cell's memory in /dev/shm.

A shell that waits at the end of a pipe which only this process can write to. It is in a session of its own, so that
what kills the kernel with its group leaves it; where it is killed as well, the next cell's sweep (kept.py) does its
work.
"""

from __future__ import annotations

import contextlib
import os
import subprocess

_SCRIPT = 'while IFS= read -r path; do set -- "$@" "$path"; done; rm -rf -- "$@"'


class Remover:
    """Ends with close(), or with this process. Without a shell there is none, and all calls do nothing."""

    def __init__(self) -> None:
        self._shell: subprocess.Popen[bytes] | None = None
        with contextlib.suppress(OSError):
            self._shell = subprocess.Popen(["/bin/sh", "-c", _SCRIPT, "taas-cell-remover"], bufsize=0, cwd="/",
                                           stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                           start_new_session=True)

    def add(self, path: str) -> None:
        """It is removed when this process has ended before close()."""
        if self._shell and self._shell.stdin:
            with contextlib.suppress(OSError):
                self._shell.stdin.write(os.fsencode(path) + b"\n")

    def close(self) -> None:
        """What was added stays, or has been removed."""
        if self._shell:
            self._shell.kill()
            self._shell.wait()
            if self._shell.stdin:
                self._shell.stdin.close()
            self._shell = None
