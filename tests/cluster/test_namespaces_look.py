"""`taas-run look` over nodes, where a disk holds a rank so that no signal reaches it."""

import json
import time

from conftest import TAAS_RUN
from processes import wait_until
from runs import PROGRAMS, assert_nothing_left

NODE_TIMEOUT = 2.5  # seconds: what --node-timeout is by default


def look(cluster, *arguments) -> dict:
    return json.loads(cluster.login.check(TAAS_RUN, "look", "--json", *arguments))


def line_with(words: str) -> int:
    lines = (PROGRAMS / "held_rank.py").read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if words in line)


def with_held_rank(report: dict) -> dict | None:
    """On a busy machine a node's answer may come too late for a look, and a rank that sleeps may just have been woken."""
    activities = [rank["activity"] for rank in report["ranks"]]
    return report if activities == ["purposely"] * 3 + ["blocked"] else None


def test_a_rank_that_a_disk_holds_is_named_and_delays_nobody(cluster, records, frozen_disk):
    process = cluster.login.start(TAAS_RUN, "--hosts", "n0,n1", "--gpus", 4, "--gpus-per-node", 2,
                                  *records.command("held_rank.py", frozen_disk.path))
    records.wait_for("up-*", 4)
    with frozen_disk.frozen():
        report = wait_until(lambda: with_held_rank(look(cluster)), "rank 3 is held by its disk")
        assert [rank["node"] for rank in report["ranks"]] == ["n0", "n0", "n1", "n1"]
        held = report["ranks"][3]
        assert held["doing"].startswith("waits for ") and "no signal reaches it" in held["doing"], held
        assert held["own_frames"][0]["function"] == "write"
        assert held["own_frames"][0]["line"] == line_with("file.write(")
        (detail,) = look(cluster, "--rank", "3")["ranks"]
        assert detail["processes"][0]["threads"][0]["wait"] == "disk"
        held_for = time.monotonic() + 2 * NODE_TIMEOUT
        wait_until(lambda: time.monotonic() > held_for, "a node that did not answer would be lost by now")
        assert look(cluster)["generation"] == 0 and look(cluster)["silent"] == []
    (records.folder / "finish").touch()
    result = process.end()
    assert result.returncode == 0 and "lost" not in result.stderr, result.stderr
    assert_nothing_left(cluster)


def test_the_page_counts_nodes_and_names_hosts(cluster, records, tmp_path):
    process = cluster.login.start(TAAS_RUN, "--hosts", "n0,n1", "--gpus", 4, "--gpus-per-node", 2,
                                  *records.command("held_rank.py", tmp_path))
    records.wait_for("up-*", 4)
    page = cluster.login.check(TAAS_RUN, "look")
    assert "4 ranks on 2 nodes" in page and "rank 3 (n1, pid " in page, page
    (records.folder / "finish").touch()
    process.end()
    refused = cluster.login.run(TAAS_RUN, "look", "0000")
    assert refused.returncode == 2 and refused.stderr.count("\n") == 1, refused.stderr
