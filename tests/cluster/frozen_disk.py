"""A disk that takes nothing for a while, as a network file system whose server is away: ext4 in a file, frozen."""

import contextlib
import pathlib
import subprocess
import sys

import pytest

MEBIBYTES = 16
# Thaws the disk when its input ends, as it does when the test is killed: a frozen disk could not be unmounted any more.
FREEZE = """
import fcntl, os, sys
FIFREEZE, FITHAW = 0xC0045877, 0xC0045878  # linux/fs.h
root = os.open(sys.argv[1], os.O_RDONLY)
fcntl.ioctl(root, FIFREEZE, 0)
print("frozen", flush=True)
sys.stdin.read()
fcntl.ioctl(root, FITHAW, 0)
"""


class FreezableDisk:
    """The same disk at `path` on several nodes."""

    def __init__(self, folder: pathlib.Path, nodes):
        image = folder / "disk.img"
        with open(image, "wb") as file:
            file.truncate(MEBIBYTES << 20)
        _run("mkfs.ext4", "-q", image)
        try:
            device = _run("losetup", "--find", "--show", image)
        except subprocess.CalledProcessError as error:
            pytest.skip(f"this kernel has no loop devices: {error.stderr.strip()}")
        self.path = folder / "disk"
        self.path.mkdir()
        try:
            for node in nodes:
                node.check("mount", device, self.path)
                self._somewhere = f"/proc/{node.pid}/root{self.path}"
        finally:
            _run("losetup", "--detach", device)  # which the kernel does when the last of these nodes has ended

    @contextlib.contextmanager
    def frozen(self):
        """Whoever writes there waits until the end of the block."""
        with subprocess.Popen(
            [sys.executable, "-c", FREEZE, self._somewhere],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as holder:
            assert holder.stdout.readline() == "frozen\n"
            yield

    def inside(self, name: str) -> pathlib.Path:
        """A path on this disk as the test sees it, who is on no node."""
        return pathlib.Path(self._somewhere, name)


def _run(*argv) -> str:
    return subprocess.run(list(map(str, argv)), check=True, capture_output=True, text=True).stdout.strip()
