"""A real pseudo terminal with a program in its foreground, whose screen an emulator keeps."""

import fcntl
import os
import pathlib
import re
import select
import signal
import struct
import subprocess
import termios
import time

import pyte
from conftest import DEADLINE_SECONDS

COLUMNS, ROWS = 80, 100
FOOTER = re.compile(r"taas-run \d+:\d\d \| \d+ of \d+ ranks? up")
DONE = re.compile(r"^taas-run: done in ")


class Terminal:
    """A terminal of its own with a program in its foreground."""

    def __init__(self, command: list, folder: pathlib.Path, environment: dict, rows: int = ROWS):
        self.screen = pyte.HistoryScreen(COLUMNS, rows, history=10_000)
        self.stream = pyte.ByteStream(self.screen)
        self.seen = []  # the rows after each piece of output
        self.master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, COLUMNS, 0, 0))
        self.process = subprocess.Popen([str(word) for word in command], cwd=folder, env=environment, stdin=slave, stdout=slave,
                                        stderr=slave, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)

    def rows(self) -> list:
        """What stands on the screen, without the empty rows below it."""
        rows = [row.rstrip() for row in self.screen.display]
        while rows and not rows[-1]:
            rows.pop()
        return rows

    def all_rows(self) -> list:
        """What has scrolled away, and what stands on the screen."""
        gone = pyte.Screen(COLUMNS, max(1, len(self.screen.history.top)))
        for number, row in enumerate(self.screen.history.top):
            gone.buffer[number] = row
        return [row.rstrip() for row in gone.display][:len(self.screen.history.top)] + self.rows()

    def read(self, seconds: float) -> bool:
        """Takes one piece of output. False: the terminal has been closed by all who wrote to it."""
        if not select.select([self.master], [], [], seconds)[0]:
            return True
        try:
            self.stream.feed(os.read(self.master, 65536))
        except OSError:
            return False
        self.seen.append(self.rows())
        return True

    def wait_for(self, condition, what: str) -> list:
        """Until `condition` of the rows holds: a function, or a text that a row has to contain."""
        holds = condition if callable(condition) else lambda rows: any(condition in row for row in rows)
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not holds(self.rows()):
            open_still = self.read(0.1) or holds(self.rows())
            assert open_still and time.monotonic() < deadline, f"{what}; the screen:\n" + "\n".join(self.rows())
        return self.rows()

    def press(self, keys: str):
        os.write(self.master, keys.encode())

    def finish(self) -> list:
        """The screen when the program has ended, and its exit code was 0."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while self.read(0.1):
            assert time.monotonic() < deadline, "the program has not ended; the screen:\n" + "\n".join(self.rows())
            if self.process.poll() is not None and not select.select([self.master], [], [], 0)[0]:
                break
        assert self.process.wait(DEADLINE_SECONDS) == 0, "\n".join(self.rows())
        return self.rows()

    def showed_footer(self) -> bool:
        return any(FOOTER.search(row) for rows in self.seen for row in rows)

    def end(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self.master)
