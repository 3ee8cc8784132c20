"""`--numa-binding`: ranks run on CPUs near their GPU; here, without one, spread over the machine's NUMA nodes."""

import json
import os
import pathlib

import pytest

SHOW = """
import json, os
print(json.dumps(sorted(os.sched_getaffinity(0))))
"""
CORES = {pathlib.Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read_text() for cpu in os.sched_getaffinity(0)}


@pytest.fixture
def show(tmp_path):
    program = tmp_path / "show.py"
    program.write_text(SHOW)
    return program


def seen_by_ranks(launcher, show, tmp_path, *flags, ranks=2):
    done = launcher.run("--nproc-per-node", ranks, "--log-dir", tmp_path / "logs", "-r", "1", *flags, show)
    assert done.returncode == 0, done.stderr
    return [json.loads(file.read_text()) for file in sorted((tmp_path / "logs").rglob("stdout.log"))], done.stderr


@pytest.mark.parametrize("preload", ["none", "json"])
def test_ranks_run_on_cpus_of_their_node_preloaded_or_not(launcher, show, tmp_path, preload):
    seen, said = seen_by_ranks(launcher, show, tmp_path, "--numa-binding", "socket", "--preload", preload)
    assert len(seen) == 2 and all(set(cpus) <= os.sched_getaffinity(0) for cpus in seen)
    assert "not bound" not in said


@pytest.mark.skipif(len(CORES) < 2, reason="this machine has one core")
@pytest.mark.parametrize("preload", ["none", "json"])
def test_no_two_ranks_share_a_core(launcher, show, tmp_path, preload):
    one, other = seen_by_ranks(launcher, show, tmp_path, "--numa-binding", "exclusive", "--preload", preload)[0]
    assert one and other and not set(one) & set(other)


def test_where_it_cannot_be_ranks_run_unbound_and_a_line_says_why(launcher, show, tmp_path):
    ranks = len(CORES) + 1
    seen, said = seen_by_ranks(launcher, show, tmp_path, "--numa-binding", "exclusive", ranks=ranks)
    assert seen == [sorted(os.sched_getaffinity(0))] * ranks
    assert said.count("ranks are not bound to CPUs: NUMA node ") == 1


def test_a_mode_that_there_is_not_is_refused(launcher, show):
    done = launcher.run("--numa-binding", "nodes", show)
    assert done.returncode == 2
    assert "--numa-binding nodes: not a binding: node, socket, exclusive or core-complex" in done.stderr
