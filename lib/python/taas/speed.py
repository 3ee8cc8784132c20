"""What `taas-run check --speed` runs in each rank: how fast nodes compute, and how fast they reach each other.

Each rank multiplies matrices, all ranks reduce one tensor together, and then neighbouring nodes pass one to each other, pair
by pair. Rank 0 prints what came of it. What is far slower than its like is named, and the exit code is 1 then.
"""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.distributed as dist

SLOW = 0.5  # of the median of its like
COMPUTE_SECONDS = 0.6
REDUCE_SECONDS = 0.4
LINK_SECONDS = 0.2  # of one pair; all pairs of one of the two or three rounds at the same time
CALL_SECONDS = 0.05  # of one call, on a link that is slow
MIB = 1 << 20
SMALL = MIB // 64  # elements of the first trial


class Place(NamedTuple):
    """Where a rank is."""

    rank: int
    node: int
    host: str
    device: str


def main() -> None:
    """Exit code 1 where something is slow."""
    on_gpu = torch.cuda.is_available()
    local = int(os.environ["LOCAL_RANK"])
    device = torch.device("cuda", local % torch.cuda.device_count()) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if on_gpu else "gloo")
    try:
        sys.exit(measure(device))
    finally:
        dist.destroy_process_group()


def measure(device: torch.device) -> int:
    """What the rank ends with; all ranks the same."""
    rank, size = dist.get_rank(), dist.get_world_size()
    own = Place(rank, int(os.environ["GROUP_RANK"]), platform.node(), f"GPU {device.index}" if device.type == "cuda" else "CPU")
    places: list[Place] = [own] * size
    dist.all_gather_object(places, own)
    flops: list[float] = [0.0] * size
    dist.all_gather_object(flops, compute(device))
    reduced = reduce_rate(device) if size > 1 else 0.0
    links: list[dict[tuple[int, int], float]] = [{}] * size
    dist.all_gather_object(links, link_rates(device, places))
    rates = {pair: rate for found in links for pair, rate in found.items()}
    slow = slow_ranks(places, flops) + slow_links(places, rates)
    if rank == 0:
        print(summary(flops, reduced, rates))
        for line in slow:
            print(line)
    return 1 if slow else 0


def best_seconds(call: Callable[[], object], device: torch.device, seconds: float) -> float:
    """The shortest of the calls that this time has room for: other work on a machine only makes some of them longer."""
    timed(call, device)
    first = timed(call, device)
    return min([first, *(timed(call, device) for _ in range(min(200, int(seconds / max(first, 1e-6)))))])


def largest(device: torch.device) -> int:
    """Elements of float32: 256 MiB on a GPU, 16 MiB on a CPU."""
    return (64 if device.type == "cuda" else 4) * MIB


def compute(device: torch.device) -> float:
    """FLOP/s of a product of two square matrices: of 8192 in bfloat16 on a GPU, of 1024 in float32 on a CPU."""
    size, dtype = (8192, torch.bfloat16) if device.type == "cuda" else (1024, torch.float32)
    left = torch.randn(size, size, device=device, dtype=dtype)
    out = torch.empty_like(left)
    return 2 * size**3 / best_seconds(lambda: torch.mm(left, left, out=out), device, COMPUTE_SECONDS)


def timed(call: Callable[[], object], device: torch.device) -> float:
    """Seconds until the call's work is done."""
    begun = time.perf_counter()
    call()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - begun


def elements(seconds: float, tried: int, largest: int) -> int:
    """Of float32, so many that a call takes about CALL_SECONDS, where one with `tried` of them took so long."""
    return max(tried, min(largest, int(tried * CALL_SECONDS / max(seconds, 1e-9))))


def agreed(value: float, device: torch.device) -> float:
    """The largest of all ranks."""
    tensor = torch.tensor([value], device=device, dtype=torch.float64)
    dist.all_reduce(tensor, dist.ReduceOp.MAX)
    return float(tensor.item())


def reduce_rate(device: torch.device) -> float:
    """Bytes a second over the slowest link of a ring, as nccl-tests' bus bandwidth has it: 2 (n - 1) / n of the tensor.

    How much and how often is agreed before, since each call is one of all ranks.
    """
    size = dist.get_world_size()
    small = torch.zeros(SMALL, device=device)
    dist.all_reduce(small)
    count = elements(agreed(timed(lambda: dist.all_reduce(small), device), device), SMALL, largest(device))
    tensor = torch.zeros(count, device=device)
    first = agreed(timed(lambda: dist.all_reduce(tensor), device), device)
    times = [timed(lambda: dist.all_reduce(tensor), device) for _ in range(1 + min(100, int(REDUCE_SECONDS / first)))]
    return 2 * (size - 1) / size * count * 4 / agreed(min(times), device)


