"""A process that is killed in the middle of a save leaves the last good checkpoint, and nothing beside it that stays.

usage: killed_reference.py PYTHON_PEER; 20 times, or 100 with TAAS_FULL=1
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time

TIMES = 100 if os.environ.get("TAAS_FULL") else 20
LONGEST = 0.02  # seconds between the beginning of a save and the kill: about what the save takes
PATIENCE = 60


def wait_for_save(path, process):
    """Until the process has begun to write a file."""
    limit = time.monotonic() + PATIENCE
    while not os.path.exists(f"{path}.tmp-{process.pid}"):
        assert process.poll() is None and time.monotonic() < limit, "no save begins"


def kill_in_save(peer, path, whole, delay):
    """Lets a process make whole saves and kills it in the next. Returns the epoch it found, and its last whole one."""
    process = subprocess.Popen([peer, "save-for-ever", path], stdout=subprocess.PIPE, text=True)
    said = [process.stdout.readline() for _ in range(1 + whole)]
    assert all(said), "the checkpoint that a killed process has left cannot be loaded"
    wait_for_save(path, process)
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    said += process.stdout.readlines()
    assert process.wait() == -signal.SIGKILL
    return int(said[0]), int(said[-1])


def main(peer):
    choose = random.Random(5)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "checkpoint.pt")
        least, cut_off = 0, 0
        for number in range(TIMES):
            whole = number % 3
            found, last = kill_in_save(peer, path, whole, 0 if number % 4 == 0 else choose.uniform(0, LONGEST))
            assert found >= least, f"epoch {found} came back after {least} had been saved"
            least = last
            left = os.listdir(folder)
            cut_off += len(left) - left.count("checkpoint.pt")
            # The beginning of a save removes what is there, and a process may be killed before it comes to that.
            assert whole == 0 or len(left) <= 2, f"files stay behind: {left}"
        assert least >= TIMES // 2 and cut_off >= TIMES // 8, f"too little was tested: {cut_off} cut off, {least} saved"
    print(f"{TIMES} kills, {cut_off} of them in the middle of a save; {least} checkpoints")


if __name__ == "__main__":
    main(sys.argv[1])
