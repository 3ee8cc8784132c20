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
from differential.machines import Machines, variables_of
from taas.delivery import delivery

DEADLINE_SECONDS = 120


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """Every test begins without workers and leaves none."""
    for name in ("TAAS_DATA_PLAN", "TAAS_EVENTS", "TAAS_ROLE", "TAAS_DATA_WORKERS", "RANK"):
        monkeypatch.delenv(name, raising=False)
    yield
    for each in delivery._deliveries.values():
        (getattr(each, "_close", None) or getattr(each, "disconnect", lambda: None))()
    delivery._deliveries.clear()


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


def registered_loop(make, workers, monkeypatch, epochs=1):
    """The batches of `make()` made by so many local worker processes; 0: in this process."""
    monkeypatch.setenv("TAAS_DATA_WORKERS", str(workers))
    seed()
    with taas.register(make()) as loader:
        return loop(loader, epochs)


def equal(one, other):
    """To the bit, with types, shapes and strides."""
    if type(one) is not type(other):
        return False
    if isinstance(one, torch.Tensor):
        return (
            one.dtype == other.dtype
            and one.shape == other.shape
            and one.stride() == other.stride()
            and one.contiguous().view(-1).view(torch.uint8).equal(other.contiguous().view(-1).view(torch.uint8))
            if one.layout == torch.strided and one.numel()
            else torch.equal(one, other)
            if one.numel()
            else one.shape == other.shape
        )
    if isinstance(one, numpy.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if isinstance(one, dict):
        return list(one) == list(other) and all(equal(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(equal, one, other))
    return one == other or one != one and other != other


def wait_until(condition):
    """Polls with a deadline."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


class Run:
    """Plays the launcher: a plan, `python -m taas.worker` processes, and the socket for events."""

    def __init__(self, folder, monkeypatch):
        self._folder = folder
        self._events = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._events.bind(str(folder / "events"))
        self._events.setblocking(False)
        self._ending = os.eventfd(0)
        self._reading = threading.Lock()
        self._reader = threading.Thread(target=self._read_until_the_end)
        self._listeners, self.workers, self.seen = [], [], []
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
        self._reader.start()

    def start(self, workers, **plan):
        """Writes the plan and starts the workers."""
        for index in range(workers):
            self._listen(index)
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
        listener = self._listeners[index]
        environment = {
            "PYTHONHASHSEED": "0",
            **os.environ,
            "TAAS_ROLE": "data-worker",
            "TAAS_DATA_WORKER": str(index),
            "TAAS_DATA_LISTEN": f"-,{listener.fileno()}",
        }
        return subprocess.Popen(
            [sys.executable, "-u", "-m", "taas.worker"],
            env=environment,
            pass_fds=[listener.fileno()],
            stdin=subprocess.DEVNULL,
        )

    def events(self):
        """All events so far."""
        with self._reading:
            while True:
                try:
                    self.seen.append(json.loads(self._events.recv(1 << 16)))
                except BlockingIOError:
                    return self.seen

    def remarks(self):
        """But that strings have other hashes than in this process, which no launcher has started."""
        lines = [event["text"] for event in self.events() if event["kind"] == "remark"]
        return [line for line in lines if "PYTHONHASHSEED" not in line]

    def end(self):
        for worker in self.workers:
            worker.kill()
            worker.wait()
        for listener in self._listeners:
            listener.close()
        os.eventfd_write(self._ending, 1)
        self._reader.join()
        os.close(self._ending)
        self._events.close()

    def _read_until_the_end(self):
        """While the test loops: ten events that nobody has read are all that the socket takes."""
        while self._ending not in select.select([self._events, self._ending], [], [])[0]:
            self.events()

    def _listen(self, index):
        path = str(self._folder / f"worker-{index}")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen(16)
        self._listeners.append(listener)
        self.plan["workers"].append({"name": f"data worker {index}", "address": "", "port": 0, "unix": path})


@pytest.fixture(scope="module")
def machines(tmp_path_factory):
    """A run with two data workers, for all pipelines of a module."""
    folder = tmp_path_factory.mktemp("run")
    folder.chmod(0o700)
    with pytest.MonkeyPatch.context() as variables:
        run = Run(folder, variables)
        run.start(2)
        found = Machines(run, variables_of(os.environ))
    yield found
    run.end()


@pytest.fixture
def run(tmp_path, monkeypatch):
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    found = Run(folder, monkeypatch)
    yield found
    found.end()
