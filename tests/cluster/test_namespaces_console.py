"""Much output on the console: a node is never lost for it, and its log files have everything."""

import os
import subprocess
import time

from conftest import NODE_TIMEOUT, TAAS_RUN
from processes import wait_until
from runs import assert_nothing_left

LINE = "{:07d} of rank {} 0123456789012345678901234567890123456789\n"
FLOOD = """
import os, sys
rank = os.environ["RANK"]
for first in range(0, {lines}, 1000):
    sys.stdout.write("".join({line!r}.format(i, rank) for i in range(first, first + 1000)))
"""


def flood(lines: int, rank=None) -> list:
    """The command of ranks that print so many thousands of lines; only this one, if there is one."""
    text = FLOOD.format(lines=lines * 1000, line=LINE)
    if rank is not None:
        text = f"import os\nif os.environ['RANK'] != '{rank}': raise SystemExit\n" + text
    return ["--no-python", "python3", "-c", text]


def printed(lines: int, rank: int) -> str:
    return "".join(LINE.format(i, rank) for i in range(lines * 1000))


def log(cluster, rank: int) -> str:
    return (cluster.home / f"taas-runs/run/generation-0/rank-{rank:04d}.out").read_text()


def start(cluster, hosts: str, *words, **options):
    return cluster.login.start(
        TAAS_RUN, "--node-timeout", NODE_TIMEOUT, "--rdzv-id", "run", "--hosts", hosts, *words, **options
    )


def test_all_ranks_of_many_nodes_may_print_at_once(cluster):
    result = start(cluster, "n0:2,n1:2,n2:2,n3:2", "-t", 3, *flood(40), stdout=subprocess.DEVNULL).end()
    assert result.returncode == 0, result.stderr
    assert "lost" not in result.stderr, result.stderr
    for rank in range(8):
        assert log(cluster, rank) == printed(40, rank)
    assert_nothing_left(cluster)


def test_heartbeats_pass_output_on_a_slow_network(cluster):
    """What rank 0 prints needs nearly twice the patience with a silent node."""
    cluster.network.slow_down("8mbit", "n0", "n1")
    result = start(cluster, "n0:1,n1:1", *flood(160, rank=0)).end()
    assert result.returncode == 0, result.stderr
    assert "lost" not in result.stderr, result.stderr
    assert result.stdout == printed(160, 0) == log(cluster, 0)


def test_a_console_that_nobody_reads_for_a_while_loses_no_node(cluster):
    """As with control-S in a terminal: longer than the patience with a silent node."""
    reader, writer = os.pipe()
    run = start(cluster, "n0:1,n1:1", *flood(80, rank=0), stdout=writer)
    os.close(writer)
    with open(reader, encoding="utf-8") as console:
        first = console.readline()
        wait_until(lambda: (cluster.home / "taas-runs/run/generation-0/rank-0000.out").exists(), "rank 0 prints")
        time.sleep(NODE_TIMEOUT + 1)  # the time that nobody reads is what is tested
        shown = first + console.read()
    result = run.end()
    assert result.returncode == 0, result.stderr
    assert "lost" not in result.stderr, result.stderr
    assert shown == printed(80, 0) == log(cluster, 0)
