"""What modules write while they are imported: each rank writes it again, as it would have been written there."""

import contextlib
import os
import sys

from .settings import SOCKET

_STREAMS = (1, 2)


class Held:
    """From now on both output streams of this process go into memory."""

    def __init__(self) -> None:
        self._files = {}
        for stream in _STREAMS:
            self._flush()
            file = os.memfd_create(f"taas-preload-{stream}", os.MFD_CLOEXEC)
            self._keep_earlier(SOCKET + stream, file)
            os.dup2(file, stream)
            self._files[stream] = file

    def replay(self) -> None:
        """In a rank, whose streams are connected and read: writes all of it and forgets it. What a stream does not take
        is lost, as the rest of the program's output will be."""
        for stream, file in self._files.items():
            text = os.pread(file, os.fstat(file).st_size, 0)
            with contextlib.suppress(OSError):
                while text:
                    text = text[os.write(stream, text) :]
            os.close(file)

    @staticmethod
    def _flush() -> None:
        sys.stdout.flush()
        sys.stderr.flush()

    @staticmethod
    def _keep_earlier(reader: int, file: int) -> None:
        """Python itself may have said something before this module was reached."""
        os.set_blocking(reader, False)
        try:
            while text := os.read(reader, 1 << 16):
                os.write(file, text)
        except BlockingIOError:
            pass
        os.close(reader)
