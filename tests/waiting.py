"""How tests wait for what other processes do: with an end in sight, which is the same for all of them."""

import contextlib
import pathlib
import signal
import time

DEADLINE_SECONDS = 180  # only a hang takes so long: not a busy machine, nor a cluster of dozens of processes on it


def wait_until(condition, what: str):
    """Waits for a condition of the outside world, and returns what made it true."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"{what}: not within {DEADLINE_SECONDS} s"
        time.sleep(0.005)
    return answer


@contextlib.contextmanager
def deadline(what: str):
    """For calls that know no deadline of their own, such as reading from a pipe; in the main thread."""

    def expire(*_):
        raise AssertionError(f"{what}: not within {DEADLINE_SECONDS} s")

    before = signal.signal(signal.SIGALRM, expire)
    signal.alarm(DEADLINE_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def next_line(stream, text: str = "") -> str:
    """The next line with this text; those before it are passed over."""
    with deadline(f"a line with {text!r}"):
        for line in stream:
            if text in line:
                return line
    raise AssertionError(f"no line has {text!r}")


def is_gone(pid: int) -> bool:
    """True when the process has ended with all its threads, be it as a zombie that nobody has reaped yet."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return fields[0] in "ZX" and int(fields[17]) <= 1  # a killed thread may still accept a connection
    except OSError:
        return True
