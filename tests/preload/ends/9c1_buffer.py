import ctypes
import sys

ctypes.CDLL(None).printf(b"in the C library's buffer")
sys.exit(3)
