"""docs/examples/object_store: a dataset that reads over the network, through data workers on several CPU machines."""

import json
import pathlib
import pickle
import re
import socket
import subprocess
import sys
import urllib.request

import pytest

from conftest import EXAMPLES, TAAS_RUN, need

EXAMPLE = EXAMPLES / "object_store"
BENCHMARK = EXAMPLES.parents[1] / "apps/bench/data/slow_source.py"


@pytest.fixture
def server():
    """The address of an object server whose objects take a millisecond."""
    with subprocess.Popen(
        [sys.executable, EXAMPLE / "object_server.py", "--latency-ms", "1"], stdout=subprocess.PIPE, text=True
    ) as process:
        yield process.stdout.readline().strip()
        process.terminate()


def test_each_batch_is_right_and_all_machines_take_part(runner, tmp_path):
    """The benchmark compares each batch with the server's, and counts the objects that each data worker was sent."""
    need("torch")
    package = pathlib.Path(TAAS_RUN).parents[1] / "python"
    done = runner.python(
        BENCHMARK,
        "--bin",
        pathlib.Path(TAAS_RUN).parent,
        "--package",
        package,
        "--rounds",
        1,
        "--machines",
        3,
        "--batches",
        6,
        "--latency-ms",
        20,
        "--json",
        tmp_path / "result.json",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (seen,) = json.loads((tmp_path / "result.json").read_text())["results"]["3"]
    assert seen["batches"] == 18 and len(seen["objects_by_worker"]) == 3 and sum(seen["objects_by_worker"]) >= 18 * 4


def test_the_example_trains_with_two_machines(runner, server):
    need("torch")
    done = runner.taas_run(
        "--gpus", 1, "--cpus", 2, "--data-cores", 1, EXAMPLE / "train.py", "--url", server, "--steps", 12
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"^12 steps, \d+\.\d per second$", done.stdout, re.MULTILINE), done.stdout
    with urllib.request.urlopen(f"{server}/served") as answer:
        assert sum(json.load(answer)) >= 12 * 4


def test_the_dataset_by_itself(server, monkeypatch):
    need("torch")
    monkeypatch.syspath_prepend(EXAMPLE)
    from object_dataset import ObjectDataset
    from object_server import content

    dataset = ObjectDataset(server, 10)
    image, label = dataset[7]
    assert (label, len(image)) == (content(7)[0], len(content(7)) - 1)
    dataset._connection.sock.shutdown(socket.SHUT_RDWR)  # as after a pause in which the server has closed it
    assert dataset[7][0].equal(image)
    assert pickle.loads(pickle.dumps(dataset))[7][0].equal(image)
    with pytest.raises(OSError, match=f"{server}/objects/1000000: 404 Not Found"):
        dataset[1_000_000]
