import ctypes
import sqlite3  # noqa: F401  # a library that was not preloaded
import sys

ctypes.CDLL(None).printf(b"in the C library's buffer")
sys.exit(4)
