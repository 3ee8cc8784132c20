"""An epoch under faults: data workers killed, frozen, cut off, added and taken away, and the rank itself killed.

Every batch must be delivered once, in order and with the same bytes as in an undisturbed epoch. The data workers are
on nodes of their own (network namespaces: as root). `--seed` replays the choice of faults.
"""

import argparse
import collections
import contextlib
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import measure  # noqa: E402

measure.need("torch", "numpy")

import contenders  # noqa: E402
import nodes  # noqa: E402

HERE = pathlib.Path(__file__).parent
NODES = 5
FIRST_WORKERS = 3
PORT = 4700

# In a node: listens at a fixed port, so that a worker that is started again has the address of the former one.
LISTEN_AND_WORK = f"""
import os, socket, sys
listener = socket.create_server((sys.argv[1], {PORT}))
listener.set_inheritable(True)
os.environ["TAAS_DATA_LISTEN"] = f"{{listener.fileno()}},-"
os.execv(sys.executable, [sys.executable, "-u", "-m", "taas.worker"])
"""


class Worker:
    def __init__(self, node, number: int, environment: dict):
        self.node, self.number, self._environment = node, number, environment
        self.process = None

    def start(self):
        self.process = self.node.start(
            [sys.executable, "-c", LISTEN_AND_WORK, self.node.there],
            stdout=None,
            env={**self._environment, "TAAS_ROLE": "data-worker", "TAAS_DATA_WORKER": str(self.number)},
        )

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process = None


class Epoch:
    """One run of endure_rank.py with its workers, in a folder of its own."""

    def __init__(self, folder: pathlib.Path, package: pathlib.Path, batches: int, stack):
        self.folder, self.batches = folder, batches
        folder.mkdir()
        self.record = folder / "record"
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(package),
            "TAAS_DATA_PLAN": str(folder / "plan.json"),
            "CUDA_VISIBLE_DEVICES": "",
            "OMP_NUM_THREADS": "1",
        }
        self.workers = [
            Worker(stack.enter_context(nodes.OtherNode(number)), number, self.environment) for number in range(NODES)
        ]
        self.listed = set(range(FIRST_WORKERS))
        self.write_plan()
        for number in self.listed:
            self.workers[number].start()
        stack.callback(self.stop)
        self.start_rank()

    def write_plan(self):
        workers = [(w.node.there, PORT, "") if w.number in self.listed else ("", 0, "") for w in self.workers]
        contenders.write_plan(self.environment["TAAS_DATA_PLAN"], workers, "tls")

    def start_rank(self):
        self.rank = subprocess.Popen(
            [sys.executable, HERE / "endure_rank.py", self.record, self.folder / "checkpoint", str(self.batches)],
            env=self.environment,
        )

    def progress(self) -> int:
        return self.record.read_text().count("\n") if self.record.exists() else 0

    def is_over(self) -> bool:
        return self.record.with_suffix(".end").exists()

    def stop(self):
        for process in [self.rank, *(worker.process for worker in self.workers if worker.process)]:
            process.kill()
            process.wait()


class Faults:
    """Each takes back what it did after a while; `due` holds that."""

    def __init__(self, epoch: Epoch, choice: random.Random):
        self.epoch, self.choice, self.due, self.counts = epoch, choice, [], collections.Counter()

    def strike(self):
        kinds = [self.kill_worker, self.freeze_worker, self.cut_link, self.kill_rank, self.add_or_take_worker]
        kind = self.choice.choice(kinds)
        kind()
        self.counts[kind.__name__] += 1

    def tick(self):
        now = time.monotonic()
        for entry in [entry for entry in self.due if entry[0] <= now]:
            self.due.remove(entry)
            entry[1]()
        if self.epoch.rank.poll() not in (None, 0):
            sys.exit(f"the rank ended with {self.epoch.rank.returncode}")

    def _later(self, seconds: float, undo):
        self.due.append((time.monotonic() + seconds, undo))

    def _some_worker(self) -> Worker:
        return self.choice.choice([w for w in self.epoch.workers if w.process])

    def kill_worker(self):
        worker = self._some_worker()
        worker.stop()
        worker.start()

    def freeze_worker(self):
        process = self._some_worker().process
        process.send_signal(signal.SIGSTOP)
        self._later(self.choice.uniform(0.5, 3), lambda: process.send_signal(signal.SIGCONT))

    def cut_link(self):
        node = self._some_worker().node
        node.heal()
        node.cut()
        self._later(2, node.heal)

    def kill_rank(self):
        self.epoch.rank.kill()
        self.epoch.rank.wait()
        self.epoch.start_rank()

    def add_or_take_worker(self):
        away = [w for w in self.epoch.workers if w.number not in self.epoch.listed]
        worker = self.choice.choice(away) if away else self._some_worker()
        if worker.process:
            self.epoch.listed.discard(worker.number)
            worker.stop()
        else:
            self.epoch.listed.add(worker.number)
            worker.start()
        self.epoch.write_plan()


def run(folder, options, batches: int, faults: int) -> tuple:
    with contextlib.ExitStack() as stack:
        epoch = Epoch(folder, options.package.resolve(), batches, stack)
        struck = Faults(epoch, random.Random(options.seed))
        began = time.monotonic()
        while not epoch.is_over():
            if (
                faults
                and sum(struck.counts.values()) < faults
                and epoch.progress() >= (sum(struck.counts.values()) + 1) * batches // (faults + 1)
                and epoch.rank.poll() is None
            ):
                struck.strike()
            struck.tick()
            if time.monotonic() - began > options.limit:
                sys.exit(
                    f"the epoch is not over after {options.limit} s: {epoch.progress()} of {batches} batches, "
                    f"faults {dict(struck.counts)}, seed {options.seed}"
                )
            time.sleep(0.01)
        return epoch.record.read_text().splitlines(), struck.counts, time.monotonic() - began


def compare(undisturbed: list, disturbed: list) -> dict:
    numbers = [int(line.split()[0]) for line in disturbed]
    return {
        "lost": len(set(range(len(undisturbed))) - set(numbers)),
        "duplicated": len(numbers) - len(set(numbers)),
        "reordered": sum(a > b for a, b in zip(numbers, numbers[1:])),
        "different": sum(a != b for a, b in zip(undisturbed, disturbed)),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", type=pathlib.Path, default=pathlib.Path("build/release/python"))
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--batches", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=1800, help="seconds for an epoch")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    options.rounds = 1
    measure.need_root("a node in a namespace of its own")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    with tempfile.TemporaryDirectory() as folder:
        undisturbed, _, quiet_seconds = run(pathlib.Path(folder) / "quiet", options, options.batches, 0)
        disturbed, counts, seconds = run(pathlib.Path(folder) / "faults", options, options.batches, options.faults)
    result = compare(undisturbed, disturbed)
    measure.report(
        "data delivery under faults",
        options,
        {**result, "faults": counts, "seconds": seconds, "undisturbed_seconds": quiet_seconds},
        [[str(sum(counts.values())), *map(str, result.values()), f"{quiet_seconds:.0f} s", f"{seconds:.0f} s"]],
        ["faults", *result, "undisturbed", "with faults"],
        [f"{dict(counts)}, seed {options.seed}"],
    )
    if any(result.values()) or len(disturbed) != options.batches:
        sys.exit("the epochs differ")


if __name__ == "__main__":
    measure.run(main)
