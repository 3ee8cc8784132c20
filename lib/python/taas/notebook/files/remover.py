"""Removes files after this process, however that ends: a killed kernel would leave a cell's memory in /dev/shm.

A shell that waits at the end of a pipe which only this process can write to. It is in a session of its own, so that
what kills the kernel with its group leaves it; where it is killed as well, the next cell's sweep (kept.py) does its
work.
"""

from __future__ import annotations

import contextlib
import os
import subprocess

# A line is an inode's number and a path, which ranks know: what they have put there instead stays. A folder is emptied
# from within, since its path may change meanwhile. What is mounted in there by then is not a cell's; busybox has no
# such option, and no such line.
_SCRIPT = """
is() { found=$(ls -di -- "$2") && found=${found#"${found%%[! ]*}"} && [ "${found%% *}" = "$1" ]; }
while IFS= read -r line; do set -- "$@" "$line"; done
rm -f --one-file-system 2>/dev/null && one=--one-file-system
for line; do
    inode=${line%% *} path=${line#* }
    if [ -d "$path" ]; then
        (cd -P -- "$path" && is "$inode" . && rm -rf $one -- ./* ./.[!.]* ./..?*)
        rmdir -- "$path"
    else
        is "$inode" "$path" && rm -f -- "$path"
    fi
done
"""


class Remover:
    """Ends with close(), or with this process. Without a shell there is none, and all calls do nothing."""

    def __init__(self) -> None:
        self._shell: subprocess.Popen[bytes] | None = None
        with contextlib.suppress(OSError):
            self._shell = subprocess.Popen(
                ["/bin/sh", "-c", _SCRIPT, "taas-cell-remover"],
                bufsize=0,
                cwd="/",
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    def add(self, path: str) -> None:
        """What has the path by now is removed when this process has ended before close()."""
        if self._shell and self._shell.stdin:
            with contextlib.suppress(OSError):
                self._shell.stdin.write(b"%d %s\n" % (os.lstat(path).st_ino, os.fsencode(path)))

    def close(self) -> None:
        """What was added stays, or has been removed."""
        if self._shell:
            self._shell.kill()
            self._shell.wait()
            if self._shell.stdin:
                self._shell.stdin.close()
            self._shell = None