def rounds_of(nodes: int) -> list[list[tuple[int, int]]]:
    """Pairs of neighbours in a ring of nodes, such that no node is in two pairs of a round."""
    if nodes < 2:
        return []
    ring = [(node, (node + 1) % nodes) for node in range(nodes if nodes > 2 else 1)]
    rounds = [ring[0::2], ring[1::2]]
    if nodes > 2 and nodes % 2:  # the last pair shares a node with the first
        rounds = [ring[0:-1:2], ring[1:-1:2], ring[-1:]]
    return [pairs for pairs in rounds if pairs]


def link_rates(device: torch.device, places: list[Place]) -> dict[tuple[int, int], float]:
    """Bytes a second between the first ranks of neighbouring nodes; told by the first of each pair."""
    rank = dist.get_rank()
    first: dict[int, int] = {}
    for place in places:
        first.setdefault(place.node, place.rank)
    rates = {}
    for pairs in rounds_of(len(first)):
        for one, other in pairs:
            if rank in (first[one], first[other]):
                rate = ping(device, first[other] if rank == first[one] else first[one], rank == first[one])
                if rank == first[one]:
                    rates[one, other] = rate
        dist.barrier()
    return rates


def ping(device: torch.device, peer: int, begins: bool) -> float:
    """There and back, of the size and as often as the one that begins says."""
    def once(tensor: torch.Tensor) -> None:
        for act in (dist.send, dist.recv) if begins else (dist.recv, dist.send):
            act(tensor, peer)

    def told(value: float) -> int:
        tensor = torch.tensor([value], device=device, dtype=torch.float64)
        dist.send(tensor, peer) if begins else dist.recv(tensor, peer)
        return int(tensor.item())

    small = torch.zeros(SMALL, device=device)
    once(small)
    tensor = torch.zeros(told(elements(timed(lambda: once(small), device), SMALL, largest(device))), device=device)
    first = timed(lambda: once(tensor), device)
    times = [timed(lambda: once(tensor), device) for _ in range(told(1 + min(100, LINK_SECONDS / first)))]
    return 2 * tensor.numel() * 4 / min(times)


def slow_ranks(places: list[Place], flops: list[float]) -> list[str]:
    """A line for each rank that computes far slower than most."""
    usual = statistics.median(flops)
    return [f"slow: rank {place.rank} ({place.host}, {place.device}) computes {in_words(rate, 'FLOP/s')}, "
            f"most ranks {in_words(usual, 'FLOP/s')}; is something else running there, or is it hot or capped?"
            for place, rate in zip(places, flops, strict=True) if rate < SLOW * usual]


def slow_links(places: list[Place], rates: dict[tuple[int, int], float]) -> list[str]:
    """A line for each pair of nodes that is far slower than most; two slow pairs with one node are that node's."""
    if len(rates) < 3:
        return []
    usual = statistics.median_high(list(rates.values()))
    slow = {pair: rate for pair, rate in rates.items() if rate < SLOW * usual}
    host = {place.node: place.host for place in reversed(places)}
    often = [node for node in host if sum(node in pair for pair in slow) > 1]
    lines = [f"slow: all links of {host[node]} ({', '.join(in_words(slow[pair], 'B/s') for pair in slow if node in pair)}), "
             f"most others {in_words(usual, 'B/s')}; look at its network card, cable and switch port" for node in often]
    return lines + [f"slow: the link between {host[one]} and {host[other]} ({in_words(rate, 'B/s')}), most others "
                    f"{in_words(usual, 'B/s')}" for (one, other), rate in slow.items() if one not in often and other not in often]


def summary(flops: list[float], reduced: float, rates: dict[tuple[int, int], float]) -> str:
    """One line."""
    text = f"speed: {'1 rank computes' if len(flops) == 1 else f'{len(flops)} ranks compute'} {spread(flops, 'FLOP/s')}"
    if reduced:
        text += f"; all-reduce over all of them {in_words(reduced, 'B/s')}"
    if rates:
        text += f"; between nodes {spread(list(rates.values()), 'B/s')}"
    return text


def spread(rates: list[float], unit: str) -> str:
    """Of one rate, or of the least and the most."""
    least, most = in_words(min(rates), unit), in_words(max(rates), unit)
    return least if least == most else f"{least} to {most}"


def in_words(rate: float, unit: str) -> str:
    """"1.9 GB/s"."""
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if rate >= factor:
            return f"{rate / factor:.1f} {prefix}{unit}"
    return f"{rate:.0f} {unit}"


if __name__ == "__main__":
    main()
