import sys

print(repr(sys.stdin.read()), sys.stdin.buffer.tell() if sys.stdin.seekable() else "no tell")
