"""How long a notebook's user waits: for a distributed cell that does nothing, for one that sums over all ranks (once without a
session, once from one), and from the stop button to the end of the cell. With --stay: for the same two cells in ranks that stay.
With --ipyparallel: for the sum in its engines.

Method: a real kernel, `--ranks` CPU ranks. Stopping: every rank sleeps in Python after its process group is up; measured from
the interrupt that Jupyter sends to the cell's reply, which comes when no process of it is left (checked). Staying ranks and
engines begin with another cell, which is not measured; those that sum have their process group from it. Medians of `--rounds`,
in turns.

usage: TAAS_RUN=$PWD/build/release/bin/taas-run PYTHONPATH=$PWD/build/release/python python apps/bench/notebook.py [--rounds 5] [--ranks 2]
       [--stay] [--ipyparallel]
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

STOPPED = '''%%taas --gpus {ranks}
import time, torch, torch.distributed as dist
dist.init_process_group("gloo")
dist.barrier()
print("ready", flush=True)
time.sleep(600)
'''


def empty_cell(kernel, ranks: int) -> float:
    began = time.monotonic()
    assert kernel.run(f"%%taas --gpus {ranks}\n'ran'").check().result == "'ran'"
    return time.monotonic() - began


SUMS = """%%taas --gpus {ranks}
import torch, torch.distributed as dist
dist.init_process_group("gloo")
dist.all_reduce(torch.ones(1))
dist.destroy_process_group()
"""


def sums(kernel, ranks: int) -> float:
    began = time.monotonic()
    kernel.run(SUMS.format(ranks=ranks)).check()
    return time.monotonic() - began


def sums_from_a_session(kernel, ranks: int) -> float:
    kernel.run(f"%taas warm {ranks}").check()
    took = sums(kernel, ranks)
    kernel.run("%taas warm off").check()
    return took


def staying(kernel, ranks: int, first: str, cell: str, result: str) -> float:
    """The time of the second cell of a set."""
    kernel.run(f"%%taas --gpus {ranks} --stay\n{first}").check()
    began = time.monotonic()
    done = kernel.run(f"%%taas --stay\n{cell}").check()
    took = time.monotonic() - began
    assert done.result == result
    kernel.run("%taas end").check()
    return took


def empty_cell_in_staying_ranks(kernel, ranks: int) -> float:
    return staying(kernel, ranks, "1", "'ran'", "'ran'")


FIRST = 'import torch, torch.distributed as dist\ndist.init_process_group("gloo")\none = torch.ones(1)\ndist.all_reduce(one)'
SECOND = "one = torch.ones(1)\ndist.all_reduce(one)\none.item()"


def sum_in_staying_ranks(kernel, ranks: int) -> float:
    return staying(kernel, ranks, FIRST, SECOND, f"{ranks}.0")


ENGINES = """
import ipyparallel, socket
with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
cluster = ipyparallel.Cluster(n={ranks}, controller_ip="127.0.0.1")
clients = cluster.start_and_connect_sync(activate=True)
for rank in range({ranks}):
    clients[rank].execute(f"import os; os.environ.update(RANK='{{rank}}', WORLD_SIZE='{ranks}', MASTER_ADDR='127.0.0.1', "
                          f"MASTER_PORT='{{port}}')", block=True)
"""


def sum_in_ipyparallel(kernel, ranks: int) -> float:
    kernel.run(ENGINES.format(ranks=ranks)).check()
    kernel.run(f"%%px\n{FIRST}").check()
    began = time.monotonic()
    kernel.run(f"%%px\n{SECOND}").check()
    took = time.monotonic() - began
    kernel.run("cluster.stop_cluster_sync()").check()
    return took


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
    parser.add_argument("--stay", action="store_true")
    parser.add_argument("--ipyparallel", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args()
    measure.need("jupyter_client", "ipykernel", "torch", *(["ipyparallel"] * options.ipyparallel))
    from kernel import Kernel
    with tempfile.TemporaryDirectory() as folder:
        kernel = Kernel(pathlib.Path(folder), pathlib.Path(folder))
        try:
            kernel.run("%load_ext taas").check()
            cells = [empty_cell, sums, sums_from_a_session, *([empty_cell_in_staying_ranks, sum_in_staying_ranks] * options.stay),
                     *([sum_in_ipyparallel] * options.ipyparallel), stop]
            rounds = [{what.__name__: what(kernel, options.ranks) for what in cells} for _ in range(options.rounds)]
            figures = {what.__name__: sorted(one[what.__name__] for one in rounds) for what in cells}
        finally:
            kernel.end()
    for name, seconds in figures.items():
        print(f"{name}: median {statistics.median(seconds):.2f} s, {seconds[0]:.2f} to {seconds[-1]:.2f} s, {options.ranks} ranks")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps({"ranks": options.ranks, **figures}) + "\n")


if __name__ == "__main__":
    measure.run(main)
