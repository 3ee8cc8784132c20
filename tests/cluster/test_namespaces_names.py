"""Pods of a headless service: their names are known late, or stand for the pods that were there before.

Each test that starts three pods does so twice, and 20 times with TAAS_FULL=1.
"""

import re
import signal

import pytest

from conftest import FULL, TAAS_RUN
from names import Names
from processes import wait_until
from runs import Records, assert_nothing_left

PODS = ("n0", "n1", "n2")
FIRST = "job-0.job"  # the first pod's name below the search domain
PORT = 29500
REPEATS = 20 if FULL else 2


@pytest.fixture
def names(cluster) -> Names:
    return Names(cluster)


class Pods:
    """The same command on each node; what each says goes to a file."""

    def __init__(self, cluster, folder, way, command, name=FIRST):
        self.cluster = cluster
        self._folder = folder
        self._way = way
        self._name = name
        self._command = command
        self._folder.mkdir()
        self._runs = {}

    def start(self, *pods: str):
        for pod in pods:
            with open(self._folder / pod, "w") as errors:
                self._runs[pod] = self.cluster[pod].start(
                    TAAS_RUN,
                    *self._way(PODS.index(pod), self._name),
                    "--nproc-per-node",
                    1,
                    *self._command,
                    stderr=errors,
                    env={"TAAS_TOKEN": "a secret that only these pods know"},
                )

    def said(self, pod: str) -> str:
        return (self._folder / pod).read_text()

    def wait_for_line(self, pattern: str, *pods: str):
        wait_until(lambda: all(re.search(pattern, self.said(pod)) for pod in pods), f"{pods} say {pattern}")

    def end(self):
        codes = {pod: run.end().returncode for pod, run in self._runs.items()}
        assert codes == dict.fromkeys(PODS, 0), {pod: self.said(pod) for pod in PODS}

    def stop(self, pod: str, number: int) -> int:
        run = self._runs.pop(pod)
        run.send_signal(number)
        return run.end().returncode


def static(place: int, name: str) -> list:
    return ["--nnodes", 3, "--node-rank", place, "--master-addr", name, "--master-port", PORT]


def elastic(_: int, name: str) -> list:
    return [
        "--nnodes",
        "2:3",
        "--rdzv-backend",
        "c10d",
        "--rdzv-endpoint",
        f"{name}:{PORT}",
        "--rdzv-id",
        "job",
        "--rdzv-conf",
        "last_call_timeout=120",
    ]


both_ways = pytest.mark.parametrize("way", [static, elastic])


@pytest.fixture
def begin(cluster, tmp_path):
    """begin(way): pods that are to start, and the records of their ranks."""
    count = iter(range(1000))

    def begin(way, **options):
        number = next(count)
        records = Records(tmp_path / f"records-{number}")
        return Pods(cluster, tmp_path / f"said-{number}", way, records.command("report_rank.py"), **options), records

    return begin


def assert_all_took_part(records):
    assert sorted(told["hostname"] for told in records.environments()) == list(PODS)
    assert records.environments()[0]["hostname"] == "n0", "the pod of that name is the first"


@both_ways
def test_three_pods_start_once_their_names_are_known(cluster, names, begin, way):
    """Static: the first pod ended with 2 at once. Elastic: no pod became the coordinator any more."""
    for _ in range(REPEATS):
        names.know(FIRST)
        pods, records = begin(way)
        pods.start(*PODS)
        pods.wait_for_line(f"waiting for the name {FIRST}", *PODS)
        names.know(FIRST, cluster.address("n0"))
        pods.end()
        assert_all_took_part(records)
    assert_nothing_left(cluster)


@both_ways
def test_a_whole_name_is_found_as_well_as_one_below_the_search_domain(cluster, names, begin, way):
    whole = f"{FIRST}.team.svc.cluster.local"
    pods, records = begin(way, name=whole)
    pods.start(*PODS)
    pods.wait_for_line(f"waiting for the name {whole}", *PODS)
    names.know(FIRST, cluster.address("n0"), cluster.address("n0", 6))
    pods.end()
    assert_all_took_part(records)


@both_ways
def test_a_pod_has_started_again_with_another_address(cluster, names, begin, way):
    """Its name stands for the address that it had until the name service has heard of the new one."""
    names.know(FIRST, "10.77.0.99")
    pods, records = begin(way)
    pods.start(*PODS)
    pods.wait_for_line("10.77.0.99", *PODS)
    names.know(FIRST, cluster.address("n0"))
    pods.end()
    assert_all_took_part(records)


def test_a_pod_is_only_named_when_it_is_ready(cluster, names, begin):
    """publishNotReadyAddresses is off, and the probe connects to the port.

    A first pod that waited for its name would wait for ever.
    """
    pods, records = begin(static)
    pods.start(*reversed(PODS))
    wait_until(lambda: (cluster.address("n0"), PORT) in cluster["n0"].listening(), "the probe finds the port")
    names.know(FIRST, cluster.address("n0"))
    pods.end()
    assert_all_took_part(records)


@both_ways
def test_name_servers_may_take_longer_than_an_attempt(cluster, names, begin, way):
    """As where the first of them is dead: each attempt asked anew, and gave up before the answer came."""
    names.answer_after(6)
    names.know(FIRST, cluster.address("n0"))
    names.ask("timeout:20 attempts:1")
    pods, records = begin(way)
    pods.start(*PODS)
    pods.end()
    assert_all_took_part(records)


@both_ways
def test_a_pod_that_waits_for_silent_name_servers_stops_when_it_is_told_to(cluster, names, begin, way):
    """It waited for the C library, which may ask for minutes."""
    names.fall_silent()
    names.ask("timeout:30 attempts:5")
    pods, _ = begin(way)
    pods.start("n1")
    pods.wait_for_line(f"waiting for the name {FIRST}", "n1")
    assert pods.stop("n1", signal.SIGTERM) == 143
    assert_nothing_left(cluster)
