"""What `taas-run check --speed` calls slow; tests/cluster/test_namespaces_check.py measures a link that is."""

import pytest

pytest.importorskip("torch")

from taas.speed import Place, rounds_of, slow_links, slow_ranks, summary

PLACES = [Place(rank, rank // 2, "abcd"[rank // 2], f"GPU {rank % 2}") for rank in range(8)]
GOOD = {(0, 1): 9e9, (1, 2): 1e10, (2, 3): 9.5e9, (3, 0): 9e9}


def test_a_rank_that_computes_at_less_than_half_the_pace_is_named():
    [line] = slow_ranks(PLACES, [1e12] * 3 + [4e11] + [1e12] * 4)
    assert line.startswith("slow: rank 3 (b, GPU 1) computes 400.0 GFLOP/s, most ranks 1.0 TFLOP/s")
    assert slow_ranks(PLACES, [1e12, 6e11] * 4) == []


def test_a_node_whose_links_are_all_slow_is_named_once():
    rates = {**GOOD, (1, 2): 1e8, (2, 3): 2e8}
    [line] = slow_links(PLACES, rates)
    assert line.startswith("slow: all links of c (100.0 MB/s, 200.0 MB/s), most others 9.0 GB/s")


def test_one_slow_link_is_named_by_both_ends():
    [line] = slow_links(PLACES, {**GOOD, (3, 0): 1e8})
    assert line == "slow: the link between d and a (100.0 MB/s), most others 9.5 GB/s"


def test_two_nodes_have_one_link_which_nothing_can_be_compared_with():
    assert slow_links(PLACES, {(0, 1): 1e3}) == [] and slow_links(PLACES, {}) == []
    assert slow_links(PLACES, GOOD) == []


@pytest.mark.parametrize("nodes", range(1, 12))
def test_each_neighbour_is_met_once_and_nobody_by_two_at_a_time(nodes):
    rounds = rounds_of(nodes)
    pairs = [pair for pairs in rounds for pair in pairs]
    assert len(pairs) == len({frozenset(pair) for pair in pairs}) == (nodes if nodes > 2 else nodes - 1)
    for pairs in rounds:
        ends = [end for pair in pairs for end in pair]
        assert len(ends) == len(set(ends))


def test_the_line_says_what_was_measured():
    assert summary([2e11, 2e11], 1.8e9, {}) == "speed: 2 ranks compute 200.0 GFLOP/s; all-reduce over all of them 1.8 GB/s"
    assert summary([2e11], 0.0, {}) == "speed: 1 rank computes 200.0 GFLOP/s"
    assert summary([1.0, 2e3], 1.0, {(0, 1): 5.0, (1, 2): 6e6}).endswith("; between nodes 5 B/s to 6.0 MB/s")
