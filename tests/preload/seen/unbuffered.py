import os
import sys

sys.stdout.write("first ")
os.write(1, b"second ")
sys.stdout.buffer.write(b"third\n")
os.write(1, b"fourth\n")
