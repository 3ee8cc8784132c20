"""What the tests share: seeded programs, loops with and without registration, and the run's side of a plan."""

import json
import os
import random
import secrets
import select
import socket
import subprocess
import sys
import threading
import time

import numpy
import pytest
import taas
import torch
from taas.delivery import run_workers
from worker_forks import Forks

DEADLINE_SECONDS = 120
RUNS_VARIABLES = ("TAAS_DATA_PLAN", "TAAS_EVENTS")
forks = None  # of this session; none in a data worker that imports a test module, and with it this one


def pytest_configure():
    global forks
    forks = Forks()


def pytest_unconfigure():
    forks.end()


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """Every test begins without a run, and leaves none."""
    for name in (*RUNS_VARIABLES, "TAAS_ROLE", "RANK"):
        monkeypatch.delenv(name, raising=False)
    yield
    forget_the_run()


def forget_the_run():
    """What is registered next sees the run that there is then."""
    run_workers.forget()


def seed(value=11):
    torch.manual_seed(value)
    random.seed(value)
    numpy.random.seed(value)


def states():
    """The random states of the process, comparable."""
    return (
        torch.get_rng_state().numpy().tobytes(),
        random.getstate(),
        numpy.random.get_state()[1].tobytes(),
        numpy.random.get_state()[2],
    )


def loop(loader, epochs=1):
    return [batch for _ in range(epochs) for batch in loader]


def as_with_one(loader):
    """The plain loader that a registered one with num_workers=0 is as, where there are data workers."""
    if not loader.num_workers:
        loader.num_workers, loader.prefetch_factor = 1, 2
    return loader


def registered_loop(make, data_workers, count, epochs=1):
    """The batches of `make()`, made by so many data workers; 0: without a run."""
    data_workers(count)
    seed()
    with taas.register(make()) as loader:
        return loop(loader, epochs)


def equal(one, other):
    """To the bit, with types, shapes and strides."""
    if type(one) is not type(other):
        return False
    if isinstance(one, torch.Tensor):
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            return False
        bits = [each.contiguous().view(-1).view(torch.uint8) for each in (one, other)]
        return not one.numel() or one.stride() == other.stride() and bits[0].equal(bits[1])
    if isinstance(one, numpy.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if isinstance(one, dict):
        return list(one) == list(other) and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(equal, one, other))
    return one == other or one != one and other != other


def printed(*command, **options):
    """What a program prints, which ends well and says nothing else."""
    ended = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_SECONDS, **options)
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


