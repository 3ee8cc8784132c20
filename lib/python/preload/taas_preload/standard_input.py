"""sys.stdin of a rank that reads the launcher's standard input: Python looked at another one when it started."""

import io
import sys


def look_again() -> None:
    """Opens it as Python does at its start."""
    old = sys.stdin
    if old is None:
        return
    unbuffered = old.write_through
    raw = open(0, "rb", -1, closefd=False)
    stream = raw.raw if isinstance(raw, io.BufferedReader) else raw
    stream.name = "<stdin>"
    new = io.TextIOWrapper(
        raw,
        old.encoding,
        old.errors,
        newline="\n",
        write_through=unbuffered,
        line_buffering=not unbuffered and stream.isatty(),
    )
    new.mode = "r"
    old.detach()
    sys.stdin = sys.__stdin__ = new
