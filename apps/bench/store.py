"""A store under many clients: that of the launcher beside torch's own server, with torch's clients, in the same rounds.

Each client does what a rank does at its start: it connects, sets its address, counts itself at a barrier, waits for
all, and asks for the addresses of all others at once. The clients are in one process, with as many threads as
`--threads` says.
"""

import argparse
import concurrent.futures
import datetime
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import measure

ADDRESS = b"a" * 200  # of a rank, as gloo writes it
PATIENCE = datetime.timedelta(seconds=300)
SERVER = """
import sys, torch.distributed as dist
store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
print(store.port, flush=True)
sys.stdin.read()
"""
TELL_PORT = (
    "import os, sys; os.environ['RANK'] != '0' or print(os.environ['MASTER_PORT'], flush=True); sys.stdin.read()"
)


class Server:
    """A process that serves a store until its standard input ends; `pid` is the process whose time counts."""

    def __init__(self, command, folder):
        self.process = subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(measure.announced(self.process))
        self.pid = self.process.pid

    def cpu_seconds(self) -> float:
        fields = measure.of_process(self.pid, "stat").rpartition(")")[2].split()
        if not fields:
            sys.exit(f"{self.process.args[0]}: its server ended while it was measured")
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.process.terminate()
        self.process.communicate()


def torch_server(options, folder) -> Server:
    return Server([sys.executable, "-c", SERVER], folder)


def launcher(options, folder) -> Server:
    """Two ranks, since one process alone has no store of the launcher; the agent is the keeper's child."""
    server = Server(
        [
            str(options.bin / "taas-run"),
            "--nproc-per-node",
            "2",
            "--preload",
            "none",
            "--quiet",
            "--no-python",
            sys.executable,
            "-c",
            TELL_PORT,
        ],
        folder,
    )
    server.pid = next(iter(measure.children(server.pid)), server.pid)
    return server


def connect(port: int):
    import torch.distributed as dist

    return dist.TCPStore("127.0.0.1", port, is_master=False, wait_for_workers=False, timeout=PATIENCE)


def arrive(store, rank: int, count: int):
    store.set(f"address/{rank}", ADDRESS)
    if store.add("barrier", 1) == count:
        store.set("all", b"1")


def finish(store, count: int):
    store.wait(["all"], PATIENCE)
    found = store.multi_get([f"address/{rank}" for rank in range(count)])
    if [bytes(value) for value in found] != [ADDRESS] * count:
        sys.exit("a store gave other values than were set")


def sample(start_server, options, count: int) -> dict:
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(options.threads) as pool:
        server = start_server(options, folder)
        try:
            cpu = server.cpu_seconds()
            began = time.perf_counter()
            stores = list(pool.map(lambda _: connect(server.port), range(count)))
            connected = time.perf_counter()
            list(pool.map(lambda rank: arrive(stores[rank], rank, count), range(count)))
            list(pool.map(lambda store: finish(store, count), stores))
            ended = time.perf_counter()
            return {"connect": connected - began, "seconds": ended - connected, "cpu": server.cpu_seconds() - cpu}
        finally:
            server.stop()


SERVERS = {"taas-run": launcher, "torch": torch_server}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--bin", type=pathlib.Path, default=pathlib.Path("build/release/bin"), help="folder of taas-run"
    )
    parser.add_argument("--clients", type=int, nargs="+", default=[64, 256, 1024])
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=pathlib.Path, help="where the results go")
    options = parser.parse_args()
    options.bin = options.bin.resolve()
    measure.need("torch")
    samples = {(count, name): [] for count in options.clients for name in SERVERS}
    for number in range(options.rounds):
        for count in options.clients:
            for name in measure.rotated(SERVERS, number):
                samples[count, name].append(sample(SERVERS[name], options, count))
    rows, results = [], {}
    for (count, name), found in samples.items():
        both = {what: measure.summary([one[what] for one in found]) for what in ("connect", "seconds", "cpu")}
        results[f"{count} {name}"] = both
        rows.append([str(count), name, *(measure.milliseconds(one) for one in both.values())])
    header = ["clients", "server", "all are connected", "first word → last answer", "CPU of the server"]
    measure.report("store", options, results, rows, header, [])


if __name__ == "__main__":
    measure.run(main)
