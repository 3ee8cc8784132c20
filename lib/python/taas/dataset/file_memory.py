"""Memory that is a file: as the kernel sees it in this process, and mapped again in another one.

There it is mapped only where the file is the same.
"""

from __future__ import annotations

import bisect
import contextlib
import hashlib
import mmap
import os
import re
import stat
from dataclasses import dataclass, field
from typing import Any, Iterator

_SAMPLES = 64
_SAMPLE_BYTES = 4096
_CARRIED_BYTES = 16 << 20
_WITHOUT_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)
_LINE = re.compile(r"([0-9a-f]+)-([0-9a-f]+) r(.).(.) ([0-9a-f]+) \S+ (\d+) +(/.*)\n")


@dataclass
class FileMemory:
    """A mapped file. `is_shared`: what is written into the memory goes to the file. A small one's bytes come along."""

    path: str
    size: int
    is_shared: bool
    place: tuple[str, int, int]
    modified: int
    samples: bytes
    content: bytes | None
    _mapped: Any = field(default=None, repr=False)

    def memory(self) -> Any:
        """A writable buffer of the whole file, one for all that lies in it.

        What is written stays in this process. Raises RuntimeError where the file is another one, or not there.
        """
        if self._mapped is None:
            self._mapped = self.mapped() or self._carried()
        return self._mapped

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_mapped": None}

    def mapped(self) -> Any:
        """None where the file is another one, or not there."""
        try:
            with open(self.path, "r+b" if self.is_shared else "rb", buffering=0) as file:
                if _is_there(file.fileno(), self):
                    flags = mmap.MAP_SHARED if self.is_shared else mmap.MAP_PRIVATE | _WITHOUT_RESERVE
                    return mmap.mmap(file.fileno(), self.size, flags=flags, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        except OSError:
            pass
        return None

    def _carried(self) -> bytearray:
        if self.content is not None:
            return bytearray(self.content)
        raise RuntimeError(
            f"taas: the dataset has {self.path} ({self.size / 1e6:.0f} MB) mapped into memory, and this machine "
            "does not have the same file there: copy it there with its time (rsync -a), or open it in __getitem__"
        )


def _is_there(fd: int, known: FileMemory) -> bool:
    """On the same machine by its inode; elsewhere by its size, its time and some of its bytes."""
    status = os.fstat(fd)
    if status.st_size < known.size:
        return False
    if known.place == (_machine(), status.st_dev, status.st_ino):
        return True
    same = (status.st_size, int(status.st_mtime)) == (known.size, known.modified)
    return (
        same
        and not known.is_shared
        and _samples(lambda at: os.pread(fd, _SAMPLE_BYTES, at), known.size) == known.samples
    )


def _samples(read: Any, size: int) -> bytes:
    """A digest of some pages, the first and the last among them."""
    digest = hashlib.blake2b(digest_size=16)
    last = max(0, size - _SAMPLE_BYTES)
    for number in range(_SAMPLES):
        digest.update(read(last * number // (_SAMPLES - 1)))
    return digest.digest()


def _machine() -> str:
    with open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()


@dataclass
class _Area:
    begin: int
    end: int
    is_writable: bool
    is_shared: bool
    offset: int
    inode: int
    path: str


class SeenByOthers:
    """Where other processes see what this one writes, as it is now: quicker than FilesInMemory."""

    def __init__(self) -> None:
        with open("/proc/self/maps", "rb", buffering=0) as file:
            lines = file.readall()
        self._areas: list[tuple[int, int]] = []
        for permission in (b"w-s ", b"wxs "):
            at = lines.find(permission)
            while at >= 0:
                begin, end = lines[lines.rfind(b"\n", 0, at) + 1 : at].split()[0].split(b"-")
                self._areas.append((int(begin, 16), int(end, 16)))
                at = lines.find(permission, at + 1)

    def has(self, address: int) -> bool:
        """Whether this address is there."""
        return any(begin <= address < end for begin, end in self._areas)


class FilesInMemory:
    """Which memory of this process is which file, as it is now."""

    def __init__(self) -> None:
        with open("/proc/self/maps") as file:
            found = [match for match in map(_LINE.fullmatch, file) if match]
        self._areas = [
            _Area(
                int(match[1], 16),
                int(match[2], 16),
                match[3] == "w",
                match[4] == "s",
                int(match[5], 16),
                int(match[6]),
                match[7],
            )
            for match in found
        ]
        self._begins = [area.begin for area in self._areas]
        self._known: dict[str, FileMemory | None] = {}
        self._unnamed: dict[str, FileMemory] | None = None
        self._clean: dict[int, bool] = {}

    def find(self, begin: int, end: int) -> tuple[FileMemory, int] | None:
        """The file that has these addresses, and the offset in it.

        None for other memory, for a file that is deleted, for pages that this process has changed for itself, and where
        what is written goes to the file.
        """
        area = self._area_of(begin)
        if area is None or end > area.end or not self._is_as_in_file(area):
            return None
        file = self._file(area)
        offset = area.offset + begin - area.begin
        return (file, offset) if file and offset + end - begin <= file.size else None

    def find_unnamed(self, begin: int, end: int) -> tuple[FileMemory, int] | None:
        """The same for memory that processes share and that has no name.

        It can be found as long as this process has a descriptor of it.
        """
        area = self._area_of(begin)
        if area is None or end > area.end:
            return None
        if self._unnamed is None:
            self._unnamed = dict(_unnamed_files())
        file = self._unnamed.get(area.path)
        return (file, area.offset + begin - area.begin) if file and file.place[2] == area.inode else None

    def is_shared(self, begin: int) -> bool:
        """Whether this address is in writable memory that processes share, and that is no file for others to open."""
        area = self._area_of(begin)
        return area is not None and area.is_shared and area.is_writable and not _is_found(area)

    def _area_of(self, address: int) -> _Area | None:
        at = bisect.bisect_right(self._begins, address) - 1
        return self._areas[at] if at >= 0 and address < self._areas[at].end else None

    def _is_as_in_file(self, area: _Area) -> bool:
        if area.is_shared:
            return not area.is_writable
        if area.begin not in self._clean:
            self._clean[area.begin] = _is_clean(area)
        return self._clean[area.begin]

    def _file(self, area: _Area) -> FileMemory | None:
        if area.path not in self._known:
            self._known[area.path] = _described(area)
        return self._known[area.path]


def _unnamed_files() -> Iterator[tuple[str, FileMemory]]:
    """Those that this process has descriptors of, by what the kernel calls them."""
    machine = _machine()
    for fd in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            status = os.stat(int(fd))
            if stat.S_ISREG(status.st_mode) and not status.st_nlink:
                yield (
                    os.readlink(f"/proc/self/fd/{fd}"),
                    FileMemory(
                        f"/proc/{os.getpid()}/fd/{fd}",
                        status.st_size,
                        True,
                        (machine, status.st_dev, status.st_ino),
                        0,
                        b"",
                        None,
                    ),
                )


def _is_found(area: _Area) -> bool:
    """Whether its file is where it was opened."""
    try:
        return os.stat(area.path).st_ino == area.inode
    except OSError:
        return False


def _described(area: _Area) -> FileMemory | None:
    try:
        with open(area.path, "rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            if status.st_ino != area.inode:
                return None
            content = file.read() if status.st_size <= _CARRIED_BYTES else None
            samples = _samples(lambda at: os.pread(file.fileno(), _SAMPLE_BYTES, at), status.st_size)
    except OSError:
        return None
    place = (_machine(), status.st_dev, status.st_ino)
    return FileMemory(area.path, status.st_size, False, place, int(status.st_mtime), samples, content)


def _is_clean(area: _Area) -> bool:
    """Whether no page of it was changed: written to, it would be memory of this process' own."""
    is_here, own = False, 0
    with open("/proc/self/smaps") as file:
        for line in file:
            if line.startswith(f"{area.begin:x}-"):
                is_here = True
            elif is_here and line.startswith(("Anonymous:", "Swap:")):
                own += int(line.split()[1])
            elif is_here and line.startswith("VmFlags:"):
                return own == 0
    return False
