"""Folders of the test clusters. What a killed test process leaves behind is removed by the next one that starts."""

import fcntl
import pathlib
import shutil
import tempfile

PREFIX = "taas-cluster-"
OWNER = "owner"


class Scratch:
    """A folder that lives as long as its owner: it is locked, and the lock goes with the process."""

    def __init__(self):
        _remove_leftovers()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=PREFIX))
        self.folder.chmod(0o755)
        unlocked = self.folder / "unlocked"
        self._lock = open(unlocked, "w")
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        unlocked.rename(self.folder / OWNER)  # only now may another process judge it

    def remove(self):
        shutil.rmtree(self.folder)
        self._lock.close()


def _remove_leftovers():
    for owner in pathlib.Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{OWNER}"):
        try:
            with open(owner) as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(owner.parent)
        except OSError:  # in use, or another process removes it too
            pass
