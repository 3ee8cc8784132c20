import atexit
import sys


@atexit.register
def fails():
    raise RuntimeError("in atexit")


sys.exit(5)
