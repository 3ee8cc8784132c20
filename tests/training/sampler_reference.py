"""Index for index: taas::DistributedSampler against torch.utils.data.DistributedSampler, over a grid of arguments.

usage: sampler_reference.py PYTHON_PEER
"""

import itertools
import subprocess
import sys

from torch.utils.data import DistributedSampler


def cases():
    sizes = (1, 2, 3, 7, 8, 9, 64, 100, 1001, 40000)  # not 0, of which Python makes no share
    worlds = (1, 2, 3, 8, 32)
    for size, world in itertools.product(sizes, worlds):
        ranks = sorted({0, world // 2, world - 1})
        for rank, shuffle, drop_last in itertools.product(ranks, (0, 1), (0, 1)):
            for seed, epoch in ((0, 0), (0, 1), (42, 3), (2**63 - 5, 2)):
                yield size, world, rank, shuffle, drop_last, seed, epoch


def expected(size, world, rank, shuffle, drop_last, seed, epoch):
    sampler = DistributedSampler(
        range(size), num_replicas=world, rank=rank, shuffle=bool(shuffle), seed=seed, drop_last=bool(drop_last)
    )
    sampler.set_epoch(epoch)
    return list(sampler)


def main(peer):
    table = list(cases())
    text = "\n".join(" ".join(map(str, case)) for case in table)
    answer = subprocess.run([peer, "samples"], input=text, capture_output=True, text=True, check=True).stdout
    lines = answer.splitlines()
    assert len(lines) == len(table), f"{len(table)} cases but {len(lines)} answers"
    for case, line in zip(table, lines):
        got, want = list(map(int, line.split())), expected(*case)
        assert got == want, f"size world rank shuffle drop_last seed epoch {case}: {got[:9]}, Python {want[:9]}"
    print(f"{len(table)} cases equal")


if __name__ == "__main__":
    main(sys.argv[1])
