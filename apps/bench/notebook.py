"""How long a notebook's user waits: for a distributed cell that does nothing, and from the stop button to its end.

Method: a real kernel, `--ranks` CPU ranks. Stopping: every rank sleeps in Python after its process group is up;
measured from the interrupt that Jupyter sends to the cell's reply, which comes when no process of it is left (checked).
Medians of `--rounds`.

usage: TAAS_RUN=build/release/bin/taas-run PYTHONPATH=build/release/python
       python apps/bench/notebook.py [--rounds 5] [--ranks 2]
"""

import argparse
import json
import pathlib
import statistics
import sys
import tempfile
import time

import measure

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "notebook"))

STOPPED = """%%taas --gpus {ranks}
import time, torch, torch.distributed as dist
dist.init_process_group("gloo")
dist.barrier()
print("ready", flush=True)
time.sleep(600)
"""


def empty_cell(kernel, ranks: int) -> float:
    began = time.monotonic()
    assert kernel.run(f"%%taas --gpus {ranks}\n'ran'").check().result == "'ran'"
    return time.monotonic() - began


def stop(kernel, ranks: int) -> float:
    pressed = []

    def press(kind, output):
        if kind == "stream" and "ready" in output["text"] and not pressed:
            pressed.append(time.monotonic())
            kernel.interrupt()

    done = kernel.run(STOPPED.format(ranks=ranks), press)
    took = time.monotonic() - pressed[0]
    assert done.error["ename"] == "Interrupted", done.traceback
    assert not kernel.processes(), "a process is left"
    return took


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--json")
    options = parser.parse_args()
    measure.need("jupyter_client", "ipykernel", "torch")
    from kernel import Kernel

    with tempfile.TemporaryDirectory() as folder:
        kernel = Kernel(pathlib.Path(folder), pathlib.Path(folder))
        try:
            kernel.run("%load_ext taas").check()
            figures = {
                what.__name__: sorted(what(kernel, options.ranks) for _ in range(options.rounds))
                for what in (empty_cell, stop)
            }
        finally:
            kernel.end()
    for name, seconds in figures.items():
        print(
            f"{name}: median {statistics.median(seconds):.2f} s, {seconds[0]:.2f} to {seconds[-1]:.2f} s, "
            f"{options.ranks} ranks"
        )
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({"ranks": options.ranks, **figures}) + "\n")


if __name__ == "__main__":
    measure.run(main)
