"""Gives a sign of life every few milliseconds: the time (CLOCK_MONOTONIC, ns) to FOLDER/GENERATION-RANK-HOST.

With --print it prints them, too. It leaves with 0 once FOLDER/finish exists. The signs show which generations lived at
the same time.
"""

import os
import socket
import sys
import time

folder = sys.argv[1]
name = "-".join([os.environ["TORCHELASTIC_RESTART_COUNT"], os.environ["RANK"], socket.gethostname()])
life = os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
while not os.path.exists(f"{folder}/finish"):
    sign = b"%d\n" % time.monotonic_ns()
    os.write(life, sign)
    if "--print" in sys.argv:
        os.write(1, sign)
    time.sleep(0.005)
