"""The standard streams of a rank: Python looked at others when it started."""

import io
import sys


def look_again() -> None:
    """Opens sys.stdin as Python does at its start. A rank that sees a terminal has each line shown at once."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not stream.line_buffering and stream.isatty():
            stream.reconfigure(line_buffering=True)
    old = sys.stdin
    if old is None:
        return
    unbuffered = old.write_through
    raw = open(0, "rb", -1, closefd=False)
    stream = raw.raw if isinstance(raw, io.BufferedReader) else raw
    stream.name = "<stdin>"
    new = io.TextIOWrapper(raw, old.encoding, old.errors, newline="\n", write_through=unbuffered,
                           line_buffering=not unbuffered and stream.isatty())
    new.mode = "r"
    old.detach()
    sys.stdin = sys.__stdin__ = new
