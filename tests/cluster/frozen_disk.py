"""A disk that takes nothing for a while, as a network file system whose server is away: ext4 in a file, frozen."""

import contextlib
import fcntl
import os
import pathlib
import subprocess

import pytest

FIFREEZE, FITHAW = 0xC0045877, 0xC0045878  # linux/fs.h
MEBIBYTES = 16


class FreezableDisk:
    """The same disk at `path` on several nodes."""

    def __init__(self, folder: pathlib.Path, nodes):
        image = folder / "disk.img"
        with open(image, "wb") as file:
            file.truncate(MEBIBYTES << 20)
        _run("mkfs.ext4", "-q", image)
        try:
            self._device = _run("losetup", "--find", "--show", image)
        except subprocess.CalledProcessError as error:
            pytest.skip(f"this kernel has no loop devices: {error.stderr.strip()}")
        self.path = folder / "disk"
        self.path.mkdir()
        for node in nodes:
            node.check("mount", self._device, self.path)
            self._somewhere = f"/proc/{node.pid}/root{self.path}"

    @contextlib.contextmanager
    def frozen(self):
        """Whoever writes there waits until the end of the block."""
        root = os.open(self._somewhere, os.O_RDONLY)
        try:
            fcntl.ioctl(root, FIFREEZE, 0)
            try:
                yield
            finally:
                fcntl.ioctl(root, FITHAW, 0)
        finally:
            os.close(root)

    def inside(self, name: str) -> pathlib.Path:
        """A path on this disk as the test sees it, who is on no node."""
        return pathlib.Path(self._somewhere, name)

    def remove(self):
        """The nodes' mounts go with the nodes."""
        _run("losetup", "--detach", self._device)


def _run(*argv) -> str:
    return subprocess.run(list(map(str, argv)), check=True, capture_output=True, text=True).stdout.strip()
