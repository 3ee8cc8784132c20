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
LONGEST = 0.1  # seconds after which a process is killed: several saves


def main(peer):
    choose = random.Random(5)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "checkpoint.pt")
        epochs, cut_off = [], 0
        for _ in range(TIMES):
            process = subprocess.Popen([peer, "save-for-ever", path], stdout=subprocess.PIPE, text=True)
            said = process.stdout.readline()
            assert said, "the checkpoint that a killed process has left cannot be loaded"
            epochs.append(int(said))
            time.sleep(choose.uniform(0, LONGEST))
            process.send_signal(signal.SIGKILL)
            assert process.wait() == -signal.SIGKILL
            left = os.listdir(folder)
            cut_off += len(left) - left.count("checkpoint.pt")
            assert len(left) <= 2, f"files stay behind: {left}"
        assert epochs == sorted(epochs), f"an older checkpoint came back: {epochs}"
        assert epochs[-1] > 0 and cut_off > TIMES // 4, f"nothing was tested: {cut_off} saves were cut off, epochs {epochs}"
    print(f"{TIMES} kills, {cut_off} of them in the middle of a save; {epochs[-1]} checkpoints")


if __name__ == "__main__":
    main(sys.argv[1])