def wait_until(condition):
    """Polls with a deadline."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


class Run:
    """Plays the launcher: a plan, its data workers, and the socket for events."""

    def __init__(self, folder, monkeypatch):
        self._folder = folder
        self._events = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._events.bind(str(folder / "events"))
        self._events.setblocking(False)
        self._ending = os.eventfd(0)
        self._reading = threading.Lock()
        self._threads, self._listeners, self.workers, self.seen = [], [], [], []
        self.plan = {
            "run": "a-run",
            "key": secrets.token_hex(32),
            "workers": [],
            "encryption": "plain",
            "compression": "none",
            "buffer_bytes": 1 << 26,
            "units": 0,
            "on_error": "raise",
            "loader": "",
            "world_size": 1,
        }
        self.path = str(folder / "plan.json")
        monkeypatch.setenv("TAAS_DATA_PLAN", self.path)
        monkeypatch.setenv("TAAS_EVENTS", str(folder / "events"))
        self._in_a_thread(self._read_until_the_end)

    @property
    def client(self):
        """This process' own: all registered loaders share it."""
        return run_workers.connected().client

    def start(self, workers, over_tcp=False, **plan):
        """Writes the plan and starts the workers, with the variables that there are now.

        `over_tcp`: as if they were on another machine.
        """
        self._environment = {**os.environ, "TAAS_ROLE": "data-worker"}
        for index in range(workers):
            self._listen(index, over_tcp)
        self.write(**plan)
        for index in range(workers):
            self.workers.append(self.start_worker(index))
        return self

    def write(self, **plan):
        """Replaces the plan."""
        self.plan.update(plan)
        new = self._folder / "plan.new"
        new.write_text(json.dumps(self.plan))
        new.rename(self.path)

    def start_worker(self, index):
        """In milliseconds, as a fork: see worker_forks.py."""
        return forks.start({**self._environment, "TAAS_DATA_WORKER": str(index)}, self._listeners[index])

    def start_program(self, index):
        """As a launcher starts it, in seconds."""
        listener = self._listeners[index].fileno()
        own = {"TAAS_DATA_WORKER": str(index), "TAAS_DATA_LISTEN": f"-,{listener}"}
        return subprocess.Popen(
            [sys.executable, "-u", "-m", "taas.worker"],
            env={"PYTHONHASHSEED": "0", **self._environment, **own},
            pass_fds=[listener],
            stdin=subprocess.DEVNULL,
        )

    def replace(self, index, start=None):
        """Ends the worker with this index, and starts another one at its address: a fork, or what `start` starts."""
        self.workers[index].kill()
        self.workers[index].wait()
        self.workers[index] = (start or self.start_worker)(index)

    def keep(self):
        """From now on a worker that has ended is replaced, as by the launcher."""
        self._in_a_thread(self._replace_until_the_end)

    def pids(self):
        return [worker.pid for worker in self.workers]

    def events(self):
        """All events so far."""
        with self._reading:
            while True:
                try:
                    self.seen.append(json.loads(self._events.recv(1 << 16)))
                except BlockingIOError:
                    return self.seen

    def remarks(self):
        return [event["text"] for event in self.events() if event["kind"] == "remark"]

    def end(self):
        os.eventfd_write(self._ending, 1)
        for thread in self._threads:
            thread.join()
        for worker in self.workers:
            worker.kill()
            worker.wait()
        for each in (*self._listeners, self._events):
            each.close()
        os.close(self._ending)

    def _in_a_thread(self, action):
        self._threads.append(threading.Thread(target=action))
        self._threads[-1].start()

    def _read_until_the_end(self):
        """While the test loops: ten events that nobody has read are all that the socket takes."""
        while self._ending not in select.select([self._events, self._ending], [], [])[0]:
            self.events()

    def _replace_until_the_end(self):
        while self._ending not in (ended := select.select([*self.workers, self._ending], [], [])[0]):
            for worker in ended:
                self.replace(self.workers.index(worker))

    def _listen(self, index, over_tcp=False):
        if over_tcp:
            listener = socket.create_server(("127.0.0.1", 0))
            address = {"address": "127.0.0.1", "port": listener.getsockname()[1], "unix": ""}
        else:
            listener = socket.socket(socket.AF_UNIX)
            listener.bind(path := str(self._folder / f"worker-{index}"))
            listener.listen(16)
            address = {"address": "", "port": 0, "unix": path}
        self._listeners.append(listener)
        self.plan["workers"].append({"name": f"data worker {index}", **address})


@pytest.fixture
def run(tmp_path_factory, monkeypatch):
    """A run that the test starts."""
    found = Run(tmp_path_factory.mktemp("run"), monkeypatch)
    yield found
    forget_the_run()
    found.end()


@pytest.fixture
def data_workers(tmp_path_factory, monkeypatch):
    """`data_workers(2)`: this process is a rank of a run with two data workers. `data_workers(0)`: there is no run."""
    runs = []

    def use(count, **plan):
        forget_the_run()
        while runs:
            runs.pop().end()
        for name in RUNS_VARIABLES:
            monkeypatch.delenv(name, raising=False)
        if count:
            runs.append(Run(tmp_path_factory.mktemp("run"), monkeypatch))
            return runs[-1].start(count, **plan)

    yield use
    use(0)
