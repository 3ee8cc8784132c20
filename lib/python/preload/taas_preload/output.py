"""What modules write while they are imported: each rank writes it again, when it imports them."""

import os
import sys

from . import traces
from .settings import SOCKET

_STREAMS = (1, 2)


class Held:
    """Until the end both output streams of this process go into memory."""

    def __init__(self) -> None:
        self._files = {}
        self._earlier = []
        for stream in _STREAMS:
            _flush()
            self._earlier.append((stream, _read_pipe(SOCKET + stream)))
            file = os.memfd_create(f"taas-preload-{stream}", os.MFD_CLOEXEC)
            os.dup2(file, stream)
            self._files[stream] = file

    def take(self) -> list[tuple[int, bytes]]:
        """What has been written since the last time, by stream."""
        _flush()
        taken = []
        for stream, file in self._files.items():
            if size := os.fstat(file).st_size:
                taken.append((stream, os.pread(file, size, 0)))
                os.ftruncate(file, 0)
                os.lseek(file, 0, os.SEEK_SET)
        return taken

    def end(self) -> None:
        _flush()
        for file in self._files.values():
            os.close(file)

    def replay(self) -> None:
        """In a rank, whose streams are connected and read: what Python itself has said before all modules."""
        for stream, text in self._earlier:
            traces.write(stream, text)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()


def _read_pipe(reader: int) -> bytes:
    """Python itself may have said something before this module was reached."""
    os.set_blocking(reader, False)
    text = b""
    try:
        while more := os.read(reader, 1 << 16):
            text += more
    except BlockingIOError:
        pass
    os.close(reader)
    return text
